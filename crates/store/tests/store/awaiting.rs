//! Execs that wait for people: they start only when people said so, once, and outlive their server.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Barrier;
use std::thread;

use crate::common::approval::{about_exec, approval, earlier, late, no, yes};
use crate::common::{Fixture, HOUR, ended, key, on_both_databases, queued, started};
use glovebox_model::{Approval, ApprovalState, Code, Exec, SpaceId, Status};
use glovebox_store::{Admitted, ApprovalFilter, EntryFilter, NOBODY, Opened, Store, Terms};
use jiff::Timestamp;

on_both_databases! {
    what_waits_starts_when_people_said_so,
    what_waits_cannot_be_started,
    an_answer_before_anybody_waits_is_kept,
    a_dead_servers_exec_goes_on_waiting,
    what_waits_is_adopted_by_exactly_one,
    what_waits_without_its_call_is_lost,
    an_exec_that_ends_takes_its_request_with_it,
    an_approval_is_of_its_exec_alone,
    a_repeated_request_asks_nobody_again,
    an_expired_approval_starts_nothing,
    an_edited_exec_is_asked_about_anew,
    the_ledger_vouches_for_a_row_that_waits,
    what_does_not_fit_is_not_written,
}

fn awaiting() -> Exec {
    let mut record = queued();
    record.status = Status::AwaitingApproval;
    record.ids.conversation_id = Some("talk".to_owned());
    record
}

fn to_queue(record: &Exec) -> Exec {
    let mut record = record.clone();
    record.status = Status::Queued;
    record
}

const CALL: Terms<'static> = Terms {
    key: None,
    budget: None,
    sealed_call: Some(b"the call"),
};

fn wait(store: &Store, owner: &str, record: &Exec, approval: &Approval) -> Opened {
    match store.await_approval(owner, record, CALL, approval).unwrap() {
        Admitted::Opened(opened) => opened,
        Admitted::Existing(id) => panic!("{id}"),
    }
}

fn say_yes(store: &Store, approval: &Approval) {
    store
        .reply(&approval.id, yes("ann"), Timestamp::now())
        .unwrap();
}

fn status(it: &Fixture, record: &Exec) -> Status {
    let seen = it.open_again().get(&SpaceId::local(), &record.exec_id);
    seen.unwrap().status
}

fn what_waits_starts_when_people_said_so(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let opened = wait(&it.store, "o", &record, &asked);
    assert_eq!(status(&it, &record), Status::AwaitingApproval);
    assert!(it.store.approvals_decided("o").unwrap().is_empty());
    let requeue = |opened: &Opened| {
        let record = to_queue(&record);
        it.store
            .queue_approved("o", opened, &record, None, &asked.id, "d1")
    };
    let error = requeue(&opened).unwrap_err();
    assert_eq!(error.code, Code::AwaitingApproval);
    assert_eq!(status(&it, &record), Status::AwaitingApproval);

    // Answered at another server: the owner finds it.
    say_yes(&it.open_again(), &asked);
    let decided = it.store.approvals_decided("o").unwrap();
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0].state, ApprovalState::Approved);
    assert!(it.store.approvals_decided("alive").unwrap().is_empty());

    let used = requeue(&opened).unwrap();
    assert_eq!(used.state, ApprovalState::Used);
    assert_eq!(status(&it, &record), Status::Queued);
    assert!(it.store.approvals_decided("o").unwrap().is_empty());
    assert_eq!(requeue(&opened).unwrap_err().code, Code::Conflict);
    assert_eq!(
        it.texts("SELECT exec_id FROM sealed_calls"),
        [record.exec_id.as_str()]
    );
    it.store
        .start("o", &opened, &started(record.clone()))
        .unwrap();
    assert!(it.texts("SELECT exec_id FROM sealed_calls").is_empty());
    it.store
        .close(opened, ended(record.clone(), Status::Succeeded))
        .unwrap();
    let filter = EntryFilter {
        exec_id: Some(record.exec_id),
        ..EntryFilter::default()
    };
    let mut story = it.store.query(&SpaceId::local(), &filter).unwrap().items;
    story.reverse();
    let told: Vec<String> = story
        .iter()
        .map(|entry| match entry.body["event"].as_str() {
            Some(event) => event.to_owned(),
            None => entry.kind.to_string(),
        })
        .collect();
    assert_eq!(
        told,
        [
            "planned",
            "approval.requested",
            "approval.replied",
            "approval.approved",
            "approval.used",
            "exec.approved",
            "started",
            "outcome"
        ]
    );
    it.assert_sound();
}

fn what_waits_cannot_be_started(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let opened = wait(&it.store, "o", &record, &asked);
    for _ in 0..2 {
        let error = it.store.start("o", &opened, &started(record.clone()));
        let error = error.unwrap_err();
        assert_eq!(error.code, Code::Conflict);
        assert!(error.message.contains("waits for an approval"), "{error}");
        // Not even approved: it must be used up first.
        let _ = it.store.reply(&asked.id, yes("ann"), Timestamp::now());
    }
    assert!(it.store.adopt_queued("o", NOBODY).unwrap().is_empty());
    assert_eq!(status(&it, &record), Status::AwaitingApproval);
    it.assert_sound();
}

