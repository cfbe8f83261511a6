//! Tokens: who may call, and for what. An admin of the space `local` is the operator and sees every
//! space; any other admin sees its own.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_model::{Code, Page, SpaceId, Token, TokenId};
use glovebox_store::TokenFilter;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use crate::app::App;
use crate::auth::{Caller, ReadsTokens, Secret, WritesTokens, random};
use crate::body::{Json, Limit, Mutation, Query, Sent};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, REPLAYED, once};
use glovebox_api::{Id, NewToken, TokenRequest};

impl Sent for TokenRequest {
    const LIMIT: Limit = Limit::Plain;
}

/// Create a token
///
/// No token makes a stronger one: what the caller may not do, or not for so long, or only for one
/// user, agent or conversation, holds for the new one too.
#[utoipa::path(
    post, path = "/v1/tokens", operation_id = "create_token", tag = "tokens",
    request_body = TokenRequest,
    responses((status = 201, description = "The token and its secret.", body = NewToken)),
)]
pub(super) async fn create(
    State(app): State<App>,
    WritesTokens(caller): WritesTokens,
    Json { value, mutation }: Json<TokenRequest>,
) -> Answer<Response> {
    let secret = new_secret(&app, &caller, &mutation)?;
    let token = token_of(value, &caller, secret.id())?;
    let (hash, by, work_app) = (app.auth().key()?.hash(&secret), caller.actor(), app.clone());
    let work = async move {
        let made = token.clone();
        let kept = work_app.ask("create_token", move |dispatcher| {
            dispatcher.store()?.create_token(&made, &hash, &by)
        });
        kept.await?;
        // What is kept for a replay has no secret in it; the secret is made again.
        Outcome::json(StatusCode::CREATED, &token)
    };
    let answered = once(&app, &caller, &mutation, work).await?;
    reveal(answered, &secret).await
}

async fn reveal(answered: Response, secret: &Secret) -> Answer<Response> {
    let replayed = answered.headers().contains_key(REPLAYED);
    let bytes = axum::body::to_bytes(answered.into_body(), Limit::Plain.bytes()).await;
    let token = bytes
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let answer = NewToken {
        token: token.ok_or_else(Failure::internal)?,
        secret: secret.reveal().to_owned(),
    };
    let response = Outcome::json(StatusCode::CREATED, &answer)?;
    let response = axum::response::IntoResponse::into_response(response);
    Ok(if replayed {
        crate::idempotency::replayed(response)
    } else {
        response
    })
}

/// Random; with an `Idempotency-Key` made from what only this caller has, so that a replay gives
/// the same one although nothing of it is kept.
fn new_secret(app: &App, caller: &Caller, mutation: &Mutation) -> Answer<Secret> {
    let bytes: [u8; 64] = match &mutation.key {
        None => {
            let mut bytes = [0; 64];
            random(&mut bytes)?;
            bytes
        }
        Some(key) => {
            let parts = [&caller.seed()[..], key.as_bytes(), &mutation.fingerprint];
            let mut bytes = [0; 64];
            bytes[..32].copy_from_slice(&app.auth().key()?.derive("id of a token", &parts));
            bytes[32..].copy_from_slice(&app.auth().key()?.derive("secret of a token", &parts));
            bytes
        }
    };
    let (mut id, mut secret) = ([0; 16], [0; 32]);
    id.copy_from_slice(&bytes[..16]);
    secret.copy_from_slice(&bytes[32..]);
    Ok(Secret::of(&TokenId::from_random(id), &secret))
}

fn token_of(asked: TokenRequest, caller: &Caller, id: &TokenId) -> Answer<Token> {
    let space_id = asked.space_id.unwrap_or_else(|| caller.space().clone());
    if space_id != *caller.space() {
        caller.operator()?;
    }
    let most = asked.role.scopes();
    let scopes = asked.scopes.unwrap_or_else(|| most.clone());
    if let Some(scope) = scopes.difference(&most).next() {
        let message = format!("the role `{}` does not have `{scope}`", asked.role);
        return Err(Failure::new(Code::Forbidden, message));
    }
    let own = caller.token();
    if let Some(scope) = scopes.iter().find(|scope| !own.may(**scope)) {
        let message = format!("this token lacks `{scope}` and cannot give it");
        return Err(Failure::new(Code::Forbidden, message)
            .hint("ask for fewer `scopes`, or use a token that has it"));
    }
    let created_at = Timestamp::now();
    if asked.expires_at.is_some_and(|end| end <= created_at) {
        return Err(Failure::new(Code::Conflict, "`expires_at` is in the past"));
    }
    if let (Some(end), Some(own)) = (asked.expires_at, own.expires_at)
        && end > own
    {
        let message = format!("this token ends at `{own}`, and the new one would end later");
        return Err(Failure::new(Code::Forbidden, message)
            .hint("leave `expires_at` out: the new one then ends with this one"));
    }
    let token = Token {
        token_id: id.clone(),
        name: asked.name,
        role: asked.role,
        space_id,
        scopes,
        user_id: bound("user", asked.user_id, own.user_id.as_deref())?,
        // Who makes tokens is nobody who is bound to these.
        agent_id: asked.agent_id.map(|id| id.0),
        conversation_id: asked.conversation_id.map(|id| id.0),
        created_at,
        expires_at: asked.expires_at.or(own.expires_at),
        revoked_at: None,
    };
    token.ensure_bindable()?;
    Ok(token)
}

