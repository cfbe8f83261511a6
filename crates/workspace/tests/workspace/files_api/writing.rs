//! Writing and replacing.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use glovebox_model::Code;
use glovebox_workspace::files::{
    self, Condition, Durability, Etag, FileError, FileResult, FileStat, Occurrence, Parents,
    WriteOptions,
};
use glovebox_workspace::{FsErrorKind, Kind};

use crate::files::place::{Place, place, rel};

fn write(place: &Place, path: &str, text: &str, options: &WriteOptions) -> FileResult<FileStat> {
    files::write(&place.dir, &rel(path), &mut text.as_bytes(), options)
}

fn on(condition: Condition) -> WriteOptions {
    WriteOptions {
        condition,
        ..WriteOptions::default()
    }
}

fn names(place: &Place) -> usize {
    place.dir.list(100).unwrap().entries.len()
}

#[test]
fn a_file_is_written_with_parents_mode_and_sync() {
    let place = place();
    let options = WriteOptions {
        parents: Parents::Make,
        mode: Some(0o640),
        durability: Durability::Synced,
        ..WriteOptions::default()
    };
    let stat = write(&place, "a/b/f", "text", &options).unwrap();
    assert_eq!((stat.kind, stat.size, stat.mode), (Kind::File, 4, 0o640));
    assert_eq!(stat, files::stat(&place.dir, Some(&rel("a/b/f"))).unwrap());
    // Without a mode the old one stays.
    let stat = write(&place, "a/b/f", "other", &WriteOptions::default()).unwrap();
    assert_eq!(stat.mode, 0o640);
    let missing = write(&place, "no/f", "x", &WriteOptions::default()).unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
}

#[test]
fn conditions_hold() {
    let place = place();
    let stat = write(&place, "f", "one", &on(Condition::Absent)).unwrap();
    let exists = write(&place, "f", "two", &on(Condition::Absent)).unwrap_err();
    assert_eq!(exists.code(), Code::Conflict);
    let stale = Condition::Matches(Etag::new("0".repeat(32)));
    let refused = write(&place, "f", "two", &on(stale.clone())).unwrap_err();
    assert_eq!(refused, FileError::Changed { path: "f".into() });
    let next = write(
        &place,
        "f",
        "two",
        &on(Condition::Matches(stat.etag.clone())),
    )
    .unwrap();
    assert_ne!(next.etag, stat.etag);
    let again = write(&place, "f", "three", &on(Condition::Matches(stat.etag)));
    assert_eq!(again.unwrap_err().code(), Code::Conflict);
    assert_eq!(place.read("f").unwrap(), b"two");
    let missing = write(&place, "gone", "x", &on(stale)).unwrap_err();
    assert!(matches!(missing, FileError::Changed { .. }));
    place.link("nowhere", "dangling");
    let dangling = write(&place, "dangling", "x", &on(Condition::Absent)).unwrap_err();
    assert_eq!(dangling.code(), Code::Conflict);
    assert_eq!(names(&place), 2, "nothing is left behind");
}

#[test]
fn what_is_too_large_or_breaks_off_leaves_the_old_file() {
    let place = place();
    place.file("f", b"old");
    let options = WriteOptions {
        most_bytes: 3,
        ..WriteOptions::default()
    };
    let large = write(&place, "f", "four", &options).unwrap_err();
    assert_eq!(large.code(), Code::PayloadTooLarge);
    write(&place, "f", "new", &options).unwrap();
    struct Broken(bool);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match std::mem::replace(&mut self.0, true) {
                false => {
                    buffer[0] = b'x';
                    Ok(1)
                }
                true => Err(std::io::ErrorKind::ConnectionReset.into()),
            }
        }
    }
    let options = WriteOptions::default();
    let broken = files::write(&place.dir, &rel("f"), &mut Broken(false), &options);
    assert!(matches!(broken, Err(FileError::Stream(_))));
    assert_eq!(place.read("f").unwrap(), b"new");
    assert_eq!(names(&place), 1);
}

