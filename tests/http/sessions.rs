//! Sessions over the API: what is typed, what is read, who may do either, and how they end.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Start, still_there, wait_until, with};

use crate::sessions_ground::{House, JOB, PATIENCE, Talk, bash, on_terminal, piece, piped};

#[test]
fn a_shell_lives_on_between_commands_and_its_record_is_an_execs() {
    let house = House::open();
    let mut talk = house.start(&with(
        bash(),
        json!({"session": {"size": {"columns": 100, "rows": 30}}}),
    ));
    talk.submit("cd /tmp; name=kept; stty size; tty");
    talk.until("30 100\r\n/dev/pts/0");
    talk.until("ready> ");
    talk.resize(90, 20);
    talk.submit("stty size; echo $name in $PWD");
    talk.until("20 90\r\nkept in /tmp");
    assert_eq!(talk.info()["terminal"], json!({"columns": 90, "rows": 20}));
    assert!(talk.screen().holds("kept in /tmp"));
    talk.submit("exit 3");
    let ended = talk.until_end();
    assert_eq!(
        (&ended["state"], &ended["exit_code"]),
        (&json!("exited"), &json!(3))
    );
    let record = talk.record();
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(record["receipt"], ended["receipt"]);
    assert!(record["receipt"]["seq"].is_u64(), "{record}");
    // What it put out is there after its end, whole and in parts.
    let (whole, _) = piece(&talk.output(0, 0, 0)["stdout"]);
    assert_eq!(whole, talk.read);
    let (part, _) = piece(&talk.output(5, 0, 0)["stdout"]);
    assert_eq!(part, talk.read[5..]);
    assert!(talk.screen().holds("exit 3"));
    let refused = talk.try_order("/input", &json!({"text": "ls\n"}));
    assert_eq!(
        (refused.status, refused.code()),
        (409, "conflict".to_owned())
    );
    assert!(
        refused.text().contains("exited with 3"),
        "{}",
        refused.text()
    );
    // To kill what has ended changes nothing.
    assert_eq!(talk.kill()["exit_code"], 3);
    house.server.client().verify_ledger();
    assert_eq!(talk.client.send("DELETE", &talk.path(""), None).status, 204);
    assert_eq!(talk.record()["status"], "failed");
    for what in ["", "/output", "/screen", "/stream", "/recording"] {
        let gone = talk.client.get(&talk.path(what));
        assert_eq!(gone.status, 404, "{what}: {}", gone.text());
    }
    assert_eq!(talk.client.send("DELETE", &talk.path(""), None).status, 404);
    house.close();
}

#[test]
fn pipes_are_apart_and_what_was_lost_on_the_way_can_be_asked_for_again() {
    let house = House::open();
    let script = "echo out; echo err >&2; while read line; do echo got $line; done; echo over";
    let mut talk = house.start(&piped(&["sh", "-c", script]));
    talk.until("out\n");
    assert!(wait_until(PATIENCE, || talk.info()["stderr"]["end"] == 4));
    assert_eq!(talk.output(0, 0, 0)["stderr"]["content"], "err\n");
    talk.send("one\ntwo\n");
    talk.until("got two\n");
    // The same again, as often as it is asked for.
    for _ in 0..2 {
        assert_eq!(
            talk.output(4, 4, 0)["stdout"]["content"],
            "got one\ngot two\n"
        );
    }
    for (order, body) in [
        ("/resize", json!({"columns": 80, "rows": 24})),
        ("/input", json!({"keys": ["C-c"]})),
    ] {
        let refused = talk.try_order(order, &body);
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.text().contains("no terminal"), "{}", refused.text());
    }
    assert_eq!(talk.order("/close-input", &json!({}))["input_closed"], true);
    let ended = talk.until_end();
    assert_eq!(
        (&ended["state"], &ended["exit_code"]),
        (&json!("exited"), &json!(0))
    );
    assert!(talk.text().ends_with("over\n"), "{}", talk.text());
    house.close();
}

