//! What policy says of a call at this moment, and whether what was agreed covers it.

use std::borrow::Cow;

use glovebox_model::{
    Agreed, BackendName, Call, Code, Consent, Error, Mode, PartialProfile, Permit, Program,
    ReasonKind, Result, Ruling, Stage, Tier,
};
use glovebox_policy::{
    Assessed, Config, DecisionContext, GrantKind, GrantedSecret, Layer, Scripts, assess_with,
    decide, decide_with, kind_of, resolve,
};
use glovebox_risk::Reading;
use glovebox_workspace::{Dir, Project};
use jiff::Timestamp;

use super::binding::{Binding, is_certain};
use super::request::{ApprovalRequest, later};
use super::script::{Script, Shelves, scripts};
use crate::approvals::Approvals;
use crate::effects::first;
use crate::engine::Engine;
use crate::path::Plan;
use crate::policy::ActivePolicy;
use crate::secrets::SecretAccess;
use crate::secrets::ensure_deliverable;
use crate::stage;

/// What people have said to this very call before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PriorApproval<'a> {
    Nothing,
    /// They are being asked: neither a grant nor automatic approval answers for them.
    Asked,
    /// They agreed, and this is written down; it is not asked again.
    Consent(&'a Consent),
}

/// What came of it.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, and nearly always the large one"
)]
pub(crate) enum Ruled {
    Agreed {
        assessed: Assessed,
        ruling: Ruling,
        consent: Consent,
    },
    Asks(ApprovalRequest),
}

impl ActivePolicy {
    /// A call with its policy, its risk and the scripts that it would run. `narrowed` is what
    /// people took away from it.
    pub(crate) fn assess_call(
        &self,
        call: Call,
        narrowed: Option<&PartialProfile>,
        work: Option<&Dir>,
    ) -> Result<(Assessed, Vec<Script>)> {
        let shelves = Shelves {
            work,
            inputs: &call.inputs,
        };
        let found = crate::path::working_directory(call.cwd.as_ref()).map_or_else(
            |_| Vec::new(),
            |cwd| scripts(&call.program, &cwd.display(), shelves),
        );
        let signals = found.iter().flat_map(Script::signals).collect();
        let config = self.config();
        let system = config.system(self.surface(), self.host())?;
        let layers = layers_of(config, &call);
        let mut resolved = stage::span("resolve").in_scope(|| resolve(call, &system, &layers))?;
        if let Some(most) = narrowed {
            resolved = resolved.narrowed(most);
        }
        stage::reached("resolve");
        let assessed = stage::span("assess").in_scope(|| assess_with(resolved, signals));
        stage::reached("assess");
        Ok((assessed, found))
    }

    /// A kind says nothing about what is in the files that it runs, unless their path does, as a
    /// skill's; and one person's word is not that of several.
    fn grantable(
        &self,
        assessed: &Assessed,
        scripts: &[Script],
        backend: BackendName,
        project: &Project,
    ) -> Option<GrantKind> {
        let takes_several = self.config().approvals().quorum > 1;
        let is_critical = assessed.risk().tier == Tier::Critical;
        let skill = assessed.call().skill.as_ref().map(|it| &it.skill);
        let is_told = |it: &Script| skill.is_some_and(|skill| it.is_of(skill));
        if !scripts.iter().all(is_told) || (is_critical && takes_several) {
            return None;
        }
        if skill.is_none() && !is_certain(assessed.call(), project) {
            return None;
        }
        kind_of(assessed, Some(backend))
    }
}

