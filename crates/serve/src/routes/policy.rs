//! What would be decided, and why.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_model::{Capped, Code, Risk, RuleRef};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::ReadsPolicy;
use crate::body::Json;
use crate::failure::Answer;
use crate::wire::ExecRequest;

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
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
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
    let order = value.order(&caller)?;
    // Refused before policy is asked: that is an explanation too.
    if let Some(error) = order.objection {
        let explanation = glovebox_policy::Explanation::of(Err(&error));
        return Ok(Answered(explanation.into()));
    }
    let explained = app.ask("explain", move |dispatcher| {
        Ok(dispatcher.explain(order.call))
    });
    Ok(Answered(explained.await?.into()))
}
