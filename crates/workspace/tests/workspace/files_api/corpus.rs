//! The path corpus, row by row, through the operations that people use. F032 (protected names) is
//! policy's: nothing here knows such names. F008 is the router's decoding; what comes out of it is
//! refused here. F049, F050 and F052 are races; F056 is in `files/resolver.rs`.

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use glovebox_model::{Code, Stage};
use glovebox_workspace::files::{
    self, CopyLimits, FileError, FileResult, ListOptions, Parents, Range, Recursive, WriteOptions,
};
use glovebox_workspace::{Dir, Existing, FsErrorKind, Kind, PathError, RelPath};

use crate::files::place::{CANARY, Place, place, rel};

fn write(place: &Place, path: &str) -> FileResult<files::FileStat> {
    files::write(
        &place.dir,
        &rel(path),
        &mut b"x".as_slice(),
        &WriteOptions::default(),
    )
}

fn read(place: &Place, path: &str) -> FileResult<Vec<u8>> {
    files::read(&place.dir, &rel(path), Range::Whole, 1 << 20).map(|contents| contents.bytes)
}

fn kind<T: std::fmt::Debug>(done: FileResult<T>) -> FsErrorKind {
    match done.unwrap_err() {
        FileError::Fs(error) => error.kind(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn f001_to_f005_f008_f011_f013_f015_no_such_path_is_a_path() {
    let long = "x".repeat(256);
    let deep = "x/".repeat(5000);
    let longer = "x/".repeat(2049);
    for (row, path, error) in [
        ("F001", "../etc/passwd", PathError::Escapes),
        ("F002", "a/../../etc/passwd", PathError::Escapes),
        ("F003", "/etc/passwd", PathError::Absolute),
        ("F004", "//etc/passwd", PathError::Absolute),
        ("F005", "./././../x", PathError::Escapes),
        ("F008", "../../etc/passwd", PathError::Escapes),
        ("F011", "a\0.txt", PathError::Nul),
        ("F013", "", PathError::Empty),
        ("F013", ".", PathError::Itself),
        ("F013", "/", PathError::Absolute),
        ("F015", long.as_str(), PathError::NameTooLong),
        ("F015", longer.as_str(), PathError::PathTooLong),
        ("F015", deep.as_str(), PathError::PathTooLong),
    ] {
        assert_eq!(RelPath::new(path), Err(error), "{row}");
        let told = error.at(Stage::Parse, path.as_bytes());
        assert_eq!(told.code, Code::InvalidArgument, "{row}");
    }
}

#[test]
fn f006_f007_f012_ordinary_bytes_are_ordinary() {
    let place = place();
    place.file("a/b/x", b"");
    place.file("c.txt", b"c");
    assert_eq!(read(&place, "a/b/../../c.txt").unwrap(), b"c");
    for path in ["..%2f..%2fetc%2fpasswd", "..\\..\\etc\\passwd"] {
        assert_eq!(kind(read(&place, path)), FsErrorKind::NotFound);
        write(&place, path).unwrap();
        assert_eq!(read(&place, path).unwrap(), b"x");
    }
}

#[test]
fn f017_two_spellings_are_two_files_everywhere() {
    let place = place();
    for name in ["\u{e9}", "e\u{301}"] {
        write(&place, name).unwrap();
    }
    let page = files::list(&place.dir, None, &ListOptions::default()).unwrap();
    assert_eq!(page.entries.len(), 2);
    let mut archive = Vec::new();
    let limits = files::DownloadLimits::default();
    let format = files::Format::Zip;
    let packed = files::download(&place.dir, None, format, limits, &mut archive).unwrap();
    assert_eq!(packed.files, 2);
}

/// Everything that takes a path, with one that leads out.
fn every_operation(place: &Place, path: &str) -> Vec<(&'static str, FileResult<()>)> {
    let dir = &place.dir;
    let path = &rel(path);
    let mut sink = Vec::new();
    let watch = files::WatchLimits::default();
    vec![
        (
            "read",
            read(place, std::str::from_utf8(path.as_bytes()).unwrap()).map(drop),
        ),
        ("open", files::open(dir, path, Range::Whole).map(drop)),
        (
            "list",
            files::list(dir, Some(path), &ListOptions::default()).map(drop),
        ),
        (
            "glob",
            files::glob(dir, Some(path), "**", &files::GlobOptions::default()).map(drop),
        ),
        (
            "grep",
            files::grep(
                dir,
                Some(path),
                &files::Needle::Literal("canary".into()),
                &files::GrepOptions::default(),
            )
            .map(drop),
        ),
        (
            "replace",
            files::replace(
                dir,
                path,
                b"host",
                b"evil",
                files::Occurrence::Once,
                None,
                1000,
            )
            .map(drop),
        ),
        (
            "write",
            files::write(dir, path, &mut b"evil".as_slice(), &WriteOptions::default()).map(drop),
        ),
        (
            "download",
            files::download(
                dir,
                Some(path),
                files::Format::Tar,
                files::DownloadLimits::default(),
                &mut sink,
            )
            .map(drop),
        ),
        (
            "watch",
            files::Watch::start(dir, Some(path), watch).map(drop),
        ),
        (
            "upload",
            files::upload(
                dir,
                Some(path),
                files::Source::Tar(&mut [0; 1024].as_slice()),
                files::Placement::Whole,
                Parents::Make,
                glovebox_workspace::archive::UnpackLimits::FILES,
            )
            .map(drop),
        ),
    ]
}

#[test]
fn f018_to_f021_f025_f026_f029_no_operation_goes_through_a_link_that_leads_out() {
    let place = place();
    place.link(place.outside.join("canary"), "absolute");
    place.link("../outside/canary", "relative");
    place.link(&place.outside, "dirlink");
    place.link("l2", "l1");
    place.link("l3", "l2");
    place.link(place.outside.join("canary"), "l3");
    place.link(place.inside.join("real"), "inside-absolute");
    place.file("real", b"x");
    let root = format!("/proc/self/root{}", place.outside.display());
    place.link(&root, "magic");
    for path in [
        "absolute",
        "relative",
        "dirlink",
        "dirlink/canary",
        "dirlink/new",
        "l1",
        "inside-absolute",
        "magic",
        "magic/canary",
    ] {
        for (operation, done) in every_operation(&place, path) {
            let error = done.expect_err(operation);
            let FileError::Fs(error) = &error else {
                panic!("{operation} of {path}: {error:?}");
            };
            assert!(
                matches!(
                    error.kind(),
                    FsErrorKind::Escapes | FsErrorKind::Symlink | FsErrorKind::Loop
                ),
                "{operation} of {path}: {error}"
            );
        }
    }
    place.assert_outside_untouched();
}

#[test]
fn f023_an_inner_link_stays_usable() {
    let place = place();
    place.file("sub/file.txt", b"inner");
    place.link("sub/file.txt", "in");
    place.link("sub", "dir");
    assert_eq!(read(&place, "in").unwrap(), b"inner");
    write(&place, "dir/new").unwrap();
    assert_eq!(read(&place, "sub/new").unwrap(), b"x");
}

#[test]
fn f030_f031_f034_parents_and_dangling_links() {
    let place = place();
    assert_eq!(RelPath::new("newdir/../../x"), Err(PathError::Escapes));
    place.link(&place.outside, "out");
    let options = WriteOptions {
        parents: Parents::Make,
        ..WriteOptions::default()
    };
    let made = files::write(&place.dir, &rel("out/a/b"), &mut b"x".as_slice(), &options);
    assert_eq!(kind(made), FsErrorKind::Escapes);
    let made = files::mkdir(&place.dir, &rel("out/a/b"), Parents::Make);
    assert_eq!(kind(made), FsErrorKind::Escapes);
    place.link(place.outside.join("new"), "dangling");
    assert_eq!(kind(write(&place, "dangling")), FsErrorKind::Symlink);
    place.file("dir/x", b"");
    assert_eq!(kind(write(&place, "dir")), FsErrorKind::IsADirectory);
    place.assert_outside_untouched();
}

#[test]
fn f036_f037_f039_removing() {
    let place = place();
    place.link(&place.outside, "link");
    files::remove(&place.dir, &rel("link"), Recursive::Yes).unwrap();
    place.file("tree/x", b"");
    place.link(&place.outside, "tree/link");
    let refused = files::remove(&place.dir, &rel("tree"), Recursive::No).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    assert!(matches!(refused, FileError::NeedsRecursive { .. }));
    std::fs::set_permissions(
        place.inside.join("tree"),
        std::fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    files::remove(&place.dir, &rel("tree"), Recursive::Yes).unwrap();
    for path in [".", "..", "/", "a/.."] {
        assert!(RelPath::new(path).is_err(), "{path}");
    }
    assert_eq!(place.dir.list(10).unwrap().entries, []);
    place.assert_outside_untouched();
}

#[test]
fn f040_both_ends_of_a_move_and_of_a_copy_are_inside() {
    let place = place();
    place.file("a", b"x");
    place.link(&place.outside, "out");
    assert_eq!(RelPath::new("../../x"), Err(PathError::Escapes));
    for (from, to) in [("a", "out/x"), ("out/canary", "b")] {
        let (from, to) = (rel(from), rel(to));
        let moved = files::rename(&place.dir, &from, &to, Existing::Replace, Parents::Make);
        assert_eq!(kind(moved), FsErrorKind::Escapes);
        let copied = files::copy(
            &place.dir,
            &from,
            &to,
            Existing::Replace,
            Parents::Make,
            CopyLimits::default(),
        );
        assert_eq!(kind(copied), FsErrorKind::Escapes);
    }
    place.assert_outside_untouched();
}

#[test]
fn f042_f044_a_link_says_nothing_about_what_it_points_at() {
    let place = place();
    place.link("/etc/passwd", "present");
    place.link("/etc/passwx", "missing");
    let look = |name: &str| {
        let stat = files::stat(&place.dir, Some(&rel(name))).unwrap();
        (stat.kind, stat.size, stat.mode)
    };
    assert_eq!(look("present"), look("missing"));
    let stat = files::stat(&place.dir, Some(&rel("present"))).unwrap();
    assert_eq!(stat.target.unwrap().as_bytes(), b"/etc/passwd");
    place.link("/", "root");
    let options = ListOptions {
        depth: 10,
        ..ListOptions::default()
    };
    let page = files::list(&place.dir, None, &options).unwrap();
    assert_eq!(page.entries.len(), 3);
    for entry in page.entries {
        assert_eq!(entry.stat.kind, Kind::Symlink);
        assert_eq!(
            entry.stat.size,
            entry.stat.target.unwrap().as_bytes().len() as u64
        );
    }
}

#[test]
fn f045_f046_what_is_no_regular_file_is_never_opened_to_wait() {
    let place = place();
    rustix::fs::mkfifoat(&place.dir, "fifo", rustix::fs::Mode::RUSR).unwrap();
    let _socket = UnixListener::bind(place.inside.join("sock")).unwrap();
    place.link("/dev/zero", "zero");
    for (name, expected) in [
        ("fifo", FsErrorKind::NotRegular(Kind::Fifo)),
        ("sock", FsErrorKind::NotRegular(Kind::Socket)),
        ("zero", FsErrorKind::Escapes),
    ] {
        assert_eq!(kind(read(&place, name)), expected, "{name}");
        let replaced = files::replace(
            &place.dir,
            &rel(name),
            b"a",
            b"b",
            files::Occurrence::All,
            None,
            100,
        );
        assert!(replaced.is_err(), "{name}");
        assert!(write(&place, name).is_err(), "{name}");
    }
    // None of these may wait for a writer of the FIFO either.
    let found = files::grep(
        &place.dir,
        None,
        &files::Needle::Literal("x".into()),
        &files::GrepOptions::default(),
    );
    assert_eq!(found.unwrap().files, 0);
    let mut sink = Vec::new();
    let limits = files::DownloadLimits::default();
    let packed = files::download(&place.dir, None, files::Format::Zip, limits, &mut sink);
    assert_eq!(packed.unwrap().skipped, 2);
    files::mkdir(&place.dir, &rel("d"), Parents::Require).unwrap();
    rustix::fs::mkfifoat(&place.dir, "d/fifo", rustix::fs::Mode::RUSR).unwrap();
    let copied = files::copy(
        &place.dir,
        &rel("d"),
        &rel("e"),
        Existing::Refuse,
        Parents::Require,
        CopyLimits::default(),
    );
    assert_eq!(copied.unwrap().skipped, 1);
    let fifo = std::fs::symlink_metadata(place.inside.join("fifo")).unwrap();
    assert!(fifo.file_type().is_fifo(), "and it is still there");
    let dev = Dir::open_trusted("/dev".as_ref()).unwrap();
    let device = files::read(&dev, &rel("zero"), Range::Whole, 10);
    assert_eq!(kind(device), FsErrorKind::NotRegular(Kind::Device));
}

#[test]
fn f047_a_size_is_never_believed() {
    let place = place();
    let sparse = std::fs::File::create(place.inside.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert!(matches!(
        kind(read(&place, "sparse")),
        FsErrorKind::TooLarge { .. }
    ));
    // A part of it is fine, and costs what the part costs.
    let part = Range::From {
        first: 1 << 39,
        last: Some((1 << 39) + 9),
    };
    let part = files::read(&place.dir, &rel("sparse"), part, 10).unwrap();
    assert_eq!((part.bytes, part.start), (vec![0; 10], 1 << 39));
    let mut sink = Vec::new();
    let packed = files::download(
        &place.dir,
        None,
        files::Format::Tar,
        files::DownloadLimits::default(),
        &mut sink,
    );
    assert!(matches!(
        packed,
        Err(FileError::Limit(files::Bound::Bytes(_)))
    ));
    assert!(sink.is_empty(), "refused before the first byte");
    let limits = CopyLimits {
        bytes: 1 << 20,
        ..CopyLimits::default()
    };
    let copied = files::copy(
        &place.dir,
        &rel("sparse"),
        &rel("copy"),
        Existing::Refuse,
        Parents::Require,
        limits,
    );
    assert!(matches!(
        copied,
        Err(FileError::Limit(files::Bound::Bytes(_)))
    ));
    assert_eq!(
        place.dir.list(10).unwrap().entries.len(),
        1,
        "nothing is left of it"
    );
    // Files of `/proc` have the size 0 and contents all the same.
    let proc = Dir::open_trusted("/proc/self".as_ref()).unwrap();
    let status = files::read(&proc, &rel("status"), Range::Whole, 1 << 20).unwrap();
    assert!(status.bytes.len() > 10);
    let cut = files::read(&proc, &rel("status"), Range::Whole, 10);
    assert_eq!(kind(cut), FsErrorKind::TooLarge { cap: 10 });
}

#[test]
fn f055_a_root_is_resolved_once() {
    let place = place();
    std::fs::create_dir(place.inside.join("real")).unwrap();
    place.link("real", "root");
    let root = Dir::open_trusted(&place.inside.join("root")).unwrap();
    std::fs::remove_file(place.inside.join("root")).unwrap();
    place.link(&place.outside, "root");
    let options = WriteOptions::default();
    files::write(&root, &rel("new"), &mut b"x".as_slice(), &options).unwrap();
    assert_eq!(read(&place, "real/new").unwrap(), b"x");
    place.assert_outside_untouched();
}

#[test]
fn f058_set_id_bits_and_attributes_stay_behind() {
    let place = place();
    place.file("d/tool", b"old");
    let old = place.inside.join("d/tool");
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o6755)).unwrap();
    rustix::fs::setxattr(&old, "user.note", b"x", rustix::fs::XattrFlags::empty()).unwrap();
    let copied = |to: &str, from: &str| {
        files::copy(
            &place.dir,
            &rel(from),
            &rel(to),
            Existing::Refuse,
            Parents::Require,
            CopyLimits::default(),
        )
        .unwrap();
    };
    copied("file", "d/tool");
    copied("tree", "d");
    let options = WriteOptions {
        mode: Some(0o6711),
        ..WriteOptions::default()
    };
    files::write(&place.dir, &rel("d/tool"), &mut b"new".as_slice(), &options).unwrap();
    for (path, mode) in [("file", 0o755), ("tree/tool", 0o755), ("d/tool", 0o711)] {
        let path = place.inside.join(path);
        let now = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(now & 0o7777, mode, "{path:?}");
        let names = rustix::fs::listxattr(&path, &mut [0u8; 0][..]);
        assert_eq!(names, Ok(0), "{path:?}");
    }
}

/// What the rows above would find if something did go out.
#[test]
fn the_canary_can_be_read_by_who_follows_links() {
    let place = place();
    place.link(place.outside.join("canary"), "absolute");
    let mut seen = Vec::new();
    let mut file = std::fs::File::open(place.inside.join("absolute")).unwrap();
    file.read_to_end(&mut seen).unwrap();
    assert_eq!(seen, CANARY);
}
