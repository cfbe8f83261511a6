//! What ends an exec that goes too far, and that nothing of it goes on.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Column, is_full, processes_with, wait_until};

use crate::table::{Case, Ground};

pub const CASES: &[Case] = &[
    Case::new(
        "a time-out ends the whole tree, whatever it ignores",
        time_out,
    ),
    Case::new("canceling ends the whole tree", cancel),
    Case::new("what outlives the program dies with the exec", survivors),
    Case::new(
        "what a killed caller leaves, the next run ends",
        killed_caller,
    ),
    Case::new("memory beyond its limit ends it and is named", memory),
    Case::new(
        "memory files count as memory, and they and open files have an end",
        memory_files,
    ),
    Case::but(
        "processes beyond the limit are not made, and that is named",
        &[(
            Column::Runsc,
            "the limit counts gVisor's own threads too: about 100 for a shell",
        )],
        processes,
    ),
    Case::new(
        "few processes are enough for few, or refused with the way out",
        few_processes,
    ),
    Case::new("a fork bomb ends with its exec", fork_bomb),
    Case::new("a file beyond the disk limit is not written", large_file),
    Case::new("many files beyond the disk limit end it", disk),
    Case::new("so they do while others free as much", disk_of_others),
    Case::new("files without a name are among them", disk_without_names),
    Case::new("processor time beyond its limit ends it", processor_time),
];

/// Two in sessions of their own, one that ignores whatever can be ignored.
const STUBBORN: &str = "import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.setsid()
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
open(f'begun-{os.getpid()}', 'w').close()
while True:
    open('beat', 'a').write('x')
    time.sleep(0.02)";

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The heart beats no more, also where processes cannot be seen from outside. It never stops by itself;
/// one that was killed while it waits for the disk is seen until the disk is done.
fn assert_dead(ground: &Ground) {
    wait_until(PATIENCE, || processes_with(ground.trial.tag()).is_empty());
    let alive: Vec<String> = processes_with(ground.trial.tag())
        .into_iter()
        .map(|pid| {
            let read =
                |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let (words, state) = (read("cmdline"), read("stat"));
            let [words, state] = [words, state].map(|it| String::from_utf8_lossy(&it).into_owned());
            format!("{pid}: {} ({state})", words.replace('\0', " "))
        })
        .collect();
    assert!(alive.is_empty(), "still there: {alive:#?}");
    let size = || std::fs::metadata(ground.trial.work().join("beat")).map_or(0, |it| it.len());
    let before = size();
    // Longer than many beats: silence can only be seen by waiting.
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(size(), before, "something still writes");
}

fn time_out(ground: &Ground) {
    // One that could not even begin in its time gets more.
    for limit in [1500, 6000, 30_000] {
        let timeout = format!("{limit}ms");
        let outcome = ground.python(STUBBORN).with(["--timeout", &timeout]).json();
        outcome.expect("timed_out", 124, Some("wall"));
        assert_eq!(outcome.record["timed_out"], true);
        assert_dead(ground);
        let ran = outcome.record["duration_ms"].as_u64().expect("a time");
        assert!((limit..limit + 30_000).contains(&ran), "{ran} ms");
        if ground.trial.work().join("beat").exists() {
            return;
        }
    }
    panic!("it never ran");
}

fn cancel(ground: &Ground) {
    let child = ground.python(STUBBORN).with(["--json"]).spawn();
    let begun = || {
        let list = std::fs::read_dir(ground.trial.work())
            .expect("a list")
            .flatten();
        list.filter(|it| it.file_name().to_string_lossy().starts_with("begun"))
            .count()
    };
    assert!(wait_until(PATIENCE, || begun() == 3), "it did not begin");
    // Asked twice it does not wait for a program that may want to tidy up. Two of a kind may be one.
    let asked = [Signal::INT, Signal::TERM];
    for signal in asked.into_iter().take(if is_full() { 1 } else { 2 }) {
        kill_process(Pid::from_child(&child), signal).expect("a signal");
    }
    let since = Instant::now();
    let output = child.wait_with_output().expect("hear glovebox");
    assert_dead(ground);
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    assert_eq!(record["status"], "canceled", "{record}");
    assert_eq!(output.status.code(), Some(130));
    assert!(
        since.elapsed() < Duration::from_secs(90),
        "{:?}",
        since.elapsed()
    );
}

