//! `kill -9` at every stage of the path, of `glovebox`, of its keeper, of all of them. Nothing stays
//! behind, the next start says what it found, and no acknowledged record is lost.
//!
//! `GLOVEBOX_TEST_KILLS=200` makes at least as many kills as that, and at least 20 in each stage.

use std::collections::BTreeMap;
use std::process::Stdio;

use glovebox_model::{Exec, ReceiptRef, Status};
use rustix::process::Signal;

use crate::bench::{Bench, Running};
use crate::traces;
use crate::wait::{PATIENCE, until};

/// The stages that debug builds can be stopped at, in their order, and the payload's own run.
const STAGES: [&str; 12] = [
    "reserve", "resolve", "assess", "obtain", "build", "open", "admit", "payload", "run",
    "collect", "judge", "close",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    /// The keeper lives on and has to take everything down.
    Engine,
    /// Whatever it kept has to die with it.
    Keeper,
    /// Neither can tidy up after the other.
    Both,
    /// All at once, from the payload up.
    Everyone,
}

const VICTIMS: [Victim; 4] = [
    Victim::Engine,
    Victim::Keeper,
    Victim::Both,
    Victim::Everyone,
];

fn cycles() -> usize {
    let asked = std::env::var("GLOVEBOX_TEST_KILLS").ok();
    asked.map_or(VICTIMS.len(), |asked| {
        let kills: usize = asked.parse().expect("GLOVEBOX_TEST_KILLS is a number");
        kills.div_ceil(STAGES.len()).max(20)
    })
}

/// What the next start must find.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// No intent was on disk yet: there is no row.
    Unwritten,
    Lost,
    Recorded(Status),
}

fn fate(stage: &str, victim: Victim) -> Fate {
    match stage {
        "reserve" | "resolve" | "assess" | "obtain" | "build" => Fate::Unwritten,
        // The engine is alive to see it and to write it down.
        "payload" if victim == Victim::Keeper => Fate::Recorded(Status::Error),
        "close" => Fate::Recorded(Status::Succeeded),
        _ => Fate::Lost,
    }
}

struct Trial {
    bench: Bench,
    /// Receipts of everything that was acknowledged.
    receipts: Vec<ReceiptRef>,
    known: BTreeMap<String, Status>,
}

impl Trial {
    fn new() -> Self {
        let mut trial = Self {
            bench: Bench::new(),
            receipts: Vec::new(),
            known: BTreeMap::new(),
        };
        trial.acknowledge();
        trial
    }

    /// A run that ends well, whose record must never be lost from now on. Returns what it said.
    fn acknowledge(&mut self) -> String {
        let ended = self.bench.run(&["--json"], &["true"]);
        ended.assert_code(0);
        let record: Exec = serde_json::from_slice(&ended.output.stdout).unwrap();
        self.receipts.extend(record.receipt);
        self.known
            .insert(record.exec_id.to_string(), Status::Succeeded);
        ended.stderr()
    }

