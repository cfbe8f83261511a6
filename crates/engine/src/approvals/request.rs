//! What people are asked about one call, and how it ends when they do not say yes.

use glovebox_model::{
    Answer, Approval, ApprovalId, ApprovalState, Ask, BackendName, Bound, BoundTo, Code, Effect,
    Error, ExecId, GrantId, Millis, Party, Permit, Placement, Program, Result, Ruling, ScriptRef,
    Stage, StdinRef, Tier, WorkspaceRef, visible,
};
use glovebox_policy::{ApprovalSettings, Assessed, GrantKind};
use glovebox_store::NewGrant;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::binding::{Binding, changed};
use crate::path::{Plan, random};
use crate::policy::ActivePolicy;
use crate::skill;

/// A call that may not start before people have agreed.
#[derive(Debug)]
pub(crate) struct ApprovalRequest {
    pub(crate) assessed: Assessed,
    pub(crate) ruling: Ruling,
    /// Of all that an answer is about.
    pub(crate) digest: String,
    pub(crate) binding: Binding,
    /// What `allow_kind` would allow.
    pub(crate) kind: Option<GrantKind>,
    pub(crate) backend: BackendName,
    /// What the simulation showed that it would do for real.
    pub(crate) effects: Vec<Effect>,
}

impl ApprovalRequest {
    pub(crate) fn approval(
        &self,
        exec: &ExecId,
        by: &Party,
        stdin: Option<&[u8]>,
        settings: &ApprovalSettings,
    ) -> Result<Approval> {
        let call = self.assessed.call();
        let now = Timestamp::now();
        let tier = self.assessed.risk().tier;
        Ok(Approval {
            id: ApprovalId::from_random(random()?),
            space_id: call.ids.space_id.clone(),
            exec_id: exec.clone(),
            ids: call.ids.clone(),
            vouched: call.vouched,
            requested_by: by.name.clone(),
            requested_user: by.user_id.clone(),
            created_at: now,
            expires_at: later(now, settings.expire),
            state: ApprovalState::Pending,
            digest: self.digest.clone(),
            quorum: match tier {
                Tier::Critical => settings.quorum.max(1),
                Tier::Safe | Tier::Low | Tier::Medium | Tier::High => 1,
            },
            replies: Vec::new(),
            ask: self.ask(exec, stdin),
        })
    }

    fn ask(&self, exec: &ExecId, stdin: Option<&[u8]>) -> Ask {
        let (call, profile) = (self.assessed.call(), self.assessed.profile());
        // As it was sent, since an approver may edit it; each surface makes it visible.
        let argv = call.program.argv().iter().map(|it| it.display()).collect();
        Ask {
            description: visible(&self.description()),
            code_preview: Ask::preview(&visible(&source(&call.program))),
            argv,
            cwd: crate::path::working_directory(call.cwd.as_ref())
                .map_or_else(|_| String::new(), |cwd| visible(&cwd.display())),
            env_names: call.env.iter().map(|it| it.key.to_string()).collect(),
            workspace: match &call.workspace {
                WorkspaceRef::Adopted(path) => path.display().to_string(),
                WorkspaceRef::Project(id) => id.to_string(),
                WorkspaceRef::Scratch => "scratch".to_owned(),
            },
            backend: Some(self.backend),
            network: profile.network,
            tier: self.assessed.risk().tier,
            signals: self.assessed.risk().signals.clone(),
            reasons: self.ruling.reasons.clone(),
            upgrades: self.ruling.upgrades.clone(),
            justification: call.justification.as_deref().map(visible),
            scripts: self.binding.refs.clone(),
            bound: Some(self.bound()),
            changed: Vec::new(),
            stdin: stdin.map(|bytes| StdinRef {
                bytes: bytes.len() as u64,
                digest: sha256(bytes),
                preview: Ask::preview(&visible(&String::from_utf8_lossy(bytes))),
            }),
            inputs: skill::inputs(call, exec)
                .iter()
                .map(|input| ScriptRef {
                    path: input.path.one_line(),
                    digest: sha256(&input.content),
                })
                .collect(),
            preview: call.preview.clone(),
            effects: self.effects.clone(),
        }
    }

    fn bound(&self) -> Bound {
        let Binding { to, because, .. } = &self.binding;
        // Others share a sandbox that is kept, and only a layer keeps a workspace as it was.
        let is_held = self.backend == BackendName::Native
            && self.assessed.call().placement == Placement::Fresh;
        Bound {
            to: *to,
            held: is_held || *to == BoundTo::Nothing,
            because: visible(because),
        }
    }

    /// What `allow_kind` makes of it.
    pub(crate) fn new_grant(
        &self,
        approval: &Approval,
        expires_at: Option<Timestamp>,
        settings: &ApprovalSettings,
    ) -> Result<NewGrant> {
        let refuse = |message: String, hint: &str| {
            Err(Error::new(Code::Conflict, Stage::Obtain, message).hint(hint))
        };
        let Some(kind) = &self.kind else {
            let message = "this has no kind that could be allowed: it cannot be told what it would \
                           run, or it wants more than policy gives";
            return refuse(message.to_owned(), "allow it once (`allow_once`)");
        };
        if approval.ids.conversation_id.is_none() {
            let message = "a kind is allowed in a conversation, and this request names none";
            let hint = "allow it once (`allow_once`), or send `conversation_id` with the call";
            return refuse(message.to_owned(), hint);
        }
        let now = Timestamp::now();
        let latest = later(now, settings.grant_expire_max);
        if let Some(end) = expires_at
            && (end <= now || end > latest)
        {
            let most = settings.grant_expire_max;
            let message =
                format!("a kind is allowed for `{most}` at most, and until a time to come");
            return refuse(
                message,
                "say an earlier end; the operator sets the most as `approvals.grant_expire_max`",
            );
        }
        Ok(NewGrant {
            id: GrantId::from_random(random()?),
            kind: kind.kind.clone(),
            shown: kind.shown.clone(),
            expires_at: expires_at.unwrap_or_else(|| later(now, settings.grant_expire)),
        })
    }

