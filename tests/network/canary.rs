//! A secret is used and never seen: a program that prints it in every form that programs print, names
//! files by it and dies with it, for every way in which it can have it; and then a search through
//! everything that the server keeps, says, tells and logs. What a program writes into its workspace is
//! the workspace's, and stays there.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::{
    Caller, Client, Database, Ears, Said, Server, Site, Start, still_there, wait_until, with,
};

use crate::ground::Ground;

pub(crate) const VALUE: &str = "cnry-7f3Kq=9ZtWx+YwQ2vLp";
pub(crate) const VALUE_BASE64: &str = "Y25yeS03ZjNLcT05WnRXeCtZd1Eydkxw";

/// As `canary.py` writes it, and base64 at every alignment without what its neighbours decide.
fn forms() -> Vec<Vec<u8>> {
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms: Vec<Vec<u8>> = [
        VALUE,
        VALUE_BASE64,
        "NucnktN2YzS3E9OVp0V3grWXdRMnZMc",
        "jbnJ5LTdmM0txPTladFd4K1l3UTJ2TH",
        "cnry-7f3Kq%3D9ZtWx%2BYwQ2vLp",
    ]
    .map(|form| form.as_bytes().to_vec())
    .to_vec();
    forms.push(hex.to_uppercase().into_bytes());
    forms.push(hex.into_bytes());
    forms.push(VALUE.bytes().rev().collect());
    forms.push(VALUE.bytes().flat_map(|byte| [byte, 0]).collect());
    forms
}

/// Where the first of them begins and ends. All forms in one walk: this is not compiled for speed, and
/// is asked about everything that a server has.
fn found(bytes: &[u8]) -> Option<(usize, usize)> {
    static FORMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(forms);
    static BEGINS: LazyLock<[bool; 256]> = LazyLock::new(|| {
        let mut begins = [false; 256];
        FORMS
            .iter()
            .for_each(|form| begins[usize::from(form[0])] = true);
        begins
    });
    let (forms, begins): (&[Vec<u8>], &[bool; 256]) = (&FORMS, &BEGINS);
    let mut at = 0;
    while at < bytes.len() {
        if begins[bytes[at] as usize]
            && let Some(form) = forms.iter().find(|form| bytes[at..].starts_with(form))
        {
            return Some((at, at + form.len()));
        }
        at += 1;
    }
    None
}

pub(crate) fn holds(bytes: &[u8]) -> bool {
    found(bytes).is_some()
}

#[track_caller]
pub(crate) fn assert_hidden(what: &str, bytes: &[u8]) {
    if let Some((begins, ends)) = found(bytes) {
        let around = &bytes[begins.saturating_sub(200)..ends];
        panic!("{what}: {}", String::from_utf8_lossy(around));
    }
}

/// Names and values of what a program can hang on a file.
fn attributes(path: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    let mut names = vec![0; 64 << 10];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names) else {
        return all;
    };
    for name in names[..length].split(|byte| *byte == 0) {
        let mut value = vec![0; 64 << 10];
        let read = rustix::fs::lgetxattr(path, name, &mut value).unwrap_or(0);
        all.extend([name, &value[..read]].concat());
    }
    all
}

/// Everything below a directory: contents, names, attributes.
fn assert_nowhere_in(directory: &Path) -> usize {
    let mut count = 0;
    for entry in still_there(fs::read_dir(directory)).into_iter().flatten() {
        let entry = entry.unwrap();
        let path = entry.path();
        let Some(kind) = still_there(entry.file_type()) else {
            continue;
        };
        let shown = path.display().to_string();
        assert_hidden(&shown, shown.as_bytes());
        assert_hidden(&shown, &attributes(&path));
        if kind.is_dir() {
            count += assert_nowhere_in(&path);
        } else if kind.is_file() {
            if let Some(bytes) = still_there(fs::read(&path)) {
                assert_hidden(&shown, &bytes);
                count += 1;
            }
        } else if kind.is_symlink()
            && let Some(to) = still_there(fs::read_link(&path))
        {
            assert_hidden(&shown, to.to_string_lossy().as_bytes());
        }
    }
    count
}

/// A server with the secret `canary`, granted to conversation `c-1`.
pub(crate) fn serve(ground: &Ground) -> Server {
    serve_with(ground, &[])
}

fn serve_with(ground: &Ground, options: &[&str]) -> Server {
    let server = Start::default()
        .with(options.iter().copied())
        .outside("GLOVEBOX_CONFIG", ground.config.to_string_lossy())
        .outside("GLOVEBOX_LOG", "trace")
        .on(&ground.trial);
    let client = server.client();
    let secret = json!({
        "value_base64": VALUE_BASE64,
        "hosts": [ground.fill("ok.test:TLS")],
        "deliveries": ["file", "descriptor", "broker", "env"],
    });
    let set = client.send("PUT", "/v1/secrets/canary", Some(&secret));
    assert_eq!(set.status, 200, "{}", set.text());
    grant(&client);
    server
}

