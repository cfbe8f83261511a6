//! A call as the request that asks for it. What the API takes only as text is refused here when it
//! is not text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{
    Answer, ByteString, Call, Code, Error, Input, Millis, PartialProfile, Placement, Program,
    Result, Stage, WorkspaceRef,
};
use serde_json::{Map, Value};

use crate::amount::{Duration, Processors, Size};
use crate::input::{BytesFile, TextFile};
use crate::program::Kind;
use crate::sandbox::{SandboxById, SandboxByLifetime, SandboxByName};
use crate::{
    BackendText, Destination, EnvPattern, ExecRequest, ExecSpec, Free, GuestDir, Id, ImageName,
    InputFile, InputPath, Plain, PolicyOverrides, ProgramSpec, ReplyDecision, ReplyRequest,
    RuntimeName, SandboxName, SandboxRef, SkillCallRequest, TaskRef, Words,
};

impl ExecRequest {
    /// Answered as soon as it is taken on; how it goes on is told by its events.
    pub fn of(call: Call, stdin: Option<Vec<u8>>) -> Result<Self> {
        let project_id = match call.workspace {
            WorkspaceRef::Project(id) => Some(id),
            WorkspaceRef::Scratch => None,
            WorkspaceRef::Adopted(_) => return Err(no_directory()),
        };
        let ProgramSpec {
            kind,
            command,
            args,
        } = ProgramSpec::of(&call.program)?;
        let env = call.env.into_iter().map(|it| {
            let value = text(&format!("the environment variable `{}`", it.key), &it.value)?;
            Ok((it.key, Free(value)))
        });
        let cwd = call.cwd.map(|it| text("the working directory", &it));
        let (stdin, stdin_base64) = match stdin.map(String::from_utf8) {
            Some(Ok(text)) => (Some(text), None),
            Some(Err(bytes)) => (None, Some(STANDARD.encode(bytes.as_bytes()))),
            None => (None, None),
        };
        let ids = call.ids;
        Ok(Self {
            project_id,
            client_id: call.client_id,
            exec: ExecSpec {
                kind,
                command,
                args,
                cwd: cwd.transpose()?.map(GuestDir),
                env: env.collect::<Result<_>>()?,
                stdin,
                stdin_base64,
            },
            inputs: call.inputs.into_iter().map(file).collect::<Result<_>>()?,
            policy_overrides: Some(call.overrides.into()),
            sandbox: sandbox(call.placement),
            task_ref: Some(TaskRef {
                task_id: ids.task_id.map(Id),
                agent_id: ids.agent_id.map(Id),
                session_id: ids.session_id.map(Id),
                conversation_id: ids.conversation_id.map(Id),
                ..TaskRef::default()
            }),
            mode: call.mode,
            wait: false,
            on_exceed: call.on_exceed,
            mounts: call.mounts.into_iter().map(Words).collect(),
            secrets: call.secrets,
            justification: call.justification.map(Words),
            writes: call.writes,
            simulate: call.simulation,
            over: call.over,
            ..Self::nothing()
        })
    }
}

impl SkillCallRequest {
    /// The same as of an exec, without what is the skill's own to say.
    pub fn of(call: Call, inputs: Map<String, Value>) -> Result<Self> {
        let exec = ExecRequest::of(call, None)?;
        Ok(Self {
            inputs,
            project_id: exec.project_id,
            client_id: exec.client_id,
            policy_overrides: exec.policy_overrides,
            sandbox: exec.sandbox,
            task_ref: exec.task_ref,
            mode: exec.mode,
            wait: exec.wait,
            on_exceed: exec.on_exceed,
            secrets: exec.secrets,
            justification: exec.justification,
            writes: exec.writes,
            simulate: exec.simulate,
            over: exec.over,
            request_id: None,
        })
    }
}

impl ReplyRequest {
    pub fn of(answer: Answer) -> Result<Self> {
        let mut request = Self {
            decision: ReplyDecision::Deny,
            reason: None,
            policy_overrides: None,
            exec: None,
            expires_at: None,
        };
        let (decision, reason) = match answer {
            Answer::AllowOnce { reason } => (ReplyDecision::AllowOnce, reason),
            Answer::AllowKind { reason, expires_at } => {
                request.expires_at = expires_at;
                (ReplyDecision::AllowKind, reason)
            }
            Answer::Narrow { overrides, reason } => {
                request.policy_overrides = Some(overrides.into());
                (ReplyDecision::Narrow, reason)
            }
            Answer::Edit { program, reason } => {
                request.exec = Some(ProgramSpec::of(&program)?);
                (ReplyDecision::Edit, reason)
            }
            Answer::Deny { reason } => (ReplyDecision::Deny, reason),
        };
        Ok(Self {
            decision,
            reason: reason.map(Words),
            ..request
        })
    }
}

impl ProgramSpec {
    pub fn of(program: &Program) -> Result<Self> {
        let kind = match program {
            Program::Argv { .. } => Kind::Argv,
            Program::Shell { .. } => Kind::Shell,
            Program::Python { .. } => Kind::Python,
            Program::Javascript { .. } => Kind::Javascript,
        };
        let mut words = program.argv().into_iter();
        let command = text("the command", &words.next().unwrap_or_default())?;
        Ok(Self {
            kind,
            command: Plain(command),
            args: words.collect(),
        })
    }
}

