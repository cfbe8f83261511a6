//! Whoever dies, nothing is left.

use glovebox_cage::{SpawnError, Spawner};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getsid, kill_process, set_child_subreaper, wait,
};

use crate::processes::{Held, children, comm, keepers, tree, wait_until};
use crate::sandbox;
use crate::server::Server;

pub(crate) fn a_killed_server_leaves_nothing() {
    // Whoever is orphaned comes here, so that nobody is missed.
    set_child_subreaper(Some(getpid())).unwrap();
    let mut server = Server::start();
    // The one that runs, and those that wait.
    wait_until("keepers wait", || keepers(server.spawner.pid).len() >= 5);
    wait_until("the payload runs", || {
        let names = tree(server.keeper.pid).into_iter().map(comm);
        names.filter(|name| name == "sleep").count() == 2
    });
    server.kill();
    wait_until("nobody is left", || {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(errno) => return errno == Errno::CHILD,
            }
        }
    });
}

pub(crate) fn a_killed_spawner_is_an_error_and_what_runs_goes_on() {
    let spawner = Spawner::fork().unwrap();
    let mut running = spawner.spawn().unwrap();
    sandbox::start(&running, "read line < /dev/null; exit 5");
    let mut waiting = spawner.spawn().unwrap();
    wait_until("keepers wait", || keepers(spawner.pid()).len() >= 4);
    let own = [running.keeper_pid(), waiting.keeper_pid()];
    let idle: Vec<Held> = keepers(spawner.pid())
        .into_iter()
        .filter(|pid| !own.contains(pid))
        .filter_map(Held::open)
        .collect();
    assert!(!idle.is_empty());

    let process = Held::open(spawner.pid()).unwrap();
    assert!(spawner.is_alive());
    process.kill();
    process.wait();
    assert!(!spawner.is_alive());
    assert_eq!(spawner.spawn().unwrap_err(), SpawnError::Gone);
    idle.iter().for_each(Held::wait);

    // Those that were handed over do not need it any more.
    assert_eq!(sandbox::finish(&running).0, 5 << 8);
    running.release().unwrap();
    running.wait_keeper().unwrap();
    assert_eq!(sandbox::run(&waiting, "exit 6").0, 6 << 8);
    waiting.release().unwrap();
    waiting.wait_keeper().unwrap();
}

pub(crate) fn a_dropped_spawner_goes_with_its_idle_keepers() {
    let spawner = Spawner::fork().unwrap();
    wait_until("four wait", || keepers(spawner.pid()).len() == 4);
    let held: Vec<Held> = tree(spawner.pid())
        .into_iter()
        .filter_map(Held::open)
        .collect();
    let handle = spawner.spawn().unwrap();
    drop(spawner);
    assert_eq!(sandbox::run(&handle, "exit 2").0, 2 << 8);
    drop(handle);
    held.iter().for_each(Held::wait);
}

pub(crate) fn signals_of_a_terminal_end_nobody() {
    let spawner = Spawner::fork().unwrap();
    wait_until("four wait", || keepers(spawner.pid()).len() == 4);
    let pid = Pid::from_raw(spawner.pid()).unwrap();
    assert_eq!(getsid(Some(pid)).unwrap(), pid);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        kill_process(pid, signal).unwrap();
    }
    assert_eq!(sandbox::run(&spawner.spawn().unwrap(), "exit 4").0, 4 << 8);
}

pub(crate) fn no_zombie_stays() {
    // As pid 1 of a container would, this process gets every orphan that nobody else takes.
    set_child_subreaper(Some(getpid())).unwrap();
    let spawner = Spawner::fork().unwrap();
    for _ in 0..8 {
        sandbox::run(&spawner.spawn().unwrap(), "true & true");
    }
    wait_until("only those that wait are left", || {
        let zombie = |pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('Z'))
        };
        let all = children(spawner.pid());
        all.len() == keepers(spawner.pid()).len() && !all.iter().any(zombie)
    });
    let own = i32::try_from(std::process::id()).unwrap();
    assert_eq!(children(own), [spawner.pid()]);
}
