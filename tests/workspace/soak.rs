//! Write, snapshot, change, restore, collect, each killed at a random moment, again and again: no
//! byte differs, nothing that was acknowledged is lost, no chunk is left that nobody needs.
//!
//! `GLOVEBOX_TEST_SOAK=500` makes so many cycles, `GLOVEBOX_TEST_SEED` others.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use glovebox_snapshot::{Collect, Snapshots, Sweep};
use glovebox_workspace::Dir;
use serde_json::Value;

use crate::ground::{Dice, Ended, Ground, Tree, assert_same, noise};

/// Named snapshots stay until they are removed by name; the rest goes at once.
const CONFIG: &str = "[workspace]\nsnapshots_keep_last = 1\nsnapshots_keep_within = 0\n";
const NAMED: usize = 6;

struct Soak {
    ground: Ground,
    dice: Dice,
    /// What was promised to come back.
    taken: Vec<(String, Tree)>,
    /// How long each command takes when it is let alone.
    usual: BTreeMap<&'static str, Duration>,
    kills: BTreeMap<&'static str, usize>,
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(otherwise, |it| it.parse().expect("a number"))
}

impl Soak {
    fn new() -> Self {
        let ground = Ground::root(CONFIG);
        ground.plant();
        Self {
            ground,
            dice: Dice::new(number("GLOVEBOX_TEST_SEED", 20_261_115)),
            taken: Vec::new(),
            usual: BTreeMap::new(),
            kills: BTreeMap::new(),
        }
    }

    /// Killed at any moment of its usual time, or just after it.
    fn cut(&mut self, verb: &'static str, words: &[&str]) -> Ended {
        let usual = self
            .usual
            .get(verb)
            .copied()
            .unwrap_or(Duration::from_millis(50));
        let micros = u64::try_from(usual.as_micros()).unwrap_or(u64::MAX);
        let after = Duration::from_micros(self.dice.below(micros + micros / 8));
        let mut command = self.ground.command(&["--json"]);
        let command = command
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(after);
        // It may be over already.
        let _ = child.kill();
        let ended = Ended::of(child.wait_with_output().unwrap());
        if ended.killed {
            *self.kills.entry(verb).or_default() += 1;
        } else {
            ended.assert_code(0);
        }
        ended
    }

    fn whole(&mut self, verb: &'static str, words: &[&str]) -> Value {
        let since = Instant::now();
        let answer = self.ground.json(words);
        self.usual.insert(verb, since.elapsed());
        answer
    }

    /// Somebody works on the files.
    fn change(&mut self) {
        let work = self.ground.work();
        for _ in 0..1 + self.dice.below(8) {
            let name = work.join(format!("f{}", self.dice.below(12)));
            let directory = work.join(format!("d{}", self.dice.below(4)));
            let size = usize::try_from(self.dice.below(200_000)).unwrap();
            match self.dice.below(7) {
                0 => drop(fs::remove_file(&name)),
                1 => drop(fs::remove_dir_all(&directory)),
                2 | 3 => {
                    fs::create_dir_all(&directory).unwrap();
                    fs::write(directory.join("in"), noise(self.dice.roll(), size)).unwrap();
                }
                4 if name.is_file() => {
                    // A little in the middle.
                    let mut bytes = fs::read(&name).unwrap();
                    let at = bytes.len() / 2;
                    bytes.splice(at..at, *b"changed");
                    fs::write(&name, bytes).unwrap();
                }
                5 => {
                    let _ = fs::remove_file(work.join("link"));
                    std::os::unix::fs::symlink(&name, work.join("link")).unwrap();
                }
                _ => fs::write(&name, noise(self.dice.roll(), size)).unwrap(),
            }
        }
    }