fn killed_caller(ground: &Ground) {
    let mut child = ground.python(STUBBORN).with(["--timeout", "5m"]).spawn();
    let beat = ground.trial.work().join("beat");
    assert!(wait_until(PATIENCE, || beat.exists()), "it did not begin");
    child.kill().expect("kill glovebox");
    child.wait().expect("bury glovebox");
    let next = ground.sh("true").json();
    next.expect("succeeded", 0, None);
    assert_dead(ground);
}

fn survivors(ground: &Ground) {
    let leave = format!(
        "import os
if os.fork() > 0:
    import glob, time
    while len(glob.glob('begun-*')) < 3: time.sleep(0.01)
    os._exit(7)
{STUBBORN}"
    );
    let outcome = ground.python(&leave).with(["--timeout", "120s"]).json();
    outcome.expect("failed", 7, None);
    assert_dead(ground);
}

fn memory(ground: &Ground) {
    let grow = "print('begun', flush=True); x = bytearray(400 << 20); print(len(x))";
    let outcome = ground.python(grow).with(["--memory", "96M"]).json();
    outcome.expect("killed", 137, Some("memory"));
    assert_eq!(outcome.text("stdout"), "begun\n");
    let used = outcome.record["usage"]["max_memory_bytes"]
        .as_u64()
        .expect("a size");
    assert!((32 << 20..=110 << 20).contains(&used), "{used} bytes");
}

fn memory_files(ground: &Ground) {
    let fill = "import os, sys
for place in ('/tmp', '/dev/shm'):
    with open(place + '/fill', 'wb', buffering=0) as file:
        try:
            for _ in range(400): file.write(bytes(1 << 20))
            print('no end of', place)
        except OSError as error: print(error.strerror)
    os.unlink(place + '/fill')
number = 0
try:
    while True: os.dup(0); number += 1
except OSError as error: print(error.strerror, number < 100)";
    let limits = ["--memory", "256M", "--open-files", "100"];
    let outcome = ground.python(fill).with(limits).json();
    outcome.expect("succeeded", 0, outcome.limit_hit());
    assert_eq!(
        outcome.text("stdout"),
        "No space left on device\nNo space left on device\nToo many open files True\n"
    );
}

/// The account of a container is read every few milliseconds and gone with it, so it stays a while.
const FORK: &str = "import os, sys, time
for number in range(1000):
    try: child = os.fork()
    except OSError as error:
        print(number, error.strerror, flush=True); break
    if child == 0: time.sleep(60); os._exit(0)
time.sleep(float(sys.argv[1]))";

fn processes(ground: &Ground) {
    // On a loaded machine nobody may have looked in its time; it gets more.
    let run = |stay: &str| {
        let run = ground.run(["/usr/bin/python3", "-c", FORK, stay]);
        run.with(["--pids", "40"]).json()
    };
    let mut outcome = run("0.2");
    if ground.column.is_docker() && outcome.limit_hit().is_none() {
        outcome = run("15");
    }
    outcome.expect("succeeded", 0, Some("pids"));
    let said = outcome.text("stdout");
    let made: u32 = said
        .split(' ')
        .next()
        .and_then(|it| it.parse().ok())
        .expect(said);
    // One less where the first process counts; one more where a place was left for the keeper.
    assert!((35..=40).contains(&made), "{said}");
    let most = outcome.record["usage"]["max_pids"].as_u64();
    assert!((Some(39)..=Some(41)).contains(&most), "{most:?}");
}

