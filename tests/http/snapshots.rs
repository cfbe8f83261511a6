//! Snapshots over HTTP: taken, compared, restored, forked, removed, and nobody else's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use support::Gate;

use crate::files::Desk;
use crate::pool_fire::{PATIENT, at_work};

fn id(value: &Value) -> String {
    value.as_str().expect("an id").to_owned()
}

fn take(desk: &Desk) -> String {
    id(&desk.done("snapshots", &json!({}))["snapshot"]["snapshot_id"])
}

#[test]
fn a_workspace_is_rolled_back_to_what_was_verified() {
    let desk = Desk::new();
    desk.put("file", b"good");
    let first = take(&desk);
    let roll = |body: &Value| desk.client.post("/v1/workspaces/p/rollback", body);
    assert_eq!(roll(&json!({})).status, 404);
    assert_eq!(roll(&json!({"snapshot_id": first})).status, 409);
    let shown = || {
        desk.client
            .get(&format!("/v1/workspaces/p/snapshots/{first}"))
    };
    assert_eq!(shown().json()["verified_at"], Value::Null);
    let verified = desk.client.get("/v1/snapshots/verify");
    assert_eq!(verified.json()["sound"], true);
    assert!(shown().json()["verified_at"].is_string());
    let listed = desk.client.get("/v1/workspaces/p/snapshots").json();
    assert_eq!(
        listed["items"][0]["verified_at"],
        shown().json()["verified_at"]
    );

    desk.put("file", b"bad");
    let second = take(&desk);
    let done = roll(&json!({}));
    assert_eq!(done.status, 200, "{}", done.text());
    let done = done.json();
    assert_eq!(done["snapshot_id"], first.as_str());
    assert_eq!(fs::read(desk.work.join("file")).unwrap(), b"good");
    assert_ne!(done["state_before"], done["state_after"]);
    assert_eq!(roll(&json!({"snapshot_id": second})).status, 409);
    let found = desk
        .client
        .get("/v1/audit?tags=event:workspace.rolled_back,project:p")
        .json();
    let [entry] = found["items"].as_array().unwrap().as_slice() else {
        panic!("{found}");
    };
    let state = &entry["body"]["details"]["state"];
    assert_eq!(state["before"], done["state_before"]);
    assert_eq!(state["after"], done["state_after"]);
    desk.close();
}

