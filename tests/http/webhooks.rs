//! What a server tells others by itself, at receivers that are slow, broken, or up to no good.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use support::{Asked, Caller, Client, Database, Said, Server, Site, Start, Trial, sh, wait_until};

use crate::pool_fire::serve;

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

fn key_file(trial: &Trial) -> String {
    let path = trial.home().join("webhook.key");
    fs::write(&path, format!("whsec_{}\n", STANDARD.encode(KEY))).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn config(trial: &Trial, site: &Site) -> String {
    let (address, key) = (site.address(), key_file(trial));
    format!(
        "[network]\nprivate = [\"{address}\"]\n\
         [[webhook]]\nname = \"ops\"\nurl = \"{}\"\nevents = [\"approval\", \"exec\"]\n\
         key_file = \"{key}\"\n",
        site.url("/hooks/a-secret-path?k=v")
    )
}

fn opened(site: &Site, more: &str) -> (Trial, Start, Server) {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let start = serve(&trial, &(config(&trial, site) + more));
    let server = start.on(&trial);
    (trial, start, server)
}

/// Checked as a receiver would, by what the convention says and nothing of ours.
#[track_caller]
fn assert_signed(asked: &Asked) {
    let (id, at) = (
        asked.header("webhook-id"),
        asked.header("webhook-timestamp"),
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(&asked.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(asked.header("webhook-signature"), expected);
    let age = jiff::Timestamp::now().as_second() - at.parse::<i64>().unwrap();
    assert!((0..600).contains(&age), "{at}");
    assert_eq!(asked.json()["id"], id);
}

fn deliveries(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/webhooks/deliveries{query}"));
    assert_eq!(page.status, 200, "{}", page.text());
    page.json()["items"].as_array().unwrap().clone()
}

#[track_caller]
fn wait_for(client: &Client, state: &str, count: usize) -> Vec<Value> {
    let query = format!("?state={state}&limit=1000");
    let there = wait_until(PATIENCE, || deliveries(client, &query).len() >= count);
    assert!(there, "{:?}", deliveries(client, ""));
    deliveries(client, &query)
}

/// The end of a session is written by another process than the one that sends.
#[test]
fn the_end_of_a_session_is_told_too() {
    let site = Site::open(|_| Said::status(204));
    let (trial, _, server) = opened(&site, "");
    let body = json!({
        "project_id": "p",
        "exec": {"kind": "argv", "command": "sh", "args": ["-c", "exit 3"]},
        "session": {"terminal": true, "yield_ms": 60_000},
    });
    let ended = server.client().post("/v1/sessions", &body);
    assert_eq!(ended.status, 200, "{}", ended.text());
    let done = wait_for(&server.client(), "delivered", 1);
    assert_eq!(done[0]["exec_id"], ended.json()["session"]["session_id"]);
    let told = site.asked()[0].json();
    assert_eq!(told["type"], "exec.ended");
    assert_eq!(told["data"]["status"], "failed");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn an_end_is_told_signed_and_again_until_somebody_listens() {
    let times = AtomicU64::new(0);
    let site = Site::open(move |_| match times.fetch_add(1, Ordering::SeqCst) {
        0 => Said::status(503).with("Retry-After", "1"),
        1 => Said::status(429).with("Retry-After", "1"),
        _ => Said::status(204),
    });
    let (trial, _, server) = opened(&site, "");
    let ran = server
        .exec(&sh("echo the-output-is-private; exit 3"))
        .json();
    assert_eq!(ran["status"], "failed", "{ran}");
    let done = wait_for(&server.client(), "delivered", 1);
    assert_eq!(done[0]["attempts"], 3, "{done:?}");
    assert_eq!(done[0]["status_code"], 204);
    assert_eq!(done[0]["exec_id"], ran["exec_id"]);
    let asked = site.asked();
    assert_eq!(asked.len(), 3, "and not once more");
    for it in &asked {
        assert_signed(it);
        assert_eq!(
            (it.method.as_str(), it.path.as_str()),
            ("POST", "/hooks/a-secret-path?k=v")
        );
        assert_eq!(it.header("webhook-id"), asked[0].header("webhook-id"));
        assert_eq!(it.body, asked[0].body, "the same message each time");
        let told = String::from_utf8_lossy(&it.body).into_owned();
        assert!(!told.contains("the-output-is-private"), "{told}");
    }
    let told = asked[0].json();
    assert_eq!(told["type"], "exec.ended");
    assert_eq!(told["data"]["status"], "failed");
    assert_eq!(told["data"]["exit_code"], 3);
    let link = told["data"]["links"]["exec"].as_str().unwrap();
    assert_eq!(server.client().get(link).json()["exec_id"], ran["exec_id"]);
    let listed = server.client().get("/v1/webhooks").json();
    assert_eq!(listed["items"][0]["name"], "ops");
    assert!(!listed.to_string().contains("a-secret-path"), "{listed}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_redirect_is_not_followed_and_a_refusal_is_final() {
    let site = Site::open(|_| {
        Said::status(302).with("Location", "http://169.254.169.254/latest/meta-data/")
    });
    let (trial, _, server) = opened(&site, "");
    server.exec(&sh("true"));
    let failed = wait_for(&server.client(), "failed", 1);
    assert_eq!(failed[0]["attempts"], 1, "{failed:?}");
    let problem = failed[0]["problem"].as_str().unwrap();
    assert!(problem.contains("redirects are not followed"), "{problem}");
    assert_eq!(site.asked().len(), 1);
    // What was given up is in the ledger.
    let entries = server
        .client()
        .get("/v1/audit?tag=event:webhook.failed")
        .json();
    assert_eq!(entries["items"][0]["body"]["details"]["status_code"], 302);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_server_that_is_killed_while_it_tells_tells_it_after_its_restart() {
    // At one and the same port: another one might be somebody else's by then.
    let silent = Arc::new(AtomicBool::new(true));
    let is_silent = Arc::clone(&silent);
    let site = Site::open(move |_| match is_silent.load(Ordering::SeqCst) {
        true => Said::Silence,
        false => Said::status(200),
    });
    let (trial, start, mut server) = opened(&site, "");
    let ran = server.exec(&sh("true")).json();
    assert!(wait_until(PATIENCE, || !site.asked().is_empty()));
    server.kill();
    let before = site.asked();
    silent.store(false, Ordering::SeqCst);
    let server = start.on(&trial);
    let done = wait_for(&server.client(), "delivered", 1);
    assert_eq!(done[0]["exec_id"], ran["exec_id"]);
    let asked = site.asked().split_off(before.len());
    assert_eq!(asked.len(), 1);
    assert_signed(&asked[0]);
    assert_eq!(
        asked[0].header("webhook-id"),
        before[0].header("webhook-id")
    );
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_people_are_asked_is_told_and_what_they_answered() {
    let site = Site::open(|_| Said::status(200));
    let (trial, _, server) = opened(&site, "[approvals]\nmode = \"manual\"\n");
    let agent = server.client_of(&server.token_of("agent", "local", "robot"));
    let ann = server.client_of(&server.token_of("approver", "local", "ann"));
    let body = json!({
        "project_id": "p", "wait": false,
        "exec": {"kind": "argv", "command": "touch", "args": ["made"], "env": {"MODE": "value-of-it"}},
    });
    let asked = agent.post("/v1/execs", &body);
    assert_eq!(asked.status, 202, "{}", asked.text());
    wait_for(&server.client(), "delivered", 1);
    let told = site.asked()[0].json();
    assert_eq!(told["type"], "approval.requested");
    let data = &told["data"];
    assert_eq!(data["ask"]["argv"], json!(["touch", "made"]));
    assert_eq!(data["ask"]["env_names"], json!(["MODE"]));
    assert!(!told.to_string().contains("value-of-it"), "{told}");
    let link = data["links"]["approval"].as_str().unwrap();
    let answered = ann.post(&format!("{link}/reply"), &json!({"decision": "allow_once"}));
    assert_eq!(answered.status, 200, "{}", answered.text());
    wait_for(&server.client(), "delivered", 3);
    let told: BTreeMap<String, Value> = site
        .asked()
        .iter()
        .map(|it| (it.json()["type"].as_str().unwrap().to_owned(), it.json()))
        .collect();
    assert_eq!(told["approval.settled"]["data"]["state"], "approved");
    assert_eq!(told["approval.settled"]["data"]["replies"][0]["by"], "ann");
    assert_eq!(told["exec.ended"]["data"]["status"], "succeeded");
    site.asked().iter().for_each(assert_signed);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn two_servers_of_one_database_tell_each_thing_once() {
    let Some(database) = Database::new() else {
        return;
    };
    let site = Site::open(|_| Said::status(200));
    let (one, two) = (
        Trial::in_memory(Caller::Root).unwrap(),
        Trial::in_memory(Caller::Root).unwrap(),
    );
    let keys = tempfile::tempdir().unwrap();
    let start = |trial: &Trial| {
        serve(trial, &config(trial, &site)).with([
            "--database",
            database.url(),
            "--keys-dir",
            keys.path().to_str().unwrap(),
        ])
    };
    let (first, second) = (start(&one).on(&one), start(&two).on(&two));
    const EACH: usize = 8;
    std::thread::scope(|scope| {
        for client in [first.client(), second.client()] {
            scope.spawn(move || {
                for _ in 0..EACH {
                    assert_eq!(client.post("/v1/execs", &sh("true")).status, 200);
                }
            });
        }
    });
    wait_for(&first.client(), "delivered", 2 * EACH);
    let mut ids: Vec<String> = site
        .asked()
        .iter()
        .map(|it| it.header("webhook-id").to_owned())
        .collect();
    assert_eq!(ids.len(), 2 * EACH);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2 * EACH, "each once");
    assert_eq!(first.stop(), 0);
    assert_eq!(second.stop(), 0);
    one.end();
    two.end();
}

#[test]
fn a_try_says_whether_messages_arrive_by_a_server_and_without_one() {
    let site = Site::open(|_| Said::status(202));
    let (trial, _, server) = opened(&site, "");
    let config = trial.home().join("config.toml");
    let by_server = |words: &[&str]| {
        let mut command = trial.glovebox();
        command.args(["--server", &format!("http://{}", server.address), "--json"]);
        command.args(words).output().unwrap()
    };
    let tried = by_server(&["webhook", "test", "ops"]);
    let said: Value = serde_json::from_slice(&tried.stdout).unwrap_or_default();
    assert!(tried.status.success(), "{tried:?}");
    assert_eq!(
        (&said["state"], &said["status_code"]),
        (&json!("delivered"), &json!(202))
    );
    let missing = by_server(&["webhook", "test", "nobody"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let listed = by_server(&["webhook", "deliveries", "--webhook", "ops"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["items"][0]["event"], "webhook.test");
    assert_eq!(server.stop(), 0);
    let here = |words: &[&str]| {
        let mut command = trial.glovebox();
        command.arg("--config").arg(&config).arg("--json");
        command.args(words).output().unwrap()
    };
    let tried = here(&["webhook", "test", "ops"]);
    assert!(tried.status.success(), "{tried:?}");
    let listed: Value = serde_json::from_slice(&here(&["webhook", "ls"]).stdout).unwrap();
    assert_eq!(listed["items"][0]["name"], "ops");
    assert_eq!(site.asked().len(), 2);
    site.asked().iter().for_each(assert_signed);
    trial.end();
}

#[test]
fn a_server_does_not_start_with_a_webhook_that_can_never_be_told() {
    let site = Site::open(|_| Said::status(200));
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let good = config(&trial, &site);
    let unlisted = good.replace("private", "# private");
    let said = serve(&trial, &unlisted).try_on(&trial).unwrap_err();
    assert!(said.contains("`ops`") && said.contains("port"), "{said}");
    let key = trial.home().join("webhook.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let said = serve(&trial, &good).try_on(&trial).unwrap_err();
    assert!(said.contains("chmod 600"), "{said}");
    assert!(site.asked().is_empty());
    trial.end();
}