fn few_processes(ground: &Ground) {
    let with = |pids: &str| ground.sh("echo $(echo a; echo b)").with(["--pids", pids]);
    let enough = match ground.column {
        Column::Native | Column::Runc => "8",
        // Its own threads count.
        Column::Runsc => {
            let few = with("79").json();
            few.expect("error", 125, None);
            let error = few.record["error"].to_string();
            for word in ["backend_unavailable", "gVisor", "`--pids 80`"] {
                assert!(error.contains(word), "{word}: {error}");
            }
            "80"
        }
    };
    let outcome = with(enough).json();
    assert_eq!(outcome.text("stdout"), "a b\n", "{}", outcome.record);
    assert_eq!(outcome.code, 0);
}

fn fork_bomb(ground: &Ground) {
    let bomb = "import os
while True:
    try: os.fork()
    except OSError: pass";
    let outcome = ground
        .python(bomb)
        .with(["--pids", "200", "--timeout", "1s"])
        .json();
    // gVisor itself may not survive the limit that it shares with the program.
    let ends: &[&str] = match ground.column {
        Column::Native | Column::Runc => &["timed_out"],
        Column::Runsc => &["timed_out", "failed", "killed", "error"],
    };
    assert!(ends.contains(&outcome.status()), "{}", outcome.record);
    let most = outcome.record["usage"]["max_pids"].as_u64();
    assert!(most <= Some(200), "{most:?}");
    let alive = || processes_with(ground.trial.tag());
    assert!(wait_until(PATIENCE, || alive().is_empty()), "{:?}", alive());
}

fn large_file(ground: &Ground) {
    let write = "import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open('large', 'wb', buffering=0) as file:
    try:
        for _ in range(64): file.write(bytes(1 << 20))
        print('written')
    except OSError as error: print(error.strerror)";
    let outcome = ground.python(write).with(["--disk", "8M"]).json();
    assert_eq!(
        outcome.text("stdout"),
        "File too large\n",
        "{}",
        outcome.record
    );
    let size = std::fs::metadata(ground.trial.work().join("large"))
        .expect("a file")
        .len();
    assert_eq!(size, 8 << 20);
}

fn disk(ground: &Ground) {
    let write = "import time
for number in range(64):
    with open(f'f{number}', 'wb') as file: file.write(bytes(1 << 20))
time.sleep(60)";
    let outcome = ground
        .python(write)
        .with(["--disk", "8M", "--timeout", "150s"])
        .json();
    outcome.expect("killed", 137, Some("disk"));
}

/// Whoever frees space on the same disk must not pay for this program.
fn disk_of_others(ground: &Ground) {
    let write = "import os, time
open('ready', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
for number in range(64):
    with open(f'f{number}', 'wb') as file: file.write(bytes(1 << 20))
time.sleep(60)";
    let work = ground.trial.work();
    let ballast = ground.trial.home().join("ballast");
    let file = std::fs::File::create(&ballast).expect("a file");
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(file, flags, 0, 256 << 20).expect("space");
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = wait_until(PATIENCE, || work.join("ready").exists());
            std::fs::remove_file(&ballast).expect("remove the ballast");
            assert!(began, "the program did not begin");
            std::fs::write(work.join("go"), "").expect("a sign");
        });
        ground
            .python(write)
            .with(["--disk", "8M", "--timeout", "150s"])
            .json()
    });
    outcome.expect("killed", 137, Some("disk"));
}

fn disk_without_names(ground: &Ground) {
    let write = "import os, time
held = []
for number in range(64):
    file = open('f', 'wb', buffering=0); os.unlink('f'); file.write(bytes(1 << 20)); held.append(file)
time.sleep(60)";
    let outcome = ground
        .python(write)
        .with(["--disk", "8M", "--timeout", "150s"])
        .json();
    outcome.expect("killed", 137, Some("disk"));
}

fn processor_time(ground: &Ground) {
    let outcome = ground
        .sh("while :; do :; done")
        .with(["--cpu-time", "1s", "--timeout", "60s"])
        .json();
    outcome.expect("killed", 137, Some("cpu"));
    let used = outcome.record["usage"]["cpu_ms"].as_u64().expect("a time");
    assert!((900..10_000).contains(&used), "{used} ms");
}
