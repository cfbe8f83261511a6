//! Rows that authorise something, and whole spaces: whatever is done to them behind the ledger's
//! back is found, where they are kept and in an export, and named.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use crate::common::approval::{about_exec, approval, grant, kind, yes};
use crate::common::{
    Fixture, fixture, on_both_databases, queued, run, running, running_in, sandbox_in,
};
use glovebox_model::{
    Code, Correlation, Delivery, ExecId, GrantId, Role, SecretGiven, SecretGrant, SpaceId, Status,
    Token, TokenId,
};
use glovebox_store::{
    Actor, Admitted, Expectations, ExportFormat, SealedValue, SecretWrite, StateDir, Store, Terms,
    Verification, verify_export,
};
use jiff::{SignedDuration, Timestamp};

on_both_databases! {
    every_edit_of_a_row_that_authorises_something_is_found,
    every_cut_of_a_space_is_found,
    a_space_that_was_deleted_does_not_begin_anew,
    what_is_done_by_the_store_itself_is_sound,
    an_export_of_all_spaces_that_was_changed_is_found,
    a_forged_row_is_not_used_and_never_vouched_for,
    an_edited_exec_is_ended_by_who_takes_it_over,
    an_edited_or_invented_entry_is_not_believed_at_use,
    whose_a_sandbox_is_and_what_it_has_is_under_proof,
}

fn ann() -> Actor {
    Actor {
        token_id: None,
        name: "ann".to_owned(),
    }
}

fn other() -> SpaceId {
    "other".parse().unwrap()
}

/// Two rows of each table in each of two spaces; and a third space with more than a checkpoint.
fn world(it: &Fixture) {
    for (number, space) in [SpaceId::local(), other()].into_iter().enumerate() {
        for of in 0..2 {
            fill(it, &space, 10 * number + of);
        }
        run(&it.store, running_in(space));
    }
    it.store
        .change_settings(&ann(), |mut settings, _| {
            settings.max_queued += 1;
            Ok(settings)
        })
        .unwrap();
    for _ in 0..130 {
        run(&it.store, running_in("long".parse().unwrap()));
    }
}

fn fill(it: &Fixture, space: &SpaceId, number: usize) {
    let store = &it.store;
    let id = u8::try_from(number).unwrap();
    let token = Token {
        token_id: TokenId::from_random([id; 16]),
        name: format!("ci-{number}").parse().unwrap(),
        role: Role::Agent,
        space_id: space.clone(),
        scopes: Role::Agent.scopes(),
        user_id: None,
        agent_id: None,
        conversation_id: None,
        created_at: Timestamp::now(),
        expires_at: None,
        revoked_at: None,
    };
    store.create_token(&token, &[id; 32], &ann()).unwrap();
    let mut asked = approval();
    asked.space_id = space.clone();
    asked.ids = Correlation::of_space(space.clone());
    asked.ids.conversation_id = Some(format!("talk {number}"));
    store.insert_approval(&asked).unwrap();
    let (new, now) = (grant("curl"), Timestamp::now());
    let granted = new.id.clone();
    store
        .reply_granting(&asked.id, kind("ann"), new, now)
        .unwrap();
    store.use_grant(&granted).unwrap();
    store
        .sandbox_put_new(&sandbox_in(space.clone(), &format!("kept-{number}")), "o")
        .unwrap();
    let name = format!("key-{number}").parse().unwrap();
    let write = SecretWrite {
        name,
        seen: 0,
        hosts: BTreeSet::new(),
        deliveries: [Delivery::File].into(),
        value: Some(sealed(1)),
    };
    let secret = store.put_secret(space, write, &ann()).unwrap();
    let given = SecretGrant {
        grant_id: GrantId::from_random([id; 16]),
        secret: secret.name,
        conversation_id: Some("talk".to_owned()),
        agent_id: None,
        deliveries: [Delivery::File].into(),
        granted_by: "ann".to_owned(),
        granted_at: now,
        expires_at: now + SignedDuration::from_hours(1),
        revoked_at: None,
    };
    store.grant_secret(space, &given, &ann()).unwrap();
}

fn sealed(version: u64) -> SealedValue {
    SealedValue {
        version,
        key_id: "k1".to_owned(),
        sealed: vec![7; 40],
    }
}

/// What both say after a person with full access to the database did this: verification, and that
/// of an export, unless the export is refused.
struct After {
    here: Verification,
    export: Result<Verification, glovebox_model::Error>,
}

impl After {
    fn says(&self, what: &str) -> bool {
        says(&self.here, what)
    }

