//! Tokens: what is none, where they may be found, when they end, and guessing them.

use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{
    Api, Caller, Client, Furnished, Server, Start, Trial, still_there, wait_until, with,
};

use crate::approvals_ground::{House, allow, ask, reply};

fn create(server: &Server, body: &Value) -> (String, String) {
    let made = server.client().post("/v1/tokens", body);
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["token"]["token_id"]), text(&made["secret"]))
}

fn revoke(server: &Server, id: &str) {
    let gone = server
        .client()
        .send("DELETE", &format!("/v1/tokens/{id}"), None);
    assert_eq!(gone.status, 200, "{}", gone.text());
}

#[test]
fn only_one_whole_token_in_its_one_place_is_a_token() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let good = &server.token;
    let ask = |number: u8, path: &str, headers: &[String]| {
        let client = server.nobody().from(Ipv4Addr::new(127, 0, 8, number));
        let client = headers.iter().fold(client, |client, value| {
            client.with("Authorization", value.as_str())
        });
        client.get(path)
    };
    let fine = ask(1, "/v1/whoami", &[format!("Bearer {good}")]);
    assert_eq!(fine.status, 200, "the control: {}", fine.text());
    let mut flipped = good.clone().into_bytes();
    let last = flipped.last_mut().unwrap();
    *last = if *last == b'0' { b'1' } else { b'0' };
    let flipped = String::from_utf8(flipped).unwrap();
    let id = &good[..35];
    let wrong = [
        vec![],
        vec![String::new()],
        vec!["Bearer".to_owned()],
        vec!["Bearer ".to_owned()],
        vec![good.clone()],
        vec![format!("Basic {good}")],
        vec![format!("Token {good}")],
        vec![format!("bearer {good}")],
        vec![format!("BEARER {good}")],
        vec![format!("Bearer  {good}")],
        vec![format!("Bearer\t{good}")],
        vec![format!("Bearer {}", good.to_uppercase())],
        vec![format!("Bearer {good}x")],
        vec![format!("Bearer {good}, Bearer {good}")],
        vec![format!("Bearer {}", &good[..good.len() - 1])],
        vec![format!("Bearer {flipped}")],
        vec![format!("Bearer {id}_{}", "0".repeat(64))],
        vec![format!("Bearer {good}"), format!("Bearer {good}")],
        vec![format!("Bearer {good}"), format!("Bearer {flipped}")],
        vec![format!("Bearer {flipped}"), format!("Bearer {good}")],
    ];
    for (number, headers) in (2..).zip(&wrong) {
        let answer = ask(number, "/v1/whoami", headers);
        assert_eq!(answer.status, 401, "{headers:?}: {}", answer.text());
        assert!(answer.header("www-authenticate").is_some());
        assert!(!answer.text().contains(good.as_str()));
    }
    for name in ["token", "access_token", "authorization", "api_key"] {
        let answer = ask(200, &format!("/v1/whoami?{name}={good}"), &[]);
        assert_eq!(answer.status, 401, "?{name}: {}", answer.text());
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Files below it that hold this text.
fn holding(directory: &Path, text: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Some(kind) = still_there(entry.file_type()) else {
            continue;
        };
        if kind.is_dir() {
            holding(&entry.path(), text, found);
        } else if kind.is_file() {
            let content = fs::read(entry.path()).unwrap_or_default();
            if content
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                found.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
}

#[test]
fn a_secret_is_shown_once_and_lies_nowhere() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mut server = Start::default().outside("GLOVEBOX_LOG", "trace").on(&trial);
    let key = server.client().with("Idempotency-Key", "once");
    let body = json!({"name": "a", "role": "agent"});
    let made = key.post("/v1/tokens", &body).json();
    let secret = made["secret"].as_str().unwrap().to_owned();
    let id = made["token"]["token_id"].as_str().unwrap().to_owned();
    assert!(secret.starts_with(&format!("gb_{}_", id.trim_start_matches("t_"))));
    // A replay is the same answer, although nothing of it was kept.
    assert_eq!(
        key.post("/v1/tokens", &body).json()["secret"],
        made["secret"]
    );
    // It is used for everything that is written down: work, files, errors, a wrong place.
    let client = server.client_of(&secret);
    let ran = client.post(
        "/v1/execs",
        &json!({"project_id": "p", "exec": {"kind": "argv", "command": "env"}}),
    );
    assert_eq!(ran.status, 200, "{}", ran.text());
    assert!(!ran.text().contains(&secret));
    let kind = Some("application/octet-stream");
    client
        .try_bytes("PUT", "/v1/workspaces/p/files/f", kind, b"x")
        .unwrap();
    assert_eq!(client.get("/v1/settings").status, 403);
    assert_eq!(client.get(&format!("/v1/execs?token={secret}")).status, 400);
    assert_eq!(client.get(&format!("/v1/execs/{secret}")).status, 404);
    assert_eq!(client.get(&format!("/{secret}")).status, 404);
    assert_eq!(server.nobody().get(&format!("/?t={secret}")).status, 200);
    for path in [
        "/v1/tokens?all=true".to_owned(),
        format!("/v1/tokens/{id}"),
        "/v1/audit?limit=1000".to_owned(),
        "/v1/audit/export".to_owned(),
        "/v1/audit/export?format=ocsf".to_owned(),
        "/v1/whoami".to_owned(),
        "/metrics".to_owned(),
        "/sandbox/health".to_owned(),
    ] {
        let shown = server.client().get(&path);
        assert_eq!(shown.status, 200, "{path}: {}", shown.text());
        assert!(!shown.text().contains(&secret[36..]), "{path}");
    }
    revoke(&server, &id);
    let bootstrap = server.token.clone();
    let state = trial.state();
    // While it runs, so that the write-ahead log is there, and once more after its end.
    for running in [true, false] {
        assert!(!running || state.join("glovebox.db-wal").exists());
        let (mut ours, mut first) = (Vec::new(), Vec::new());
        holding(&state, &secret[36..], &mut ours);
        assert_eq!(ours, Vec::<String>::new());
        // The first one lies in the file that is made for it, and so the search does find things.
        holding(&state, &bootstrap[36..], &mut first);
        assert_eq!(first, ["token"]);
        let said = server.said();
        assert!(said.contains("request_id"), "no log to look at:\n{said}");
        assert!(!said.contains(&secret[36..]) && !said.contains(&bootstrap[36..]));
        if running {
            server.signal(rustix::process::Signal::TERM);
            assert_eq!(server.wait(Duration::from_secs(60)), 0);
        }
    }
    trial.end();
}

#[test]
fn a_stream_ends_with_its_token() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let started = server.exec(&json!({
        "wait": false, "client_id": "long", "exec": {"kind": "argv", "command": "sleep", "args": ["50"]},
    }));
    assert_eq!(started.status, 202, "{}", started.text());
    let (id, revoked) = create(&server, &json!({"name": "revoked", "role": "auditor"}));
    let life = Duration::from_secs(4);
    let (soon, over) = (jiff::Timestamp::now() + life, Instant::now() + life);
    let body = json!({"name": "expires", "role": "auditor", "expires_at": soon});
    let (_, expires) = create(&server, &body);
    let follow = |secret: &str| {
        let client = server.client_of(secret);
        let mut events = client.events("long", 0).unwrap();
        assert!(events.next().unwrap().is_ok());
        std::thread::spawn(move || {
            let rest: Vec<_> = events.collect();
            (Instant::now(), rest)
        })
    };
    let (one, other) = (follow(&revoked), follow(&expires));
    let good = follow(&server.token);
    revoke(&server, &id);
    let since = Instant::now();
    assert_eq!(server.client_of(&revoked).get("/v1/whoami").status, 401);
    for (name, stream, since) in [("revoked", one, since), ("expired", other, over)] {
        let (ended, _) = stream.join().unwrap();
        // Five seconds, and as many of slack for a loaded machine.
        let took = ended.saturating_duration_since(since);
        assert!(
            took < Duration::from_secs(10),
            "{name} was cut after {took:?}"
        );
    }
    assert_eq!(server.client_of(&expires).get("/v1/whoami").status, 401);
    // The exec does not end with a stream, nor does another's stream.
    assert_eq!(
        server.client().get("/v1/execs/long").json()["status"],
        "running"
    );
    assert!(!good.is_finished(), "a good stream was cut");
    let canceled = server.client().post("/v1/execs/long/cancel", &json!({}));
    assert_eq!(canceled.status, 200, "{}", canceled.text());
    let (_, rest) = good.join().unwrap();
    let last = rest.last().unwrap().as_ref().unwrap();
    assert_eq!(last.data["status"], "canceled");
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Said without the roles' own table, and without what the description says about scopes.
#[test]
fn a_token_does_no_more_than_it_is_for() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let things = Furnished::new(&server, "blue");
    let scoped = |name: &str, role: &str, scopes: &[&str]| {
        let body = json!({"name": name, "role": role, "space_id": "blue", "scopes": scopes});
        server.client_of(&create(&server, &body).1)
    };
    let reader = scoped(
        "reader",
        "admin",
        &[
            "execs:read",
            "files:read",
            "policy:read",
            "audit:read",
            "tokens:read",
            "settings:read",
        ],
    );
    let agent = server.client_of(&server.token_of("agent", "blue", "agent"));
    let approver = server.client_of(&server.token_of("approver", "blue", "approver"));
    let admin = ["/v1/tokens", "/v1/settings", "/v1/audit", "/metrics"];
    let mut cells = 0;
    for operation in Api::of(&server).operations() {
        let what = format!("{} {}", operation.method, operation.path);
        // Those that are a POST only because they have a body.
        let asks = ["/explain", "/search", "/glob", "/tools/check"];
        let only_asks = asks.iter().any(|end| operation.path.ends_with(end));
        if operation.is_mutating() && !only_asks {
            let answers = ["/v1/approvals/", "/v1/grants/", "/v1/secret-grants"];
            let answers = answers.iter().any(|it| operation.path.starts_with(it));
            for client in [&reader, if answers { &agent } else { &approver }] {
                assert_eq!(things.send(client, operation, "").status, 403, "{what}");
                cells += 1;
            }
        }
        if admin
            .iter()
            .any(|prefix| operation.path.starts_with(prefix))
        {
            assert_eq!(things.send(&agent, operation, "").status, 403, "{what}");
            cells += 1;
        }
    }
    assert!(cells > 25, "{cells}");
    // Nobody makes a token that can do more than its role, or one of a space that is not theirs.
    for body in [
        json!({"name": "x", "role": "agent", "scopes": ["tokens:write"]}),
        json!({"name": "x", "role": "agent", "scopes": ["approvals:write"]}),
        json!({"name": "x", "role": "auditor", "scopes": ["approvals:write"]}),
        json!({"name": "x", "role": "agent", "space_id": "local"}),
        json!({"name": "x", "role": "admin", "space_id": "local"}),
    ] {
        let refused = things.admin.post("/v1/tokens", &body);
        assert_eq!(refused.status, 403, "{body}: {}", refused.text());
    }
    // Whoever is bound to a user or an agent speaks for no other.
    let body = json!({"name": "bound", "role": "agent", "space_id": "blue",
                      "user_id": "ann", "agent_id": "a1"});
    let bound = server.client_of(&create(&server, &body).1);
    let run = |task: Value| {
        let exec = json!({"kind": "argv", "command": "true"});
        bound.post("/v1/execs", &json!({"task_ref": task, "exec": exec}))
    };
    assert_eq!(run(json!({})).json()["ids"]["user_id"], "ann");
    assert_eq!(run(json!({"user_id": "bob"})).status, 403);
    assert_eq!(run(json!({"agent_id": "a2"})).status, 403);
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Neither is a quorum one person with two tokens, nor one's own request approved with the other.
#[test]
fn tokens_of_one_user_are_one_person() {
    let house = House::open("[approvals]\nmode = \"manual\"\nquorum = 2\n");
    let phone = house.token_of_user("approver", "eve-phone", "eve");
    let desk = house.token_of_user("approver", "eve-desk", "eve");
    let robot = house.token_of_user("agent", "eve-robot", "eve");
    let yes = json!({"decision": "allow_once"});
    let touch = json!({"project_id": "p",
        "exec": {"kind": "argv", "command": "touch", "args": ["both"]}});
    let critical = with(
        touch.clone(),
        json!({"policy_overrides": {"tier": "critical"}}),
    );
    let (_, id) = house.ask(&critical);
    assert_eq!(allow(&phone, &id)["replies"][0]["user_id"], "eve");
    let again = reply(&desk, &id, &yes);
    assert_eq!(again.status, 409, "{}", again.text());
    allow(&house.bob, &id);
    let (exec, id) = ask(&robot, &touch);
    let own = reply(&phone, &id, &yes);
    assert_eq!(own.status, 403, "{}", own.text());
    assert_eq!(own.json()["error"]["code"], "forbidden");
    assert_eq!(allow(&house.bob, &id)["requested_user"], "eve");
    assert_eq!(robot.ended(&exec)["consent"]["by"], json!(["bob"]));
    // What an agent says about for whom it acts binds nobody.
    let said = with(touch, json!({"task_ref": {"user_id": "eve"}}));
    let (_, id) = house.ask(&said);
    allow(&phone, &id);
    house.close();
}

/// Many requests on one connection; how many of the answers had each status.
fn guess(client: &Client, count: usize) -> (usize, usize) {
    const AT_ONCE: usize = 50;
    let mut stream = client.connect().unwrap();
    let (mut refused, mut limited) = (0, 0);
    for batch in 0..count / AT_ONCE {
        let mut text = String::new();
        for number in 0..AT_ONCE {
            let guess = batch * AT_ONCE + number;
            text += &format!(
                "GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n\
                 Authorization: Bearer gb_{guess:032x}_{guess:064x}\r\n\r\n"
            );
        }
        stream.write_all(text.as_bytes()).unwrap();
        let (mut answers, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        let count = |answers: &[u8], word: &[u8]| {
            answers.windows(word.len()).filter(|it| *it == word).count()
        };
        // The last thing in each answer.
        while count(&answers, b"\"request_id\":\"r_") < AT_ONCE || !answers.ends_with(b"}}") {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "cut off");
            answers.extend_from_slice(&piece[..read]);
        }
        refused += count(&answers, b"HTTP/1.1 401 ");
        limited += count(&answers, b"HTTP/1.1 429 ");
    }
    (refused, limited)
}

#[test]
fn guessing_gets_slow_and_locks_nobody_out() {
    // A hundred times what is let through.
    const GUESSES: usize = 2000;
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().outside("GLOVEBOX_LOG", "warn").on(&trial);
    let (client, nobody, over) = (server.client(), server.nobody(), AtomicBool::new(false));
    let began = Instant::now();
    let (mut refused, mut limited, mut asked) = (0, 0, 0);
    std::thread::scope(|scope| {
        let guessers = [0, 1].map(|_| scope.spawn(|| guess(&nobody, GUESSES / 2)));
        let tenant = scope.spawn(|| {
            let mut asked = 0;
            while !over.load(Ordering::Relaxed) {
                let answer = client.get("/v1/whoami");
                assert_eq!(answer.status, 200, "locked out: {}", answer.text());
                asked += 1;
            }
            asked
        });
        for guesser in guessers {
            let (one, other) = guesser.join().unwrap();
            (refused, limited) = (refused + one, limited + other);
        }
        over.store(true, Ordering::Relaxed);
        asked = tenant.join().unwrap();
    });
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap() + 1;
    assert_eq!(refused + limited, GUESSES);
    assert!(
        (20..=20 * minutes).contains(&refused),
        "{refused} in {minutes} minutes"
    );
    assert!(asked > 10, "the good one was answered {asked} times");
    let wrong = format!("gb_{}_{}", "0".repeat(32), "0".repeat(64));
    let guesser = server.client_of(&wrong);
    // The minute may begin anew just then.
    let mut last = (0..50).map(|_| guesser.get("/v1/whoami"));
    let last = last.find(|it| it.code() == "rate_limited");
    assert!(last.unwrap().header("retry-after").is_some());
    // Written down once for each minute, not two thousand times.
    let noted = || {
        let page = server
            .client()
            .get("/v1/audit?kind=administered&limit=1000")
            .json();
        let items = page["items"].as_array().unwrap().clone();
        items
            .iter()
            .filter(|it| it.to_string().contains("bad_tokens"))
            .count()
    };
    assert!(
        wait_until(Duration::from_secs(60), || noted() > 0),
        "no record"
    );
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap() + 1;
    assert!(noted() <= minutes);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn nothing_of_the_server_is_seen_from_a_sandbox() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .outside("PROOF_OF_ENV", "env-of-the-server-4711")
        .on(&trial);
    let state = trial.state();
    let script = format!(
        "echo begin; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/*/task/*/environ; \
         for name in . token token.key ledger.key queue.key glovebox.db; do \
           test -e {0}/$name && echo SE''EN $name; cat {0}/$name; done; \
         for fd in /proc/self/fd/* /proc/1/fd/*; do readlink $fd; done; \
         cat /proc/mounts /proc/self/mountinfo | grep -c token; \
         find / -xdev \\( -name token -o -name token.key -o -name glovebox.db \\) -not -path '/proc/*'; \
         echo end",
        state.display()
    );
    let ran = server.exec(&json!({
        "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
    }));
    assert_eq!(ran.status, 200, "{}", ran.text());
    let record = ran.json();
    let seen = format!("{}{}", record["stdout"], record["stderr"]);
    assert!(
        seen.contains("begin") && seen.contains("end\\n"),
        "{record}"
    );
    assert!(!seen.contains("SEEN"), "{seen}");
    assert!(!seen.contains("env-of-the-server"), "{seen}");
    assert!(!seen.contains(&server.token[3..]), "{seen}");
    for file in ["token", "token.key", "glovebox.db"] {
        let found = format!("/{file}\\n");
        assert!(!seen.contains(&found), "{seen}");
    }
    // The server really has them.
    assert!(state.join("token.key").exists() && state.join("token").exists());
    let own = fs::read(format!("/proc/{}/environ", server.pid())).unwrap();
    assert!(String::from_utf8_lossy(&own).contains("env-of-the-server"));
    assert_eq!(server.stop(), 0);
    trial.end();
}
