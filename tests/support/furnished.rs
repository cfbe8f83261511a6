//! A space with one of everything that a path of the API can name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Client, Operation, Response, Server, wait_until};

/// How long a disk may keep a server from being ready.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Furnished {
    /// An admin of it.
    pub admin: Client,
    pub exec: String,
    pub client_id: String,
    /// One that has ended.
    pub session: String,
    pub project: String,
    pub task: String,
    pub file: String,
    pub artifact: String,
    pub token: String,
    /// A kept one, on a workspace of its own, by its id.
    pub sandbox: String,
    pub sandbox_name: String,
    /// Of the project.
    pub snapshot: String,
    /// Waits for an answer; an agent asked.
    pub approval: String,
    pub grant: String,
    /// By its name.
    pub secret: String,
    pub secret_grant: String,
    /// Who asks in it.
    pub agent: Client,
    /// Who may verify snapshots.
    pub operator: Client,
}

/// An id of the right form that nothing has.
const RANDOM: &str = "5b0e7a53c1f94d0aa1b2c3d4e5f60718";

impl Furnished {
    /// # Panics
    /// When something cannot be made.
    pub fn new(server: &Server, space: &str) -> Self {
        Self::named(server, space, space)
    }

    /// One of several in a space, each an agent's own.
    ///
    /// # Panics
    /// When something cannot be made.
    pub fn named(server: &Server, space: &str, name: &str) -> Self {
        let admin = match space {
            "local" => server.client(),
            _ => server.client_of(&server.token_of("admin", space, &format!("{name}-admin"))),
        };
        let task = format!("{name}-task");
        let body = json!({"name": unused(name), "role": "agent", "agent_id": task});
        let made = admin.post("/v1/tokens", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        let mut furnished = Self {
            agent: server.client_of(&text(&made.json()["secret"])),
            admin,
            exec: String::new(),
            client_id: String::new(),
            session: String::new(),
            project: format!("{name}-project"),
            task,
            file: format!("{name}-file"),
            artifact: format!("{name}-artifact"),
            token: String::new(),
            sandbox: String::new(),
            sandbox_name: String::new(),
            snapshot: String::new(),
            approval: String::new(),
            grant: String::new(),
            secret: String::new(),
            secret_grant: String::new(),
            operator: server.client(),
        };
        furnished.restore();
        furnished
    }

    /// A simulation: prints, leaves an artifact, and changes that wait.
    fn request(&self) -> Value {
        let script = format!(
            "echo {0}; echo {0} > /workspace/artifacts/{0}; date +{0}%N > held",
            self.artifact
        );
        let task = &self.task;
        json!({
            "project_id": self.project,
            "client_id": self.client_id,
            "mode": "simulate",
            "task_ref": {"task_id": task, "conversation_id": task, "user_id": task,
                         "turn_id": task, "workflow_id": task, "agent_id": task, "session_id": task},
            "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
        })
    }

    fn sandbox_request(&self) -> Value {
        json!({"lifetime": "agent", "agent_id": self.task,
               "project_id": unused(&format!("{}-room", self.project))})
    }

    /// Something that people are asked about: the exec, and the approval.
    fn ask(&self) -> (String, String) {
        let task = unused(&self.task);
        let body = json!({
            "wait": false,
            "project_id": format!("{}-asked", self.project),
            "task_ref": {"conversation_id": task},
            "policy_overrides": {"tier": "high"},
            "exec": {"kind": "argv", "command": "true"},
        });
        let asked = self.agent.post("/v1/execs", &body);
        assert_eq!(asked.status, 202, "{}", asked.text());
        let asked = asked.json();
        (text(&asked["exec_id"]), text(&asked["approval_id"]))
    }

    fn secret_grant_request(&self) -> Value {
        json!({"secret": self.secret, "conversation_id": self.task, "agent_id": self.task})
    }

    /// Makes everything again, whatever a test has removed of it.
    pub fn restore(&mut self) {
        self.restore_workspace();
        self.restore_exec();
        self.restore_session();
        self.restore_token();
        self.restore_sandbox();
        self.approval = self.ask().1;
        self.restore_grant();
        self.restore_secret();
    }

    /// Makes again what this operation has used up: what its path names, and what stands on that.
    pub fn restore_after(&mut self, operation: &Operation) {
        let noun = operation.path.split('/').nth(2);
        match noun {
            Some("execs") => self.restore_exec(),
            Some("sessions") => self.restore_session(),
            Some("tokens") => self.restore_token(),
            Some("sandboxes") => self.restore_sandbox(),
            Some("approvals") => self.approval = self.ask().1,
            Some("grants") => self.restore_grant(),
            Some("secrets" | "secret-grants") => self.restore_secret(),
            // A simulation holds changes to the workspace as it was.
            Some("workspaces") => {
                self.restore_workspace();
                self.restore_exec();
            }
            _ => self.restore(),
        }
    }

    fn restore_workspace(&mut self) {
        let direct = json!({
            "project_id": self.project,
            "task_ref": {"agent_id": self.task},
            "exec": {"kind": "argv", "command": "sh", "args": ["-c", "date +%N > changed"]},
        });
        let ran = self.admin.post("/v1/execs", &direct);
        assert_eq!(ran.status, 200, "{}", ran.text());
        let path = format!("/v1/workspaces/{}/files/{}", self.project, self.file);
        let kind = Some("application/octet-stream");
        let put = self.admin.try_bytes("PUT", &path, kind, b"x").expect("put");
        assert_eq!(put.status, 200, "{}", put.text());
        let path = format!("/v1/workspaces/{}/snapshots", self.project);
        let taken = self.agent.post(&path, &json!({}));
        assert_eq!(taken.status, 201, "{}", taken.text());
        self.snapshot = text(&taken.json()["snapshot"]["snapshot_id"]);
        let verified = self.operator.get("/v1/snapshots/verify");
        assert_eq!(verified.status, 200, "{}", verified.text());
    }

    fn restore_exec(&mut self) {
        self.client_id = unused(&self.project);
        let ran = self.admin.post("/v1/execs", &self.request());
        assert_eq!(ran.status, 200, "{}", ran.text());
        self.exec = text(&ran.json()["exec_id"]);
    }

    fn restore_session(&mut self) {
        let body = json!({
            "project_id": self.project,
            "task_ref": {"agent_id": self.task},
            "exec": {"kind": "argv", "command": "true"},
            "session": {"terminal": true, "yield_ms": 60_000},
        });
        let ran = self.admin.post("/v1/sessions", &body);
        assert_eq!(ran.status, 200, "{}", ran.text());
        self.session = text(&ran.json()["session"]["session_id"]);
    }

    fn restore_token(&mut self) {
        let name = unused(&self.project);
        let made = self
            .admin
            .post("/v1/tokens", &json!({"name": name, "role": "agent"}));
        assert_eq!(made.status, 201, "{}", made.text());
        self.token = text(&made.json()["token"]["token_id"]);
    }

    fn restore_sandbox(&mut self) {
        let made = self.admin.post("/v1/sandboxes", &self.sandbox_request());
        assert_eq!(made.status, 201, "{}", made.text());
        self.sandbox = text(&made.json()["sandbox_id"]);
        self.sandbox_name = text(&made.json()["name"]);
    }

    fn restore_grant(&mut self) {
        let (exec, asked) = self.ask();
        let path = format!("/v1/approvals/{asked}/reply");
        let allowed = self.admin.post(&path, &json!({"decision": "allow_kind"}));
        assert_eq!(allowed.status, 200, "{}", allowed.text());
        self.admin.ended(&exec);
        let grants = self.admin.get("/v1/grants?limit=1").json();
        self.grant = text(&grants["items"][0]["id"]);
    }

    fn restore_secret(&mut self) {
        self.secret = unused(&self.project.replace("-project", "-secret"));
        let path = format!("/v1/secrets/{}", self.secret);
        let set = self.admin.send("PUT", &path, Some(&secret_request()));
        assert_eq!(set.status, 200, "{}", set.text());
        let asked = self.secret_grant_request();
        let granted = self.admin.post("/v1/secret-grants", &asked);
        assert_eq!(granted.status, 201, "{}", granted.text());
        self.secret_grant = text(&granted.json()["grant_id"]);
    }

    /// The path with the names of what is here. Every noun of the API has its line.
    ///
    /// # Panics
    /// When the path has a parameter that nothing here stands for.
    pub fn fill(&self, path: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        let filled = parts.iter().enumerate().map(|(index, part)| {
            if !part.starts_with('{') {
                return *part;
            }
            match parts[index - 1] {
                "execs" => self.exec.as_str(),
                "sessions" => &self.session,
                "approvals" => &self.approval,
                "grants" => &self.grant,
                "secrets" => &self.secret,
                "webhooks" => "ops",
                "skills" => "shell.run",
                "secret-grants" => &self.secret_grant,
                "artifacts" => &self.artifact,
                "tokens" => &self.token,
                "sandboxes" => &self.sandbox,
                "snapshots" => &self.snapshot,
                "workspaces" => &self.project,
                "files" => &self.file,
                "timeline" => &self.task,
                noun => panic!("nothing stands for `{part}` after `{noun}` in {path}"),
            }
        });
        filled.collect::<Vec<_>>().join("/")
    }

    /// The same things, but none of them exists.
    #[must_use]
    pub fn nowhere(&self) -> Self {
        Self {
            exec: format!("e_{RANDOM}"),
            client_id: format!("c{RANDOM}"),
            session: format!("e_{RANDOM}"),
            project: format!("p{RANDOM}"),
            task: format!("k{RANDOM}"),
            file: format!("f{RANDOM}"),
            artifact: format!("a{RANDOM}"),
            token: format!("t_{RANDOM}"),
            sandbox: format!("sb_{RANDOM}"),
            sandbox_name: format!("glovebox-s{RANDOM}"),
            snapshot: format!("snap_{RANDOM}"),
            approval: format!("apr_{RANDOM}"),
            grant: format!("grt_{RANDOM}"),
            secret: format!("s{RANDOM}"),
            secret_grant: format!("grt_{RANDOM}"),
            ..self.clone()
        }
    }

    /// All that must never be in another space's answer.
    pub fn names(&self) -> [&str; 15] {
        [
            &self.exec,
            &self.client_id,
            &self.session,
            &self.project,
            &self.task,
            &self.file,
            &self.artifact,
            &self.token,
            &self.sandbox,
            &self.sandbox_name,
            &self.snapshot,
            &self.approval,
            &self.grant,
            &self.secret,
            &self.secret_grant,
        ]
    }

    /// Does what is described, with the things that are here.
    pub fn send(&self, client: &Client, operation: &Operation, query: &str) -> Response {
        // A stream that has no end of its own.
        let query = match operation.path.ends_with("/watch") && query.is_empty() {
            true => "?seconds=0",
            false => query,
        };
        let path = self.fill(&operation.path) + query;
        let method = operation.method.as_str();
        let body = match operation.body.as_deref() {
            None if path == "/readyz" => return ready(client),
            None => return client.send(method, &path, None),
            Some("application/octet-stream") => {
                let kind = operation.body.as_deref();
                // The end of a tar, which is one with nothing in it.
                let body: &[u8] = match operation.path.ends_with("/archive") {
                    true => &[0; 1024],
                    false => b"x",
                };
                let sent = client.try_bytes(method, &path, kind, body);
                return sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
            }
            Some("ExecRequest") => json!({"exec": {"kind": "argv", "command": "true"}}),
            Some("SkillCallRequest") => json!({"inputs": {"script": "true"}}),
            Some("TokenRequest") => {
                let name = unused("sent");
                json!({"name": name, "role": "agent", "expires_at": "2099-01-01T00:00:00Z"})
            }
            Some("ToolsRequest") => json!({"tools": ["run_code"]}),
            Some("SettingsPatch") => json!({}),
            Some("ReplyRequest") => json!({"decision": "deny"}),
            Some("ReasonRequest") => json!({}),
            Some("SessionInput") => json!({"text": "x"}),
            Some("SessionSignal") => json!({"signal": "INT"}),
            Some("TerminalSize") => json!({"columns": 80, "rows": 24}),
            Some("ReplayRequest") => json!({"config": ""}),
            Some("SecretRequest") => secret_request(),
            Some("RetrieveRequest") => json!({"url": "http://127.0.0.1:9/"}),
            Some("SecretGrantRequest") => self.secret_grant_request(),
            Some("SandboxRequest") => self.sandbox_request(),
            // What they do can be done again and again.
            Some("MkdirRequest") => json!({"path": "directory"}),
            Some("MoveRequest") => {
                json!({"from": self.file, "to": self.file, "overwrite": true})
            }
            Some("CopyRequest") => json!({"from": self.file, "to": "copy", "overwrite": true}),
            Some("ReplaceRequest") => json!({"path": self.file, "old": "x", "new": "x"}),
            Some("SearchRequest") => json!({"pattern": "x"}),
            Some("GlobRequest") => json!({"pattern": "*"}),
            Some("SnapshotRequest" | "ResetRequest" | "UndoRequest" | "RollbackRequest") => {
                json!({})
            }
            Some("ForkRequest") => json!({"into": unused(&self.project)}),
            Some("RecreateRequest") => json!({"agent": self.task}),
            Some(schema) => panic!("nothing is known to send as `{schema}` to {method} {path}"),
        };
        client.send(method, &path, Some(&body))
    }
}

/// A server is not ready while its disk stands still, and says so: that is no answer yet.
fn ready(client: &Client) -> Response {
    let mut answer = client.get("/readyz");
    wait_until(PATIENCE, || {
        if answer.status == 503 {
            answer = client.get("/readyz");
        }
        answer.status != 503
    });
    answer
}

/// A configuration with a webhook, and with a way to read pages; nobody listens at either place.
///
/// # Panics
/// When its key cannot be written.
pub fn outward(home: &Path) -> String {
    let key = home.join("ops.key");
    fs::write(&key, [b'k'; 32]).expect("write the key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("guard the key");
    format!(
        "[settings]\nnetwork = \"retrieval\"\n[network]\nprivate = [\"127.0.0.1:9\"]\n\
         [[webhook]]\nname = \"ops\"\nurl = \"http://127.0.0.1:9/\"\n\
         events = [\"approval.settled\"]\nkey_file = {key:?}\n"
    )
}

fn secret_request() -> Value {
    json!({"value_base64": "Z2hwX1prM3ZYcTgxTG1OYzAyUXBSdA=="})
}

/// A token's name is given once.
fn unused(name: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
