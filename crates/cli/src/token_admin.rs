//! Tokens and settings, through the API.

use glovebox_api::client::Client;
use glovebox_api::{NewToken, SettingsAnswer, Target, TokenRequest};
use glovebox_model::{Code, Error, Page, Result, Settings, Stage, Token, TokenId};
use glovebox_store::TokenFilter;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::context::Context;

const TOKENS: &str = "/v1/tokens";
const SETTINGS: &str = "/v1/settings";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InForce {
    pub(crate) version: u64,
    pub(crate) settings: Settings,
    /// What a server was started with; a state directory has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ceiling: Option<u32>,
}

impl InForce {
    fn of(answer: SettingsAnswer, client: &Client) -> Self {
        Self {
            version: answer.version,
            settings: answer.settings,
            ceiling: client.is_remote().then_some(answer.ceiling),
        }
    }
}

pub(crate) fn create_token(context: &Context<'_>, request: &TokenRequest) -> Result<NewToken> {
    context.store_api()?.post(Target::new(TOKENS), request)
}

pub(crate) fn tokens(context: &Context<'_>, filter: &TokenFilter) -> Result<Page<Token>> {
    let Some(client) = context.store_api_if_there()? else {
        return Ok(Page::empty());
    };
    client.get(
        Target::new(TOKENS)
            .optional("space_id", filter.space.as_ref())
            .query("all", filter.include_unusable)
            .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
            .optional("cursor", filter.cursor.as_deref()),
    )
}

pub(crate) fn token(context: &Context<'_>, id: &TokenId) -> Result<Token> {
    let client = context.store_api_if_there()?.ok_or_else(unknown)?;
    client.get(Target::new(TOKENS).segment(id.as_str()))
}

/// As it is afterwards.
pub(crate) fn revoke_token(context: &Context<'_>, id: &TokenId) -> Result<Token> {
    let client = context.store_api_if_there()?.ok_or_else(unknown)?;
    client.delete(Target::new(TOKENS).segment(id.as_str()))
}

pub(crate) fn settings(context: &Context<'_>) -> Result<InForce> {
    let Some(client) = context.store_api_if_there()? else {
        return Ok(InForce {
            version: 0,
            settings: Settings::default(),
            ceiling: None,
        });
    };
    let answer = client.get(Target::new(SETTINGS))?;
    Ok(InForce::of(answer, &client))
}

pub(crate) fn change_settings(context: &Context<'_>, change: &Change) -> Result<InForce> {
    let client = context.store_api()?;
    let answer = client.patch(Target::new(SETTINGS), &change.patch())?;
    Ok(InForce::of(answer, &client))
}

fn unknown() -> Error {
    Error::new(Code::NotFound, Stage::Parse, "there is no such token")
        .hint("`glovebox token ls --all` lists them")
}
