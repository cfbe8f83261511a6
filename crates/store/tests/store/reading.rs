//! Listing execs and querying entries.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::{Fixture, ended, on_both_databases, run, run_one, running};
use glovebox_model::{Code, ExecId, SpaceId, Status};
use glovebox_store::{
    Entry, EntryFilter, ExecFilter, Expectations, ExportFormat, Kind, verify_export,
};
use serde_json::Value;

on_both_databases! {
    execs_are_listed_newest_first_page_by_page,
    a_short_id_is_enough_while_it_is_the_only_one,
    entries_are_found_by_each_of_their_properties,
    entries_are_found_whether_the_index_reaches_them_or_not,
    a_query_goes_on_where_the_page_before_ended,
    ocsf_events_say_what_happened,
    an_export_ends_where_the_ledger_did_when_it_began,
    a_checkpoint_is_of_the_last_entry,
}

fn execs_are_listed_newest_first_page_by_page(it: Fixture) {
    let space = SpaceId::local();
    let mut expected: Vec<ExecId> = (0..7)
        .map(|number| {
            let mut record = running();
            record.ids.task_id = (number % 2 == 0).then(|| "even".to_owned());
            let status = if number < 3 {
                Status::Failed
            } else {
                Status::Succeeded
            };
            let opened = it.store.plan("o", &record).unwrap();
            it.store
                .close(opened, ended(record, status))
                .unwrap()
                .exec_id
        })
        .collect();
    expected.reverse();

    let mut filter = ExecFilter {
        limit: 3,
        ..ExecFilter::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = it.store.list(&space, &filter).unwrap();
        assert!(page.items.len() <= 3);
        seen.extend(page.items.into_iter().map(|exec| exec.exec_id));
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, expected);

    let ids = |filter: &ExecFilter| -> Vec<ExecId> {
        let page = it.store.list(&space, filter).unwrap();
        page.items.into_iter().map(|exec| exec.exec_id).collect()
    };
    let status = Some(Status::Failed);
    let task_id = Some("even".to_owned());
    let failed = ExecFilter {
        status,
        ..ExecFilter::default()
    };
    assert_eq!(ids(&failed), expected[4..]);
    let even = ExecFilter {
        task_id: task_id.clone(),
        ..ExecFilter::default()
    };
    let each_second: Vec<ExecId> = expected.iter().step_by(2).cloned().collect();
    assert_eq!(ids(&even), each_second);
    let both = ExecFilter {
        status,
        task_id,
        ..ExecFilter::default()
    };
    assert_eq!(ids(&both), each_second[2..]);

    for cursor in ["", "x", "1.2", "9999999999999999999999"] {
        let filter = ExecFilter {
            cursor: Some(cursor.to_owned()),
            ..ExecFilter::default()
        };
        let error = it.store.list(&space, &filter).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{cursor}");
    }
}

fn a_short_id_is_enough_while_it_is_the_only_one(it: Fixture) {
    let space = SpaceId::local();
    let id = |first: u8| {
        let mut bytes = [0x11; 16];
        bytes[0] = first;
        ExecId::from_random(bytes)
    };
    for first in [0xab, 0xac, 0xcd] {
        let mut record = running();
        record.exec_id = id(first);
        run(&it.store, record);
    }
    let found = |prefix: &str| {
        let filter = ExecFilter {
            id_prefix: Some(prefix.to_owned()),
            ..ExecFilter::default()
        };
        let page = it.store.list(&space, &filter).unwrap();
        let ids = page.items.into_iter().map(|exec| exec.exec_id);
        ids.collect::<Vec<_>>()
    };
    for prefix in ["e_cd", "e_c", "e_cd11", id(0xcd).as_str()] {
        assert_eq!(found(prefix), [id(0xcd)], "{prefix}");
    }
    assert_eq!(found("e_a"), [id(0xac), id(0xab)]);
    assert_eq!(found("e_").len(), 3);
    for prefix in ["f", "e_f", "e_CD", "%", "e_cd'", "../x"] {
        assert!(found(prefix).is_empty(), "{prefix}");
    }
}