#[test]
fn interrupts_and_signals_reach_what_runs_and_a_silent_command_blocks_nothing() {
    let house = House::open();
    let mut talk = house.start(&bash());
    talk.submit(JOB.0);
    talk.until(JOB.1);
    talk.keys(&["C-c"]);
    talk.until("ready> ");
    talk.submit(JOB.0);
    talk.until(JOB.1);
    talk.signal("INT");
    talk.until("ready> ");
    // A silent program is still asked and answered.
    talk.submit("read -s line; echo read ${#line}");
    talk.until("line}\r\n");
    let quiet = talk.info();
    assert_eq!(quiet["state"], "running");
    talk.submit("secret");
    talk.until("read 6\r\n");
    talk.submit("trap 'echo got usr1' USR1");
    talk.until("ready> ");
    talk.signal("SIGUSR1");
    talk.submit("");
    talk.until("got usr1");
    let unknown = talk.try_order("/signal", &json!({"signal": "NOSUCH"}));
    assert_eq!(unknown.status, 400, "{}", unknown.text());
    talk.signal("KILL");
    let ended = talk.until_end();
    assert_eq!(
        (&ended["state"], &ended["signal"]),
        (&json!("signaled"), &json!(9))
    );
    assert_eq!(ended["exit_code"], Value::Null);
    house.close();
}

/// No exit is made up: each end is told as what it was.
#[test]
fn every_end_is_told_as_what_it_was() {
    let house = House::open();
    // A child that holds all streams keeps nothing running, and is not left.
    let mut holds = house.start(&piped(&[
        "sh",
        "-c",
        "setsid sleep 1000 & echo begun; exit 4",
    ]));
    let ended = holds.until_end();
    assert_eq!(
        (&ended["state"], &ended["exit_code"]),
        (&json!("exited"), &json!(4))
    );
    // Killed: everything, whatever it forked and caught.
    let script = "trap '' TERM HUP INT; for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; sleep 1000' & done; echo begun; wait";
    let mut stubborn = house.start(&piped(&["sh", "-c", script]));
    stubborn.until("begun\n");
    let killed = stubborn.kill();
    assert_eq!(killed["state"], "killed", "{killed}");
    assert_eq!(killed["exit_code"], Value::Null);
    // Its own time, and its time without a word.
    let mut timed = with(
        piped(&["sleep", "1000"]),
        json!({"policy_overrides": {"session_time": "1s"}}),
    );
    for name in ["session_time", "timeout"] {
        timed["policy_overrides"] = json!({name: "1s"});
        let long = house.start(&timed).until_end();
        assert_eq!(
            (&long["state"], &long["limit_hit"]),
            (&json!("timed_out"), &json!("wall"))
        );
    }
    timed = piped(&["sh", "-c", "echo one; sleep 1000"]);
    timed["session"]["idle_timeout"] = json!("300ms");
    let idle = house.start(&timed).until_end();
    assert_eq!(
        (&idle["state"], &idle["limit_hit"]),
        (&json!("timed_out"), &json!("idle"))
    );
    // `yield_ms` ends nothing.
    let mut yields = on_terminal(&["sleep", "1000"]);
    yields["session"]["yield_ms"] = json!(0);
    let yielded = house.start(&yields);
    assert_eq!(yielded.info()["state"], "running");
    yielded.kill();
    // A program that is not there.
    let mut missing = house.start(&piped(&["no-such-program"]));
    let ended = missing.until_end();
    assert_eq!(
        (&ended["state"], &ended["exit_code"]),
        (&json!("exited"), &json!(127))
    );
    house.close();
}

