//! Tokens, settings and notes about the server: kept, found, and in the ledger.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::thread;

use crate::common::{Fixture, kinds, on_both_databases};
use glovebox_model::{Budget, Code, Error, Role, Settings, SpaceId, Stage, Token, TokenId};
use glovebox_store::{Actor, EntryFilter, ExportFormat, Kind, TokenFilter};
use serde_json::{Value, json};

on_both_databases! {
    a_token_is_found_listed_and_revoked,
    a_tokens_name_is_free_again_when_it_is_revoked,
    the_hash_of_a_secret_stays_in_its_table,
    tokens_are_listed_page_by_page,
    settings_begin_with_the_defaults,
    changes_of_the_settings_from_eight_threads_lose_nothing,
    a_change_that_fails_or_changes_nothing_leaves_nothing,
    notes_are_entries_that_can_be_found,
    a_ping_writes,
}

fn admin() -> Actor {
    Actor {
        token_id: Some(token_id(1)),
        name: "admin".to_owned(),
    }
}

fn token_id(number: u8) -> TokenId {
    TokenId::from_random([number; 16])
}

fn token(number: u8, name: &str) -> Token {
    Token {
        token_id: token_id(number),
        name: name.parse().unwrap(),
        role: Role::Agent,
        space_id: SpaceId::local(),
        scopes: Role::Agent.scopes(),
        user_id: None,
        agent_id: Some("a".to_owned()),
        conversation_id: None,
        created_at: format!("2026-01-01T00:00:{number:02}Z").parse().unwrap(),
        expires_at: None,
        revoked_at: None,
    }
}

fn a_token_is_found_listed_and_revoked(it: Fixture) {
    let (token, hash) = (token(7, "ci"), [9; 32]);
    assert_eq!(it.store.token(&token.token_id).unwrap(), None);
    it.store.create_token(&token, &hash, &admin()).unwrap();
    let again = it.store.create_token(&token, &hash, &admin());
    assert_eq!(again, Ok(()));
    let error = it
        .store
        .create_token(&token, &[8; 32], &admin())
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    let kept = it.open_again().token(&token.token_id).unwrap();
    assert_eq!(kept, Some((token.clone(), hash)));
    let live = TokenFilter::default();
    let listed = it.store.tokens(&live).unwrap().items;
    assert_eq!(listed, std::slice::from_ref(&token));

    let revoked = it.store.revoke_token(&token.token_id, &admin()).unwrap();
    let revoked = revoked.unwrap();
    assert!(revoked.revoked_at.is_some());
    let again = it.store.revoke_token(&token.token_id, &admin()).unwrap();
    assert_eq!(again.as_ref(), Some(&revoked), "the time stays");
    assert_eq!(
        it.store.revoke_token(&token_id(99), &admin()).unwrap(),
        None
    );
    assert!(it.store.tokens(&live).unwrap().items.is_empty());
    let all = TokenFilter {
        include_unusable: true,
        ..live
    };
    assert_eq!(it.store.tokens(&all).unwrap().items, [revoked]);
    assert_eq!(
        kinds(&it.store),
        [Kind::Administered, Kind::Administered],
        "one entry for each change"
    );
    for (tag, count) in [
        (format!("token:{}", token.token_id), 2),
        (format!("by:{}", token_id(1)), 2),
        ("event:token.created".to_owned(), 1),
        ("event:token.revoked".to_owned(), 1),
    ] {
        let filter = EntryFilter {
            tags: vec![tag.clone()],
            ..EntryFilter::default()
        };
        let found = it.store.query(&SpaceId::local(), &filter).unwrap();
        assert_eq!(found.items.len(), count, "{tag}");
    }
    it.assert_sound();
}

fn a_tokens_name_is_free_again_when_it_is_revoked(it: Fixture) {
    let create = |token: &Token| {
        let hash = [token.created_at.as_second().unsigned_abs().to_le_bytes()[0]; 32];
        it.store.create_token(token, &hash, &admin())
    };
    create(&token(1, "ci")).unwrap();
    let error = create(&token(2, "ci")).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("`ci`") && !error.hints.is_empty());
    let mut elsewhere = token(3, "ci");
    elsewhere.space_id = "other".parse().unwrap();
    create(&elsewhere).unwrap();
    it.store.revoke_token(&token_id(1), &admin()).unwrap();
    create(&token(2, "ci")).unwrap();
    it.assert_sound();
}

fn the_hash_of_a_secret_stays_in_its_table(it: Fixture) {
    let hash = [0xab; 32];
    it.store
        .create_token(&token(1, "ci"), &hash, &admin())
        .unwrap();
    it.store.revoke_token(&token_id(1), &admin()).unwrap();
    let hex = "ab".repeat(32);
    let mut texts = Vec::new();
    for format in [ExportFormat::Jsonl, ExportFormat::Ocsf] {
        let mut out = Vec::new();
        it.store
            .export(&SpaceId::local(), format, &mut out)
            .unwrap();
        texts.push(String::from_utf8(out).unwrap());
    }
    texts.extend(it.texts("SELECT token FROM tokens"));
    texts.extend(it.texts("SELECT body || tags || ids FROM ledger_entries"));
    for text in texts {
        assert!(text.contains("ci"), "{text}");
        assert!(!text.contains(&hex) && !text.contains("[171,"), "{text}");
    }
}