pub(crate) fn grant(client: &Client) -> String {
    let grant = json!({"secret": "canary", "conversation_id": "c-1",
                       "deliveries": ["file", "descriptor", "broker", "env"]});
    let granted = client.post("/v1/secret-grants", &grant);
    assert_eq!(granted.status, 201, "{}", granted.text());
    granted.json()["grant_id"].as_str().unwrap().to_owned()
}

pub(crate) fn order(args: &[&str], delivery: &str) -> Value {
    json!({
        "project_id": "p",
        "task_ref": {"conversation_id": "c-1"},
        "exec": {"kind": "argv", "command": args[0], "args": &args[1..]},
        "secrets": [{"name": "canary", "delivery": delivery}],
        "policy_overrides": {"network": "allowlist", "timeout": "2m"},
    })
}

/// Every answer about one exec.
fn answers(client: &Client, exec: &str) -> Vec<(String, Vec<u8>)> {
    let base = format!("/v1/execs/{exec}");
    let mut all = Vec::new();
    let paths = [
        "",
        "/stdout",
        "/stderr",
        "/artifacts",
        "/network",
        "/changes",
    ];
    for path in paths.map(|it| format!("{base}{it}")) {
        let answer = client.get(&path);
        all.push((path, answer.body));
    }
    let listed = client.get(&format!("{base}/artifacts")).json();
    for artifact in listed["files"].as_array().unwrap() {
        let name = artifact["path"].as_str().unwrap();
        let path = format!("{base}/artifacts/{name}");
        let answer = client.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        all.push((path, answer.body));
    }
    let mut events = Vec::new();
    for event in client.events(exec, 0).unwrap() {
        events.extend(event.unwrap().data.to_string().into_bytes());
    }
    all.push((format!("{base}/events"), events));
    all
}

/// Where a program runs that tries everything, and who keeps what is written down of it.
struct Attempt<'a> {
    caller: Caller,
    /// One after the other, at one server.
    deliveries: &'a [&'a str],
    /// More of the request: where it runs.
    more: Value,
    database: Option<&'a Database>,
}

impl Attempt<'_> {
    fn of<'a>(deliveries: &'a [&'a str]) -> Attempt<'a> {
        Attempt {
            caller: Caller::Root,
            deliveries,
            more: json!({}),
            database: None,
        }
    }

    fn order(&self, args: &[&str], delivery: &str) -> Value {
        with(order(args, delivery), self.more.clone())
    }

    /// The program that tries everything with it; what is said about that, and its exec.
    fn run(&self, client: &Client, url: &str, delivery: &str) -> (Vec<(String, Vec<u8>)>, String) {
        let program = include_str!("canary.py");
        let args = [support::python(), "-c", program, delivery, url];
        let ran = client.post("/v1/execs", &self.order(&args, delivery));
        assert_eq!(ran.status, 200, "{}", ran.text());
        let record = ran.json();
        // It ended at its last line, which dies: everything before it was tried.
        assert_eq!(record["exit_code"], 1, "{record}");
        let stderr = record["stderr"].as_str().unwrap();
        assert!(stderr.contains("FileNotFoundError"), "{record}");
        if delivery != "broker" {
            let masked = record["stdout"]
                .as_str()
                .unwrap()
                .matches("[secret canary]");
            assert!(masked.count() >= 10, "{record}");
        }
        let exec = record["exec_id"].as_str().unwrap().to_owned();
        let mut all = answers(client, &exec);
        assert!(
            all.len() > 15,
            "{:?}",
            all.iter().map(|it| &it.0).collect::<Vec<_>>()
        );
        all.push(("the answer".to_owned(), ran.body));
        (all, exec)
    }
}

