//! The registry of kept sandboxes: one owner each, found by whoever may see them, written down when
//! they come and go.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::{Fixture, HOUR, exec_id, on_both_databases, sandbox, sandbox_in};
use glovebox_model::{Code, Lifetime, Sandbox, SandboxState, SpaceId};
use glovebox_store::{Entry, EntryFilter, Owner, Registered, Store, dead_owners};
use jiff::Timestamp;

on_both_databases! {
    what_is_put_is_found_by_id_and_by_name_in_its_space_alone,
    a_name_is_given_once_over_all_spaces,
    of_two_who_claim_exactly_one_wins,
    of_many_who_make_one_name_exactly_one_does,
    nothing_is_taken_from_a_living_owner_by_a_wrong_guess,
    only_the_owner_changes_a_row_and_never_what_it_is,
    parallel_changes_of_one_owner_all_count,
    a_replaced_one_keeps_its_name_and_says_why,
    only_the_owner_removes_and_anybody_what_nobody_has,
    every_coming_and_going_is_in_the_ledger,
    no_secret_of_a_configuration_is_in_the_ledger,
    what_a_dead_owner_had_is_nobodys,
    who_retires_lets_go,
    pages_follow_each_other_newest_first,
    pruning_finds_the_idle_and_the_old_and_nobody_at_work,
    one_broken_row_does_not_stop_pruning,
    a_text_that_no_name_can_be_is_not_found,
}

fn local() -> SpaceId {
    SpaceId::local()
}

fn put(store: &Store, name: &str, owner: &str) -> Sandbox {
    let it = sandbox(name);
    store.sandbox_put_new(&it, owner).unwrap();
    it
}

fn registered(sandbox: Sandbox, owner: Option<&str>) -> Registered {
    Registered {
        sandbox,
        owner: owner.map(str::to_owned),
    }
}

fn entries(store: &Store, event: &str) -> Vec<Entry> {
    let filter = EntryFilter {
        tags: vec![format!("event:{event}")],
        ..EntryFilter::default()
    };
    store.query(&local(), &filter).unwrap().items
}

fn what_is_put_is_found_by_id_and_by_name_in_its_space_alone(it: Fixture) {
    let kept = put(&it.store, "kept", "o");
    let id = kept.sandbox_id.as_str();
    assert_eq!(it.store.sandbox(&local(), id).unwrap(), kept);
    assert_eq!(it.store.sandbox(&local(), "kept").unwrap(), kept);
    let with_owner = registered(kept.clone(), Some("o"));
    assert_eq!(
        it.store.sandbox_registered(&local(), id).unwrap(),
        with_owner
    );
    assert_eq!(
        it.store.sandbox_of_scope(&local(), "kept").unwrap(),
        Some(with_owner.clone())
    );
    assert_eq!(
        it.store.sandbox_anywhere(&kept.sandbox_id).unwrap(),
        Some(with_owner.clone())
    );
    assert_eq!(it.store.sandboxes_of_owner("o").unwrap(), [with_owner]);
    assert!(it.store.sandboxes_of_owner("owner").unwrap().is_empty());

    let other: SpaceId = "other".parse().unwrap();
    for wanted in [id, "kept"] {
        let error = it.store.sandbox(&other, wanted).unwrap_err();
        assert_eq!(error.code, Code::NotFound);
        assert_eq!(error.message, format!("there is no sandbox `{wanted}`"));
    }
    assert_eq!(it.store.sandbox_of_scope(&other, "kept").unwrap(), None);
    assert!(it.store.sandboxes(&other, 10).unwrap().is_empty());
    // A scope is not found by an id.
    assert_eq!(it.store.sandbox_of_scope(&local(), id).unwrap(), None);
}

fn a_name_is_given_once_over_all_spaces(it: Fixture) {
    let kept = put(&it.store, "kept", "o");
    let again = sandbox("kept");
    let elsewhere = sandbox_in("other".parse().unwrap(), "kept");
    let mut same_id = sandbox("another");
    same_id.sandbox_id = kept.sandbox_id.clone();
    for taken in [again, elsewhere, same_id] {
        let error = it.store.sandbox_put_new(&taken, "o").unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{error}");
    }
    assert_eq!(it.store.sandbox(&local(), "kept").unwrap(), kept);
    assert_eq!(entries(&it.store, "sandbox.created").len(), 1);
    it.assert_sound();
}

