//! Looking and reading.

use std::io::Read;

use glovebox_workspace::files::{self, FileError, Range};
use glovebox_workspace::{FsErrorKind, Kind};

use crate::files::place::{place, rel};

#[test]
fn parts_are_read_as_http_counts_them() {
    let place = place();
    place.file("f", b"0123456789");
    let part = |range| {
        let read = files::read(&place.dir, &rel("f"), range, 100);
        read.map(|part| (part.start, String::from_utf8(part.bytes).unwrap()))
    };
    let from = |first, last| Range::From { first, last };
    assert_eq!(part(Range::Whole).unwrap(), (0, "0123456789".into()));
    assert_eq!(part(from(2, Some(4))).unwrap(), (2, "234".into()));
    assert_eq!(part(from(8, None)).unwrap(), (8, "89".into()));
    assert_eq!(part(from(8, Some(u64::MAX))).unwrap(), (8, "89".into()));
    assert_eq!(part(Range::Last(3)).unwrap(), (7, "789".into()));
    assert_eq!(part(Range::Last(300)).unwrap(), (0, "0123456789".into()));
    for beyond in [
        from(10, None),
        from(u64::MAX, None),
        from(5, Some(4)),
        Range::Last(0),
    ] {
        assert_eq!(
            part(beyond),
            Err(FileError::Range { size: 10 }),
            "{beyond:?}"
        );
    }
    let mut streamed = String::new();
    let mut reading = files::open(&place.dir, &rel("f"), from(3, Some(5))).unwrap();
    assert_eq!((reading.start, reading.length), (3, 3));
    reading.read_to_string(&mut streamed).unwrap();
    assert_eq!(streamed, "345");
}

#[test]
fn a_file_that_shrinks_while_it_is_passed_on_is_an_error() {
    let place = place();
    place.file("f", &[7; 100]);
    let mut reading = files::open(&place.dir, &rel("f"), Range::Whole).unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(place.inside.join("f"));
    file.unwrap().set_len(10).unwrap();
    let mut seen = Vec::new();
    let error = reading.read_to_end(&mut seen).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!(seen.len(), 10);
    // And one that grows gives what was promised.
    let mut reading = files::open(&place.dir, &rel("f"), Range::Whole).unwrap();
    std::fs::write(place.inside.join("f"), [7; 1000]).unwrap();
    seen.clear();
    reading.read_to_end(&mut seen).unwrap();
    assert_eq!(seen.len(), 10);
}

#[test]
fn a_mark_changes_with_every_change() {
    let place = place();
    place.file("f", b"one");
    let etag = || files::stat(&place.dir, Some(&rel("f"))).unwrap().etag;
    let first = etag();
    assert_eq!(first, etag());
    assert_eq!(first.as_str().len(), 32);
    let mut seen = vec![first];
    let path = place.inside.join("f");
    let steps: [&dyn Fn(); 4] = [
        &|| std::fs::write(&path, b"longer").unwrap(),
        &|| std::fs::rename(&path, place.inside.join("g")).unwrap(),
        &|| drop(std::fs::write(&path, b"one")),
        &|| {
            // Contents and time as before: only what nobody can set is different.
            let time = std::fs::metadata(&path).unwrap().modified().unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(time - std::time::Duration::from_secs(5))
                .unwrap();
        },
    ];
    for step in steps {
        step();
        if path.exists() {
            let now = etag();
            assert!(!seen.contains(&now));
            seen.push(now);
        }
    }
}

#[test]
fn the_directory_itself_can_be_looked_at() {
    let place = place();
    assert_eq!(files::stat(&place.dir, None).unwrap().kind, Kind::Directory);
    match files::stat(&place.dir, Some(&rel("gone"))).unwrap_err() {
        FileError::Fs(error) => assert_eq!(error.kind(), FsErrorKind::NotFound),
        other => panic!("{other:?}"),
    }
}
