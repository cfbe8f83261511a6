//! Real programs, each of which runs three times on the same files: simulated, for real in a
//! sandbox, and under a tracer. What the simulation told must be what came of the other two.

mod files;
mod processes;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_model::{Deed, Effect, FileOp, ProcessSpawn};
use support::Caller;

use crate::census::{Census, assert_untouched, census, differences};
use crate::ground::{Ground, HELD, Simulated};
use crate::traced::{Started, settle, started};
use crate::truth::{Findings, assert_digests, compare};

/// What a sandbox has as its path, so that files are set up by the same tools.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin";
/// So that what git writes depends on what was asked alone.
const GIT: [&str; 7] = [
    "GIT_CONFIG_COUNT=0",
    "GIT_AUTHOR_NAME=a",
    "GIT_AUTHOR_EMAIL=a@b.test",
    "GIT_COMMITTER_NAME=a",
    "GIT_COMMITTER_EMAIL=a@b.test",
    "GIT_AUTHOR_DATE=2001-02-03T04:05:06Z",
    "GIT_COMMITTER_DATE=2001-02-03T04:05:06Z",
];

#[derive(Debug, Clone, Copy)]
struct Program {
    name: &'static str,
    /// A shell script on the host that makes the files.
    given: &'static str,
    /// What is run, by a shell.
    command: &'static str,
    /// Names, or how they end, of files whose contents differ from run to run.
    volatile: &'static [&'static str],
    /// Paths outside the workspace that it tries to write.
    attempts: &'static [&'static str],
    /// It makes something that no workspace takes.
    special: bool,
    /// Left out without it.
    needs: Option<&'static str>,
}

const PLAIN: Program = Program {
    name: "",
    given: "",
    command: "",
    volatile: &[],
    attempts: &[],
    special: false,
    needs: None,
};

/// One line of the table.
struct Row {
    name: &'static str,
    files: usize,
    processes: usize,
    findings: Findings,
}

struct Bench {
    ground: Ground,
    environment: Vec<(String, String)>,
}

impl Bench {
    fn new(caller: Caller) -> Option<Self> {
        let ground = Ground::new(caller, "")?;
        let seen = ground.run(&git_options(&[]), "env");
        seen.expect("succeeded", 0);
        let lines = seen.record["stdout"].as_str().unwrap().lines();
        let environment = lines
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Some(Self {
            ground,
            environment,
        })
    }

    /// Three copies of the same files: to simulate on, to run on, to trace on.
    fn given(&self, program: &Program) -> [PathBuf; 3] {
        let home = self.ground.trial.home().join("corpus");
        let base = home.join(program.name);
        fs::create_dir_all(&base).unwrap();
        let made = Command::new("/bin/sh")
            .args(["-ceu", &format!("umask 022\n{}", program.given)])
            .current_dir(&base)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C.UTF-8")
            .envs(GIT.iter().filter_map(|it| it.split_once('=')))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}: {made:?}", program.name);
        ["simulated", "real", "traced"].map(|which| {
            let copy = home.join(format!("{}-{which}", program.name));
            run("cp", &["-a", path(&base), path(&copy)]);
            let account = self.ground.trial.caller().account().unwrap();
            // The tracer is root's.
            if which != "traced" && account.uid != 0 {
                let owner = format!("{}:{}", account.uid, account.gid);
                run("chown", &["-hR", &owner, path(&copy)]);
            }
            copy
        })
    }

    fn measure(&self, program: &Program) -> Row {
        let [simulated, real, traced] = self.given(program);
        let mut findings = Findings::default();
        let before = census(&simulated);
        let options = git_options(&["--simulate"]);
        let outcome = self.ground.run_in(&simulated, &options, program.command);
        assert_untouched(&census(&simulated), &before, program.name);
        let effects = self.ground.effects(outcome.id());
        assert_eq!(
            outcome.record["effect_count"]["dropped"], 0,
            "{}",
            program.name
        );

        let given = census(&real);
        let done = self
            .ground
            .run_in(&real, &git_options(&[]), program.command);
        let after = census(&real);
        let is_volatile = |path: &[u8]| program.is_volatile(path);
        compare(&effects, (&given, &after), &is_volatile, &mut findings);
        assert_digests(&effects, &mut findings);
        compare_attempts(program, &effects, &mut findings);
        program.expect_end(&outcome, &done, &mut findings);

        let truth = started(&traced, &self.environment, program.command);
        compare_started(&effects, &truth, &mut findings);

        self.settle(
            program,
            &outcome,
            &simulated,
            (&before, &after),
            &mut findings,
        );
        let files = effects
            .iter()
            .filter(|it| matches!(it.deed, Deed::FilesystemWrite(_)));
        Row {
            name: program.name,
            files: files.count(),
            processes: truth.len(),
            findings,
        }
    }

    /// What passed is made true; what did not cannot be.
    fn settle(
        &self,
        program: &Program,
        outcome: &Simulated,
        work: &Path,
        (before, after): (&Census, &Census),
        findings: &mut Findings,
    ) {
        let exec = outcome.id();
        let applied = self.ground.glovebox_in(work, &["apply", exec]);
        if program.is_held() {
            assert_eq!(applied.code, HELD, "{}: {}", program.name, applied.stderr);
            assert_untouched(&census(work), before, program.name);
            let discarded = self.ground.glovebox_in(work, &["discard", exec]);
            discarded.assert_code(0);
            return;
        }
        if applied.code != 0 {
            findings.miss(format!("it was not applied: {}", applied.stderr.trim()));
            return;
        }
        for (path, how) in differences(&census(work), after, |it| it.seen.clone()) {
            if !program.is_volatile(&path) {
                findings.miss(format!("applied, {how}"));
            }
        }
    }
}

