//! Output without end: cut, said to be cut, and never held in memory.

use std::io::Read;
use std::time::Duration;

use serde_json::Value;
use support::{Caller, Run, Trial, python};

use super::beside_a_neighbour;

/// What the whole `glovebox` process may need at its worst, in a debug build.
const MOST_KIB: u64 = 96 << 10;
const KEPT: u64 = 64 << 10;

/// The record, and the largest size that the process had while it ran.
fn measured(run: &Run<'_>) -> (i32, Value, u64) {
    let mut child = run.clone().with(["--json"]).spawn();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        output.read_to_end(&mut text).unwrap();
        text
    });
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(size.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(10));
    };
    let record = serde_json::from_slice(&reader.join().unwrap()).unwrap();
    (ended.code().unwrap(), record, peak)
}

fn flood(trial: &Trial, command: &[&str], streams: &[&str], expected: (&str, i32)) {
    // What ends by itself has all the time it needs.
    let timeout = match expected.0 {
        "timed_out" => "3s",
        _ => "60s",
    };
    let run = trial
        .run(command)
        .with(["--max-output", "64K", "--timeout", timeout]);
    let (code, record, peak) = measured(&run);
    assert_eq!(
        (record["status"].as_str(), code),
        (Some(expected.0), expected.1),
        "{record}"
    );
    assert!(peak > 0 && peak < MOST_KIB, "glovebox grew to {peak} KiB");
    for stream in ["stdout", "stderr"] {
        let loud = streams.contains(&stream);
        assert_eq!(record[format!("{stream}_truncated")], loud, "{stream}");
        let shown = record[stream].as_str().unwrap().len() as u64;
        // A byte that is no text is shown as a character of three.
        assert!(shown <= 4 * KEPT, "{shown} bytes of {stream} in the record");
        let file = record[format!("{stream}_path")].as_str().unwrap();
        let kept = std::fs::metadata(trial.state().join(file)).unwrap().len();
        assert_eq!(kept, if loud { KEPT } else { 0 }, "{stream} on disk");
        let counted = record[format!("{stream}_bytes")].as_u64().unwrap();
        assert!(
            !loud || counted > KEPT,
            "{counted} bytes of {stream} counted"
        );
    }
    println!(
        "peak {peak} KiB, {} bytes of stdout",
        record["stdout_bytes"]
    );
}

pub fn a_flood_on_stdout(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let command = ["/bin/sh", "-c", "yes | head -c 100M"];
        flood(trial, &command, &["stdout"], ("succeeded", 0));
    });
}

pub fn a_flood_on_stderr(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let command = ["/bin/sh", "-c", "yes | head -c 100M >&2"];
        flood(trial, &command, &["stderr"], ("succeeded", 0));
    });
}

pub fn a_flood_on_both_without_a_newline(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let code = "
import os
for _ in range(500):
    os.write(1, b'\\0' * 65536)
    os.write(2, b'\\xff' * 65536)
";
        let command = [python(), "-c", code];
        flood(trial, &command, &["stdout", "stderr"], ("succeeded", 0));
    });
}

pub fn a_flood_without_end(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        flood(trial, &["/usr/bin/yes"], &["stdout"], ("timed_out", 124));
    });
}
