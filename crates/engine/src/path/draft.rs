//! The record of an exec before anything is known about its end.

use glovebox_model::{
    ApprovalId, ByteString, Call, Code, Error, Exec, ExecId, Isolation, PartialProfile, Program,
    ProjectId, Result, Risk, SandboxId, Stage, Status, Usage,
};
use glovebox_policy::Assessed;

use super::obtain::Approved;
use crate::approvals::ApprovalRequest;

const WORK: &[u8] = b"/workspace/work";
const ROOT: &[u8] = b"/workspace";

/// What is known from the call alone.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) exec_id: ExecId,
    pub(crate) project_id: ProjectId,
    pub(crate) cwd: ByteString,
    program: Program,
    call: CallFacts,
}

#[derive(Debug, Clone)]
struct CallFacts {
    client_id: Option<glovebox_model::ClientId>,
    mode: glovebox_model::Mode,
    writes: glovebox_model::Writes,
    preview: Option<glovebox_model::Preview>,
    skill: Option<glovebox_model::SkillRef>,
    session: Option<glovebox_model::SessionTerms>,
    env_keys: Vec<glovebox_model::EnvKey>,
    image: Option<String>,
    /// Without values of variables.
    asked: PartialProfile,
    ids: glovebox_model::Correlation,
    vouched: glovebox_model::Vouched,
}

impl Draft {
    pub(crate) fn new(call: &Call, project_id: ProjectId) -> Result<Self> {
        Ok(Self {
            exec_id: ExecId::from_random(random()?),
            project_id,
            cwd: working_directory(call.cwd.as_ref())?,
            program: call.program.clone(),
            call: CallFacts {
                client_id: call.client_id.clone(),
                mode: call.mode,
                writes: crate::workspaces::aside(call),
                preview: call.preview.clone(),
                skill: call.skill.as_ref().map(|it| it.skill.clone()),
                session: call.session,
                env_keys: call
                    .env
                    .iter()
                    .map(|variable| variable.key.clone())
                    .collect(),
                image: call.overrides.image.clone(),
                asked: PartialProfile {
                    env: std::collections::BTreeMap::new(),
                    ..call.overrides.clone()
                },
                ids: call.ids.clone(),
                vouched: call.vouched,
            },
        })
    }

    /// As it is when people have put another program into its place.
    pub(crate) fn of(&self, call: &Call) -> Self {
        Self {
            program: call.program.clone(),
            ..self.clone()
        }
    }

    /// Of a call that was taken on before a restart, under the id it had.
    pub(crate) fn again(call: &Call, project_id: ProjectId, exec_id: ExecId) -> Result<Self> {
        let mut draft = Self::new(call, project_id)?;
        draft.exec_id = exec_id;
        Ok(draft)
    }

    pub(crate) fn argv(&self) -> Vec<ByteString> {
        self.program.argv()
    }

