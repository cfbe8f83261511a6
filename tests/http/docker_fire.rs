//! The engine of containers under fire: it is killed, stopped and made to hang in the middle of
//! execs, and its containers are killed, removed and paused behind Glovebox's back. Every exec has
//! an honest end within a bound, and registry and engine agree afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Client, OwnEngine, Server, Start, Trial, is_final, sh, wait_until, with};

use crate::kept_fire::{code, of_agent, row, row_when, rows, runs};
use crate::pool_fire::{Below, SOON, named, serve};

/// No exec of these takes longer, whatever is done to the engine.
const BOUND: Duration = Duration::from_secs(100);

/// Fresh containers go cold here, so that each test knows which there are.
const DOCKER: &str = "[settings]\nbackend = \"docker\"\n[pool]\nenabled = false\n";

struct House {
    engine: OwnEngine,
    trial: Trial,
}

impl House {
    fn new() -> Option<Self> {
        Some(Self {
            engine: OwnEngine::start()?,
            trial: Trial::new(Caller::Root)?,
        })
    }

    fn start(&self, config: &str) -> Start {
        serve(&self.trial, config)
            .outside("DOCKER_HOST", self.engine.host())
            .patience("care", Duration::from_millis(500))
    }

    fn serve(&self, config: &str) -> Server {
        let server = self.start(config).on(&self.trial);
        server.client().set(&json!({"max_concurrent_execs": 8}));
        server
    }

    /// The containers that run, by what the sandbox on their label is.
    fn standing(&self) -> BTreeMap<String, String> {
        let format = "{{.Label \"glovebox.sandbox\"}} {{.ID}}";
        let said = self
            .engine
            .docker(&["ps", "--no-trunc", "--format", format]);
        let lines = said.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter(|(sandbox, _)| !sandbox.is_empty())
            .map(|(sandbox, id)| (sandbox.to_owned(), id.to_owned()))
            .collect()
    }

    /// What the registry says stands is what the engine says runs, and nothing else of ours is
    /// there.
    fn assert_agreed(&self, client: &Client) {
        let mut seen = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        let agreed = wait_until(SOON, || {
            let registered = rows(client);
            let up = |row: &&Value| row["state"] == "idle" || row["state"] == "busy";
            let pair = |row: &Value| {
                let of = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
                (of("sandbox_id"), of("container_id"))
            };
            let said: BTreeMap<_, _> = registered.iter().filter(up).map(pair).collect();
            let standing = self.standing();
            let names: BTreeSet<_> = registered
                .iter()
                .map(|row| row["name"].as_str().unwrap_or_default().to_owned())
                .collect();
            let strange = |name: &String| !names.contains(name);
            let strangers: BTreeSet<_> = self
                .engine
                .containers()
                .into_iter()
                .filter(strange)
                .collect();
            let so = said == standing && strangers.is_empty();
            seen = (registered, strangers, standing);
            so
        });
        let (registered, strangers, standing) = seen;
        assert!(
            agreed,
            "registry {registered:#?}, engine {standing:#?}, nobody's {strangers:?}"
        );
    }

    fn end(self, server: Server) {
        let client = server.client();
        for row in rows(&client) {
            let path = format!("/v1/sandboxes/{}", row["name"].as_str().unwrap());
            let gone = client.send("DELETE", &path, None);
            assert_eq!(gone.status, 200, "{}", gone.text());
        }
        client.verify_ledger();
        assert_eq!(server.stop(), 0);
        self.engine.assert_empty();
        self.trial.end();
    }
}

/// What is the matter with the end of an exec whose engine, or container, was ended.
fn blame(record: &Value, whole: &str) -> Option<String> {
    let said = record["stdout"].as_str().unwrap_or_default();
    let wrong = |why: &str| Some(format!("{why}: {record}"));
    if !whole.starts_with(said) {
        return wrong("it says what is not its own");
    }
    let engine = [
        "backend_unavailable",
        "backend_lost",
        "lost",
        "setup_failed",
        "internal",
        "busy",
    ];
    match record["status"].as_str().unwrap_or_default() {
        "succeeded" if record["exit_code"] == 0 && said == whole => None,
        "canceled" | "timed_out" => None,
        // The engine ended the program as it went: a true end of a true signal.
        "failed" if matches!(record["exit_code"].as_i64(), Some(137 | 143)) => None,
        "error" => {
            let code = record["error"]["code"].as_str().unwrap_or_default();
            match engine.contains(&code) && record["exit_code"].is_null() {
                true => None,
                false => wrong("its error is not the engine's"),
            }
        }
        _ => wrong("it has no honest end"),
    }
}

