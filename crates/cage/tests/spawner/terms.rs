//! What a keeper holds by its own clock: a deadline, a lease, and the end of what is not its child.

use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

use glovebox_cage::{Event, Guard, Handle, Moment, Over, Spawner};

use crate::processes::wait_until;
use crate::sandbox;

const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(3600);
/// Deaf to everything that can be ignored.
const DEAF: &str = "trap '' TERM INT HUP; while :; do sleep 0.01; done";

/// Why the keeper ended it, and when.
fn ended(handle: &Handle) -> (Option<Over>, Moment) {
    loop {
        match handle.next_control().unwrap() {
            Event::Born { .. } => {}
            Event::Ended { over, at, .. } => return (over, at),
            other => panic!("instead of the end: {other:?}"),
        }
    }
}

pub(crate) fn a_deadline_is_kept_without_another_word() {
    let spawner = Spawner::fork().unwrap();
    let handle = spawner.spawn().unwrap();
    sandbox::start(&handle, DEAF);
    // What was said last is what holds.
    handle.until(Moment::now().after(LONG)).unwrap();
    let deadline = Moment::now().after(SOON);
    handle.until(deadline).unwrap();
    let (over, at) = ended(&handle);
    assert_eq!(over, Some(Over::Deadline));
    assert!(at >= deadline, "{at:?} is before {deadline:?}");
    assert!(
        at < deadline.after(Duration::from_secs(1)),
        "{at:?}, {deadline:?}"
    );
}

pub(crate) fn a_lease_that_is_not_renewed_ends_every_sandbox() {
    let spawner = Spawner::fork().unwrap();
    spawner.lease_until(Moment::now().after(LONG)).unwrap();
    let handles = [spawner.spawn().unwrap(), spawner.spawn().unwrap()];
    for handle in &handles {
        sandbox::start(handle, DEAF);
    }
    assert!(spawner.is_leased());
    let end = Moment::now().after(SOON);
    spawner.lease_until(end).unwrap();
    for handle in &handles {
        let (over, at) = ended(handle);
        assert_eq!(over, Some(Over::Lease));
        // Looked at every second at least.
        assert!(
            at >= end && at < end.after(Duration::from_secs(2)),
            "{at:?}, {end:?}"
        );
    }
    assert!(!spawner.is_leased());
    // Nothing that is built now lives.
    let late = spawner.spawn().unwrap();
    sandbox::start_unheard(&late, DEAF);
    assert_eq!(ended(&late).0, Some(Over::Lease));
}

pub(crate) fn what_is_guarded_is_ended_in_time_and_cleared_when_its_caller_is_gone() {
    let spawner = Spawner::fork().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let guarded = || {
        let handle = spawner.spawn().unwrap();
        handle.guard(guard(&log)).unwrap();
        assert!(matches!(handle.next_control(), Ok(Event::Guards)));
        handle
    };
    let mut over = guarded();
    over.until(Moment::now().after(SOON)).unwrap();
    assert_eq!(ended(&over).0, Some(Over::Deadline));
    assert_eq!(said(), "end again\nend\n", "it is tried until it succeeds");
    over.release().unwrap();
    over.wait_keeper().unwrap();
    let mut released = guarded();
    released.release().unwrap();
    released.wait_keeper().unwrap();
    assert_eq!(said(), "end again\nend\n");
    guarded().leave();
    wait_until("it is cleared", || said().ends_with("clear\n"));
}

/// Its first try fails.
fn guard(log: &Path) -> Guard {
    let log = log.display();
    let command = |line: String| -> Vec<CString> {
        let words = ["/bin/sh", "-c", &line];
        words.map(|word| CString::new(word).unwrap()).to_vec()
    };
    Guard {
        end: command(format!(
            "[ -e {log} ] || {{ echo end again > {log}; exit 1; }}; echo end >> {log}"
        )),
        clear: command(format!("echo clear >> {log}")),
        patience: Duration::from_secs(10),
        lock: None,
        env: vec![c"PATH=/usr/bin:/bin".into()],
    }
}
