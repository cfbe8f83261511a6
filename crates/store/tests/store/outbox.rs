//! What webhooks are told: written with what happened, sent by one, told apart, given up, forgotten.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::approval::{approval, no, yes};
use crate::common::{Fixture, ended, on_both_databases, run, running, running_in};
use glovebox_model::{DeliveryState, Exec, SpaceId, Status, WebhookDelivery, WebhookEvent};
use glovebox_store::{Attempted, Claimed, DeliveryFilter, Store, Subscription};
use jiff::Timestamp;

on_both_databases! {
    nobody_is_told_where_nobody_wants_to_know,
    an_end_is_told_to_each_who_wants_to_know_and_to_no_other,
    an_approval_is_told_when_it_is_asked_and_when_it_is_settled,
    a_message_holds_no_output_and_no_argument,
    of_many_servers_one_has_a_message,
    a_message_of_a_dead_server_is_anothers,
    a_message_is_tried_again_when_it_is_time,
    what_is_given_up_is_in_the_ledger,
    a_webhook_that_is_gone_is_told_nothing_more,
    deliveries_are_listed_page_by_page,
    old_messages_are_forgotten,
    a_refused_write_tells_nobody,
}

fn every() -> BTreeSet<WebhookEvent> {
    [
        WebhookEvent::ApprovalRequested,
        WebhookEvent::ApprovalSettled,
        WebhookEvent::ExecEnded,
    ]
    .into()
}

fn subscription(webhook: &str, events: BTreeSet<WebhookEvent>) -> Subscription {
    Subscription {
        webhook: webhook.to_owned(),
        events,
        space: None,
    }
}

fn all(store: &Store) -> Vec<WebhookDelivery> {
    let mut items = store.deliveries(&DeliveryFilter::default()).unwrap().items;
    items.reverse();
    items
}

fn claim(store: &Store, owner: &str) -> Vec<Claimed> {
    let room = [("ops".to_owned(), 10)];
    store
        .claim_deliveries(owner, &room, Timestamp::now())
        .unwrap()
}

fn one(it: &Fixture) -> Exec {
    it.store.subscribe(&[subscription("ops", every())]).unwrap();
    run(&it.store, running())
}

fn nobody_is_told_where_nobody_wants_to_know(it: Fixture) {
    run(&it.store, running());
    it.store
        .subscribe(&[subscription(
            "ops",
            [WebhookEvent::ApprovalRequested].into(),
        )])
        .unwrap();
    run(&it.store, running());
    assert_eq!(all(&it.store), []);
    // What ended before somebody wanted to know stays untold.
    it.store.subscribe(&[subscription("ops", every())]).unwrap();
    assert_eq!(all(&it.store), []);
    it.assert_sound();
}

