//! What people are asked, and what they answer.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_engine::Seen;
use glovebox_model::{
    Answer as Said, Approval, ApprovalId, ApprovalState, Code, ExecId, Page, Via,
};
use glovebox_store::ApprovalFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use crate::app::App;
use crate::auth::{Caller, ReadsApprovals, WritesApprovals};
use crate::body::{Json, Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};
use glovebox_api::{Id, ReasonRequest, ReplyRequest};

/// Approvals in a page if nothing is said.
const LIMIT: usize = 50;
/// Those that are read at once: one may hold a program of many megabytes.
const AT_ONCE: usize = 8;
/// For one page. More are looked at only where others' are left out, which may be many.
const LOOKS: usize = 200;
/// A page that has passed this is full, whatever its limit.
const PAGE_BYTES: usize = 4 << 20;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    #[param(inline)]
    state: Option<ApprovalState>,
    #[param(inline)]
    exec_id: Option<ExecId>,
    #[param(inline)]
    conversation_id: Option<Id>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,18}\\.apr_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// List approvals
///
/// Those of the token's space, newest first: `state=pending` are those that wait for an answer. A
/// page ends early once it has passed 4 MiB; `next` leads on.
#[utoipa::path(
    get, path = "/v1/approvals", operation_id = "list_approvals", tag = "approvals",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<Approval>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsApprovals(caller): ReadsApprovals,
    Query(filter): Query<Filter>,
) -> Answer<Answered<Page<Approval>>> {
    let wanted = filter.limit.unwrap_or(LIMIT);
    let filter = ApprovalFilter {
        space: None,
        state: filter.state,
        exec: filter.exec_id,
        conversation_id: filter.conversation_id.map(|id| id.0),
        limit: 0,
        cursor: filter.cursor,
    };
    let page = page(&app, &caller, filter, wanted).await?;
    Ok(Answered(page))
}

/// At most so many, and no more than fit into a page.
pub(super) async fn page(
    app: &App,
    caller: &Caller,
    mut filter: ApprovalFilter,
    mut wanted: usize,
) -> Answer<Page<Approval>> {
    let eyes = caller.eyes();
    app.ask("list_approvals", move |dispatcher| {
        let (mut items, mut bytes) = (Vec::new(), 0);
        for looks in 1.. {
            filter.limit = wanted.min(AT_ONCE);
            let page = dispatcher.approvals(&eyes, &filter)?;
            wanted -= page.items.len().min(wanted);
            bytes += page.items.iter().map(size).sum::<usize>();
            items.extend(page.items);
            filter.cursor = page.next;
            let is_full = wanted == 0 || bytes >= PAGE_BYTES || looks == LOOKS;
            if filter.cursor.is_none() || is_full {
                break;
            }
        }
        let next = filter.cursor;
        Ok(Page { items, next })
    })
    .await
}

/// What is large in it is what is run.
fn size(approval: &Approval) -> usize {
    let words = |argv: &[String]| argv.iter().map(String::len).sum::<usize>();
    let edited = approval.replies.iter().map(|reply| match &reply.answer {
        Said::Edit { program, .. } => program.argv().iter().map(|it| it.as_bytes().len()).sum(),
        _ => 0,
    });
    words(&approval.ask.argv) + edited.sum::<usize>()
}

/// Get an approval
#[utoipa::path(
    get, path = "/v1/approvals/{id}", operation_id = "get_approval", tag = "approvals",
    params(("id" = String, Path, description = "The approval's id.")),
    responses((status = 200, description = "The request, and what was replied.", body = Approval)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsApprovals(caller): ReadsApprovals,
    Path(id): Path<String>,
) -> Answer<Answered<Approval>> {
    let approval = find(&app, &caller, parse(&id)?).await?;
    Ok(Answered(approval.into_inner()))
}

/// What is no id names nothing that could be there.
fn parse(id: &str) -> Answer<ApprovalId> {
    id.parse().map_err(|_| Failure::no_approval())
}

pub(super) async fn find(app: &App, caller: &Caller, id: ApprovalId) -> Answer<Seen<Approval>> {
    let eyes = caller.eyes();
    let found = app.ask("approval", move |dispatcher| {
        dispatcher.approval(&eyes, &id)
    });
    found.await.map_err(missing)
}

/// The same words for one that never was and for one of another space or agent.
fn missing(failure: Failure) -> Failure {
    match failure.0.code {
        Code::NotFound => Failure::no_approval(),
        _ => failure,
    }
}

