//! F039 and R15: trees made to be hard to remove, walk and measure.

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::files::place::{Place, place, place_in_memory, rel};
use glovebox_workspace::{
    Dir, DiskUsage, FileTime, RelPath, Skip, UsageLimits, Visit, WalkEnd, WalkLimits,
};
use rustix::fs::{Mode, OFlags, mkdirat, openat};

const PLENTY: UsageLimits = UsageLimits {
    entries: 10_000_000,
    time: Duration::from_secs(600),
};

fn wide_open() -> WalkLimits {
    WalkLimits {
        depth: usize::MAX,
        path_bytes: usize::MAX,
        entries: u64::MAX,
        deadline: None,
    }
}

/// A chain `d/d/d/…`, with a file and a second directory on each level.
fn comb(place: &Place, name: &str, depth: usize) {
    mkdirat(&place.dir, name, Mode::RWXU).unwrap();
    let open = |dir: &dyn std::os::fd::AsFd, name: &str| {
        openat(
            dir.as_fd(),
            name,
            OFlags::RDONLY | OFlags::DIRECTORY,
            Mode::empty(),
        )
        .unwrap()
    };
    let mut at = open(&place.dir, name);
    for _ in 1..depth {
        mkdirat(&at, "side", Mode::RWXU).unwrap();
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = open(&at, "d");
    }
}

fn removed(place: &Place, name: &str) -> Duration {
    let start = Instant::now();
    place.dir.remove_all(&rel(name)).unwrap();
    assert_eq!(place.dir.list(10).unwrap().entries, []);
    start.elapsed()
}

#[test]
fn f039_a_tree_of_depth_5000_is_removed() {
    let place = place_in_memory();
    comb(&place, "deep", 5000);
    removed(&place, "deep");
}

#[test]
fn f039_a_directory_of_100000_entries_is_removed() {
    let place = place_in_memory();
    let wide = place.dir.mkdir_all(&rel("wide"), 0o755).unwrap();
    for n in 0..100_000 {
        let name = RelPath::new(format!("f{n}")).unwrap();
        drop(wide.create(&name, 0o644).unwrap());
    }
    removed(&place, "wide");
}

#[test]
fn f039_odd_names_are_removed() {
    let place = place();
    for name in ["-rf", "...", "*", "~", "a\nb", ".glovebox-0-1", "\u{202e}x"] {
        place.file(&format!("odd/{name}/{name}"), b"");
    }
    removed(&place, "odd");
}

/// Modes say nothing to root, so the removal runs as somebody else.
fn as_nobody<T: Send>(place: &Place, run: impl FnOnce(&Dir) -> T + Send) -> T {
    let nobody = rustix::process::Uid::from_raw(65534);
    let root = rustix::process::geteuid().is_root();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if root {
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            run(&place.dir)
        });
        thread.join().unwrap()
    })
}

fn give_to_nobody(path: &std::path::Path) {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(65534), None).unwrap();
    }
}

#[test]
fn f039_directories_without_permissions_are_removed_by_their_owner() {
    let place = place();
    place.file("t/none/deep/x", b"");
    place.file("t/read/deep/x", b"");
    place.file("t/write/deep/locked/x", b"");
    let paths = [
        "",
        "t",
        "t/none",
        "t/none/deep",
        "t/none/deep/x",
        "t/read",
        "t/read/deep",
        "t/read/deep/x",
        "t/write",
        "t/write/deep",
        "t/write/deep/locked",
        "t/write/deep/locked/x",
    ];
    for path in paths {
        give_to_nobody(&place.inside.join(path));
    }
    // The way to it must be open for somebody else.
    let above = place.inside.parent().unwrap();
    std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (path, mode) in [
        ("t/none/deep", 0),
        ("t/none", 0),
        ("t/read/deep", 0o500),
        ("t/read", 0o400),
        ("t/write/deep/locked", 0),
        ("t/write/deep", 0o200),
        ("t/write", 0o300),
        ("t", 0o500),
    ] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.inside.join(path), mode).unwrap();
    }
    as_nobody(&place, |dir| dir.remove_all(&rel("t"))).unwrap();
    assert_eq!(place.dir.list(10).unwrap().entries, []);
}

#[test]
fn clearing_keeps_the_directory_itself() {
    let place = place();
    place.file("a/b/c", b"");
    place.file("x", b"");
    place.link(&place.outside, "out");
    let id = place.dir.id().unwrap();
    place.dir.clear().unwrap();
    assert_eq!(place.dir.list(10).unwrap().entries, []);
    assert_eq!(Dir::open_trusted(&place.inside).unwrap().id().unwrap(), id);
    place.assert_outside_untouched();
}

