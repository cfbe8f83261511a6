//! Many at once: on one fresh state directory, right after a crash, and on directories that must
//! not know of each other.

use std::process::{Child, Stdio};

use glovebox_model::Status;
use rustix::process::Signal;

use crate::bench::{Bench, Ended};
use crate::traces;

const CROWD: usize = 20;

fn crowd(bench: &Bench) -> Vec<Ended> {
    let start = || -> Child {
        bench
            .command(&[], &["sh", "-c", "echo $((6 * 7))"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..CROWD).map(|_| start()).collect();
    children
        .into_iter()
        .map(|child| Ended {
            output: child.wait_with_output().unwrap(),
        })
        .collect()
}

/// A run that ends so that nobody of it can tidy up: its groups are there to be found.
fn crash(bench: &Bench) {
    let running = bench.start(&[], ": > running; sleep 1000");
    running.signal(Signal::STOP);
    for one in traces::family(running.pid().as_raw_nonzero().get()) {
        one.signal(Signal::KILL);
    }
    running.signal(Signal::KILL);
    running.wait();
    assert_ne!(traces::groups(&bench.tag()).len(), 0);
}

fn assert_all_succeeded(bench: &Bench, ended: &[Ended]) {
    for one in ended {
        one.assert_code(0);
        assert_eq!(one.stdout(), "42\n");
    }
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
    let succeeded = bench
        .execs()
        .iter()
        .filter(|exec| exec.status == Status::Succeeded)
        .count();
    assert_eq!(succeeded, CROWD);
}

#[test]
fn twenty_at_once_on_a_fresh_state_directory_all_succeed_in_one_chain() {
    let bench = Bench::new();
    let ended = crowd(&bench);
    assert_all_succeeded(&bench, &ended);
    // One entry for each intent and one for each end, each on the one before it.
    assert_eq!(bench.verify(&[]).entries, 2 * CROWD as u64);
}

#[test]
fn twenty_at_once_after_a_crash_all_succeed_and_one_of_them_reports_it() {
    let bench = Bench::new();
    crash(&bench);

    let ended = crowd(&bench);
    assert_all_succeeded(&bench, &ended);
    let said: String = ended.iter().map(Ended::stderr).collect();
    assert_eq!(said.matches("was lost in a crash").count(), 1, "{said}");
    let lost = bench
        .execs()
        .iter()
        .filter(|exec| exec.status == Status::Lost)
        .count();
    assert_eq!(lost, 1);
}

#[test]
fn a_start_leaves_the_living_runs_of_its_own_state_directory_alone() {
    let bench = Bench::new();
    let running = bench.start(&[], ": > running; until [ -e go ]; do :; done; echo alive");
    bench.run(&[], &["true"]).assert_code(0).assert_says(&[]);
    assert_ne!(traces::groups(&bench.tag()).len(), 0);
    std::fs::write(bench.mark("go"), "").unwrap();
    let ended = running.wait();
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "alive\n");
    bench.assert_nothing_left();
}

#[test]
fn two_state_directories_never_touch_each_others_groups() {
    let (one, other) = (Bench::new(), Bench::new());
    let running = one.start(&[], ": > running; until [ -e go ]; do :; done; echo alive");
    let mut groups = traces::groups(&one.tag());
    assert!(!groups.is_empty());

    // A crash in the other, and a recovery there.
    crash(&other);
    other.run(&[], &["true"]).assert_code(0);
    other.assert_nothing_left();

    let mut still = traces::groups(&one.tag());
    groups.sort();
    still.sort();
    assert_eq!(still, groups);
    std::fs::write(one.mark("go"), "").unwrap();
    let ended = running.wait();
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "alive\n");
    one.assert_nothing_left();
}

/// The note of a dead owner is a file that somebody may have written to: it is no licence to remove
/// any group.
#[test]
fn a_forged_note_removes_no_group_of_another_state_directory() {
    let (one, other) = (Bench::new(), Bench::new());
    other.run(&[], &["true"]).assert_code(0);
    let running = one.start(&[], ": > running; until [ -e go ]; do :; done; echo alive");
    let groups = traces::groups(&one.tag());
    let mut note = String::from("{}\n");
    for group in &groups {
        note.push_str(&format!("{}\n", group.display()));
    }
    std::fs::write(other.state().join("owners/0123456789abcdef"), note).unwrap();
    other.run(&[], &["true"]).assert_code(0);
    assert_eq!(traces::groups(&one.tag()).len(), groups.len());
    std::fs::write(one.mark("go"), "").unwrap();
    let ended = running.wait();
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "alive\n");
}
