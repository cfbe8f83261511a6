//! Making, moving, copying.

use std::os::unix::fs::PermissionsExt;

use glovebox_model::Code;
use glovebox_workspace::Existing;
use glovebox_workspace::files::{self, Bound, Copied, CopyLimits, FileError, FileResult, Parents};

use crate::files::place::{Place, place, rel};

fn copy(place: &Place, from: &str, to: &str, existing: Existing) -> FileResult<Copied> {
    let limits = CopyLimits::default();
    files::copy(
        &place.dir,
        &rel(from),
        &rel(to),
        existing,
        Parents::Require,
        limits,
    )
}

fn rename(place: &Place, from: &str, to: &str, existing: Existing) -> FileResult<()> {
    files::rename(&place.dir, &rel(from), &rel(to), existing, Parents::Require)
}

#[test]
fn directories_are_made_with_their_parents() {
    let place = place();
    let missing = files::mkdir(&place.dir, &rel("a/b"), Parents::Require).unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    files::mkdir(&place.dir, &rel("a/b"), Parents::Make).unwrap();
    files::mkdir(&place.dir, &rel("a/b"), Parents::Make).unwrap();
    let exists = files::mkdir(&place.dir, &rel("a/b"), Parents::Require).unwrap_err();
    assert_eq!(exists.code(), Code::Conflict);
    place.file("f", b"");
    for path in ["f", "f/g"] {
        let refused = files::mkdir(&place.dir, &rel(path), Parents::Make).unwrap_err();
        assert_eq!(refused.code(), Code::Conflict, "{path}");
    }
}

#[test]
fn moves_replace_or_refuse() {
    let place = place();
    place.file("a", b"a");
    place.file("b", b"b");
    place.file("d/x", b"");
    place.file("e/y", b"");
    let refused = rename(&place, "a", "b", Existing::Refuse).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    rename(&place, "a", "b", Existing::Replace).unwrap();
    assert_eq!(place.read("b").unwrap(), b"a");
    let full = rename(&place, "d", "e", Existing::Replace).unwrap_err();
    assert_eq!(full.code(), Code::Conflict);
    let inside = rename(&place, "d", "d/z", Existing::Replace).unwrap_err();
    assert_eq!(inside, FileError::IntoItself { path: "d".into() });
    let gone = files::rename(
        &place.dir,
        &rel("gone"),
        &rel("new/place"),
        Existing::Replace,
        Parents::Make,
    );
    assert_eq!(gone.unwrap_err().code(), Code::NotFound);
    assert!(
        !place.inside.join("new").exists(),
        "nothing was made for it"
    );
}

#[test]
fn a_tree_is_copied_as_it_is() {
    let place = place();
    place.file("t/a/f", b"text");
    place.file("t/a/tool", b"#!");
    place.link(&place.outside, "t/out");
    place.link("a/f", "t/in");
    let set = |path: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.inside.join(path), mode).unwrap();
    };
    set("t/a/tool", 0o755);
    set("t/a", 0o555);
    let copied = copy(&place, "t", "copy", Existing::Refuse).unwrap();
    let expected = Copied {
        files: 2,
        directories: 2,
        links: 2,
        bytes: 6,
        skipped: 0,
    };
    assert_eq!(copied, expected);
    assert_eq!(place.read("copy/a/f").unwrap(), b"text");
    let mode = |path: &str| {
        let meta = std::fs::symlink_metadata(place.inside.join(path)).unwrap();
        meta.permissions().mode() & 0o7777
    };
    assert_eq!(mode("copy/a/tool"), 0o755);
    assert_eq!(mode("copy/a"), 0o755, "and its owner may remove it");
    let link = std::fs::read_link(place.inside.join("copy/out")).unwrap();
    assert_eq!(link, place.outside);
    place.assert_outside_untouched();
}

#[test]
fn copies_replace_or_refuse_and_leave_nothing_half_done() {
    let place = place();
    place.file("t/1", b"1");
    place.file("t/2", b"2");
    place.file("f", b"old");
    let refused = copy(&place, "t/1", "f", Existing::Refuse).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    copy(&place, "t/1", "f", Existing::Replace).unwrap();
    assert_eq!(place.read("f").unwrap(), b"1");
    assert!(copy(&place, "t", "f", Existing::Replace).is_err());
    let inside = copy(&place, "t", "t/deeper", Existing::Refuse).unwrap_err();
    assert_eq!(inside, FileError::IntoItself { path: "t".into() });
    for (limits, bound) in [
        (
            CopyLimits {
                entries: 1,
                ..CopyLimits::default()
            },
            Bound::Entries(1),
        ),
        (
            CopyLimits {
                bytes: 1,
                ..CopyLimits::default()
            },
            Bound::Bytes(1),
        ),
    ] {
        let (from, to) = (rel("t"), rel("new"));
        let (refuse, require) = (Existing::Refuse, Parents::Require);
        let cut = files::copy(&place.dir, &from, &to, refuse, require, limits);
        assert_eq!(cut.unwrap_err(), FileError::Limit(bound));
    }
    let left: Vec<_> = place.dir.list(100).unwrap().entries;
    let left: Vec<_> = left.iter().map(|entry| entry.name.display()).collect();
    assert_eq!(left, ["f", "t"]);
    assert_eq!(
        std::fs::read_dir(place.inside.join("t")).unwrap().count(),
        2
    );
}