fn an_end_is_told_to_each_who_wants_to_know_and_to_no_other(it: Fixture) {
    let other: SpaceId = "other".parse().unwrap();
    it.store
        .subscribe(&[
            subscription("a", every()),
            subscription("b", [WebhookEvent::ExecEnded].into()),
            subscription("c", [WebhookEvent::ApprovalSettled].into()),
            Subscription {
                space: Some(other.clone()),
                ..subscription("d", every())
            },
        ])
        .unwrap();
    let here = run(&it.store, running());
    let there = run(&it.open_again(), running_in(other.clone()));
    let refused = it
        .store
        .refuse(ended(running(), Status::PolicyDenied))
        .unwrap();
    let told = |exec: &Exec| -> Vec<String> {
        let all = all(&it.store);
        let mine = all
            .iter()
            .filter(|it| it.exec_id.as_ref() == Some(&exec.exec_id));
        let mut names: Vec<String> = mine.map(|it| it.webhook.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(told(&here), ["a", "b"]);
    assert_eq!(told(&there), ["a", "b", "d"]);
    assert_eq!(told(&refused), ["a", "b"]);
    let mine = all(&it.store);
    let ids: BTreeSet<_> = mine.iter().map(|it| it.message_id.as_str()).collect();
    assert_eq!(ids.len(), 3, "one message for all who are told of it");
    assert!(mine.iter().all(|it| it.event == WebhookEvent::ExecEnded));
    it.assert_sound();
}

fn an_approval_is_told_when_it_is_asked_and_when_it_is_settled(it: Fixture) {
    it.store.subscribe(&[subscription("ops", every())]).unwrap();
    let now = Timestamp::now();
    let events = |approval: &glovebox_model::Approval| -> Vec<(WebhookEvent, String)> {
        claim(&it.store, "o")
            .into_iter()
            .inspect(|it| assert_eq!(it.delivery.approval_id.as_ref(), Some(&approval.id)))
            .map(|it| {
                (
                    it.delivery.event,
                    it.facts["state"].as_str().unwrap().to_owned(),
                )
            })
            .collect()
    };
    let requested = || (WebhookEvent::ApprovalRequested, "pending".to_owned());
    let settled = |state: &str| (WebhookEvent::ApprovalSettled, state.to_owned());

    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    it.store.reply(&asked.id, yes("ann"), now).unwrap();
    it.store.use_approval(&asked.id, &asked.digest).unwrap();
    assert_eq!(events(&asked), [requested(), settled("approved")]);

    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    it.store.reply(&asked.id, no("ann"), now).unwrap();
    assert_eq!(events(&asked), [requested(), settled("denied")]);

    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    it.store.void_approval(&asked.id, "gone").unwrap();
    it.store.void_approval(&asked.id, "gone again").unwrap();
    assert_eq!(events(&asked), [requested(), settled("void")]);

    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    it.store.expire_approvals(asked.expires_at).unwrap();
    assert_eq!(events(&asked), [requested(), settled("expired")]);

    // One that was approved and then expires was settled once.
    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    it.store.reply(&asked.id, yes("ann"), now).unwrap();
    it.store.expire_approvals(asked.expires_at).unwrap();
    assert_eq!(events(&asked), [requested(), settled("approved")]);
    it.assert_sound();
}

fn a_message_holds_no_output_and_no_argument(it: Fixture) {
    let exec = one(&it);
    assert!(exec.stdout.contains("hunter2"));
    let kept = it.texts("SELECT facts FROM outbox");
    assert_eq!(kept.len(), 1);
    assert!(kept[0].contains("\"status\":\"succeeded\""), "{}", kept[0]);
    for secret in ["hunter2", "Authorization", "curl", "API_KEY"] {
        assert!(!kept[0].contains(secret), "{}", kept[0]);
    }
}

fn of_many_servers_one_has_a_message(it: Fixture) {
    it.store.subscribe(&[subscription("ops", every())]).unwrap();
    for _ in 0..20 {
        run(&it.store, running());
    }
    let owners = ["o", "owner", "gone", "alive"];
    let start = Barrier::new(owners.len());
    let claimed: Vec<Claimed> = thread::scope(|scope| {
        let (it, start) = (&it, &start);
        let all: Vec<_> = owners
            .map(|owner| {
                scope.spawn(move || {
                    let store = it.open_again();
                    start.wait();
                    let mut mine = Vec::new();
                    for _ in 0..10 {
                        let room = [("ops".to_owned(), 1)];
                        let now = Timestamp::now();
                        mine.extend(store.claim_deliveries(owner, &room, now).unwrap());
                    }
                    mine
                })
            })
            .into_iter()
            .collect();
        all.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), 20);
    let ids: BTreeSet<_> = claimed.iter().map(|it| &it.delivery.message_id).collect();
    assert_eq!(ids.len(), 20, "each once");
}

fn a_message_of_a_dead_server_is_anothers(it: Fixture) {
    one(&it);
    // On SQLite who has no file is dead; on PostgreSQL whose lease ran out.
    let owners = it.state.path().join("owners");
    std::fs::create_dir_all(&owners).unwrap();
    std::fs::write(owners.join("gone"), "").unwrap();
    assert_eq!(claim(&it.store, "gone").len(), 1);
    let now = Timestamp::now();
    assert_eq!(it.store.release_claims("o", now).unwrap(), 0);
    assert_eq!(claim(&it.store, "o").len(), 0);
    it.dies("gone");
    std::fs::remove_file(owners.join("gone")).unwrap();
    assert_eq!(it.store.release_claims("o", now).unwrap(), 1);
    let claimed = claim(&it.store, "o");
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].delivery.attempts, 2, "the cut off one counts");
    // Without anybody's help, too: a claim does not hold for ever.
    let later = Timestamp::now() + Duration::from_secs(61);
    let room = [("ops".to_owned(), 10)];
    let again = it.store.claim_deliveries("alive", &room, later).unwrap();
    assert_eq!(again.len(), 1);
}

