//! How long the store takes: `cargo run --release -p glovebox-store --example timing [DIR]`.
//! Medians; ratios to a bare write and fsync of the same file system say more than the numbers.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::io::Write;
use std::time::{Duration, Instant};

use glovebox_model::{Exec, ExecId, Status};
use glovebox_store::{Owner, StateDir, Store, dead_owners};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn each(times: usize, mut work: impl FnMut()) -> Duration {
    let once = |()| {
        let since = Instant::now();
        work();
        since.elapsed()
    };
    median(std::iter::repeat_n((), times).map(once).collect())
}

fn record() -> Exec {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    let mut record: Exec = serde_json::from_str(include_str!("record.json")).unwrap();
    record.exec_id = ExecId::from_random(random);
    record
}

fn exec(store: &Store, owner: &str) {
    let mut record = record();
    let opened = store.plan(owner, &record).unwrap();
    record.status = Status::Succeeded;
    record.exit_code = Some(0);
    store.close(opened, record).unwrap();
}

fn main() {
    let dir = match std::env::args_os().nth(1) {
        Some(path) => tempfile::tempdir_in(path).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let path = dir.path().join("state");
    let cold = Instant::now();
    let state = StateDir::open(&path).unwrap();
    let store = Store::open(&state).unwrap();
    println!("first open, with schema        {:>10.1?}", cold.elapsed());
    let owner = Owner::claim(&state).unwrap();
    for _ in 0..1000 {
        exec(&store, owner.id());
    }

    let mut file = std::fs::File::create(dir.path().join("file")).unwrap();
    let sync = each(200, || {
        file.write_all(&[0; 4096]).unwrap();
        file.sync_data().unwrap();
    });
    println!("write 4 KiB and fsync          {sync:>10.1?}");
    println!(
        "open the state directory       {:>10.1?}",
        each(500, || drop(StateDir::open(&path)))
    );
    println!(
        "claim and give up an owner     {:>10.1?}",
        each(500, || drop(Owner::claim(&state)))
    );
    println!(
        "look for dead owners           {:>10.1?}",
        each(500, || drop(dead_owners(&state, Some(&owner))))
    );
    println!(
        "open, beside another process   {:>10.1?}",
        each(500, || drop(Store::open(&state)))
    );
    println!(
        "plan and close                 {:>10.1?}",
        each(500, || exec(&store, owner.id()))
    );
    drop(store);
    // Alone, the log is read again: how much there is of it differs from time to time.
    let mut opens = Vec::new();
    let mut whole = Vec::new();
    for _ in 0..200 {
        let since = Instant::now();
        let store = Store::open(&state).unwrap();
        opens.push(since.elapsed());
        exec(&store, owner.id());
        whole.push(since.elapsed());
    }
    opens.sort();
    println!(
        "open, alone                    {:>10.1?}",
        median(opens.clone())
    );
    println!(
        "open, alone, worst of 200      {:>10.1?}",
        opens[opens.len() - 1]
    );
    println!("open, plan and close, alone    {:>10.1?}", median(whole));

    let store = Store::open(&state).unwrap();
    for threads in [1, 8, 32] {
        let since = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..1600 / threads).for_each(|_| exec(&store, owner.id())));
            }
        });
        let rate = 1600.0 / since.elapsed().as_secs_f64();
        println!("{threads:>2} threads                     {rate:>8.0} execs/s");
    }
}