    fn description(&self) -> String {
        let asks = self.ruling.reasons.iter();
        let why = asks
            .filter(|it| it.permit == Permit::Ask)
            .map(|it| &it.text);
        let why = why.map(String::as_str).collect::<Vec<_>>().join("; ");
        let call = self.assessed.call();
        let of = call.skill.as_ref();
        let of = of.map_or_else(String::new, |it| format!(" for skill `{}`", it.skill.id));
        let what = match &call.program {
            Program::Argv { command, .. } => format!("run `{}`", command.display()),
            Program::Shell { .. } => "run a shell script".to_owned(),
            Program::Python { .. } => "run Python code".to_owned(),
            Program::Javascript { .. } => "run JavaScript code".to_owned(),
        };
        match self.backend {
            BackendName::Host => format!("{what}{of} on the host, without a sandbox: {why}"),
            _ => format!("{what}{of}: {why}"),
        }
    }
}

impl ActivePolicy {
    /// What one person put in the place of something less dangerous may need more of them.
    pub(crate) fn check_quorum(&self, plan: &Plan, approval: &Approval) -> Result<()> {
        let needed = self.config().approvals().quorum;
        let is_critical = plan.assessed().risk().tier == Tier::Critical;
        if !is_critical || needed <= approval.quorum {
            return Ok(());
        }
        let message = format!("what it would be is `critical`, which takes {needed} people");
        Err(Error::new(Code::Conflict, Stage::Obtain, message)
            .hint("deny it, and let it be asked for as it should be"))
    }
}

pub(super) fn later(now: Timestamp, by: Millis) -> Timestamp {
    let by = SignedDuration::from_millis(i64::try_from(by.get()).unwrap_or(i64::MAX));
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The code itself, or the words of the command.
fn source(program: &Program) -> String {
    match program {
        Program::Shell { script } => script.display(),
        Program::Python { code } | Program::Javascript { code } => code.display(),
        Program::Argv { .. } => {
            let argv = program.argv();
            let words = argv.iter().map(|it| it.display());
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Of whatever people did not agree to: a model must not go on with what an earlier run printed.
const NO_OUTPUT: &str = "nothing was run, and there is no output of it";

/// What is refused for want of anybody who could be asked.
pub(crate) fn nobody(ruling: &Ruling) -> Error {
    let why = ruling.reasons.first().map_or("policy asks", |it| &it.text);
    let mut error = Error::new(
        Code::ApprovalUnavailable,
        Stage::Obtain,
        format!("a person has to approve this, and nobody can be asked: {why}; {NO_OUTPUT}"),
    )
    .hint("run it at a terminal, where you are asked")
    .hint("or send it to a server (`--server`), where an approver answers");
    error.rule = ruling.reasons.iter().find_map(|it| it.rule.clone());
    let ways = ruling.reasons.iter().filter_map(|it| it.way.clone());
    for way in ways.take(2) {
        error = error.hint(way);
    }
    if ruling.upgrades.is_empty() {
        error = error.hint("for development, `auto = true` under `[approvals]` answers by itself");
    }
    error
}

pub(crate) fn denied(approval: &Approval) -> Error {
    let no = approval.replies.iter().rev();
    let no = no
        .filter_map(|reply| match &reply.answer {
            Answer::Deny { reason } => Some((&reply.by, reason)),
            _ => None,
        })
        .next();
    let message = match no {
        Some((by, Some(reason))) => format!("`{by}` said no: {reason}; {NO_OUTPUT}"),
        Some((by, None)) => format!("`{by}` said no; {NO_OUTPUT}"),
        None => format!("it was not approved; {NO_OUTPUT}"),
    };
    Error::new(Code::Denied, Stage::Obtain, message)
        .hint("do something else, or ask again with a `justification`")
}

pub(crate) fn expired(approval: &Approval) -> Error {
    Error::new(
        Code::Expired,
        Stage::Obtain,
        format!(
            "nobody approved it in time (`{}` expired); {NO_OUTPUT}",
            approval.id
        ),
    )
    .hint("send it again when somebody is there to answer")
}

/// What was approved is not what would be run now.
pub(crate) fn gone_by(approval: &Approval, now: &[ScriptRef]) -> Error {
    match approval.ask.scripts == now {
        true => changed(&[], &[]),
        false => changed(&approval.ask.scripts, now),
    }
}

/// What was approved under another policy.
pub(crate) fn outdated() -> Error {
    let message = format!("the policy has changed since people were asked; {NO_OUTPUT}");
    Error::new(Code::Denied, Stage::Obtain, message)
        .hint("send it again: another policy may ask something else")
}

/// Too many wait for people already. `who` has them: "`robot` has".
pub(crate) fn put_off(who: &str) -> Error {
    let mut error = Error::new(
        Code::RateLimited,
        Stage::Obtain,
        format!("{who} as many execs waiting for an approval already as may wait"),
    )
    .hint("answer or cancel some: `glovebox approval ls`");
    error.retry.after_ms = Some(30_000);
    error
}
