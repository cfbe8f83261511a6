//! Differences between any two sides.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use glovebox_snapshot::{Change, ChangedEntry, Diff, DiffLimits, Side, Text};

use crate::ground::{Ground, dir, noise};

fn base(ground: &Ground) {
    ground.write("text", "one\ntwo\nthree\n");
    ground.write("binary", noise(1, 1000));
    ground.write("mode", "m");
    ground.write("goes", "bye\n");
    ground.write("becomes/a/dir", "x");
    ground.write("same", "s");
    symlink("same", ground.path("link")).unwrap();
    ground.write("first", "f");
    ground.write("second", "f");
}

fn change(ground: &Ground) {
    ground.write("text", "one\nTWO\nthree\n");
    ground.write("binary", noise(2, 1000));
    fs::set_permissions(ground.path("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(ground.path("text"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(ground.path("goes")).unwrap();
    fs::remove_dir_all(ground.path("becomes")).unwrap();
    ground.write("becomes", "a file");
    fs::remove_file(ground.path("link")).unwrap();
    symlink("text", ground.path("link")).unwrap();
    ground.write("comes", "hello");
    fs::remove_file(ground.path("second")).unwrap();
    fs::hard_link(ground.path("first"), ground.path("second")).unwrap();
}

fn summary(diff: &Diff) -> Vec<(String, Change)> {
    let each = |it: &ChangedEntry| (it.path.display(), it.change);
    diff.changes.iter().map(each).collect()
}

fn find<'d>(diff: &'d Diff, path: &str) -> &'d ChangedEntry {
    let found = diff.changes.iter().find(|it| it.path.display() == path);
    found.unwrap_or_else(|| panic!("{path} is not in {diff:?}"))
}

#[test]
fn the_same_changes_are_seen_whichever_sides_are_compared() {
    let ground = Ground::new();
    base(&ground);
    let old = ground.take().snapshot.id;
    let copy = ground.space.join("copy");
    fs::create_dir(&copy).unwrap();
    ground.restore_to(&old, &copy).unwrap();
    change(&ground);
    let new = ground.take().snapshot.id;
    let (copy, work) = (dir(&copy), dir(&ground.work));
    let snapshots = ground.snapshots();
    let compare = |before: Side<'_>, after: Side<'_>| {
        let limits = DiffLimits::default();
        snapshots.diff(before, after, limits, &mut ()).unwrap()
    };
    let sides = [
        (Side::Snapshot(&old), Side::Snapshot(&new)),
        (Side::Snapshot(&old), Side::Live(&work)),
        (Side::Live(&copy), Side::Snapshot(&new)),
        (Side::Live(&copy), Side::Live(&work)),
    ];
    let wanted: Vec<(String, Change)> = [
        ("becomes", Change::Type),
        ("becomes/a", Change::Removed),
        ("becomes/a/dir", Change::Removed),
        ("binary", Change::Modified),
        ("comes", Change::Added),
        ("goes", Change::Removed),
        ("link", Change::Link),
        ("mode", Change::Mode),
        ("second", Change::Link),
        ("text", Change::Modified),
    ]
    .map(|(path, change)| (path.to_owned(), change))
    .into();
    for (before, after) in sides {
        let diff = compare(before, after);
        assert_eq!(summary(&diff), wanted, "{before:?} and {after:?}");
        assert_eq!((diff.added, diff.removed, diff.changed), (1, 3, 6));
        let text = find(&diff, "text");
        assert_eq!(
            (text.mode_before, text.mode_after),
            (Some(0o644), Some(0o755))
        );
        let Text::Hunks { unified, .. } = &text.text else {
            panic!("{text:?}");
        };
        assert_eq!(unified, "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n");
        assert_eq!(find(&diff, "binary").text, Text::Binary);
        let Text::Hunks { unified, .. } = &find(&diff, "goes").text else {
            panic!("no hunks");
        };
        assert_eq!(unified, "@@ -1,1 +0,0 @@\n-bye\n");
    }
    for side in [Side::Snapshot(&new), Side::Live(&work)] {
        let nothing = compare(Side::Snapshot(&new), side);
        assert_eq!(nothing, Diff::default());
    }
}

#[test]
fn a_diff_is_bounded_in_changes_and_in_text() {
    let ground = Ground::new();
    ground.write("large", "a\n".repeat(1000));
    let old = ground.take().snapshot.id;
    ground.write("large", "b\n".repeat(1000));
    for number in 0..50 {
        ground.write(format!("new{number:02}"), "line\n".repeat(20));
    }
    let work = dir(&ground.work);
    let limits = DiffLimits {
        changes: 10,
        file_bytes: 1500,
        text_bytes: 250,
    };
    let sides = (Side::Snapshot(&old), Side::Live(&work));
    let diff = ground
        .snapshots()
        .diff(sides.0, sides.1, limits, &mut ())
        .unwrap();
    assert_eq!((diff.changes.len(), diff.truncated), (10, true));
    assert_eq!((diff.added, diff.changed), (50, 1));
    assert_eq!(find(&diff, "large").text, Text::TooLarge);
    let length = |it: &ChangedEntry| match &it.text {
        Text::Hunks { unified, .. } => unified.len(),
        _ => 0,
    };
    assert!(diff.changes.iter().map(length).sum::<usize>() <= 250);
}

#[test]
fn zeros_and_a_hole_are_the_same_bytes() {
    let ground = Ground::new();
    ground.write("zeros", vec![0u8; 1 << 20]);
    let old = ground.take().snapshot.id;
    fs::remove_file(ground.path("zeros")).unwrap();
    let file = fs::File::create(ground.path("zeros")).unwrap();
    file.set_len(1 << 20).unwrap();
    let new = ground.take().snapshot.id;
    let diff = ground.snapshots().diff(
        Side::Snapshot(&old),
        Side::Snapshot(&new),
        DiffLimits::default(),
        &mut (),
    );
    assert_eq!(diff.unwrap(), Diff::default());
}