/// Each writer reads a number and writes the next one, on the condition that nobody else did.
#[test]
fn no_write_is_lost_among_writers_with_conditions() {
    let place = place();
    place.file("n", b"0");
    let won = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let read = files::read(&place.dir, &rel("n"), files::Range::Whole, 100);
                    let read = read.expect("it is always there");
                    let number: u64 = String::from_utf8(read.bytes).unwrap().parse().unwrap();
                    let next = (number + 1).to_string();
                    match write(&place, "n", &next, &on(Condition::Matches(read.stat.etag))) {
                        Ok(_) => drop(won.fetch_add(1, Ordering::Relaxed)),
                        Err(FileError::Changed { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let number: u64 = String::from_utf8(place.read("n").unwrap())
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(number, won.into_inner());
    assert!(number >= 200, "somebody wins in every round");
    assert_eq!(names(&place), 1);
}

#[test]
fn only_one_of_many_makes_a_new_file() {
    let place = place();
    let made = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| match write(&place, "new", "x", &on(Condition::Absent)) {
                Ok(_) => drop(made.fetch_add(1, Ordering::Relaxed)),
                Err(error) => assert_eq!(error.code(), Code::Conflict),
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
    assert_eq!(names(&place), 1);
}

fn replace(place: &Place, old: &[u8], new: &[u8], how: Occurrence) -> FileResult<u64> {
    files::replace(&place.dir, &rel("f"), old, new, how, None, 1000).map(|done| done.times)
}

#[test]
fn a_text_is_replaced_when_it_is_there_once() {
    let place = place();
    place.file("f", b"one two two \xff three");
    std::fs::set_permissions(
        place.inside.join("f"),
        std::fs::Permissions::from_mode(0o751),
    )
    .unwrap();
    let occurs = |times| FileError::Occurs {
        path: "f".into(),
        times,
    };
    let once = Occurrence::Once;
    assert_eq!(replace(&place, b"two", b"2", once), Err(occurs(2)));
    assert_eq!(replace(&place, b"four", b"4", once), Err(occurs(0)));
    assert_eq!(
        replace(&place, b"four", b"4", Occurrence::All),
        Err(occurs(0))
    );
    assert_eq!(
        replace(&place, b"", b"4", once),
        Err(FileError::EmptyNeedle)
    );
    assert_eq!(replace(&place, b"one", b"\xfe", once), Ok(1));
    assert_eq!(replace(&place, b"\xff", b"", once), Ok(1));
    assert_eq!(replace(&place, b"two", b"2", Occurrence::All), Ok(2));
    assert_eq!(place.read("f").unwrap(), b"\xfe 2 2  three");
    assert_eq!(
        files::stat(&place.dir, Some(&rel("f"))).unwrap().mode,
        0o751
    );
    // Which of two that overlap is meant, nobody can tell.
    place.file("f", b"aaa");
    assert_eq!(replace(&place, b"aa", b"b", once), Err(occurs(2)));
    assert_eq!(replace(&place, b"aa", b"b", Occurrence::All), Ok(1));
}

#[test]
fn replacing_is_bounded_conditional_and_follows_no_link() {
    let place = place();
    place.file("f", &[b'a'; 500]);
    let grown = replace(&place, b"a", &[b'b'; 500], Occurrence::All).unwrap_err();
    assert_eq!(grown.code(), Code::PayloadTooLarge);
    place.file("f", &[b'a'; 1001]);
    let large = replace(&place, b"a", b"b", Occurrence::All).unwrap_err();
    assert_eq!(large.code(), Code::PayloadTooLarge);
    place.file("f", b"a");
    let stale = Etag::new("x");
    let dir = &place.dir;
    let refused = files::replace(
        dir,
        &rel("f"),
        b"a",
        b"b",
        Occurrence::Once,
        Some(&stale),
        9,
    );
    assert!(matches!(refused, Err(FileError::Changed { .. })));
    place.link("f", "link");
    let link = files::replace(dir, &rel("link"), b"a", b"b", Occurrence::Once, None, 9);
    match link.unwrap_err() {
        FileError::Fs(error) => assert_eq!(error.kind(), FsErrorKind::Symlink),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.read("f").unwrap(), b"a");
}
