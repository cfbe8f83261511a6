//! How long artifacts stay, and that a removal which is killed leaves whole ones or none.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use glovebox_model::{ExecId, ProjectId, Stream};
use glovebox_workspace::{Dir, FileTime, Layout, Retention, Shelved};

const FILES: usize = 20;

struct Ground {
    _tmp: tempfile::TempDir,
    base: PathBuf,
    layout: Layout,
}

impl Ground {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let base = tmp.path().canonicalize().unwrap();
        Self {
            _tmp: tmp,
            layout: open(&base),
            base,
        }
    }

    fn shelf(&self) -> PathBuf {
        self.base.join("projects/demo/artifacts")
    }

    /// An exec that has ended.
    fn exec(&self, number: u8, bytes: usize) -> ExecId {
        let exec = ExecId::from_random([number; 16]);
        let project = self.layout.project(&demo()).unwrap();
        project.begin(&exec, &[]).unwrap();
        let dir = self.shelf().join(exec.as_str());
        for file in 0..FILES {
            std::fs::write(dir.join(format!("file-{file}")), vec![b'x'; bytes / FILES]).unwrap();
        }
        std::fs::write(dir.join("manifest.json"), "{}").unwrap();
        exec
    }

    fn listed(&self) -> Vec<ExecId> {
        execs(&self.layout.shelved(&demo(), usize::MAX).unwrap().execs)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.shelf()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn open(base: &Path) -> Layout {
    Layout::open(Dir::open_trusted(base).unwrap()).unwrap()
}

fn demo() -> ProjectId {
    "demo".parse().unwrap()
}

fn execs(list: &[Shelved]) -> Vec<ExecId> {
    list.iter().map(|it| it.exec.clone()).collect()
}

fn nobody(_: &ExecId) -> bool {
    false
}

fn keep(last: u64) -> Retention {
    Retention {
        last: Some(last),
        ..Retention::default()
    }
}

fn later(secs: i64) -> FileTime {
    let now = FileTime::now();
    FileTime {
        sec: now.sec + secs,
        ..now
    }
}

/// Files are stamped by a clock that moves in steps, and that may lag behind a stamp somebody
/// was given in between; the next exec must be a later one. So files themselves are asked.
fn next_tick(ground: &Ground) {
    let stamp = || {
        let probe = ground.base.join("probe");
        std::fs::create_dir(&probe).unwrap();
        let born = std::fs::metadata(&probe).unwrap().created().unwrap();
        std::fs::remove_dir(&probe).unwrap();
        born
    };
    let before = stamp();
    while stamp() <= before {
        std::thread::yield_now();
    }
}

fn made_in_order(ground: &Ground, numbers: std::ops::Range<u8>, bytes: usize) -> Vec<ExecId> {
    let mut newest_first: Vec<ExecId> = numbers
        .map(|number| {
            next_tick(ground);
            ground.exec(number, bytes)
        })
        .collect();
    newest_first.reverse();
    newest_first
}

#[test]
fn the_shelf_is_listed_by_age_with_sizes() {
    let ground = Ground::new();
    assert_eq!(ground.listed(), []);
    let made = made_in_order(&ground, 1..5, 40_000);
    let shelf = ground.layout.shelved(&demo(), 100).unwrap();
    assert_eq!(execs(&shelf.execs), made);
    assert!(!shelf.truncated);
    for exec in &shelf.execs {
        assert!(exec.usage.bytes >= 40_000 && exec.usage.complete && exec.sealed);
    }
    let sum: u64 = shelf.execs.iter().map(|it| it.usage.bytes).sum();
    assert_eq!(shelf.bytes, sum);
    let some = ground.layout.shelved(&demo(), 2).unwrap();
    assert_eq!(
        (execs(&some.execs), some.truncated),
        (made[..2].to_vec(), true)
    );
}

#[test]
fn the_oldest_go_first_and_a_running_one_never() {
    let ground = Ground::new();
    let made = made_in_order(&ground, 1..9, 40_000);
    let retain = |retention, now, running: &dyn Fn(&ExecId) -> bool| {
        ground
            .layout
            .retain(&demo(), retention, now, running)
            .unwrap()
    };
    let none = Retention::default();
    assert_eq!(retain(none, later(1 << 30), &nobody).removed, []);
    // The two oldest are over the count; one of them runs.
    let oldest = made[7].clone();
    let swept = retain(keep(6), later(0), &|exec| *exec == oldest);
    assert_eq!(swept.removed, [made[6].clone()]);
    assert_eq!(swept.running, std::slice::from_ref(&oldest));
    assert!(swept.bytes >= 40_000);
    let swept = retain(keep(6), later(0), &nobody);
    assert_eq!(swept.removed, [oldest]);
    // By bytes.
    let shelf = ground.layout.shelved(&demo(), 100).unwrap();
    let two: u64 = shelf.execs[..2].iter().map(|it| it.usage.bytes).sum();
    let bytes = Retention {
        bytes: Some(two),
        ..none
    };
    let swept = retain(bytes, later(0), &nobody);
    let expected: Vec<ExecId> = made[2..6].iter().rev().cloned().collect();
    assert_eq!(swept.removed, expected, "in this order");
    // By age.
    let within = Retention {
        within: Some(Duration::from_secs(3600)),
        ..none
    };
    assert_eq!(retain(within, later(3000), &nobody).removed, []);
    assert_eq!(retain(within, later(4000), &nobody).removed.len(), 2);
    assert_eq!(ground.names(), [""; 0]);
    let other = "other".parse().unwrap();
    let swept = ground.layout.retain(&other, keep(0), later(0), &nobody);
    assert_eq!(swept.unwrap().removed, []);
}

#[test]
fn an_exec_that_may_be_about_to_start_stays_for_an_hour() {
    let ground = Ground::new();
    let exec = ExecId::from_random([9; 16]);
    let project = ground.layout.project(&demo()).unwrap();
    let files = project.begin(&exec, &[]).unwrap();
    drop(files.sink(Stream::Stdout, 10).unwrap());
    let retain = |now| {
        let rule = Retention {
            bytes: Some(0),
            within: Some(Duration::ZERO),
            last: Some(0),
        };
        ground.layout.retain(&demo(), rule, now, &nobody).unwrap()
    };
    let swept = retain(later(1800));
    assert_eq!((swept.removed.len(), swept.running.len()), (0, 1));
    assert_eq!(retain(later(3700)).removed, [exec]);
    assert_eq!(ground.names(), [""; 0], "its stream too");
}

#[test]
fn hostile_artifacts_are_measured_and_removed() {
    let ground = Ground::new();
    let exec = ground.exec(1, 1000);
    let dir = ground.shelf().join(exec.as_str());
    let outside = ground.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("canary"), vec![b'x'; 1 << 20]).unwrap();
    symlink(&outside, dir.join("out")).unwrap();
    std::fs::create_dir_all(dir.join("locked/inner")).unwrap();
    std::fs::set_permissions(dir.join("locked"), PermissionsExt::from_mode(0o000)).unwrap();
    // A guest that sets the times of its own directory changes nothing about its age.
    let past = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::open(&dir)
        .unwrap()
        .set_modified(past)
        .unwrap();
    let shelf = ground.layout.shelved(&demo(), 10).unwrap();
    assert!(shelf.bytes < 1 << 20, "what a link leads to is not counted");
    let hour = Retention {
        within: Some(Duration::from_secs(3600)),
        ..Retention::default()
    };
    let swept = ground.layout.retain(&demo(), hour, later(0), &nobody);
    assert_eq!(swept.unwrap().removed, []);
    let swept = ground.layout.retain(&demo(), keep(0), later(0), &nobody);
    assert_eq!(swept.unwrap().removed, [exec]);
    assert!(outside.join("canary").exists());
}