fn file(input: Input) -> Result<InputFile> {
    let path = InputPath(text("the name of an input", &input.path)?);
    Ok(match String::from_utf8(input.content) {
        Ok(content) => InputFile::Text(TextFile { path, content }),
        Err(bytes) => InputFile::Bytes(BytesFile {
            path,
            content_base64: STANDARD.encode(bytes.as_bytes()),
        }),
    })
}

fn sandbox(placement: Placement) -> Option<SandboxRef> {
    match placement {
        Placement::Fresh => None,
        Placement::Scope(lifetime) => Some(SandboxRef::Lifetime(SandboxByLifetime { lifetime })),
        Placement::Named(name) => Some(match name.parse() {
            Ok(id) => SandboxRef::Id(SandboxById { id }),
            Err(_) => SandboxRef::Name(SandboxByName {
                name: SandboxName(name),
            }),
        }),
    }
}

impl From<PartialProfile> for PolicyOverrides {
    fn from(profile: PartialProfile) -> Self {
        let limits = profile.limits;
        let time = |it: Millis| Duration::Text(format!("{}ms", it.get()));
        let hosts = profile.allow_net.map(|list| {
            let list = list.into_iter();
            list.map(|it| Destination(it.to_string())).collect()
        });
        Self {
            timeout: limits.wall_ms.map(time),
            session_time: limits.session_ms.map(time),
            cpu_time: limits.cpu_ms.map(time),
            memory: limits.memory_bytes.map(|it| Size::Bytes(it.0)),
            pids: limits.pids.map(|it| it.0),
            cpus: limits.cpus_milli.map(|it| Processors::of_milli(it.0)),
            disk: limits.disk_bytes.map(|it| Size::Bytes(it.0)),
            files: limits.disk_files.map(|it| it.0),
            stdout: limits.stdout_bytes.map(|it| Size::Bytes(it.0)),
            stderr: limits.stderr_bytes.map(|it| Size::Bytes(it.0)),
            artifacts: limits.artifacts_bytes.map(|it| Size::Bytes(it.0)),
            open_files: limits.open_files.map(|it| it.0),
            gpus: limits.gpus.map(|it| it.0),
            tpus: limits.tpus.map(|it| it.0),
            egress_bytes: limits.egress_bytes.map(|it| Size::Bytes(it.0)),
            egress_connections: limits.egress_connections.map(|it| it.0),
            network_time: limits.network_ms.map(time),
            network: profile.network,
            allow_net: hosts,
            workspace: profile.workspace,
            env_allow: profile
                .env_allow
                .map(|list| list.into_iter().map(EnvPattern).collect()),
            tier: profile.tier,
            security: profile.security,
            limits_demand: profile.limits_demand,
            require: (!profile.require.is_empty()).then_some(profile.require),
            backend: profile.backend.map(|it| BackendText(it.to_string())),
            runtime: profile.runtime.map(RuntimeName),
            image: profile.image.map(ImageName),
            ..Self::default()
        }
    }
}

fn text(what: &str, bytes: &ByteString) -> Result<String> {
    String::from_utf8(bytes.as_bytes().to_vec()).map_err(|_| {
        let message = format!("{what} is not UTF-8, and a server takes only text here");
        Error::new(Code::InvalidArgument, Stage::Parse, message)
    })
}

/// To run it in an empty directory instead, without a word, would surprise.
fn no_directory() -> Error {
    let message = "a server does not see this directory";
    Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint("`--project ID` works on a workspace that the server keeps")
        .hint("`--scratch` works on an empty one that is gone afterwards; `--input FILE` sends files along")
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{
        Bytes, Correlation, Cpus, EnvVar, Guarantee, Lifetime, SandboxId, SpaceId, Tier,
    };
    use serde_json::json;

    fn bytes(text: &[u8]) -> ByteString {
        ByteString::new(text).unwrap()
    }

    fn call() -> Call {
        Call {
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
            ..Call::new(
                Correlation {
                    task_id: Some("t".to_owned()),
                    ..Correlation::of_space(SpaceId::local())
                },
                glovebox_model::Vouched::People,
                WorkspaceRef::Scratch,
                Program::Shell {
                    script: bytes(b"echo hi"),
                },
            )
        }
    }

    #[test]
    fn a_call_becomes_the_apis_body() {
        let mut call = call();
        call.overrides.limits.wall_ms = Some(Millis(1500));
        call.overrides.limits.memory_bytes = Some(Bytes::mib(1));
        call.overrides.limits.cpus_milli = Some(Cpus(500));
        call.overrides.tier = Some(Tier::High);
        let request = ExecRequest::of(call, Some(b"in".to_vec())).unwrap();
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
                "mounts": [], "secrets": [], "writes": "direct",
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
            serde_json::to_value(ExecRequest::of(call, None).unwrap()).unwrap()
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
        let error = ExecRequest::of(here, None).unwrap_err();
        let hints = error.hints.join(" ");
        assert!(
            hints.contains("--project") && hints.contains("--scratch"),
            "{hints}"
        );
        let request = ExecRequest::of(call(), Some(vec![0xff])).unwrap();
        let request = serde_json::to_value(request).unwrap();
        assert_eq!(request["exec"]["stdin_base64"], "/w==");
        let mut odd = call();
        odd.env[0].value = bytes(b"\xff");
        assert!(ExecRequest::of(odd, None).is_err());
    }
}
