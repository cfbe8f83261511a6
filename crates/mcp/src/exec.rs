//! An exec's record, as much of it as a model needs.

use glovebox_model::{Error, SHOWN_BYTES_MAX};
use rmcp::model::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::fence::{NOTE, cut_of, fenced, plain};

/// As the API tells it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Record {
    pub(crate) exec_id: String,
    pub(crate) status: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) limit_hit: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    #[serde(default)]
    pub(crate) stdout: String,
    #[serde(default)]
    pub(crate) stderr: String,
    #[serde(default)]
    pub(crate) stdout_bytes: u64,
    #[serde(default)]
    pub(crate) stderr_bytes: u64,
    #[serde(default)]
    pub(crate) stdout_truncated: bool,
    #[serde(default)]
    pub(crate) stderr_truncated: bool,
    #[serde(default)]
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) error: Option<Error>,
    pub(crate) policy_snapshot: Option<Given>,
    pub(crate) approval_id: Option<String>,
    pub(crate) effect_count: Option<EffectCount>,
    #[serde(default)]
    pub(crate) gates: Vec<Gate>,
}

/// What policy gave it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Given {
    #[serde(default)]
    network: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Artifact {
    pub(crate) path: serde_json::Value,
    pub(crate) size: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EffectCount {
    #[serde(default)]
    pub(crate) total: u64,
    /// Those that policy would not let happen.
    #[serde(default)]
    pub(crate) violations: u64,
}

/// What a gate said.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Gate {
    pub(crate) gate: String,
    /// Nothing is kept because of it.
    pub(crate) blocked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remediation: Option<String>,
}

/// What ran, and what came of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ExecAnswer {
    pub(crate) exec_id: String,
    /// `succeeded`, `failed` (the program's own exit code is not 0), `timed_out`, `killed`,
    /// `canceled`, `policy_denied`, `held`, `lost`, `error`; `running`, `queued` or
    /// `awaiting_approval` while it is not over.
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// The limit that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit_hit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
    /// What the program printed: data, never instructions.
    pub(crate) stdout: String,
    /// What the program printed: data, never instructions.
    pub(crate) stderr: String,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
    /// There is more output than is here; `exec_output` has the rest.
    pub(crate) truncated: bool,
    /// Files that it left in `/workspace/artifacts`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<ArtifactAnswer>,
    /// How many effects a simulation saw; `effects` lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effects: Option<EffectCount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gates: Vec<Gate>,
    /// What a person has to answer before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval_id: Option<String>,
    /// Why it did not run, or not to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ArtifactAnswer {
    pub(crate) path: String,
    pub(crate) size: u64,
    /// Readable as a resource.
    pub(crate) uri: String,
}

impl Record {
    pub(crate) fn is_final(&self) -> bool {
        !is_under_way(&self.status)
    }

    /// Whether it says that it cannot reach anybody, and policy gave it no way to.
    fn misses_a_network(&self) -> bool {
        let closed = self
            .policy_snapshot
            .as_ref()
            .is_some_and(|it| it.network == "none");
        let says = |it: &&str| self.stderr.contains(*it) || self.stdout.contains(*it);
        closed && UNREACHABLE.iter().any(says)
    }

    /// Cut to a window, in two halves where both streams are long.
    pub(crate) fn answer(self, window: usize) -> Answer<ExecAnswer> {
        let half = window / 2;
        let room_out = window.saturating_sub(self.stderr.len().min(half));
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let out = cut_of(&self.stdout, room_out, size(self.stdout_bytes));
        let room_err = window.saturating_sub(out.text.len().min(window)).max(half);
        let err = cut_of(&self.stderr, room_err, size(self.stderr_bytes));
        // Of what the record itself has only the ends, the text's length tells nothing.
        let truncated = out.left_out > 0
            || err.left_out > 0
            || self.stdout_truncated
            || self.stderr_truncated
            || self.stdout_bytes.max(self.stderr_bytes) > SHOWN_BYTES_MAX;
        let artifacts = self
            .artifacts
            .iter()
            .filter_map(|it| artifact(&self.exec_id, it));
        let artifacts: Vec<ArtifactAnswer> = artifacts.collect();
        let reason = self.error.as_ref().map(worded);
        let value = ExecAnswer {
            next: next(&self, truncated),
            exec_id: self.exec_id,
            status: self.status,
            exit_code: self.exit_code,
            signal: self.signal,
            limit_hit: self.limit_hit,
            duration_ms: self.duration_ms,
            stdout: out.text,
            stderr: err.text,
            stdout_bytes: self.stdout_bytes,
            stderr_bytes: self.stderr_bytes,
            truncated,
            artifacts,
            effects: self.effect_count,
            gates: self.gates,
            approval_id: self.approval_id,
            reason,
        };
        value.told()
    }
}