/// Answer a request
///
/// Once for each person, and never by who asked; tokens with the same `user_id` are one person. A no
/// ends it; so many people as `quorum` says must say yes. An edited program is assessed anew: one
/// that policy denies is refused, and the request goes on waiting. A request that has ended is a 409, or a 410 when its time was over.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/reply", operation_id = "reply_approval", tag = "approvals",
    params(("id" = String, Path, description = "The approval's id.")),
    request_body = ReplyRequest,
    responses((status = 200, description = "The request as it is now.", body = Approval)),
)]
pub(super) async fn reply(
    State(app): State<App>,
    WritesApprovals(caller): WritesApprovals,
    Path(id): Path<String>,
    Json { value, mutation }: Json<ReplyRequest>,
) -> Answer<Response> {
    replied(app, caller, &id, mutation, value.answer()).await
}

/// Approve a request
///
/// The same as the reply `allow_once`.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/approve", operation_id = "approve_approval", tag = "approvals",
    params(("id" = String, Path, description = "The approval's id.")),
    request_body = ReasonRequest,
    responses((status = 200, description = "The request as it is now.", body = Approval)),
)]
pub(super) async fn approve(
    State(app): State<App>,
    WritesApprovals(caller): WritesApprovals,
    Path(id): Path<String>,
    Json { value, mutation }: Json<ReasonRequest>,
) -> Answer<Response> {
    let reason = value.reason.map(|it| it.0);
    replied(app, caller, &id, mutation, Ok(Said::AllowOnce { reason })).await
}

/// Deny a request
///
/// The same as the reply `deny`.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/deny", operation_id = "deny_approval", tag = "approvals",
    params(("id" = String, Path, description = "The approval's id.")),
    request_body = ReasonRequest,
    responses((status = 200, description = "The request as it is now.", body = Approval)),
)]
pub(super) async fn deny(
    State(app): State<App>,
    WritesApprovals(caller): WritesApprovals,
    Path(id): Path<String>,
    Json { value, mutation }: Json<ReasonRequest>,
) -> Answer<Response> {
    let reason = value.reason.map(|it| it.0);
    replied(app, caller, &id, mutation, Ok(Said::Deny { reason })).await
}

async fn replied(
    app: App,
    caller: Caller,
    id: &str,
    mutation: Mutation,
    said: glovebox_model::Result<Said>,
) -> Answer<Response> {
    let id = parse(id)?;
    let (work_app, by) = (app.clone(), caller.clone());
    let work = async move {
        // First whether there is one: who may not know of it learns nothing from what is said.
        let asked = find(&work_app, &by, id).await?;
        let via = match by.is_at_machine() {
            true => Via::Cli,
            false => Via::Rest,
        };
        let approval = answer(&work_app, &by, asked, via, said?).await?;
        Outcome::json(StatusCode::OK, &approval)
    };
    once(&app, &caller, &mutation, work).await
}

fn may_elicit(app: &App) -> Answer<()> {
    match app.elicits() {
        true => Ok(()),
        false => Err(Failure::new(
            Code::Forbidden,
            "an answer that an agent's host brings is nobody's here",
        )
        .hint("an approver answers it: show them the approval's id")
        .hint("the operator lets hosts ask: `elicitation = true` in `[approvals]`")),
    }
}

/// The engine decides; nothing here is a yes.
pub(super) async fn answer(
    app: &App,
    caller: &Caller,
    approval: Seen<Approval>,
    via: Via,
    answer: Said,
) -> Answer<Approval> {
    let via = match caller.asker() {
        Some(asker) => {
            may_elicit(app)?;
            // Somebody who is shown what one agent asks says nothing to what others ask.
            if approval.requested_by != asker.as_str() {
                return Err(Failure::new(
                    Code::Forbidden,
                    format!("`{asker}` did not ask for this"),
                )
                .hint("an approver answers it: show them the approval's id"));
            }
            // Nobody here can tell who sits there, and whether they answer elsewhere as well.
            if approval.quorum > 1 {
                return Err(Failure::new(
                    Code::Forbidden,
                    "several people have to agree, and a person at a host counts as none of them",
                )
                .hint("approvers answer it: show them the approval's id"));
            }
            Via::Elicitation
        }
        None => via,
    };
    let by = caller.party();
    // It plans the exec anew, as a submission does.
    let replied = app.submit(move |dispatcher| dispatcher.reply(&approval, by, via, answer));
    replied.await.map_err(|failure| match failure.0.code {
        Code::NotFound => Failure::no_approval(),
        // The message was read before; what it says does not fit what it is said to.
        Code::InvalidArgument => {
            let mut error = *failure.0;
            error.code = Code::Conflict;
            Failure::from(error)
        }
        _ => failure,
    })
}
