//! Idempotency keys and budgets: once means once, and a budget is never exceeded, however many ask.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use crate::common::{
    Fixture, HOUR, ended, exec_id, key, kinds, on_both_databases, queued, running, running_in,
    started,
};
use glovebox_model::{Artifact, Budget, Code, Exec, SpaceId, Status};
use glovebox_store::{
    Admitted, BudgetTerms, Kind, Once, Owner, Refused, RequestKey, StoredAnswer, Terms,
};

on_both_databases! {
    the_same_request_twice_is_one_exec,
    fifty_threads_with_one_key_make_one_exec,
    a_key_belongs_to_its_space_and_its_caller,
    a_refusal_remembers_its_key,
    a_call_is_kept_only_while_its_exec_waits,
    a_budget_of_execs_is_exact_under_sixteen_threads,
    what_an_exec_used_counts_against_its_agent,
    a_refused_admission_leaves_nothing,
    other_requests_are_done_once_too,
    what_a_dead_owner_was_at_is_done_again,
    what_is_old_is_forgotten_in_bounded_steps,
}

fn with_key(key: &RequestKey) -> Terms<'_> {
    Terms {
        key: Some(key),
        ..Terms::default()
    }
}

fn with_budget(agent: &str, budget: Budget) -> Terms<'_> {
    Terms {
        budget: Some(BudgetTerms { agent, budget }),
        ..Terms::default()
    }
}

fn of_agent(agent: &str) -> Exec {
    let mut record = running();
    record.ids.agent_id = Some(agent.to_owned());
    record
}

fn the_same_request_twice_is_one_exec(it: Fixture) {
    let first = running();
    let admitted = it.store.admit("o", &first, with_key(&key("k", 1))).unwrap();
    assert!(matches!(admitted, Admitted::Opened(_)));
    let again = it.open_again();
    let admitted = again
        .admit("o", &running(), with_key(&key("k", 1)))
        .unwrap();
    assert!(matches!(admitted, Admitted::Existing(id) if id == first.exec_id));
    let other = again
        .admit("o", &running(), with_key(&key("k", 2)))
        .unwrap_err();
    assert_eq!(other.code, Code::IdempotencyConflict);
    assert_eq!(other.exec_id, Some(first.exec_id));
    assert!(other.message.contains("`k`") && !other.hints.is_empty());
    assert_eq!(kinds(&it.store), [Kind::Planned]);
    it.assert_sound();
}

fn fifty_threads_with_one_key_make_one_exec(it: Fixture) {
    let key = key("k", 1);
    let start = Barrier::new(50);
    let seen: Vec<(bool, String)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    let record = running();
                    start.wait();
                    match it.store.admit("o", &record, with_key(&key)).unwrap() {
                        Admitted::Opened(opened) => (true, opened.exec_id().to_string()),
                        Admitted::Existing(id) => (false, id.to_string()),
                    }
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(seen.iter().filter(|(opened, _)| *opened).count(), 1);
    let ids: BTreeSet<&String> = seen.iter().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(kinds(&it.store), [Kind::Planned]);
    it.assert_sound();
}

fn a_key_belongs_to_its_space_and_its_caller(it: Fixture) {
    let opens = |record: &Exec, key: &RequestKey| {
        let admitted = it.store.admit("o", record, with_key(key)).unwrap();
        matches!(admitted, Admitted::Opened(_))
    };
    assert!(opens(&running(), &key("k", 1)));
    let mut of_other = key("k", 2);
    of_other.caller = "t_other".to_owned();
    assert!(opens(&running(), &of_other));
    assert!(opens(&running_in("other".parse().unwrap()), &key("k", 3)));
    assert!(!opens(&running(), &key("k", 1)));
}

fn a_refusal_remembers_its_key(it: Fixture) {
    let denied = || ended(running(), Status::PolicyDenied);
    let key_1 = key("k", 1);
    let Refused::Recorded(first) = it.store.refuse_with(denied(), Some(&key_1)).unwrap() else {
        panic!("the key was new");
    };
    let again = it.store.refuse_with(denied(), Some(&key_1)).unwrap();
    assert!(matches!(again, Refused::Existing(id) if id == first.exec_id));
    let admitted = it.store.admit("o", &running(), with_key(&key_1)).unwrap();
    assert!(matches!(admitted, Admitted::Existing(id) if id == first.exec_id));
    let error = it
        .store
        .refuse_with(denied(), Some(&key("k", 2)))
        .unwrap_err();
    assert_eq!(error.code, Code::IdempotencyConflict);
    assert_eq!(kinds(&it.store), [Kind::Refused]);
    it.assert_sound();
}