fn an_answer_before_anybody_waits_is_kept(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let opened = wait(&it.store, "o", &record, &asked);
    it.store
        .reply(&asked.id, no("ann"), Timestamp::now())
        .unwrap();
    let decided = it.open_again().approvals_decided("o").unwrap();
    assert_eq!(decided[0].state, ApprovalState::Denied);
    let closed = it
        .store
        .close(opened, ended(record, Status::PolicyDenied))
        .unwrap();
    assert!(closed.receipt.is_some());
    let seen = it.store.approval(None, &asked.id).unwrap();
    assert_eq!(seen.state, ApprovalState::Denied, "as it was");
    assert!(it.store.approvals_decided("o").unwrap().is_empty());
    it.assert_sound();
}

fn a_dead_servers_exec_goes_on_waiting(it: Fixture) {
    let (first, second) = (awaiting(), awaiting());
    let asked = [about_exec(&first), about_exec(&second)];
    let _lost = wait(&it.store, "gone", &first, &asked[0]);
    let _lost = wait(&it.store, "gone", &second, &asked[1]);
    say_yes(&it.store, &asked[0]);
    it.dies("gone");
    let after = it.open_again();
    assert!(after.adopt_queued("gone", NOBODY).unwrap().is_empty());
    assert!(after.recover("gone").unwrap().is_empty(), "nothing is lost");
    assert_eq!(after.open_execs(NOBODY).unwrap().len(), 2);
    assert!(after.stray_owners(&it.state).unwrap().is_empty());
    // People answer while no server is there.
    say_yes(&after, &asked[1]);
    let adopted = after.adopt_awaiting(NOBODY, "alive").unwrap();
    assert_eq!(adopted.len(), 2);
    assert_eq!(after.approvals_decided("alive").unwrap().len(), 2);
    for (adopted, asked) in adopted.into_iter().zip(&asked) {
        assert_eq!(adopted.sealed_call, b"the call");
        let record = to_queue(&adopted.record);
        let opened = &adopted.opened;
        after
            .queue_approved("alive", opened, &record, None, &asked.id, "d1")
            .unwrap();
        after
            .start("alive", opened, &started(adopted.record))
            .unwrap();
    }
    it.assert_sound();
}

