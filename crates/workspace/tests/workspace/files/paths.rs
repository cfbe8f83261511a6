//! The path corpus, row by row. F008 is here in its decoded form (decoding is the router's), and
//! F032 is policy's: this crate knows no protected names.

use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

use crate::files::place::{CANARY, Place, place, rel};
use glovebox_workspace::{Dir, Existing, FsErrorKind, Kind, PathError, RelPath};

impl Place {
    fn read_kind(&self, path: &str) -> FsErrorKind {
        self.read(path).expect_err(path).kind()
    }
}

fn refused(path: impl AsRef<[u8]>) -> PathError {
    RelPath::new(path).unwrap_err()
}

#[test]
fn f001_plain_traversal_is_refused() {
    assert_eq!(refused("../etc/passwd"), PathError::Escapes);
}

#[test]
fn f002_traversal_after_a_real_component_is_refused() {
    assert_eq!(refused("a/../../etc/passwd"), PathError::Escapes);
}

#[test]
fn f003_f004_absolute_paths_are_refused() {
    assert_eq!(refused("/etc/passwd"), PathError::Absolute);
    assert_eq!(refused("//etc/passwd"), PathError::Absolute);
}

#[test]
fn f005_dots_before_a_traversal_do_not_hide_it() {
    assert_eq!(refused("./././../x"), PathError::Escapes);
}

#[test]
fn f006_a_path_that_stays_inside_is_not_over_blocked() {
    let place = place();
    place.file("a/b/keep", b"");
    place.file("c.txt", b"c");
    assert_eq!(place.read("a/b/../../c.txt").unwrap(), b"c");
    // D4-11: two dots inside a name are a name.
    place.file("a..b", b"dots");
    assert_eq!(place.read("a..b").unwrap(), b"dots");
}

#[test]
fn the_kernel_and_not_the_text_decides_what_dot_dot_means() {
    let place = place();
    place.link(&place.outside, "a");
    // By its text this is `canary` in the directory itself; through the link it is the host's.
    assert_eq!(place.read_kind("a/../canary"), FsErrorKind::Escapes);
}

#[test]
fn f007_f012_percent_signs_and_backslashes_are_ordinary_bytes() {
    let place = place();
    assert_eq!(
        place.read_kind("..%2f..%2fetc%2fpasswd"),
        FsErrorKind::NotFound
    );
    assert_eq!(
        place.read_kind("..\\..\\etc\\passwd"),
        FsErrorKind::NotFound
    );
}

#[test]
fn f008_a_decoded_traversal_is_refused() {
    assert_eq!(refused("../../etc/passwd"), PathError::Escapes);
}

#[test]
fn f011_a_nul_is_the_callers_error() {
    let error = refused("a\0.txt").at(glovebox_model::Stage::Parse, b"a\0.txt");
    assert_eq!(error.code, glovebox_model::Code::InvalidArgument);
    assert_eq!(error.message, "path `a\\u{0}.txt` holds a NUL byte");
}

#[test]
fn f013_the_directory_itself_cannot_be_read() {
    assert_eq!(refused(""), PathError::Empty);
    assert_eq!(refused("."), PathError::Itself);
    assert_eq!(refused("/"), PathError::Absolute);
    let place = place();
    place.file("sub/x", b"");
    assert_eq!(place.read_kind("sub"), FsErrorKind::IsADirectory);
    assert_eq!(place.read_kind("sub/x/.."), FsErrorKind::NotADirectory);
}

#[test]
fn f015_names_and_paths_that_are_too_long_are_the_callers_error() {
    assert_eq!(refused("x".repeat(256)), PathError::NameTooLong);
    assert_eq!(refused("x/".repeat(2049)), PathError::PathTooLong);
    assert_eq!(refused("x/".repeat(5000)), PathError::PathTooLong);
    let place = place();
    assert_eq!(place.read_kind(&"x".repeat(255)), FsErrorKind::NotFound);
    assert_eq!(
        place.read_kind(&"y/".repeat(2047)),
        FsErrorKind::NotFound,
        "the longest path that is allowed reaches the kernel"
    );
}

#[test]
fn f017_two_spellings_of_one_letter_are_two_files() {
    let place = place();
    let (composed, decomposed) = ("\u{e9}", "e\u{301}");
    place.dir.write(&rel(composed), b"nfc", 0o644).unwrap();
    place.dir.write(&rel(decomposed), b"nfd", 0o644).unwrap();
    assert_eq!(place.read(composed).unwrap(), b"nfc");
    assert_eq!(place.read(decomposed).unwrap(), b"nfd");
    assert_eq!(place.dir.list(10).unwrap().entries.len(), 2);
}