#[test]
fn each_agent_has_its_own_and_who_reads_may_not_type() {
    let house = House::open();
    let server = &house.server;
    let client = |role, space, name: &str| server.client_of(&server.token_of(role, space, name));
    let owner = client("agent", "local", "owner");
    let mut talk = Talk::start(&owner, &bash());
    talk.until("ready> ");
    for (role, space) in [
        ("agent", "local"),
        ("agent", "elsewhere"),
        ("admin", "elsewhere"),
    ] {
        let other = client(role, space, &format!("other-{role}"));
        for (method, what, body) in [
            ("GET", "", None),
            ("GET", "/output", None),
            ("GET", "/screen", None),
            ("GET", "/stream", None),
            ("POST", "/input", Some(json!({"text": "id\n"}))),
            ("POST", "/close-input", Some(json!({}))),
            ("POST", "/resize", Some(json!({"columns": 80, "rows": 24}))),
            ("POST", "/signal", Some(json!({"signal": "KILL"}))),
            ("POST", "/kill", Some(json!({}))),
            ("DELETE", "", None),
        ] {
            let answer = other.send(method, &talk.path(what), body.as_ref());
            assert_eq!(
                answer.status,
                404,
                "{role} {space} {method} {what}: {}",
                answer.text()
            );
        }
        assert_eq!(other.get("/v1/sessions").json()["sessions"], json!([]));
    }
    let auditor = client("auditor", "local", "auditor");
    assert_eq!(auditor.get(&talk.path("/output")).status, 200);
    let typed = auditor.post(&talk.path("/input"), &json!({"text": "id\n"}));
    assert_eq!(typed.status, 403, "{}", typed.text());
    // People of the space may.
    let (id, mut person) = (talk.id.clone(), talk.clone());
    person.client = house.server.client();
    person.submit("echo typed by a person");
    talk.until("\r\ntyped by a person");
    let listed = owner.get("/v1/sessions").json();
    assert_eq!(listed["sessions"][0]["session_id"], id);
    talk.kill();
    house.close();
}

/// A guess, and not that a command which says nothing wants to be typed to.
#[test]
fn a_shell_waits_for_input_and_the_silent_command_in_it_does_not() {
    let house = House::open();
    let mut body = on_terminal(&["bash", "--norc", "--noprofile"]);
    body["exec"]["env"] = json!({"PS1": "ready> ", "TERM": "xterm-256color"});
    let mut talk = house.start(&body);
    talk.until("ready> ");
    assert!(wait_until(PATIENCE, || talk.info()["waiting_for_input"] == true));
    talk.submit("sleep 1000");
    talk.until("sleep 1000");
    let silent = || {
        let info = talk.info();
        info["idle_ms"].as_u64() >= Some(500) && info["waiting_for_input"] == false
    };
    assert!(wait_until(PATIENCE, silent), "{}", talk.text());
    talk.keys(&["C-c"]);
    talk.until("ready> ");
    assert!(wait_until(PATIENCE, || talk.info()["waiting_for_input"] == true));
    talk.kill();
    house.close();
}

/// Asked once, a request has one session, however often it is sent.
#[test]
fn a_request_that_is_sent_again_starts_nothing() {
    let house = House::open();
    // Nor does it need a place: the first one has it.
    let settings = json!({"max_sessions": 1, "max_sessions_per_space": 1});
    let set = house
        .server
        .client()
        .send("PATCH", "/v1/settings", Some(&settings));
    assert_eq!(set.status, 200, "{}", set.text());
    let keyed = house.server.client().with("Idempotency-Key", "the-same");
    let first = keyed.post("/v1/sessions", &bash());
    assert_eq!(first.status, 201, "{}", first.text());
    let again = keyed.post("/v1/sessions", &bash());
    let id = |it: &Value| it["session"]["session_id"].clone();
    assert_eq!(id(&again.json()), id(&first.json()), "{}", again.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let changed = keyed.post("/v1/sessions", &piped(&["true"]));
    assert_eq!(changed.status, 409, "{}", changed.text());
    let listed = house.server.client().get("/v1/sessions").json();
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1));
    let id = id(&first.json());
    let path = format!("/v1/sessions/{}/kill", id.as_str().unwrap());
    assert_eq!(house.server.client().post(&path, &json!({})).status, 200);
    house.close();
}

