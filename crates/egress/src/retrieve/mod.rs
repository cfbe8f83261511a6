//! Reading the web on somebody's behalf: GET only, no headers of theirs, text out, and a record of
//! where it came from.

mod charset;
mod content;
mod filename;
mod html;
mod json;
mod limiter;
mod request;
mod secret;

use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_model::HostPort;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

pub use limiter::{Limiter, LimiterRules, RatePermit};
pub use request::{RetrieveRequest, Retrieved};
pub use secret::suspected_secret;

use crate::client::{Ask, Client, Followed, HopPolicy, RedirectRules, Trail};
use crate::hex;
use crate::refusal::{Refusal, RefusalCode};
use crate::target::{Target, vet_url};
use crate::vetter::PrivateTargets;
use content::Kind;

const ACCEPT: &str = "text/html, application/xhtml+xml, application/json, text/*;q=0.9, \
    application/xml;q=0.9, */*;q=0.1";

/// Another protocol, a part, nothing because it is known, no such part: retrieval asks for the whole,
/// always.
const UNSOLICITED: [u16; 4] = [101, 206, 304, 416];

/// What a request may ask for at most, and gets if it does not ask for less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrieveLimits {
    /// Of a body, before and after decoding.
    pub bytes: usize,
    /// Of the text that is handed on; what is longer is cut and marked.
    pub text_bytes: usize,
    /// Over everything: lookups, connections, redirects, bodies.
    pub time: Duration,
    pub redirects: usize,
    pub json: JsonLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    pub bytes: usize,
    pub depth: usize,
    pub nodes: usize,
}

impl Default for RetrieveLimits {
    fn default() -> Self {
        Self {
            bytes: 5 * 1024 * 1024,
            text_bytes: 512 * 1024,
            time: Duration::from_secs(30),
            redirects: 5,
            json: JsonLimits {
                bytes: 2 * 1024 * 1024,
                depth: 64,
                nodes: 200_000,
            },
        }
    }
}

#[derive(Debug, Clone)]
pub struct Retriever {
    pub client: Client,
    pub limits: RetrieveLimits,
    /// The `host:port` that may be fetched besides ports 80 and 443. What the vetter may reach
    /// privately is among them anyway.
    pub ports: PrivateTargets,
    /// Where given, only these, at every hop, whatever the request says.
    pub domains: Option<Vec<HostPort>>,
    /// Asked at every hop as well.
    pub hops: Option<Arc<dyn HopPolicy>>,
    pub limiter: Option<Arc<Limiter>>,
}

