//! A call as the API's body of an exec. What the API takes only as text is refused here when it is
//! not text, with the way round it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{
    Access, BackendName, ByteString, Call, ClientId, Code, EnvKey, Error, ExecId, Guarantee,
    HostPort, Lifetime, LimitsDemand, Mode, NetworkMode, OnExceed, PartialProfile, Placement,
    Program, ProjectId, Result, SandboxId, SecretUse, Simulation, Stage, Tier, WorkspaceRef,
    Writes,
};
use serde::Serialize;
use serde_json::{Map, Value};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<Which>,
    task_ref: TaskRef,
    mode: Mode,
    wait: bool,
    on_exceed: OnExceed,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<String>,
    #[serde(skip_serializing_if = "Writes::is_direct")]
    writes: Writes,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulate: Option<Simulation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<ExecId>,
}

#[derive(Debug, Serialize)]
struct Spec {
    #[serde(flatten)]
    program: ProgramSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<EnvKey, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_base64: Option<String>,
}

/// What is to run, alone.
#[derive(Debug, Serialize)]
pub(crate) struct ProgramSpec {
    kind: &'static str,
    command: String,
    args: Vec<ByteString>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
}

/// The sandbox that it runs in.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Which {
    Id(SandboxId),
    Name(String),
    Lifetime(Lifetime),
}

impl Which {
    fn of(placement: Placement) -> Option<Self> {
        match placement {
            Placement::Fresh => None,
            Placement::Scope(lifetime) => Some(Self::Lifetime(lifetime)),
            Placement::Named(name) => Some(match name.parse() {
                Ok(id) => Self::Id(id),
                Err(_) => Self::Name(name),
            }),
        }
    }
}

/// Under the names of the configuration.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Overrides {
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
    gpus: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tpus: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    egress_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    egress_connections: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_time: Option<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    require: BTreeSet<Guarantee>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<BackendName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
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
        Ok(Self {
            project_id,
            client_id: call.client_id,
            exec: Spec {
                program: ProgramSpec::of(&call.program)?,
                cwd: call
                    .cwd
                    .map(|it| text("the working directory", &it))
                    .transpose()?,
                env: env.collect::<Result<_>>()?,
                stdin,
                stdin_base64,
            },
            inputs: call.inputs.into_iter().map(file).collect::<Result<_>>()?,
            policy_overrides: call.overrides.into(),
            sandbox: Which::of(call.placement),
            task_ref: TaskRef {
                task_id: call.ids.task_id,
                agent_id: call.ids.agent_id,
                session_id: call.ids.session_id,
                conversation_id: call.ids.conversation_id,
            },
            mode: call.mode,
            wait: false,
            on_exceed: call.on_exceed,
            mounts: call.mounts,
            secrets: call.secrets,
            justification: call.justification,
            writes: call.writes,
            simulate: call.simulation,
            over: call.over,
        })
    }
}

/// What the API reads of a call of a skill.
#[derive(Debug, Serialize)]
pub(crate) struct SkillRequest {
    inputs: Map<String, Value>,
    #[serde(flatten)]
    beside: Map<String, Value>,
}

impl SkillRequest {
    /// The same as of an exec, without what is the skill's own to say.
    pub(crate) fn new(call: Call, inputs: Map<String, Value>) -> Result<Self> {
        let request = serde_json::to_value(ExecRequest::new(call, None)?).map_err(|error| {
            Error::new(Code::Internal, Stage::Parse, "cannot write the request").caused_by(error)
        })?;
        let mut beside = match request {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        for own in ["exec", "inputs", "mounts"] {
            beside.remove(own);
        }
        Ok(Self { inputs, beside })
    }
}

impl ProgramSpec {
    pub(crate) fn of(program: &Program) -> Result<Self> {
        let kind = match program {
            Program::Argv { .. } => "argv",
            Program::Shell { .. } => "shell",
            Program::Python { .. } => "python",
            Program::Javascript { .. } => "javascript",
        };
        let mut words = program.argv().into_iter();
        let command = text("the command", &words.next().unwrap_or_default())?;
        Ok(Self {
            kind,
            command,
            args: words.collect(),
        })
    }
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

impl From<PartialProfile> for Overrides {
    fn from(profile: PartialProfile) -> Self {
        let limits = profile.limits;
        let time = |it: glovebox_model::Millis| format!("{}ms", it.get());
        Self {
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
            gpus: limits.gpus.map(|it| it.0),
            tpus: limits.tpus.map(|it| it.0),
            egress_bytes: limits.egress_bytes.map(|it| it.0),
            egress_connections: limits.egress_connections.map(|it| it.0),
            network_time: limits.network_ms.map(time),
            require: profile.require,
            backend: profile.backend,
            runtime: profile.runtime,
            image: profile.image,
        }
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
            placement: glovebox_model::Placement::Fresh,
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
            mounts: Vec::new(),
            secrets: Vec::new(),
            justification: None,
            writes: Writes::Direct,
            simulation: None,
            over: None,
            preview: None,
            skill: None,
            vouched: glovebox_model::Vouched::People,
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
    fn where_it_runs_is_said_in_the_apis_words() {
        let body = |placement| {
            let mut call = call();
            call.placement = placement;
            call.ids.agent_id = Some("ann".to_owned());
            call.overrides.require = [Guarantee::OwnKernel].into();
            call.overrides.runtime = Some("runsc".to_owned());
            call.overrides.image = Some("i".to_owned());
            call.overrides.limits.gpus = Some(glovebox_model::Count(1));
            serde_json::to_value(ExecRequest::new(call, None).unwrap()).unwrap()
        };
        let id = SandboxId::from_random([1; 16]);
        for (placement, sandbox) in [
            (Placement::Fresh, json!(null)),
            (
                Placement::Scope(Lifetime::Agent),
                json!({"lifetime": "agent"}),
            ),
            (Placement::Named("a-b".to_owned()), json!({"name": "a-b"})),
            (Placement::Named(id.to_string()), json!({"id": id})),
        ] {
            let body = body(placement);
            assert_eq!(body["sandbox"], sandbox);
            assert_eq!(body["task_ref"], json!({"task_id": "t", "agent_id": "ann"}));
            assert_eq!(
                body["policy_overrides"],
                json!({"require": ["own_kernel"], "runtime": "runsc", "image": "i", "gpus": 1})
            );
        }
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
