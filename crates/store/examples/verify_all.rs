//! What verification of all spaces costs:
//! `cargo run --release -p glovebox-store --example verify_all DIR ENTRIES`, over 100 spaces.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::time::Instant;

use glovebox_model::{Exec, ExecId, SpaceId, Status};
use glovebox_store::{Expectations, ExportFormat, StateDir, Store, verify_export};

const SPACES: usize = 100;
const THREADS: usize = 64;

/// Two entries and a row.
fn exec(store: &Store, space: &SpaceId) {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    let mut record: Exec = serde_json::from_str(include_str!("record.json")).unwrap();
    record.exec_id = ExecId::from_random(random);
    record.ids.space_id = space.clone();
    let opened = store.plan("o", &record).unwrap();
    record.status = Status::Succeeded;
    record.exit_code = Some(0);
    store.close(opened, record).unwrap();
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().unwrap());
    let entries: usize = args.next().unwrap().parse().unwrap();
    let state = StateDir::open(dir.join("state")).unwrap();
    let store = Store::open(&state).unwrap();
    let since = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for number in (thread..entries / 2).step_by(THREADS) {
                    exec(store, &format!("s{}", number % SPACES).parse().unwrap());
                }
            });
        }
    });
    println!(
        "written          {:>8.1?}  peak {} MiB",
        since.elapsed(),
        peak_mib()
    );
    let nothing = Expectations::default();
    let since = Instant::now();
    let verified = store.verify_all(&nothing).unwrap();
    assert!(verified.is_sound(), "{:?}", verified.problems);
    println!(
        "verified         {:>8.1?}  peak {} MiB: {} entries in {} spaces",
        since.elapsed(),
        peak_mib(),
        verified.entries,
        verified.spaces.len()
    );
    let path = dir.join("export.jsonl");
    let since = Instant::now();
    let mut out = BufWriter::new(File::create(&path).unwrap());
    store.export_all(ExportFormat::Jsonl, &mut out).unwrap();
    drop(out);
    println!(
        "exported         {:>8.1?}  peak {} MiB",
        since.elapsed(),
        peak_mib()
    );
    let since = Instant::now();
    let verified = verify_export(BufReader::new(File::open(&path).unwrap()), &nothing).unwrap();
    assert!(verified.is_sound(), "{:?}", verified.problems);
    println!(
        "verified offline {:>8.1?}  peak {} MiB",
        since.elapsed(),
        peak_mib()
    );
}