const DELIVERIES: [&str; 4] = ["file", "descriptor", "env", "broker"];

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn tries_everything(attempt: &Attempt<'_>) {
    let Some(ground) = Ground::new(attempt.caller, "", "") else {
        return;
    };
    let receiver = Site::open(|_| Said::status(204));
    ground.tell(&receiver, "[\"approval\", \"exec\"]");
    let options: Vec<&str> = match attempt.database {
        Some(database) => vec!["--database", database.url()],
        None => Vec::new(),
    };
    let mut server = serve_with(&ground, &options);
    let client = server.client();
    let mut ears = Ears::at(server.address, &server.token);
    let url = ground.fill("https://ok.test:TLS/echo");
    let (mut all, mut exec) = (Vec::new(), String::new());
    for delivery in attempt.deliveries {
        let (said, ran) = attempt.run(&client, &url, delivery);
        all.extend(said);
        exec = ran;
    }

    // Somebody who knows it says it in places where it may come back.
    let nowhere = format!("/nowhere/{VALUE}");
    let delivery = attempt.deliveries[0];
    for body in [
        attempt.order(&[&nowhere], delivery),
        attempt.order(&["/bin/echo", VALUE], delivery),
        attempt.order(&["/bin/sh", "-c", &format!("exit 3 # {VALUE}")], delivery),
    ] {
        let answer = client.post("/v1/execs", &body);
        let exec = answer.json()["exec_id"].as_str().map(str::to_owned);
        all.push((body.to_string().replace(VALUE, "…"), answer.body));
        all.extend(exec.iter().flat_map(|exec| answers(&client, exec)));
    }
    // One that nobody agreed to waits for somebody.
    let mut asked = attempt.order(&["/bin/echo", VALUE], delivery);
    asked["task_ref"]["conversation_id"] = json!("c-2");
    asked["wait"] = json!(false);
    asked["justification"] = json!(format!("because of {VALUE}"));
    let answer = client.post("/v1/execs", &asked);
    let waiting = answer.json();
    assert_eq!(waiting["status"], "awaiting_approval", "{waiting}");
    all.push(("waiting".to_owned(), answer.body));
    let approval = waiting["approval_id"].as_str().unwrap();
    let shown = ears.required(approval);
    assert!(shown.to_string().contains("[secret canary]"), "{shown}");
    all.push(("the socket".to_owned(), shown.to_string().into_bytes()));
    for path in [
        "/v1/approvals",
        &format!("/v1/approvals/{approval}"),
        "/v1/audit",
        "/v1/audit/export",
        "/v1/execs",
        "/v1/sandboxes",
        "/v1/secrets",
        "/v1/secret-grants",
        "/v1/webhooks",
        "/v1/webhooks/deliveries",
        "/v1/workspaces",
        "/v1/workspaces/p/files",
        "/v1/settings",
        "/metrics",
        &format!("/v1/execs/{VALUE}"),
        &format!("/v1/workspaces/p/files/{VALUE}"),
        &format!("/sandbox/execs/{exec}/observation"),
    ] {
        let answer = client.get(path);
        all.push((path.replace(VALUE, "…"), answer.body));
    }
    let waiting = waiting["exec_id"].as_str().unwrap();
    let cancelled = client.post(&format!("/v1/execs/{waiting}/cancel"), &json!({}));
    assert_eq!(cancelled.status / 100, 2, "{}", cancelled.text());
    let end = ears.resolved(approval);
    all.push(("the socket".to_owned(), end.to_string().into_bytes()));
    // A copy of the workspace, as it is and from what is kept of it.
    for (path, body) in [
        ("/v1/workspaces/p/snapshots", json!({})),
        ("/v1/workspaces/p/fork", json!({"into": "q"})),
    ] {
        let answer = client.post(path, &body);
        assert_eq!(answer.status / 100, 2, "{path}: {}", answer.text());
        all.push((path.to_owned(), answer.body));
    }
    // Those that ended, what was asked, and how that ended.
    let is_told = |kind: &str, times: usize| {
        let asked = receiver.asked();
        asked.iter().filter(|it| it.json()["type"] == kind).count() >= times
    };
    for (kind, times) in [
        ("exec.ended", attempt.deliveries.len() + 4),
        ("approval.requested", 1),
        ("approval.settled", 1),
    ] {
        let told = wait_until(PATIENCE, || is_told(kind, times));
        assert!(told, "{kind}: {:?}", receiver.asked());
    }
    for asked in receiver.asked() {
        all.push(("a webhook".to_owned(), asked.body.clone()));
        all.push((
            "a webhook's head".to_owned(),
            format!("{asked:?}").into_bytes(),
        ));
    }
    for (what, bytes) in &all {
        assert_hidden(what, bytes);
    }
    if attempt.more.get("sandbox").is_some() {
        assert_gone_from_the_sandbox(&client, attempt);
    }
    assert!(assert_nowhere_in(&ground.trial.state()) > 10);
    if let Some(database) = attempt.database {
        assert_nowhere_in_database(database);
    }
    let said = server.said();
    assert!(said.contains("TRACE") || said.contains("trace"), "{said}");
    assert_hidden("the log", said.as_bytes());
    assert_eq!(server.stop(), 0);
    assert!(assert_nowhere_in(&ground.trial.state()) > 10);
    ground.end();
}