fn of_two_who_claim_exactly_one_wins(it: Fixture) {
    const ROUNDS: usize = 200;
    let stores = [it.open_again(), it.open_again()];
    let names = ["alive", "owner"];
    let rows: Vec<Sandbox> = (0..ROUNDS)
        .map(|round| {
            let row = put(&it.store, &format!("kept-{round}"), "o");
            assert!(it.store.sandbox_release(&row.sandbox_id, "o").unwrap());
            row
        })
        .collect();
    let start = Barrier::new(2);
    let won: Vec<Vec<bool>> = thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter()
            .zip(names)
            .map(|(store, name)| {
                let (start, rows) = (&start, &rows);
                scope.spawn(move || {
                    let claim = |row: &Sandbox| {
                        start.wait();
                        store.sandbox_claim(&row.sandbox_id, None, name).unwrap()
                    };
                    rows.iter().map(claim).collect()
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for (round, row) in rows.iter().enumerate() {
        assert_ne!(won[0][round], won[1][round], "round {round}");
        let winner = if won[0][round] { names[0] } else { names[1] };
        let found = it.store.sandbox_anywhere(&row.sandbox_id).unwrap();
        assert_eq!(found.unwrap().owner.as_deref(), Some(winner));
    }
}

fn of_many_who_make_one_name_exactly_one_does(it: Fixture) {
    let stores: Vec<Store> = (0..4).map(|_| it.open_again()).collect();
    let start = Barrier::new(stores.len());
    let made: usize = thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter()
            .map(|store| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    match store.sandbox_put_new(&sandbox("kept"), "o") {
                        Ok(()) => 1,
                        Err(error) => {
                            assert_eq!(error.code, Code::Conflict, "{error}");
                            0
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
    assert_eq!(it.store.sandboxes(&local(), 10).unwrap().len(), 1);
    assert_eq!(entries(&it.store, "sandbox.created").len(), 1);
}

fn nothing_is_taken_from_a_living_owner_by_a_wrong_guess(it: Fixture) {
    let row = put(&it.store, "kept", "o");
    let id = &row.sandbox_id;
    assert!(!it.store.sandbox_claim(id, None, "owner").unwrap());
    assert!(!it.store.sandbox_claim(id, Some("gone"), "owner").unwrap());
    assert!(!it.store.sandbox_release(id, "owner").unwrap());
    assert!(it.store.sandbox_claim(id, Some("o"), "o").unwrap());
    let missing = sandbox("missing").sandbox_id;
    assert!(!it.store.sandbox_claim(&missing, None, "owner").unwrap());
    let found = it.store.sandbox_anywhere(id).unwrap().unwrap();
    assert_eq!(found.owner.as_deref(), Some("o"));
    if it.store.is_shared() {
        // Its lease has not run out, so it may be at work.
        let error = it.store.sandbox_claim(id, Some("o"), "owner").unwrap_err();
        assert_eq!(error.code, Code::Conflict);
        it.dies("o");
        assert!(it.store.sandbox_claim(id, Some("o"), "owner").unwrap());
        // And it writes nothing more, should it wake up.
        let error = it.store.sandbox_update(id, "o", |row| row).unwrap_err();
        assert_eq!(error.code, Code::Lost);
        let error = it.store.sandbox_put_new(&sandbox("new"), "o").unwrap_err();
        assert_eq!(error.code, Code::Lost);
    }
}

fn only_the_owner_changes_a_row_and_never_what_it_is(it: Fixture) {
    let mut row = sandbox("kept");
    row.config.image = Some("debian:12".to_owned());
    it.store.sandbox_put_new(&row, "o").unwrap();
    let exec = exec_id();
    let busy = exec.clone();
    let after = it
        .store
        .sandbox_update(&row.sandbox_id, "o", move |before| Sandbox {
            state: SandboxState::Busy,
            exec_id: Some(busy),
            uses: before.uses + 1,
            last_used_at: "2026-02-02T00:00:00Z".parse().unwrap(),
            container_id: Some("c1".to_owned()),
            // None of these is a change of how it stands.
            sandbox_id: sandbox("x").sandbox_id,
            name: "stolen".to_owned(),
            space_id: "other".parse().unwrap(),
            project_id: "theirs".parse().unwrap(),
            lifetime: Lifetime::Shared,
            scope: None,
            agent_id: Some("thief".to_owned()),
            created_at: "2026-02-02T00:00:00Z".parse().unwrap(),
            config: glovebox_model::SandboxConfig {
                image: Some("evil:1".to_owned()),
                ..before.config
            },
            asked: before.asked,
            config_hash: before.config_hash,
            trouble: None,
            ports: Vec::new(),
        })
        .unwrap();
    let expected = Sandbox {
        state: SandboxState::Busy,
        exec_id: Some(exec),
        uses: 1,
        last_used_at: "2026-02-02T00:00:00Z".parse().unwrap(),
        container_id: Some("c1".to_owned()),
        ..row.clone()
    };
    assert_eq!(after, expected);
    assert_eq!(it.store.sandbox(&local(), "kept").unwrap(), expected);

    let error = it
        .store
        .sandbox_update(&row.sandbox_id, "owner", |row| row)
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(!error.hints.is_empty());
    let missing = sandbox("missing").sandbox_id;
    let error = it
        .store
        .sandbox_update(&missing, "o", |row| row)
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);

    assert!(it.store.sandbox_release(&row.sandbox_id, "o").unwrap());
    let left = it.store.sandbox_anywhere(&row.sandbox_id).unwrap().unwrap();
    assert_eq!(left.owner, None);
    assert_eq!(left.sandbox.state, SandboxState::Down);
    assert_eq!(left.sandbox.exec_id, None);
    assert_eq!(left.sandbox.uses, 1);
    let error = it
        .store
        .sandbox_update(&row.sandbox_id, "o", |row| row)
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
}

fn parallel_changes_of_one_owner_all_count(it: Fixture) {
    let row = put(&it.store, "kept", "o");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    it.store
                        .sandbox_update(&row.sandbox_id, "o", |mut row| {
                            row.uses += 1;
                            row
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(it.store.sandbox(&local(), "kept").unwrap().uses, 80);
}

fn a_replaced_one_keeps_its_name_and_says_why(it: Fixture) {
    let row = put(&it.store, "kept", "o");
    let mut new = sandbox("other-name");
    new.config_hash = "11".repeat(32);
    new.config.image = Some("debian:12".to_owned());
    new.created_at = "2026-03-03T00:00:00Z".parse().unwrap();
    let expected = Sandbox {
        sandbox_id: row.sandbox_id.clone(),
        name: row.name.clone(),
        ..new.clone()
    };
    let error = it
        .store
        .sandbox_replace(&row.sandbox_id, "owner", new.clone(), "changed")
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    let after = it
        .store
        .sandbox_replace(&row.sandbox_id, "o", new, "changed")
        .unwrap();
    assert_eq!(after, expected);
    assert_eq!(it.store.sandbox(&local(), "kept").unwrap(), expected);
    let [entry] = entries(&it.store, "sandbox.recreated").try_into().unwrap();
    assert_eq!(entry.body["details"]["reason"], "changed");
    assert_eq!(entry.body["details"]["config_hash"], "11".repeat(32));
    assert_eq!(entry.body["details"]["config_hash_before"], "00".repeat(32));
    it.assert_sound();
}

fn only_the_owner_removes_and_anybody_what_nobody_has(it: Fixture) {
    let row = put(&it.store, "kept", "o");
    let id = &row.sandbox_id;
    for wrong in [Some("owner"), None] {
        let error = it.store.sandbox_remove(id, wrong, "removed").unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{wrong:?}");
    }
    let removed = it.store.sandbox_remove(id, "o", "removed").unwrap();
    assert_eq!(removed, Some(row.clone()));
    assert_eq!(it.store.sandbox_remove(id, "o", "again").unwrap(), None);
    // The name is free again.
    let next = put(&it.store, "kept", "owner");
    it.store.sandbox_release(&next.sandbox_id, "owner").unwrap();
    let error = it
        .store
        .sandbox_remove(&next.sandbox_id, "owner", "late")
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    let removed = it.store.sandbox_remove(&next.sandbox_id, None, "pruned");
    assert!(removed.unwrap().is_some());
    assert!(it.store.sandboxes(&local(), 10).unwrap().is_empty());
    it.assert_sound();
}

fn every_coming_and_going_is_in_the_ledger(it: Fixture) {
    let row = put(&it.store, "kept", "o");
    it.store
        .sandbox_remove(&row.sandbox_id, "o", "pruned")
        .unwrap();
    let filter = EntryFilter {
        tags: vec![format!("sandbox:{}", row.sandbox_id)],
        ..EntryFilter::default()
    };
    let mut found = it.store.query(&local(), &filter).unwrap().items;
    found.sort_by_key(|entry| entry.seq);
    let events: Vec<_> = found
        .iter()
        .map(|entry| entry.body["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["sandbox.created", "sandbox.removed"]);
    assert_eq!(found[0].body["details"]["name"], "kept");
    assert_eq!(found[0].body["details"]["backend"], "native");
    assert_eq!(found[1].body["details"]["reason"], "pruned");
    assert!(found[1].tags.contains(&"project:proj".to_owned()));
    it.assert_sound();
}

fn no_secret_of_a_configuration_is_in_the_ledger(it: Fixture) {
    let mut row = sandbox("kept");
    row.config.docker = Some(glovebox_model::DockerConfig {
        env: [("TOKEN".to_owned(), "hunter2".to_owned())].into(),
        setup_command: Some("login hunter2".to_owned()),
        ..glovebox_model::DockerConfig::default()
    });
    it.store.sandbox_put_new(&row, "o").unwrap();
    assert_eq!(it.store.sandbox(&local(), "kept").unwrap(), row);
    it.store
        .sandbox_replace(&row.sandbox_id, "o", row.clone(), "again")
        .unwrap();
    it.store
        .sandbox_remove(&row.sandbox_id, "o", "removed")
        .unwrap();
    let tail = it.store.tail(&local(), 10).unwrap();
    assert_eq!(tail.len(), 3);
    let text = serde_json::to_string(&tail).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
}

fn what_a_dead_owner_had_is_nobodys(it: Fixture) {
    let mut busy = sandbox("busy");
    busy.state = SandboxState::Busy;
    busy.exec_id = Some(exec_id());
    it.store.sandbox_put_new(&busy, "gone").unwrap();
    let far = sandbox_in("other".parse().unwrap(), "far");
    it.store.sandbox_put_new(&far, "gone").unwrap();
    let mine = put(&it.store, "mine", "alive");
    it.dies("gone");
    if it.store.is_shared() {
        let expired = it.store.expired_owners().unwrap();
        assert!(expired.contains(&"gone".to_owned()), "{expired:?}");
        let again = it.open_again();
        assert!(again.recover("alive").is_err());
    } else {
        let strays = it.store.stray_owners(&it.state).unwrap();
        assert!(strays.contains(&"gone".to_owned()), "{strays:?}");
    }
    it.store.recover("gone").unwrap();
    it.store.recover("gone").unwrap();
    let unowned = it.store.sandboxes_unowned().unwrap();
    let names: Vec<_> = unowned.iter().map(|it| it.sandbox.name.as_str()).collect();
    assert_eq!(names, ["busy", "far"]);
    for left in unowned {
        assert_eq!(left.owner, None);
        assert_eq!(left.sandbox.exec_id, None);
        assert!(
            it.store
                .sandbox_claim(&left.sandbox.sandbox_id, None, "alive")
                .unwrap()
        );
    }
    let mine = it.store.sandbox_anywhere(&mine.sandbox_id).unwrap();
    assert_eq!(mine.unwrap().owner.as_deref(), Some("alive"));
}

fn who_retires_lets_go(it: Fixture) {
    it.store.enlist("leaving", HOUR).unwrap();
    let row = put(&it.store, "kept", "leaving");
    let other = put(&it.store, "other", "o");
    it.store.retire("leaving").unwrap();
    let unowned = it.store.sandboxes_unowned().unwrap();
    let ids: Vec<_> = unowned.iter().map(|it| &it.sandbox.sandbox_id).collect();
    assert_eq!(ids, [&row.sandbox_id]);
    let kept = it.store.sandbox_anywhere(&other.sandbox_id).unwrap();
    assert_eq!(kept.unwrap().owner.as_deref(), Some("o"));
}

/// An owner without a lease, or without a file: what is left after a crash in the middle.
#[test]
fn a_sandbox_of_an_owner_that_left_no_trace_is_a_strays() {
    let it = crate::common::fixture();
    let owner = Owner::claim(&it.state).unwrap();
    let row = put(&it.store, "kept", owner.id());
    let id = owner.id().to_owned();
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
    assert!(dead_owners(&it.state, Some(&owner)).unwrap().is_empty());
    drop(owner);
    assert_eq!(
        it.store.stray_owners(&it.state).unwrap(),
        std::slice::from_ref(&id)
    );
    it.store.recover(&id).unwrap();
    assert!(it.store.stray_owners(&it.state).unwrap().is_empty());
    assert!(
        it.store
            .sandbox_claim(&row.sandbox_id, None, "new")
            .unwrap()
    );
}

#[test]
fn a_shared_sandbox_of_an_owner_without_a_lease_is_a_strays() {
    let Some(it) = crate::common::postgres_fixture() else {
        return;
    };
    put(&it.store, "kept", "o");
    it.execute("DELETE FROM glovebox.owners WHERE owner_id = 'o'");
    assert_eq!(it.store.expired_owners().unwrap(), ["o"]);
    it.store.recover("o").unwrap();
    assert!(it.store.expired_owners().unwrap().is_empty());
    assert_eq!(it.store.sandboxes_unowned().unwrap().len(), 1);
}

fn pages_follow_each_other_newest_first(it: Fixture) {
    for number in 0..5 {
        put(&it.store, &format!("kept-{number}"), "o");
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = it
            .store
            .sandbox_page(&local(), 2, cursor.as_deref())
            .unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.into_iter().map(|it| it.sandbox.name));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["kept-4", "kept-3", "kept-2", "kept-1", "kept-0"]);
    let error = it
        .store
        .sandbox_page(&local(), 2, Some("x'--"))
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

fn pruning_finds_the_idle_and_the_old_and_nobody_at_work(it: Fixture) {
    let at = |text: &str| -> Timestamp { text.parse().unwrap() };
    let now = at("2026-01-10T00:00:00Z");
    let add = |name: &str, created: &str, used: &str, at_work: bool| {
        let mut row = sandbox(name);
        row.created_at = at(created);
        row.last_used_at = at(used);
        row.exec_id = at_work.then(exec_id);
        it.store.sandbox_put_new(&row, "o").unwrap();
    };
    add(
        "idle",
        "2026-01-08T00:00:00Z",
        "2026-01-09T00:00:00Z",
        false,
    );
    add(
        "not-quite",
        "2026-01-09T00:00:00Z",
        "2026-01-09T00:00:00.001Z",
        false,
    );
    add("old", "2026-01-01T00:00:00Z", "2026-01-09T23:00:00Z", false);
    add(
        "at-work",
        "2025-01-01T00:00:00Z",
        "2025-01-01T00:00:00Z",
        true,
    );
    // A clock that was set back makes nothing old.
    add(
        "future",
        "2027-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
        false,
    );
    let day = Duration::from_secs(86_400);
    let found = |idle, age| -> Vec<String> {
        let rows = it.store.sandboxes_prunable(now, idle, age).unwrap();
        rows.into_iter().map(|it| it.sandbox.name).collect()
    };
    assert_eq!(found(Some(day), Some(7 * day)), ["idle", "old"]);
    assert_eq!(found(Some(day), None), ["idle"]);
    assert_eq!(found(None, Some(7 * day)), ["old"]);
    assert!(found(None, None).is_empty());
}

fn one_broken_row_does_not_stop_pruning(it: Fixture) {
    put(&it.store, "broken", "o");
    put(&it.store, "kept", "o");
    let table = if it.store.is_shared() {
        "glovebox.sandboxes"
    } else {
        "sandboxes"
    };
    it.execute(&format!(
        "UPDATE {table} SET record = '{{\"name\": \"broken\"}}' WHERE name = 'broken'"
    ));
    let found = it
        .store
        .sandboxes_prunable(Timestamp::now(), Some(Duration::ZERO), None)
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].sandbox.name, "kept");
    let error = it.store.sandbox(&local(), "broken").unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered);
}

fn a_text_that_no_name_can_be_is_not_found(it: Fixture) {
    put(&it.store, "kept", "o");
    for odd in ["", "kept\0", "\0", "' OR 1=1 --", "%", "KEPT", "é", "kept "] {
        let error = it.store.sandbox(&local(), odd).unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{odd:?}");
    }
    for odd in ["", "Kept", "a_b", "a b", "a\0", &"a".repeat(64)] {
        assert!(
            it.store.sandbox_put_new(&sandbox(odd), "o").is_err(),
            "{odd:?}"
        );
    }
    it.assert_sound();
}
