//! One repository of a registry, spoken to as anybody: whoever wants a token is asked for one, and it
//! goes to that registry alone.

use std::time::Duration;

use glovebox_egress::client::{Answer, Authorization, Client, Fetch, Followed, RedirectRules};
use glovebox_egress::{Refusal, Scheme, Target, vet_url};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::image::ImageDigest;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::manifest::{ACCEPTED, Content, DOCUMENT_MOST, Descriptor, unfit};
use super::reference::{ImageReference, Which};

const DOCUMENT_WITHIN: Duration = Duration::from_secs(60);
const TOKEN_MOST: usize = 64 << 10;
/// Layers may lie elsewhere, as with a network of mirrors.
const REDIRECTS: usize = 5;
/// An index may list indexes, but not without end.
const DEPTH: usize = 4;
/// A layer that comes more slowly is given up.
const SLOWEST: u64 = 64 << 10;

pub(super) struct Registry<'c> {
    client: &'c Client,
    base: String,
    repository: String,
    authorization: Option<Authorization>,
}

/// What is to be fetched, in this order, and the manifest that says so.
pub(super) struct Found {
    pub(super) manifest: Vec<u8>,
    pub(super) digest: ImageDigest,
    pub(super) media_type: String,
    pub(super) parts: Vec<Descriptor>,
}

impl<'c> Registry<'c> {
    pub(super) fn new(client: &'c Client, reference: &ImageReference, scheme: Scheme) -> Self {
        let registry = reference.registry();
        Self {
            client,
            base: format!("{}://{registry}", scheme.as_str()),
            repository: reference.repository(),
            authorization: None,
        }
    }

    /// From a tag or a digest to the manifest of the image for this machine.
    pub(super) async fn find(&mut self, which: &Which) -> Result<Found> {
        let mut wanted = match which {
            Which::Tag(tag) => (tag.clone(), None),
            Which::Digest(digest) => (digest.to_string(), Some(digest.clone())),
        };
        for _ in 0..DEPTH {
            let (name, expected) = wanted;
            let (text, media_type) = self.manifest(&name).await?;
            let digest = digest_of(&text)?;
            if expected.as_ref().is_some_and(|it| *it != digest) {
                return Err(mismatch(&name));
            }
            match Content::read(&text)? {
                Content::Index(one) => wanted = (one.digest.to_string(), Some(one.digest)),
                Content::Manifest(parts) => {
                    return Ok(Found {
                        manifest: text,
                        digest,
                        media_type,
                        parts,
                    });
                }
            }
        }
        Err(unfit("its indexes lie too deeply within one another"))
    }

    async fn manifest(&mut self, name: &str) -> Result<(Vec<u8>, String)> {
        let deadline = Instant::now() + DOCUMENT_WITHIN;
        let answer = self
            .get(&format!("manifests/{name}"), ACCEPTED, deadline)
            .await?;
        let kind = answer.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        if !ACCEPTED.split(", ").any(|it| it == kind) {
            let shown: String = kind.chars().take(80).flat_map(char::escape_debug).collect();
            return Err(unfit(&format!("its manifest is of the kind `{shown}`")));
        }
        let body = answer.read(DOCUMENT_MOST).await.map_err(told)?;
        Ok((body.bytes, kind))
    }

    /// A layer or a configuration, as it comes. The caller counts and compares.
    pub(super) async fn blob(&mut self, part: &Descriptor) -> Result<Answer> {
        let time = Duration::from_secs(part.size / SLOWEST) + DOCUMENT_WITHIN;
        let path = format!("blobs/{}", part.digest);
        self.get(&path, "*/*", Instant::now() + time).await
    }

    async fn get(&mut self, path: &str, accept: &str, deadline: Instant) -> Result<Answer> {
        let url = format!("{}/v2/{}/{path}", self.base, self.repository);
        let target = vet_url(&url, &self.client.vetter.private).map_err(told)?;
        let answer = self.fetch(target.clone(), accept, deadline).await?;
        let answer = match (answer.status, answer.header("www-authenticate")) {
            // Tokens end, also between two layers. Once for each request: one that is refused when it
            // is new will not get better. The old one is nobody else's business.
            (401, Some(challenge)) => {
                self.authorization = None;
                self.authorization = Some(self.token(challenge, deadline).await?);
                self.fetch(target, accept, deadline).await?
            }
            _ => answer,
        };
        match answer.status {
            200 => Ok(answer),
            401 | 403 => Err(Error::new(
                Code::Forbidden,
                Stage::Open,
                format!("the registry lets nobody read `{}` without an account", self.repository),
            )
            .hint("only public images can be pulled; `skopeo copy` and `glovebox image import` bring in others")),
            404 => Err(Error::new(
                Code::NotFound,
                Stage::Open,
                format!("the registry has no such `{path}` in `{}`", self.repository),
            )
            .hint("see that its name and its tag are right")),
            status => Err(unreachable(&format!("it answered {status}"))),
        }
    }