    fn export_says(&self, what: &str) -> bool {
        match &self.export {
            Ok(verification) => says(verification, what),
            Err(error) => error.code == Code::LedgerTampered,
        }
    }
}

fn says(verification: &Verification, what: &str) -> bool {
    let problems = verification.problems.iter();
    let told = problems.map(|it| format!("{}: {}", it.space_id.as_deref().unwrap_or(""), it.what));
    let mut told = told;
    told.any(|it| it.contains(what))
}

fn exported(store: &Store) -> Result<Vec<u8>, glovebox_model::Error> {
    let mut out = Vec::new();
    store.export_all(ExportFormat::Jsonl, &mut out)?;
    Ok(out)
}

fn look(store: &Store, expectations: &Expectations) -> After {
    After {
        here: store.verify_all(expectations).unwrap(),
        export: exported(store)
            .map(|export| verify_export(export.as_slice(), expectations).unwrap()),
    }
}

/// The tables of the database, to be put back.
fn tables(it: &Fixture) -> Vec<String> {
    it.texts(
        "SELECT CAST(tablename AS TEXT) FROM pg_catalog.pg_tables WHERE schemaname = 'glovebox'",
    )
}

fn after(it: &Fixture, tamper: &str) -> After {
    let nothing = Expectations::default();
    if it.shared.is_none() {
        let copy = it.copy();
        copy.drop_triggers();
        assert!(copy.execute(tamper) > 0, "changes nothing: {tamper}");
        return look(&copy.open_again(), &nothing);
    }
    let tables = tables(it);
    let each = |make: &dyn Fn(&String) -> String| tables.iter().map(make).collect::<String>();
    it.execute(&format!(
        "DROP SCHEMA IF EXISTS saved CASCADE; CREATE SCHEMA saved; {}",
        each(&|name| format!("CREATE TABLE saved.{name} AS TABLE {name};"))
    ));
    it.set_triggers(false);
    assert!(it.execute(tamper) > 0, "changes nothing: {tamper}");
    let found = look(&it.open_again(), &nothing);
    it.execute(&each(&|name| {
        format!("TRUNCATE {name}; INSERT INTO {name} TABLE saved.{name};")
    }));
    it.set_triggers(true);
    found
}

fn assert_found(it: &Fixture, tamper: &str, what: &str) {
    let found = after(it, tamper);
    assert!(found.says(what), "{tamper}\n{what}: {:#?}", found.here);
    assert!(
        found.export_says(what),
        "{tamper}\nan export says nothing of {what}: {:#?}",
        found.export
    );
}

/// A table, the column that names a row, and those that may change without a word: how a sandbox
/// stands now.
const GUARDED: [(&str, &str, &[&str]); 8] = [
    ("tokens", "token_id", &[]),
    ("approvals", "approval_id", &[]),
    ("grants", "grant_id", &[]),
    ("secret_grants", "grant_id", &[]),
    ("secrets", "name", &[]),
    ("secret_values", "name", &[]),
    (
        "sandboxes",
        "sandbox_id",
        &["owner_id", "backend", "image", "state", "last_used_at"],
    ),
    ("settings", "one", &["one"]),
];

/// Columns that can be written, with their types.
fn columns(it: &Fixture, table: &str) -> Vec<(String, String)> {
    let sql = match it.shared.is_some() {
        true => format!(
            "SELECT column_name || ' ' || data_type FROM information_schema.columns
             WHERE table_schema = 'glovebox' AND table_name = '{table}' ORDER BY 1"
        ),
        false => {
            format!(
                "SELECT name || ' ' || type FROM pragma_table_xinfo('{table}') WHERE hidden = 0"
            )
        }
    };
    let texts = it.texts(&sql);
    let split = |text: &String| {
        let (name, kind) = text.split_once(' ').unwrap();
        (name.to_owned(), kind.to_lowercase())
    };
    texts.iter().map(split).collect()
}

