//! One hardening step removed at a time: something that a payload can see must change, or the
//! sandbox must refuse to start.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Caller, Helper, Run, Trial, python, wait_until};

const OBSERVE: &str = include_str!("observe.py");

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than the sandbox may have, little for the host.
const GROWTH: u64 = 80 << 20;

/// Steps that no payload can tell from their absence, and why they are there all the same.
const MAY_SURVIVE: &[(&str, &str)] = &[
    (
        "drop capabilities",
        "executing a program as a user that is not 0 drops them once more; the step is for pid 1",
    ),
    (
        "close others",
        "every descriptor of pid 1 closes itself on exec already; the step is a second wall",
    ),
    (
        "scratch NoSuid",
        "the root that the scratch space lies on is mounted so already",
    ),
    ("scratch NoDev", "the same"),
    (
        "filter X32",
        "this kernel has no x32 calls, so they answer ENOSYS by themselves",
    ),
    (
        "filter Modules",
        "this kernel has no modules, so the calls answer ENOSYS by themselves",
    ),
];

/// How a removed step was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    Refused,
    Differs(String),
    Same,
}

/// What the payload saw; `None` when nothing was started.
type Observations = Option<BTreeMap<String, Value>>;

struct Bench<'trial> {
    trial: &'trial Trial,
    shared_memory: String,
}

impl Bench<'_> {
    fn run(&self) -> Run<'_> {
        let growth = match self.trial.caller() {
            Caller::Root => GROWTH,
            // There the whole sandbox would be ended; the limit itself is among the observations.
            Caller::User => 0,
        };
        let command = [
            python(),
            "observe.py",
            &self.shared_memory,
            &growth.to_string(),
        ]
        .map(str::to_owned);
        let limits = [
            "--pids",
            "24",
            "--memory",
            "48M",
            "--cpus",
            "1",
            "--disk",
            "32M",
            "--files",
            "500",
            "--cpu-time",
            "20s",
            "--open-files",
            "200",
            "--timeout",
            "120s",
        ];
        let run = self.trial.run(command).with(limits);
        match self.trial.caller() {
            // Should a mutant mount something, it mounts it in a world of its own. And a group more
            // than root has, which the sandbox must lose.
            Caller::Root => run.through([
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "setpriv",
                "--groups",
                "4242",
            ]),
            Caller::User => run,
        }
    }

    fn observe(&self, part: Option<&str>) -> Observations {
        let run = match part {
            Some(part) => self.run().outside("GLOVEBOX_MUTATION", part),
            None => self.run(),
        };
        let output = run.plain();
        serde_json::from_slice(&output.stdout).ok()
    }

    fn parts(&self) -> Vec<String> {
        let file = self.trial.work().join("parts");
        let output = self.run().outside("GLOVEBOX_MUTATION_PARTS", &file).plain();
        let listed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            !listed.is_empty(),
            "this binary lists no parts; is it a debug build? {}",
            String::from_utf8_lossy(&output.stderr)
        );
        listed.lines().map(str::to_owned).collect()
    }
}

fn compare(intact: &BTreeMap<String, Value>, mutant: Observations) -> Finding {
    let Some(mutant) = mutant else {
        return Finding::Refused;
    };
    let difference = intact
        .iter()
        .find(|(key, value)| mutant.get(*key) != Some(*value));
    match difference {
        Some((key, value)) => {
            let now = mutant
                .get(key)
                .map_or("nothing".to_owned(), Value::to_string);
            let text = format!("{key}: {value} became {now}");
            Finding::Differs(text.chars().take(110).collect())
        }
        None => Finding::Same,
    }
}

/// Some parts bite only when the host does something; the rest show in what the payload sees.
fn examine(bench: &Bench<'_>, intact: &BTreeMap<String, Value>, part: &str) -> Finding {
    match (part, bench.trial.caller()) {
        ("die with keeper", Caller::Root) if outlives_its_keeper(part) => {
            Finding::Differs("pid 1 outlives its keeper".to_owned())
        }
        ("cgroup cpu", Caller::Root) if !is_throttled(bench.trial, part) => {
            Finding::Differs("more processor time than allowed".to_owned())
        }
        _ => compare(intact, bench.observe(Some(part))),
    }
}

/// Pid 1 ends when its caller's socket does. Where somebody else holds that open, only the kernel's
/// word that the keeper died is left.
///
/// In a trial of its own: any other run would take down what this one leaves on purpose.
fn outlives_its_keeper(mutation: &str) -> bool {
    let trial = Trial::new(Caller::Root).unwrap();
    let run = trial
        .run(["sh", "-c", "touch begun; sleep 1000"])
        .outside("GLOVEBOX_MUTATION", mutation);
    let begun = trial.work().join("begun");
    let mut glovebox = run.spawn();
    assert!(
        wait_until(PATIENCE, || begun.exists()),
        "the payload did not start"
    );
    std::fs::remove_file(&begun).unwrap();
    let keeper = child_of(glovebox.id(), "glovebox-keeper").expect("a keeper");
    let init = child_of(keeper, "glovebox-init").expect("a pid 1");
    let holder = Helper::start(include_str!("hold.py"), &[&glovebox.id().to_string()]);
    assert!(holder.ready["held"].as_u64() > Some(0), "{}", holder.ready);
    glovebox.kill().unwrap();
    kill(keeper);
    glovebox.wait().unwrap();
    // Where the step is, the end may be late on a loaded machine.
    let patience = match mutation {
        "" => PATIENCE,
        _ => Duration::from_secs(1),
    };
    let gone = wait_until(patience, || !is_alive(init));
    drop(holder);
    assert!(wait_until(PATIENCE, || !is_alive(init)));
    // The next run takes down what the killed one left.
    assert!(trial.run(["true"]).plain().status.success());
    trial.end();
    !gone
}