fn entries_are_found_by_each_of_their_properties(it: Fixture) {
    let space = SpaceId::local();
    let mut first = running();
    first.ids.task_id = Some("t1".to_owned());
    first.ids.agent_id = Some("a1".to_owned());
    first.ids.user_id = Some("u1".to_owned());
    first.ids.conversation_id = Some("c1".to_owned());
    let first = run(&it.store, first);
    let mut second = running();
    second.ids.agent_id = Some("a1".to_owned());
    let second = run(&it.store, second);

    let seqs = |filter: EntryFilter| -> Vec<u64> {
        let page = it.store.query(&space, &filter).unwrap();
        page.items.iter().map(|entry| entry.seq).collect()
    };
    let any = EntryFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(seqs(any()), [4, 3, 2, 1]);
    assert_eq!(
        seqs(EntryFilter {
            exec_id: Some(second.exec_id),
            ..any()
        }),
        [4, 3]
    );
    assert_eq!(
        seqs(EntryFilter {
            task_id: text("t1"),
            ..any()
        }),
        [2, 1]
    );
    assert_eq!(
        seqs(EntryFilter {
            user_id: text("u1"),
            ..any()
        }),
        [2, 1]
    );
    assert_eq!(
        seqs(EntryFilter {
            conversation_id: text("c1"),
            ..any()
        }),
        [2, 1]
    );
    assert_eq!(
        seqs(EntryFilter {
            agent_id: text("a1"),
            ..any()
        }),
        [4, 3, 2, 1]
    );
    assert_eq!(
        seqs(EntryFilter {
            kind: Some(Kind::Outcome),
            ..any()
        }),
        [4, 2]
    );
    let tags = vec!["status:succeeded".to_owned(), "project:proj".to_owned()];
    assert_eq!(seqs(EntryFilter { tags, ..any() }), [4, 2]);
    assert_eq!(
        seqs(EntryFilter {
            tags: vec!["nothing".to_owned()],
            ..any()
        }),
        [0; 0]
    );
    let narrow = EntryFilter {
        agent_id: text("a1"),
        kind: Some(Kind::Planned),
        ..any()
    };
    assert_eq!(seqs(narrow), [3, 1]);

    let tail = it.store.tail(&space, 10).unwrap();
    let (since, until) = (Some(tail[1].at), Some(tail[3].at));
    assert_eq!(seqs(EntryFilter { since, ..any() }), [4, 3, 2]);
    assert_eq!(seqs(EntryFilter { until, ..any() }), [3, 2, 1]);
    let kind = Some(Kind::Outcome);
    assert_eq!(
        seqs(EntryFilter {
            since,
            until,
            kind,
            ..any()
        }),
        [2]
    );
    assert_eq!(first.receipt.unwrap().seq, 2);
}

fn entries_are_found_whether_the_index_reaches_them_or_not(it: Fixture) {
    let space = SpaceId::local();
    // The index reaches up to entry 64: after each exec another part of them is beyond it.
    for number in 1..=36 {
        let mut record = running();
        record.ids.agent_id = Some(format!("a{}", number % 2));
        record.ids.task_id = (number % 3 == 0).then(|| "third".to_owned());
        run(&it.store, record);
        if !(30..=34).contains(&number) && number != 36 {
            continue;
        }
        let all = it.store.tail(&space, 1000).unwrap();
        assert_eq!(all.len(), 2 * number);
        let filters = [
            (Some("a1"), None, None),
            (Some("a0"), Some("third"), None),
            (None, None, Some(Kind::Outcome)),
            (Some("a1"), Some("third"), Some(Kind::Planned)),
        ];
        for (agent, task, kind) in filters {
            let is_meant = |entry: &&Entry| {
                let has = |name: &str, value: Option<&str>| {
                    value.is_none_or(|value| entry.ids.get(name).is_some_and(|it| it == value))
                };
                has("agent_id", agent)
                    && has("task_id", task)
                    && kind.is_none_or(|kind| entry.kind == kind)
            };
            let expected: Vec<u64> = all.iter().rev().filter(is_meant).map(|it| it.seq).collect();
            let mut filter = EntryFilter {
                agent_id: agent.map(str::to_owned),
                task_id: task.map(str::to_owned),
                kind,
                limit: 7,
                ..EntryFilter::default()
            };
            let mut found = Vec::new();
            loop {
                let page = it.store.query(&space, &filter).unwrap();
                assert!(page.items.len() <= 7);
                found.extend(page.items.iter().map(|entry| entry.seq));
                filter.cursor = page.next;
                if filter.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "{filter:?} of {number}");
        }
    }
    it.assert_sound();
}

