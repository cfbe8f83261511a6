//! Tokens: who may call a server. The secret is never here, only a hash made with a key that is
//! kept elsewhere; and not even that leaves this table.

use glovebox_model::{Code, Error, Page, Result, SpaceId, Stage, Token, TokenId};
use jiff::Timestamp;
use serde_json::json;

use crate::administration::{Actor, administered};
use crate::failure::{Doing, internal, tampered};
use crate::ledger::row_proof::{Guarded, is_forged};
use crate::page::{bad_cursor, page_size, sql_limit};
use crate::sql::{Row, Session, SqlResult, Value, values};
use crate::store::Store;

/// Which tokens to list.
#[derive(Debug, Clone, Default)]
pub struct TokenFilter {
    pub space: Option<SpaceId>,
    /// Also those that were revoked or have expired.
    pub include_unusable: bool,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl TokenFilter {
    pub(crate) fn query(&self, now: Timestamp) -> Result<(String, Vec<Value<'_>>)> {
        let mut values: Vec<Value<'_>> = vec![sql_limit(self.limit).into()];
        let mut conditions = Vec::new();
        if let Some(space) = &self.space {
            values.push(space.as_str().into());
            conditions.push(format!("space_id = ?{}", values.len()));
        }
        if !self.include_unusable {
            values.push(now.as_microsecond().into());
            conditions.push("revoked_at IS NULL".to_owned());
            conditions.push(format!(
                "(expires_at IS NULL OR expires_at > ?{})",
                values.len()
            ));
        }
        if let Some(cursor) = &self.cursor {
            let (at, id) = cursor.split_once('.').ok_or_else(|| bad_cursor(cursor))?;
            let at: i64 = at.parse().map_err(|_| bad_cursor(cursor))?;
            let place = values.len();
            values.extend_from_slice(values![at, id]);
            conditions.push(format!(
                "(created_at, token_id) < (?{}, ?{})",
                place + 1,
                place + 2
            ));
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", conditions.join(" AND "))
        };
        let sql = format!(
            "SELECT token, created_at FROM tokens {filter}
             ORDER BY created_at DESC, token_id DESC LIMIT ?1"
        );
        Ok((sql, values))
    }
}

fn parsed(text: &str) -> Result<Token> {
    serde_json::from_slice(text.as_bytes())
        .map_err(|error| tampered("a token cannot be read").caused_by(error))
}

fn written(token: &Token) -> Result<String> {
    serde_json::to_string(token)
        .map_err(|error| internal("the token cannot be written").caused_by(error))
}

struct Kept {
    token: String,
    hash: Vec<u8>,
}

impl Kept {
    fn read(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self {
            token: row.get(0)?,
            hash: row.get(1)?,
        })
    }

    fn find(session: &Session, id: &TokenId) -> SqlResult<Option<Self>> {
        session.row(
            "SELECT token, hash FROM tokens WHERE token_id = ?1",
            values![id.as_str()],
            Self::read,
        )
    }
}

