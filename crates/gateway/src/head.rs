//! What of a request's head is shown by a simulation and compared when it is done for real.

use std::fmt;

use hyper::{HeaderMap, Uri};

use crate::broker;
use crate::policy::Brokered;

/// Text that may hold secrets. It is not printed before they are masked.
#[derive(Clone, PartialEq, Eq)]
pub struct Unmasked(String);

impl Unmasked {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Unmasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[unmasked]")
    }
}

/// Digests are BLAKE3 in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) query: Option<Unmasked>,
    pub(crate) query_digest: Option<String>,
    pub(crate) header_names: Vec<String>,
    pub(crate) headers_digest: String,
}

impl Head {
    /// `compared` are the headers that are. `secrets` are put in before it leaves.
    pub(crate) fn of(uri: &Uri, compared: &HeaderMap, secrets: &[&Brokered]) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        for (name, value) in compared {
            add(name.as_str().as_bytes());
            match broker::named(value.as_bytes(), secrets) {
                Some(named) => add(&named),
                None => add(value.as_bytes()),
            }
        }
        Self {
            query: uri.query().map(|it| Unmasked(it.to_owned())),
            query_digest: uri.query().map(digest),
            header_names: compared.keys().map(|it| it.as_str().to_owned()).collect(),
            headers_digest: hasher.finalize().to_hex().to_string(),
        }
    }
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