/// Whoever is bound binds the tokens that it makes in the same way.
fn bound(what: &str, asked: Option<Id>, own: Option<&str>) -> Answer<Option<String>> {
    match (asked, own) {
        (Some(asked), Some(own)) if asked.0 != own => {
            let message = format!("this token is bound to the {what} `{own}`, and the new one too");
            Err(Failure::new(Code::Forbidden, message).hint(format!(
                "leave `{what}_id` out, or use a token that is not bound"
            )))
        }
        (Some(asked), _) => Ok(Some(asked.0)),
        (None, own) => Ok(own.map(str::to_owned)),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Only those of this space; another than the caller's own only for the operator.
    #[param(inline)]
    space_id: Option<SpaceId>,
    /// Also those that were revoked or have expired.
    #[param(default = false)]
    all: Option<bool>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = r"^-?[0-9]{1,18}\.t_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// List tokens
#[utoipa::path(
    get, path = "/v1/tokens", operation_id = "list_tokens", tag = "tokens",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<Token>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsTokens(caller): ReadsTokens,
    Query(filter): Query<Filter>,
) -> Answer<Answered<Page<Token>>> {
    let space = match (filter.space_id, caller.operator()) {
        (asked, Ok(())) => asked,
        (None, Err(_)) => Some(caller.space().clone()),
        (Some(asked), Err(_)) if asked == *caller.space() => Some(asked),
        (Some(_), Err(failure)) => return Err(failure),
    };
    let filter = TokenFilter {
        space,
        include_unusable: filter.all.unwrap_or(false),
        limit: filter.limit.unwrap_or(0),
        cursor: filter.cursor,
    };
    let page = app
        .ask("tokens", move |dispatcher| {
            dispatcher.store()?.tokens(&filter)
        })
        .await?;
    Ok(Answered(page))
}

fn unknown() -> Failure {
    Failure::not_found("token").hint("`GET /v1/tokens?all=true` lists those of the token's space")
}

/// One that the caller may see; any other is as unknown as one that never was.
async fn visible(app: &App, caller: &Caller, id: &str) -> Answer<Token> {
    let id: TokenId = id.parse().map_err(|_| unknown())?;
    let found = app
        .ask("token", move |dispatcher| dispatcher.store()?.token(&id))
        .await?;
    let mine = |token: &Token| caller.operator().is_ok() || token.space_id == *caller.space();
    found
        .map(|(token, _)| token)
        .filter(mine)
        .ok_or_else(unknown)
}

/// Get a token
///
/// One that was revoked is gone; `GET /v1/tokens?all=true` still lists it.
#[utoipa::path(
    get, path = "/v1/tokens/{id}", operation_id = "get_token", tag = "tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses((status = 200, description = "The token, without its secret.", body = Token)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsTokens(caller): ReadsTokens,
    Path(id): Path<String>,
) -> Answer<Answered<Token>> {
    let token = visible(&app, &caller, &id).await?;
    match token.revoked_at {
        Some(_) if !caller.is_at_machine() => Err(unknown()),
        Some(_) | None => Ok(Answered(token)),
    }
}

/// Revoke a token
///
/// New requests with it are refused within a second, open streams end within five.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", tag = "tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses((status = 200, description = "The token as it is now.", body = Token)),
)]
pub(super) async fn revoke(
    State(app): State<App>,
    WritesTokens(caller): WritesTokens,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let token = visible(&app, &caller, &id).await?;
    if token.token_id == caller.token().token_id {
        return Err(
            Failure::new(Code::Conflict, "a token cannot revoke itself").hint(
                "use another admin's; the one of the state directory is made anew without its file",
            ),
        );
    }
    let (by, work_app) = (caller.actor(), app.clone());
    let work = async move {
        let revoked = work_app.ask("revoke_token", move |dispatcher| {
            dispatcher.store()?.revoke_token(&token.token_id, &by)
        });
        let token = revoked.await?.ok_or_else(unknown)?;
        work_app.auth().forget();
        Outcome::json(StatusCode::OK, &token)
    };
    once(&app, &caller, &mutation, work).await
}