impl Program {
    fn is_volatile(&self, path: &[u8]) -> bool {
        let mut all = self.volatile.iter();
        all.any(|it| match it.strip_prefix('*') {
            Some(ending) => path.ends_with(ending.as_bytes()),
            None => path == it.as_bytes(),
        })
    }

    fn is_held(&self) -> bool {
        self.special || !self.attempts.is_empty()
    }

    /// The program was told the same both times.
    fn expect_end(&self, outcome: &Simulated, done: &Simulated, findings: &mut Findings) {
        let codes = [outcome, done].map(|it| it.record["exit_code"].as_i64());
        if codes[0] != codes[1] {
            let said = &outcome.record["stderr"];
            findings.wrong(format!("it ended with {codes:?}: {said}"));
        }
        let expected = match self.is_held() {
            true => "held",
            false => done.status(),
        };
        if outcome.status() != expected {
            let gates = &outcome.record["gates"];
            findings.wrong(format!("{}, not {expected}: {gates}", outcome.status()));
        }
    }
}

fn compare_attempts(program: &Program, effects: &[Effect], findings: &mut Findings) {
    let mut told: Vec<String> = Vec::new();
    for effect in effects {
        if let Deed::FilesystemWrite(write) = &effect.deed
            && write.operation == FileOp::Attempted
        {
            told.push(write.path.display());
            if effect.would_succeed {
                findings.wrong(format!("{} would succeed", write.path.display()));
            }
        }
    }
    for path in program.attempts {
        if !told.iter().any(|it| it == path) {
            findings.miss(format!("attempt at {path}"));
        }
    }
    for path in told {
        if !program.attempts.contains(&path.as_str()) {
            findings.wrong(format!("attempt at {path}"));
        }
    }
}

/// As many of each, whatever their order.
fn compare_started(effects: &[Effect], truth: &[Started], findings: &mut Findings) {
    let mut told: Vec<&ProcessSpawn> = Vec::new();
    for effect in effects {
        if let Deed::ProcessSpawn(it) = &effect.deed {
            told.push(it);
        }
    }
    for one in truth {
        let found = told.iter().position(|it| is_started(it, one));
        match found {
            Some(at) => drop(told.swap_remove(at)),
            None => findings.miss(format!("exec of {}", shown(one))),
        }
    }
    for it in told {
        findings.wrong(format!("exec of {:?} {:?}", it.program, it.argv));
    }
}

fn is_started(told: &ProcessSpawn, (name, argv): &Started) -> bool {
    let program = told.program.as_bytes();
    let last = program.rsplit(|byte| *byte == b'/').next();
    let arguments: Vec<Vec<u8>> = told.argv.iter().map(|it| settle(it.as_bytes())).collect();
    let same = match told.argv_truncated {
        false => arguments == *argv,
        // As many as are kept, and the last of them perhaps not whole.
        true => {
            let whole = arguments.len().saturating_sub(1);
            !arguments.is_empty()
                && argv.len() >= arguments.len()
                && argv[..whole] == arguments[..whole]
                && argv[whole].starts_with(&arguments[whole])
        }
    };
    last == Some(name.as_slice()) && same
}

fn shown((name, argv): &Started) -> String {
    let argv: Vec<String> = argv
        .iter()
        .map(|it| it.escape_ascii().to_string())
        .collect();
    format!("{} {argv:?}", name.escape_ascii())
}

fn git_options<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut all = options.to_vec();
    for variable in GIT {
        all.extend(["--env", variable]);
    }
    all
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
}

/// Runs them all and prints the table; a single difference is a failure.
fn all(caller: Caller, programs: &[Program]) {
    let Some(bench) = Bench::new(caller) else {
        return;
    };
    let is_here = |it: &&Program| {
        let here = it.needs.is_none_or(|tool| {
            let places = PATH.split(':').map(|it| Path::new(it).join(tool));
            places.into_iter().any(|it| it.exists())
        });
        if !here {
            println!(
                "{}: left out, there is no {}",
                it.name,
                it.needs.unwrap_or_default()
            );
        }
        here
    };
    let only = std::env::var("GLOVEBOX_TEST_PROGRAM").ok();
    let wanted = |it: &&Program| only.as_deref().is_none_or(|only| it.name == only);
    let rows: Vec<Row> = programs
        .iter()
        .filter(wanted)
        .filter(is_here)
        .map(|it| bench.measure(it))
        .collect();
    println!(
        "{:<32} {:>6} {:>9} {:>6} {:>5}",
        "program", "files", "processes", "misses", "false"
    );
    let mut totals = BTreeMap::from([("misses", 0), ("false", 0)]);
    for row in &rows {
        let (misses, falses) = (row.findings.misses.len(), row.findings.falses.len());
        let Row {
            name,
            files,
            processes,
            ..
        } = row;
        println!("{name:<32} {files:>6} {processes:>9} {misses:>6} {falses:>5}");
        *totals.entry("misses").or_default() += misses;
        *totals.entry("false").or_default() += falses;
    }
    for row in &rows {
        for (what, all) in [
            ("miss", &row.findings.misses),
            ("false", &row.findings.falses),
        ] {
            for line in all.iter().take(20) {
                println!("{what}, {}: {line}", row.name);
            }
        }
    }
    println!("{} programs, {totals:?}", rows.len());
    assert!(totals.values().all(|it| *it == 0), "{totals:?}");
    bench.ground.end();
}
