//! Odd trees come back byte for byte.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use glovebox_model::Code;
use glovebox_snapshot::TakeLimits;

use crate::ground::{Ground, look, make_fifo, noise, set_modified, set_xattr};

/// Everything that a file system has that most programs forget.
pub(crate) fn odd_tree(ground: &Ground) {
    ground.write("plain.txt", "hello\n");
    ground.write("empty", "");
    ground.write("dir/below/deeper/file", "x");
    fs::create_dir(ground.path("nothing inside")).unwrap();
    ground.write(b"line\nbreak\ttab", "a");
    ground.write(b"invalid \xff\xfe utf8", "b");
    ground.write("x".repeat(255), "c");
    ground.write("-rf", "d");
    ground.write("a-b", "sorts before a/");
    ground.write("a/b", "sorts after a-b");
    ground.write("noise", noise(1, 3_000_000));
    ground.write("repeated", "abcdefgh".repeat(200_000));
    symlink("/etc/passwd", ground.path("absolute")).unwrap();
    symlink("../../../..", ground.path("climbing")).unwrap();
    symlink("loop", ground.path("loop")).unwrap();
    symlink("missing", ground.path("dangling")).unwrap();
    make_fifo(&ground.path("pipe"));
    fs::hard_link(ground.path("plain.txt"), ground.path("dir/second name")).unwrap();
    fs::hard_link(ground.path("plain.txt"), ground.path("a/third name")).unwrap();
    set_xattr(&ground.path("plain.txt"), "user.note", b"any\0bytes\xff");
    set_xattr(&ground.path("dir"), "user.of.a.directory", b"");
    fs::set_permissions(ground.path("empty"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(ground.path("dir/below"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(ground.path("a"), fs::Permissions::from_mode(0o1777)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(ground.path("noise"), Some(1234), Some(5678)).unwrap();
        std::os::unix::fs::lchown(ground.path("loop"), Some(1234), Some(5678)).unwrap();
    }
    set_modified(&ground.path("repeated"), 1, 999_999_999);
    set_modified(&ground.path("loop"), 1_000_000_000, 1);
    set_modified(&ground.path("empty"), -5, 0);
    let mut deep = "deep".to_owned();
    for _ in 0..200 {
        deep.push_str("/in");
    }
    ground.write(&deep, "bottom");
}

#[test]
fn an_odd_tree_comes_back_into_an_empty_directory() {
    let ground = Ground::new();
    odd_tree(&ground);
    let before = look(&ground.work);
    let taken = ground.take();
    let fork = ground.space.join("fork");
    fs::create_dir(&fork).unwrap();
    let restored = ground.restore_to(&taken.snapshot.id, &fork).unwrap();
    assert_eq!(look(&fork), before);
    assert_eq!(look(&ground.work), before, "the source was touched");
    let counts = taken.snapshot.counts;
    assert_eq!(counts.hard_links, 2);
    assert_eq!(counts.fifos, 1);
    assert_eq!(counts.symlinks, 4);
    assert_eq!(restored.files_written, counts.files);
    // The same restore again finds nothing to do.
    let again = ground.restore_to(&taken.snapshot.id, &fork).unwrap();
    assert_eq!(again, Default::default());
}

#[test]
fn a_changed_tree_becomes_what_it_was_and_only_the_changes_are_written() {
    let ground = Ground::new();
    odd_tree(&ground);
    ground.settle();
    let before = look(&ground.work);
    let taken = ground.take();
    ground.write("a/b", "other");
    ground.write("new/tree/of files", "x");
    fs::remove_file(ground.path("pipe")).unwrap();
    fs::remove_dir_all(ground.path("deep/in")).unwrap();
    fs::remove_file(ground.path("a/third name")).unwrap();
    fs::set_permissions(ground.path("noise"), fs::Permissions::from_mode(0o600)).unwrap();
    let restored = ground.restore(&taken.snapshot.id);
    assert_eq!(look(&ground.work), before);
    // `a/b`, the one at the bottom, and the file that had lost a name.
    assert_eq!(restored.files_written, 3);
    assert_eq!(restored.removed, 1);
}

#[test]
fn names_that_were_joined_or_parted_are_put_right() {
    let ground = Ground::new();
    ground.write("a", "same");
    ground.write("b", "same");
    ground.write("c", "linked");
    fs::hard_link(ground.path("c"), ground.path("d")).unwrap();
    let before = look(&ground.work);
    let taken = ground.take();
    fs::remove_file(ground.path("b")).unwrap();
    fs::hard_link(ground.path("a"), ground.path("b")).unwrap();
    fs::remove_file(ground.path("d")).unwrap();
    ground.write("d", "linked");
    ground.restore(&taken.snapshot.id);
    assert_eq!(look(&ground.work), before);
}

#[test]
fn holes_stay_holes_however_large_they_are() {
    use std::os::unix::fs::FileExt;
    let ground = Ground::new();
    let size: u64 = 1 << 40;
    let make = |name: &str| fs::File::create(ground.path(name)).unwrap();
    let sparse = make("sparse");
    sparse.set_len(size).unwrap();
    for at in [1 << 20, 1 << 35] {
        sparse.write_all_at(&noise(at, 70_000), at).unwrap();
    }
    make("all hole").set_len(1 << 30).unwrap();
    let tail = make("data at the end");
    tail.write_all_at(b"end", (1 << 30) - 3).unwrap();
    let before = look(&ground.work);
    let taken = ground.take();
    assert!(
        taken.bytes_read < 1 << 20,
        "{} bytes read",
        taken.bytes_read
    );
    let fork = ground.space.join("fork");
    fs::create_dir(&fork).unwrap();
    ground.restore_to(&taken.snapshot.id, &fork).unwrap();
    assert_eq!(look(&fork), before);
    let copy = fs::File::open(fork.join("sparse")).unwrap();
    assert!(copy.metadata().unwrap().blocks() * 512 < 1 << 20);
    for at in [1u64 << 20, 1 << 35] {
        let mut bytes = vec![0u8; 70_000];
        copy.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes, noise(at, 70_000));
    }
    // Data where a hole should be is noticed although the size is the same.
    let changed = fs::File::options()
        .write(true)
        .open(ground.path("all hole"))
        .unwrap();
    changed.write_all_at(b"!", 12_345_678).unwrap();
    let restored = ground.restore(&taken.snapshot.id);
    assert_eq!(restored.files_written, 1);
    let zeros = fs::metadata(ground.path("all hole")).unwrap();
    assert_eq!(zeros.blocks(), 0);
}

#[test]
fn set_id_bits_sockets_and_foreign_attributes_are_left_out_and_counted() {
    let ground = Ground::new();
    ground.write("tool", "#!");
    fs::set_permissions(ground.path("tool"), fs::Permissions::from_mode(0o6755)).unwrap();
    let listener = UnixListener::bind(ground.path("socket")).unwrap();
    for number in 0..70 {
        let name = format!("user.{number}");
        ground.write("noted", "n");
        set_xattr(&ground.path("noted"), &name, b"v");
    }
    let taken = ground.take();
    let counts = taken.snapshot.counts;
    assert_eq!(counts.set_id_dropped, 1);
    assert_eq!(counts.sockets_skipped, 1);
    assert_eq!(counts.xattrs_dropped, 6);
    drop(listener);
    let restored = ground.restore(&taken.snapshot.id);
    // The socket is no part of the snapshot, and the bits are gone.
    assert_eq!(restored.removed, 1);
    let tool = fs::metadata(ground.path("tool")).unwrap();
    assert_eq!(tool.mode() & 0o7777, 0o755);
}

#[test]
fn a_tree_beyond_a_bound_is_refused_with_its_name_and_leaves_nothing() {
    let ground = Ground::new();
    for number in 0..20 {
        ground.write(format!("d/e/f/{number}"), "x");
    }
    let tight = [
        TakeLimits {
            entries: 10,
            ..TakeLimits::default()
        },
        TakeLimits {
            depth: 2,
            ..TakeLimits::default()
        },
        TakeLimits {
            data_bytes: 10,
            ..TakeLimits::default()
        },
    ];
    for limits in tight {
        let error = ground.try_take(limits).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge, "{limits:?}: {error}");
        assert!(!error.hints.is_empty());
        assert!(ground.files_in("packs").is_empty());
        assert!(ground.files_in("records").is_empty());
    }
}

#[test]
fn a_quota_is_held_before_anything_is_kept() {
    let ground = Ground::new();
    ground.write("noise", noise(1, 2_000_000));
    let limit = |stored_bytes| TakeLimits {
        stored_bytes: Some(stored_bytes),
        ..TakeLimits::default()
    };
    let error = ground.try_take(limit(1_000_000)).unwrap_err();
    assert_eq!(error.code, Code::DiskFull);
    assert!(ground.files_in("packs").is_empty() && ground.files_in("records").is_empty());
    let taken = ground.try_take(limit(2_100_000)).unwrap();
    let stored = ground.snapshots().stored_bytes().unwrap();
    assert_eq!(stored, taken.stored_bytes);
    // What is there already counts.
    ground.write("more", noise(2, 200_000));
    let error = ground.try_take(limit(2_100_000)).unwrap_err();
    assert_eq!(error.code, Code::DiskFull);
    assert_eq!(ground.snapshots().stored_bytes().unwrap(), stored);
}

#[test]
fn whoever_watches_can_stop_it() {
    use glovebox_snapshot::Take;
    use std::ops::ControlFlow;
    let ground = Ground::new();
    ground.write("noise", noise(1, 2_000_000));
    let mut told = 0;
    let mut watch = |_| {
        told += 1;
        ControlFlow::Break(())
    };
    let take = Take::new(crate::ground::project(), &mut watch);
    let stopped = ground
        .snapshots()
        .take(&crate::ground::dir(&ground.work), take);
    assert_eq!(stopped.unwrap_err().code, Code::Canceled);
    assert_eq!(told, 1);
    assert!(ground.files_in("packs").is_empty());
}