impl Approvals {
    /// Allowed, to be asked about, or an error that says which rule stands against it.
    pub(crate) fn rule_on(
        &self,
        assessed: Assessed,
        scripts: Vec<Script>,
        backend: BackendName,
        image: Option<&str>,
        project: &Project,
        given: PriorApproval<'_>,
    ) -> Result<Ruled> {
        let secrets = self.secrets.granted_secrets(assessed.call())?;
        ensure_deliverable(assessed.call(), assessed.profile(), backend)?;
        let granted = Granted {
            kinds: &[],
            secrets: &secrets,
        };
        let (config, on) = (self.instance.config(), Some(backend));
        let ruling = decide_under(config, &assessed, granted, on, Some(&scripts));
        if matches!(given, PriorApproval::Nothing) {
            self.shadow(&assessed, backend, &ruling);
        }
        match (ruling.permit, given) {
            (Permit::Deny, _) => Err(refused(&ruling)),
            (Permit::Allow, PriorApproval::Nothing | PriorApproval::Asked) => Ok(Ruled::Agreed {
                assessed,
                ruling,
                consent: Consent::of_policy(),
            }),
            (_, PriorApproval::Consent(consent)) => Ok(Ruled::Agreed {
                assessed,
                ruling,
                consent: consent.clone(),
            }),
            (Permit::Ask, PriorApproval::Nothing) => {
                self.without_asking(assessed, ruling, scripts, backend, image, project)
            }
            (Permit::Ask, PriorApproval::Asked) => {
                self.approval_request(assessed, ruling, scripts, backend, image, project)
            }
        }
    }

    /// A grant of this conversation, or approvals that are automatic; else a request to people.
    fn without_asking(
        &self,
        assessed: Assessed,
        ruling: Ruling,
        scripts: Vec<Script>,
        backend: BackendName,
        image: Option<&str>,
        project: &Project,
    ) -> Result<Ruled> {
        let kind = self
            .instance
            .policy
            .grantable(&assessed, &scripts, backend, project);
        let ids = &assessed.call().ids;
        if let (Some(kind), Some(conversation)) = (&kind, &ids.conversation_id) {
            let mut grants = self
                .instance
                .store()?
                .grants_for(&ids.space_id, conversation)?;
            // What policy allows now, not what it allowed when they were made.
            let most = self.instance.config().approvals().grant_expire_max;
            grants.retain(|it| later(it.created_at, most) > Timestamp::now());
            let kinds: Vec<GrantKind> = grants.iter().map(granted).collect();
            let again = decide_under(
                self.instance.config(),
                &assessed,
                // No kind covers a secret.
                Granted {
                    kinds: &kinds,
                    secrets: &[],
                },
                Some(backend),
                Some(&scripts),
            );
            let grant = grants.iter().find(|it| it.kind == kind.kind);
            if let (Permit::Allow, Some(grant)) = (again.permit, grant) {
                // Counted, and still in force: it may have been revoked since it was listed.
                let grant = self.instance.store()?.use_grant(&grant.id)?;
                return Ok(Ruled::Agreed {
                    assessed,
                    ruling: again,
                    consent: Consent {
                        agreed: Agreed::Grant,
                        approval_id: Some(grant.approval_id),
                        grant_id: Some(grant.id),
                        by: vec![grant.granted_by],
                    },
                });
            }
        }
        if self.instance.config().approvals().auto && may_be_automatic(&ruling, backend) {
            return Ok(Ruled::Agreed {
                assessed,
                ruling,
                consent: Consent {
                    agreed: Agreed::Automatic,
                    approval_id: None,
                    grant_id: None,
                    by: Vec::new(),
                },
            });
        }
        self.approval_request(assessed, ruling, scripts, backend, image, project)
    }

    fn approval_request(
        &self,
        assessed: Assessed,
        ruling: Ruling,
        scripts: Vec<Script>,
        backend: BackendName,
        image: Option<&str>,
        project: &Project,
    ) -> Result<Ruled> {
        let kind = self
            .instance
            .policy
            .grantable(&assessed, &scripts, backend, project);
        let binding = Binding::of(assessed.call(), &scripts, project)?;
        let text = binding
            .refs
            .iter()
            .map(|it| format!("{} {}", it.digest, it.path));
        let bound = text.collect::<Vec<_>>().join("\n");
        let digest = assessed.digest(
            &self.approval_key()?,
            &glovebox_policy::Binding {
                policy: self.instance.config().digest(),
                backend: Some(backend),
                image,
                script: Some(bound.as_str()).filter(|it| !it.is_empty()),
            },
        )?;
        let effects = self
            .simulations
            .previewed(assessed.call())?
            .unwrap_or_default();
        Ok(Ruled::Asks(ApprovalRequest {
            effects: first(&effects),
            assessed,
            ruling,
            digest,
            binding,
            kind,
            backend,
        }))
    }