/// What is typed where nothing is shown is in no file, and no secret leaves that was granted.
#[test]
fn what_is_typed_unseen_and_what_is_secret_is_in_no_file() {
    const TYPED: &str = "typed-4bZk7vXq";
    const GRANTED: &str = "granted-8Lm2cQpRt";
    // Between two writes a busy machine may do something else for longer than usually is waited.
    let house = House::with(&Start::default().patience("held", Duration::from_secs(20)));
    let value = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, GRANTED);
    let admin = house.server.client();
    let kept = admin.send(
        "PUT",
        "/v1/secrets/key",
        Some(&json!({"value_base64": value})),
    );
    assert!(matches!(kept.status, 200 | 201), "{}", kept.text());
    let mut talk = house.start(&bash());
    talk.until("ready> ");
    talk.submit("read -s -p 'password: ' word; echo; echo length ${#word}");
    talk.until("\r\npassword: ");
    // Also with a key, beside which a fingerprint of the request is kept.
    let keyed = talk.client.clone().with("Idempotency-Key", "a-password");
    let typed = keyed.post(&talk.path("/input"), &json!({"submit": TYPED}));
    assert_eq!(typed.status, 200, "{}", typed.text());
    talk.until(&format!("length {}", TYPED.len()));
    // People of the space see every secret of it masked, across writes too.
    let (begin, end) = GRANTED.split_at(9);
    talk.submit(&format!("printf %s {begin}; printf %s {end}; echo .done"));
    talk.until(".done\r\n");
    assert!(!talk.text().contains(GRANTED), "{}", talk.text());
    assert!(!talk.screen().holds(GRANTED));
    assert!(!talk.text().contains(TYPED), "{}", talk.text());
    talk.submit("exit");
    talk.until_end();
    let record = talk.record().to_string();
    assert!(
        !record.contains(TYPED) && !record.contains(GRANTED),
        "{record}"
    );
    for secret in [TYPED, GRANTED] {
        assert_nowhere(&house.trial.state(), secret.as_bytes());
    }
    house.close();
}

/// A program that pauses in the middle of a secret: what could not wait is out, the rest is not.
#[test]
fn a_secret_that_is_put_out_slowly_is_not_put_out_whole() {
    const GRANTED: &str = "granted-8Lm2cQpRt";
    let house = House::open();
    let value = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, GRANTED);
    let admin = house.server.client();
    let body = json!({"value_base64": value});
    let kept = admin.send("PUT", "/v1/secrets/key", Some(&body));
    assert!(matches!(kept.status, 200 | 201), "{}", kept.text());
    let mut talk = house.start(&bash());
    talk.until("ready> ");
    let (begin, end) = GRANTED.split_at(9);
    talk.submit(&format!(
        "printf %s {begin}; read rest; printf %s {end}; echo .done"
    ));
    // Its beginning is let out: nothing else of this line is.
    talk.until(".done\r\n");
    talk.until(begin);
    talk.submit("");
    talk.until(".done\r\n");
    assert!(
        !talk.text().replace("\r\n", "").contains(GRANTED),
        "{}",
        talk.text()
    );
    talk.submit("exit");
    talk.until_end();
    assert_nowhere(&house.trial.state(), GRANTED.as_bytes());
    house.close();
}

fn assert_nowhere(directory: &std::path::Path, secret: &[u8]) {
    for entry in still_there(fs::read_dir(directory)).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let Some(facts) = still_there(fs::symlink_metadata(&path)) else {
            continue;
        };
        if facts.is_dir() {
            assert_nowhere(&path, secret);
        } else if facts.is_file()
            && let Some(bytes) = still_there(fs::read(&path))
        {
            let found = bytes.windows(secret.len()).any(|it| it == secret);
            assert!(!found, "{} has it", path.display());
        }
    }
}

/// A session is asked about as any exec is, and where everything is asked about no agent types.
#[test]
fn a_session_waits_for_people_and_an_agent_does_not_type_past_them() {
    let trial = support::Trial::in_memory(support::Caller::Root).expect("root");
    let start = crate::pool_fire::serve(&trial, crate::approvals_ground::MANUAL);
    let house = House {
        server: start.on(&trial),
        trial,
    };
    let server = &house.server;
    let agent = server.client_of(&server.token_of("agent", "local", "robot"));
    let ann = server.client_of(&server.token_of("approver", "local", "ann"));
    let answer = agent.post("/v1/sessions", &bash());
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.json()["session"]["state"], "waiting");
    let id = answer.json()["session"]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/sessions/{id}");
    let typed = agent.post(&format!("{path}/input"), &json!({"text": "id\n"}));
    assert_eq!(
        (typed.status, typed.code()),
        (403, "policy_denied".to_owned()),
        "{}",
        typed.text()
    );
    let record = agent.get(&format!("/v1/execs/{id}")).json();
    let approval = record["approval_id"].as_str().unwrap().to_owned();
    let yes = crate::approvals_ground::reply(&ann, &approval, &json!({"decision": "allow_once"}));
    assert_eq!(yes.status, 200, "{}", yes.text());
    let state = || agent.get(&path).json()["state"].clone();
    assert!(wait_until(PATIENCE, || state() == "running"), "{}", state());
    let typed = agent.post(&format!("{path}/input"), &json!({"text": "id\n"}));
    assert_eq!(typed.status, 403, "{}", typed.text());
    let typed = ann.post(&format!("{path}/input"), &json!({"text": "exit 5\n"}));
    // Approvers answer, and do not run anything.
    assert_eq!(typed.status, 403, "{}", typed.text());
    let typed = server
        .client()
        .post(&format!("{path}/input"), &json!({"text": "exit 5\n"}));
    assert_eq!(typed.status, 200, "{}", typed.text());
    assert!(wait_until(PATIENCE, || state() == "exited"), "{}", state());
    house.close();
}