fn kind(record: &Value) -> String {
    let status = record["status"].as_str().unwrap_or_default();
    match status {
        "error" => format!(
            "error {}",
            record["error"]["code"].as_str().unwrap_or_default()
        ),
        "failed" => format!("failed {}", record["exit_code"]),
        _ => status.to_owned(),
    }
}

/// The engine's own command that an exec hangs on, and none of those that look after containers.
fn hangs_on(command: &Below) -> bool {
    let words = fs::read(format!("/proc/{}/cmdline", command.pid)).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words.contains("--attach") || words.contains("sleep 60")
}

/// Waits until so many of these run.
fn under_way(client: &Client, ids: &[String], least: usize) {
    let begun = wait_until(SOON, || {
        let speaks = |id: &&String| {
            let record = client.record(id);
            is_final(&record) || record["status"] == "running"
        };
        ids.iter().filter(speaks).count() >= least
    });
    assert!(begun, "nothing runs");
}

/// Twenty execs, some in kept sandboxes, while this is done to the engine.
fn twenty(house: &House, client: &Client, what: &[&str]) {
    let bodies = (0..20).map(|number| {
        let script = format!("echo a{number}; sleep 1; echo b{number}");
        match number % 5 {
            0 => of_agent("ann", &script),
            1 => of_agent("bob", &script),
            _ => sh(&script),
        }
    });
    let bodies: Vec<_> = bodies.collect();
    let ids: Vec<_> = bodies.iter().map(|body| client.begin(body)).collect();
    under_way(client, &ids, 6);
    for word in what {
        house.engine.tell(word);
        // An engine is away for a while, not for an instant.
        if *word != what[what.len() - 1] {
            thread::sleep(Duration::from_secs(1));
        }
    }
    let since = Instant::now();
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    let mut blames = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        let mut record = Value::Null;
        let ended = wait_until(BOUND.saturating_sub(since.elapsed()), || {
            record = client.record(id);
            is_final(&record)
        });
        assert!(ended, "{what:?}: no end within {BOUND:?}: {record}");
        blames.extend(blame(&record, &format!("a{number}\nb{number}\n")));
        *ends.entry(kind(&record)).or_default() += 1;
    }
    println!("{what:?}: {ends:?}, all after {:?}", since.elapsed());
    assert!(
        blames.is_empty(),
        "{what:?}: {}:\n{}",
        blames.len(),
        blames.join("\n")
    );
    let mut said = String::new();
    let back = wait_until(SOON, || {
        let answer = client.post("/v1/execs", &sh("echo back"));
        said = answer.text();
        answer.status == 200 && answer.json()["status"] == "succeeded"
    });
    assert!(back, "{what:?}: {said}");
    for agent in ["ann", "bob"] {
        let body = of_agent(agent, "echo back");
        let back = wait_until(SOON, || {
            said = client.post("/v1/execs", &body).text();
            said.contains("\"succeeded\"")
        });
        assert!(back, "{what:?}: {agent}: {said}");
    }
}

#[test]
fn twenty_execs_while_the_engine_is_killed_stopped_and_hangs() {
    let Some(house) = House::new() else { return };
    let mut server = house.serve(DOCKER);
    let client = server.client();
    for what in [&["kill", "restart"][..], &["restart"], &["pause", "resume"]] {
        twenty(&house, &client, what);
        house.assert_agreed(&client);
    }
    // The server dies with it; whoever comes next compares the two.
    let ids: Vec<_> = (0..4).map(|_| client.begin(&sh("sleep 60"))).collect();
    client.begin(&of_agent("ann", "sleep 60"));
    under_way(&client, &ids, 4);
    assert!(wait_until(SOON, || house.engine.containers().len() >= 6));
    server.kill();
    house.engine.tell("kill");
    house.engine.tell("restart");
    let server = house.serve(DOCKER);
    let client = server.client();
    for id in &ids {
        assert_eq!(client.ended(id)["status"], "lost");
    }
    runs(&client, &of_agent("ann", "true"));
    runs(&client, &of_agent("bob", "true"));
    house.assert_agreed(&client);
    house.end(server);
}

