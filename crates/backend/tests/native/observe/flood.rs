//! More than anybody wants to know.

use std::process::Command;
use std::time::{Duration, Instant};

use glovebox_backend::{Ending, Ground, Observe};
use glovebox_model::Millis;
use rustix::process::geteuid;

use crate::house::{PATIENCE, Yard, order};
use crate::observe::ground::{open, roomy, run};

/// So many are told.
const MOST: usize = 100_000;
/// In seconds, for one that is to be killed before its time is up.
const WALL: &str = "GLOVEBOX_TEST_WALL";
const VICTIM: &str = "observe::time_is_kept_however_much_is_asked";

pub(crate) fn what_is_too_much_is_counted() {
    let yard = Yard::new();
    let profile = roomy();
    let prepared = open(&yard, &profile, Observe::default());
    let code = format!(
        "import os\nfor at in range({}):\n try: os.rmdir('/tmp/x')\n except OSError: pass\n\
         os.execv('/usr/bin/true', ['true'])",
        MOST + 1000
    );
    let (ended, told) = run(prepared, &profile, &order(&["python3", "-c", &code], &[]));
    let ended = ended.unwrap();
    assert_eq!(ended.ending, Ending::Exited { code: 0 });
    assert_eq!(told.notices.len(), MOST);
    // The first program is one of those that were told, the last is not.
    assert_eq!(ended.notices_dropped, 1000 + 1 + 1);
}

/// Many ask at once and without end; the clock still ends them.
pub(crate) fn time_is_kept_however_much_is_asked() {
    let yard = Yard::new();
    let mut profile = roomy();
    let wall = std::env::var(WALL).ok().and_then(|it| it.parse().ok());
    profile.limits.wall_ms = Millis::secs(wall.unwrap_or(2));
    let prepared = open(&yard, &profile, Observe::default());
    let code = "import os\nfor _ in range(3): os.fork()\nwhile True:\n try: os.rmdir('/tmp/x')\n except OSError: pass";
    let (ended, _) = run(prepared, &profile, &order(&["python3", "-c", code], &[]));
    let ended = ended.unwrap();
    assert_eq!(ended.ending, Ending::TimedOut);
    // Nothing else would end them before its processor time is up, after a minute.
    assert!(ended.duration < Duration::from_secs(40), "{ended:?}");
}

fn descendants(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let children = list.split_whitespace().filter_map(|it| it.parse().ok());
    children
        .flat_map(|child: u32| [vec![child], descendants(child)].concat())
        .collect()
}

/// Who it is and since when: nobody else is mistaken for it.
fn born(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let started = rest.split_whitespace().nth(19)?;
    (!rest.starts_with('Z')).then(|| format!("{pid} {started}"))
}

fn wait_until(condition: impl Fn() -> bool) -> bool {
    let soon = Instant::now() + PATIENCE;
    while !condition() && Instant::now() < soon {
        std::thread::sleep(Duration::from_millis(5));
    }
    condition()
}

/// Its programs wait for an answer that never comes, and are ended all the same.
pub(crate) fn one_whose_observer_is_killed_ends() {
    let caller = if geteuid().is_root() { "root" } else { "user" };
    let place = tempfile::tempdir().unwrap();
    let mut observer = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{caller}::{VICTIM}"), "--exact"])
        .env("TMPDIR", place.path())
        .env(WALL, "100")
        .spawn()
        .unwrap();
    // A spawner, keepers, pid 1 and its eight programs.
    assert!(wait_until(|| descendants(observer.id()).len() >= 10));
    let all: Vec<String> = descendants(observer.id())
        .into_iter()
        .filter_map(born)
        .collect();
    observer.kill().unwrap();
    observer.wait().unwrap();
    let pid = |it: &String| it.split(' ').next().unwrap().parse().unwrap();
    assert!(wait_until(|| all
        .iter()
        .all(|it| born(pid(it)).as_ref() != Some(it))));
    // Nor is anything left of its control groups.
    let group = format!("glovebox-yard-{}-1", observer.id());
    let parents = Ground::look().group_parents();
    assert!(wait_until(|| !parents
        .iter()
        .any(|it| it.join(&group).exists())));
}