fn every_edit_of_a_row_that_authorises_something_is_found(it: Fixture) {
    world(&it);
    let sound = look(&it.store, &Expectations::default());
    assert!(sound.here.is_sound(), "{:#?}", sound.here);
    let export = sound.export.unwrap();
    assert!(export.is_sound(), "{export:#?}");
    assert_eq!(export.spaces, sound.here.spaces);
    assert_eq!(sound.here.spaces.len(), 3);
    for (table, key, free) in GUARDED {
        // The values of a secret are a part of it.
        let named = match table {
            "secret_values" => "secrets",
            table => table,
        };
        let keys = it.texts(&format!(
            "SELECT CAST({key} AS TEXT) FROM {table} ORDER BY 1"
        ));
        let row = format!("CAST({key} AS TEXT) = '{}'", keys[0]);
        let name = format!("`{named}/{}`", keys[0]);
        for (column, kind) in columns(&it, table) {
            if free.contains(&column.as_str()) {
                continue;
            }
            let value = match kind.as_str() {
                "integer" | "bigint" => format!("coalesce({column}, 0) + 1"),
                "blob" | "bytea" => "zeroblob(3)".to_owned(),
                _ if column == "record" && table == "sandboxes" => {
                    "replace(record, 'proj', 'others')".to_owned()
                }
                _ => format!("coalesce({column}, '') || 'x'"),
            };
            let what = match column == key || column == "space_id" || table == "secret_values" {
                true => format!("/{}", keys[0]),
                false => format!("{name} was edited"),
            };
            let edit = format!("UPDATE {table} SET {column} = {value} WHERE {row}");
            assert_found(&it, &edit, &what);
            // One of each is enough where a copy takes long.
            if it.shared.is_some() && column != key {
                break;
            }
        }
        let deleted = match table {
            "secret_values" => "was edited",
            _ => "is missing",
        };
        let delete = format!("DELETE FROM {table} WHERE {row}");
        assert_found(&it, &delete, &format!("{name} {deleted}"));
    }
    let swap = |table: &str, key: &str, column: &str| {
        let keys = it.texts(&format!("SELECT {key} FROM {table} ORDER BY 1"));
        let swap = format!(
            "CREATE TEMPORARY TABLE aside AS SELECT {key} AS id, {column} AS it FROM {table};
             UPDATE {table} SET {column} = (SELECT it FROM aside WHERE id = '{1}')
                 WHERE {key} = '{0}';
             UPDATE {table} SET {column} = (SELECT it FROM aside WHERE id = '{0}')
                 WHERE {key} = '{1}';",
            keys[0], keys[1]
        );
        for key in &keys[..2] {
            assert_found(&it, &swap, &format!("`{table}/{key}` was edited"));
        }
    };
    swap("tokens", "token_id", "hash");
    swap("approvals", "approval_id", "record");
    swap("grants", "grant_id", "record");
    swap("secrets", "name", "record");
    // Invented: another key for what was allowed, and a secret's value without its secret.
    let mine = "t_abababababab4bab8bababababababab";
    assert_found(
        &it,
        &format!(
            "INSERT INTO tokens (token_id, space_id, name, hash, created_at, token)
             SELECT '{mine}', space_id, 'mine', hash, created_at, token FROM tokens LIMIT 1"
        ),
        &format!("`tokens/{mine}` is there, and no entry made it"),
    );
    assert_found(
        &it,
        "INSERT INTO secret_values (space_id, name, version, key_id, sealed)
         SELECT space_id, 'mine', version, key_id, sealed FROM secret_values LIMIT 1",
        "/mine`",
    );
    // Where the last entry about a row stands is not believed; it is in no export.
    for tamper in [
        "UPDATE ledger_rows SET seq = seq + 1 WHERE kind = 'settings'",
        "UPDATE ledger_rows SET seq = 1 WHERE kind = 'grants'",
        "DELETE FROM ledger_rows WHERE kind = 'tokens'",
        "DELETE FROM ledger_rows WHERE kind = 'spaces'",
        "UPDATE ledger_rows SET seq = seq - 1 WHERE kind = 'spaces' AND key = 'long'",
        "INSERT INTO ledger_rows VALUES ('other', 'tokens', 'x', 1)",
        "INSERT INTO ledger_rows VALUES ('other', 'x', 'x', 1), ('other', 'tokens', '', 1)",
    ] {
        let found = after(&it, tamper);
        assert!(!found.here.is_sound(), "{tamper}");
        assert!(found.export.unwrap().is_sound(), "{tamper}");
    }
}

const SPACED: [&str; 13] = [
    "sandbox_execs",
    "ledger_entries",
    "ledger_terms",
    "ledger_heads",
    "ledger_checkpoints",
    "ledger_rows",
    "tokens",
    "approvals",
    "grants",
    "secret_grants",
    "secrets",
    "secret_values",
    "sandboxes",
];