/// One that is refused says why, and one that nobody allowed has no output.
#[test]
fn policy_refuses_a_session_as_it_refuses_an_exec() {
    let house = House::open();
    let client = house.server.client();
    let too_much = with(bash(), json!({"policy_overrides": {"memory": "900G"}}));
    let refused = client.post("/v1/sessions", &too_much);
    assert_eq!(
        (refused.status, refused.code()),
        (403, "policy_denied".to_owned())
    );
    for wrong in [
        json!({"session": {"size": {"columns": 0, "rows": 5}}}),
        json!({"session": {"terminal": false, "size": {"columns": 80, "rows": 5}}}),
        json!({"session": {"idle_timeout": "never"}}),
    ] {
        let answer = client.post("/v1/sessions", &with(bash(), wrong.clone()));
        assert!(
            matches!(answer.status, 400 | 403 | 409),
            "{wrong}: {}",
            answer.text()
        );
    }
    // An exec is no session, and says so.
    let exec = house
        .server
        .exec(&json!({"exec": {"kind": "argv", "command": "true"}}))
        .json();
    let id = exec["exec_id"].as_str().unwrap();
    let asked = client.get(&format!("/v1/sessions/{id}/output"));
    assert_eq!(asked.status, 404, "{}", asked.text());
    assert!(asked.text().contains("no session"), "{}", asked.text());
    house.close();
}

/// A slow reader of one session holds up no other, and nobody's memory.
#[test]
fn a_flood_is_kept_within_bounds_and_holds_up_nobody() {
    let house = House::with(&Start::default());
    let flood = house.start(&on_terminal(&[
        "sh",
        "-c",
        "while :; do echo 0123456789012345678901234567890123456789; done",
    ]));
    let enough = 8 << 20;
    let end = || flood.info()["stdout"]["end"].as_u64().unwrap_or(0);
    assert!(wait_until(PATIENCE, || end() > enough), "{}", end());
    let info = flood.info();
    let (start, end) = (&info["stdout"]["start"], &info["stdout"]["end"]);
    let kept = end.as_u64().unwrap() - start.as_u64().unwrap();
    assert!(kept <= 2 << 20, "{info}");
    let mut other = house.start(&bash());
    other.submit("echo prompt; echo answer");
    other.until("\r\nanswer");
    other.kill();
    assert_eq!(flood.kill()["state"], "killed");
    assert!(wait_until(Duration::from_secs(5), || flood.info()["state"] == "killed"));
    house.close();
}

/// What `[agents] see` shows of others is read, and not typed into.
#[test]
fn what_an_agent_sees_of_others_it_does_not_change() {
    let trial = support::Trial::in_memory(support::Caller::Root).expect("root");
    let start = crate::pool_fire::serve(&trial, "[agents]\nsee = \"space\"\n");
    let house = House {
        server: start.on(&trial),
        trial,
    };
    let agent = |name| {
        let token = house.server.token_of("agent", "local", name);
        house.server.client_of(&token)
    };
    let mut talk = Talk::start(&agent("owner"), &bash());
    talk.until("ready> ");
    let other = agent("other");
    assert_eq!(other.get(&talk.path("/output")).status, 200);
    for (what, body) in [
        ("/input", json!({"text": "id\n"})),
        ("/close-input", json!({})),
        ("/resize", json!({"columns": 80, "rows": 24})),
        ("/signal", json!({"signal": "KILL"})),
        ("/kill", json!({})),
    ] {
        let refused = other.post(&talk.path(what), &body);
        assert_eq!(refused.status, 403, "{what}: {}", refused.text());
    }
    assert_eq!(other.send("DELETE", &talk.path(""), None).status, 403);
    talk.submit("echo still here");
    talk.until("\r\nstill here");
    talk.kill();
    house.close();
}