impl Retriever {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            limits: RetrieveLimits::default(),
            ports: PrivateTargets::none(),
            domains: None,
            hops: None,
            limiter: None,
        }
    }

    /// `caller` is whose rate and places count.
    pub async fn get(&self, caller: &str, request: RetrieveRequest) -> Retrieved {
        let began = Instant::now();
        let mut retrieved = Retrieved::begun(Timestamp::now());
        let mut trail = Trail::default();
        let ended = self
            .attempt(caller, request, &mut trail, &mut retrieved)
            .await;
        retrieved.travelled(&trail);
        if let Err(refusal) = ended {
            retrieved.refused(refusal);
        }
        retrieved.elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        retrieved
    }

    async fn attempt(
        &self,
        caller: &str,
        request: RetrieveRequest,
        trail: &mut Trail,
        retrieved: &mut Retrieved,
    ) -> Result<(), Refusal> {
        request.check_method()?;
        let ports = self.client.vetter.private.union(&self.ports);
        let target = vet_url(&request.url, &ports)?;
        check_secret(&request.url, "the URL")?;
        let _permit = match &self.limiter {
            Some(limiter) => Some(limiter.enter(caller)?),
            None => None,
        };
        let time = request.time().min(self.limits.time);
        let most = request.bytes().min(self.limits.bytes);
        let domains: Vec<&[HostPort]> = [&self.domains, &request.allow]
            .into_iter()
            .filter_map(Option::as_deref)
            .collect();
        let rules = RedirectRules {
            ports: &ports,
            domains: &domains,
            policy: self.hops.as_deref(),
            url: Some(|url| check_secret(url, "the URL of a redirect")),
            redirects: self.limits.redirects,
        };
        let ask = Ask {
            accept: ACCEPT,
            compressed: true,
            authorization: None,
        };
        let deadline = tokio::time::Instant::now() + time;
        let followed = self.client.follow(target, ask, rules, deadline, trail);
        let Followed { answer, target } = followed.await?;
        if UNSOLICITED.contains(&answer.status) {
            let message = format!(
                "the answer (status {}) is to a protocol, a part or a condition that was not asked for",
                answer.status
            );
            return Err(Refusal::new(RefusalCode::DecodeError, message)
                .hint("its server is wrong; nothing that can be asked for makes it right"));
        }
        let declared = content::Declared::of(answer.header("content-type"));
        retrieved.content_type.clone_from(&declared.essence);
        retrieved.suggested_name = filename::suggested(
            answer
                .headers
                .get("content-disposition")
                .map(|it| it.as_bytes()),
            target.url(),
        );
        // Known to be of no use before any of it is read.
        let refused_early = declared.refused();
        let body = match refused_early {
            None => answer.read(most).await?,
            // Enough to say what it really is.
            Some(refusal) => {
                retrieved.sniffed_type = sniff_only(answer, most).await;
                return Err(refusal);
            }
        };
        retrieved.bytes_read = body.bytes.len() as u64;
        retrieved.wire_bytes = body.wire_bytes;
        retrieved.content_sha256 = Some(hex(&Sha256::digest(&body.bytes)));
        let sniffed = content::sniff(&body.bytes);
        retrieved.sniffed_type = Some(sniffed.to_owned());
        let kind = declared.kind(sniffed)?;
        let limits = Extraction {
            kind,
            charset: declared.charset,
            text_bytes: request.text_bytes().min(self.limits.text_bytes),
            json: self.limits.json,
            base: target,
        };
        let extracted = limits.extract(body.bytes).await?;
        retrieved.text = Some(extracted.text);
        retrieved.title = extracted.title;
        retrieved.charset = Some(extracted.charset.to_owned());
        retrieved.truncated = extracted.truncated;
        Ok(())
    }
}

fn check_secret(url: &str, which: &str) -> Result<(), Refusal> {
    let Some(what) = suspected_secret(url) else {
        return Ok(());
    };
    Err(Refusal::new(
        RefusalCode::SuspectedSecretInUrl,
        format!("{which} seems to hold {what}"),
    )
    .hint(
        "whoever runs the host would read it, and logs keep it; leave it out, or use a \
         brokered secret from a sandbox",
    ))
}

/// The first piece of an answer that is refused by its declared type.
async fn sniff_only(answer: crate::client::Answer, most: usize) -> Option<String> {
    const LOOKED_AT: usize = 64 * 1024;
    let body = answer.read_begin(LOOKED_AT.min(most)).await.ok()?;
    Some(content::sniff(&body).to_owned())
}

struct Extraction {
    kind: Kind,
    charset: Option<String>,
    text_bytes: usize,
    json: JsonLimits,
    base: Target,
}

struct Extracted {
    text: String,
    title: Option<String>,
    charset: &'static str,
    truncated: bool,
}

impl Extraction {
    /// On a thread where it may take its time: a page can be made to be slow to read.
    async fn extract(self, bytes: Vec<u8>) -> Result<Extracted, Refusal> {
        let extracting = tokio::task::spawn_blocking(move || self.read(&bytes));
        extracting.await.unwrap_or_else(|_| {
            Err(Refusal::new(
                RefusalCode::ExtractFailed,
                "the text could not be taken out of the answer",
            ))
        })
    }

    fn read(self, bytes: &[u8]) -> Result<Extracted, Refusal> {
        let (text, charset) = charset::decode(bytes, self.charset.as_deref(), self.kind)?;
        let (text, title, truncated) = match self.kind {
            Kind::Html => {
                let page = html::readable(&text, self.base.url(), self.text_bytes)?;
                (page.text, page.title, page.truncated)
            }
            Kind::Json => {
                json::check(&text, self.json)?;
                cut(printable(&text), self.text_bytes)
            }
            Kind::Text => cut(printable(&text), self.text_bytes),
        };
        Ok(Extracted {
            text,
            title,
            charset,
            truncated,
        })
    }
}

fn cut(mut text: String, most: usize) -> (String, Option<String>, bool) {
    let truncated = text.len() > most;
    text.truncate(text.floor_char_boundary(most));
    (text, None, truncated)
}

/// Without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|it| !it.is_control() || matches!(it, '\n' | '\t' | '\r'))
        .collect()
}
