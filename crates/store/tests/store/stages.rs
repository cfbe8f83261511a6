//! Opening, closing, refusing and recovering execs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use crate::common::{Fixture, ended, fixture, on_both_databases, run_one, running, running_in};
use glovebox_model::{Code, SpaceId, Stage, Status};
use glovebox_store::{EntryFilter, ExecFilter, Kind};

on_both_databases! {
    an_exec_is_on_disk_before_it_starts_and_has_a_receipt_after_it_ends,
    an_exec_ends_only_once,
    what_a_dead_owner_left_open_is_lost_and_the_rest_is_untouched,
    a_refusal_is_row_and_entry_at_once,
    a_wrong_status_is_refused_and_leaves_nothing,
    a_client_id_is_used_once_per_space,
    spaces_do_not_see_each_other,
    the_ledger_holds_no_contents_and_no_arguments,
    threads_share_commits_and_one_failing_job_fails_alone,
}

fn an_exec_is_on_disk_before_it_starts_and_has_a_receipt_after_it_ends(it: Fixture) {
    let record = running();
    let opened = it.store.plan("owner", &record).unwrap();
    assert_eq!(opened.exec_id(), &record.exec_id);
    let seen = it
        .open_again()
        .get(&SpaceId::local(), &record.exec_id)
        .unwrap();
    assert_eq!(seen, record);

    let end = ended(record.clone(), Status::Succeeded);
    let closed = it.store.close(opened, end.clone()).unwrap();
    let receipt = closed.receipt.clone().unwrap();
    assert_eq!(receipt.seq, 2);
    let mut without = closed.clone();
    without.receipt = None;
    assert_eq!(without, end);
    assert_eq!(
        it.store.get(&SpaceId::local(), &record.exec_id).unwrap(),
        closed
    );
    let tail = it.store.tail(&SpaceId::local(), 10).unwrap();
    let kinds: Vec<Kind> = tail.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Planned, Kind::Outcome]);
    assert_eq!(tail[1].receipt(), receipt);
    assert_eq!(tail[1].prev_hash, tail[0].hash);
    assert!(it.verify().is_sound());
}

fn an_exec_ends_only_once(it: Fixture) {
    let record = running();
    let opened = it.store.plan("gone", &record).unwrap();
    it.dies("gone");
    let lost = it.store.recover("gone").unwrap();
    assert_eq!(lost.len(), 1);
    let unclosed = it
        .store
        .close(opened, ended(record.clone(), Status::Succeeded))
        .unwrap_err();
    assert_eq!(unclosed.error.code, Code::Conflict);
    assert_eq!(unclosed.error.stage, Stage::Close);
    assert_eq!(unclosed.error.exec_id, Some(record.exec_id.clone()));
    let kept = it.store.get(&SpaceId::local(), &record.exec_id).unwrap();
    assert_eq!(kept.status, Status::Lost);
    assert!(it.verify().is_sound());
}

fn what_a_dead_owner_left_open_is_lost_and_the_rest_is_untouched(it: Fixture) {
    let mut left = running();
    left.status = Status::Queued;
    let other_space = running_in("other".parse().unwrap());
    let living = running();
    let _left = it.store.plan("gone", &left).unwrap();
    let _other = it.store.plan("gone", &other_space).unwrap();
    let _living = it.store.plan("alive", &living).unwrap();
    let done = {
        let record = running();
        let opened = it.store.plan("gone", &record).unwrap();
        it.store
            .close(opened, ended(record, Status::Failed))
            .unwrap()
    };

    it.dies("gone");
    let lost = it.store.recover("gone").unwrap();
    let ids: BTreeSet<_> = lost.iter().map(|exec| exec.exec_id.clone()).collect();
    assert_eq!(
        ids,
        BTreeSet::from([left.exec_id.clone(), other_space.exec_id])
    );
    for exec in &lost {
        assert_eq!(exec.status, Status::Lost);
        assert_eq!(exec.error.as_ref().unwrap().code, Code::Lost);
        assert!(exec.ended_at.is_some() && exec.receipt.is_some());
    }
    assert!(it.store.recover("gone").unwrap().is_empty());
    let space = SpaceId::local();
    assert_eq!(it.store.get(&space, &living.exec_id).unwrap(), living);
    assert_eq!(it.store.get(&space, &done.exec_id).unwrap(), done);
    let filter = EntryFilter {
        kind: Some(Kind::Recovered),
        ..EntryFilter::default()
    };
    let recovered = it.store.query(&space, &filter).unwrap().items;
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].exec_id, Some(left.exec_id));
    assert!(it.verify().is_sound());
}

