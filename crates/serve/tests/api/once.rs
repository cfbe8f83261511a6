use serde_json::{Value, json};

use crate::client::{Ask, Reply};
use crate::house::{House, shell};

fn keyed(house: &House, key: &str, body: &Value) -> Ask {
    Ask::new("POST", "/v1/execs")
        .token(&house.admin)
        .header("Idempotency-Key", key)
        .json(body)
}

pub(crate) fn the_same_key_is_done_once() {
    let house = House::open();
    let ask = keyed(&house, "k", &shell("echo once"));
    let address = house.address;
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let many: Vec<_> = (0..20).map(|_| scope.spawn(|| ask.send(address))).collect();
        many.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let first = replies[0].json()["exec_id"].clone();
    for reply in &replies {
        assert_eq!(
            (reply.status, &reply.json()["exec_id"]),
            (200, &first),
            "{}",
            reply.text()
        );
    }
    let fresh = replies
        .iter()
        .filter(|it| it.header("idempotency-replayed").is_none())
        .count();
    assert_eq!(fresh, 1);
    assert_eq!(
        house.get("/v1/execs").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let mut request = shell("true");
    request["request_id"] = json!("in-the-body");
    let one = house.post("/v1/execs", &request);
    let two = house.post("/v1/execs", &request);
    assert_eq!(one.json()["exec_id"], two.json()["exec_id"]);
    assert_eq!(two.header("idempotency-replayed"), Some("true"));
}

pub(crate) fn a_key_is_for_one_request() {
    let house = House::open();
    let conflict = |reply: &Reply| {
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (409, "idempotency_conflict")
        );
    };
    assert_eq!(
        keyed(&house, "k", &shell("true"))
            .send(house.address)
            .status,
        200
    );
    conflict(&keyed(&house, "k", &shell("false")).send(house.address));
    for key in ["", " ", "a b", "é", &"x".repeat(256)] {
        assert_eq!(
            keyed(&house, key, &shell("true"))
                .send(house.address)
                .status,
            400,
            "{key:?}"
        );
    }
    let put = |body: &[u8]| {
        Ask::new("PUT", "/v1/workspaces/p/files/f")
            .token(&house.admin)
            .header("Idempotency-Key", "file")
            .body(body)
            .send(house.address)
    };
    assert_eq!(put(b"one").status, 200);
    assert_eq!(put(b"one").header("idempotency-replayed"), Some("true"));
    conflict(&put(b"two"));
    assert_eq!(house.get("/v1/workspaces/p/files/f").body, b"one");
    let other = Ask::new("DELETE", "/v1/workspaces/p").token(&house.admin);
    conflict(
        &other
            .clone()
            .header("Idempotency-Key", "file")
            .send(house.address),
    );
    assert_eq!(other.send(house.address).status, 204);
    let settings = |body: Value| {
        Ask::new("PATCH", "/v1/settings")
            .token(&house.admin)
            .header("If-Match", "\"0\"")
            .json(&body)
            .send(house.address)
    };
    assert_eq!(
        settings(json!({"max_queued": 9})).json()["settings"]["max_queued"],
        9
    );
    assert_eq!(
        settings(json!({"max_queued": 8})).status,
        409,
        "the version has changed"
    );
    let over = json!({"max_concurrent_execs": 17});
    let over = Ask::new("PATCH", "/v1/settings")
        .token(&house.admin)
        .json(&over);
    assert_eq!(over.send(house.address).status, 403, "above the ceiling");
}