    async fn fetch(&self, target: Target, accept: &str, deadline: Instant) -> Result<Answer> {
        let fetch = Fetch {
            target,
            accept: accept.to_owned(),
            authorization: self.authorization.clone(),
        };
        let rules = RedirectRules {
            ports: &self.client.vetter.private,
            domains: &[],
            policy: None,
            // A registry signs the URLs that it redirects to.
            url: None,
            redirects: REDIRECTS,
        };
        let Followed { answer, .. } = self
            .client
            .fetch(fetch, rules, deadline)
            .await
            .map_err(told)?;
        Ok(answer)
    }

    /// The token that anybody gets.
    async fn token(&self, challenge: &str, deadline: Instant) -> Result<Authorization> {
        #[derive(Deserialize)]
        struct Token {
            token: Option<String>,
            access_token: Option<String>,
        }
        let url = token_url(challenge, &self.repository)
            .ok_or_else(|| unreachable("it asks for something else than a token"))?;
        // What was asked over TLS is not told in the clear.
        if self.base.starts_with("https:") && !url.starts_with("https:") {
            return Err(unreachable(
                "it sends us to an unprotected place for a token",
            ));
        }
        let target = vet_url(&url, &self.client.vetter.private).map_err(told)?;
        let answer = self.fetch(target, "application/json", deadline).await?;
        if answer.status != 200 {
            let status = answer.status;
            return Err(unreachable(&format!("it gave us no token: {status}")));
        }
        let body = answer.read(TOKEN_MOST).await.map_err(told)?;
        let token = serde_json::from_slice::<Token>(&body.bytes).ok();
        let token = token.and_then(|it| it.token.or(it.access_token));
        let token = token.ok_or_else(|| unreachable("it gave us no token"))?;
        Authorization::new(&format!("Bearer {token}")).map_err(told)
    }
}

/// Where `Bearer realm="…",service="…",scope="…"` sends us.
fn token_url(challenge: &str, repository: &str) -> Option<String> {
    let rest = challenge
        .split_once(' ')
        .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"))?
        .1;
    let value = |name: &str| {
        let from = rest.find(&format!("{name}=\""))? + name.len() + 2;
        rest[from..].split('"').next()
    };
    let realm = value("realm").filter(|it| !it.contains(['?', '#']))?;
    let own = format!("repository:{repository}:pull");
    // Read access to this repository, whatever the registry would have us ask for.
    let mut url = format!("{realm}?scope={}", encoded(&own));
    if let Some(service) = value("service") {
        url.push_str(&format!("&service={}", encoded(service)));
    }
    Some(url)
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    text.bytes().fold(String::new(), |mut url, byte| {
        match plain(byte) {
            true => url.push(char::from(byte)),
            false => url.push_str(&format!("%{byte:02X}")),
        }
        url
    })
}

pub(super) fn digest_of(bytes: &[u8]) -> Result<ImageDigest> {
    hex_digest(&Sha256::digest(bytes))
}

pub(super) fn hex_digest(digest: &[u8]) -> Result<ImageDigest> {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}").parse()
}

pub(super) fn mismatch(name: &str) -> Error {
    unfit(&format!("`{name}` is not what its name says"))
        .hint("the registry or something on the way changed it; try another one")
}

/// What `egress` refused or could not do.
pub(super) fn told(refusal: Refusal) -> Error {
    let error = unreachable(&refusal.message).caused_by(refusal.code);
    match refusal.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn unreachable(why: &str) -> Error {
    Error::new(
        Code::BackendUnavailable,
        Stage::Open,
        format!("the registry cannot be used: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_where_tokens_are() {
        let challenge = "Bearer realm=\"https://auth.example.com/token\",service=\"reg & co\",scope=\"everything\"";
        assert_eq!(
            token_url(challenge, "a/b").unwrap(),
            "https://auth.example.com/token?scope=repository:a/b:pull&service=reg%20%26%20co"
        );
        for bad in [
            "Basic realm=\"x\"",
            "Bearer",
            "Bearer service=\"x\"",
            "Bearer realm=\"https://a/?next=\"",
        ] {
            assert_eq!(token_url(bad, "a"), None, "{bad}");
        }
    }
}
