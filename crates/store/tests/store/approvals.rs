//! Requests to people: who may answer, what counts, and that an approval lets one thing start once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Barrier;
use std::thread;

use crate::common::approval::{approval, earlier, grant, kind, late, no, reply, upgrade, yes};
use crate::common::{Fixture, on_both_databases};
use glovebox_model::{
    Answer, Approval, ApprovalState, Code, PartialProfile, Program, Reply, Result, SpaceId, Via,
};
use glovebox_store::{ApprovalFilter, EntryFilter, ExportFormat, Store};
use jiff::{SignedDuration, Timestamp};

on_both_databases! {
    an_approval_is_asked_answered_and_used_once,
    of_many_answers_at_once_one_is_first,
    a_quorum_is_of_different_people,
    one_no_ends_it,
    nobody_approves_their_own_request,
    tokens_of_one_user_are_one_person,
    nothing_beyond_policy_is_automatic,
    an_answer_that_comes_too_late_finds_it_expired,
    what_was_approved_too_long_ago_cannot_be_used,
    of_many_users_at_once_one_has_it,
    what_changed_since_is_not_what_was_approved,
    answers_that_do_not_fit_change_nothing,
    a_void_request_takes_no_answer,
    an_exec_waits_for_one_answer_at_a_time,
    approvals_are_listed_page_by_page,
    another_spaces_is_not_found,
    the_ledger_tells_the_story_and_no_secret,
    a_request_that_makes_no_sense_is_not_kept,
}

fn ask(it: &Fixture, approval: Approval) -> Approval {
    it.store.insert_approval(&approval).unwrap();
    approval
}

fn answer(store: &Store, approval: &Approval, reply: Reply) -> Result<Approval> {
    store.reply(&approval.id, reply, Timestamp::now())
}

fn state(it: &Fixture, approval: &Approval) -> ApprovalState {
    it.open_again().approval(None, &approval.id).unwrap().state
}

/// The events about approvals, oldest first.
fn events(it: &Fixture) -> Vec<String> {
    let tail = it.store.tail(&SpaceId::local(), 1000).unwrap();
    let event = |entry: &glovebox_store::Entry| entry.body["event"].as_str().map(str::to_owned);
    tail.iter().filter_map(event).collect()
}

fn an_approval_is_asked_answered_and_used_once(it: Fixture) {
    let asked = ask(&it, approval());
    // Whoever looks, in whatever process, sees the same.
    let other = it.open_again();
    assert_eq!(other.approval(None, &asked.id).unwrap(), asked);
    let pending = other.pending_for_exec(&asked.space_id, &asked.exec_id);
    assert_eq!(pending.unwrap(), Some(asked.clone()));
    let error = it.store.use_approval(&asked.id, "d1").unwrap_err();
    assert_eq!(error.code, Code::AwaitingApproval);

    let approved = answer(&other, &asked, yes("ann")).unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    assert_eq!(approved.replies[0].by, "ann");
    assert_eq!(it.store.approval(None, &asked.id).unwrap(), approved);
    let pending = it.store.pending_for_exec(&asked.space_id, &asked.exec_id);
    assert_eq!(pending.unwrap(), None);
    let error = answer(&it.store, &asked, no("bob")).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("approved by `ann`"), "{error}");

    let used = it.store.use_approval(&asked.id, "d1").unwrap();
    assert_eq!(used.state, ApprovalState::Used);
    for store in [&it.store, &other] {
        let error = store.use_approval(&asked.id, "d1").unwrap_err();
        assert_eq!(error.code, Code::Conflict);
        assert!(error.message.contains("used already"), "{error}");
        assert!(!error.hints.is_empty());
    }
    assert_eq!(
        events(&it),
        [
            "approval.requested",
            "approval.replied",
            "approval.approved",
            "approval.used"
        ]
    );
    it.assert_sound();
}

