//! What would be decided, and why.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_model::{Capped, Code, Permit, Reason, Risk, RuleRef, Upgrade};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::ReadsPolicy;
use crate::body::Json;
use crate::failure::Answer;
use crate::order::Order;
use glovebox_api::ExecRequest;

/// What policy would decide about an exec.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Explanation {
    decision: Decision,
    /// Why it is denied.
    code: Option<Code>,
    reason: Option<String>,
    /// Where the rule stands.
    rule: Option<RuleRef>,
    /// What would change the decision.
    hints: Vec<String>,
    risk: Option<Risk>,
    fields: Vec<Decided>,
    capped: Vec<Capped>,
    /// What the rules and the approval mode say, where the call fits the layers at all.
    permit: Option<Permit>,
    reasons: Vec<Reason>,
    upgrades: Vec<Upgrade>,
    /// The workspace is kept as it is before this runs.
    snapshot_before: bool,
    tools: Option<Tools>,
    elevated: Option<Elevated>,
    /// Each thing that would change the decision, the nearest first.
    fix_it: Vec<String>,
    /// The rules that deny paths, and who denies them.
    path_rules: Vec<PathRule>,
}

/// A rule that denies paths.
#[derive(Debug, Serialize, ToSchema)]
struct PathRule {
    paths: Vec<String>,
    name: Option<String>,
    rule: RuleRef,
    held_by: HeldBy,
}

/// Who denies the paths of a rule.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HeldBy {
    /// Whatever the program is.
    Sandbox,
    /// It names a command or a host as well: only what the text of a command tells is denied.
    Text,
    /// Something else of it does not hold for this call.
    Nothing,
}

impl From<glovebox_policy::PathRule> for PathRule {
    fn from(it: glovebox_policy::PathRule) -> Self {
        Self {
            paths: it.paths,
            name: it.name,
            rule: it.rule,
            held_by: match it.held_by {
                glovebox_policy::HeldBy::Sandbox => HeldBy::Sandbox,
                glovebox_policy::HeldBy::Text => HeldBy::Text,
                glovebox_policy::HeldBy::Nothing => HeldBy::Nothing,
            },
        }
    }
}

/// Which tools exist, and the keys of the configuration that say so.
#[derive(Debug, Serialize, ToSchema)]
struct Tools {
    allow: Vec<String>,
    deny: Vec<String>,
    sources: Vec<ListSource>,
    /// About the tool through which the call came.
    answer: ToolAnswer,
}

#[derive(Debug, Serialize, ToSchema)]
struct ListSource {
    source: ToolSource,
    key: String,
}

/// Where a list of tools was written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ToolSource {
    Default,
    Global,
    Agent,
}

/// Whether a tool exists, and what says so.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToolAnswer {
    tool: String,
    allowed: bool,
    source: ToolSource,
    key: String,
    /// The entry of the list that decides, if one does.
    entry: Option<String>,
    rule: Option<RuleRef>,
    /// What would change it.
    fix: String,
}

impl From<glovebox_policy::ToolSource> for ToolSource {
    fn from(source: glovebox_policy::ToolSource) -> Self {
        match source {
            glovebox_policy::ToolSource::Default => Self::Default,
            glovebox_policy::ToolSource::Global => Self::Global,
            glovebox_policy::ToolSource::Agent => Self::Agent,
        }
    }
}

impl From<glovebox_policy::ToolsExplained> for Tools {
    fn from(it: glovebox_policy::ToolsExplained) -> Self {
        let source = |it: glovebox_policy::ListSource| ListSource {
            source: it.source.into(),
            key: it.key,
        };
        Self {
            allow: it.allow,
            deny: it.deny,
            sources: it.sources.into_iter().map(source).collect(),
            answer: it.answer.into(),
        }
    }
}

impl From<glovebox_policy::ToolAnswer> for ToolAnswer {
    fn from(it: glovebox_policy::ToolAnswer) -> Self {
        Self {
            tool: it.tool,
            allowed: it.allowed,
            source: it.source.into(),
            key: it.key,
            entry: it.entry,
            rule: it.rule,
            fix: it.fix,
        }
    }
}

/// Whether running without a sandbox may be asked for.
#[derive(Debug, Serialize, ToSchema)]
struct Elevated {
    enabled: bool,
    failures: Vec<Gate>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Gate {
    gate: String,
    key: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
    /// A person decides.
    Ask,
    Deny,
}

/// One field, who decided it, and what would change it.
#[derive(Debug, Serialize, ToSchema)]
struct Decided {
    field: String,
    /// Where the field stands in a record's `policy_snapshot`.
    path: String,
    value: String,
    layer: String,
    subject: Option<String>,
    change: String,
}

impl From<glovebox_policy::Explanation> for Explanation {
    fn from(explanation: glovebox_policy::Explanation) -> Self {
        Self {
            decision: match explanation.decision {
                glovebox_policy::Decision::Allow => Decision::Allow,
                glovebox_policy::Decision::Ask => Decision::Ask,
                glovebox_policy::Decision::Deny => Decision::Deny,
            },
            code: explanation.code,
            reason: explanation.reason,
            rule: explanation.rule,
            hints: explanation.hints,
            risk: explanation.risk,
            fields: explanation
                .fields
                .into_iter()
                .map(|it| Decided {
                    field: it.field,
                    path: it.path,
                    value: it.value,
                    layer: it.by.layer.to_string(),
                    subject: it.by.subject,
                    change: it.change,
                })
                .collect(),
            capped: explanation.capped,
            permit: explanation.permit,
            reasons: explanation.reasons,
            upgrades: explanation.upgrades,
            snapshot_before: explanation.snapshot_before,
            tools: explanation.tools.map(Tools::from),
            elevated: explanation.elevated.map(|it| Elevated {
                enabled: it.enabled,
                failures: it
                    .failures
                    .into_iter()
                    .map(|it| Gate {
                        gate: it.gate,
                        key: it.key,
                    })
                    .collect(),
            }),
            fix_it: explanation.fix_it,
            path_rules: explanation
                .path_rules
                .into_iter()
                .map(PathRule::from)
                .collect(),
        }
    }
}

/// Explain policy
///
/// The body is that of `POST /v1/execs`; nothing is run or recorded.
#[utoipa::path(
    post, path = "/v1/policy/explain", operation_id = "explain_policy", tag = "policy",
    request_body = ExecRequest,
    responses((status = 200, description = "The decision.", body = Explanation)),
)]
pub(super) async fn explain(
    State(app): State<App>,
    ReadsPolicy(caller): ReadsPolicy,
    Json { value, .. }: Json<ExecRequest>,
) -> Answer<Answered<Explanation>> {
    let order = Order::of_exec(value, &caller)?;
    // Refused before policy is asked: that is an explanation too.
    if let Some(error) = order.objection {
        let explanation = glovebox_policy::Explanation::of(Err(&error));
        return Ok(Answered(explanation.into()));
    }
    let eyes = caller.eyes();
    let explained = app.ask("explain", move |dispatcher| {
        Ok(dispatcher.explain(&eyes, order.call))
    });
    Ok(Answered(explained.await?.into()))
}
