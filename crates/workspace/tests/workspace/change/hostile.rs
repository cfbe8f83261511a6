//! Upper directories that no kernel made, and workspaces that move under the hand.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::change::ground::{Ground, applied, told};

#[test]
fn nothing_but_files_directories_and_links_is_carried_over() {
    let ground = Ground::new();
    let held = ground.hold();
    held.begin().unwrap();
    let upper = ground.path("held/one/layer/upper");
    mknodat(CWD, upper.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(upper.join("socket")).unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        // Memory of the host: what a mode and a number can be.
        let memory = rustix::fs::makedev(1, 1);
        mknodat(
            CWD,
            upper.join("device"),
            FileType::CharacterDevice,
            Mode::RWXU,
            memory,
        )
        .unwrap();
        mknodat(
            CWD,
            upper.join("block"),
            FileType::BlockDevice,
            Mode::RWXU,
            0,
        )
        .unwrap();
    }
    std::fs::write(upper.join("suid"), "x").unwrap();
    std::fs::set_permissions(upper.join("suid"), PermissionsExt::from_mode(0o6755)).unwrap();
    std::fs::create_dir(upper.join("sgid")).unwrap();
    std::fs::set_permissions(upper.join("sgid"), PermissionsExt::from_mode(0o7777)).unwrap();
    symlink("/etc/passwd", upper.join("link")).unwrap();
    let changes = ground.changes(&held);
    assert_eq!(changes.skipped.len(), if root { 4 } else { 2 });
    applied(&ground.keep(&held));
    assert_eq!(ground.sh("ls"), "link\nsgid\nsuid\n");
    assert_eq!(
        ground.sh("stat -c %a suid sgid; readlink link"),
        "755\n777\n/etc/passwd\n"
    );
}

/// A mark that stands for nothing, over something and over nothing.
#[test]
fn marks_are_read_as_the_kernel_reads_them() {
    let ground = Ground::new();
    ground.sh("echo a > a; mkdir d; echo x > d/x");
    let held = ground.hold();
    held.begin().unwrap();
    let upper = ground.path("held/one/layer/upper");
    for name in ["a", "nothing"] {
        mknodat(
            CWD,
            upper.join(name),
            FileType::CharacterDevice,
            Mode::empty(),
            0,
        )
        .unwrap();
    }
    std::fs::create_dir(upper.join("d")).unwrap();
    let file = upper.join("d/x");
    std::fs::write(&file, "").unwrap();
    let none = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&file, "user.overlay.whiteout", b"y", none).unwrap();
    let paths: Vec<String> = told(&ground.changes(&held))
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(paths, ["a", "d/x"]);
    applied(&ground.keep(&held));
    assert_eq!(ground.sh("find . -mindepth 1"), "./d\n");
}

#[test]
fn a_tree_too_deep_to_be_named_is_refused_and_removed() {
    let ground = Ground::new();
    let held = ground.hold();
    let line = "n=$(printf 'x%.0s' $(seq 200)); for i in $(seq 30); do mkdir $n; cd $n; done";
    ground.layered(&held, line);
    let limits = glovebox_workspace::change::ReadLimits::default();
    assert!(held.changes(&ground.lower, limits).is_err());
    assert!(held.keep(&ground.lower, limits).is_err());
    assert_eq!(ground.list(), "");
    assert!(glovebox_workspace::change::Held::remove(&ground.shelf, "one").unwrap());
    assert!(ground.shelf.list(1).unwrap().entries.is_empty());
}

/// Somebody exchanges a directory for a link to the outside, again and again, while changes are
/// carried over. Whatever comes of it, nothing outside is touched.
#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let ground = Ground::new();
    ground.sh("mkdir -p d ../outside; echo x > d/x; echo theirs > ../outside/x");
    let theirs = ground.sh("ls -la --time-style=full-iso ../outside; cat ../outside/x");
    let stop = AtomicBool::new(false);
    let work = ground.path("work");
    symlink("../outside", ground.path("work/other")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (d, other) = (work.join("d"), work.join("other"));
            while !stop.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, &d, CWD, &other, flags).unwrap();
            }
        });
        let began = Instant::now();
        for round in 0..300 {
            // Each syncs what it does, which takes long on a busy disk.
            if round >= 30 && began.elapsed() > Duration::from_secs(60) {
                break;
            }
            let held = ground.hold();
            held.begin().unwrap();
            let upper = ground.path("held/one/layer/upper");
            std::fs::create_dir(upper.join("d")).unwrap();
            std::fs::write(upper.join("d/x"), format!("ours {round}\n")).unwrap();
            std::fs::write(upper.join(format!("d/new-{round}")), "ours\n").unwrap();
            let limits = glovebox_workspace::change::ReadLimits::default();
            // Refused, carried over or failed: each is an answer.
            let _ = held.keep(&ground.lower, limits);
            glovebox_workspace::change::Held::remove(&ground.shelf, "one").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let now = ground.sh("ls -la --time-style=full-iso ../outside; cat ../outside/x");
    assert_eq!(now, theirs);
}