#[test]
fn f018_f019_f020_f021_links_that_lead_out_are_not_followed() {
    let place = place();
    place.link(place.outside.join("canary"), "absolute");
    place.link("../outside/canary", "relative");
    place.link("../../../../../../../../etc/passwd", "far");
    place.link(&place.outside, "dirlink");
    place.link("l2", "l1");
    place.link("l3", "l2");
    place.link(place.outside.join("canary"), "l3");
    for path in ["absolute", "relative", "far", "dirlink/canary", "l1"] {
        assert_eq!(place.read_kind(path), FsErrorKind::Escapes, "{path}");
    }
    assert_eq!(
        place.dir.open_dir(&rel("dirlink")).unwrap_err().kind(),
        FsErrorKind::Escapes
    );
}

#[test]
fn f023_a_link_that_stays_inside_is_followed_when_reading() {
    let place = place();
    place.file("sub/file.txt", b"text");
    place.link("sub/file.txt", "in");
    place.link("../sub/file.txt", "sub/up");
    assert_eq!(place.read("in").unwrap(), b"text");
    assert_eq!(place.read("sub/up").unwrap(), b"text");
}

#[test]
fn f025_an_absolute_link_is_refused_wherever_it_points() {
    let place = place();
    place.file("file", b"text");
    place.link(place.inside.join("file"), "abs");
    place.link("/workspace/file", "guest");
    assert_eq!(place.read_kind("abs"), FsErrorKind::Escapes);
    assert_eq!(place.read_kind("guest"), FsErrorKind::Escapes);
}

#[test]
fn f026_magic_links_lead_nowhere() {
    let place = place();
    place.link("/proc/self/root/etc/passwd", "p");
    assert_eq!(place.read_kind("p"), FsErrorKind::Escapes);
    // From inside `/proc` itself there is no absolute link on the way, only the magic one.
    let proc = Dir::open_trusted("/proc/self".as_ref()).unwrap();
    for path in ["root/etc/passwd", "cwd", "exe", "fd/0"] {
        let kind = proc.read(&rel(path), 100).unwrap_err().kind();
        assert_eq!(kind, FsErrorKind::Loop, "{path}");
    }
}

#[test]
fn f029_writing_never_goes_through_a_link() {
    let place = place();
    place.file("sub/file", b"before");
    place.link(place.outside.join("canary"), "link");
    place.link("sub/file", "inner");
    for path in ["link", "inner"] {
        let error = place.dir.write(&rel(path), b"evil", 0o644).unwrap_err();
        assert_eq!(error.kind(), FsErrorKind::Symlink, "{path}");
    }
    assert_eq!(place.read("sub/file").unwrap(), b"before");
    place.assert_outside_untouched();
}

#[test]
fn f030_missing_parents_are_made_inside_or_not_at_all() {
    let place = place();
    assert_eq!(refused("newdir/../../x"), PathError::Escapes);
    place.link(&place.outside, "out");
    for path in ["out/made", "out/deep/made", "x/../out/made"] {
        let error = place.dir.mkdir_all(&rel(path), 0o755).unwrap_err();
        assert_eq!(error.kind(), FsErrorKind::Escapes, "{path}");
    }
    let made = place.dir.mkdir_all(&rel("n/../m/o"), 0o755).unwrap();
    assert_eq!(
        made.id().unwrap(),
        place.dir.open_dir(&rel("m/o")).unwrap().id().unwrap()
    );
    assert_eq!(
        place.dir.mkdir(&rel("m"), 0o755).unwrap_err().kind(),
        FsErrorKind::Exists
    );
    assert_eq!(
        place.dir.mkdir(&rel("m/o/.."), 0o755).unwrap_err().kind(),
        FsErrorKind::Path(PathError::NoName)
    );
    place.assert_outside_untouched();
}

#[test]
fn f031_a_dangling_link_is_not_created_through() {
    let place = place();
    place.link(place.outside.join("new"), "dangling");
    let written = place.dir.write(&rel("dangling"), b"x", 0o644).unwrap_err();
    assert_eq!(written.kind(), FsErrorKind::Symlink);
    let created = place.dir.create(&rel("dangling"), 0o644).unwrap_err();
    assert_eq!(created.kind(), FsErrorKind::Exists);
    let made = place.dir.mkdir(&rel("dangling"), 0o755).unwrap_err();
    assert_eq!(made.kind(), FsErrorKind::Exists);
    place.assert_outside_untouched();
}