fn every_cut_of_a_space_is_found(it: Fixture) {
    world(&it);
    let wipe = |space: &str| {
        SPACED
            .map(|table| format!("DELETE FROM {table} WHERE space_id = '{space}';"))
            .concat()
    };
    assert_found(&it, &wipe("other"), "other: the ");
    // With what the operator's chain has as an index of it, too.
    let forgotten = "DELETE FROM ledger_rows WHERE kind = 'spaces' AND key = 'long'";
    assert_found(&it, &format!("{} {forgotten}", wipe("long")), "long: the ");
    let whole = after(&it, &wipe("local"));
    assert!(
        whole.says("local: the operator's ledger is gone"),
        "{:?}",
        whole.here
    );
    assert!(whole.says("other: the operator's ledger does not know this space"));
    let everything = ["local", "other", "long"].map(wipe).concat();
    let gone = after(
        &it,
        &format!("{everything} DELETE FROM settings; DELETE FROM secrets_key;"),
    );
    assert!(
        gone.says("the operator's ledger is gone"),
        "{:?}",
        gone.here
    );
    for (tamper, what) in [
        (
            "UPDATE ledger_heads SET space_id = 'x' WHERE space_id = 'other'",
            "x: ",
        ),
        (
            "UPDATE ledger_entries SET body = 'x' WHERE space_id = 'long' AND seq = 7",
            "long: entry was edited",
        ),
        (
            "DELETE FROM ledger_entries WHERE space_id = 'long' AND seq > 200",
            "long: the head names",
        ),
        (
            "DELETE FROM sandbox_execs WHERE space_id = 'long'",
            "long: the row of exec",
        ),
        (
            "DELETE FROM ledger_checkpoints WHERE space_id = 'long'",
            "long: the checkpoint is missing",
        ),
    ] {
        let found = after(&it, tamper);
        assert!(found.says(what), "{tamper}: {:#?}", found.here);
    }
}

/// The rows of a space with its truly signed head, as they were before: found when the operator's
/// chain has noted a later head, or by a receipt.
#[test]
fn a_space_that_was_put_back_to_an_older_state_is_found() {
    let it = fixture();
    let (short, long): (SpaceId, SpaceId) = (other(), "long".parse().unwrap());
    run(&it.store, running_in(short.clone()));
    run(&it.store, running_in(long.clone()));
    let old = it.copy();
    let receipt = run(&it.store, running_in(short.clone())).receipt.unwrap();
    for _ in 0..130 {
        run(&it.store, running_in(long.clone()));
    }
    it.drop_triggers();
    let put_back = |space: &SpaceId| {
        let tables = SPACED.into_iter().filter(|table| *table != "ledger_rows");
        let each = tables.map(|table| {
            let columns: Vec<_> = columns(&it, table).into_iter().map(|it| it.0).collect();
            let columns = columns.join(", ");
            format!(
                "DELETE FROM {table} WHERE space_id = '{space}';
                 INSERT INTO {table} ({columns}) SELECT {columns} FROM old.{table}
                     WHERE space_id = '{space}';"
            )
        });
        let path = old.state.database();
        it.execute(&format!(
            "ATTACH '{}' AS old; {}",
            path.display(),
            each.collect::<String>()
        ));
    };
    put_back(&long);
    let found = look(&it.open_again(), &Expectations::default());
    assert!(
        found.says("long: the operator's ledger names entry 256"),
        "{:#?}",
        found.here
    );
    assert!(found.export_says("long: the operator's ledger names entry 256"));
    put_back(&short);
    let kept = Expectations {
        of_spaces: vec![(short, receipt)],
        ..Expectations::default()
    };
    let found = look(&it.open_again(), &kept);
    assert!(
        found.says("other: a receipt names entry 4"),
        "{:#?}",
        found.here
    );
    assert!(found.export_says("other: a receipt names entry 4"));
}

fn a_space_that_was_deleted_does_not_begin_anew(it: Fixture) {
    run(&it.store, running_in(other()));
    match it.shared.is_some() {
        true => it.set_triggers(false),
        false => it.drop_triggers(),
    }
    for table in ["ledger_entries", "ledger_heads", "sandbox_execs"] {
        it.execute(&format!("DELETE FROM {table} WHERE space_id = 'other'"));
    }
    let error = it.open_again().plan("o", &running_in(other())).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered);
    assert!(error.message.contains("`other` is gone"), "{error}");
    it.execute("DELETE FROM ledger_heads");
    it.execute("DELETE FROM ledger_entries");
    let error = it.open_again().plan("o", &running_in(SpaceId::local()));
    assert_eq!(error.unwrap_err().code, Code::LedgerTampered);
}

