//! `kill -9` at any moment: what was acknowledged stays whole, and nothing is left after a
//! collection. The child is this test binary again.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_model::SnapshotId;
use glovebox_snapshot::{Collect, Keep, Sweep};

use crate::ground::{Ground, Tree, look, noise};

const ROOM: &str = "GLOVEBOX_TEST_SNAPSHOT_ROOM";

fn cycles() -> u64 {
    let asked = std::env::var("GLOVEBOX_TEST_SNAPSHOT_CYCLES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(25)
}

fn random(seed: u64) -> u64 {
    let bytes = noise(seed, 8);
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Changes some files, the same for the same number.
fn change(ground: &Ground, number: u64) {
    for step in 0..8 {
        let pick = random(number * 100 + step);
        let name = format!("d{}/f{}", pick % 4, pick / 4 % 12);
        match pick / 48 % 5 {
            0 => drop(fs::remove_file(ground.path(&name))),
            1 => ground.write(&name, noise(pick, 150_000)),
            _ => ground.write(&name, format!("{pick}\n").repeat(300)),
        }
    }
}

/// Waits for orders and says when each is done: `take`, `restore ID`, `collect`.
#[test]
fn child() {
    let Some(room) = std::env::var_os(ROOM) else {
        return;
    };
    let ground = Ground::at(Path::new(&room));
    let mut out = std::io::stderr();
    for order in std::io::stdin().lock().lines() {
        let order = order.unwrap();
        let said = match order.split_once(' ') {
            Some(("restore", id)) => {
                ground.restore(&id.parse().unwrap());
                "done".to_owned()
            }
            Some(("collect", last)) => {
                let keep = Keep {
                    last: Some(last.parse().unwrap()),
                    within: None,
                };
                let sweep = Sweep::Full;
                ground.snapshots().collect(Collect { keep, sweep }).unwrap();
                "done".to_owned()
            }
            _ => ground.take().snapshot.id.to_string(),
        };
        writeln!(out, "said {said}").unwrap();
    }
}

struct Servant {
    child: Child,
    answers: BufReader<std::process::ChildStderr>,
}

impl Servant {
    fn new(room: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::child", "--nocapture", "--test-threads=1"])
            .env(ROOM, room)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stderr.take().unwrap());
        Self { child, answers }
    }

    fn order(&mut self, order: &str) {
        let mut orders = self.child.stdin.as_ref().unwrap();
        writeln!(orders, "{order}").unwrap();
    }

    /// None when it died before it could answer.
    fn answer(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.answers.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(said) = line.trim_end().strip_prefix("said ") {
                return Some(said.to_owned());
            }
        }
    }

    /// Kills it after so long; says what it had still answered.
    fn kill_after(mut self, wait: Duration) -> Option<String> {
        // Not to wait for something: the moment itself is what is random.
        let until = Instant::now() + wait;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.child.kill().unwrap();
        let said = self.answer();
        self.child.wait().unwrap();
        said
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn whoever_is_killed_loses_nothing_that_was_acknowledged() {
    let room = tempfile::tempdir().unwrap();
    let ground = Ground::at(room.path());
    let mut known: Vec<(SnapshotId, Tree)> = Vec::new();
    let mut killed = [0u32; 3];
    // How long each kind of order takes when nobody interrupts it, in microseconds.
    let mut longest = [1000u64; 3];
    for number in 0..cycles() {
        change(&ground, number);
        let wanted = look(&ground.work);
        let mut servant = Servant::new(room.path());
        let which = usize::try_from(number % 3).unwrap();
        let order = match which {
            0 => "take".to_owned(),
            1 => match known.get(usize::try_from(random(number)).unwrap_or(0) % known.len().max(1))
            {
                Some((id, _)) => format!("restore {id}"),
                None => "take".to_owned(),
            },
            _ => "collect 3".to_owned(),
        };
        // Once it has answered anything, it is up.
        servant.order("take");
        let id: SnapshotId = servant.answer().unwrap().parse().unwrap();
        known.insert(0, (id, wanted.clone()));
        change(&ground, number + 1_000_000);
        let changed = look(&ground.work);
        let wait = Duration::from_micros(random(number + 7) % (longest[which] * 3 / 2));
        let begun = Instant::now();
        servant.order(&order);
        match servant.kill_after(wait) {
            Some(said) => {
                let took = u64::try_from(begun.elapsed().as_micros()).unwrap();
                longest[which] = longest[which].min(took).max(200);
                if let Ok(id) = said.parse() {
                    known.insert(0, (id, changed));
                }
            }
            None => {
                killed[which] += 1;
                longest[which] = longest[which] * 5 / 4 + 500;
            }
        }
        let snapshots = ground.snapshots();
        // A collection that was cut short may have removed any but the newest three.
        let there = snapshots.list(None).unwrap();
        assert_eq!(there.damaged, []);
        if order.starts_with("collect") {
            assert!(there.snapshots.len() >= known.len().min(3));
            known.retain(|(id, _)| there.snapshots.iter().any(|it| it.id == *id));
        }
        for (id, wanted) in known.iter().take(4) {
            ground.restore(id);
            assert_eq!(&look(&ground.work), wanted, "cycle {number}, {order}");
        }
        if number % 5 == 4 {
            check_clean(&ground, &known);
        }
    }
    check_clean(&ground, &known);
    println!(
        "killed in the middle: {} takes, {} restores, {} collections",
        killed[0], killed[1], killed[2]
    );
    assert!(killed.iter().sum::<u32>() > 0, "nobody was killed in time");
}

/// After a collection every byte of the store belongs to a snapshot.
fn check_clean(ground: &Ground, known: &[(SnapshotId, Tree)]) {
    let snapshots = ground.snapshots();
    let sweep = Sweep::Full;
    let keep = Keep::default();
    let collected = snapshots.collect(Collect { keep, sweep }).unwrap();
    assert_eq!(collected.garbage_chunks, 0);
    let again = snapshots.collect(Collect { keep, sweep }).unwrap();
    assert_eq!((again.orphans_removed, again.packs_removed), (0, 0));
    let verified = snapshots.verify(&mut ()).unwrap();
    assert!(verified.is_sound(), "{:?}", verified.damage);
    for below in ["packs", "records"] {
        for file in ground.files_in(below) {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(!name.starts_with("tmp-"), "{name} was left");
        }
    }
    for (id, wanted) in known {
        ground.restore(id);
        assert_eq!(&look(&ground.work), wanted);
    }
}