    fn take(&mut self) {
        let tree = self.ground.tree();
        let words = ["snapshot", "take", "--label", "mine"];
        let cut = self.cut("take", &words);
        assert_same(&self.ground.tree(), &tree, "taking changes nothing");
        let answer = match serde_json::from_str::<Value>(&cut.stdout) {
            // It was told before it was killed, so it counts.
            Ok(answer) => answer,
            Err(_) => self.whole("take", &words),
        };
        let id = answer["snapshot"]["snapshot_id"].as_str();
        self.taken.push((id.expect("an id").to_owned(), tree));
    }

    fn restore(&mut self) {
        let at = usize::try_from(self.dice.below(self.taken.len() as u64)).unwrap();
        let (id, target) = self.taken[at].clone();
        let before = self.ground.tree();
        let cut = self.cut("restore", &["snapshot", "restore", &id]);
        // Whoever comes next finishes it.
        self.ground.start();
        let now = self.ground.tree();
        if !cut.killed || now != before {
            assert_same(&now, &target, &format!("restored, killed: {}", cut.killed));
        } else {
            self.whole("restore", &["snapshot", "restore", &id]);
            assert_same(&self.ground.tree(), &target, "restored in peace");
        }
    }

    fn collect(&mut self) {
        while self.taken.len() > NAMED {
            let at = usize::try_from(self.dice.below(self.taken.len() as u64)).unwrap();
            let (id, _) = self.taken.swap_remove(at);
            self.ground.json(&["snapshot", "rm", &id]);
        }
        self.cut("gc", &["snapshot", "gc"]);
        let sound = self.ground.json(&["snapshot", "verify"]);
        assert_eq!(sound["sound"], true, "{sound}");
        if self.dice.below(3) == 0 {
            self.whole("gc", &["snapshot", "gc"]);
        }
    }

    /// Every acknowledged one is there, and every byte of it.
    fn assert_nothing_lost(&mut self) {
        let listed = self.ground.json(&["snapshot", "ls"]).to_string();
        for (id, tree) in self.taken.clone() {
            assert!(listed.contains(&id), "{id} is lost");
            self.ground.json(&["snapshot", "restore", &id]);
            assert_same(&self.ground.tree(), &tree, &id);
        }
    }

    fn assert_no_orphans(&mut self) {
        self.whole("gc", &["snapshot", "gc"]);
        let space = Dir::open_trusted(&self.ground.trial.state()).unwrap();
        let store = Snapshots::open(&space).unwrap();
        let everything = Collect {
            sweep: Sweep::Full,
            ..Collect::default()
        };
        let left = store.collect(everything).unwrap();
        assert_eq!(
            (left.orphans_removed, left.garbage_chunks),
            (0, 0),
            "{left:?}"
        );
        let again = store.collect(everything).unwrap();
        assert_eq!(again.bytes_before, again.bytes_after, "{again:?}");
        self.assert_nothing_lost();
        // The other way round: with no snapshot nothing is needed, so nothing is left.
        for snapshot in store.list(None).unwrap().snapshots {
            store.remove(&snapshot.id).unwrap();
        }
        store.collect(everything).unwrap();
        for part in ["packs", "records"] {
            let listed = fs::read_dir(self.ground.trial.state().join("snapshots").join(part));
            assert_eq!(listed.unwrap().count(), 0, "`{part}` is not empty");
        }
    }
}

#[test]
fn killed_at_any_moment_nothing_is_lost_and_nothing_is_left() {
    let mut soak = Soak::new();
    let cycles = number("GLOVEBOX_TEST_SOAK", 10);
    for cycle in 0..cycles {
        soak.change();
        soak.take();
        soak.change();
        soak.restore();
        soak.collect();
        if cycle % 50 == 49 {
            soak.assert_nothing_lost();
        }
    }
    soak.assert_nothing_lost();
    soak.assert_no_orphans();
    let kills: usize = soak.kills.values().sum();
    println!(
        "{cycles} cycles, {kills} kills {:?}; 0 bytes differ, 0 snapshots lost",
        soak.kills
    );
    assert!(kills > 0, "nothing was killed");
    soak.ground.trial.end();
}