/// Whoever comes next into a sandbox that is kept finds nothing of what was given before.
fn assert_gone_from_the_sandbox(client: &Client, attempt: &Attempt<'_>) {
    let look = "find /run/secrets /tmp /home /workspace -type f -exec cat {} + 2>/dev/null; \
                ls -Rla /run /tmp /home /workspace; env; cat /proc/[0-9]*/environ";
    let line = format!("({look}) | base64 -w0 | rev");
    let mut body = attempt.order(&["/bin/sh", "-c", &line], attempt.deliveries[0]);
    body.as_object_mut().unwrap().remove("secrets");
    let ran = client.post("/v1/execs", &body).json();
    assert_eq!(ran["exit_code"], 0, "{ran}");
    // Turned round, so that it is not masked on its way here.
    let turned: String = ran["stdout"].as_str().unwrap().chars().rev().collect();
    let found = STANDARD.decode(turned.trim()).unwrap();
    assert!(found.len() > 100, "{ran}");
    assert_hidden("the sandbox", &found);
}

/// Every row of every table, as text.
fn assert_nowhere_in_database(database: &Database) {
    let listed = "SELECT tablename FROM pg_tables WHERE schemaname = 'glovebox'";
    let tables = database.psql(listed);
    assert!(tables.lines().count() > 5, "{tables}");
    let mut bytes = 0;
    for table in tables.lines() {
        let rows = database.psql(&format!("SELECT t::text FROM glovebox.\"{table}\" t"));
        assert_hidden(table, rows.as_bytes());
        bytes += rows.len();
    }
    assert!(bytes > 10_000, "{bytes} bytes in {tables}");
}

#[test]
fn a_file_is_never_seen() {
    tries_everything(&Attempt::of(&["file"]));
}

#[test]
fn a_descriptor_is_never_seen() {
    tries_everything(&Attempt::of(&["descriptor"]));
}

#[test]
fn a_variable_is_never_seen() {
    tries_everything(&Attempt::of(&["env"]));
}

#[test]
fn a_brokered_one_is_never_seen() {
    tries_everything(&Attempt::of(&["broker"]));
}

#[test]
fn an_ordinary_users_is_never_seen() {
    tries_everything(&Attempt {
        caller: Caller::User,
        ..Attempt::of(&DELIVERIES)
    });
}

#[test]
fn nothing_is_seen_in_a_kept_sandbox() {
    tries_everything(&Attempt {
        more: json!({"sandbox": {"lifetime": "agent"}, "task_ref": {"agent_id": "ann"}}),
        ..Attempt::of(&DELIVERIES)
    });
}

#[test]
fn nothing_is_seen_in_postgresql() {
    let Some(database) = Database::new() else {
        return;
    };
    tries_everything(&Attempt {
        database: Some(&database),
        ..Attempt::of(&["env"])
    });
}

/// Files of a workspace are whoever's it is, also by their names; what is told of them is not.
#[test]
fn names_in_a_workspace_are_masked() {
    let ground = Ground::new(Caller::Root, "", "").unwrap();
    let server = serve(&ground);
    let client = server.client();
    let script = "s=$(cat \"$CANARY\"); echo \"in $s\" > \"$s.txt\"; mkdir \"d-$s\"; \
                  ln -s \"$s\" link; echo \"in $s\" > plain";
    let held = with(
        order(&["/bin/sh", "-c", script], "file"),
        json!({"writes": "held"}),
    );
    let ran = client.post("/v1/execs", &held);
    let record = ran.json();
    assert_eq!(record["status"], "succeeded", "{record}");
    let exec = record["exec_id"].as_str().unwrap();
    let mut all = answers(&client, exec);
    all.push(("held".to_owned(), ran.body));
    let changes = client.get(&format!("/v1/execs/{exec}/changes"));
    assert_eq!(changes.json()["count"]["created"], 4, "{}", changes.text());
    assert!(
        changes.text().contains("[secret canary].txt"),
        "{}",
        changes.text()
    );
    for words in [
        &["workspace", "changes", exec][..],
        &["workspace", "changes", exec, "--json"],
        &["show", exec, "--json"],
    ] {
        let said = ground.glovebox().args(words).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        all.push((words.join(" "), [said.stdout, said.stderr].concat()));
    }
    // What is discarded is gone, with its names.
    let discarded = client.send("POST", &format!("/v1/execs/{exec}/discard"), None);
    assert_eq!(discarded.status, 200, "{}", discarded.text());
    all.push(("discarded".to_owned(), discarded.body));
    assert!(assert_nowhere_in(&ground.trial.state()) > 10);

    let ran = client.post("/v1/execs", &order(&["/bin/sh", "-c", script], "file"));
    assert_eq!(ran.json()["status"], "succeeded", "{}", ran.text());
    all.push(("direct".to_owned(), ran.body));
    for path in [
        "/v1/workspaces/p",
        "/v1/workspaces/p/files",
        "/v1/audit",
        "/v1/audit/export",
    ] {
        all.push((path.to_owned(), client.get(path).body));
    }
    let listed = client.get("/v1/workspaces/p/files").text();
    assert!(listed.contains("[secret canary].txt"), "{listed}");
    for (what, bytes) in &all {
        assert_hidden(what, bytes);
    }
    assert_eq!(server.stop(), 0);
    ground.end();
}
