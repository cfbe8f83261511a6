//! Secrets in the store: sealed values, versions, grants, and one key for all.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{Fixture, on_both_databases};
use glovebox_model::{
    Code, Correlation, Delivery, GrantId, Secret, SecretGiven, SecretGrant, SecretName, SpaceId,
    Vouched,
};
use glovebox_store::{
    Actor, EntryFilter, SealedValue, SecretGrantFilter, SecretWrite, Store, ValuePlace,
};
use jiff::Timestamp;

on_both_databases! {
    a_secret_is_set_rotated_changed_and_removed,
    a_version_is_never_used_twice,
    one_of_two_who_change_a_secret_at_once_is_first,
    spaces_know_nothing_of_each_other,
    the_oldest_values_are_forgotten_and_the_others_kept,
    what_a_space_keeps_is_bounded,
    all_values_have_one_key,
    everything_is_sealed_anew_or_nothing,
    a_grant_is_for_whom_it_says_until_it_ends,
    removing_a_secret_revokes_its_grants,
    a_use_is_written_down_only_while_it_is_allowed,
    every_change_is_stamped_and_in_the_ledger,
    secrets_are_listed_page_by_page,
}

fn ann() -> Actor {
    Actor {
        token_id: None,
        name: "ann".to_owned(),
    }
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

fn sealed(version: u64, key: &str) -> SealedValue {
    SealedValue {
        version,
        key_id: key.to_owned(),
        sealed: vec![u8::try_from(version).unwrap(); 40],
    }
}

fn write(secret: &str, seen: u64, value: Option<SealedValue>) -> SecretWrite {
    SecretWrite {
        name: name(secret),
        seen,
        hosts: BTreeSet::new(),
        deliveries: [Delivery::File].into(),
        value,
    }
}

fn set(store: &Store, space: &SpaceId, secret: &str, seen: u64) -> Secret {
    let write = write(secret, seen, Some(sealed(seen + 1, "k1")));
    store.put_secret(space, write, &ann()).unwrap()
}

fn place(space: &SpaceId, secret: &str, version: u64) -> ValuePlace {
    ValuePlace {
        space: space.clone(),
        name: name(secret),
        version,
    }
}

fn grant(secret: &str, conversation: Option<&str>, agent: Option<&str>) -> SecretGrant {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    let now = Timestamp::now();
    SecretGrant {
        grant_id: GrantId::from_random(random),
        secret: name(secret),
        conversation_id: conversation.map(str::to_owned),
        agent_id: agent.map(str::to_owned),
        deliveries: [Delivery::File].into(),
        granted_by: "ann".to_owned(),
        granted_at: now,
        expires_at: now + Duration::from_secs(3600),
        revoked_at: None,
    }
}

fn ids(conversation: Option<&str>, agent: Option<&str>) -> Correlation {
    Correlation {
        conversation_id: conversation.map(str::to_owned),
        agent_id: agent.map(str::to_owned),
        ..Correlation::of_space(SpaceId::local())
    }
}

fn events(store: &Store) -> Vec<String> {
    let tail = store.tail(&SpaceId::local(), 1000).unwrap();
    let event = |entry: &glovebox_store::Entry| entry.body["event"].as_str().map(str::to_owned);
    tail.iter().filter_map(event).collect()
}

fn a_secret_is_set_rotated_changed_and_removed(it: Fixture) {
    let space = SpaceId::local();
    assert_eq!(it.store.secrets_key().unwrap(), None);
    let first = set(&it.store, &space, "token", 0);
    assert_eq!((first.version, first.last_used_at), (1, None));
    let other = it.open_again();
    assert_eq!(other.secret(&space, &first.name).unwrap(), first);
    assert_eq!(other.secrets_key().unwrap().as_deref(), Some("k1"));

    let second = set(&other, &space, "token", 1);
    assert_eq!((second.version, second.created_at), (2, first.created_at));
    let changed = SecretWrite {
        hosts: ["api.example.com:443".parse().unwrap()].into(),
        ..write("token", 2, None)
    };
    let changed = it.store.put_secret(&space, changed, &ann()).unwrap();
    assert_eq!((changed.version, changed.hosts.len()), (2, 1));
    for version in [1, 2] {
        let value = it
            .store
            .sealed_value(&place(&space, "token", version))
            .unwrap();
        assert_eq!(value, Some(sealed(version, "k1")));
    }

    let (removed, revoked) = it
        .store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    assert_eq!((removed, revoked), (changed, vec![]));
    assert!(it.store.sealed_values(&space).unwrap().is_empty());
    let error = it.store.secret(&space, &name("token")).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(
        error.hints[0].contains("glovebox secret set token"),
        "{error:?}"
    );
    let again = it.store.remove_secret(&space, &name("token"), &ann());
    assert_eq!(again.unwrap_err().code, Code::NotFound);
    it.assert_sound();
}

fn a_version_is_never_used_twice(it: Fixture) {
    let space = SpaceId::local();
    set(&it.store, &space, "token", 0);
    it.store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    assert_eq!(it.store.secret_version(&space, &name("token")).unwrap(), 1);
    let fresh = write("token", 0, Some(sealed(1, "k1")));
    let error = it.store.put_secret(&space, fresh, &ann()).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert_eq!(set(&it.store, &space, "token", 1).version, 2);
    // Without a value there would be nothing to give.
    it.store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    let empty = it.store.put_secret(&space, write("token", 2, None), &ann());
    assert_eq!(empty.unwrap_err().code, Code::Conflict);
}

fn one_of_two_who_change_a_secret_at_once_is_first(it: Fixture) {
    let space = SpaceId::local();
    let results: Vec<_> = std::thread::scope(|scope| {
        let one = |_| {
            scope.spawn(|| {
                let write = write("token", 0, Some(sealed(1, "k1")));
                it.store.put_secret(&space, write, &ann())
            })
        };
        let threads: Vec<_> = (0..8).map(one).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|it| it.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(error.code, Code::Conflict);
    }
    it.assert_sound();
}

fn spaces_know_nothing_of_each_other(it: Fixture) {
    let (local, blue): (_, SpaceId) = (SpaceId::local(), "blue".parse().unwrap());
    set(&it.store, &local, "token", 0);
    set(&it.store, &local, "token", 1);
    assert_eq!(
        it.store.secret(&blue, &name("token")).unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(it.store.secrets_stamp(&blue).unwrap(), 0);
    assert_eq!(set(&it.store, &blue, "token", 0).version, 1);
    let made = grant("token", Some("talk"), None);
    it.store.grant_secret(&local, &made, &ann()).unwrap();
    assert!(it.store.secret_grant(&blue, &made.grant_id).is_err());
    let error = it
        .store
        .revoke_secret_grant(&blue, &made.grant_id, &ann())
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    let of_blue = Correlation {
        space_id: blue.clone(),
        ..ids(Some("talk"), None)
    };
    assert!(
        it.store
            .secret_grants_for(&of_blue, Vouched::People)
            .unwrap()
            .is_empty()
    );
    let all = SecretGrantFilter::default();
    assert!(
        it.store
            .secret_grants(&blue, &all)
            .unwrap()
            .items
            .is_empty()
    );
    it.store
        .remove_secret(&blue, &name("token"), &ann())
        .unwrap();
    assert_eq!(it.store.secret(&local, &name("token")).unwrap().version, 2);
    assert_eq!(it.store.sealed_values(&local).unwrap().len(), 2);
}

fn the_oldest_values_are_forgotten_and_the_others_kept(it: Fixture) {
    let space = SpaceId::local();
    for seen in 0..12 {
        set(&it.store, &space, "token", seen);
    }
    let kept = it.store.sealed_values(&space).unwrap();
    let versions: Vec<u64> = kept.iter().map(|(place, _)| place.version).collect();
    assert_eq!(versions, (4..=12).collect::<Vec<_>>());
}

fn what_a_space_keeps_is_bounded(it: Fixture) {
    let space = SpaceId::local();
    let large = |version| SealedValue {
        sealed: vec![7; 5 << 20],
        ..sealed(version, "k1")
    };
    let first = write("token", 0, Some(large(1)));
    it.store.put_secret(&space, first, &ann()).unwrap();
    let second = write("token", 1, Some(large(2)));
    let error = it.store.put_secret(&space, second, &ann()).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    assert_eq!(it.store.secret(&space, &name("token")).unwrap().version, 1);
    assert_eq!(it.store.sealed_values(&space).unwrap().len(), 1);
}

fn all_values_have_one_key(it: Fixture) {
    let space = SpaceId::local();
    set(&it.store, &space, "token", 0);
    let other = write("other", 0, Some(sealed(1, "k2")));
    let error = it
        .store
        .put_secret(&space, other.clone(), &ann())
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    assert!(it.store.has_sealed_values().unwrap());
    // Where nothing is left that the lost key sealed, another begins.
    it.store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    assert!(!it.store.has_sealed_values().unwrap());
    it.store.put_secret(&space, other, &ann()).unwrap();
    assert_eq!(it.store.secrets_key().unwrap().as_deref(), Some("k2"));
}

fn everything_is_sealed_anew_or_nothing(it: Fixture) {
    let (local, blue): (_, SpaceId) = (SpaceId::local(), "blue".parse().unwrap());
    set(&it.store, &local, "token", 0);
    set(&it.store, &local, "token", 1);
    set(&it.store, &blue, "token", 0);
    let broken = it
        .store
        .reseal_secrets("k1", "k2", &ann(), |place, _| match place.version {
            2 => Err(glovebox_model::Error::new(
                Code::Internal,
                glovebox_model::Stage::Open,
                "it cannot be opened",
            )),
            _ => Ok(b"new".to_vec()),
        });
    assert_eq!(broken.unwrap_err().code, Code::Internal);
    let before = it.store.sealed_values(&local).unwrap();
    assert!(
        before
            .iter()
            .all(|(_, value)| value.key_id == "k1" && value.sealed.len() == 40)
    );
    assert_eq!(it.store.secrets_key().unwrap().as_deref(), Some("k1"));

    let stamp = it.store.secrets_stamp(&blue).unwrap();
    let reseal = |place: &ValuePlace, old: &[u8]| {
        assert_eq!(u64::from(old[0]), place.version);
        Ok(format!("{}/{}", place.space, place.version).into_bytes())
    };
    assert_eq!(
        it.store.reseal_secrets("k1", "k2", &ann(), reseal).unwrap(),
        3
    );
    assert!(it.store.secrets_stamp(&blue).unwrap() > stamp);
    for (space, versions) in [(&local, 2), (&blue, 1)] {
        let after = it.store.sealed_values(space).unwrap();
        assert_eq!(after.len(), versions);
        for (place, value) in after {
            assert_eq!(value.key_id, "k2");
            assert_eq!(
                value.sealed,
                format!("{space}/{}", place.version).into_bytes()
            );
        }
    }
    // Whoever still has the old key is told, and seals nothing with it.
    let again = it.store.reseal_secrets("k1", "k3", &ann(), reseal);
    assert_eq!(again.unwrap_err().code, Code::Conflict);
    let stale = write("late", 0, Some(sealed(1, "k1")));
    assert_eq!(
        it.store.put_secret(&local, stale, &ann()).unwrap_err().code,
        Code::Conflict
    );
    it.assert_sound();
}

fn a_grant_is_for_whom_it_says_until_it_ends(it: Fixture) {
    let space = SpaceId::local();
    set(&it.store, &space, "token", 0);
    let talk = grant("token", Some("talk"), None);
    let both = grant("token", Some("talk"), Some("builder"));
    let agent = grant("token", None, Some("builder"));
    let expired = SecretGrant {
        expires_at: Timestamp::now() - Duration::from_secs(1),
        ..grant("token", Some("talk"), None)
    };
    for grant in [&talk, &both, &agent, &expired] {
        it.store.grant_secret(&space, grant, &ann()).unwrap();
    }
    let other = it.open_again();
    let found = |conversation, agent| -> BTreeSet<GrantId> {
        let found = other
            .secret_grants_for(&ids(conversation, agent), Vouched::People)
            .unwrap();
        found.into_iter().map(|grant| grant.grant_id).collect()
    };
    let of = |grants: &[&SecretGrant]| -> BTreeSet<GrantId> {
        grants.iter().map(|grant| grant.grant_id.clone()).collect()
    };
    // What every agent can say proves nothing.
    let unproven = other.secret_grants_for(&ids(Some("talk"), Some("builder")), Vouched::default());
    let unproven: BTreeSet<GrantId> = unproven
        .unwrap()
        .into_iter()
        .map(|it| it.grant_id)
        .collect();
    assert_eq!(unproven, of(&[&both, &agent]));
    assert_eq!(found(Some("talk"), None), of(&[&talk]));
    assert_eq!(
        found(Some("talk"), Some("builder")),
        of(&[&talk, &both, &agent])
    );
    assert_eq!(found(None, Some("builder")), of(&[&agent]));
    assert_eq!(found(Some("else"), Some("else")), of(&[]));
    assert_eq!(found(None, None), of(&[]));
    assert_eq!(found(Some(""), Some("")), of(&[]));

    let revoked = it
        .store
        .revoke_secret_grant(&space, &talk.grant_id, &ann())
        .unwrap();
    assert!(revoked.revoked_at.is_some());
    let again = other
        .revoke_secret_grant(&space, &talk.grant_id, &ann())
        .unwrap();
    assert_eq!(again, revoked);
    assert_eq!(found(Some("talk"), None), of(&[]));
    let listed = |include_ended| {
        let filter = SecretGrantFilter {
            conversation_id: Some("talk".to_owned()),
            include_ended,
            ..SecretGrantFilter::default()
        };
        other.secret_grants(&space, &filter).unwrap().items.len()
    };
    assert_eq!((listed(false), listed(true)), (1, 3));
    let unknown = it
        .store
        .grant_secret(&space, &grant("none", Some("talk"), None), &ann());
    assert_eq!(unknown.unwrap_err().code, Code::NotFound);
    it.assert_sound();
}

fn removing_a_secret_revokes_its_grants(it: Fixture) {
    let space = SpaceId::local();
    set(&it.store, &space, "token", 0);
    set(&it.store, &space, "other", 0);
    let (one, two) = (
        grant("token", Some("a"), None),
        grant("token", None, Some("b")),
    );
    let stays = grant("other", Some("a"), None);
    for grant in [&one, &two, &stays] {
        it.store.grant_secret(&space, grant, &ann()).unwrap();
    }
    let (_, revoked) = it
        .store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    let ids: BTreeSet<_> = revoked.iter().map(|it| &it.grant_id).collect();
    assert_eq!(ids, [&one.grant_id, &two.grant_id].into());
    // Nor do they come back with the name.
    set(&it.store, &space, "token", 1);
    let all = SecretGrantFilter::default();
    let left = it.store.secret_grants(&space, &all).unwrap().items;
    assert_eq!(left, [stays]);
    let revoked = it
        .store
        .revoke_secret_grants(&space, &name("other"), &ann())
        .unwrap();
    assert_eq!(revoked.len(), 1);
    let none = it
        .store
        .revoke_secret_grants(&space, &name("other"), &ann())
        .unwrap();
    assert!(none.is_empty());
}

fn a_use_is_written_down_only_while_it_is_allowed(it: Fixture) {
    let space = SpaceId::local();
    set(&it.store, &space, "token", 0);
    let talk = grant("token", Some("talk"), None);
    it.store.grant_secret(&space, &talk, &ann()).unwrap();
    let given = SecretGiven {
        name: name("token"),
        version: 1,
        delivery: Delivery::File,
        grant_id: Some(talk.grant_id.clone()),
    };
    let exec = crate::common::exec_id();
    let ids = ids(Some("talk"), None);
    it.store
        .use_secrets(&ids, &exec, std::slice::from_ref(&given))
        .unwrap();
    assert!(
        it.store
            .secret(&space, &name("token"))
            .unwrap()
            .last_used_at
            .is_some()
    );
    let filter = EntryFilter {
        exec_id: Some(exec.clone()),
        ..EntryFilter::default()
    };
    let entries = it.store.query(&space, &filter).unwrap().items;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].body["event"], "secret.used");
    assert_eq!(entries[0].body["details"]["version"], 1);

    it.store
        .revoke_secret_grant(&space, &talk.grant_id, &ann())
        .unwrap();
    let before = events(&it.store).len();
    let error = it
        .store
        .use_secrets(&ids, &exec, std::slice::from_ref(&given))
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    let asked = SecretGiven {
        grant_id: None,
        ..given
    };
    it.store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    let error = it.store.use_secrets(&ids, &exec, &[asked]).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    assert_eq!(events(&it.store).len(), before + 1);
    it.assert_sound();
}

fn every_change_is_stamped_and_in_the_ledger(it: Fixture) {
    let space = SpaceId::local();
    let mut last = it.store.secrets_stamp(&space).unwrap();
    let mut changed = |store: &Store| {
        let now = store.secrets_stamp(&space).unwrap();
        assert!(now > last, "{now} {last}");
        last = now;
    };
    set(&it.store, &space, "token", 0);
    changed(&it.store);
    set(&it.store, &space, "token", 1);
    changed(&it.store);
    it.store
        .put_secret(&space, write("token", 2, None), &ann())
        .unwrap();
    changed(&it.store);
    let talk = grant("token", Some("talk"), None);
    it.store.grant_secret(&space, &talk, &ann()).unwrap();
    changed(&it.store);
    it.store
        .revoke_secret_grant(&space, &talk.grant_id, &ann())
        .unwrap();
    changed(&it.store);
    it.store
        .remove_secret(&space, &name("token"), &ann())
        .unwrap();
    changed(&it.store);
    assert_eq!(
        events(&it.store),
        [
            "secret.key_set",
            "secret.set",
            "secret.rotated",
            "secret.changed",
            "secret.granted",
            "secret.grant_revoked",
            "secret.removed",
        ]
    );
    for entry in it.store.tail(&space, 10).unwrap() {
        assert_eq!(entry.body["by"]["name"], "ann");
        // That of the key is about no secret.
        let of_key = entry.body["event"] == "secret.key_set";
        let tag = "secret:token".to_owned();
        assert!(of_key || entry.tags.contains(&tag), "{entry:?}");
    }
    it.assert_sound();
}

fn secrets_are_listed_page_by_page(it: Fixture) {
    let space = SpaceId::local();
    for secret in ["b", "B", "a-1", "a.1", "gone", "z"] {
        set(&it.store, &space, secret, 0);
    }
    it.store
        .remove_secret(&space, &name("gone"), &ann())
        .unwrap();
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = it.store.secrets(&space, 2, cursor.as_deref()).unwrap();
        assert!(page.items.len() <= 2);
        names.extend(page.items.into_iter().map(|it| it.name.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, ["B", "a-1", "a.1", "b", "z"]);
}
