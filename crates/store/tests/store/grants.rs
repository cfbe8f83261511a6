//! What people allowed for a conversation: made by an answer, seen, counted, revoked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;

use crate::common::approval::{approval, grant, kind};
use crate::common::{Fixture, on_both_databases};
use glovebox_model::{Code, Grant, SpaceId};
use glovebox_store::{Actor, EntryFilter, GrantFilter, NewGrant};
use jiff::{SignedDuration, Timestamp};

on_both_databases! {
    a_grant_comes_with_its_answer_and_goes_when_it_is_revoked,
    a_grant_is_of_one_conversation_in_one_space,
    a_kind_is_granted_once,
    uses_from_many_threads_are_all_counted,
    grants_are_listed_page_by_page,
    a_grant_ends_with_its_time,
}

fn admin() -> Actor {
    Actor {
        token_id: None,
        name: "admin".to_owned(),
    }
}

fn granted(it: &Fixture, of: &str) -> Grant {
    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    let new = grant(of);
    let id = new.id.clone();
    let now = Timestamp::now();
    it.store
        .reply_granting(&asked.id, kind("ann"), new, now)
        .unwrap();
    it.store.grant(None, &id).unwrap()
}

fn a_grant_comes_with_its_answer_and_goes_when_it_is_revoked(it: Fixture) {
    let space = SpaceId::local();
    let made = granted(&it, "curl");
    assert_eq!(
        (made.kind.as_str(), made.shown.as_str()),
        ("curl", "`curl`")
    );
    assert_eq!(made.granted_by, "ann");
    let other = it.open_again();
    assert_eq!(
        other.grants_for(&space, "talk").unwrap(),
        std::slice::from_ref(&made)
    );
    assert_eq!(other.use_grant(&made.id).unwrap().used, 1);
    assert_eq!(it.store.grant(Some(&space), &made.id).unwrap().used, 1);

    let elsewhere: SpaceId = "other".parse().unwrap();
    let error = it
        .store
        .revoke_grant(Some(&elsewhere), &made.id, &admin())
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    let revoked = it
        .store
        .revoke_grant(Some(&space), &made.id, &admin())
        .unwrap();
    assert_eq!(revoked.revoked_by.as_deref(), Some("admin"));
    assert_eq!(revoked.used, 1);
    let again = it.store.revoke_grant(None, &made.id, &admin()).unwrap();
    assert_eq!(again, revoked, "the time stays");
    assert!(other.grants_for(&space, "talk").unwrap().is_empty());
    let error = other.use_grant(&made.id).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("revoked by `admin`"), "{error}");

    for (event, count) in [("event:grant.made", 1), ("event:grant.revoked", 1)] {
        let filter = EntryFilter {
            tags: vec![event.to_owned()],
            conversation_id: Some("talk".to_owned()),
            ..EntryFilter::default()
        };
        let found = it.store.query(&space, &filter).unwrap().items;
        assert_eq!(found.len(), count, "{event}");
        assert_eq!(found[0].body["details"]["grant_id"], made.id.as_str());
    }
    it.assert_sound();
}

fn a_grant_is_of_one_conversation_in_one_space(it: Fixture) {
    granted(&it, "curl");
    let (here, other) = (SpaceId::local(), "other".parse().unwrap());
    assert_eq!(it.store.grants_for(&here, "talk").unwrap().len(), 1);
    assert!(it.store.grants_for(&here, "talk2").unwrap().is_empty());
    assert!(it.store.grants_for(&here, "").unwrap().is_empty());
    assert!(it.store.grants_for(&other, "talk").unwrap().is_empty());
}

fn a_kind_is_granted_once(it: Fixture) {
    let first = granted(&it, "curl");
    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    let now = Timestamp::now();
    it.store
        .reply_granting(&asked.id, kind("bob"), grant("curl"), now)
        .unwrap();
    let space = SpaceId::local();
    let in_force = it.store.grants_for(&space, "talk").unwrap();
    assert_eq!(in_force, std::slice::from_ref(&first));
    // So revoking it revokes it.
    it.store.revoke_grant(None, &first.id, &admin()).unwrap();
    assert!(it.store.grants_for(&space, "talk").unwrap().is_empty());
    let second = granted(&it, "curl");
    assert_ne!(second.id, first.id);
    granted(&it, &"long ".repeat(2000));
    assert_eq!(it.store.grants_for(&space, "talk").unwrap().len(), 2);
    it.assert_sound();
}