#[test]
fn r15_walking_a_deep_tree_is_cut_where_asked_and_sees_all_otherwise() {
    let place = place_in_memory();
    comb(&place, "deep", 3000);
    let walk = |limits: WalkLimits| {
        let (mut entries, mut skipped) = (0u64, Vec::new());
        let end = place.dir.walk(limits, |visit| {
            match visit {
                Visit::Entry(_) => entries += 1,
                Visit::Skipped { why, .. } => skipped.push(why),
            }
            ControlFlow::Continue(())
        });
        (end.unwrap(), entries, skipped)
    };
    let all = 1 + 2 * 2999;
    assert_eq!(walk(wide_open()), (WalkEnd::Complete, all, vec![]));
    let shallow = WalkLimits {
        depth: 10,
        ..wide_open()
    };
    let (end, entries, skipped) = walk(shallow);
    assert_eq!((end, entries), (WalkEnd::Complete, 1 + 2 * 10));
    assert_eq!(skipped, [Skip::TooDeep, Skip::TooDeep]);
    let short = WalkLimits {
        path_bytes: 4095,
        ..wide_open()
    };
    assert!(walk(short).2.contains(&Skip::TooDeep));
    let usage = place.dir.usage(PLENTY).unwrap();
    assert!(usage.complete && usage.inodes == all);
    removed(&place, "deep");
}

#[test]
fn a_walk_goes_by_name_and_follows_nothing() {
    let place = place();
    place.file("b/2", b"");
    place.file("b/1", b"");
    place.file("a", b"");
    place.file("c/d/3", b"");
    place.link(&place.outside, "b/out");
    place.link("..", "b/up");
    let mut seen = Vec::new();
    let end = place.dir.walk(wide_open(), |visit| {
        if let Visit::Entry(entry) = visit {
            seen.push(String::from_utf8(entry.path.to_vec()).unwrap());
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), WalkEnd::Complete);
    let order = ["a", "b", "c", "b/1", "b/2", "b/out", "b/up", "c/d", "c/d/3"];
    assert_eq!(seen, order);
}

#[test]
fn a_walk_stops_at_its_limits() {
    let place = place();
    for n in 0..20 {
        place.file(&format!("many/{n}"), b"");
    }
    place.file("few/1", b"");
    let mut skipped = Vec::new();
    let limits = WalkLimits {
        entries: 10,
        ..wide_open()
    };
    let end = place.dir.walk(limits, |visit| {
        if let Visit::Skipped { entry, why } = visit {
            skipped.push((entry.path.to_vec(), why));
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), WalkEnd::Complete);
    assert_eq!(skipped, [(b"many".to_vec(), Skip::TooManyEntries)]);
    let late = WalkLimits {
        deadline: Some(Instant::now()),
        ..wide_open()
    };
    let end = place.dir.walk(late, |_| ControlFlow::Continue(()));
    assert_eq!(end.unwrap(), WalkEnd::Deadline);
    let end = place.dir.walk(wide_open(), |_| ControlFlow::Break(()));
    assert_eq!(end.unwrap(), WalkEnd::Stopped);
}

#[test]
fn usage_counts_what_lies_on_disk_once() {
    let place = place();
    place.file("one", &[1; 10_000]);
    let before = place.dir.usage(PLENTY).unwrap();
    assert!(before.complete && before.inodes == 1 && before.bytes >= 10_000);
    std::fs::hard_link(place.inside.join("one"), place.inside.join("two")).unwrap();
    let sparse = std::fs::File::create(place.inside.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    place.link(&place.outside, "out");
    let after = place.dir.usage(PLENTY).unwrap();
    assert_eq!(after.inodes, 3);
    assert!(after.bytes < before.bytes + 100_000, "{after:?}");
    let cut = UsageLimits {
        entries: 2,
        ..PLENTY
    };
    assert!(!place.dir.usage(cut).unwrap().complete);
}

#[test]
fn usage_since_a_moment_counts_only_what_came_after_it() {
    let place = place();
    place.file("old/file", &[1; 50_000]);
    place.file("old/kept", &[1; 50_000]);
    // The file system's clock has to pass the stamps before "after" means anything.
    let stamp = |path: &str| place.dir.lstat(&rel(path)).unwrap().changed;
    let made = stamp("old/file").max(stamp("old/kept")).max(stamp("old"));
    while FileTime::now() <= made {
        std::thread::yield_now();
    }
    let start = FileTime::now();
    let nothing = place.dir.usage_since(start, PLENTY).unwrap();
    let none = DiskUsage {
        complete: true,
        ..DiskUsage::default()
    };
    assert_eq!(nothing, none);
    place.file("old/new", &[1; 20_000]);
    place.file("made/new", b"");
    std::fs::write(place.inside.join("old/file"), [2; 30_000]).unwrap();
    let since = place.dir.usage_since(start, PLENTY).unwrap();
    assert_eq!(
        since.inodes, 4,
        "two new files, a directory, a changed file"
    );
    assert!(since.bytes >= 50_000 && since.bytes < 100_000, "{since:?}");
}