#[test]
fn owners_without_a_file_that_left_execs_open_are_strays() {
    let it = fixture();
    let owner = glovebox_store::Owner::claim(&it.state).unwrap();
    let _alive = it.store.plan(owner.id(), &running()).unwrap();
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
    let id = owner.id().to_owned();
    drop(owner);
    let strays = it.store.stray_owners(&it.state).unwrap();
    assert_eq!(strays, std::slice::from_ref(&id));
    assert_eq!(it.store.recover(&id).unwrap().len(), 1);
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
}

fn a_refusal_is_row_and_entry_at_once(it: Fixture) {
    let mut record = ended(running(), Status::PolicyDenied);
    record.error = Some(glovebox_model::Error::new(
        Code::PolicyDenied,
        Stage::Resolve,
        "network is not allowed to hunter2",
    ));
    let refused = it.store.refuse(record.clone()).unwrap();
    assert_eq!(refused.receipt.as_ref().unwrap().seq, 1);
    assert_eq!(
        it.store.get(&SpaceId::local(), &record.exec_id).unwrap(),
        refused
    );
    let entry = it.store.tail(&SpaceId::local(), 1).unwrap().remove(0);
    assert_eq!(entry.kind, Kind::Refused);
    for tag in [
        "status:policy_denied",
        "error:policy_denied",
        "severity:warning",
    ] {
        assert!(
            entry.tags.iter().any(|have| have == tag),
            "{:?}",
            entry.tags
        );
    }
    assert_eq!(it.store.refuse(record).unwrap_err().code, Code::Conflict);
    assert!(it.verify().is_sound());
}

fn a_wrong_status_is_refused_and_leaves_nothing(it: Fixture) {
    let record = running();
    assert!(
        it.store
            .plan("o", &ended(record.clone(), Status::Failed))
            .is_err()
    );
    assert!(it.store.refuse(record.clone()).is_err());
    let opened = it.store.plan("o", &record).unwrap();
    let unclosed = it.store.close(opened, record.clone()).unwrap_err();
    assert_eq!(unclosed.error.code, Code::Internal);
    let other = ended(running(), Status::Succeeded);
    let unclosed = it.store.close(unclosed.opened, other).unwrap_err();
    assert_eq!(unclosed.error.code, Code::Internal);
    let end = ended(record, Status::Succeeded);
    assert!(
        it.store.close(unclosed.opened, end).is_ok(),
        "it is still open"
    );
    assert_eq!(it.verify().entries, 2);
}

fn a_client_id_is_used_once_per_space(it: Fixture) {
    let mut first = running();
    first.client_id = Some("mine".parse().unwrap());
    let _first = it.store.plan("o", &first).unwrap();
    let mut again = running();
    again.client_id = first.client_id.clone();
    let error = it.store.plan("o", &again).unwrap_err();
    assert_eq!((error.code, error.stage), (Code::Conflict, Stage::Open));
    assert_eq!(error.exec_id, Some(first.exec_id.clone()));
    assert!(error.message.contains("`mine`"), "{error}");
    let error = it.store.plan("o", &first).unwrap_err();
    assert_eq!(error.code, Code::Conflict);

    let mut elsewhere = running_in("other".parse().unwrap());
    elsewhere.client_id = first.client_id.clone();
    assert!(it.store.plan("o", &elsewhere).is_ok());
    // One of each, and what the operator's ledger notes of the other space.
    assert_eq!(it.verify().entries, 3);
}

fn spaces_do_not_see_each_other(it: Fixture) {
    let mine = run_one(&it.store);
    let other: SpaceId = "other".parse().unwrap();
    let error = it.store.get(&other, &mine.exec_id).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(
        it.store
            .list(&other, &ExecFilter::default())
            .unwrap()
            .items
            .is_empty()
    );
    assert!(it.store.tail(&other, 10).unwrap().is_empty());
    let found = it.store.query(&other, &EntryFilter::default()).unwrap();
    assert!(found.items.is_empty());
}

fn the_ledger_holds_no_contents_and_no_arguments(it: Fixture) {
    run_one(&it.store);
    let mut failed = ended(running(), Status::Error);
    failed.error = Some(glovebox_model::Error::new(
        Code::Internal,
        Stage::Run,
        "something about hunter2",
    ));
    it.store.refuse(failed).unwrap();
    for entry in it.store.tail(&SpaceId::local(), 10).unwrap() {
        let text = serde_json::to_string(&entry).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(!text.contains("API_KEY"), "{text}");
    }
}