fn a_grant_ends_with_its_time(it: Fixture) {
    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    let now = Timestamp::now();
    let brief = NewGrant {
        expires_at: now + SignedDuration::from_millis(1),
        ..grant("curl")
    };
    let id = brief.id.clone();
    it.store
        .reply_granting(&asked.id, kind("ann"), brief, now)
        .unwrap();
    let ended = it.store.grant(None, &id).unwrap();
    while !ended.has_expired(Timestamp::now()) {
        thread::yield_now();
    }
    let space = SpaceId::local();
    assert!(it.store.grants_for(&space, "talk").unwrap().is_empty());
    assert!(
        it.store
            .grants(&GrantFilter::default())
            .unwrap()
            .items
            .is_empty()
    );
    let error = it.store.use_grant(&id).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("has expired"), "{error}");
    let listed = GrantFilter {
        include_ended: true,
        ..GrantFilter::default()
    };
    assert_eq!(it.store.grants(&listed).unwrap().items, [ended]);
    // Its kind can be allowed again, and its last use is told.
    let next = granted(&it, "curl");
    it.store.use_grant(&next.id).unwrap();
    let in_force = it.store.grants_for(&space, "talk").unwrap();
    assert_eq!(in_force.len(), 1);
    assert_eq!((&in_force[0].id, in_force[0].used), (&next.id, 1));
    assert!(in_force[0].last_used_at.is_some());
    // Allowed twice, it ends when the first of the two ends.
    for (minutes, left) in [(90, 60), (10, 10)] {
        let asked = approval();
        it.store.insert_approval(&asked).unwrap();
        let again = NewGrant {
            expires_at: Timestamp::now() + SignedDuration::from_mins(minutes),
            ..grant("curl")
        };
        let reply = kind("bob");
        it.store
            .reply_granting(&asked.id, reply, again, Timestamp::now())
            .unwrap();
        let end = it.store.grant(None, &next.id).unwrap().expires_at.unwrap();
        let most = Timestamp::now() + SignedDuration::from_mins(left);
        assert!(end <= most, "{end}");
        assert!(end > most - SignedDuration::from_mins(5), "{end}");
    }
    it.assert_sound();
}

fn uses_from_many_threads_are_all_counted(it: Fixture) {
    let made = granted(&it, "curl");
    let stores = [it.open_again(), it.open_again()];
    thread::scope(|scope| {
        for store in stores.iter().cycle().take(6) {
            let id = &made.id;
            scope.spawn(move || {
                for _ in 0..5 {
                    store.use_grant(id).unwrap();
                }
            });
        }
    });
    assert_eq!(it.store.grant(None, &made.id).unwrap().used, 30);
}

fn grants_are_listed_page_by_page(it: Fixture) {
    let mut made: Vec<_> = (0..9).map(|n| granted(&it, &format!("k{n}"))).collect();
    made.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.id.clone())));
    let gone = made[4].id.clone();
    let revoked = it.store.revoke_grant(None, &gone, &admin()).unwrap();
    let space = SpaceId::local();
    let all = |filter: GrantFilter| {
        let mut filter = GrantFilter { limit: 2, ..filter };
        let mut seen = Vec::new();
        loop {
            let page = it.store.grants(&filter).unwrap();
            seen.extend(page.items);
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                return seen;
            }
        }
    };
    let mut everything = made.clone();
    everything[4] = revoked;
    made.remove(4);
    assert_eq!(all(GrantFilter::default()), made);
    for conversation_id in [None, Some("talk".to_owned())] {
        let filter = GrantFilter {
            space: Some(space.clone()),
            conversation_id,
            include_ended: true,
            ..GrantFilter::default()
        };
        assert_eq!(all(filter), everything);
    }
    let nowhere = GrantFilter {
        conversation_id: Some("talk".to_owned()),
        ..GrantFilter::default()
    };
    let error = it.store.grants(&nowhere).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}
