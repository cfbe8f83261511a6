//! The protocol by hand, for whatever no good client says: over HTTP, one request each, and over a
//! process's standard input and output, line by line.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Client, Response};

/// What an answer may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// What every request of today says of its client.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A request of today.
pub(crate) fn request(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn tool_call(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client,
}

impl Http {
    pub(crate) fn new(server: SocketAddr, token: Option<&str>) -> Self {
        let client =
            Client::new(server, token).with("Accept", "application/json, text/event-stream");
        Self { client }
    }

    #[must_use]
    pub(crate) fn with(&self, name: &str, value: impl Into<String>) -> Self {
        Self {
            client: self.client.clone().with(name, value),
        }
    }

    /// Any bytes, without the headers that a good message has.
    pub(crate) fn bytes(&self, body: &[u8]) -> Response {
        self.client
            .try_bytes("POST", "/mcp", Some("application/json"), body)
            .expect("an answer")
    }

    /// A message of today, with the headers that belong to it.
    pub(crate) fn send(&self, message: &Value) -> Response {
        let method = message["method"].as_str().unwrap_or_default();
        let mut http = self
            .with("Mcp-Protocol-Version", MODERN)
            .with("Mcp-Method", method);
        let name = &message["params"]["name"];
        let uri = &message["params"]["uri"];
        if let Some(name) = name.as_str().or(uri.as_str()) {
            // A header cannot hold everything that a name can.
            http = http.with("Mcp-Name", name.replace(['\r', '\n', '\0'], " "));
        }
        http.bytes(message.to_string().as_bytes())
    }

    pub(crate) fn call(&self, name: &str, arguments: Value) -> Value {
        answer(&self.send(&tool_call(1, name, arguments)))
    }

    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        answer(&self.send(&request(1, method, params)))
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        names(&answer(&self.send(&request(1, "tools/list", json!({})))))
    }
}

/// The last message of an answer, which may be a stream of them.
pub(crate) fn answer(response: &Response) -> Value {
    let text = response.text();
    let is_stream = response
        .header("content-type")
        .is_some_and(|it| it.starts_with("text/event-stream"));
    let message = match is_stream {
        true => text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .rfind(|data| !data.trim().is_empty())
            .unwrap_or_default(),
        false => &text,
    };
    serde_json::from_str(message).unwrap_or(Value::Null)
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|it| it["name"].as_str().map(str::to_owned))
        .collect()
}

/// `glovebox mcp`, spoken to by lines.
#[derive(Debug)]
pub(crate) struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Lines {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("start glovebox mcp");
        let input = child.stdin.take();
        let stdout = child.stdout.take().expect("its standard output");
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            input,
            output,
        }
    }

    /// With the handshake of the revisions that have one.
    pub(crate) fn greet(&mut self) {
        self.say(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": {"name": "tests", "version": "1"},
            }}),
        );
        let answer = self.answer(&json!(0));
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.line(message.to_string().as_bytes());
    }

    /// Any bytes, and the end of the line.
    pub(crate) fn line(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("a server that still listens");
        input.write_all(bytes).expect("say something");
        input.write_all(b"\n").expect("say something");
        input.flush().expect("say something");
    }

    /// The next message, if one comes.
    pub(crate) fn hear(&self, patience: Duration) -> Option<Value> {
        let line = self.output.recv_timeout(patience).ok()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}")))
    }

    /// The answer to this request; what comes before it is passed over.
    pub(crate) fn answer(&self, id: &Value) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.hear(left) {
                Some(message) if message["id"] == *id && message.get("method").is_none() => {
                    return message;
                }
                Some(_) => {}
                None => panic!("no answer to {id}"),
            }
        }
    }

    /// A tool of a greeted server.
    pub(crate) fn call(&mut self, id: u64, name: &str, arguments: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                         "params": {"name": name, "arguments": arguments}}));
        self.answer(&json!(id))
    }

    /// Closes its input, as a host does that ends; its exit code.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.input.take());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("wait for glovebox mcp") {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "glovebox mcp does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Of a test that failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
