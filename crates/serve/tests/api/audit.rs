use glovebox_store::{Expectations, verify_export};
use serde_json::json;

use crate::client::Ask;
use crate::house::{House, shell};

pub(crate) fn an_export_can_be_verified_elsewhere() {
    let house = House::open();
    for _ in 0..3 {
        assert_eq!(house.post("/v1/execs", &shell("true")).status, 200);
    }
    let checkpoint = house.get("/v1/audit/checkpoint").json();
    let expected = Expectations {
        checkpoint: Some(serde_json::from_value(checkpoint.clone()).unwrap()),
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
