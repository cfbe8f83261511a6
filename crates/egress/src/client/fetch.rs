//! A GET with credentials, for what the product itself fetches, such as images from a registry.
//! Retrieval on somebody's behalf cannot express it.

use std::fmt;

use hyper::header::HeaderValue;
use tokio::time::Instant;

use super::{Ask, Client, Followed, RedirectRules, Trail};
use crate::refusal::{Refusal, RefusalCode};
use crate::target::Target;

/// The value of an `Authorization` header; never shown.
#[derive(Clone)]
pub struct Authorization(HeaderValue);

impl Authorization {
    pub fn new(value: &str) -> Result<Self, Refusal> {
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            Refusal::new(
                RefusalCode::InvalidUrl,
                "the authorization has characters that no header has",
            )
        })?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization(…)")
    }
}

#[derive(Debug, Clone)]
pub struct Fetch {
    pub target: Target,
    pub accept: String,
    /// Sent to the origin of `target` and to no other.
    pub authorization: Option<Authorization>,
}

impl Client {
    /// Follows redirects by the rules. The body is read by the caller, who counts it.
    pub async fn fetch(
        &self,
        fetch: Fetch,
        rules: RedirectRules<'_>,
        deadline: Instant,
    ) -> Result<Followed, Refusal> {
        let ask = Ask {
            accept: &fetch.accept,
            compressed: false,
            authorization: fetch.authorization.as_ref(),
        };
        self.follow(fetch.target, ask, rules, deadline, &mut Trail::default())
            .await
    }
}