#[test]
fn what_a_dead_removal_left_is_on_no_list_and_goes_with_the_next() {
    let ground = Ground::new();
    let exec = ground.exec(1, 1000);
    let stays = ground.exec(2, 1000);
    let gone = ground.shelf().join(format!(".gone-{exec}"));
    std::fs::rename(ground.shelf().join(exec.as_str()), &gone).unwrap();
    assert_eq!(ground.listed(), std::slice::from_ref(&stays));
    let swept = ground.layout.retain(&demo(), keep(5), later(0), &nobody);
    assert_eq!(swept.unwrap().removed, []);
    assert_eq!(ground.names(), [stays.to_string()]);
}

const WHERE: &str = "GLOVEBOX_TEST_WHERE";

#[test]
fn a_killed_removal_leaves_whole_execs_or_none() {
    if let Some(base) = std::env::var_os(WHERE) {
        let layout = open(Path::new(&base));
        layout.retain(&demo(), keep(3), later(0), &nobody).unwrap();
        return;
    }
    // Whoever looks may have to wait for a processor until all is over.
    let killed = (0..10).any(|_| removed_and_killed() > 0);
    assert!(killed, "nobody was killed in the middle");
}

/// Removes in a process of its own, which is killed as soon as it has removed something, until
/// nothing is left to remove. After each kill whatever is listed is whole. Returns how many.
fn removed_and_killed() -> u32 {
    let ground = Ground::new();
    let made = made_in_order(&ground, 1..25, 4000);
    let mut kills = 0;
    loop {
        let before = ground.names().len();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "retention::a_killed_removal_leaves_whole_execs_or_none",
            ])
            .env(WHERE, &ground.base)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Some step of it is done; which one is up to the machine.
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            let busy = ground.names().iter().any(|name| name.starts_with(".gone-"));
            if busy || ground.names().len() < before {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
        };
        kills += u32::from(status.signal().is_some());
        let listed = ground.listed();
        assert!(listed.len() >= 3);
        assert_eq!(listed, made[..listed.len()], "the newest, without a gap");
        for exec in &listed {
            let dir = ground.shelf().join(exec.as_str());
            assert_eq!(std::fs::read_dir(dir).unwrap().count(), FILES + 1);
        }
        if status.signal().is_none() {
            assert!(status.success());
            break;
        }
    }
    assert_eq!(ground.listed(), made[..3]);
    assert_eq!(ground.names().len(), 3);
    kills
}
