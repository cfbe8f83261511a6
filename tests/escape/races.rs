//! The workspace's path is exchanged for another while sandboxes start. Whatever is shown inside
//! must be the directory that Glovebox was started in, or nothing.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use support::{Caller, Trial};

/// More on request: `GLOVEBOX_RACES=20000`.
fn rounds() -> u32 {
    let asked = std::env::var("GLOVEBOX_RACES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(60)
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// What stands in for the workspace's parent while it is away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoy {
    Link,
    Directory,
}

fn race(caller: Caller, decoy: Decoy) {
    let Some(trial) = Trial::new(caller) else {
        return;
    };
    let base = trial.work();
    let (own, other) = (base.join("own"), base.join("other"));
    for (parent, text) in [("own", "own"), ("foreign", "foreign")] {
        fs::create_dir_all(base.join(parent).join("ws")).unwrap();
        fs::write(base.join(parent).join("ws/marker"), text).unwrap();
        if let Some(account) = caller.account() {
            let ws = base.join(parent).join("ws");
            std::os::unix::fs::chown(&ws, Some(account.uid), Some(account.gid)).unwrap();
        }
    }
    match decoy {
        Decoy::Link => std::os::unix::fs::symlink(base.join("foreign"), &other).unwrap(),
        Decoy::Directory => fs::rename(base.join("foreign"), &other).unwrap(),
    }
    // A handle, so that the start itself is never in doubt.
    let real = fs::File::open(own.join("ws")).unwrap();
    let start = format!("/proc/{}/fd/{}", std::process::id(), real.as_raw_fd());

    let over = AtomicBool::new(false);
    let (mut ran, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                exchange(&own, &other);
                std::thread::yield_now();
            }
        });
        for _ in 0..rounds() {
            let run = trial
                .run(["/bin/sh", "-c", "cat marker; touch touched"])
                .in_directory(&start);
            let output = run.plain();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if text == "foreign" {
                over.store(true, Ordering::Relaxed);
            }
            assert_ne!(text, "foreign", "the sandbox shows another directory");
            match text.as_str() {
                "own" => ran += 1,
                _ => refused += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{ran} ran in their own directory, {refused} were refused");
    assert!(ran > 0, "nothing ran at all");
    drop(real);
    let foreign = ["own", "other", "foreign"].map(|it| base.join(it).join("ws"));
    for place in foreign {
        if fs::read_to_string(place.join("marker")).is_ok_and(|text| text == "foreign") {
            assert!(
                !place.join("touched").exists(),
                "the foreign directory was written"
            );
        }
    }
    trial.end();
}

#[test]
fn a_workspace_exchanged_with_a_link_is_never_another() {
    race(Caller::Root, Decoy::Link);
}

#[test]
fn a_workspace_exchanged_with_a_directory_is_never_another() {
    race(Caller::Root, Decoy::Directory);
}

#[test]
fn a_users_workspace_exchanged_with_a_link_is_never_another() {
    race(Caller::User, Decoy::Link);
}