#[test]
fn f034_a_directory_is_not_overwritten_by_a_file() {
    let place = place();
    place.file("sub/x", b"x");
    let error = place.dir.write(&rel("sub"), b"x", 0o644).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::IsADirectory);
    assert_eq!(place.dir.list(10).unwrap().entries.len(), 1, "no litter");
}

#[test]
fn f036_removing_a_link_leaves_its_target() {
    let place = place();
    place.link(&place.outside, "link");
    place.dir.remove_all(&rel("link")).unwrap();
    assert!(place.inside.join("link").symlink_metadata().is_err());
    place.file("tree/x", b"");
    place.link(&place.outside, "tree/link");
    place.dir.remove_all(&rel("tree")).unwrap();
    assert_eq!(place.dir.list(10).unwrap().entries, []);
    place.assert_outside_untouched();
}

#[test]
fn f037_the_root_and_what_is_above_cannot_be_removed() {
    let place = place();
    for path in [".", "..", "/", "a/..", "../inside", "./"] {
        assert!(RelPath::new(path).is_err(), "{path}");
    }
    place.file("a/b/c", b"");
    let error = place.dir.remove_all(&rel("a/b/..")).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::Path(PathError::NoName));
    place.link(&place.outside, "out");
    let error = place.dir.remove_all(&rel("out/canary")).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::Escapes);
    assert_eq!(
        place.dir.remove_file(&rel("a")).unwrap_err().kind(),
        FsErrorKind::IsADirectory
    );
    assert_eq!(
        place.dir.remove_all(&rel("gone")).unwrap_err().kind(),
        FsErrorKind::NotFound
    );
    place.assert_outside_untouched();
}

#[test]
fn f040_both_ends_of_a_rename_are_inside() {
    let place = place();
    assert_eq!(refused("../../x"), PathError::Escapes);
    place.file("a", b"a");
    place.file("b", b"b");
    place.link(&place.outside, "out");
    let rename = |from: &str, to: &str, existing| {
        let done = place.dir.rename(&rel(from), &rel(to), existing);
        done.map_err(|error| error.kind())
    };
    assert_eq!(
        rename("a", "out/a", Existing::Replace),
        Err(FsErrorKind::Escapes)
    );
    assert_eq!(
        rename("out/canary", "c", Existing::Replace),
        Err(FsErrorKind::Escapes)
    );
    assert_eq!(rename("a", "b", Existing::Refuse), Err(FsErrorKind::Exists));
    assert_eq!(rename("a", "b", Existing::Replace), Ok(()));
    assert_eq!(place.read("b").unwrap(), b"a");
    place.link(place.outside.join("canary"), "end");
    assert_eq!(rename("b", "end", Existing::Replace), Ok(()));
    assert_eq!(place.read("end").unwrap(), b"a", "the link is replaced");
    place.assert_outside_untouched();
}

#[test]
fn f042_a_listing_shows_links_as_links() {
    let place = place();
    place.file("b", b"12345");
    place.link("/", "root");
    place.link(place.outside.join("canary"), "a");
    let listing = place.dir.list(10).unwrap();
    let seen: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.name.display(), entry.stat.kind))
        .collect();
    let link = |name: &str| (name.to_owned(), Kind::Symlink);
    assert_eq!(seen, [link("a"), ("b".into(), Kind::File), link("root")]);
    assert_eq!(listing.entries[2].stat.size, 1, "the length of `/`");
    assert!(!listing.truncated);
    let short = place.dir.list(2).unwrap();
    assert!(short.truncated && short.entries.len() == 2);
}

#[test]
fn f044_looking_at_a_link_says_nothing_about_its_target() {
    let place = place();
    let target = place.outside.join("canary");
    let missing = place.outside.join("canarx");
    place.link(&target, "present");
    place.link(&missing, "missing");
    let look = |name: &str| {
        let stat = place.dir.lstat(&rel(name)).unwrap();
        (stat.kind, stat.size, stat.mode, stat.links)
    };
    assert_eq!(look("present"), look("missing"));
    assert_eq!(look("present").0, Kind::Symlink);
    assert_eq!(place.read_kind("present"), place.read_kind("missing"));
}