    fn reach(&self, stage: &str) -> Running {
        if stage == "payload" {
            // Deaf to signals, away from their parent, in sessions of their own.
            let script = "trap '' TERM HUP INT\n\
                          for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & done\n\
                          : > running; sleep 1000";
            return self.bench.start(&[], script);
        }
        let file = self.bench.path().join("reached");
        let child = self
            .bench
            .command(&[], &["true"])
            .env("GLOVEBOX_PAUSE_AT", format!("{stage}:{}", file.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut running = Running::new(child);
        until(&format!("`{stage}` is reached"), || {
            assert!(!running.has_ended(), "ended before `{stage}`");
            file.exists()
        });
        std::fs::remove_file(file).unwrap();
        running
    }

    fn cycle(&mut self, stage: &str, victim: Victim) {
        let running = self.reach(stage);
        let pid = running.pid().as_raw_nonzero().get();
        let family = traces::family(pid);
        let keeper = family.first();
        // Afterwards it may still be taking the sandbox apart.
        let over = matches!(stage, "run" | "collect" | "judge" | "close");
        assert!(over || keeper.is_some(), "{stage}: there is no keeper");
        match victim {
            Victim::Engine => running.signal(Signal::KILL),
            Victim::Keeper => {
                if let Some(keeper) = keeper {
                    keeper.signal(Signal::KILL);
                    for one in &family {
                        let ended = one.has_ended_within(PATIENCE);
                        assert!(ended, "{stage}: {one:?} outlived its keeper");
                    }
                }
                if stage != "payload" {
                    running.signal(Signal::KILL);
                }
            }
            Victim::Both => {
                if let Some(keeper) = keeper {
                    keeper.signal(Signal::STOP);
                }
                running.signal(Signal::KILL);
                if let Some(keeper) = keeper {
                    keeper.signal(Signal::KILL);
                }
            }
            Victim::Everyone => {
                // Else it may hear of the others' end, and write it down, before its own comes.
                running.signal(Signal::STOP);
                for one in family.iter().rev() {
                    one.signal(Signal::KILL);
                }
                running.signal(Signal::KILL);
            }
        }
        let ended = running.wait();
        if (stage, victim) == ("payload", Victim::Keeper) {
            ended.assert_code(125);
        }
        for one in &family {
            let ended = one.has_ended_within(PATIENCE);
            assert!(ended, "{stage}, {victim:?}: {one:?} lives on");
        }
        if victim == Victim::Engine {
            // Nobody but the keeper was there to do it.
            let tag = self.bench.tag();
            assert_eq!(traces::groups(&tag).len(), 0, "{stage}: groups left");
        }
        self.settle(stage, victim);
    }

    /// The next start finds what is to be found, and all is well again.
    fn settle(&mut self, stage: &str, victim: Victim) {
        let fate = fate(stage, victim);
        let said = self.acknowledge();
        let lost = said.matches("was lost in a crash").count();
        let expected = usize::from(fate == Fate::Lost);
        assert_eq!(lost, expected, "{stage}, {victim:?}: {said}");
        self.bench.assert_nothing_left();
        self.bench.assert_sound(&self.receipts);

        let all: BTreeMap<String, Status> = self
            .bench
            .execs()
            .into_iter()
            .map(|exec| (exec.exec_id.to_string(), exec.status))
            .collect();
        for (id, status) in &self.known {
            assert_eq!(all.get(id), Some(status), "an acknowledged record changed");
        }
        let new: Vec<Status> = all
            .iter()
            .filter(|(id, _)| !self.known.contains_key(*id))
            .map(|(_, status)| *status)
            .collect();
        let expected = match fate {
            Fate::Unwritten => vec![],
            Fate::Lost => vec![Status::Lost],
            Fate::Recorded(status) => vec![status],
        };
        assert_eq!(new, expected, "{stage}, {victim:?}");
        self.known = all;
    }
}

fn kill_at(stage: &str) {
    let mut trial = Trial::new();
    let mut count: BTreeMap<Victim, usize> = BTreeMap::new();
    for (victim, _) in VICTIMS.iter().cycle().zip(0..cycles()) {
        trial.cycle(stage, *victim);
        *count.entry(*victim).or_default() += 1;
    }
    let total: usize = count.values().sum();
    println!(
        "killed at {stage}: {total} {count:?}; 0 processes, 0 groups, 0 mounts, 0 records lost"
    );
}

macro_rules! stages {
    ($($test:ident = $stage:literal;)+) => {
        $(#[test] fn $test() { kill_at($stage); })+

        #[test]
        fn every_stage_is_killed_at() {
            assert_eq!([$($stage),+], STAGES);
            println!("{} stages, {} kills in each", STAGES.len(), cycles());
        }
    };
}

stages! {
    killed_when_its_groups_are_reserved = "reserve";
    killed_when_policy_has_resolved_it = "resolve";
    killed_when_its_risk_is_assessed = "assess";
    killed_when_it_is_approved = "obtain";
    killed_while_its_sandbox_is_built = "build";
    killed_when_its_intent_is_on_disk = "open";
    killed_when_it_is_admitted = "admit";
    killed_while_the_payload_runs = "payload";
    killed_when_the_payload_has_ended = "run";
    killed_when_its_output_is_collected = "collect";
    killed_when_it_is_judged = "judge";
    killed_when_its_outcome_is_on_disk = "close";
}