fn at_once<T: Send>(
    stores: &[Store],
    threads: usize,
    work: impl Fn(usize, &Store) -> T + Sync,
) -> Vec<T> {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let (start, work) = (&start, &work);
                let store = &stores[number % stores.len()];
                scope.spawn(move || {
                    start.wait();
                    work(number, store)
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

fn of_many_answers_at_once_one_is_first(it: Fixture) {
    let stores = [it.open_again(), it.open_again()];
    for _ in 0..5 {
        let asked = ask(&it, approval());
        let answers = at_once(&stores, 6, |number, store| {
            let by = format!("p{number}");
            let reply = if number % 2 == 0 { yes(&by) } else { no(&by) };
            answer(store, &asked, reply)
        });
        let (first, others): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        let [Ok(first)] = &first[..] else {
            panic!("{first:?}");
        };
        assert_eq!(first.replies.len(), 1);
        let said_yes = first.replies[0].answer.approves();
        assert_eq!(first.state == ApprovalState::Approved, said_yes);
        let by = &first.replies[0].by;
        for other in others {
            let error = other.unwrap_err();
            assert_eq!(error.code, Code::Conflict);
            assert!(error.message.contains(&format!("`{by}`")), "{error}");
        }
        assert_eq!(&it.store.approval(None, &asked.id).unwrap(), first);
    }
    it.assert_sound();
}

fn a_quorum_is_of_different_people(it: Fixture) {
    let mut asked = approval();
    asked.quorum = 3;
    let asked = ask(&it, asked);
    assert_eq!(
        answer(&it.store, &asked, yes("ann")).unwrap().state,
        ApprovalState::Pending
    );
    let again = answer(&it.store, &asked, yes("ann")).unwrap_err();
    assert_eq!(again.code, Code::Conflict);
    assert!(again.message.contains("`ann` has answered"), "{again}");
    let error = it.store.use_approval(&asked.id, "d1").unwrap_err();
    assert_eq!(error.code, Code::AwaitingApproval);

    let stores = [it.open_again(), it.open_again(), it.open_again()];
    // Each person tries twice at once, with five of them for two places.
    let answers = at_once(&stores, 10, |number, store| {
        answer(store, &asked, yes(&format!("p{}", number % 5)))
    });
    assert_eq!(answers.iter().filter(|it| it.is_ok()).count(), 2);
    let seen = it.store.approval(None, &asked.id).unwrap();
    assert_eq!(seen.state, ApprovalState::Approved);
    let mut people: Vec<_> = seen.replies.iter().map(|it| it.by.clone()).collect();
    people.sort();
    people.dedup();
    assert_eq!(people.len(), 3);
    let approved = events(&it);
    let approved = approved.iter().filter(|it| *it == "approval.approved");
    assert_eq!(approved.count(), 1);
    it.assert_sound();
}

fn one_no_ends_it(it: Fixture) {
    let mut asked = approval();
    asked.quorum = 2;
    let asked = ask(&it, asked);
    answer(&it.store, &asked, yes("ann")).unwrap();
    let denied = answer(&it.store, &asked, no("bob")).unwrap();
    assert_eq!(denied.state, ApprovalState::Denied);
    let error = answer(&it.store, &asked, yes("eve")).unwrap_err();
    assert!(error.message.contains("denied by `bob`"), "{error}");
    let error = it.store.use_approval(&asked.id, "d1").unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    it.assert_sound();
}

fn nobody_approves_their_own_request(it: Fixture) {
    let asked = ask(&it, approval());
    for via in [Via::Rest, Via::Websocket, Via::Cli, Via::Automatic] {
        for mut reply in [yes("agent-1"), no("agent-1")] {
            reply.via = via;
            let error = answer(&it.store, &asked, reply).unwrap_err();
            assert_eq!(error.code, Code::Forbidden, "{via}");
            assert!(!error.hints.is_empty());
        }
    }
    assert_eq!(state(&it, &asked), ApprovalState::Pending);
    assert_eq!(events(&it), ["approval.requested"]);
    // Who typed the command sits before its prompt.
    let mut prompt = yes("agent-1");
    prompt.via = Via::Terminal;
    let approved = answer(&it.store, &asked, prompt).unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
}

fn tokens_of_one_user_are_one_person(it: Fixture) {
    let of = |user: Option<&str>, reply: Reply| Reply {
        user_id: user.map(str::to_owned),
        ..reply
    };
    let mut asked = approval();
    asked.quorum = 2;
    asked.requested_user = Some("eve".to_owned());
    let asked = ask(&it, asked);
    for reply in [yes("eve-phone"), no("eve-phone")] {
        let error = answer(&it.store, &asked, of(Some("eve"), reply)).unwrap_err();
        assert_eq!(error.code, Code::Forbidden);
    }
    answer(&it.store, &asked, of(Some("ann"), yes("ann-phone"))).unwrap();
    let again = answer(&it.store, &asked, of(Some("ann"), yes("ann-desk"))).unwrap_err();
    assert_eq!(again.code, Code::Conflict);
    assert!(again.message.contains("`ann-phone`"), "{again}");
    assert!(again.message.contains("one user"), "{again}");
    let approved = answer(&it.store, &asked, of(Some("bob"), yes("bob"))).unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    let users: Vec<_> = approved.replies.iter().map(|it| &it.user_id).collect();
    assert_eq!(users, [&Some("ann".to_owned()), &Some("bob".to_owned())]);
    // Tokens of nobody in particular are told apart by their names.
    let mut plain = approval();
    plain.quorum = 2;
    let plain = ask(&it, plain);
    answer(&it.store, &plain, of(None, yes("one"))).unwrap();
    let approved = answer(&it.store, &plain, of(None, yes("two"))).unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    // Who sits before the agent's host, where the operator lets hosts ask.
    let mut hosted = approval();
    hosted.requested_user = Some("eve".to_owned());
    let hosted = ask(&it, hosted);
    let mut elicited = of(Some("eve"), yes("a person at agent-1's host"));
    elicited.via = Via::Elicitation;
    let approved = answer(&it.store, &hosted, elicited).unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    it.assert_sound();
}

fn nothing_beyond_policy_is_automatic(it: Fixture) {
    let automatic = || Reply {
        via: Via::Automatic,
        ..yes("automatic")
    };
    let mut more = approval();
    more.ask.upgrades.push(upgrade());
    let mut several = approval();
    several.quorum = 2;
    for refused in [more, several] {
        let refused = ask(&it, refused);
        let error = answer(&it.store, &refused, automatic()).unwrap_err();
        assert_eq!(error.code, Code::Forbidden);
        assert_eq!(state(&it, &refused), ApprovalState::Pending);
    }
    let plain = ask(&it, approval());
    let approved = answer(&it.store, &plain, automatic()).unwrap();
    assert_eq!(approved.replies[0].via, Via::Automatic);
    it.assert_sound();
}

fn an_answer_that_comes_too_late_finds_it_expired(it: Fixture) {
    let asked = ask(&it, late(approval()));
    let error = answer(&it.store, &asked, yes("ann")).unwrap_err();
    assert_eq!(error.code, Code::Expired);
    assert_eq!(state(&it, &asked), ApprovalState::Expired, "written down");
    // Not even with a clock that is behind.
    let error = it.store.reply(&asked.id, yes("ann"), earlier());
    assert_eq!(error.unwrap_err().code, Code::Expired);

    let forgotten = [ask(&it, late(approval())), ask(&it, late(approval()))];
    let waiting = ask(&it, approval());
    let expired = it.store.expire_approvals(Timestamp::now()).unwrap();
    assert_eq!(expired.len(), 2);
    for approval in &forgotten {
        assert!(expired.iter().any(|it| it.id == approval.id));
        assert_eq!(state(&it, approval), ApprovalState::Expired);
    }
    assert!(
        it.store
            .expire_approvals(Timestamp::now())
            .unwrap()
            .is_empty()
    );
    assert_eq!(state(&it, &waiting), ApprovalState::Pending);
    let events = events(&it);
    let expired = events.iter().filter(|it| *it == "approval.expired");
    assert_eq!(expired.count(), 3);
    it.assert_sound();
}

fn what_was_approved_too_long_ago_cannot_be_used(it: Fixture) {
    let asked = ask(&it, late(approval()));
    let approved = it.store.reply(&asked.id, yes("ann"), earlier()).unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    let error = it.store.use_approval(&asked.id, "d1").unwrap_err();
    assert_eq!(error.code, Code::Expired);
    assert_eq!(state(&it, &asked), ApprovalState::Expired);

    let asked = ask(&it, late(approval()));
    it.store.reply(&asked.id, yes("ann"), earlier()).unwrap();
    let expired = it.store.expire_approvals(Timestamp::now()).unwrap();
    assert_eq!(expired[0].id, asked.id, "approved ones expire too");
    it.assert_sound();
}

fn of_many_users_at_once_one_has_it(it: Fixture) {
    let asked = ask(&it, approval());
    answer(&it.store, &asked, yes("ann")).unwrap();
    let stores = [it.open_again(), it.open_again()];
    let used = at_once(&stores, 8, |_, store| store.use_approval(&asked.id, "d1"));
    assert_eq!(used.iter().filter(|it| it.is_ok()).count(), 1);
    for error in used.into_iter().filter_map(Result::err) {
        assert_eq!(error.code, Code::Conflict);
    }
    it.assert_sound();
}

fn what_changed_since_is_not_what_was_approved(it: Fixture) {
    let asked = ask(&it, approval());
    answer(&it.store, &asked, yes("ann")).unwrap();
    for digest in ["", "d", "d2", "D1", "d1 "] {
        let error = it.store.use_approval(&asked.id, digest).unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{digest}");
    }
    it.store.use_approval(&asked.id, "d1").unwrap();
}

fn answers_that_do_not_fit_change_nothing(it: Fixture) {
    let narrow = |json: &str| {
        let overrides: PartialProfile = serde_json::from_str(json).unwrap();
        let reason = None;
        reply("ann", Answer::Narrow { overrides, reason })
    };
    let edit = || {
        let program: Program = serde_json::from_str(r#"{"kind":"shell","script":"ls"}"#).unwrap();
        let reason = None;
        reply("ann", Answer::Edit { program, reason })
    };
    let long = Some("x".repeat(2001));
    let mut several = approval();
    several.quorum = 2;
    let (several, single) = (ask(&it, several), ask(&it, approval()));
    answer(&it.store, &several, yes("bob")).unwrap();
    for (asked, bad) in [
        (&several, narrow(r#"{"network":"none"}"#)),
        (&several, edit()),
        (&single, narrow("{}")),
        (&single, narrow(r#"{"env":{"A":"hunter2"}}"#)),
        (&single, kind("ann")),
        (&single, reply("ann", Answer::Deny { reason: long })),
    ] {
        let error = answer(&it.store, asked, bad.clone()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{bad:?}");
        assert!(!error.hints.is_empty());
        assert_eq!(state(&it, asked), ApprovalState::Pending);
    }
    let more = |change: &dyn Fn(&mut Approval)| {
        let mut asked = approval();
        change(&mut asked);
        ask(&it, asked)
    };
    for asked in [
        more(&|it| it.quorum = 2),
        more(&|it| it.ask.upgrades.push(upgrade())),
        more(&|it| it.ids.conversation_id = None),
    ] {
        let now = Timestamp::now();
        let granted = it
            .store
            .reply_granting(&asked.id, kind("ann"), grant("curl"), now);
        assert_eq!(granted.unwrap_err().code, Code::InvalidArgument);
        assert_eq!(state(&it, &asked), ApprovalState::Pending);
    }
    assert!(it.texts("SELECT grant_id FROM grants").is_empty());
    // Those that fit.
    let narrowed = answer(&it.store, &single, narrow(r#"{"network":"none"}"#)).unwrap();
    assert_eq!(narrowed.state, ApprovalState::Approved);
    let edited = ask(&it, approval());
    let edited = answer(&it.store, &edited, edit()).unwrap();
    assert_eq!(edited.state, ApprovalState::Approved);
    let again = it.open_again().approval(None, &edited.id).unwrap();
    assert_eq!(again, edited);
    it.assert_sound();
}

fn a_void_request_takes_no_answer(it: Fixture) {
    let asked = ask(&it, approval());
    let void = it.store.void_approval(&asked.id, "policy changed").unwrap();
    assert_eq!(void.state, ApprovalState::Void);
    let again = it.store.void_approval(&asked.id, "again").unwrap();
    assert_eq!(again, void);
    let error = answer(&it.store, &asked, yes("ann")).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("void"), "{error}");
    let used = ask(&it, approval());
    answer(&it.store, &used, yes("ann")).unwrap();
    it.store.use_approval(&used.id, "d1").unwrap();
    let still = it.store.void_approval(&used.id, "late").unwrap();
    assert_eq!(still.state, ApprovalState::Used);
    it.assert_sound();
}

fn an_exec_waits_for_one_answer_at_a_time(it: Fixture) {
    let first = ask(&it, approval());
    let mut second = approval();
    second.exec_id = first.exec_id.clone();
    let error = it.store.insert_approval(&second).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains(first.id.as_str()), "{error}");
    assert_eq!(
        it.store.insert_approval(&first).unwrap_err().code,
        Code::Conflict
    );
    it.store.void_approval(&first.id, "edited").unwrap();
    it.store.insert_approval(&second).unwrap();
    let filter = ApprovalFilter {
        exec: Some(first.exec_id),
        ..ApprovalFilter::default()
    };
    assert_eq!(it.store.approvals(&filter).unwrap().items.len(), 2);
}

fn approvals_are_listed_page_by_page(it: Fixture) {
    let now = Timestamp::now();
    let mut asked = Vec::new();
    for number in 0..25 {
        let mut approval = approval();
        // Several of the same moment: the id decides.
        approval.created_at = now + SignedDuration::from_secs(number / 3);
        if number % 5 == 0 {
            approval.ids.conversation_id = Some(format!("long {}", "x".repeat(3000)));
        }
        asked.push(ask(&it, approval));
    }
    let denied = answer(&it.store, &asked[7], no("ann")).unwrap();
    asked[7] = denied.clone();
    asked.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.id.clone())));
    let all = |filter: ApprovalFilter| {
        let mut filter = ApprovalFilter { limit: 4, ..filter };
        let mut seen = Vec::new();
        loop {
            let page = it.store.approvals(&filter).unwrap();
            assert!(page.items.len() <= 4);
            seen.extend(page.items);
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                return seen;
            }
        }
    };
    let space = Some(SpaceId::local());
    assert_eq!(all(ApprovalFilter::default()), asked);
    let of_space = ApprovalFilter {
        space: space.clone(),
        ..ApprovalFilter::default()
    };
    assert_eq!(all(of_space.clone()), asked);
    let pending: Vec<_> = asked
        .iter()
        .filter(|it| it.id != denied.id)
        .cloned()
        .collect();
    for space in [None, space.clone()] {
        let filter = ApprovalFilter {
            space,
            state: Some(ApprovalState::Pending),
            ..ApprovalFilter::default()
        };
        assert_eq!(all(filter), pending);
    }
    let long = asked[0..]
        .iter()
        .find_map(|it| it.ids.conversation_id.clone().filter(|id| id != "talk"));
    let of_conversation = ApprovalFilter {
        conversation_id: long.clone(),
        ..of_space.clone()
    };
    assert_eq!(all(of_conversation).len(), 5);
    let elsewhere = ApprovalFilter {
        space: Some("other".parse().unwrap()),
        ..ApprovalFilter::default()
    };
    assert!(all(elsewhere).is_empty());
    for bad in [
        ApprovalFilter {
            conversation_id: long,
            ..ApprovalFilter::default()
        },
        ApprovalFilter {
            cursor: Some("x".to_owned()),
            ..ApprovalFilter::default()
        },
    ] {
        let error = it.store.approvals(&bad).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
    }
}

fn another_spaces_is_not_found(it: Fixture) {
    let asked = ask(&it, approval());
    let other: SpaceId = "other".parse().unwrap();
    let error = it.store.approval(Some(&other), &asked.id).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(
        it.store
            .approval(Some(&SpaceId::local()), &asked.id)
            .is_ok()
    );
    let unknown = approval().id;
    let none = it.store.reply(&unknown, yes("ann"), Timestamp::now());
    assert_eq!(none.unwrap_err().code, Code::NotFound);
    assert_eq!(
        it.store.use_approval(&unknown, "d1").unwrap_err().code,
        Code::NotFound
    );
}

fn the_ledger_tells_the_story_and_no_secret(it: Fixture) {
    let mut more = approval();
    more.ask.upgrades.push(upgrade());
    let asked = ask(&it, more);
    answer(&it.store, &asked, no("ann")).unwrap();
    let granted = ask(&it, approval());
    let now = Timestamp::now();
    it.store
        .reply_granting(&granted.id, kind("ann"), grant("curl hunter2"), now)
        .unwrap();
    let by_exec = EntryFilter {
        exec_id: Some(asked.exec_id.clone()),
        ..EntryFilter::default()
    };
    let by_tag = EntryFilter {
        tags: vec![format!("approval:{}", asked.id)],
        ..EntryFilter::default()
    };
    for filter in [by_exec, by_tag] {
        let mut found = it.store.query(&SpaceId::local(), &filter).unwrap().items;
        found.reverse();
        let told: Vec<_> = found.iter().map(|it| &it.body["event"]).collect();
        assert_eq!(
            told,
            ["approval.requested", "approval.replied", "approval.denied"]
        );
        assert_eq!(found[2].body["by"]["name"], "ann");
        assert_eq!(found[0].body["details"]["digest"], "d1");
        assert_eq!(found[0].ids["conversation_id"], "talk");
    }
    for format in [ExportFormat::Jsonl, ExportFormat::Ocsf] {
        let mut out = Vec::new();
        let space = SpaceId::local();
        it.store.export(&space, format, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("grant.made"));
        assert!(!text.contains("hunter2"), "{text}");
    }
    it.assert_sound();
}

fn a_request_that_makes_no_sense_is_not_kept(it: Fixture) {
    let wrong: [&dyn Fn(&mut Approval); 6] = [
        &|it| it.state = ApprovalState::Approved,
        &|it| it.replies.push(yes("ann")),
        &|it| it.quorum = 0,
        &|it| it.digest.clear(),
        &|it| it.requested_by.clear(),
        &|it| it.space_id = "other".parse().unwrap(),
    ];
    for change in wrong {
        let mut asked = approval();
        change(&mut asked);
        let error = it.store.insert_approval(&asked).unwrap_err();
        assert_eq!(error.code, Code::Internal);
    }
    assert!(events(&it).is_empty());
}
