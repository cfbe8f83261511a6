//! Callers of this machine: an agent whose host started us, and the person who sits there.

use glovebox_model::{ProjectId, Role, Scope, SpaceId, Token, TokenId, TokenName};
use jiff::Timestamp;

use super::caller::Caller;
use super::key::TokenKey;

/// An agent in the space `local`. The same one has the same id each time, so that a request that it
/// sends again after a restart is known again; what is shared with it tells apart those of different
/// directories.
pub(crate) fn at_host(
    key: &TokenKey,
    name: TokenName,
    user_id: Option<String>,
    shared: Option<&ProjectId>,
) -> Caller {
    let user = user_id.as_deref().unwrap_or_default();
    let place = shared.map_or("", ProjectId::as_str);
    let parts = [name.as_str().as_bytes(), user.as_bytes(), place.as_bytes()];
    let seed = key.derive("seed of an agent at its host", &parts);
    let token = Token {
        token_id: id(key.derive("id of an agent at its host", &parts)),
        name,
        role: Role::Agent,
        space_id: SpaceId::local(),
        scopes: Role::Agent.scopes(),
        user_id,
        agent_id: None,
        conversation_id: None,
        created_at: Timestamp::now(),
        expires_at: None,
        revoked_at: None,
    };
    Caller::of_machine(token, seed, shared.cloned())
}

/// The person who has the state directory, and started this process: an admin of the space `local`.
pub(crate) fn operator_at_machine(name: TokenName, shared: Option<&ProjectId>) -> Caller {
    let token = Token {
        token_id: id([0; 32]),
        name,
        role: Role::Admin,
        space_id: SpaceId::local(),
        scopes: Role::Admin.scopes(),
        user_id: None,
        agent_id: None,
        conversation_id: None,
        created_at: Timestamp::now(),
        expires_at: None,
        revoked_at: None,
    };
    Caller::operator_of_machine(token, shared.cloned())
}

/// Whoever is shown what this caller asks, and no more than answers it.
pub(crate) fn person_at(key: &TokenKey, caller: &Caller) -> Caller {
    let asks = caller.token();
    let part = [asks.token_id.as_str().as_bytes()];
    let token = Token {
        token_id: id(key.derive("id of a person at a host", &part)),
        name: asks.name.clone(),
        role: Role::Approver,
        space_id: asks.space_id.clone(),
        scopes: [Scope::ApprovalsRead, Scope::ApprovalsWrite].into(),
        user_id: asks.user_id.clone(),
        agent_id: asks.agent().map(str::to_owned),
        conversation_id: asks.conversation_id.clone(),
        created_at: asks.created_at,
        expires_at: asks.expires_at,
        revoked_at: asks.revoked_at,
    };
    let seed = key.derive("seed of a person at a host", &part);
    caller.person(token, seed)
}

fn id(bytes: [u8; 32]) -> TokenId {
    let mut half = [0; 16];
    half.copy_from_slice(&bytes[..16]);
    TokenId::from_random(half)
}
