//! A server where people are asked, an agent that asks, and people who answer, over REST or over
//! the WebSocket.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Ears, Server, Start, Trial, with};

use crate::pool_fire::serve;

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything but reading is asked about.
pub(crate) const MANUAL: &str = "[approvals]\nmode = \"manual\"\n";

pub(crate) struct House {
    pub(crate) trial: Trial,
    start: Start,
    server: Option<Server>,
    pub(crate) agent: Client,
    pub(crate) ann: Client,
    pub(crate) bob: Client,
    pub(crate) ann_token: String,
    pub(crate) agent_token: String,
}

impl House {
    pub(crate) fn open(config: &str) -> Self {
        Self::open_with(config, |start| start)
    }

    pub(crate) fn open_with(config: &str, change: impl FnOnce(Start) -> Start) -> Self {
        let trial = Trial::in_memory(Caller::Root).unwrap();
        let start = change(serve(&trial, config));
        let server = start.on(&trial);
        let token = |role, name| server.token_of(role, "local", name);
        let (agent, ann) = (token("agent", "robot"), token("approver", "ann"));
        let bob = token("approver", "bob");
        Self {
            agent: server.client_of(&agent),
            ann: server.client_of(&ann),
            bob: server.client_of(&bob),
            ann_token: ann,
            agent_token: agent,
            trial,
            start,
            server: Some(server),
        }
    }

    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    pub(crate) fn admin(&self) -> Client {
        self.server.as_ref().unwrap().client()
    }

    /// Killed, with no chance to tidy up, and started again.
    pub(crate) fn restart(&mut self) {
        self.server().kill();
        let server = self.start.on(&self.trial);
        for client in [&mut self.agent, &mut self.ann, &mut self.bob] {
            *client = client.at(server.address);
        }
        self.server = Some(server);
    }

    pub(crate) fn close(mut self) {
        self.admin().verify_ledger();
        assert_eq!(self.server.take().unwrap().stop(), 0);
        self.trial.end();
    }

    /// After it was told to end.
    pub(crate) fn ended(mut self) {
        assert_eq!(self.server.take().unwrap().wait(PATIENCE), 0);
        self.trial.end();
    }

    pub(crate) fn server_token(&self, role: &str, name: &str) -> Client {
        let server = self.server.as_ref().unwrap();
        server.client_of(&server.token_of(role, "local", name))
    }

    /// A token that is bound to a user.
    pub(crate) fn token_of_user(&self, role: &str, name: &str, user: &str) -> Client {
        let body = json!({"name": name, "role": role, "user_id": user});
        let made = self.admin().post("/v1/tokens", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        let server = self.server.as_ref().unwrap();
        server.client_of(&text(&made.json()["secret"]))
    }

    /// Somebody of another space.
    pub(crate) fn stranger_token(&self, role: &str) -> String {
        let server = self.server.as_ref().unwrap();
        server.token_of(role, "elsewhere", "stranger")
    }

    pub(crate) fn stranger(&self, role: &str) -> Client {
        let token = self.stranger_token(role);
        self.server.as_ref().unwrap().client_of(&token)
    }

    #[track_caller]
    pub(crate) fn ask(&self, body: &Value) -> (String, String) {
        ask(&self.agent, body)
    }

    /// What the ledger says about one approval, the oldest first.
    #[track_caller]
    pub(crate) fn story(&self, approval: &str) -> Vec<String> {
        let page = self
            .admin()
            .get(&format!("/v1/audit?tag=approval:{approval}"));
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        let mut events: Vec<(u64, String)> = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["seq"].as_u64().unwrap(), text(&it["body"]["event"])))
            .collect();
        events.sort();
        events.into_iter().map(|(_, event)| event).collect()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().address
    }

    pub(crate) fn listen(&self, token: &str) -> Ears {
        Ears::at(self.address(), token)
    }
}

/// The exec, and the approval that it waits for.
#[track_caller]
pub(crate) fn ask(client: &Client, body: &Value) -> (String, String) {
    let body = with(body.clone(), json!({"wait": false}));
    let answer = client.post("/v1/execs", &body);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let record = answer.json();
    assert_eq!(record["status"], "awaiting_approval", "{record}");
    (text(&record["exec_id"]), text(&record["approval_id"]))
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

#[track_caller]
pub(crate) fn reply(client: &Client, approval: &str, answer: &Value) -> support::Response {
    client.post(&format!("/v1/approvals/{approval}/reply"), answer)
}

#[track_caller]
pub(crate) fn allow(client: &Client, approval: &str) -> Value {
    let answer = reply(client, approval, &json!({"decision": "allow_once"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}