#[test]
fn programs_that_outlive_their_engine_have_no_made_up_end() {
    let Some(house) = House::new() else { return };
    house.engine.let_containers_live();
    let server = house.serve(DOCKER);
    let client = server.client();
    runs(&client, &of_agent("ann", "true"));
    let script = "echo one; sleep 1.5; echo two; exit 7";
    let short = [
        client.begin(&of_agent("ann", script)),
        client.begin(&sh(script)),
    ];
    let script = "echo one; sleep 20; echo two; exit 7";
    let long = [
        client.begin(&of_agent("bob", script)),
        client.begin(&sh(script)),
    ];
    for id in short.iter().chain(&long) {
        client.events(id, 0).unwrap().nth(1).unwrap().unwrap();
    }
    house.engine.tell("kill");
    thread::sleep(Duration::from_secs(2));
    house.engine.tell("restart");
    for id in short.iter().chain(&long) {
        let record = client.ended(id);
        println!("{}", kind(&record));
        let whole = record["stdout"] == "one\ntwo\n" && record["exit_code"] == 7;
        let honest = whole || (record["status"] == "error" && record["exit_code"].is_null());
        assert!(honest, "{record}");
    }
    for agent in ["ann", "bob"] {
        runs(&client, &of_agent(agent, "true"));
        row_when(&client, agent, "idle");
    }
    house.assert_agreed(&client);
    house.end(server);
}

#[test]
fn what_is_done_to_a_container_from_outside_is_followed() {
    let Some(house) = House::new() else { return };
    let server = house.serve(DOCKER);
    let client = server.client();
    let (engine, ann) = (&house.engine, |script: &str| of_agent("ann", script));
    // While nobody is in it, and of three at once: the server looks at containers now and then.
    let agents = ["ann", "bob", "cid"];
    let [name, ..] = agents.map(|agent| {
        runs(
            &client,
            &of_agent(agent, &format!("echo {agent} > {agent}")),
        );
        row(&client, agent)["name"].as_str().unwrap().to_owned()
    });
    let kept =
        |agent: &str| runs(&client, &of_agent(agent, &format!("cat {agent}")))["stdout"].clone();
    for (agent, what) in
        agents
            .into_iter()
            .zip([&["kill"][..], &["rm", "--force"], &["stop", "--time=0"]])
    {
        let name = row(&client, agent)["name"].clone();
        engine.docker(&[what, &[name.as_str().unwrap()]].concat());
    }
    for agent in agents {
        row_when(&client, agent, "down");
    }
    for agent in agents {
        assert_eq!(kept(agent), format!("{agent}\n"));
    }
    house.assert_agreed(&client);
    for agent in &agents[1..] {
        let path = format!(
            "/v1/sandboxes/{}",
            row(&client, agent)["name"].as_str().unwrap()
        );
        assert_eq!(client.send("DELETE", &path, None).status, 200);
    }
    engine.docker(&["pause", &name]);
    assert_eq!(kept("ann"), "ann\n", "paused");
    // With an exec in it, kept and fresh.
    let both = |limits: &Value| {
        [ann("echo in; sleep 60"), sh("echo in; sleep 60")].map(|body| {
            let id = client.begin(&with(body, limits.clone()));
            client.events(&id, 0).unwrap().nth(1).unwrap().unwrap();
            id
        })
    };
    for what in [&["kill"][..], &["rm", "--force"], &["stop", "--time=0"]] {
        // The one before may still be on its way out.
        let before = engine.containers();
        let ids = both(&json!({}));
        let mut containers = engine.containers();
        containers.retain(|it| *it == name || !before.contains(it));
        assert_eq!(containers.len(), 2, "{containers:?}");
        let words = what.iter().copied();
        let words: Vec<_> = words.chain(containers.iter().map(String::as_str)).collect();
        engine.docker(&words);
        for id in &ids {
            let record = client.ended(id);
            assert_eq!(blame(&record, "in\n"), None, "{what:?}");
            assert_ne!(record["status"], "succeeded", "{record}");
            println!("{what:?}: {}", kind(&record));
        }
        assert_eq!(kept("ann"), "ann\n");
    }
    // The engine's own command, between the two: nobody knows how the program ended.
    let ids = both(&json!({}));
    let mut between = named(server.pid(), "docker");
    between.retain(hangs_on);
    let killed = between.iter().filter(|it| it.kill()).count();
    assert_eq!(killed, 2, "{between:?}");
    for id in &ids {
        let record = client.ended(id);
        assert_eq!(record["status"], "error", "{record}");
        assert_eq!(blame(&record, "in\n"), None);
    }
    assert_eq!(kept("ann"), "ann\n");
    // Paused in the middle: its time runs on.
    let ids = both(&json!({"policy_overrides": {"timeout": "3s"}}));
    for container in engine.containers() {
        engine.docker(&["pause", &container]);
    }
    for id in &ids {
        let record = client.ended(id);
        assert_eq!(record["status"], "timed_out", "{record}");
    }
    assert_eq!(kept("ann"), "ann\n");
    house.assert_agreed(&client);
    house.end(server);
}