/// No space keeps the others from starting sessions, and no agent the others of its space.
#[test]
fn spaces_and_agents_have_shares_of_all_sessions() {
    let house = House::open();
    let admin = house.server.client();
    let settings = json!({"max_sessions": 4, "max_sessions_per_space": 2});
    let set = admin.send("PATCH", "/v1/settings", Some(&settings));
    assert_eq!(set.status, 200, "{}", set.text());
    let client = |role, space, name: &str| {
        let token = house.server.token_of(role, space, name);
        house.server.client_of(&token)
    };
    let refused = |client: &support::Client| {
        let answer = client.post("/v1/sessions", &bash());
        assert_eq!(answer.status, 429, "{}", answer.text());
        assert!(answer.header("retry-after").is_some());
    };
    let (one, two) = (
        client("agent", "local", "one"),
        client("agent", "local", "two"),
    );
    let mut talks = vec![Talk::start(&one, &bash())];
    refused(&one);
    talks.push(Talk::start(&two, &bash()));
    refused(&two);
    refused(&admin);
    let other = client("admin", "elsewhere", "other");
    talks.extend([Talk::start(&other, &bash()), Talk::start(&other, &bash())]);
    refused(&client("admin", "third", "third"));
    talks.pop().expect("one").kill();
    let fourth = client("admin", "fourth", "fourth");
    let started = || {
        let answer = fourth.post("/v1/sessions", &piped(&["true"]));
        assert!(
            matches!(answer.status, 200 | 201 | 429),
            "{}",
            answer.text()
        );
        answer.status != 429
    };
    assert!(wait_until(PATIENCE, started));
    for talk in talks {
        talk.kill();
    }
    house.close();
}

/// Clients that ask and do not wait for the answer shut out no other.
#[test]
fn questions_that_were_given_up_hold_up_nothing() {
    use std::io::Write;
    let house = House::open();
    let mut talk = house.start(&bash());
    talk.until("ready> ");
    let end = talk.info()["stdout"]["end"].clone();
    let path = talk.path(&format!("/output?stdout={end}&wait_ms=60000"));
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        house.server.address, house.server.token
    );
    let mut held = Vec::new();
    for number in 0..300 {
        let mut socket = house.server.nobody().connect().expect("a connection");
        socket.write_all(head.as_bytes()).expect("a question");
        if number % 2 == 0 {
            held.push(socket);
        }
    }
    talk.submit("echo typed");
    talk.until("\r\ntyped");
    assert_eq!(talk.kill()["state"], "killed");
    drop(held);
    house.close();
}

/// What a simulated session writes is there for it alone, and becomes true when it is applied.
#[test]
fn a_simulated_session_changes_nothing_until_it_is_applied() {
    let house = House::open();
    let client = house.server.client();
    let mut talk = house.start(&with(bash(), json!({"mode": "simulate"})));
    talk.until("ready> ");
    talk.submit("echo $((6 * 7)) > made; cat made");
    talk.until("\r\n42\r\n");
    let made = || client.get("/v1/workspaces/p/files/made");
    assert_eq!(made().status, 404);
    talk.submit("exit");
    assert_eq!(talk.until_end()["exit_code"], 0);
    let effects = talk.record()["effects"].to_string();
    assert!(effects.contains("made"), "{effects}");
    assert_eq!(made().status, 404);
    let applied = client.post(&format!("/v1/execs/{}/apply", talk.id), &json!({}));
    assert_eq!(applied.status, 200, "{}", applied.text());
    assert_eq!(made().text(), "42\n");
    house.close();
}