/// Everything that changes a row says so.
fn what_is_done_by_the_store_itself_is_sound(it: Fixture) {
    world(&it);
    let (store, space, now) = (&it.store, other(), Timestamp::now());
    for token in store.tokens(&Default::default()).unwrap().items {
        store.revoke_token(&token.token_id, &ann()).unwrap();
    }
    for grant in store.grants(&Default::default()).unwrap().items {
        store.revoke_grant(None, &grant.id, &ann()).unwrap();
    }
    let record = running_in(space.clone());
    let mut asked = about_exec(&record);
    asked.ids.space_id = space.clone();
    store.insert_approval(&asked).unwrap();
    store.reply(&asked.id, yes("ann"), now).unwrap();
    store.use_approval(&asked.id, "d1").unwrap();
    let mut late = crate::common::approval::late(approval());
    late.ids.conversation_id = None;
    store.insert_approval(&late).unwrap();
    assert_eq!(store.expire_approvals(now).unwrap().len(), 1);
    // A grant that has expired makes room; one that is in force ends when the earlier does.
    for hours in [-1, 2, 1] {
        let asked = approval();
        store.insert_approval(&asked).unwrap();
        let mut new = grant("make");
        new.expires_at = now + SignedDuration::from_hours(hours);
        store
            .reply_granting(&asked.id, kind("ann"), new, now)
            .unwrap();
    }
    for it in store.sandboxes(&space, 10).unwrap() {
        store
            .sandbox_remove(&it.sandbox.sandbox_id, "o", "old")
            .unwrap();
    }
    let name: glovebox_model::SecretName = "key-10".parse().unwrap();
    let write = SecretWrite {
        name: name.clone(),
        seen: 1,
        hosts: BTreeSet::new(),
        deliveries: [Delivery::File].into(),
        value: Some(sealed(2)),
    };
    store.put_secret(&space, write, &ann()).unwrap();
    let given = SecretGiven {
        name: name.clone(),
        version: 2,
        delivery: Delivery::File,
        grant_id: None,
    };
    let ids = Correlation::of_space(space.clone());
    store.use_secrets(&ids, &record.exec_id, &[given]).unwrap();
    store
        .reseal_secrets("k1", "k2", &ann(), |_, sealed| Ok(sealed.to_vec()))
        .unwrap();
    store.remove_secret(&space, &name, &ann()).unwrap();
    let found = look(store, &Expectations::default());
    assert!(found.here.is_sound(), "{:#?}", found.here);
    let export = found.export.unwrap();
    assert!(export.is_sound(), "{export:#?}");
    // An export of one space has its own rows.
    let mut out = Vec::new();
    store.export(&space, ExportFormat::Jsonl, &mut out).unwrap();
    let one = verify_export(out.as_slice(), &Expectations::default()).unwrap();
    assert!(one.is_sound(), "{one:#?}");
    assert_eq!(one.spaces.len(), 1);
}