#[test]
fn a_workspace_is_as_it_was_and_back_again() {
    let desk = Desk::new();
    let large: Vec<u8> = (0..3_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    desk.put("large", &large);
    desk.put("run?mode=0750", b"#!/bin/sh\n");
    symlink("/etc/passwd", desk.work.join("link")).unwrap();
    let taken = desk.done("snapshots", &json!({"label": "first", "note": "by hand"}));
    let first = id(&taken["snapshot"]["snapshot_id"]);
    assert_eq!(taken["snapshot"]["label"], "first");
    assert_eq!(taken["snapshot"]["counts"]["files"], 3);
    desk.put("large", b"small now");
    desk.put("new/file", b"new\n");
    desk.delete("run");
    fs::remove_file(desk.work.join("link")).unwrap();
    let diff = desk
        .client
        .get(&format!("/v1/workspaces/p/diff?from={first}"))
        .json();
    assert_eq!(
        (&diff["added"], &diff["removed"]),
        (&json!(2), &json!(2)),
        "{diff}"
    );
    let new = diff["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["path"] == "new/file");
    assert!(
        new.unwrap()["text"]["unified"]
            .as_str()
            .unwrap()
            .contains("+new"),
        "{diff}"
    );
    let plain = desk.client.get(&format!(
        "/v1/workspaces/p/diff?from={first}&text=false&limit=1"
    ));
    assert_eq!(plain.json()["changes"].as_array().unwrap().len(), 1);
    assert_eq!(plain.json()["truncated"], true);
    let restored = desk.done(&format!("snapshots/{first}/restore"), &Value::Null);
    let before = id(&restored["before"]);
    assert_eq!(desk.get("large").body, large);
    assert_eq!(desk.get("new/file").status, 404);
    assert_eq!(
        fs::read_link(desk.work.join("link")).unwrap().to_str(),
        Some("/etc/passwd")
    );
    let mode = fs::metadata(desk.work.join("run"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    // And what stood there is not lost.
    desk.done(&format!("snapshots/{before}/restore"), &Value::Null);
    assert_eq!(desk.get("large").body, b"small now");
    assert_eq!(desk.get("new/file").body, b"new\n");
    let two = format!("/v1/workspaces/p/diff?from={first}&to={before}");
    assert_eq!(desk.client.get(&two).json()["added"], 2);
    let listed = desk.client.get("/v1/workspaces/p/snapshots?limit=1").json();
    assert_eq!(
        (
            listed["items"].as_array().unwrap().len(),
            &listed["truncated"]
        ),
        (1, &json!(true))
    );
    let shown = desk
        .client
        .get(&format!("/v1/workspaces/p/snapshots/{first}"))
        .json();
    assert_eq!(shown["note"], "by hand");
    let gone = desk.client.send(
        "DELETE",
        &format!("/v1/workspaces/p/snapshots/{before}"),
        None,
    );
    assert_eq!(gone.status, 204, "{}", gone.text());
    let again = desk
        .client
        .get(&format!("/v1/workspaces/p/snapshots/{before}"));
    assert_eq!(again.status, 404);
    let info = desk.client.get("/v1/workspaces/p").json();
    assert_eq!(
        info["snapshots"], 2,
        "the first, and what the second restore kept: {info}"
    );
    let collected = desk.client.send("POST", "/v1/snapshots/collect", None);
    assert_eq!(collected.status, 200, "{}", collected.text());
    assert_eq!(collected.json()["spaces"][0]["space_id"], "local");
    let verified = desk.client.get("/v1/snapshots/verify").json();
    assert_eq!(verified["sound"], true, "{verified}");
    assert_eq!(verified["spaces"][0]["snapshots"], 2);
    let ledger = desk.client.get("/v1/audit/export").text();
    for event in ["snapshot.taken", "workspace.restored", "snapshot.removed"] {
        assert!(ledger.contains(event), "{event}");
    }
    desk.close();
}

#[test]
fn a_fork_is_another_workspace() {
    let desk = Desk::new();
    let then = take(&desk);
    desk.put("first", b"changed");
    let forked = desk.done("fork", &json!({"into": "q", "snapshot_id": then}));
    assert_eq!(forked["project_id"], "q");
    let now = desk.done("fork", &json!({"into": "r"}));
    assert_eq!(now["project_id"], "r");
    let first = |project: &str| {
        desk.client
            .get(&format!("/v1/workspaces/{project}/files/first"))
            .body
    };
    assert_eq!(first("q"), b"first");
    assert_eq!(first("r"), b"changed");
    assert_eq!(desk.post("fork", &json!({"into": "q"})).code(), "conflict");
    let reserved = desk.post("fork", &json!({"into": "scratch"}));
    assert_eq!(reserved.status, 403, "{}", reserved.text());
    for bad in [json!({"into": "../x"}), json!({"into": ""}), json!({})] {
        assert_eq!(desk.post("fork", &bad).status, 400, "{bad}");
    }
    // A snapshot belongs to its workspace; that it is another's is not told.
    let other = format!("/v1/workspaces/q/snapshots/{then}");
    for (method, path) in [
        ("GET", other.clone()),
        ("DELETE", other.clone()),
        ("POST", format!("{other}/restore")),
        ("GET", format!("/v1/workspaces/q/diff?from={then}")),
    ] {
        let answer = desk.client.send(method, &path, None);
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["message"], "there is no such snapshot", "{path}");
    }
    desk.close();
}

#[test]
fn nothing_is_changed_under_a_running_exec() {
    let desk = Desk::with(PATIENT);
    let then = take(&desk);
    let gate = Gate::new(&desk.trial, "gate");
    let running = at_work(&desk.client, &gate.wait());
    let restore = format!("snapshots/{then}/restore");
    for (noun, body) in [
        ("snapshots", json!({})),
        (restore.as_str(), Value::Null),
        ("reset", json!({})),
    ] {
        let answer = desk.post(noun, &body);
        assert_eq!(answer.status, 409, "{noun}: {}", answer.text());
        assert!(
            !answer.json()["error"]["hints"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    desk.done("snapshots", &json!({"live": true}));
    gate.open();
    assert_eq!(desk.client.ended(&running)["status"], "succeeded");
    desk.done(&restore, &Value::Null);
    desk.close();
}

#[test]
fn a_snapshot_of_another_space_was_never_there() {
    let desk = Desk::new();
    let own = take(&desk);
    let blue = desk
        .server
        .client_of(&desk.server.token_of("admin", "blue", "blue"));
    let kind = Some("application/octet-stream");
    blue.try_bytes("PUT", "/v1/workspaces/p/files/f", kind, b"blue")
        .unwrap();
    let random = "snap_00000000000000000000000000000000";
    let ask = |method: &str, path: String, body: Option<Value>| {
        let answer = blue.send(method, &path, body.as_ref());
        let mut said = answer.json();
        said["error"]["request_id"] = Value::Null;
        (answer.status, said)
    };
    for (method, path, body) in [
        ("GET", "/v1/workspaces/p/snapshots/ID", None),
        ("DELETE", "/v1/workspaces/p/snapshots/ID", None),
        ("POST", "/v1/workspaces/p/snapshots/ID/restore", None),
        ("GET", "/v1/workspaces/p/diff?from=ID", None),
        ("GET", "/v1/workspaces/p/diff?to=ID", None),
        (
            "POST",
            "/v1/workspaces/p/fork",
            Some(json!({"into": "q", "snapshot_id": "ID"})),
        ),
    ] {
        let of = |id: &str| {
            let body = body.clone().map(|mut body| {
                body["snapshot_id"] = json!(id);
                body
            });
            ask(method, path.replace("ID", id), body)
        };
        let (there, nowhere) = (of(&own), of(random));
        assert_eq!(there, nowhere, "{method} {path}");
        assert_eq!(there.0, 404, "{method} {path}");
    }
    assert_eq!(blue.get("/v1/snapshots/verify").status, 403);
    assert_eq!(blue.send("POST", "/v1/snapshots/collect", None).status, 403);
    assert_eq!(
        desk.client
            .get(&format!("/v1/workspaces/p/snapshots/{own}"))
            .status,
        200
    );
    desk.close();
}