fn a_call_is_kept_only_while_its_exec_waits(it: Fixture) {
    let kept = || it.texts("SELECT exec_id FROM sealed_calls").len();
    let terms = Terms {
        sealed_call: Some(b"sealed"),
        ..Terms::default()
    };
    let error = it.store.admit("o", &running(), terms).unwrap_err();
    assert_eq!(error.code, Code::Internal);
    let open = |record: &Exec| match it.store.admit("o", record, terms).unwrap() {
        Admitted::Opened(opened) => opened,
        Admitted::Existing(id) => panic!("{id}"),
    };
    let first = queued();
    let opened = open(&first);
    assert_eq!(kept(), 1);
    let first = started(first);
    it.store.start("o", &opened, &first).unwrap();
    assert_eq!(kept(), 0);
    let seen = it.store.get(&SpaceId::local(), &first.exec_id).unwrap();
    assert_eq!(seen, first);
    it.store
        .close(opened, ended(first, Status::Succeeded))
        .unwrap();
    let second = queued();
    let opened = open(&second);
    it.store
        .close(opened, ended(second, Status::Canceled))
        .unwrap();
    assert_eq!(kept(), 0);
    assert_eq!(
        kinds(&it.store),
        [
            Kind::Planned,
            Kind::Started,
            Kind::Outcome,
            Kind::Planned,
            Kind::Outcome
        ]
    );
    it.assert_sound();
}

