//! Several servers on one store: what waits is started by exactly one, and who was taken for dead
//! writes nothing more.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::{
    Fixture, HOUR, ended, kinds, on_both_databases, postgres_fixture, queued, running, started,
};
use glovebox_model::{Code, Exec, SpaceId, Status};
use glovebox_store::{Admitted, EntryFilter, ExecFilter, Kind, NOBODY, Opened, Store, Terms};

on_both_databases! {
    a_queued_exec_is_adopted_and_started_by_exactly_one,
    what_was_adopted_is_not_the_old_owners_any_more,
    a_queued_exec_without_its_call_never_started,
    what_is_given_to_nobody_waits_for_anybody,
    starting_is_for_what_waits,
    the_last_entry_vouches_for_a_row_that_is_still_open,
    a_cancellation_reaches_the_owner_once,
    a_client_id_finds_its_exec,
}

fn enqueue(store: &Store, owner: &str, record: &Exec) -> Opened {
    let terms = Terms {
        sealed_call: Some(b"the call"),
        ..Terms::default()
    };
    match store.admit(owner, record, terms).unwrap() {
        Admitted::Opened(opened) => opened,
        Admitted::Existing(id) => panic!("{id}"),
    }
}

fn a_queued_exec_is_adopted_and_started_by_exactly_one(it: Fixture) {
    let records: Vec<Exec> = (0..10).map(|_| queued()).collect();
    for record in &records {
        let _lost = enqueue(&it.store, "gone", record);
    }
    it.dies("gone");
    let others: Vec<Store> = (0..4).map(|_| it.open_again()).collect();
    let start = Barrier::new(others.len());
    let started_by: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = others
            .iter()
            .enumerate()
            .map(|(number, store)| {
                let start = &start;
                scope.spawn(move || {
                    let owner = format!("new{number}");
                    store.enlist(&owner, HOUR).unwrap();
                    start.wait();
                    let adopted = store.adopt_queued("gone", &owner).unwrap();
                    store.recover("gone").unwrap();
                    let count = adopted.len();
                    for it in adopted {
                        assert_eq!(it.sealed_call, b"the call");
                        let record = started(it.record);
                        store.start(&owner, &it.opened, &record).unwrap();
                        let again = store.start(&owner, &it.opened, &record).unwrap_err();
                        assert_eq!(again.code, Code::Conflict);
                        let end = ended(record, Status::Succeeded);
                        store.close(it.opened, end).unwrap();
                    }
                    count
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(started_by.iter().sum::<usize>(), records.len());
    for record in records {
        let seen = it.store.get(&SpaceId::local(), &record.exec_id).unwrap();
        assert_eq!(seen.status, Status::Succeeded);
    }
    let starts = kinds(&it.store);
    let starts = starts.iter().filter(|kind| **kind == Kind::Started);
    assert_eq!(starts.count(), 10);
    it.assert_sound();
}

fn what_was_adopted_is_not_the_old_owners_any_more(it: Fixture) {
    let record = queued();
    let old = enqueue(&it.store, "gone", &record);
    it.dies("gone");
    let adopted = it.store.adopt_queued("gone", "alive").unwrap();
    assert_eq!(adopted.len(), 1);
    assert!(it.store.adopt_queued("gone", "alive").unwrap().is_empty());
    assert!(it.store.recover("gone").unwrap().is_empty());
    // The old one wakes up, and its lease is gone too.
    let refused = [Code::Conflict, Code::Lost];
    let error = it
        .store
        .start("gone", &old, &started(record.clone()))
        .unwrap_err();
    assert!(refused.contains(&error.code), "{error}");
    let unclosed = it
        .store
        .close(old, ended(record.clone(), Status::Failed))
        .unwrap_err();
    assert!(refused.contains(&unclosed.error.code), "{unclosed:?}");
    let seen = it.store.get(&SpaceId::local(), &record.exec_id).unwrap();
    assert_eq!(seen.status, Status::Queued);
    it.assert_sound();
    let filter = EntryFilter {
        tags: vec!["event:exec.adopted".to_owned()],
        ..EntryFilter::default()
    };
    let found = it.store.query(&SpaceId::local(), &filter).unwrap().items;
    assert_eq!(found[0].exec_id, Some(record.exec_id));
    assert_eq!(found[0].body["owner"], "alive");
}

fn a_queued_exec_without_its_call_never_started(it: Fixture) {
    let record = queued();
    let _waiting = it.store.plan("gone", &record).unwrap();
    let other = running();
    let _running = it.store.plan("gone", &other).unwrap();
    it.dies("gone");
    assert!(it.store.adopt_queued("gone", "alive").unwrap().is_empty());
    for lost in it.store.recover("gone").unwrap() {
        assert_eq!(lost.status, Status::Lost);
        let error = lost.error.unwrap();
        assert_eq!(error.code, Code::Lost);
        let never = error.message.contains("never started");
        assert_eq!(never, lost.exec_id == record.exec_id, "{error}");
        assert_eq!(error.hints[0].contains("safe to run it again"), never);
    }
    it.assert_sound();
}

fn what_is_given_to_nobody_waits_for_anybody(it: Fixture) {
    let mut record = queued();
    record.queue_position = Some(3);
    let mine = enqueue(&it.store, "o", &record);
    record.queue_position = None;
    assert_eq!(it.store.adopt_queued("o", NOBODY).unwrap().len(), 1);
    let error = it
        .store
        .start("o", &mine, &started(record.clone()))
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    it.store.retire("o").unwrap();
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
    assert!(it.store.expired_owners().unwrap().is_empty());
    it.assert_sound();
    let mut adopted = it.open_again().adopt_queued(NOBODY, "alive").unwrap();
    let adopted = adopted.remove(0);
    assert_eq!(adopted.record, record, "the place in the queue is not kept");
    it.store
        .start("alive", &adopted.opened, &started(record))
        .unwrap();
    it.assert_sound();
}

fn starting_is_for_what_waits(it: Fixture) {
    let record = running();
    let opened = it.store.plan("o", &record).unwrap();
    let error = it.store.start("o", &opened, &record).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    let waiting = queued();
    let opened_other = it.store.plan("o", &waiting).unwrap();
    let error = it
        .store
        .start("o", &opened, &started(waiting.clone()))
        .unwrap_err();
    assert_eq!(error.code, Code::Internal, "another exec's record");
    let error = it.store.start("o", &opened_other, &waiting).unwrap_err();
    assert_eq!(error.code, Code::Internal, "it still waits");
    let error = it
        .store
        .start("alive", &opened_other, &started(waiting.clone()))
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict, "another owner's");
    it.store
        .start("o", &opened_other, &started(waiting))
        .unwrap();
    assert_eq!(
        kinds(&it.store),
        [Kind::Planned, Kind::Planned, Kind::Started]
    );
    it.assert_sound();
}

fn the_last_entry_vouches_for_a_row_that_is_still_open(it: Fixture) {
    let record = queued();
    let _old = enqueue(&it.store, "gone", &record);
    it.dies("gone");
    let adopted = it.store.adopt_queued("gone", "alive").unwrap().remove(0);
    it.store
        .start("alive", &adopted.opened, &started(record))
        .unwrap();
    it.assert_sound();
    let found = |edit: &str, undo: &str, says: &str| {
        it.execute(&format!("UPDATE sandbox_execs SET {edit}"));
        let problems = it.verify().problems;
        let named = |problem: &glovebox_store::Problem| {
            problem.seq == Some(3) && problem.what.contains(says)
        };
        assert!(problems.iter().any(named), "{edit}: {problems:?}");
        it.execute(&format!("UPDATE sandbox_execs SET {undo}"));
        it.assert_sound();
    };
    found(
        "record = replace(record, 'curl', 'true')",
        "record = replace(record, 'true', 'curl')",
        "was edited",
    );
    found(
        "owner_id = 'gone'",
        "owner_id = 'alive'",
        "names another owner",
    );
}

fn a_cancellation_reaches_the_owner_once(it: Fixture) {
    let (space, record) = (SpaceId::local(), running());
    let opened = it.store.plan("alive", &record).unwrap();
    let other = it.open_again();
    other.ask_cancel(&space, &record.exec_id).unwrap();
    other.ask_cancel(&space, &record.exec_id).unwrap();
    other.ask_cancel(&space, &crate::common::exec_id()).unwrap();
    let elsewhere: SpaceId = "other".parse().unwrap();
    other.ask_cancel(&elsewhere, &record.exec_id).unwrap();
    let asked = it.store.cancels_asked("alive").unwrap();
    assert_eq!(asked, [(space.clone(), record.exec_id.clone())]);
    assert!(it.store.cancels_asked("o").unwrap().is_empty());
    let id = record.exec_id.clone();
    it.store
        .close(opened, ended(record, Status::Canceled))
        .unwrap();
    other.ask_cancel(&space, &id).unwrap();
    assert!(it.store.cancels_asked("alive").unwrap().is_empty());
    assert!(it.texts("SELECT exec_id FROM cancel_asks").is_empty());
    it.assert_sound();
}

fn a_client_id_finds_its_exec(it: Fixture) {
    let client = "mine".parse().unwrap();
    let mut ids = Vec::new();
    // Each agent has names of its own, and who is none has others.
    for agent in [None, Some("ann"), Some("bob")] {
        let mut record = running();
        record.client_id = Some("mine".parse().unwrap());
        record.ids.agent_id = agent.map(str::to_owned);
        let _open = it.store.plan("o", &record).unwrap();
        let mut again = running();
        (again.client_id, again.ids) = (record.client_id, record.ids);
        let taken = it.store.plan("o", &again).unwrap_err();
        assert_eq!(taken.code, Code::Conflict);
        assert!(taken.message.contains(record.exec_id.as_str()), "{taken}");
        ids.insert(0, record.exec_id);
    }
    let space = SpaceId::local();
    assert_eq!(it.store.find_client(&space, &client).unwrap(), ids);
    let of_ann = ExecFilter {
        agent_id: Some("ann".to_owned()),
        ..ExecFilter::default()
    };
    let listed = it.store.list(&space, &of_ann).unwrap().items;
    let listed: Vec<_> = listed.into_iter().map(|it| it.exec_id).collect();
    assert_eq!(listed, ids[1..2]);
    let other = "other".parse().unwrap();
    assert!(it.store.find_client(&other, &client).unwrap().is_empty());
    it.assert_sound();
}

#[test]
fn who_has_no_lease_writes_nothing() {
    let Some(it) = postgres_fixture() else { return };
    let error = it.store.plan("never", &running()).unwrap_err();
    assert_eq!(error.code, Code::Lost);
    let record = queued();
    let opened = enqueue(&it.store, "gone", &record);
    assert!(it.store.renew("gone", HOUR).unwrap());
    let error = it.store.recover("gone").unwrap_err();
    assert_eq!(error.code, Code::Conflict, "it is alive");
    let error = it.store.adopt_queued("gone", "alive").unwrap_err();
    assert_eq!(error.code, Code::Conflict, "it is alive");
    assert!(it.store.expired_owners().unwrap().is_empty());

    it.dies("gone");
    assert_eq!(it.store.expired_owners().unwrap(), ["gone"]);
    assert!(
        it.store.renew("gone", HOUR).unwrap(),
        "late, and still its own"
    );
    assert!(it.store.expired_owners().unwrap().is_empty());
    let other = running();
    let ran = it.store.plan("gone", &other).unwrap();

    it.dies("gone");
    let lost = it.open_again().recover("gone").unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].exec_id, other.exec_id);
    assert!(it.store.expired_owners().unwrap().is_empty());
    assert!(!it.store.renew("gone", HOUR).unwrap(), "it was taken over");
    let waits = (SpaceId::local(), record.exec_id.clone());
    assert_eq!(it.store.open_execs(NOBODY).unwrap(), [waits]);
    let error = it
        .store
        .start("gone", &opened, &started(record.clone()))
        .unwrap_err();
    assert_eq!(error.code, Code::Lost);
    let error = it.store.plan("gone", &running()).unwrap_err();
    assert!(error.message.contains("lease ran out"), "{error}");
    for (opened, record) in [(opened, record), (ran, other)] {
        let end = ended(record, Status::Canceled);
        let unclosed = it.store.close(opened, end).unwrap_err();
        assert_eq!(unclosed.error.code, Code::Conflict, "it is not its own");
    }
    it.assert_sound();
}

/// Whatever is taken first, the lease goes with it.
#[test]
fn who_lost_one_thing_can_renew_nothing() {
    let Some(it) = postgres_fixture() else { return };
    let _waits = enqueue(&it.store, "gone", &queued());
    it.dies("gone");
    assert_eq!(it.store.adopt_queued("gone", "alive").unwrap().len(), 1);
    assert!(!it.store.renew("gone", HOUR).unwrap());
}

#[test]
fn a_lease_runs_out_by_itself_and_a_retired_owner_leaves_strays() {
    let Some(it) = postgres_fixture() else { return };
    it.store.enlist("short", Duration::from_millis(1)).unwrap();
    while it.store.expired_owners().unwrap().is_empty() {
        thread::yield_now();
    }
    let _left = it.store.plan("o", &running()).unwrap();
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
    it.store.retire("o").unwrap();
    assert_eq!(it.store.stray_owners(&it.state).unwrap(), ["o"]);
    assert_eq!(it.store.expired_owners().unwrap(), ["short", "o"]);
    assert_eq!(it.store.recover("o").unwrap().len(), 1);
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
}

#[test]
fn in_a_state_directory_the_file_is_the_lease() {
    let it = crate::common::fixture();
    assert!(!it.store.is_shared());
    it.store.enlist("o", Duration::ZERO).unwrap();
    assert!(it.store.renew("o", Duration::ZERO).unwrap());
    assert!(it.store.expired_owners().unwrap().is_empty());
    it.store.retire("o").unwrap();
    assert!(it.store.plan("o", &running()).is_ok());
}
