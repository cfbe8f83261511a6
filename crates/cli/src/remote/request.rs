//! A call as the API's body of an exec. What the API takes only as text is refused here when it is
//! not text, with the way round it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{
    Access, BackendName, ByteString, Call, ClientId, Code, EnvKey, Error, HostPort, LimitsDemand,
    Mode, NetworkMode, OnExceed, PartialProfile, Program, ProjectId, Result, Stage, Tier,
    WorkspaceRef,
};
use serde::Serialize;

/// What the API reads of one exec, inputs and all.
pub(crate) const BODY_MOST: usize = 16 << 20;

#[derive(Debug, Serialize)]
pub(crate) struct ExecRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<ProjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<ClientId>,
    exec: Spec,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<File>,
    policy_overrides: Overrides,
    task_ref: TaskRef,
    mode: Mode,
    wait: bool,
    on_exceed: OnExceed,
}

#[derive(Debug, Serialize)]
struct Spec {
    kind: &'static str,
    command: String,
    args: Vec<ByteString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<EnvKey, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_base64: Option<String>,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    Content(String),
    ContentBase64(String),
}

#[derive(Debug, Serialize)]
struct TaskRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
}

/// Under the names of the configuration.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Overrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pids: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkMode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allow_net: Vec<HostPort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<Access>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits_demand: Option<LimitsDemand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<BackendName>,
}

impl ExecRequest {
    /// Answered as soon as it is taken on; how it goes on is told by its events.
    pub(crate) fn new(call: Call, stdin: Option<Vec<u8>>) -> Result<Self> {
        let project_id = match call.workspace {
            WorkspaceRef::Project(id) => Some(id),
            WorkspaceRef::Scratch => None,
            WorkspaceRef::Adopted(_) => return Err(no_directory()),
        };
        let env = call.env.into_iter().map(|it| {
            let value = text(&format!("the environment variable `{}`", it.key), &it.value)?;
            Ok((it.key, value))
        });
        let (stdin, stdin_base64) = match stdin.map(String::from_utf8) {
            Some(Ok(text)) => (Some(text), None),
            Some(Err(bytes)) => (None, Some(STANDARD.encode(bytes.as_bytes()))),
            None => (None, None),
        };
        let (kind, command, args) = program(&call.program)?;
        Ok(Self {
            project_id,
            client_id: call.client_id,
            exec: Spec {
                kind,
                command,
                args,
                cwd: call
                    .cwd
                    .map(|it| text("the working directory", &it))
                    .transpose()?,
                env: env.collect::<Result<_>>()?,
                stdin,
                stdin_base64,
            },
            inputs: call.inputs.into_iter().map(file).collect::<Result<_>>()?,
            policy_overrides: overrides(call.overrides),
            task_ref: TaskRef {
                task_id: call.ids.task_id,
            },
            mode: call.mode,
            wait: false,
            on_exceed: call.on_exceed,
        })
    }
}

fn program(program: &Program) -> Result<(&'static str, String, Vec<ByteString>)> {
    let kind = match program {
        Program::Argv { .. } => "argv",
        Program::Shell { .. } => "shell",
        Program::Python { .. } => "python",
        Program::Javascript { .. } => "javascript",
    };
    let mut words = program.argv().into_iter();
    let command = text("the command", &words.next().unwrap_or_default())?;
    Ok((kind, command, words.collect()))
}

fn file(input: glovebox_model::Input) -> Result<File> {
    Ok(File {
        path: text("the name of an input", &input.path)?,
        content: match String::from_utf8(input.content) {
            Ok(text) => Content::Content(text),
            Err(bytes) => Content::ContentBase64(STANDARD.encode(bytes.as_bytes())),
        },
    })
}

