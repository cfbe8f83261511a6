//! What a caller gets.

use std::collections::HashSet;
use std::sync::{Arc, Barrier};

use glovebox_cage::{Handle, SpawnError, Spawner};
use rustix::process::{Pid, Signal, kill_process};

use crate::processes::{Held, children, keepers, wait_until};
use crate::sandbox;

pub(crate) fn many_threads_are_served_at_once() {
    let spawner = Arc::new(Spawner::fork().unwrap());
    let together = Arc::new(Barrier::new(32));
    let threads: Vec<_> = (0..32)
        .map(|_| {
            let (spawner, together) = (Arc::clone(&spawner), Arc::clone(&together));
            std::thread::spawn(move || {
                together.wait();
                (0..4).map(|_| spawner.spawn().unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    let handles: Vec<_> = threads
        .into_iter()
        .flat_map(|it| it.join().unwrap())
        .collect();
    let pids: HashSet<i32> = handles.iter().map(|it| it.keeper_pid()).collect();
    assert_eq!(pids.len(), 128);
    let held: Vec<Held> = pids
        .iter()
        .map(|pid| Held::open(*pid).expect("a keeper that lives"))
        .collect();
    // Each of them is a keeper of its own.
    let some = handles.iter().step_by(16);
    for (index, handle) in some.enumerate() {
        let (status, _) = sandbox::run(handle, &format!("exit {index}"));
        assert_eq!(status >> 8, i32::try_from(index).unwrap());
    }
    drop(handles);
    assert!(held.iter().all(|it| !it.is_alive()));
}

pub(crate) fn status_and_usage_of_a_sandbox_arrive() {
    let spawner = Spawner::fork().unwrap();
    let (status, usage) = sandbox::run(&spawner.spawn().unwrap(), "exit 7");
    assert_eq!(status, 7 << 8);
    assert!(usage.max_rss < 32 << 20, "{usage:?}");

    let (status, _) = sandbox::run(&spawner.spawn().unwrap(), "kill -9 $$");
    assert_eq!(status, 9);

    let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let (status, usage) = sandbox::run(&spawner.spawn().unwrap(), count);
    assert_eq!(status, 0);
    assert!(usage.cpu_us > 20_000, "{usage:?}");

    let large = "dd if=/dev/zero of=/dev/null bs=64M count=1";
    let (status, usage) = sandbox::run(&spawner.spawn().unwrap(), large);
    assert_eq!(status, 0);
    assert!(usage.max_rss >= 64 << 20, "{usage:?}");
}

pub(crate) fn a_keeper_of_our_own_tells_the_same() {
    let mut handle = Handle::fork().unwrap();
    let (status, usage) = sandbox::run(&handle, "exit 7");
    assert_eq!(status, 7 << 8);
    assert!(usage.cpu_us > 0 && usage.max_rss > 0, "{usage:?}");
    handle.release().unwrap();
    handle.wait_keeper().unwrap();
    // Buried, and a second time asks nobody.
    assert!(Held::open(handle.keeper_pid()).is_none());
    handle.wait_keeper().unwrap();
}

pub(crate) fn keepers_wait_ahead_and_more_of_them_after_a_rush() {
    let spawner = Spawner::fork().unwrap();
    wait_until("four wait", || keepers(spawner.pid()).len() == 4);
    let ahead = keepers(spawner.pid());
    let first = spawner.spawn().unwrap();
    assert!(ahead.contains(&first.keeper_pid()));

    // All of them wait before the first is answered, however slow this machine is.
    let process = Pid::from_raw(spawner.pid()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let rush: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..40)
            .map(|_| scope.spawn(|| spawner.spawn().unwrap()))
            .collect();
        wait_until("all have asked", || sleeping_threads() >= asked.len());
        kill_process(process, Signal::CONT).unwrap();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    wait_until("sixteen wait", || {
        children(spawner.pid()).len() == 1 + rush.len() + 16
    });
    drop(rush);
    wait_until("only those are left", || {
        children(spawner.pid()).len() == 1 + 16
    });
}

/// Of this process.
fn sleeping_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let sleeps = |thread: std::path::PathBuf| {
        let stat = std::fs::read_to_string(thread.join("stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, state)| state.starts_with('S'))
    };
    threads
        .filter(|it| sleeps(it.as_ref().unwrap().path()))
        .count()
}

pub(crate) fn a_keeper_that_died_waiting_is_not_handed_over() {
    let spawner = Spawner::fork().unwrap();
    wait_until("four wait", || keepers(spawner.pid()).len() == 4);
    for pid in keepers(spawner.pid()) {
        let held = Held::open(pid).unwrap();
        held.kill();
        held.wait();
    }
    let (status, _) = sandbox::run(&spawner.spawn().unwrap(), "exit 3");
    assert_eq!(status, 3 << 8);
}

pub(crate) fn a_process_with_threads_cannot_fork_one() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || stopped.recv());
    assert_eq!(Spawner::fork().unwrap_err(), SpawnError::Threads);
    drop(stop);
    let _ = thread.join();
}
