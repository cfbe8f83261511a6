//! `hosts` and `no_network`: where requests may go.

use glovebox_model::{Approach, Deed, FailureCode, HostPattern};

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;

const SHOWN: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    allowed: Vec<HostPattern>,
}

impl Hosts {
    pub const PATTERNS_MAX: usize = 64;

    /// None without any: that is `no_network`.
    pub fn new(allowed: Vec<HostPattern>) -> Option<Self> {
        let fits = (1..=Self::PATTERNS_MAX).contains(&allowed.len());
        fits.then_some(Self { allowed })
    }

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let allowed: Vec<_> = self.allowed.iter().map(|it| format!("`{it}`")).collect();
        let way_out = format!("reach nothing but {}", allowed.join(", "));
        only(evidence, &self.allowed, &way_out)
    }
}

pub(super) fn none(evidence: &Evidence<'_>) -> Found {
    only(evidence, &[], "do it without the network")
}

fn only(evidence: &Evidence<'_>, allowed: &[HostPattern], way_out: &str) -> Found {
    let covered = |host: &str, port| allowed.iter().any(|it| it.means(host, port));
    let mut wrong: Vec<String> = Vec::new();
    for effect in evidence.effects()? {
        let other = match &effect.deed {
            Deed::NetworkRequest(it) => {
                // Whoever asks for an address speaks to the resolver, about a name.
                let port = (it.approach != Approach::Dns).then_some(it.port);
                (!covered(&it.host, port)).then(|| format!("{}:{}", it.host, it.port))
            }
            Deed::ExternalApiCall(it) => match authority(&it.target) {
                Some((host, port)) if covered(host, port) => None,
                Some(_) | None => Some(it.target.clone()),
            },
            Deed::FilesystemWrite(_)
            | Deed::FilesystemRead(_)
            | Deed::StateMutation(_)
            | Deed::ProcessSpawn(_) => None,
        };
        if let Some(other) = other
            && !wrong.contains(&other)
        {
            wrong.push(other);
            if wrong.len() == SHOWN {
                break;
            }
        }
    }
    if wrong.is_empty() {
        return Ok(Finding::good());
    }
    let wrong: Vec<_> = wrong.iter().map(|it| format!("`{it}`")).collect();
    let reason = format!("it reaches {}", wrong.join(", "));
    Err(Finding::bad(FailureCode::OutOfScope, reason, way_out))
}

/// The destination of a URL that a tool named. What is none is no destination that was allowed. It is
/// read strictly, since what it says is allowed by.
fn authority(target: &str) -> Option<(&str, Option<u16>)> {
    let (scheme, rest) = target.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        // Without a port that is known, no pattern with a port covers it.
        _ => 0,
    };
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => Some((name, Some(port.parse().ok()?))),
        Some(_) | None => Some((host, Some(usual))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_its_destination() {
        for (target, expected) in [
            ("https://api.x.org/v1", Some(("api.x.org", Some(443)))),
            ("http://u:p@x.org:8080/", Some(("x.org", Some(8080)))),
            ("redis://x.org", Some(("x.org", Some(0)))),
            ("https://[::1]/", Some(("[::1]", Some(443)))),
            ("https://x.org:port/", None),
            ("orders", None),
        ] {
            assert_eq!(authority(target), expected, "{target}");
        }
    }
}