#[test]
fn f045_a_fifo_without_a_writer_does_not_block() {
    let place = place();
    rustix::fs::mkfifoat(&place.dir, "fifo", rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(place.read_kind("fifo"), FsErrorKind::NotRegular(Kind::Fifo));
    let error = place.dir.write(&rel("fifo"), b"x", 0o644).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::NotRegular(Kind::Fifo));
    let fifo = std::fs::symlink_metadata(place.inside.join("fifo")).unwrap();
    assert!(fifo.file_type().is_fifo(), "and it is still there");
}

#[test]
fn f046_only_regular_files_are_read() {
    let place = place();
    let _socket = std::os::unix::net::UnixListener::bind(place.inside.join("sock")).unwrap();
    assert_eq!(
        place.read_kind("sock"),
        FsErrorKind::NotRegular(Kind::Socket)
    );
    place.link("/dev/zero", "zero");
    assert_eq!(place.read_kind("zero"), FsErrorKind::Escapes);
    let dev = Dir::open_trusted("/dev".as_ref()).unwrap();
    let error = dev.read(&rel("zero"), 10).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::NotRegular(Kind::Device));
}

#[test]
fn f047_a_file_larger_than_the_cap_is_not_read() {
    let place = place();
    let sparse = std::fs::File::create(place.inside.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert_eq!(
        place.read_kind("sparse"),
        FsErrorKind::TooLarge { cap: 1 << 20 }
    );
    place.file("exact", &[7; 100]);
    assert_eq!(place.dir.read(&rel("exact"), 100).unwrap().len(), 100);
    let error = place.dir.read(&rel("exact"), 99).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::TooLarge { cap: 99 });
}

#[test]
fn f047_a_file_that_says_zero_and_goes_on_is_cut_while_reading() {
    // Files of `/proc` have the size 0 and contents all the same.
    let proc = Dir::open_trusted("/proc/self".as_ref()).unwrap();
    let error = proc.read(&rel("status"), 10).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::TooLarge { cap: 10 });
    assert!(proc.read(&rel("status"), 1 << 20).unwrap().len() > 10);
}

#[test]
fn f058_set_id_bits_and_attributes_are_not_carried_over() {
    let place = place();
    place.file("tool", b"old");
    let old = place.inside.join("tool");
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o6755)).unwrap();
    rustix::fs::setxattr(&old, "user.note", b"x", rustix::fs::XattrFlags::empty()).unwrap();
    assert_eq!(place.dir.lstat(&rel("tool")).unwrap().mode, 0o755);
    place.dir.write(&rel("tool"), b"new", 0o6750).unwrap();
    let mode = std::fs::metadata(&old).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    let names = rustix::fs::listxattr(&old, &mut [0u8; 0][..]);
    assert_eq!(names, Ok(0), "no attribute survived");
    drop(place.dir.create(&rel("fresh"), 0o4711).unwrap());
    let mode = std::fs::metadata(place.inside.join("fresh")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o7000, 0);
}

#[test]
fn f055_a_root_given_through_a_link_is_resolved_once() {
    let place = place();
    let link = place.inside.join("root");
    std::fs::create_dir(place.inside.join("real")).unwrap();
    symlink("real", &link).unwrap();
    let dir = Dir::open_trusted(&link).unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink(&place.outside, &link).unwrap();
    dir.write(&rel("file"), b"x", 0o644).unwrap();
    assert_eq!(place.read("real/file").unwrap(), b"x");
    place.assert_outside_untouched();
}

#[test]
fn a_write_replaces_a_file_whole_and_leaves_no_litter() {
    let place = place();
    place.dir.write(&rel("f"), b"one", 0o600).unwrap();
    let (open, _) = place.dir.open_file(&rel("f")).unwrap();
    place.dir.write(&rel("f"), b"two", 0o644).unwrap();
    assert_eq!(std::io::read_to_string(open).unwrap(), "one");
    assert_eq!(place.read("f").unwrap(), b"two");
    assert_eq!(place.dir.list(10).unwrap().entries.len(), 1);
    let missing = place.dir.write(&rel("no/f"), b"x", 0o644).unwrap_err();
    assert_eq!(missing.kind(), FsErrorKind::NotFound);
}

#[test]
fn the_canary_is_what_the_control_would_read() {
    let place = place();
    place.link(&place.outside, "dirlink");
    let naive = std::fs::read(place.inside.join("dirlink/canary")).unwrap();
    assert_eq!(naive, CANARY, "without beneath-resolution it does escape");
}