#[test]
fn memory_that_runs_out_is_said_and_the_sandbox_stands_again() {
    let Some(house) = House::new() else { return };
    let server = house.serve(&DOCKER.replace("[pool]", "memory = \"64M\"\n[pool]"));
    let client = server.client();
    let hog = "dd if=/dev/zero of=/dev/null bs=400M count=1";
    for body in [of_agent("ann", hog), sh(hog)] {
        let record = client.post("/v1/execs", &body).json();
        assert_eq!(record["limit_hit"], "memory", "{record}");
        assert_ne!(record["status"], "succeeded", "{record}");
    }
    runs(&client, &of_agent("ann", "echo fine"));
    house.assert_agreed(&client);
    house.end(server);
}

#[test]
fn a_removal_that_failed_does_not_haunt_the_next_container_of_that_name() {
    let Some(house) = House::new() else { return };
    let server = house.serve(&format!("{DOCKER}[sandbox]\nprune_idle = \"1s\"\n"));
    let client = server.client();
    // A native one beside it: the engine's absence is not its business.
    let native = with(
        of_agent("nat", "true"),
        json!({"policy_overrides": {"backend": "native"}}),
    );
    runs(&client, &native);
    runs(&client, &of_agent("ann", "true"));
    let name = row(&client, "ann")["name"].as_str().unwrap().to_owned();
    let path = format!("/v1/sandboxes/{name}");
    house.engine.tell("kill");
    let refused = client.send("DELETE", &path, None);
    assert_eq!(refused.code(), "backend_unavailable", "{}", refused.text());
    assert_eq!(
        code(&client, &of_agent("ann", "true")),
        "backend_unavailable"
    );
    // Nor does it stop the pruning of the others.
    thread::sleep(Duration::from_millis(1200));
    // One that is being looked at just then is left to the next time.
    let mut pruned = Value::Null;
    wait_until(SOON, || {
        pruned = client.send("POST", "/v1/sandboxes/prune", None).json();
        pruned["removed"] != json!([])
    });
    assert_eq!(pruned["failed"][0]["name"], json!(name), "{pruned}");
    assert_eq!(
        pruned["removed"].as_array().map(Vec::len),
        Some(1),
        "{pruned}"
    );
    house.engine.tell("restart");
    let back = wait_until(SOON, || code(&client, &of_agent("ann", "true")).is_empty());
    assert!(back, "{}", row(&client, "ann"));
    let id = client.begin(&of_agent("ann", "echo in; sleep 3; echo out"));
    client.events(&id, 0).unwrap().nth(1).unwrap().unwrap();
    runs(&client, &sh("true"));
    let record = client.ended(&id);
    assert_eq!(record["stdout"], "in\nout\n", "{record}");
    house.assert_agreed(&client);
    house.end(server);
}

#[test]
fn what_is_on_the_label_wins_over_the_registry() {
    let Some(house) = House::new() else { return };
    let server = house.serve(DOCKER);
    runs(&server.client(), &of_agent("ann", "true"));
    assert_eq!(server.stop(), 0);
    let files = ["glovebox.db", "glovebox.db-wal", "glovebox.db-shm"];
    let files = files.map(|name| house.trial.state().join(name));
    let registry = files.each_ref().map(|file| std::fs::read(file).ok());
    let changed = DOCKER.replace("[settings]", "[settings]\npids = 200");
    let server = house.serve(&changed);
    let client = server.client();
    let anew = client.post("/v1/sandboxes/recreate", &json!({"agent": "ann"}));
    assert_eq!(anew.status, 200, "{}", anew.text());
    runs(&client, &of_agent("ann", "true"));
    let hash = row(&client, "ann")["config_hash"].clone();
    assert_eq!(server.stop(), 0);
    let standing = house.standing();
    assert_eq!(
        standing.len(),
        1,
        "a container stays for whoever comes next"
    );
    // As if the registry had been written before the container was made otherwise.
    for (file, before) in files.iter().zip(registry) {
        match before {
            Some(before) => std::fs::write(file, before).unwrap(),
            None => drop(std::fs::remove_file(file)),
        }
    }
    let server = house.serve(&changed);
    let client = server.client();
    for _ in 0..2 {
        let record = runs(&client, &of_agent("ann", "true"));
        assert_eq!(record.get("notes"), None, "{record}");
    }
    assert_eq!(row(&client, "ann")["config_hash"], hash);
    assert_eq!(house.standing(), standing, "it was made anew");
    house.assert_agreed(&client);
    house.end(server);
}
