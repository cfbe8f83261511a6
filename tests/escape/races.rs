//! The workspace's path is exchanged for another while sandboxes start. Whatever is shown inside
//! must be the directory that Glovebox was started in, or nothing.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use support::{Caller, Trial};

/// More on request: `GLOVEBOX_TEST_RACES=20000`. Without one not all of them have the time on a disk
/// that is busy elsewhere.
fn rounds() -> impl Iterator<Item = u32> {
    let asked = std::env::var("GLOVEBOX_TEST_RACES").ok();
    let asked: Option<u32> = asked.and_then(|text| text.parse().ok());
    let since = Instant::now();
    (0..asked.unwrap_or(60)).take_while(move |_| asked.is_some() || since.elapsed() < LONG)
}

/// Many times as long as they take.
const LONG: Duration = Duration::from_secs(90);

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// What stands in for the workspace's parent while it is away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoy {
    Link,
    Directory,
}

fn marker(place: &Path) -> String {
    fs::read_to_string(place.join("marker")).unwrap_or_default()
}

/// Ends the other thread, also when a check fails.
struct SetWhenDropped<'flag>(&'flag AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
    let over = AtomicBool::new(false);
    // The start itself is never in doubt: nobody exchanges anything while a process is started.
    let still = Mutex::new(());
    let (mut ran, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let _over = SetWhenDropped(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _still = still.lock();
                exchange(&own, &other);
            }
        });
        for _ in rounds() {
            let child = {
                let _still = still.lock();
                let places = [own.join("ws"), other.join("ws")];
                let real = places
                    .into_iter()
                    .find(|place| marker(place) == "own")
                    .unwrap();
                let run = trial.run(["/bin/sh", "-c", "cat marker; touch touched"]);
                run.in_directory(real.canonicalize().unwrap()).spawn()
            };
            let output = child.wait_with_output().unwrap();
            match String::from_utf8_lossy(&output.stdout).as_ref() {
                "own" => ran += 1,
                "foreign" => panic!("the sandbox shows another directory"),
                _ => refused += 1,
            }
        }
    });
    println!("{ran} ran in their own directory, {refused} were refused");
    assert!(ran > 0, "nothing ran at all");
    let foreign = ["own", "other", "foreign"].map(|it| base.join(it).join("ws"));
    for place in foreign {
        if marker(&place) == "foreign" {
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