    /// What another policy, which is only tried, would have said: written down where it differs.
    fn shadow(&self, assessed: &Assessed, backend: BackendName, ruling: &Ruling) {
        let Some(shadow) = self.instance.policy.shadow_config() else {
            return;
        };
        let found = assessed.risk().signals.iter();
        let found = found.filter(|it| it.at.is_some()).cloned().collect();
        let said =
            self.instance
                .policy
                .say_under(shadow, assessed.call().clone(), Some(backend), found);
        if said.permit == ruling.permit {
            return;
        }
        let details = serde_json::json!({
            "said": ruling.permit,
            "would_say": said.permit,
            "reasons": said.reasons,
            "command": assessed.call().program.argv().first().map(|it| it.display()),
        });
        let ids = &assessed.call().ids;
        let noted = self
            .instance
            .store()
            .and_then(|store| store.note(&ids.space_id, "policy.shadow", None, details));
        if let Err(error) = noted {
            tracing::warn!(%error, "what the shadow policy says could not be written");
        }
    }
}

impl Engine {
    /// What people would be asked about a call now, whatever was granted since: an answer holds for
    /// what is the same. `None` when policy lets it pass.
    pub(crate) fn approval_request_again(
        &self,
        call: &Call,
        project: &Project,
    ) -> Result<Option<ApprovalRequest>> {
        let (assessed, scripts) =
            self.instance
                .policy
                .assess_call(call.clone(), None, project.work())?;
        let chosen = self.sandboxes.choose(assessed.call(), assessed.profile())?;
        let image = chosen.image.as_deref();
        match self.approvals.rule_on(
            assessed,
            scripts,
            chosen.backend,
            image,
            project,
            PriorApproval::Asked,
        )? {
            Ruled::Asks(approval_request) => Ok(Some(approval_request)),
            Ruled::Agreed { .. } => Ok(None),
        }
    }
}

fn granted(grant: &glovebox_model::Grant) -> GrantKind {
    GrantKind {
        kind: grant.kind.clone(),
        shown: grant.shown.clone(),
    }
}

/// What somebody has agreed to before, for more than one exec.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Granted<'a> {
    pub(super) kinds: &'a [GrantKind],
    pub(super) secrets: &'a [GrantedSecret],
}

impl SecretAccess {
    /// Secrets that the conversation or the agent of a call may have without asking.
    fn granted_secrets(&self, call: &Call) -> Result<Vec<GrantedSecret>> {
        if call.secrets.is_empty() {
            return Ok(Vec::new());
        }
        let secrets = self.open()?;
        // What is not there, or may not be given so, is not worth anybody's attention.
        let who = (&call.ids, call.vouched);
        secrets.look_up(who, &call.secrets)?;
        let grants = secrets.granted(&call.ids, call.vouched)?.into_iter();
        let granted = grants.map(|grant| GrantedSecret {
            name: grant.secret,
            deliveries: grant.deliveries,
        });
        Ok(granted.collect())
    }
}

impl Engine {
    /// A grant may have ended since the plan was made: what nobody was asked about is decided again.
    pub(crate) fn ensure_still_given(&self, plan: &Plan) -> Result<()> {
        let (assessed, consent) = (plan.assessed(), plan.record().consent.as_ref());
        if assessed.call().secrets.is_empty()
            || consent.is_some_and(|it| it.agreed == Agreed::People)
        {
            return Ok(());
        }
        let secrets = self.secrets.granted_secrets(assessed.call())?;
        let granted = Granted {
            kinds: &[],
            secrets: &secrets,
        };
        let backend = Some(plan.chosen().backend);
        let ruling = decide_under(self.instance.config(), assessed, granted, backend, None);
        match ruling.permit {
            Permit::Allow => Ok(()),
            Permit::Ask | Permit::Deny => Err(Error::new(
                Code::Denied,
                Stage::Admit,
                "a secret that it was to get was taken back before it started",
            )
            .hint("ask for it again, or have it granted: `glovebox secret grant`")),
        }
    }
}

