//! What another policy would have said to what was asked before.

use glovebox_model::{
    BackendName, ByteString, Call, Code, Exec, ExecId, OnExceed, PartialProfile, Permit, Program,
    Reason, ReasonKind, Result, RiskSignal, Ruling, SkillCall, SkillRef, SpaceId, Status,
    WorkspaceRef,
};
use glovebox_policy::{Config, assess_with, resolve};
use glovebox_store::ExecFilter;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ruling::{Granted, decide_under, layers_of};
use crate::approvals::Approvals;
use crate::policy::ActivePolicy;

/// Read at once.
const PAGE: usize = 100;

/// An exec that would be decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Difference {
    pub exec_id: ExecId,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    pub command: String,
    pub said: Permit,
    pub would_say: Permit,
    pub reasons: Vec<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Replayed {
    /// How many records were looked at.
    pub execs: u64,
    /// Those that would be decided otherwise, newest first.
    pub differences: Vec<Difference>,
}

/// What a policy says, a refusal by its layers included.
pub(super) struct Said {
    pub(super) permit: Permit,
    pub(super) reasons: Vec<Reason>,
}

impl From<Ruling> for Said {
    fn from(ruling: Ruling) -> Self {
        Self {
            permit: ruling.permit,
            reasons: ruling.reasons,
        }
    }
}

impl Approvals {
    /// The newest `most` records of a space under another policy. Nothing is run or written.
    pub fn replay(&self, space: &SpaceId, policy: &Config, most: u64) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        let mut filter = ExecFilter {
            limit: PAGE,
            ..ExecFilter::default()
        };
        loop {
            let page = self.instance.store()?.list(space, &filter)?;
            for exec in page.items {
                if replayed.execs >= most {
                    return Ok(replayed);
                }
                replayed.execs += 1;
                replayed.differences.extend(self.difference(policy, &exec));
            }
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => return Ok(replayed),
            }
        }
    }

    fn difference(&self, policy: &Config, exec: &Exec) -> Option<Difference> {
        let said = match (&exec.ruling, exec.status) {
            (Some(ruling), _) => ruling.permit,
            // Policy asked, and nobody said yes.
            (None, Status::PolicyDenied) if was_asked(exec) => Permit::Ask,
            (None, Status::PolicyDenied) => Permit::Deny,
            (None, _) => Permit::Allow,
        };
        let found = exec.risk.signals.iter();
        let found = found.filter(|it| it.at.is_some()).cloned().collect();
        let would = self
            .instance
            .policy
            .say_under(policy, as_call(exec), exec.backend, found);
        (would.permit != said).then(|| Difference {
            exec_id: exec.exec_id.clone(),
            at: exec.started_at.or(exec.ended_at),
            command: command(exec),
            said,
            would_say: would.permit,
            reasons: would.reasons,
        })
    }
}

impl ActivePolicy {
    pub(super) fn say_under(
        &self,
        policy: &Config,
        call: Call,
        backend: Option<BackendName>,
        found: Vec<RiskSignal>,
    ) -> Said {
        let layers = layers_of(policy, &call);
        let resolved = policy
            .system(self.surface(), self.host())
            .and_then(|system| resolve(call, &system, &layers));
        match resolved {
            Ok(resolved) => {
                let assessed = assess_with(resolved, found);
                decide_under(policy, &assessed, Granted::default(), backend, None).into()
            }
            Err(error) => Said {
                permit: Permit::Deny,
                reasons: vec![Reason {
                    permit: Permit::Deny,
                    kind: ReasonKind::HardLimit,
                    text: error.message.clone(),
                    code: None,
                    part: None,
                    rule: error.rule.clone(),
                    rule_name: None,
                    way: error.hints.first().cloned(),
                }],
            },
        }
    }
}

fn was_asked(exec: &Exec) -> bool {
    let code = exec.error.as_ref().map(|error| error.code);
    matches!(
        code,
        Some(Code::ApprovalUnavailable | Code::Denied | Code::Expired)
    )
}

/// As far as a record tells what was asked; values of variables are not in it.
fn as_call(exec: &Exec) -> Call {
    Call {
        cwd: Some(exec.cwd.clone()),
        // What was given then by people is compared as an upgrade, not as a refusal.
        on_exceed: OnExceed::Ask,
        writes: exec.writes,
        session: exec.session,
        skill: skill(exec),
        overrides: exec.asked.clone(),
        ..Call::new(
            exec.ids.clone(),
            exec.vouched,
            WorkspaceRef::Project(exec.project_id.clone()),
            program(exec),
        )
    }
}

/// Its name, for the policy of tools. What its manifest allowed is not in the record.
fn skill(exec: &Exec) -> Option<SkillCall> {
    Some(SkillCall {
        skill: SkillRef {
            id: exec.skill_id.clone()?,
            version: exec.skill_version.clone(),
            digest: exec.skill_digest.clone().unwrap_or_default(),
        },
        input: String::new(),
        profile: PartialProfile::default(),
        // What it ran may have come with it; nobody knows, and the stricter word is kept to.
        stands_for: match program(exec) {
            Program::Shell { .. } => Some("run_command".to_owned()),
            Program::Python { .. } | Program::Javascript { .. } => Some("run_code".to_owned()),
            Program::Argv { .. } => None,
        },
    })
}

/// The inverse of `Program::argv`.
fn program(exec: &Exec) -> Program {
    let written: Vec<&[u8]> = std::iter::once(&exec.cmd)
        .chain(&exec.args)
        .map(ByteString::as_bytes)
        .collect();
    match (written.as_slice(), exec.args.last().cloned()) {
        ([b"bash", b"-lc", _], Some(script)) => Program::Shell { script },
        ([b"python3", b"-c", _], Some(code)) => Program::Python { code },
        ([b"node", b"-e", _], Some(code)) => Program::Javascript { code },
        _ => Program::Argv {
            command: exec.cmd.clone(),
            args: exec.args.clone(),
        },
    }
}

fn command(exec: &Exec) -> String {
    let words = std::iter::once(&exec.cmd).chain(&exec.args);
    let text = words.map(|it| it.display()).collect::<Vec<_>>().join(" ");
    text.chars().take(200).collect()
}