fn what_waits_is_adopted_by_exactly_one(it: Fixture) {
    for _ in 0..6 {
        let record = awaiting();
        let _lost = wait(&it.store, "gone", &record, &about_exec(&record));
    }
    it.dies("gone");
    let others: Vec<Store> = (0..3).map(|_| it.open_again()).collect();
    let start = Barrier::new(others.len());
    let counts: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = others
            .iter()
            .enumerate()
            .map(|(number, store)| {
                let start = &start;
                scope.spawn(move || {
                    let owner = format!("new{number}");
                    store.enlist(&owner, HOUR).unwrap();
                    start.wait();
                    store.recover("gone").unwrap();
                    store.adopt_awaiting(NOBODY, &owner).unwrap().len()
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<usize>(), 6);
    it.assert_sound();
}

fn what_waits_without_its_call_is_lost(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let _lost = wait(&it.store, "gone", &record, &asked);
    it.execute("DELETE FROM sealed_calls");
    it.dies("gone");
    let lost = it.store.recover("gone").unwrap();
    assert_eq!(lost.len(), 1);
    assert!(
        lost[0]
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("never started")
    );
    let seen = it.store.approval(None, &asked.id).unwrap();
    assert_eq!(seen.state, ApprovalState::Void);
    it.assert_sound();
}

fn an_exec_that_ends_takes_its_request_with_it(it: Fixture) {
    let (canceled, approved) = (awaiting(), awaiting());
    for (record, answered) in [(canceled, false), (approved, true)] {
        let asked = about_exec(&record);
        let opened = wait(&it.store, "o", &record, &asked);
        if answered {
            say_yes(&it.store, &asked);
        }
        it.store
            .close(opened, ended(record, Status::Canceled))
            .unwrap();
        let seen = it.open_again().approval(None, &asked.id).unwrap();
        assert_eq!(seen.state, ApprovalState::Void);
        let late = it.store.reply(&asked.id, yes("bob"), Timestamp::now());
        assert_eq!(late.unwrap_err().code, Code::Conflict);
    }
    assert!(it.texts("SELECT exec_id FROM sealed_calls").is_empty());
    it.assert_sound();
}

fn an_approval_is_of_its_exec_alone(it: Fixture) {
    let (mine, other) = (awaiting(), awaiting());
    let asked = [about_exec(&mine), about_exec(&other)];
    let opened = wait(&it.store, "o", &mine, &asked[0]);
    let _other = wait(&it.store, "o", &other, &asked[1]);
    say_yes(&it.store, &asked[1]);
    let queue = |owner: &str, approval: &Approval, digest: &str| {
        let record = to_queue(&mine);
        it.store
            .queue_approved(owner, &opened, &record, None, &approval.id, digest)
    };
    let error = queue("o", &asked[1], "d1").unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("another exec's"), "{error}");
    say_yes(&it.store, &asked[0]);
    for (owner, digest) in [("o", "d2"), ("alive", "d1")] {
        let error = queue(owner, &asked[0], digest).unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{owner} {digest}");
    }
    assert_eq!(status(&it, &mine), Status::AwaitingApproval);
    queue("o", &asked[0], "d1").unwrap();
    it.assert_sound();
}

fn a_repeated_request_asks_nobody_again(it: Fixture) {
    let record = awaiting();
    let key = key("k", 1);
    let terms = Terms {
        key: Some(&key),
        ..CALL
    };
    let asked = about_exec(&record);
    let first = it.store.await_approval("o", &record, terms, &asked);
    assert!(matches!(first.unwrap(), Admitted::Opened(_)));
    let again = awaiting();
    let asked_again = about_exec(&again);
    let second = it.store.await_approval("o", &again, terms, &asked_again);
    let Admitted::Existing(id) = second.unwrap() else {
        panic!("it was asked again");
    };
    assert_eq!(id, record.exec_id);
    let all = it.store.approvals(&ApprovalFilter::default()).unwrap();
    assert_eq!(all.items, [asked]);
}

fn an_expired_approval_starts_nothing(it: Fixture) {
    let record = awaiting();
    let asked = late(about_exec(&record));
    let opened = wait(&it.store, "o", &record, &asked);
    it.store.reply(&asked.id, yes("ann"), earlier()).unwrap();
    let requeued = to_queue(&record);
    let error = it
        .store
        .queue_approved("o", &opened, &requeued, None, &asked.id, "d1")
        .unwrap_err();
    assert_eq!(error.code, Code::Expired);
    assert_eq!(status(&it, &record), Status::AwaitingApproval);
    let decided = it.store.approvals_decided("o").unwrap();
    assert_eq!(decided[0].state, ApprovalState::Expired, "written down");
    it.store
        .close(opened, ended(record, Status::PolicyDenied))
        .unwrap();
    it.assert_sound();
}

fn an_edited_exec_is_asked_about_anew(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let opened = wait(&it.store, "o", &record, &asked);
    say_yes(&it.store, &asked);
    let anew = about_exec(&record);
    it.store
        .await_again("o", &opened, &record, Some(b"another call"), &anew)
        .unwrap();
    let before = it.store.approval(None, &asked.id).unwrap();
    assert_eq!(before.state, ApprovalState::Void);
    assert!(it.store.approvals_decided("o").unwrap().is_empty());
    say_yes(&it.store, &anew);
    let requeued = to_queue(&record);
    let queue = |call: Option<&[u8]>, approval: &Approval| {
        it.store
            .queue_approved("o", &opened, &requeued, call, &approval.id, "d1")
    };
    assert_eq!(queue(None, &asked).unwrap_err().code, Code::Conflict);
    queue(Some(b"the last call"), &anew).unwrap();
    // From the queue people can be asked too, when policy changed.
    let third = about_exec(&record);
    it.store
        .await_again("o", &opened, &record, None, &third)
        .unwrap();
    assert_eq!(status(&it, &record), Status::AwaitingApproval);
    let given = it.store.adopt_awaiting("o", NOBODY).unwrap();
    assert_eq!(given[0].sealed_call, b"the last call");
    it.assert_sound();
}

fn the_ledger_vouches_for_a_row_that_waits(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let _open = wait(&it.store, "o", &record, &asked);
    say_yes(&it.store, &asked);
    it.assert_sound();
    for (edit, undo) in [
        (
            "record = replace(record, 'curl', 'true')",
            "record = replace(record, 'true', 'curl')",
        ),
        ("owner_id = 'gone'", "owner_id = 'o'"),
    ] {
        it.execute(&format!("UPDATE sandbox_execs SET {edit}"));
        assert!(!it.verify().is_sound(), "{edit}");
        it.execute(&format!("UPDATE sandbox_execs SET {undo}"));
        it.assert_sound();
    }
    it.execute("DELETE FROM sandbox_execs");
    assert!(!it.verify().is_sound());
}

fn what_does_not_fit_is_not_written(it: Fixture) {
    let record = awaiting();
    let asked = about_exec(&record);
    let bare = Terms::default();
    let refused = [
        it.store.await_approval("o", &record, bare, &asked),
        it.store.await_approval("o", &queued(), CALL, &asked),
        it.store
            .await_approval("o", &to_queue(&record), CALL, &asked),
        it.store.await_approval("o", &record, CALL, &approval()),
        it.store.admit("o", &record, CALL),
    ];
    for refused in refused {
        let code = refused.unwrap_err().code;
        assert!(matches!(code, Code::Internal | Code::Conflict), "{code}");
    }
    assert!(it.texts("SELECT exec_id FROM sandbox_execs").is_empty());
    assert!(it.texts("SELECT exec_id FROM approvals").is_empty());
}
