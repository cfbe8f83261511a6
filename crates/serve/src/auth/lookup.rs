//! From the header of a request to the token that it carries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use glovebox_model::{Code, Error, Result, SpaceId, Token};
use jiff::Timestamp;

use super::caller::Caller;
use super::key::TokenKey;
use super::limiter::{Limiter, RateLimitState};
use super::secret::{Secret, same};
use crate::app::App;
use crate::failure::{Answer, Failure};
use crate::listen::Peer;

/// How long a token that was good is taken to be so still; a revoked one is noticed after it.
pub(crate) const REMEMBERED_FOR: Duration = Duration::from_millis(500);
const REMEMBERED: usize = 1024;

/// The token of a request: none, one that is no token at all, or one that may be good.
pub(crate) struct Given(Option<Option<Secret>>);

/// In front of a token among the protocols of a WebSocket.
const PROTOCOL: &str = "bearer.";

impl Given {
    pub(crate) fn by_header(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        Self(given.next().map(|first| {
            let text = first.to_str().ok().filter(|_| given.next().is_none());
            text.and_then(|text| text.strip_prefix("Bearer "))
                .and_then(Secret::parse)
        }))
    }

    /// A page cannot set headers of a WebSocket, but it can name protocols. Two tokens are none.
    pub(crate) fn by_header_or_protocol(headers: &HeaderMap) -> Self {
        let by_header = Self::by_header(headers);
        let named = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
        let named = named.filter_map(|value| value.to_str().ok());
        let mut tokens = named
            .flat_map(|text| text.split(','))
            .filter_map(|text| text.trim().strip_prefix(PROTOCOL));
        match (by_header.0, tokens.next(), tokens.next()) {
            (given, None, _) => Self(given),
            (None, Some(token), None) => Self(Some(Secret::parse(token))),
            (_, Some(_), _) => Self(Some(None)),
        }
    }
}

/// Of a version in which the binding was kept and did not hold.
fn outdated(token: &Token, why: &Error) -> Failure {
    let message = format!(
        "the token `{}` is not used any longer: {}",
        token.name, why.message
    );
    Failure::new(Code::Forbidden, message).hint(format!(
        "an admin revokes it and makes another: `glovebox token create {} --role {}`",
        token.name, token.role
    ))
}

#[derive(Debug)]
pub(crate) struct Authenticator {
    keys: PathBuf,
    /// Read when it is first needed.
    key: OnceLock<TokenKey>,
    limiter: Limiter,
    good: Mutex<HashMap<[u8; 32], (Token, Instant)>>,
}

impl Authenticator {
    /// `keys` is the directory of `token.key`.
    pub(crate) fn new(keys: &Path, bad_tokens: u32) -> Self {
        Self {
            keys: keys.to_owned(),
            key: OnceLock::new(),
            limiter: Limiter::new(bad_tokens),
            good: Mutex::default(),
        }
    }

    pub(crate) fn key(&self) -> Result<&TokenKey> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = TokenKey::load_or_create(&self.keys)?;
        Ok(self.key.get_or_init(|| key))
    }

    /// The caller, or the one answer that everybody gets who is not one.
    pub(crate) async fn identify(&self, app: &App, given: Given, peer: Peer) -> Answer<Caller> {
        let Some(secret) = given.0 else {
            return Err(unauthenticated());
        };
        // What is not even shaped like a token guesses nothing, and costs nothing to refuse.
        let Some(secret) = secret else {
            app.metrics().auth_failed();
            return Err(unauthenticated());
        };
        match self.check(app, &secret).await? {
            Some(token) => {
                token
                    .ensure_bindable()
                    .map_err(|why| outdated(&token, &why))?;
                let seed = self
                    .key()?
                    .derive("seed of a caller", &[secret.reveal().as_bytes()]);
                Ok(Caller::new(token, seed))
            }
            None => Err(self.refuse(app, peer)),
        }
    }

    /// Whether a token that was good is so still: for streams that stay open.
    pub(crate) async fn is_still_good(&self, app: &App, caller: &Caller) -> bool {
        let Some(id) = caller.credential().cloned() else {
            return true;
        };
        let found = app
            .ask("token", move |dispatcher| dispatcher.store()?.token(&id))
            .await;
        match found {
            Ok(Some((token, _))) => token.is_usable(Timestamp::now()),
            Ok(None) => false,
            // The store does not answer. What was allowed a moment ago goes on.
            Err(_) => true,
        }
    }

    async fn check(&self, app: &App, secret: &Secret) -> Answer<Option<Token>> {
        let hash = self.key()?.hash(secret);
        if let Some(token) = self.remembered(&hash) {
            return Ok(Some(token));
        }
        let id = secret.id().clone();
        let found = app
            .ask("token", move |dispatcher| dispatcher.store()?.token(&id))
            .await?;
        // An unknown id is compared too, so that it takes as long as a known one.
        let (token, kept) = match found {
            Some((token, kept)) => (Some(token), kept),
            None => (None, [0; 32]),
        };
        let matches = bool::from(same(&hash, &kept));
        let token = token.filter(|token| matches && token.is_usable(Timestamp::now()));
        if let Some(token) = &token {
            self.remember(hash, token.clone());
        }
        Ok(token)
    }

    /// By the hash, which cannot be chosen: finding it in a table tells nothing about the token.
    fn remembered(&self, hash: &[u8; 32]) -> Option<Token> {
        let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, since) = good.get(hash)?;
        let usable = since.elapsed() < REMEMBERED_FOR && token.is_usable(Timestamp::now());
        usable.then(|| token.clone())
    }

    fn remember(&self, hash: [u8; 32], token: Token) {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(hash, (token, Instant::now()));
    }

    /// Everything is looked up again: something was revoked.
    pub(crate) fn forget(&self) {
        self.good
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn refuse(&self, app: &App, peer: Peer) -> Failure {
        app.metrics().auth_failed();
        let (wait, first) = match self.limiter.failed(peer, Instant::now()) {
            RateLimitState::Fine => return unauthenticated(),
            RateLimitState::Exceeded { wait } => (wait, true),
            RateLimitState::Waiting { wait } => (wait, false),
        };
        if first {
            note_guessing(app.clone(), peer);
        }
        Failure::new(Code::RateLimited, "too many bad tokens from this address")
            .hint("a good token is accepted at any time")
            .after(wait.as_secs().max(1))
    }
}

/// One entry in the ledger for each address and minute, however many tokens were tried.
fn note_guessing(app: App, peer: Peer) {
    let from = match peer {
        Peer::Address(address) => address.to_string(),
        Peer::Owner => "socket".to_owned(),
    };
    tracing::warn!(%from, "too many bad tokens");
    tokio::spawn(async move {
        let noted = app.ask("note", move |dispatcher| {
            let details = serde_json::json!({ "from": from });
            dispatcher
                .store()?
                .note(&SpaceId::local(), "bad_tokens", None, details)
        });
        if let Err(failure) = noted.await {
            tracing::error!(error = %failure.0, "bad tokens could not be noted in the ledger");
        }
    });
}

/// The same words for every way in which a token can be no good.
pub(crate) fn unauthenticated() -> Failure {
    Failure::new(Code::Unauthenticated, "a valid token is needed")
        .hint("send `Authorization: Bearer TOKEN`; `glovebox token create` makes one")
}