fn overrides(profile: PartialProfile) -> Overrides {
    let limits = profile.limits;
    let time = |it: glovebox_model::Millis| format!("{}ms", it.get());
    Overrides {
        timeout: limits.wall_ms.map(time),
        cpu_time: limits.cpu_ms.map(time),
        memory: limits.memory_bytes.map(|it| it.0),
        pids: limits.pids.map(|it| it.0),
        cpus: limits.cpus_milli.map(|it| f64::from(it.0) / 1000.0),
        disk: limits.disk_bytes.map(|it| it.0),
        files: limits.disk_files.map(|it| it.0),
        stdout: limits.stdout_bytes.map(|it| it.0),
        stderr: limits.stderr_bytes.map(|it| it.0),
        artifacts: limits.artifacts_bytes.map(|it| it.0),
        open_files: limits.open_files.map(|it| it.0),
        network: profile.network,
        allow_net: profile.allow_net.into_iter().flatten().collect(),
        workspace: profile.workspace,
        tier: profile.tier,
        limits_demand: profile.limits_demand,
        backend: profile.backend,
    }
}

fn text(what: &str, bytes: &ByteString) -> Result<String> {
    String::from_utf8(bytes.as_bytes().to_vec()).map_err(|_| not_text(what))
}

fn not_text(what: &str) -> Error {
    let message = format!("{what} is not UTF-8, and a server takes only text here");
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

/// A silent empty directory would surprise.
fn no_directory() -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        "a server does not see this directory",
    )
    .hint("`--project ID` works on a workspace that the server keeps")
    .hint("`--scratch` works on an empty one that is gone afterwards; `--input FILE` sends files along")
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{Bytes, Correlation, Cpus, EnvVar, Input, Millis, SpaceId};
    use serde_json::json;

    fn bytes(text: &[u8]) -> ByteString {
        ByteString::new(text).unwrap()
    }

    fn call() -> Call {
        Call {
            ids: Correlation {
                task_id: Some("t".to_owned()),
                ..Correlation::of_space(SpaceId::local())
            },
            client_id: None,
            workspace: WorkspaceRef::Scratch,
            program: Program::Shell {
                script: bytes(b"echo hi"),
            },
            cwd: Some(bytes(b"sub")),
            env: vec![EnvVar {
                key: "A".parse().unwrap(),
                value: bytes(b"b=c"),
            }],
            inputs: vec![
                Input {
                    path: bytes(b"a.txt"),
                    content: b"text".to_vec(),
                },
                Input {
                    path: bytes(b"b.bin"),
                    content: b"\xff\x00".to_vec(),
                },
            ],
            mode: Mode::Run,
            on_exceed: OnExceed::Refuse,
            overrides: PartialProfile::default(),
        }
    }

    #[test]
    fn a_call_becomes_the_apis_body() {
        let mut call = call();
        call.overrides.limits.wall_ms = Some(Millis(1500));
        call.overrides.limits.memory_bytes = Some(Bytes::mib(1));
        call.overrides.limits.cpus_milli = Some(Cpus(500));
        call.overrides.tier = Some(Tier::High);
        let request = ExecRequest::new(call, Some(b"in".to_vec())).unwrap();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            json!({
                "exec": {"kind": "shell", "command": "bash", "args": ["-lc", "echo hi"],
                         "cwd": "sub", "env": {"A": "b=c"}, "stdin": "in"},
                "inputs": [{"path": "a.txt", "content": "text"},
                           {"path": "b.bin", "content_base64": "/wA="}],
                "policy_overrides": {"timeout": "1500ms", "memory": 1_048_576, "cpus": 0.5,
                                     "tier": "high"},
                "task_ref": {"task_id": "t"}, "mode": "run", "wait": false, "on_exceed": "refuse",
            })
        );
    }

    #[test]
    fn what_a_server_cannot_have_is_refused_with_the_way_round() {
        let mut here = call();
        here.workspace = WorkspaceRef::Adopted(".".into());
        let error = ExecRequest::new(here, None).unwrap_err();
        let hints = error.hints.join(" ");
        assert!(
            hints.contains("--project") && hints.contains("--scratch"),
            "{hints}"
        );
        let request = ExecRequest::new(call(), Some(vec![0xff])).unwrap();
        let request = serde_json::to_value(request).unwrap();
        assert_eq!(request["exec"]["stdin_base64"], "/w==");
        let mut odd = call();
        odd.env[0].value = bytes(b"\xff");
        assert!(ExecRequest::new(odd, None).is_err());
    }
}
