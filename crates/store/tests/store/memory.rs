//! The audit memory: what is remembered of an exec, and how it is found again.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use crate::common::approval::{about_exec, yes};
use crate::common::{Fixture, ended, on_both_databases, queued, run, running, started};
use glovebox_model::{Code, Exec, Mode, SnapshotId, SpaceId, Status};
use glovebox_store::{
    Actor, Admitted, Entry, EntryFilter, RetentionTier, Step, Terms, TimelineFilter,
    VerifiedSnapshot,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

on_both_databases! {
    an_end_is_found_by_what_it_was,
    a_query_has_so_many_conditions_and_no_more,
    a_refusal_is_remembered_as_a_failure_that_never_ran,
    each_mode_is_found_by_its_name,
    tiers_are_found_by_age,
    a_timeline_has_what_was_planned_beside_how_it_ended,
    a_timeline_goes_on_where_the_page_before_ended,
    what_was_settled_belongs_to_its_exec,
    nothing_secret_is_remembered,
    a_snapshot_has_a_mark_until_damage_is_found,
    a_mark_that_somebody_edited_is_refused,
}

fn of_task(task: &str) -> Exec {
    let mut record = running();
    record.ids.task_id = Some(task.to_owned());
    record.ids.workflow_id = Some("nightly".to_owned());
    record.sandbox_id = Some(format!("sb_{}", "0a".repeat(16)).parse().unwrap());
    record
}

fn close(it: &Fixture, record: &Exec, status: Status) -> Exec {
    let opened = it.store.plan("o", record).unwrap();
    it.store
        .close(opened, ended(record.clone(), status))
        .unwrap()
}

fn tagged(tags: &[&str]) -> EntryFilter {
    EntryFilter {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..EntryFilter::default()
    }
}

fn find(it: &Fixture, filter: &EntryFilter) -> Vec<Entry> {
    let page = it.store.query(&SpaceId::local(), filter).unwrap();
    assert_eq!(page.next, None);
    page.items
}

fn an_end_is_found_by_what_it_was(it: Fixture) {
    let mut record = of_task("build-12");
    record.mode = Mode::Simulate;
    record.effect_count = serde_json::from_value(json!({
        "total": 3, "violations": 1, "dropped": 2,
    }))
    .unwrap();
    record.gates = serde_json::from_value(json!([
        {"gate": "schema", "status": "passed", "blocked": false, "validations": []},
    ]))
    .unwrap();
    let record = close(&it, &record, Status::Succeeded);
    run(&it.store, running());

    let filter = EntryFilter {
        task_id: Some("build-12".to_owned()),
        workflow_id: Some("nightly".to_owned()),
        ..tagged(&[
            "sandbox_execution",
            "tool_invocation",
            "simulation_mode",
            "success",
            "crv_validated",
            "permission_violation",
        ])
    };
    let found = find(&it, &filter);
    let [entry] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(Some(entry.receipt()), record.receipt);
    let sandbox = record.sandbox_id.as_ref().unwrap();
    let provenance = &entry.body["provenance"];
    assert_eq!(provenance["task_id"], "build-12");
    assert_eq!(provenance["workflow_id"], "nightly");
    assert_eq!(provenance["step_id"], sandbox.as_str());
    assert_eq!(provenance["source_event_id"], format!("sandbox-{sandbox}"));
    assert_eq!(provenance["timestamp"], json!(record.ended_at));
    assert_eq!(entry.body["effects"]["violations"], 1);
    assert_eq!(entry.body["gates"]["passed"], 1);
    assert!(entry.body["usage"]["cpu_ms"].is_u64());

    // All of them must be there.
    for tag in ["failure", "live_execution", "crv_blocked"] {
        let mut filter = filter.clone();
        filter.tags.push(tag.to_owned());
        assert!(find(&it, &filter).is_empty(), "{tag}");
    }
    assert_eq!(find(&it, &tagged(&["success"])).len(), 2);
    let plain = EntryFilter {
        without: vec!["simulation_mode".to_owned()],
        ..tagged(&["success"])
    };
    assert_eq!(find(&it, &plain).len(), 1);
    it.assert_sound();
}

fn a_query_has_so_many_conditions_and_no_more(it: Fixture) {
    let names: Vec<String> = (0..33).map(|number| format!("tag{number}")).collect();
    let tags: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(find(&it, &tagged(&tags[..32])).is_empty());
    let refused = it.store.query(&SpaceId::local(), &tagged(&tags));
    assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
}

fn a_refusal_is_remembered_as_a_failure_that_never_ran(it: Fixture) {
    let mut record = ended(of_task("t"), Status::PolicyDenied);
    record.started_at = None;
    record.sandbox_id = None;
    let record = it.store.refuse(record).unwrap();
    let found = find(&it, &tagged(&["failure", "policy_denied"]));
    assert_eq!(found.len(), 1);
    assert!(!found[0].tags.contains(&"sandbox_execution".to_owned()));
    assert_eq!(
        found[0].body["provenance"]["source_event_id"],
        format!("exec-{}", record.exec_id)
    );
    it.assert_sound();
}

fn each_mode_is_found_by_its_name(it: Fixture) {
    for mode in Mode::ALL {
        let mut record = running();
        record.mode = mode;
        record.ids.task_id = Some(mode.as_str().to_owned());
        close(&it, &record, Status::Succeeded);
    }
    for mode in Mode::ALL {
        let found = find(&it, &EntryFilter::default().of_mode(mode));
        assert!(!found.is_empty(), "{}", mode.as_str());
        for entry in found {
            assert_eq!(entry.ids["task_id"], mode.as_str());
        }
    }
}

fn tiers_are_found_by_age(it: Fixture) {
    run(&it.store, running());
    let now = Timestamp::now();
    for (days, expected) in [
        (0, RetentionTier::Hot),
        (2, RetentionTier::Warm),
        (8, RetentionTier::Cold),
        (31, RetentionTier::Archived),
    ] {
        let then = now + SignedDuration::from_hours(days * 24);
        for tier in RetentionTier::ALL {
            let filter = EntryFilter::default().of_tier(tier, then);
            let found = find(&it, &filter);
            let count = if tier == expected { 2 } else { 0 };
            assert_eq!(found.len(), count, "{tier} after {days} days");
            assert!(
                found
                    .iter()
                    .all(|it| RetentionTier::at(it.at, then) == tier)
            );
        }
    }
    // A tier narrows the times that are wanted, and never widens them.
    let nothing = EntryFilter {
        until: Some(now - SignedDuration::from_hours(1)),
        ..EntryFilter::default()
    };
    assert!(find(&it, &nothing.of_tier(RetentionTier::Hot, now)).is_empty());
}

/// Every kind of thing that a task can have in the ledger.
fn a_day_of_one_task(it: &Fixture) -> Vec<Exec> {
    let done = close(it, &of_task("t"), Status::Succeeded);
    let mut refused = ended(of_task("t"), Status::PolicyDenied);
    refused.started_at = None;
    let refused = it.store.refuse(refused).unwrap();
    close(it, &of_task("another"), Status::Failed);

    let mut waits = queued();
    waits.ids.task_id = Some("t".to_owned());
    let terms = Terms {
        sealed_call: Some(b"call"),
        ..Terms::default()
    };
    let Admitted::Opened(opened) = it.store.admit("o", &waits, terms).unwrap() else {
        panic!("it is new");
    };
    let between = close(it, &of_task("t"), Status::Failed);
    let mut asked = waits.clone();
    asked.status = Status::AwaitingApproval;
    let approval = about_exec(&asked);
    it.store
        .await_again("o", &opened, &asked, None, &approval)
        .unwrap();
    it.store
        .reply(&approval.id, yes("ann"), Timestamp::now())
        .unwrap();
    it.store
        .queue_approved("o", &opened, &waits, None, &approval.id, "d1")
        .unwrap();
    let runs = started(waits);
    it.store.start("o", &opened, &runs).unwrap();
    let waited = it
        .store
        .close(opened, ended(runs, Status::Succeeded))
        .unwrap();

    let open = of_task("t");
    let _still_open = it.store.plan("o", &open).unwrap();
    vec![done, refused, waited, between, open]
}

fn timeline(it: &Fixture, limit: usize, cursor: Option<String>) -> (Vec<Step>, Option<String>) {
    let filter = TimelineFilter {
        task_id: "t".to_owned(),
        limit,
        cursor,
    };
    let page = it.store.timeline(&SpaceId::local(), &filter).unwrap();
    assert_eq!(page.task_id, "t");
    (page.steps, page.next)
}

fn a_timeline_has_what_was_planned_beside_how_it_ended(it: Fixture) {
    let execs = a_day_of_one_task(&it);
    let (steps, next) = timeline(&it, 0, None);
    assert_eq!(next, None);
    let ids: Vec<_> = steps.iter().map(|step| step.exec_id.clone()).collect();
    let expected: Vec<_> = execs.iter().map(|it| Some(it.exec_id.clone())).collect();
    assert_eq!(ids, expected);
    for (step, exec) in steps.iter().zip(&execs) {
        let receipt = step.outcome.as_ref().map(Entry::receipt);
        assert_eq!(receipt, exec.receipt, "{step:?}");
        let was_refused = exec.status == Status::PolicyDenied;
        assert_eq!(step.planned.is_none(), was_refused, "{step:?}");
    }
    let events: Vec<&str> = steps[2]
        .others
        .iter()
        .map(|entry| entry.body["event"].as_str().unwrap_or("started"))
        .collect();
    for event in ["exec.awaiting", "approval.approved", "approval.used"] {
        assert!(events.contains(&event), "{events:?}");
    }
    assert_eq!(events.last(), Some(&"started"));
}

fn a_timeline_goes_on_where_the_page_before_ended(it: Fixture) {
    // Far enough that the index reaches a part of it, and the rest is looked at one by one.
    let mut execs = a_day_of_one_task(&it);
    for _ in 0..40 {
        execs.push(close(&it, &of_task("t"), Status::Succeeded));
    }
    let (whole, next) = timeline(&it, 1000, None);
    assert_eq!((whole.len(), next), (execs.len(), None));
    for size in [1, 3, 7, 45] {
        let (mut steps, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = timeline(&it, size, cursor);
            assert!(page.len() <= size);
            steps.extend(page);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(steps, whole, "{size} at a time");
    }
    for cursor in ["", "x", "1", "1.x"] {
        let filter = TimelineFilter {
            task_id: "t".to_owned(),
            limit: 0,
            cursor: Some(cursor.to_owned()),
        };
        let error = it.store.timeline(&SpaceId::local(), &filter).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{cursor}");
    }
}

fn what_was_settled_belongs_to_its_exec(it: Fixture) {
    let mut record = of_task("t");
    record.mode = Mode::Transactional;
    let record = close(&it, &record, Status::Succeeded);
    let ann = Actor {
        token_id: None,
        name: "ann".to_owned(),
    };
    let details = json!({ "changes": { "created": 2 } });
    it.store
        .note_settled(&record, "changes.kept", Some(&ann), details)
        .unwrap();

    let (steps, _) = timeline(&it, 0, None);
    assert_eq!(steps.len(), 1);
    let kept = steps[0].others.last().unwrap();
    assert_eq!(kept.body["event"], "changes.kept");
    assert_eq!(kept.body["by"]["name"], "ann");
    assert_eq!(kept.body["details"]["changes"]["created"], 2);
    assert_eq!(kept.body["details"]["provenance"]["task_id"], "t");
    let found = find(&it, &tagged(&["transactional", "event:changes.kept"]));
    assert_eq!(found, std::slice::from_ref(kept));
    // One exec, one success.
    assert_eq!(find(&it, &tagged(&["success"])).len(), 1);
    it.assert_sound();
}

fn nothing_secret_is_remembered(it: Fixture) {
    let mut record = of_task("t");
    record.effects = serde_json::from_value(json!([{
        "seq": 1, "at": "2026-01-02T03:04:05Z", "type": "external_api_call",
        "details": {"target": "crm", "action": "update", "data": {"password": "hunter2"}},
        "would_succeed": false, "failure_reason": "hunter2 is not allowed",
        "simulated_result": {"token": "hunter2"},
    }]))
    .unwrap();
    record.effect_count = serde_json::from_value(json!({
        "total": 1, "violations": 1, "dropped": 0,
    }))
    .unwrap();
    let record = close(&it, &record, Status::Failed);
    it.store
        .note_settled(&record, "changes.discarded", None, json!({}))
        .unwrap();
    let entries = it.store.tail(&SpaceId::local(), 100).unwrap();
    assert_eq!(entries.len(), 3);
    for entry in entries {
        let text = serde_json::to_string(&entry).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

fn snapshot(digit: char, sound: bool) -> VerifiedSnapshot {
    VerifiedSnapshot {
        snapshot_id: format!("snap_{}", digit.to_string().repeat(32))
            .parse()
            .unwrap(),
        project_id: "proj".parse().unwrap(),
        manifest: digit.to_string().repeat(64),
        sound,
    }
}

fn marked(it: &Fixture) -> BTreeSet<String> {
    let ids: Vec<SnapshotId> = ['a', 'b', 'c']
        .map(|digit| snapshot(digit, true).snapshot_id)
        .to_vec();
    let marks = it.store.snapshot_marks(&SpaceId::local(), &ids).unwrap();
    marks
        .iter()
        .inspect(|(id, mark)| {
            let digit = id.as_str().chars().last().unwrap();
            assert_eq!(mark.manifest, digit.to_string().repeat(64));
        })
        .map(|(id, _)| id.as_str()[5..6].to_owned())
        .collect()
}

fn a_snapshot_has_a_mark_until_damage_is_found(it: Fixture) {
    let space = SpaceId::local();
    assert!(marked(&it).is_empty());
    let seen = [
        snapshot('a', true),
        snapshot('b', true),
        snapshot('c', false),
    ];
    it.store.mark_snapshots(&space, None, &seen).unwrap();
    let both = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(marked(&it), both);
    // Now the index reaches them.
    for _ in 0..40 {
        run(&it.store, running());
    }
    assert_eq!(marked(&it), both);
    it.store
        .mark_snapshots(&space, None, &[snapshot('a', false)])
        .unwrap();
    assert_eq!(marked(&it), BTreeSet::from(["b".to_owned()]));
    it.store
        .mark_snapshots(&space, None, &[snapshot('a', true)])
        .unwrap();
    assert_eq!(marked(&it), both);
    let found = find(&it, &tagged(&["event:snapshot.verified", "project:proj"]));
    assert_eq!(found.len(), 3);
    it.assert_sound();
}

fn a_mark_that_somebody_edited_is_refused(it: Fixture) {
    let space = SpaceId::local();
    let seen = snapshot('c', false);
    it.store
        .mark_snapshots(&space, None, std::slice::from_ref(&seen))
        .unwrap();
    if it.shared.is_some() {
        it.set_triggers(false);
    } else {
        it.drop_triggers();
    }
    let changed = it.execute(
        "UPDATE ledger_entries SET body = replace(body, 'snapshot.damaged', 'snapshot.verified')",
    );
    assert_eq!(changed, 1);
    let error = it
        .store
        .snapshot_marks(&space, [&seen.snapshot_id])
        .unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered);
}