/// By every name that the tool has: the strictest word holds.
pub(super) fn decide_under(
    config: &Config,
    assessed: &Assessed,
    granted: Granted<'_>,
    backend: Option<BackendName>,
    scripts: Option<&[Script]>,
) -> Ruling {
    let call = assessed.call();
    let decided = |tool: &str| decide_as(tool, config, assessed, granted, backend, scripts);
    let first = decided(&tool_of(call));
    let other = call.skill.as_ref().and_then(|it| it.stands_for.as_deref());
    match other.map(decided) {
        Some(other) if other.permit > first.permit => other,
        Some(_) | None => first,
    }
}

fn decide_as(
    tool: &str,
    config: &Config,
    assessed: &Assessed,
    granted: Granted<'_>,
    backend: Option<BackendName>,
    scripts: Option<&[Script]>,
) -> Ruling {
    let call = assessed.call();
    let (rules, tools) = (config.rules_for(&call.ids), config.tools_for(&call.ids));
    let standing = DecisionContext {
        rules: &rules,
        tool,
        tools: &tools,
        grants: granted.kinds,
        approvals: config.approvals(),
        simulate: call.mode == Mode::Simulate,
        backend,
        secrets: granted.secrets,
        network: config.network(),
    };
    // Of a record nobody knows what its scripts held.
    let Some(scripts) = scripts else {
        return decide(assessed, &standing);
    };
    if rules.is_empty() {
        return decide(assessed, &standing);
    }
    let read: Vec<Option<Reading>> = scripts.iter().flat_map(Script::readings).collect();
    let unread = read.iter().any(Option::is_none);
    let readings: Vec<Reading> = read.into_iter().flatten().collect();
    let scripts = Scripts {
        readings: &readings,
        unread,
    };
    decide_with(assessed, &standing, scripts)
}

impl ActivePolicy {
    /// What policy says by itself, whoever was asked before.
    pub(crate) fn say(&self, assessed: &Assessed) -> Ruling {
        decide_under(self.config(), assessed, Granted::default(), None, None)
    }
}

/// The tool that runs such a program.
/// A skill is a tool of its own, whatever its program is.
pub(crate) fn tool_of(call: &Call) -> Cow<'static, str> {
    if let Some(called) = &call.skill {
        return called.skill.tool().into();
    }
    match &call.program {
        Program::Argv { .. } | Program::Shell { .. } => "run_command".into(),
        Program::Python { .. } | Program::Javascript { .. } => "run_code".into(),
    }
}

/// The tool's name, and what people call it for what it is given.
pub(crate) fn tools_of(call: &Call) -> Vec<Cow<'static, str>> {
    let also = match (&call.skill, &call.program) {
        (Some(_), _) => None,
        (None, Program::Argv { .. } | Program::Shell { .. }) => Some("shell"),
        (None, Program::Python { .. }) => Some("python"),
        (None, Program::Javascript { .. }) => Some("javascript"),
    };
    let also = also.map(Cow::Borrowed);
    std::iter::once(tool_of(call)).chain(also).collect()
}

/// What the configuration says about whoever calls, and what the skill that is called allows.
pub(crate) fn layers_of(config: &Config, call: &Call) -> Vec<Layer> {
    let mut layers = config.layers_for(&call.ids);
    if let Some(called) = &call.skill {
        layers.push(Layer::skill(&called.skill.id, called.profile.clone()));
    }
    layers
}

/// Development is no reason to give more than policy does, or to leave the sandbox.
fn may_be_automatic(ruling: &Ruling, backend: BackendName) -> bool {
    let upgrade = |it: &glovebox_model::Reason| it.kind == ReasonKind::Upgrade;
    backend != BackendName::Host
        && ruling.upgrades.is_empty()
        && !ruling.reasons.iter().any(upgrade)
}

pub(crate) fn refused(ruling: &Ruling) -> Error {
    let denies = || ruling.reasons.iter().filter(|it| it.permit == Permit::Deny);
    let message = match denies().next() {
        Some(reason) => match &reason.part {
            Some(part) => format!("policy denies `{part}`: {}", reason.text),
            None => format!("policy denies it: {}", reason.text),
        },
        None => "policy denies it".to_owned(),
    };
    let mut error = Error::new(Code::PolicyDenied, Stage::Obtain, message);
    error.rule = denies().find_map(|it| it.rule.clone());
    for way in denies().filter_map(|it| it.way.clone()) {
        error = error.hint(way);
    }
    error.hint("`glovebox policy explain` shows every reason")
}