/// What was done to a row is not covered by the entry of a later change: the change is refused, and
/// where the place of the last entry was put back with the row, verification finds two threads.
fn a_forged_row_is_not_used_and_never_vouched_for(it: Fixture) {
    let space = SpaceId::local();
    fill(&it, &space, 1);
    let asked = approval();
    it.store.insert_approval(&asked).unwrap();
    let now = Timestamp::now();
    it.store.reply(&asked.id, yes("ann"), now).unwrap();
    let row = format!("approval_id = '{}'", asked.id);
    // Not beside our tables, where nothing else may be.
    let aside = match it.shared.is_some() {
        true => "CREATE SCHEMA IF NOT EXISTS aside;".to_owned(),
        false => format!(
            "ATTACH '{}' AS aside;",
            it.dir.path().join("aside").display()
        ),
    };
    it.execute(&format!(
        "{aside} CREATE TABLE aside.saved_row AS SELECT * FROM approvals WHERE {row}"
    ));
    let last = "kind = 'approvals' AND key";
    let approved = it.texts(&format!(
        "SELECT CAST(seq AS TEXT) FROM ledger_rows WHERE {last} = '{}'",
        asked.id
    ));
    it.store.use_approval(&asked.id, "d1").unwrap();
    it.assert_sound();
    let put_back = format!(
        "{aside} DELETE FROM approvals WHERE {row};
         INSERT INTO approvals SELECT * FROM aside.saved_row;"
    );
    it.execute(&put_back);
    let error = it.store.use_approval(&asked.id, "d1").unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{error}");
    assert!(error.message.contains(asked.id.as_str()), "{error}");
    // With the place of the entry that made it so, it passes for what it was, and is found later.
    it.execute(&format!(
        "UPDATE ledger_rows SET seq = {} WHERE {last} = '{}'",
        approved[0], asked.id
    ));
    it.store.use_approval(&asked.id, "d1").unwrap();
    let found = look(&it.store, &Expectations::default());
    assert!(
        found.says("was put back before this entry"),
        "{:#?}",
        found.here
    );
    assert!(found.export_says("was put back before this entry"));

    let grants = it.store.grants(&Default::default()).unwrap().items;
    it.execute("UPDATE grants SET expires_at = expires_at + 1");
    let error = it.store.use_grant(&grants[0].id).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{error}");
    it.execute("UPDATE tokens SET name = name || 'x'");
    let tokens = it.store.tokens(&Default::default()).unwrap().items;
    // It can be ended, and that it was forged is told for ever.
    let id = &tokens[0].token_id;
    it.store.revoke_token(id, &ann()).unwrap();
    let found = look(&it.store, &Expectations::default());
    let what = format!("`tokens/{id}` was forged, and ended by this entry");
    assert!(
        found.says(&what) && found.export_says(&what),
        "{:#?}",
        found.here
    );
    // A tenant is told that its own space is gone.
    run(&it.store, running_in(other()));
    match it.shared.is_some() {
        true => it.set_triggers(false),
        false => it.drop_triggers(),
    }
    for table in ["ledger_entries", "ledger_heads", "sandbox_execs"] {
        it.execute(&format!("DELETE FROM {table} WHERE space_id = 'other'"));
    }
    let own = it.store.verify(&other(), &Expectations::default()).unwrap();
    assert!(
        says(&own, "other: the operator's ledger names entry 1"),
        "{own:?}"
    );
    let never = "never".parse().unwrap();
    let never = it.store.verify(&never, &Expectations::default()).unwrap();
    assert!(never.is_sound(), "{never:?}");
}