fn a_query_goes_on_where_the_page_before_ended(it: Fixture) {
    for _ in 0..5 {
        run_one(&it.store);
    }
    let mut filter = EntryFilter {
        tags: vec!["project:proj".to_owned()],
        limit: 4,
        ..EntryFilter::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = it.store.query(&SpaceId::local(), &filter).unwrap();
        seen.extend(page.items.iter().map(|entry| entry.seq));
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, (1..=10).rev().collect::<Vec<u64>>());
    filter.cursor = Some("nonsense".to_owned());
    let error = it.store.query(&SpaceId::local(), &filter).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

fn an_export_ends_where_the_ledger_did_when_it_began(it: Fixture) {
    let space = SpaceId::local();
    let refuse = || {
        it.store
            .refuse(ended(running(), Status::PolicyDenied))
            .unwrap()
    };
    // Exactly as many as a piece has, and more.
    for (more, pieces) in [(500, 2), (1, 2)] {
        for _ in 0..more {
            refuse();
        }
        let end = it.store.checkpoint(&space).unwrap().unwrap();
        for format in [ExportFormat::Jsonl, ExportFormat::Ocsf] {
            let mut export = it.store.begin_export(&space, format).unwrap();
            let (mut out, mut count) = (Vec::new(), 0);
            while let Some(piece) = it.store.next_piece(&mut export).unwrap() {
                out.extend(piece);
                count += 1;
                if format == ExportFormat::Ocsf {
                    continue;
                }
                // Written while the export is under way: nothing is in its way, and it is not seen.
                refuse();
            }
            assert_eq!(count, pieces);
            let text = String::from_utf8(out).unwrap();
            let lines = text.lines().count() as u64;
            if format == ExportFormat::Ocsf {
                assert_eq!(lines, end.seq + 2, "those that came meanwhile");
                continue;
            }
            let expected = 2 * end.seq + 2;
            assert_eq!(lines, expected, "rows, a header and a checkpoint");
            let expected = Expectations {
                checkpoints: vec![end.clone()],
                ..Expectations::default()
            };
            let verified = verify_export(text.as_bytes(), &expected).unwrap();
            assert!(verified.is_sound(), "{:?}", verified.problems);
            assert_eq!(verified.head.unwrap().seq, end.seq);
        }
    }
    it.assert_sound();
}

fn a_checkpoint_is_of_the_last_entry(it: Fixture) {
    let space = SpaceId::local();
    assert_eq!(it.store.checkpoint(&space).unwrap(), None);
    let receipt = run_one(&it.store).receipt.unwrap();
    let checkpoint = it.store.checkpoint(&space).unwrap().unwrap();
    assert!(checkpoint.is_signed());
    assert_eq!(
        (checkpoint.seq, checkpoint.hash),
        (receipt.seq, receipt.hash)
    );
    assert_eq!(
        it.store.checkpoint(&"other".parse().unwrap()).unwrap(),
        None
    );
}

fn ocsf_events_say_what_happened(it: Fixture) {
    let mut record = running();
    record.ids.user_id = Some("u1".to_owned());
    let done = run(&it.store, record);
    it.store
        .refuse(ended(running(), Status::PolicyDenied))
        .unwrap();
    let mut out = Vec::new();
    let count = it
        .store
        .export(&SpaceId::local(), ExportFormat::Ocsf, &mut out)
        .unwrap();
    assert_eq!(count, 3);
    let events: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |event: &Value| {
        (
            event["type_uid"].as_u64().unwrap(),
            event["status_id"].as_u64().unwrap(),
            event["disposition"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(of(&events[0]), (100_701, 1, "Allowed".to_owned()));
    assert_eq!(of(&events[1]), (100_702, 1, "Allowed".to_owned()));
    assert_eq!(of(&events[2]), (100_701, 2, "Blocked".to_owned()));
    assert_eq!(events[0]["process"]["name"], "curl");
    assert_eq!(events[1]["process"]["uid"], done.exec_id.as_str());
    assert_eq!(events[1]["exit_code"], 0);
    assert_eq!(events[1]["actor"]["user"]["uid"], "u1");
    assert_eq!(events[1]["metadata"]["uid"], done.receipt.unwrap().hash);
    assert!(
        events[0].get("exit_code").is_none(),
        "what is not known is left out"
    );
}