impl Store {
    /// Writes a token and the entry that says so. A name that a token of the space has which is not
    /// revoked is a conflict, and so is one that would make two tokens one agent where neither says
    /// so; the same token with the same hash again changes nothing.
    pub fn create_token(&self, token: &Token, hash: &[u8; 32], by: &Actor) -> Result<()> {
        token.ensure_bindable()?;
        let (token, hash, by) = (token.clone(), *hash, by.clone());
        self.write(move |chains| {
            let session = chains.session();
            let kept = Kept::find(session, &token.token_id).doing("look for the token")?;
            match kept {
                Some(kept) if kept.hash == hash => return Ok(()),
                Some(_) => {
                    return Err(Error::new(
                        Code::Conflict,
                        Stage::Parse,
                        format!("there is a token `{}` already", token.token_id),
                    ));
                }
                None => {}
            }
            ensure_free(session, &token)?;
            ensure_own_agent(session, &token)?;
            let text = written(&token)?;
            session
                .execute(
                    "INSERT INTO tokens (token_id, space_id, name, hash, created_at, expires_at,
                         revoked_at, token)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    values![
                        token.token_id.as_str(),
                        token.space_id.as_str(),
                        token.name.as_str(),
                        &hash,
                        token.created_at.as_microsecond(),
                        token.expires_at.map(Timestamp::as_microsecond),
                        token.revoked_at.map(Timestamp::as_microsecond),
                        &text
                    ],
                )
                .doing("write the token")?;
            let details = json!({
                "name": token.name,
                "role": token.role,
                "scopes": token.scopes,
                "user_id": token.user_id,
                "agent_id": token.agent_id,
                "conversation_id": token.conversation_id,
                "expires_at": token.expires_at,
            });
            let about = [(Guarded::Tokens, token.token_id.as_str())];
            chains.append_about(entry(&token, "token.created", &by, details)?, &about)?;
            Ok(())
        })
    }

    /// The token and the hash of its secret.
    pub fn token(&self, id: &TokenId) -> Result<Option<(Token, [u8; 32])>> {
        let kept = self.ask("read the token", |session| Kept::find(session, id))?;
        kept.map(|kept| {
            let hash = kept.hash.as_slice().try_into();
            let hash = hash.map_err(|_| tampered("a token has no valid hash"))?;
            Ok((parsed(&kept.token)?, hash))
        })
        .transpose()
    }

    /// Newest first.
    pub fn tokens(&self, filter: &TokenFilter) -> Result<Page<Token>> {
        let (sql, values) = filter.query(Timestamp::now())?;
        let rows: Vec<(String, i64)> = self.ask("list the tokens", |session| {
            session.rows(&sql, &values, |row| Ok((row.get(0)?, row.get(1)?)))
        })?;
        let tokens: Vec<(Token, i64)> = rows
            .into_iter()
            .map(|(text, at)| Ok((parsed(&text)?, at)))
            .collect::<Result<_>>()?;
        let cursor = |(token, at): &(Token, i64)| format!("{at}.{}", token.token_id);
        Page::cut(tokens, page_size(filter.limit), cursor).try_map(|(token, _)| Ok(token))
    }

    /// From now on nobody gets in with it. Revoking it again changes nothing; `None` when there is
    /// no such token.
    pub fn revoke_token(&self, id: &TokenId, by: &Actor) -> Result<Option<Token>> {
        let (id, by) = (id.clone(), by.clone());
        self.write(move |chains| {
            let session = chains.session();
            let Some(kept) = Kept::find(session, &id).doing("look for the token")? else {
                return Ok(None);
            };
            let mut token = parsed(&kept.token)?;
            let forged = is_forged(session, Guarded::Tokens, &token.space_id, id.as_str())?;
            if token.revoked_at.is_some() {
                return Ok(Some(token));
            }
            token.revoked_at = Some(chains.now());
            session
                .execute(
                    "UPDATE tokens SET revoked_at = ?2, token = ?3 WHERE token_id = ?1",
                    values![
                        id.as_str(),
                        chains.now().as_microsecond(),
                        &written(&token)?
                    ],
                )
                .doing("revoke the token")?;
            let details = json!({ "name": token.name, "role": token.role });
            let draft = entry(&token, "token.revoked", &by, details)?;
            chains.append_ending(draft, (Guarded::Tokens, id.as_str()), forged)?;
            Ok(Some(token))
        })
    }
}

fn ensure_free(session: &Session, token: &Token) -> Result<()> {
    let taken = session
        .exists(
            "SELECT EXISTS (SELECT 1 FROM tokens
             WHERE space_id = ?1 AND name = ?2 AND revoked_at IS NULL)",
            values![token.space_id.as_str(), token.name.as_str()],
        )
        .doing("look for the token")?;
    if !taken {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Parse,
        format!("a token of this space is called `{}` already", token.name),
    )
    .hint("choose another name, or revoke that token first"))
}

/// A token that is bound to no agent is the one of its own name. The choice of a name
/// must not give what is another token's.
fn ensure_own_agent(session: &Session, token: &Token) -> Result<()> {
    let Some(agent) = token.agent() else {
        return Ok(());
    };
    let rows: Vec<String> = session
        .rows(
            "SELECT token FROM tokens WHERE space_id = ?1 AND revoked_at IS NULL",
            values![token.space_id.as_str()],
            |row| row.get(0),
        )
        .doing("look for tokens of the same agent")?;
    for text in rows {
        let other = parsed(&text)?;
        let both_say_so = other.agent_id.is_some() && token.agent_id.is_some();
        if other.agent() == Some(agent) && !both_say_so {
            let message = format!(
                "the token `{}` of this space is the agent `{agent}` already",
                other.name
            );
            return Err(Error::new(Code::Conflict, Stage::Parse, message)
                .hint("choose another name, or bind the token to an agent of its own: `agent_id`")
                .hint("two tokens are one agent where both are bound to it"));
        }
    }
    Ok(())
}

fn entry(
    token: &Token,
    event: &str,
    by: &Actor,
    details: serde_json::Value,
) -> Result<crate::ledger::chain::Draft> {
    administered(
        &token.space_id,
        event,
        Some(by),
        Some(&token.token_id),
        details,
    )
}