fn a_budget_of_execs_is_exact_under_sixteen_threads(it: Fixture) {
    let budget = Budget {
        execs_per_hour: Some(25),
        ..Budget::default()
    };
    let other = it.open_again();
    let start = Barrier::new(16);
    let admitted: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|number| {
                let store = if number % 2 == 0 { &it.store } else { &other };
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let attempts = (0..5).map(|_| {
                        match store.admit("o", &of_agent("a"), with_budget("a", budget)) {
                            Ok(_) => 1,
                            Err(error) => {
                                assert_eq!(error.code, Code::BudgetExceeded, "{error}");
                                let after = error.retry.after_ms.unwrap();
                                assert!((1..=61 * 60_000).contains(&after), "{after}");
                                0
                            }
                        }
                    });
                    attempts.sum::<usize>()
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(admitted, 25);
    // Neither another agent nor the agent of that name in another space pays for it.
    let terms = with_budget("b", budget);
    assert!(it.store.admit("o", &of_agent("b"), terms).is_ok());
    let mut elsewhere = running_in("other".parse().unwrap());
    elsewhere.ids.agent_id = Some("a".to_owned());
    let terms = with_budget("a", budget);
    assert!(it.store.admit("o", &elsewhere, terms).is_ok());
    // What was counted more than an hour ago does not count.
    it.execute("UPDATE budget_minutes SET minute = minute - 62 WHERE agent = 'a'");
    assert!(it.store.admit("o", &of_agent("a"), terms).is_ok());
    it.assert_sound();
}

fn what_an_exec_used_counts_against_its_agent(it: Fixture) {
    let run = |cpu_ms: u64, bytes: u64| {
        let record = of_agent("a");
        let opened = it.store.plan("o", &record).unwrap();
        let mut end = ended(record, Status::Succeeded);
        end.usage.cpu_ms = cpu_ms;
        (end.stdout_bytes, end.stderr_bytes) = (bytes, bytes);
        end.artifacts = vec![Artifact {
            path: serde_json::from_value(serde_json::json!("a")).unwrap(),
            size: bytes,
            hash: "00".repeat(32),
        }];
        it.store.close(opened, end).unwrap();
    };
    let admit = |budget| {
        it.store
            .admit("o", &of_agent("a"), with_budget("a", budget))
    };
    let cpu = Budget {
        cpu_seconds_per_hour: Some(2),
        ..Budget::default()
    };
    let bytes = Budget {
        bytes_out_per_hour: Some(100),
        ..Budget::default()
    };
    run(1999, 33);
    assert!(admit(cpu).is_ok() && admit(bytes).is_ok());
    run(1, 1);
    let error = admit(cpu).unwrap_err();
    assert!(error.message.contains("cpu seconds"), "{error}");
    let error = admit(bytes).unwrap_err();
    assert!(error.message.contains("bytes of output"), "{error}");
    let nothing = Budget {
        execs_per_hour: Some(0),
        ..Budget::default()
    };
    let error = admit(nothing).unwrap_err();
    assert_eq!((error.retry.allowed, error.retry.after_ms), (false, None));
    it.assert_sound();
}

fn a_refused_admission_leaves_nothing(it: Fixture) {
    let none = Budget {
        execs_per_hour: Some(0),
        ..Budget::default()
    };
    let key = key("k", 1);
    let terms = Terms {
        key: Some(&key),
        ..with_budget("a", none)
    };
    it.store.admit("o", &of_agent("a"), terms).unwrap_err();
    assert!(kinds(&it.store).is_empty());
    assert!(it.texts("SELECT agent FROM budget_minutes").is_empty());
    let admitted = it.store.admit("o", &running(), with_key(&key)).unwrap();
    assert!(matches!(admitted, Admitted::Opened(_)), "the key is free");
}

fn answer() -> StoredAnswer {
    StoredAnswer {
        status: 201,
        body: b"{\0}".to_vec(),
        content_type: "application/json".to_owned(),
    }
}

/// An owner that is alive by whatever says so here.
fn living(it: &Fixture) -> Owner {
    let owner = Owner::claim(&it.state).unwrap();
    it.store.enlist(owner.id(), HOUR).unwrap();
    owner
}

fn other_requests_are_done_once_too(it: Fixture) {
    let owner = living(&it);
    let (space, key_1) = (SpaceId::local(), key("k", 1));
    let begin = |key: &RequestKey| it.store.begin_once(owner.id(), &space, key);
    assert_eq!(begin(&key_1).unwrap(), Once::Proceed);
    assert_eq!(begin(&key_1).unwrap(), Once::Busy);
    let error = begin(&key("k", 2)).unwrap_err();
    assert_eq!(error.code, Code::IdempotencyConflict);
    it.store
        .finish_once(&space, &key_1, Some(answer()))
        .unwrap();
    assert_eq!(begin(&key_1).unwrap(), Once::Done(answer()));
    assert_eq!(
        begin(&key("k", 2)).unwrap_err().code,
        Code::IdempotencyConflict
    );
    // One that was not done is free again, also for another request.
    assert_eq!(begin(&key("l", 1)).unwrap(), Once::Proceed);
    it.store.finish_once(&space, &key("l", 1), None).unwrap();
    assert_eq!(begin(&key("l", 2)).unwrap(), Once::Proceed);
    // An exec's key is not for anything else, nor the other way round.
    it.store
        .admit("o", &running(), with_key(&key("e", 1)))
        .unwrap();
    let error = begin(&key("e", 1)).unwrap_err();
    assert_eq!(error.code, Code::IdempotencyConflict);
    let error = it
        .store
        .admit("o", &running(), with_key(&key_1))
        .unwrap_err();
    assert_eq!(error.code, Code::IdempotencyConflict);
}

fn what_a_dead_owner_was_at_is_done_again(it: Fixture) {
    let (first, second) = (living(&it), living(&it));
    let (space, key) = (SpaceId::local(), key("k", 1));
    let begin = |owner: &str| it.store.begin_once(owner, &space, &key).unwrap();
    assert_eq!(begin(first.id()), Once::Proceed);
    assert_eq!(begin(second.id()), Once::Busy);
    it.dies(first.id());
    drop(first);
    assert_eq!(begin(second.id()), Once::Proceed);
    assert_eq!(begin(second.id()), Once::Busy);
}

fn what_is_old_is_forgotten_in_bounded_steps(it: Fixture) {
    it.store
        .admit("o", &running(), with_key(&key("old", 1)))
        .unwrap();
    it.execute("UPDATE request_keys SET created_at = created_at - 100000000000");
    it.store
        .admit("o", &running(), with_key(&key("new", 1)))
        .unwrap();
    let mut record = of_agent("a");
    record.exec_id = exec_id();
    let terms = with_budget("a", Budget::default());
    it.store.admit("o", &record, terms).unwrap();
    it.execute("UPDATE budget_minutes SET minute = minute - 62");
    assert_eq!(it.store.sweep(crate::common::HOUR).unwrap(), 2);
    assert_eq!(it.store.sweep(crate::common::HOUR).unwrap(), 0);
    assert_eq!(it.texts("SELECT key FROM request_keys"), ["new"]);
    let admitted = it.store.admit("o", &running(), with_key(&key("old", 2)));
    assert!(matches!(admitted, Ok(Admitted::Opened(_))));
}