fn an_export_of_all_spaces_that_was_changed_is_found(it: Fixture) {
    world(&it);
    let text = String::from_utf8(exported(&it.store).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is = |line: &str, kind: &str| line.starts_with(&format!("{{\"type\":\"{kind}\""));
    let found = |changed: &[&str]| {
        let changed = changed.join("\n");
        let verified = verify_export(changed.as_bytes(), &Expectations::default()).unwrap();
        !verified.is_sound()
    };
    // Any line that is left out, and any row that is another's, is missed.
    for index in 1..lines.len() {
        // Those of entries are told by the chain, so a few will do.
        if is(lines[index], "entry") && index % 50 != 0 {
            continue;
        }
        let mut cut = lines.clone();
        cut.remove(index);
        assert!(found(&cut), "without {}", lines[index]);
    }
    let starts = (0..lines.len()).filter(|index| is(lines[*index], "header"));
    let starts: Vec<usize> = starts.collect();
    assert_eq!(starts.len(), 3);
    let end = lines.len() - 1;
    let last = [&lines[..starts[2]], &lines[end..]].concat();
    let middle = [&lines[..starts[1]], &lines[starts[2]..]].concat();
    let twice = [&lines[..end], &lines[starts[1]..]].concat();
    let swapped = [
        &lines[starts[1]..starts[2]],
        &lines[..starts[1]],
        &lines[starts[2]..],
    ];
    for changed in [last, middle, twice, swapped.concat()] {
        assert!(found(&changed));
    }
}

#[test]
fn a_database_that_is_gone_is_not_made_anew() {
    let it = fixture();
    run(&it.store, running_in(SpaceId::local()));
    let (state, path) = (&it.state, it.state.path());
    let clear = || {
        for name in ["glovebox.db-wal", "glovebox.db-shm"] {
            let _ = std::fs::remove_file(path.join(name));
        }
    };
    let refused = |state: &StateDir| {
        let error = Store::open(state).unwrap_err();
        assert_eq!(error.code, Code::StoreUnavailable);
        assert!(error.message.contains("glovebox.db"), "{error}");
        assert!(error.hints.iter().any(|hint| hint.contains("restore")));
    };
    std::fs::remove_file(state.database()).unwrap();
    clear();
    refused(state);
    assert!(!state.database().exists(), "nothing is made");
    // An empty one is no better.
    std::fs::write(state.database(), "").unwrap();
    refused(state);
    clear();
    // Keys that are kept elsewhere may be there before the first database.
    let elsewhere = it.dir.path().join("elsewhere");
    let open = || StateDir::open(&elsewhere).unwrap().with_keys(path).unwrap();
    drop(Store::open(&open()).unwrap());
    std::fs::create_dir(elsewhere.join("projects/left")).unwrap();
    for name in ["glovebox.db", "glovebox.db-wal", "glovebox.db-shm"] {
        let _ = std::fs::remove_file(elsewhere.join(name));
    }
    refused(&open());
}

/// The key gets its name after the first commit: killed before or after it, the next start goes on.
#[test]
fn a_ledger_whose_beginning_was_cut_off_begins_again_or_goes_on() {
    let it = fixture();
    run(&it.store, running_in(SpaceId::local()));
    let key = it.state.ledger_key();
    let unconfirmed = key.with_extension("key.new");
    std::fs::rename(&key, &unconfirmed).unwrap();
    let store = it.open_again();
    run(&store, running_in(SpaceId::local()));
    assert!(look(&store, &Expectations::default()).here.is_sound());
    assert!(key.exists() && !unconfirmed.exists());
    // One that was left behind never takes the place of the key.
    let signs = std::fs::read(&key).unwrap();
    std::fs::write(&unconfirmed, "0".repeat(64)).unwrap();
    run(&it.open_again(), running_in(SpaceId::local()));
    assert_eq!(std::fs::read(&key).unwrap(), signs);

    let early = it.dir.path().join("early");
    let state = StateDir::open(&early).unwrap();
    std::fs::write(state.database(), "").unwrap();
    std::fs::copy(&key, early.join("ledger.key.new")).unwrap();
    let store = Store::open(&state).unwrap();
    run(&store, running_in(SpaceId::local()));
    assert!(state.ledger_key().exists());
}

/// What an older version left is under proof from the first opening on; what claims to be older and
/// was under proof is not taken up a second time.
#[test]
fn rows_of_an_older_version_are_put_under_proof() {
    let it = fixture();
    for (number, space) in [SpaceId::local(), other()].into_iter().enumerate() {
        fill(&it, &space, number);
        run(&it.store, running_in(space));
    }
    let claim = |it: &Fixture| {
        // As it was before agents were told apart.
        it.execute(
            "DROP INDEX execs_by_agent; DROP INDEX execs_by_client;
             ALTER TABLE sandbox_execs DROP COLUMN agent_id;
             CREATE UNIQUE INDEX execs_by_client ON sandbox_execs (space_id, client_id)
                 WHERE client_id IS NOT NULL",
        );
        it.database()
            .pragma_update(None, "user_version", 8)
            .unwrap()
    };
    let forged = it.copy();
    forged.execute("DROP TABLE ledger_rows; UPDATE tokens SET revoked_at = 1");
    claim(&forged);
    let error = Store::open(&forged.state).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{error}");
    // A row without any entry in its space is nothing that an older version left.
    let invented = fixture();
    invented.forget_proof();
    invented.execute(
        "INSERT INTO tokens (token_id, space_id, name, hash, created_at, token)
         VALUES ('t_1', 'local', 'mine', zeroblob(32), 1, '{}')",
    );
    claim(&invented);
    let error = Store::open(&invented.state).unwrap_err();
    assert!(error.message.contains("invented"), "{error}");

    it.forget_proof();
    claim(&it);
    let old = it.open_again();
    let found = look(&old, &Expectations::default());
    assert!(found.here.is_sound(), "{:#?}", found.here);
    assert!(found.export.unwrap().is_sound());
    it.execute("UPDATE tokens SET revoked_at = 1 WHERE space_id = 'other'");
    let found = look(&old, &Expectations::default());
    assert!(found.says("was edited"), "{:#?}", found.here);
}

/// An edited exec is neither run nor vouched for by who takes it over: it is ended, and verification
/// tells it for ever.
fn an_edited_exec_is_ended_by_who_takes_it_over(it: Fixture) {
    let wait = || {
        let record = queued();
        let terms = Terms {
            sealed_call: Some(b"the call"),
            ..Terms::default()
        };
        let admitted = it.store.admit("gone", &record, terms).unwrap();
        assert!(matches!(admitted, Admitted::Opened(_)), "{admitted:?}");
        record.exec_id
    };
    let (kept, edited, stolen) = (wait(), wait(), wait());
    let started = running();
    let _opened = it.store.plan("gone", &started).unwrap();
    let edit = |id: &ExecId, from: &str, to: &str| {
        let edit = format!(
            "UPDATE sandbox_execs SET record = replace(record, '{from}', '{to}')
             WHERE exec_id = '{id}'"
        );
        assert_eq!(it.execute(&edit), 1);
    };
    edit(&edited, "hunter2", "hunter3");
    edit(&started.exec_id, "hunter2", "hunter3");
    // Its record is that of another.
    edit(&stolen, stolen.as_str(), kept.as_str());
    it.dies("gone");
    let adopted = it.store.adopt_queued("gone", "alive").unwrap();
    let adopted: Vec<_> = adopted.iter().map(|it| it.record.exec_id.clone()).collect();
    assert_eq!(adopted, [kept]);
    let lost = it.store.recover("gone").unwrap();
    assert_eq!(lost.len(), 1);
    let found = look(&it.store, &Expectations::default());
    for id in [&edited, &stolen, &started.exec_id] {
        let record = it.store.get(&SpaceId::local(), id).unwrap();
        assert_eq!(record.status, Status::Error);
        assert_eq!(record.error.unwrap().code, Code::LedgerTampered);
        let what = format!("the row of exec `{id}` was forged, and ended by this entry");
        assert!(
            found.says(&what) && found.export_says(&what),
            "{:#?}",
            found.here
        );
    }
}

/// An entry is believed at use only as a link of its chain.
fn an_edited_or_invented_entry_is_not_believed_at_use(it: Fixture) {
    fill(&it, &SpaceId::local(), 1);
    let grant = it
        .store
        .grants(&Default::default())
        .unwrap()
        .items
        .remove(0);
    it.store.use_grant(&grant.id).unwrap();
    let place = format!("kind = 'grants' AND key = '{}'", grant.id);
    let seq = it.texts(&format!(
        "SELECT CAST(seq AS TEXT) FROM ledger_rows WHERE {place}"
    ));
    let seq = &seq[0];
    match it.shared.is_some() {
        true => it.set_triggers(false),
        false => it.drop_triggers(),
    }
    // More entries follow, so that the head does not name it.
    run(&it.store, running_in(SpaceId::local()));
    it.store.use_grant(&grant.id).unwrap();
    let later = it.texts(&format!(
        "SELECT CAST(seq AS TEXT) FROM ledger_rows WHERE {place}"
    ));
    let believed = |what: &str| {
        let error = it.store.use_grant(&grant.id).unwrap_err();
        assert_eq!(error.code, Code::LedgerTampered, "{what}: {error}");
    };
    let at = |seq: &str| format!("space_id = 'local' AND seq = {seq}");
    let columns = "at, kind, exec_id, ids, tags, body, prev_hash, hash";
    for far in ["1000000", "-1"] {
        it.execute(&format!(
            "INSERT INTO ledger_entries (space_id, seq, {columns})
                 SELECT space_id, {far}, {columns} FROM ledger_entries WHERE {};
             UPDATE ledger_rows SET seq = {far} WHERE {place}",
            at(&later[0])
        ));
        believed(far);
        it.execute(&format!("DELETE FROM ledger_entries WHERE {}", at(far)));
    }
    it.execute(&format!(
        "UPDATE ledger_rows SET seq = {} WHERE {place};
         UPDATE ledger_entries SET tags = '[]' WHERE {}",
        later[0],
        at(&later[0])
    ));
    believed("edited");
    assert_ne!(seq, &later[0]);
}

/// Only how it stands is not: that changes with each exec, without an entry.
fn whose_a_sandbox_is_and_what_it_has_is_under_proof(it: Fixture) {
    let mut row = sandbox_in(SpaceId::local(), "kept");
    row.agent_id = Some("bot".to_owned());
    it.store.sandbox_put_new(&row, "o").unwrap();
    let id = &row.sandbox_id;
    it.store
        .sandbox_update(id, "o", |mut row| {
            row.uses += 1;
            row
        })
        .unwrap();
    it.store
        .sandbox_update(id, "o", |mut row| {
            row.container_id = Some("c0ffee".to_owned());
            row
        })
        .unwrap();
    it.assert_sound();
    it.store.sandbox_ensure_unchanged(&row).unwrap();
    let what = format!("local: `sandboxes/{id}` was edited");
    for (from, to) in [
        ("\"agent_id\":\"bot\"", "\"agent_id\":\"eve\""),
        ("c0ffee", "beef"),
        (row.config_hash.as_str(), "0"),
        ("\"keep_root\":false", "\"keep_root\":true"),
    ] {
        let edit = format!("UPDATE sandboxes SET record = replace(record, '{from}', '{to}')");
        assert_found(&it, &edit, &what);
    }
    it.execute("UPDATE sandboxes SET record = replace(record, 'c0ffee', 'beef')");
    let error = it.store.sandbox_ensure_unchanged(&row).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{error}");
}
