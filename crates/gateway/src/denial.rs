//! A refusal: what was refused, why, and the way out.

use glovebox_egress::{Refusal, RefusalCode};
use glovebox_model::{HostPort, NetCode};
use hyper::StatusCode;

use crate::destination::Destination;
use crate::previewed::AGAIN;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Refused,
    /// It was allowed and did not come about.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    kind: Kind,
    pub(crate) code: NetCode,
    /// Lower case, no full stop.
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
}

impl Denial {
    /// With the hint that the code has by itself.
    pub(crate) fn of(code: NetCode, host: &str, port: u16, why: impl Into<String>) -> Self {
        Self {
            kind: Kind::Refused,
            code,
            why: why.into(),
            hint: hint_for(code, host, port),
        }
    }

    pub(crate) fn new(code: NetCode, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: Kind::Refused,
            code,
            why: why.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn limit(name: &str, most: u64) -> Self {
        Self::new(
            NetCode::Other,
            format!("the limit `{name}` of {most} is used up"),
            format!("run it again with a higher `{name}`"),
        )
    }

    pub(crate) fn mismatch(destination: &Destination, why: impl Into<String>) -> Self {
        Self::of(
            NetCode::SniMismatch,
            destination.name(),
            destination.port(),
            why,
        )
    }

    /// Why an allowed destination was not reached.
    pub(crate) fn unreached(refusal: Refusal) -> Self {
        let code = match refusal.code {
            RefusalCode::InvalidUrl
            | RefusalCode::UnsupportedScheme
            | RefusalCode::UserinfoNotAllowed
            | RefusalCode::PortNotAllowed
            | RefusalCode::DestinationBlocked
            | RefusalCode::RedirectBlocked => NetCode::InvalidDestination,
            RefusalCode::DnsFailed => NetCode::DnsDenied,
            RefusalCode::UnsupportedMethod
            | RefusalCode::RedirectLimitExceeded
            | RefusalCode::TlsError
            | RefusalCode::ConnectionTimeout
            | RefusalCode::ReadTimeout
            | RefusalCode::ResponseTooLarge
            | RefusalCode::UnsupportedContentType
            | RefusalCode::DecodeError
            | RefusalCode::ExtractFailed
            | RefusalCode::SuspectedSecretInUrl
            | RefusalCode::RateLimited => NetCode::Other,
        };
        let hint = match code {
            _ if refusal.code == RefusalCode::TlsError => {
                "its certificate is not trusted; an operator can add who signed it: `[network] extra_ca`"
                    .to_owned()
            }
            NetCode::Other => "it is allowed and did not answer; try again later".to_owned(),
            _ => "it is allowed and cannot be reached by that name".to_owned(),
        };
        Self {
            kind: match code {
                NetCode::InvalidDestination => Kind::Refused,
                _ => Kind::Failed,
            },
            code,
            why: refusal.message,
            hint: Some(refusal.hint.unwrap_or(hint)),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            Kind::Refused => StatusCode::FORBIDDEN,
            Kind::Failed => StatusCode::BAD_GATEWAY,
        }
    }

    /// For whoever can read a text: three short lines.
    pub(crate) fn text(&self, host: &str, port: u16) -> String {
        let mut text = format!(
            "glovebox refused `{host}:{port}`: {}\nwhy: {}\n",
            self.code, self.why
        );
        if let Some(hint) = &self.hint {
            text.push_str("hint: ");
            text.push_str(hint);
            text.push('\n');
        }
        text
    }
}

/// The way out of a refusal. None where there is nothing to be done.
pub fn hint_for(code: NetCode, host: &str, port: u16) -> Option<String> {
    let rule = format!("{host}:{port}").parse::<HostPort>().ok();
    let missing = |rule: &HostPort| {
        format!(
            "the missing rule is `allow_net = [\"{rule}\"]`; ask for it with `--net allowlist --allow-net {rule} --ask`"
        )
    };
    match code {
        NetCode::Ok => None,
        NetCode::NetModeNone => Some(match &rule {
            Some(rule) => format!("there is no network; {}", missing(rule)),
            None => "there is no network; ask for one with `--net allowlist --allow-net host:port --ask`".to_owned(),
        }),
        NetCode::NotInAllowlist | NetCode::PortNotAllowed | NetCode::ApprovalRequired => Some(match &rule {
            Some(rule) => missing(rule),
            None => "the list holds names, as `host:port`".to_owned(),
        }),
        NetCode::InvalidDestination => {
            Some("use the host's name: an address by itself is never reached".to_owned())
        }
        NetCode::ProxyRequired => {
            Some("use TCP, or the proxy that `HTTPS_PROXY` names".to_owned())
        }
        NetCode::SniMismatch => Some(format!(
            "the handshake and every request must name `{host}`, which was dialled"
        )),
        NetCode::DnsDenied => Some(
            "only public names exist here; an operator can list a private `host:port` in `[network] private`, and the run must allow it".to_owned(),
        ),
        NetCode::PolicyExpired => {
            Some("the time for the network is over; run it again with more `--network-time`".to_owned())
        }
        NetCode::NotPreviewed => Some(AGAIN.to_owned()),
        NetCode::InternalError => Some("this is a fault of glovebox; its log says more".to_owned()),
        NetCode::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_way_out() {
        for code in NetCode::ALL {
            let hint = hint_for(code, "a.test", 443);
            assert_eq!(
                hint.is_none(),
                matches!(code, NetCode::Ok | NetCode::Other),
                "{code}"
            );
        }
        let hint = hint_for(NetCode::NotInAllowlist, "a.test", 443).unwrap();
        assert!(hint.contains("allow_net = [\"a.test:443\"]"), "{hint}");
        assert!(
            hint.contains("--net allowlist --allow-net a.test:443 --ask"),
            "{hint}"
        );
        let hint = hint_for(NetCode::NotInAllowlist, "127.0.0.1", 443).unwrap();
        assert!(!hint.contains("127.0.0.1"), "{hint}");
    }
}