#[test]
fn the_row_has_the_columns_of_sandbox_execs() {
    let it = fixture();
    let mut record = running();
    record.client_id = Some("mine".parse().unwrap());
    record.ids.task_id = Some("t1".to_owned());
    record.artifacts_dir = Some("projects/proj/artifacts/x".to_owned());
    record.stdout_truncated = true;
    let opened = it.store.plan("o", &record).unwrap();
    it.store
        .close(opened, ended(record.clone(), Status::Succeeded))
        .unwrap();
    let columns = "exec_id, project_id, task_id, conversation_id, skill_id, image, cmd, args, cwd,
        env_keys, policy_snapshot, status, exit_code, error_reason, started_at, ended_at,
        duration_ms, artifacts_path, stdout_truncated, stderr_truncated, idempotency_key";
    let row: Vec<rusqlite::types::Value> = it
        .database()
        .query_row(&format!("SELECT {columns} FROM sandbox_execs"), (), |row| {
            (0..21).map(|index| row.get(index)).collect()
        })
        .unwrap();
    let text = |text: &str| rusqlite::types::Value::from(text.to_owned());
    assert_eq!(row[0], text(record.exec_id.as_str()));
    assert_eq!(row[2], text("t1"));
    assert_eq!(row[3], rusqlite::types::Value::Null);
    assert_eq!(row[7], text(r#"["-H","Authorization: hunter2"]"#));
    assert_eq!(row[9], text(r#"["API_KEY"]"#));
    let rusqlite::types::Value::Text(policy) = &row[10] else {
        panic!("{row:?}");
    };
    assert!(
        policy.contains("memory_bytes"),
        "the whole effective policy: {policy}"
    );
    assert_eq!(row[11], text("succeeded"));
    assert_eq!(row[16], rusqlite::types::Value::Integer(1000));
    assert_eq!(row[17], text("projects/proj/artifacts/x"));
    assert_eq!(row[18], rusqlite::types::Value::Integer(1));
    assert_eq!(row[20], text("mine"));
}

fn threads_share_commits_and_one_failing_job_fails_alone(it: Fixture) {
    let mut taken = running();
    taken.client_id = Some("taken".parse().unwrap());
    let _taken = it.store.plan("o", &taken).unwrap();
    let start = Barrier::new(40);
    let outcomes: Vec<bool> = thread::scope(|scope| {
        let threads: Vec<_> = (0..40)
            .map(|number| {
                let (store, start) = (&it.store, &start);
                scope.spawn(move || {
                    let mut record = running();
                    if number % 4 == 0 {
                        record.client_id = Some("taken".parse().unwrap());
                    }
                    start.wait();
                    for _ in 0..5 {
                        match store.plan("o", &record) {
                            Ok(opened) => {
                                let end = ended(record.clone(), Status::Succeeded);
                                store.close(opened, end).unwrap();
                            }
                            Err(error) => {
                                assert_eq!(error.code, Code::Conflict);
                                return false;
                            }
                        }
                        record.exec_id = crate::common::exec_id();
                    }
                    true
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(outcomes.iter().filter(|ok| **ok).count(), 30);
    let verification = it.verify();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, 1 + 30 * 5 * 2);
    let times: BTreeSet<_> = it
        .store
        .tail(&SpaceId::local(), 1000)
        .unwrap()
        .iter()
        .map(|entry| entry.at)
        .collect();
    assert!(
        times.len() < 301,
        "every entry had a commit of its own: nothing was shared"
    );
}

#[test]
fn who_writes_all_day_keeps_a_longer_log_and_leaves_none() {
    let it = crate::common::fixture();
    let server = glovebox_store::Store::open_to_serve(&it.state, glovebox_store::PATIENCE).unwrap();
    let log = it.state.database().with_extension("db-wal");
    let pages = || std::fs::metadata(&log).unwrap().len() / 4096;
    let mut execs = Vec::new();
    while pages() < 256 {
        execs.push(run_one(&server));
        assert!(execs.len() < 200, "the log stays short");
    }
    drop(server);
    assert_eq!(pages(), 0);
    let space = SpaceId::local();
    for exec in execs {
        assert_eq!(it.store.get(&space, &exec.exec_id).unwrap(), exec);
    }
    it.assert_sound();
}
