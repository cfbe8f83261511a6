//! A host in its one spelling.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use glovebox_model::{HostPort, private_ending};

use crate::refusal::{Refusal, RefusalCode, shown};

/// A name, or an address that was written as one in any of the forms that a URL may have
/// (`0x7f.1`, `[::ffff:7f00:1]`, full-width digits).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(HostName),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// Lower-case ASCII labels, without a dot at the end; never an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

const NAME_MOST: usize = 253;
const LABEL_MOST: usize = 63;
/// Before the canonical form is made: an international name shrinks, nothing real is this long.
const TEXT_MOST: usize = 1024;

impl Host {
    /// The canonical form of what stands for a host in a URL, a CONNECT line or a question to the
    /// DNS. Whether it may be reached is asked later: by name here, by address in the vetter.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refuse = |why: &str| {
            Err(Refusal::new(
                RefusalCode::InvalidUrl,
                format!("`{}` is not a host: {why}", shown(text)),
            )
            .hint("write a name such as `example.com`"))
        };
        if text.is_empty() {
            return refuse("it is empty");
        }
        if text.len() > TEXT_MOST {
            return refuse("it is too long");
        }
        // Decoders disagree on what an encoded host is; nobody needs one.
        if text.contains('%') {
            return refuse("it is percent-encoded");
        }
        if text.contains(['\\', '@', '/', '?', '#']) || text.chars().any(char::is_control) {
            return refuse("it has characters that no name has");
        }
        let parsed = match url::Host::parse(text) {
            Ok(parsed) => parsed,
            Err(error) => return refuse(&error.to_string()),
        };
        match parsed {
            url::Host::Ipv4(address) => Ok(Self::V4(address)),
            url::Host::Ipv6(address) => Ok(Self::V6(address)),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                match wrong_name(name) {
                    Some(why) => refuse(why),
                    None => Ok(Self::Name(HostName(name.to_owned()))),
                }
            }
        }
    }

    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name.as_str()),
            Self::V4(_) | Self::V6(_) => None,
        }
    }

    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::V4(address) => Some((*address).into()),
            Self::V6(address) => Some((*address).into()),
        }
    }

    /// Refuses names that cannot be public: single labels, which a search domain would complete,
    /// and those of private networks. An address is judged by the table of ranges instead.
    pub fn check_name(&self) -> Result<(), Refusal> {
        let Some(name) = self.name() else {
            return Ok(());
        };
        let refuse = |why: String| {
            Err(Refusal::new(
                RefusalCode::DestinationBlocked,
                format!("`{}` is not reached: {why}", shown(name)),
            )
            .hint("an operator can list the very `host:port` in `[network] private`"))
        };
        if let Some(ending) = private_ending(name) {
            return refuse(format!("names of `{ending}` are private"));
        }
        match name.contains('.') {
            true => Ok(()),
            false => refuse("it is a single label, which only a private network knows".to_owned()),
        }
    }

    /// Whether a rule of an allowlist means this host, at whatever port. An address is meant by none.
    pub fn is_meant_by(&self, rule: &HostPort) -> bool {
        self.name().is_some_and(|name| rule.means_name(name))
    }
}

fn wrong_name(name: &str) -> Option<&'static str> {
    if name.len() > NAME_MOST {
        return Some("a name has at most 253 characters");
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Some("a label is empty");
        }
        if label.len() > LABEL_MOST {
            return Some("a label has at most 63 characters");
        }
        let known = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        };
        if !label.bytes().all(known) || label.starts_with('-') || label.ends_with('-') {
            return Some("labels have letters, digits, `-` inside, and `_`");
        }
    }
    None
}

/// As it stands in a URL: an IPv6 address in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::V4(address) => write!(f, "{address}"),
            Self::V6(address) => write!(f, "[{address}]"),
        }
    }
}
