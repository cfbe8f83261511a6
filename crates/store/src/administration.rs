//! Entries about the server itself: what was done to it, by whom.

use glovebox_model::{ReceiptRef, Result, SpaceId, TokenId};
use serde_json::{Map, Value, json};

use crate::failure::internal;
use crate::ledger::Kind;
use crate::ledger::chain::Draft;
use crate::ledger::encoding::canonical;
use crate::store::Store;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// None for the server itself and for whoever has its state directory.
    pub token_id: Option<TokenId>,
    pub name: String,
}

impl Store {
    /// Writes down what happened to the server. Nothing in the details may be a secret.
    pub fn note(
        &self,
        space: &SpaceId,
        event: &str,
        by: Option<&Actor>,
        details: Value,
    ) -> Result<ReceiptRef> {
        self.note_about(space, event, by, Vec::new(), details)
    }

    /// As [`Store::note`], to be found by these tags as well.
    pub fn note_about(
        &self,
        space: &SpaceId,
        event: &str,
        by: Option<&Actor>,
        about: Vec<String>,
        details: Value,
    ) -> Result<ReceiptRef> {
        let draft = administered_about(space, event, by, None, about, details)?;
        self.write(move |chains| Ok(chains.append(draft)?.receipt()))
    }
}

/// `token`: the token that it is about.
pub(crate) fn administered(
    space: &SpaceId,
    event: &str,
    by: Option<&Actor>,
    token: Option<&TokenId>,
    details: Value,
) -> Result<Draft> {
    administered_about(space, event, by, token, Vec::new(), details)
}

/// As [`administered`], to be found by these tags as well.
pub(crate) fn administered_about(
    space: &SpaceId,
    event: &str,
    by: Option<&Actor>,
    token: Option<&TokenId>,
    about: Vec<String>,
    details: Value,
) -> Result<Draft> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.';
    if event.is_empty() || event.len() > 64 || !event.bytes().all(plain) {
        return Err(internal(format!("`{}` is no event", event.escape_debug())));
    }
    let by_token = by.and_then(|actor| actor.token_id.as_ref());
    let mut tags = about;
    tags.push(format!("event:{event}"));
    tags.extend(token.map(|id| format!("token:{id}")));
    tags.extend(by_token.map(|id| format!("by:{id}")));
    tags.sort();
    let body = json!({
        "event": event,
        "by": by.map(|actor| json!({ "token_id": actor.token_id, "name": actor.name })),
        "token_id": token,
        "details": whole(details),
    });
    Ok(Draft {
        space: space.clone(),
        kind: Kind::Administered,
        exec_id: None,
        ids: canonical(&Value::Object(Map::new())),
        tags: canonical(&json!(tags)),
        body: canonical(&body),
    })
}

/// The ledger's numbers are integers, since everybody writes those alike; others become texts.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            Value::String(number.to_string())
        }
        Value::Array(items) => items.into_iter().map(whole).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, whole(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_fraction_become_texts() {
        let details = json!({ "a": [1, 1.5, -2], "b": { "c": 1e300 } });
        let expected = json!({ "a": [1, "1.5", -2], "b": { "c": "1e+300" } });
        assert_eq!(whole(details), expected);
    }

    #[test]
    fn an_event_has_a_plain_name() {
        let space = SpaceId::local();
        for bad in ["", "Server", "a b", "x\n", &"x".repeat(65)] {
            assert!(administered(&space, bad, None, None, Value::Null).is_err());
        }
    }
}