fn tokens_are_listed_page_by_page(it: Fixture) {
    for number in 0..7 {
        let mut token = token(number, &format!("t{number}"));
        // Two of the same time are told apart by their ids.
        token.created_at = format!("2026-01-01T00:00:0{}Z", number / 2)
            .parse()
            .unwrap();
        if number == 3 {
            token.expires_at = Some("2020-01-01T00:00:00Z".parse().unwrap());
        }
        if number == 5 {
            token.space_id = "other".parse().unwrap();
        }
        it.store
            .create_token(&token, &[number; 32], &admin())
            .unwrap();
    }
    let names = |mut filter: TokenFilter| -> Vec<String> {
        filter.limit = 2;
        let mut names = Vec::new();
        loop {
            let page = it.store.tokens(&filter).unwrap();
            names.extend(page.items.iter().map(|token| token.name.to_string()));
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => return names,
            }
        }
    };
    let any = TokenFilter::default;
    assert_eq!(names(any()), ["t6", "t5", "t4", "t2", "t1", "t0"]);
    let space = Some(SpaceId::local());
    let local = TokenFilter { space, ..any() };
    assert_eq!(names(local), ["t6", "t4", "t2", "t1", "t0"]);
    let all = TokenFilter {
        include_unusable: true,
        ..any()
    };
    assert_eq!(names(all).len(), 7);
    let bad = TokenFilter {
        cursor: Some("x".to_owned()),
        ..any()
    };
    assert_eq!(
        it.store.tokens(&bad).unwrap_err().code,
        Code::InvalidArgument
    );
}

fn settings_begin_with_the_defaults(it: Fixture) {
    assert_eq!(it.store.settings().unwrap(), (Settings::default(), 0));
    let changed = it.store.change_settings(&admin(), |mut settings, _| {
        settings.max_queued = 7;
        Ok(settings)
    });
    let (settings, version) = changed.unwrap();
    assert_eq!((settings.max_queued, version), (7, 1));
    assert_eq!(it.open_again().settings().unwrap(), (settings, 1));
    let entry = it.store.tail(&SpaceId::local(), 1).unwrap().remove(0);
    assert_eq!(entry.kind, Kind::Administered);
    assert_eq!(entry.body["event"], "settings.changed");
    assert_eq!(entry.body["by"]["name"], "admin");
    let changes = &entry.body["details"]["changes"];
    assert_eq!(
        *changes,
        json!({ "max_queued": { "from": Settings::QUEUED, "to": 7 } })
    );
    it.assert_sound();
}

fn changes_of_the_settings_from_eight_threads_lose_nothing(it: Fixture) {
    let other = it.open_again();
    thread::scope(|scope| {
        for thread in 0..8 {
            let store = if thread % 2 == 0 { &it.store } else { &other };
            scope.spawn(move || {
                for number in 0..5 {
                    let agent = format!("{thread}-{number}");
                    let add = move |mut settings: Settings, _| {
                        let budget = Budget::default();
                        settings.agent_budgets.insert(agent, budget);
                        Ok(settings)
                    };
                    store.change_settings(&admin(), add).unwrap();
                }
            });
        }
    });
    let (settings, version) = it.store.settings().unwrap();
    assert_eq!((settings.agent_budgets.len(), version), (40, 40));
    it.assert_sound();
}

fn a_change_that_fails_or_changes_nothing_leaves_nothing(it: Fixture) {
    let refused = it.store.change_settings(&admin(), |_, _| {
        Err(Error::new(Code::InvalidArgument, Stage::Parse, "too many"))
    });
    assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    let same = it
        .store
        .change_settings(&admin(), |same, _| Ok(same))
        .unwrap();
    assert_eq!(same, (Settings::default(), 0));
    assert!(kinds(&it.store).is_empty());
}

fn notes_are_entries_that_can_be_found(it: Fixture) {
    let space = SpaceId::local();
    let details = json!({ "seconds": 1.5, "execs": 3, "why": "SIGTERM \0" });
    let receipt = it
        .store
        .note(&space, "server.drained", None, details)
        .unwrap();
    it.store
        .note(&space, "server.stopped", Some(&admin()), Value::Null)
        .unwrap();
    let filter = EntryFilter {
        kind: Some(Kind::Administered),
        tags: vec!["event:server.drained".to_owned()],
        ..EntryFilter::default()
    };
    let found = it.store.query(&space, &filter).unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].receipt(), receipt);
    assert_eq!(found[0].exec_id, None);
    assert_eq!(found[0].body["details"]["seconds"], "1.5");
    let mut out = Vec::new();
    it.store
        .export(&space, ExportFormat::Ocsf, &mut out)
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    let events: Vec<BTreeMap<String, Value>> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["class_uid"], 6003);
    assert_eq!(events[0]["api"]["operation"], "server.drained");
    assert_eq!(events[1]["actor"]["invoked_by"], "admin");
    let bad = it.store.note(&space, "Not An Event", None, Value::Null);
    assert_eq!(bad.unwrap_err().code, Code::Internal);
    it.assert_sound();
}

fn a_ping_writes(it: Fixture) {
    it.store.ping().unwrap();
    it.store.ping().unwrap();
    assert_eq!(it.texts("SELECT 'once' FROM pulse"), ["once"]);
    assert!(kinds(&it.store).is_empty());
}
