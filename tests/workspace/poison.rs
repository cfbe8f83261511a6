//! Caches that programs reuse: nobody's exec reads what another user's exec put there.

use std::fs;

use serde_json::{Value, json};
use support::{Caller, Client, Server, Start, sh, with};

use crate::ground::Ground;

const CACHES: &str = r#"
[workspace.cache.own]
mode = "per_user"
at = "/home/sandbox/.cache/own"

[workspace.cache.wheels]
mode = "shared"
at = "/home/sandbox/.cache/wheels"
"#;
const OWN: &str = "/home/sandbox/.cache/own";
const SHARED: &str = "/home/sandbox/.cache/wheels";

struct House {
    ground: Ground,
    server: Server,
}

impl House {
    fn new(caller: Caller) -> Option<Self> {
        let ground = Ground::new(caller, CACHES)?;
        let wheels = ground.trial.home().join("wheels");
        fs::create_dir(&wheels).unwrap();
        fs::write(wheels.join("good"), "the operator's\n").unwrap();
        let from = wheels.display().to_string();
        ground.json(&["cache", "fill", "wheels", "--from", &from]);
        let config = ground.config().display().to_string();
        let server = Start::default()
            .outside("GLOVEBOX_CONFIG", config)
            .on(&ground.trial);
        Some(Self { ground, server })
    }

    /// A token that is this user's alone.
    fn user(&self, space: &str, name: &str) -> Client {
        let body = json!({"name": format!("{space}-{name}"), "role": "agent", "space_id": space,
            "user_id": name});
        let made = self.server.client().post("/v1/tokens", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        self.server
            .client_of(made.json()["secret"].as_str().unwrap())
    }

    fn end(self) {
        assert_eq!(self.server.stop(), 0);
        self.ground.trial.end();
    }
}

#[track_caller]
fn ran(client: &Client, line: &str) -> Value {
    let id = client.begin(&sh(line));
    client.ended(&id)
}

/// What it printed, of an exec that must succeed.
#[track_caller]
fn says(client: &Client, line: &str) -> String {
    let record = ran(client, line);
    assert_eq!(record["status"], "succeeded", "{record}");
    record["stdout"].as_str().unwrap().to_owned()
}

fn never_shared(caller: Caller) {
    let Some(house) = House::new(caller) else {
        return;
    };
    let (ann, bob) = (house.user("local", "ann"), house.user("local", "bob"));
    assert_eq!(
        says(&ann, &format!("echo poison > {OWN}/tool && cat {OWN}/tool")),
        "poison\n"
    );
    // The control: it is a cache at all.
    assert_eq!(says(&ann, &format!("cat {OWN}/tool")), "poison\n");
    assert_eq!(says(&bob, &format!("ls -A {OWN}")), "");
    assert_eq!(
        says(&bob, &format!("echo good > {OWN}/tool; cat {OWN}/tool")),
        "good\n"
    );
    assert_eq!(says(&ann, &format!("cat {OWN}/tool")), "poison\n");
    // Nor by saying to be somebody else.
    let claim = with(sh("true"), json!({"task_ref": {"user_id": "bob"}}));
    assert_eq!(ann.post("/v1/execs", &claim).status / 100, 4);
    // Nor is the same name in another space the same user.
    let other = house.user("elsewhere", "ann");
    assert_eq!(says(&other, &format!("ls -A {OWN}")), "");

    for line in [
        format!("echo poison > {SHARED}/good"),
        format!("echo poison > {SHARED}/new"),
        format!("rm -f {SHARED}/good; test ! -e {SHARED}/good"),
        format!("chmod 777 {SHARED}/good && echo poison > {SHARED}/good"),
        format!("mv {SHARED}/good {SHARED}/bad"),
        format!("ln -sf /workspace/work/poison {SHARED}/good"),
    ] {
        let record = ran(&ann, &line);
        assert_eq!(record["status"], "failed", "`{line}`: {record}");
    }
    assert_eq!(
        says(&bob, &format!("ls -A {SHARED}; cat {SHARED}/good")),
        "good\nthe operator's\n"
    );
    house.end();
}

#[test]
fn no_exec_writes_what_another_users_exec_reads_from_a_cache() {
    never_shared(Caller::Root);
}

#[test]
fn nor_at_an_ordinary_users_server() {
    never_shared(Caller::User);
}

/// Whoever says nothing about who they are gets nobody's cache.
#[test]
fn an_exec_of_nobody_has_no_cache_of_its_own_and_is_told() {
    let Some(house) = House::new(Caller::Root) else {
        return;
    };
    let nobody = house.server.client();
    let record = ran(&nobody, &format!("ls {OWN}"));
    assert_eq!(record["status"], "failed", "{record}");
    assert!(
        record["notes"]
            .to_string()
            .contains("cache `own` is not shown"),
        "{record}"
    );
    house.end();
}
