use glovebox_store::{Expectations, verify_export};
use serde_json::{Value, json};

use crate::client::Ask;
use crate::house::{House, shell};

pub(crate) fn an_export_can_be_verified_elsewhere() {
    let house = House::open();
    for _ in 0..3 {
        assert_eq!(house.post("/v1/execs", &shell("true")).status, 200);
    }
    let checkpoint = house.get("/v1/audit/checkpoint").json();
    let expected = Expectations {
        checkpoints: vec![serde_json::from_value(checkpoint.clone()).unwrap()],
        ..Expectations::default()
    };
    // More often than at once: whoever has ended leaves its place.
    for _ in 0..6 {
        let export = house.get("/v1/audit/export");
        assert_eq!(export.header("content-type"), Some("application/x-ndjson"));
        let verified = verify_export(export.body.as_slice(), &expected).unwrap();
        assert!(verified.is_sound(), "{:?}", verified.problems);
        assert_eq!(json!(verified.head.unwrap().seq), checkpoint["seq"]);
        let events = house.get("/v1/audit/export?format=ocsf").text();
        assert_eq!(json!(events.lines().count()), checkpoint["seq"]);
        assert_eq!(house.get("/v1/audit/verify").json()["sound"], true);
    }
    let auditor = json!({"name": "a", "role": "auditor", "space_id": "own"});
    let auditor = house.token(&auditor);
    let as_auditor = |path: &str| Ask::new("GET", path).token(&auditor).send(house.address);
    let own = as_auditor("/v1/audit/checkpoint").json();
    assert_eq!(own["space_id"], "own", "{own}");
    assert!(!as_auditor("/v1/audit/export").text().contains("\"local\""));
}

/// The admin's route looks at all spaces, and a space that is deleted behind the server is missed.
pub(crate) fn the_admin_verifies_all_spaces_and_a_tenant_its_own() {
    let house = House::open();
    let tenant = json!({"name": "a", "role": "auditor", "space_id": "own"});
    let tenant = house.token(&tenant);
    let as_tenant = |path: &str| Ask::new("GET", path).token(&tenant).send(house.address);
    let spaces = |answer: &Value| -> Vec<String> {
        let spaces = answer["spaces"].as_array().unwrap().iter();
        let names = spaces.map(|it| it["space_id"].as_str().unwrap().to_owned());
        names.collect()
    };
    let all = house.get("/v1/audit/verify").json();
    assert_eq!(all["sound"], true, "{all}");
    assert_eq!(spaces(&all), ["local", "own"]);
    for path in ["/v1/audit/verify?space_id=own", "/v1/audit/verify"] {
        assert_eq!(spaces(&as_tenant(path).json()), ["own"]);
    }
    for path in [
        "/v1/audit/verify?space_id=local",
        "/v1/audit/export?space_id=local",
    ] {
        assert_eq!(as_tenant(path).status, 403, "{path}");
    }
    assert_eq!(house.get("/v1/audit/export?space_id=own").status, 200);

    let database = house.directory.path().join("state/glovebox.db");
    let database = rusqlite::Connection::open(database).unwrap();
    let said = |what: &str| {
        let found = house.get("/v1/audit/verify").json();
        assert_eq!(found["sound"], false, "{found}");
        let problems = found["problems"].as_array().unwrap().iter();
        let told =
            problems.map(|it| format!("{}: {}", it["space_id"], it["what"]).replace('"', ""));
        let told: Vec<String> = told.collect();
        assert!(told.iter().any(|it| it.contains(what)), "{what}: {told:?}");
        let export = house.get("/v1/audit/export").body;
        let export = verify_export(export.as_slice(), &Expectations::default()).unwrap();
        assert!(
            export.problems.iter().any(|it| what.contains(&it.what)),
            "{export:?}"
        );
    };
    let edit = "UPDATE tokens SET name = name || 'x' WHERE space_id = 'own'";
    assert_eq!(database.execute(edit, ()).unwrap(), 1);
    let id = database
        .query_row(
            "SELECT token_id FROM tokens WHERE space_id = 'own'",
            (),
            |row| row.get::<_, String>(0),
        )
        .unwrap();
    said(&format!("own: `tokens/{id}` was edited"));
    let wipe = ["ledger_entries", "ledger_heads", "ledger_rows", "tokens"]
        .map(|table| format!("DELETE FROM {table} WHERE space_id = 'own';"))
        .concat();
    let guard: String = database
        .query_row(
            "SELECT sql FROM sqlite_master WHERE name = 'entries_are_not_deleted'",
            (),
            |row| row.get(0),
        )
        .unwrap();
    // It is put back, so that nobody misses it.
    let wipe = format!("DROP TRIGGER entries_are_not_deleted; {wipe} {guard}");
    database.execute_batch(&wipe).unwrap();
    said("own: the operator's ledger names entry 1, which is not there");
}