fn child_of(pid: u32, name: &str) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let mut children = children.split_whitespace().filter_map(|it| it.parse().ok());
    children.find(|child: &u32| {
        let comm = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        comm.trim() == name
    })
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// One burning process gets about a tenth of a processor, however often one looks. A busy host may
/// give it no more by itself, but hardly that often.
fn is_throttled(trial: &Trial, mutation: &str) -> bool {
    let burn = "import time\nend = time.monotonic() + 0.8\nwhile time.monotonic() < end: pass\n\
                print(time.process_time())";
    let run = trial.run([python(), "-c", burn]).with(["--cpus", "0.1"]);
    let run = run.outside("GLOVEBOX_MUTATION", mutation);
    let times = if mutation.is_empty() { 3 } else { 12 };
    (0..times).all(|_| {
        let said = run.plain().stdout;
        let used: f64 = String::from_utf8_lossy(&said).trim().parse().unwrap_or(0.0);
        used < 0.2
    })
}

/// Of all parts, or of those that are wanted.
fn examine_all(
    caller: Caller,
    shared_memory: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<BTreeMap<String, Finding>> {
    let trial = Trial::new(caller)?;
    trial.put("observe.py", OBSERVE);
    let bench = Bench {
        trial: &trial,
        shared_memory: shared_memory.to_owned(),
    };
    let mut parts = bench.parts();
    parts.retain(|part| is_wanted(part));
    let intact = bench.observe(None).expect("the intact sandbox works");
    assert_eq!(
        compare(&intact, bench.observe(None)),
        Finding::Same,
        "observations must repeat"
    );
    assert!(caller == Caller::User || !outlives_its_keeper(""), "intact");
    assert!(caller == Caller::User || is_throttled(&trial, ""), "intact");

    let (next, findings) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let finding = examine(&bench, &intact, part);
                    findings.lock().unwrap().insert(part.clone(), finding);
                }
            });
        }
    });
    trial.end();
    Some(findings.into_inner().unwrap())
}

#[test]
fn a_removed_step_is_noticed() {
    let started = Instant::now();
    let place = tempfile::tempdir().unwrap();
    let host = Helper::start(
        include_str!("../support/host.py"),
        &[place.path().to_str().unwrap()],
    );
    let shared_memory = host.ready["shm"].to_string();
    let root = examine_all(Caller::Root, &shared_memory, |_| true).unwrap();
    // What one of the two notices is noticed; both are asked about everything in the long form.
    let is_full = support::is_full();
    let is_open = |part: &str| is_full || root.get(part).is_none_or(|it| *it == Finding::Same);
    let user = examine_all(Caller::User, &shared_memory, is_open).unwrap_or_default();

    let mut parts: Vec<&String> = root.keys().chain(user.keys()).collect();
    parts.sort();
    parts.dedup();
    let (mut caught, mut survivors) = (0, Vec::new());
    for part in &parts {
        let (as_root, as_user) = (root.get(*part), user.get(*part));
        let noticed = |finding: Option<&Finding>| finding.is_some_and(|it| *it != Finding::Same);
        let by = match (noticed(as_root), noticed(as_user)) {
            (true, true) => "both",
            (true, false) => "root",
            (false, true) => "user",
            (false, false) => "NOBODY",
        };
        if by == "NOBODY" {
            survivors.push(part.as_str());
        } else {
            caught += 1;
        }
        let shown = if noticed(as_root) {
            as_root
        } else {
            as_user.or(as_root)
        };
        println!("{part:<34} {by:<6} {shown:?}");
    }
    let percent = 100.0 * f64::from(caught) / parts.len() as f64;
    println!(
        "mutation: caught {caught} of {} ({percent:.1} %)",
        parts.len()
    );
    for part in survivors {
        let known = MAY_SURVIVE.iter().find(|(name, _)| *name == part);
        let (_, reason) = known.unwrap_or_else(|| panic!("`{part}` survived without a reason"));
        println!("survivor {part}: {reason}");
    }
    println!("took {:?}", started.elapsed());
    assert!(percent >= 95.0);
}

#[test]
fn a_release_binary_has_no_switch() {
    let Some(binary) = support::release_glovebox() else {
        support::missing("no release binary was built");
        return;
    };
    for word in [
        "GLOVEBOX_MUTATION",
        "GLOVEBOX_PATIENCE",
        "GLOVEBOX_PAUSE_AT",
    ] {
        let search = Command::new("grep")
            .args(["--quiet", "--text", "--fixed-strings", word])
            .arg(&binary)
            .status();
        // 2 is a search that failed.
        assert_eq!(
            search.unwrap().code(),
            Some(1),
            "{} knows {word}",
            binary.display()
        );
    }
}