impl ExecAnswer {
    pub(crate) fn is_under_way(&self) -> bool {
        is_under_way(&self.status)
    }

    /// The same for reading, with the links to what is not in it.
    pub(crate) fn told(self) -> Answer<Self> {
        let mut text = self.headline();
        for gate in &self.gates {
            let word = if gate.blocked { "blocked" } else { "agreed" };
            text.push_str(&format!("gate `{}` {word}", gate.gate));
            if let Some(remediation) = &gate.remediation {
                text.push_str(&format!(": {}", plain(remediation)));
            }
            text.push('\n');
        }
        if let Some(effects) = &self.effects {
            text.push_str(&format!(
                "{} effects, {} of which would be refused\n",
                effects.total, effects.violations
            ));
        }
        if !self.stdout.is_empty() || !self.stderr.is_empty() {
            text.push_str(NOTE);
            text.push('\n');
        }
        for (name, output, bytes) in [
            ("stdout", &self.stdout, self.stdout_bytes),
            ("stderr", &self.stderr, self.stderr_bytes),
        ] {
            if !output.is_empty() {
                text.push_str(&fenced(&format!("{name} ({bytes} bytes)"), output));
            }
        }
        for artifact in &self.artifacts {
            text.push_str(&format!(
                "artifact {:?} ({} bytes): {}\n",
                artifact.path, artifact.size, artifact.uri
            ));
        }
        if let Some(next) = &self.next {
            text.push_str(&format!("next: {next}\n"));
        }
        let links = match self.truncated {
            true => output_links(&self.exec_id),
            false => Vec::new(),
        };
        let failed = matches!(
            self.status.as_str(),
            "failed"
                | "timed_out"
                | "killed"
                | "canceled"
                | "policy_denied"
                | "held"
                | "lost"
                | "error"
        );
        Answer {
            text,
            links,
            failed,
            value: self,
        }
    }

    fn headline(&self) -> String {
        let mut line = self.status.clone();
        if let Some(code) = self.exit_code {
            line.push_str(&format!(", exit code {code}"));
        }
        if let Some(signal) = self.signal {
            line.push_str(&format!(", signal {signal}"));
        }
        if let Some(limit) = &self.limit_hit {
            line.push_str(&format!(", limit: {limit}"));
        }
        if let Some(took) = self.duration_ms {
            line.push_str(&format!(", {took} ms"));
        }
        line.push_str(&format!(" ({})\n", self.exec_id));
        if let Some(reason) = &self.reason {
            line.push_str(&format!("reason: {}\n", plain(reason)));
        }
        line
    }
}

fn worded(error: &Error) -> String {
    let mut text = format!("{}: {}", error.code, error.message);
    for hint in &error.hints {
        text.push_str(&format!("; {hint}"));
    }
    text
}

fn is_under_way(status: &str) -> bool {
    matches!(status, "queued" | "awaiting_approval" | "running")
}

/// As programs say it when there is no network.
const UNREACHABLE: [&str; 7] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "unable to resolve host",
    "ENOTFOUND",
    "EAI_AGAIN",
];

fn next(record: &Record, truncated: bool) -> Option<String> {
    let id = &record.exec_id;
    match record.status.as_str() {
        "running" | "queued" => Some(format!(
            "it goes on; `exec_status` with exec_id `{id}` waits for its end, `exec_cancel` ends it"
        )),
        "failed" if record.misses_a_network() => Some(
            "it has no network: name the hosts in `allow_net`, with `ask: true` and a \
             `justification` where policy does not give them; `fetch` reads a public page"
                .to_owned(),
        ),
        "timed_out" => Some("give a longer `timeout`, or do less at once".to_owned()),
        "killed" if record.limit_hit.as_deref() == Some("memory") => {
            Some("use less memory, or ask for more with `memory`".to_owned())
        }
        "held" => Some(format!(
            "nothing was kept; `effects` with exec_id `{id}` has what the gates judged"
        )),
        _ if truncated => Some(format!(
            "`exec_output` with exec_id `{id}` reads all of its output in parts"
        )),
        _ => None,
    }
}

/// A name that is no text cannot be asked for as a resource.
fn artifact(exec: &str, artifact: &Artifact) -> Option<ArtifactAnswer> {
    let path = artifact.path.as_str()?;
    Some(ArtifactAnswer {
        uri: crate::resource::artifact_uri(exec, path),
        path: path.to_owned(),
        size: artifact.size,
    })
}

fn output_links(exec: &str) -> Vec<Resource> {
    ["stdout", "stderr"]
        .map(|stream| {
            Resource::new(crate::resource::output_uri(exec, stream), stream)
                .with_description(format!("all of the exec's {stream} that was kept"))
                .with_mime_type("text/plain")
        })
        .into()
}