fn a_message_is_tried_again_when_it_is_time(it: Fixture) {
    one(&it);
    let claimed = claim(&it.store, "o").remove(0);
    let again = Attempted::Again {
        status: Some(503),
        problem: "the receiver answered 503".to_owned(),
        after: Duration::from_secs(30),
    };
    it.store.settle_delivery(&claimed, again).unwrap();
    assert_eq!(claim(&it.store, "o").len(), 0, "not yet");
    let row = all(&it.store).remove(0);
    assert_eq!(
        (row.state, row.status_code),
        (DeliveryState::Pending, Some(503))
    );
    let room = [("ops".to_owned(), 10)];
    let later = Timestamp::now() + Duration::from_secs(31);
    let claimed = it
        .store
        .claim_deliveries("o", &room, later)
        .unwrap()
        .remove(0);
    assert_eq!(claimed.delivery.attempts, 2);
    let done = Attempted::Delivered { status: 204 };
    it.store.settle_delivery(&claimed, done.clone()).unwrap();
    let row = all(&it.store).remove(0);
    assert_eq!(
        (row.state, row.status_code),
        (DeliveryState::Delivered, Some(204))
    );
    assert!(row.ended_at.is_some() && row.next_at.is_none() && row.problem.is_none());
    // Somebody who took too long changes nothing any more.
    let late = Attempted::Failed {
        status: None,
        problem: "late".to_owned(),
    };
    it.store.settle_delivery(&claimed, late).unwrap();
    assert_eq!(all(&it.store).remove(0), row);
    let found = it.store.delivery("ops", &row.message_id).unwrap();
    assert_eq!(found, Some(row));
}

fn what_is_given_up_is_in_the_ledger(it: Fixture) {
    one(&it);
    let claimed = claim(&it.store, "o").remove(0);
    let failed = Attempted::Failed {
        status: Some(410),
        problem: "x".repeat(1000),
    };
    it.store.settle_delivery(&claimed, failed).unwrap();
    let row = all(&it.store).remove(0);
    assert_eq!(row.state, DeliveryState::Failed);
    assert_eq!(row.problem.unwrap().len(), 300);
    let tail = it.store.tail(&SpaceId::local(), 10).unwrap();
    let entry = tail.last().unwrap();
    assert_eq!(entry.body["event"], "webhook.failed");
    assert_eq!(entry.body["details"]["status_code"], 410);
    it.assert_sound();
}

fn a_webhook_that_is_gone_is_told_nothing_more(it: Fixture) {
    one(&it);
    it.store.subscribe(&[subscription("new", every())]).unwrap();
    let row = all(&it.store).remove(0);
    assert_eq!(row.state, DeliveryState::Failed);
    assert!(row.problem.unwrap().contains("not configured"));
    run(&it.store, running());
    assert_eq!(all(&it.store).len(), 2);
    it.store.subscribe(&[]).unwrap();
    run(&it.store, running());
    assert_eq!(all(&it.store).len(), 2);
}

fn deliveries_are_listed_page_by_page(it: Fixture) {
    it.store
        .subscribe(&[subscription("a", every()), subscription("b", every())])
        .unwrap();
    for _ in 0..5 {
        run(&it.store, running());
    }
    it.store.try_webhook("a").unwrap();
    for (webhook, state, count) in [
        (None, None, 11),
        (Some("a"), None, 6),
        (Some("b"), Some(DeliveryState::Pending), 5),
        (None, Some(DeliveryState::Failed), 0),
    ] {
        let mut seen = BTreeSet::new();
        let mut filter = DeliveryFilter {
            webhook: webhook.map(str::to_owned),
            state,
            limit: 2,
            cursor: None,
        };
        loop {
            let page = it.store.deliveries(&filter).unwrap();
            for item in page.items {
                assert!(seen.insert((item.message_id, item.webhook)));
            }
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), count, "{webhook:?} {state:?}");
    }
    let bad = DeliveryFilter {
        cursor: Some("nonsense".to_owned()),
        ..DeliveryFilter::default()
    };
    assert!(it.store.deliveries(&bad).is_err());
}

fn old_messages_are_forgotten(it: Fixture) {
    one(&it);
    run(&it.store, running());
    let claimed = claim(&it.store, "o").remove(0);
    let done = Attempted::Delivered { status: 200 };
    it.store.settle_delivery(&claimed, done).unwrap();
    assert_eq!(it.store.forget_deliveries(crate::common::HOUR).unwrap(), 0);
    assert_eq!(it.store.forget_deliveries(Duration::ZERO).unwrap(), 1);
    let left = all(&it.store);
    assert_eq!(left.len(), 1, "what waits is never forgotten");
    assert_eq!(left[0].state, DeliveryState::Pending);
}

fn a_refused_write_tells_nobody(it: Fixture) {
    it.store.subscribe(&[subscription("ops", every())]).unwrap();
    let exec = run(&it.store, running());
    // The same exec again is a conflict, and nothing of it stays.
    let mut again = running();
    again.exec_id = exec.exec_id;
    it.store
        .refuse(ended(again, Status::PolicyDenied))
        .unwrap_err();
    assert_eq!(all(&it.store).len(), 1);
}