    /// A record that says nothing about a run yet.
    pub(crate) fn record(&self, status: Status) -> Exec {
        let mut argv = self.argv().into_iter();
        Exec {
            exec_id: self.exec_id.clone(),
            client_id: self.call.client_id.clone(),
            project_id: self.project_id.clone(),
            mode: self.call.mode,
            skill_id: self.call.skill.as_ref().map(|it| it.id.clone()),
            skill_version: self.call.skill.as_ref().and_then(|it| it.version.clone()),
            skill_digest: self.call.skill.as_ref().map(|it| it.digest.clone()),
            session: self.call.session,
            cmd: argv.next().unwrap_or_default(),
            args: argv.collect(),
            cwd: self.cwd.clone(),
            env_keys: self.call.env_keys.clone(),
            image: self.call.image.clone(),
            sandbox_id: None,
            status,
            queue_position: None,
            abandoned: false,
            exit_code: None,
            signal: None,
            timed_out: false,
            killed: false,
            limit_hit: None,
            started_at: None,
            ended_at: None,
            duration_ms: None,
            stdout: String::new(),
            stderr: String::new(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            stdout_truncated: false,
            stderr_truncated: false,
            stdout_path: None,
            stderr_path: None,
            artifacts_dir: None,
            artifacts: Vec::new(),
            artifacts_dropped: 0,
            writes: self.call.writes,
            changes: None,
            snapshot_before: None,
            asked: self.call.asked.clone(),
            ruling: None,
            approval_id: None,
            consent: None,
            backend: None,
            runtime: None,
            notes: Vec::new(),
            isolation: Isolation::default(),
            policy_snapshot: None,
            capped: Vec::new(),
            risk: Risk::default(),
            usage: Usage::default(),
            traffic: None,
            secrets: Vec::new(),
            effects: Vec::new(),
            effect_count: None,
            gates: Vec::new(),
            preview: self.call.preview.clone(),
            verdict: None,
            error: None,
            receipt: None,
            ids: self.call.ids.clone(),
            vouched: self.call.vouched,
        }
    }

    /// The record of an exec that may run.
    pub(crate) fn planned(&self, approved: &Approved, sandbox_id: SandboxId) -> Exec {
        Exec {
            sandbox_id: Some(sandbox_id),
            ruling: Some(approved.ruling().clone()),
            consent: Some(approved.consent().clone()),
            ..self.assessed(approved.assessed(), Status::Running)
        }
    }

    /// The record of an exec that waits for people.
    pub(crate) fn awaiting(
        &self,
        approval_request: &ApprovalRequest,
        approval: &ApprovalId,
    ) -> Exec {
        Exec {
            ruling: Some(approval_request.ruling.clone()),
            approval_id: Some(approval.clone()),
            backend: Some(approval_request.backend),
            ..self.assessed(&approval_request.assessed, Status::AwaitingApproval)
        }
    }

    fn assessed(&self, assessed: &Assessed, status: Status) -> Exec {
        Exec {
            policy_snapshot: Some(assessed.profile().clone()),
            capped: assessed.capped().to_vec(),
            risk: assessed.risk().clone(),
            ..self.record(status)
        }
    }
}

pub(crate) fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(Code::Internal, Stage::Open, "no random numbers").caused_by(error)
    })?;
    Ok(bytes)
}

/// Below `/workspace` by its name; where links inside lead, the sandbox itself confines.
pub(crate) fn working_directory(asked: Option<&ByteString>) -> Result<ByteString> {
    let Some(asked) = asked else {
        return Ok(ByteString::new(WORK).unwrap_or_default());
    };
    let outside = || {
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!(
                "working directory `{}` is outside the workspace",
                asked.display()
            ),
        )
        .hint("`--cwd` is relative to the workspace, or absolute below `/workspace`")
    };
    let bytes = asked.as_bytes();
    let mut parts: Vec<&[u8]> = match bytes.first() {
        None => return Err(outside()),
        Some(b'/') => Vec::new(),
        Some(_) => vec![b"workspace", b"work"],
    };
    for part in bytes.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop().ok_or_else(outside)?;
            }
            name => parts.push(name),
        }
    }
    if parts.first() != Some(&&ROOT[1..]) {
        return Err(outside());
    }
    let mut path = vec![b'/'];
    path.extend_from_slice(&parts.join(&b'/'));
    ByteString::new(path).ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_is_inside_the_workspace() {
        let cwd = |text: &str| {
            let asked = ByteString::try_from(text).unwrap();
            working_directory(Some(&asked)).map(|it| it.display())
        };
        assert_eq!(
            working_directory(None).unwrap().display(),
            "/workspace/work"
        );
        assert_eq!(cwd("sub/dir").unwrap(), "/workspace/work/sub/dir");
        assert_eq!(cwd(".").unwrap(), "/workspace/work");
        assert_eq!(cwd("a/../b").unwrap(), "/workspace/work/b");
        assert_eq!(cwd("../inputs").unwrap(), "/workspace/inputs");
        assert_eq!(cwd("/workspace/artifacts").unwrap(), "/workspace/artifacts");
        for outside in [
            "",
            "/",
            "/etc",
            "../..",
            "/workspace/..",
            "/workspacex",
            "../../../etc",
        ] {
            assert!(cwd(outside).is_err(), "{outside}");
        }
    }
}
