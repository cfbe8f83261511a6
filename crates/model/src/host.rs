//! Destinations and patterns of them. There is one meaning of `*.x`: every name below `x`, and not `x`
//! itself. Names are compared in lower case, without a last dot.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::IdError;

/// What a host is written as in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamePattern<'a> {
    /// `*`
    Any,
    /// `*.x`
    Below(&'a str),
    Exact(&'a str),
}

impl<'a> NamePattern<'a> {
    /// None without a name, and for a `*` elsewhere than as the first label.
    pub fn of(text: &'a str) -> Option<Self> {
        let (name, pattern) = match text.strip_prefix("*.") {
            _ if text == "*" => return Some(Self::Any),
            Some(parent) => (parent, Self::Below(parent)),
            None => (text, Self::Exact(text)),
        };
        (!name.is_empty() && !name.contains('*')).then_some(pattern)
    }

    pub fn means(self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Below(parent) => is_below(name, parent),
            Self::Exact(mine) => mine == name,
        }
    }

    /// Whether every name that the other means is meant by this one.
    pub fn covers(self, other: NamePattern<'_>) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Below(mine), NamePattern::Below(theirs)) => {
                mine == theirs || is_below(theirs, mine)
            }
            (Self::Below(_) | Self::Exact(_), NamePattern::Exact(name)) => self.means(name),
            (Self::Below(_) | Self::Exact(_), NamePattern::Any)
            | (Self::Exact(_), NamePattern::Below(_)) => false,
        }
    }

    /// Whether some name is meant by both. Names form a tree: then one of them covers the other.
    pub fn overlaps(self, other: NamePattern<'_>) -> bool {
        self.covers(other) || other.covers(self)
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent)
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|rest| !rest.is_empty())
}

/// A destination a sandbox may reach: a name, never an address, with its port; or `*.name` with a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPort {
    host: String,
    port: u16,
}

impl HostPort {
    pub fn host(&self) -> &str {
        &self.host
    }
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name below which every name is meant, if it is a pattern.
    pub fn below(&self) -> Option<&str> {
        self.host.strip_prefix("*.")
    }

    /// Whether it means a name, at whatever port.
    pub fn means_name(&self, name: &str) -> bool {
        self.pattern().means(name)
    }

    pub fn means(&self, name: &str, port: u16) -> bool {
        self.port == port && self.means_name(name)
    }

    /// Whether everything that the other means is meant by this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.port == other.port && self.pattern().covers(other.pattern())
    }

    fn pattern(&self) -> NamePattern<'_> {
        match self.below() {
            Some(parent) => NamePattern::Below(parent),
            None => NamePattern::Exact(&self.host),
        }
    }
}

impl FromStr for HostPort {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let refuse = |why| {
            let shown = text.chars().take(80).flat_map(char::escape_debug).collect();
            Err(IdError {
                what: "destination",
                shown,
                why,
            })
        };
        let Some((host, port)) = text.rsplit_once(':') else {
            return refuse("has no port; write `host:port`");
        };
        let Some(port) = port.parse::<u16>().ok().filter(|port| *port != 0) else {
            return refuse("has no port between 1 and 65535");
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if name.is_empty() || name.len() > 253 || !name.split('.').all(label) {
            return refuse("is not a host name");
        }
        // A last label that is a number makes the whole an IPv4 address to URL parsers.
        if name
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
        {
            return refuse("is an address; only names can be allowed");
        }
        Ok(Self { host, port })
    }
}

impl TryFrom<String> for HostPort {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<HostPort> for String {
    fn from(it: HostPort) -> String {
        it.to_string()
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A destination that people write into a rule, or one that a command names: `name`, `*.name`, `*` or an
/// address, with a port, or with `*` or nothing for any port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    host: String,
    port: Option<u16>,
    text: String,
}

impl HostPattern {
    pub const BYTES_MAX: usize = 256;

    /// As people write it into a configuration. What could never match is refused.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > Self::BYTES_MAX {
            return Err(format!("is longer than {} bytes", Self::BYTES_MAX));
        }
        let pattern = Self::of_destination(text)?;
        match text.contains("..") || text.chars().any(char::is_control) {
            true => Err(NO_DESTINATION.to_owned()),
            false => Ok(pattern),
        }
    }

    /// A destination as a command or a tool names it, however oddly: rules that deny must see it.
    pub fn of_destination(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (name, port) = split_port(&lower)?;
        let host = match name {
            // A last dot is no label.
            "*." => name,
            name => without_brackets(name.trim_end_matches('.')),
        };
        if NamePattern::of(host).is_none() {
            return Err("has a `*` elsewhere than as its first label".to_owned());
        }
        if lower.chars().any(|it| it.is_whitespace() || it == '/') {
            return Err(NO_DESTINATION.to_owned());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            text: text.to_owned(),
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// None: any.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether it means a host. Without a port, the name alone is compared: a question to the DNS has
    /// none.
    pub fn means(&self, host: &str, port: Option<u16>) -> bool {
        let host = host.to_ascii_lowercase();
        let host = without_brackets(&host);
        let host = host.strip_suffix('.').unwrap_or(host);
        let port = self.port.is_none() || port.is_none() || self.port == port;
        port && self.pattern().means(host)
    }

    /// Whether everything that the other means is meant by this one.
    pub fn covers(&self, other: &Self) -> bool {
        let port = self.port.is_none() || self.port == other.port;
        port && self.pattern().covers(other.pattern())
    }

    /// Whether some destination is meant by both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let port = self.port.is_none() || other.port.is_none() || self.port == other.port;
        port && self.pattern().overlaps(other.pattern())
    }

    fn pattern(&self) -> NamePattern<'_> {
        NamePattern::of(&self.host).unwrap_or(NamePattern::Exact(&self.host))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const NO_DESTINATION: &str = "is not a destination; write `host` or `host:port`";

/// An address in brackets keeps its colons.
fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        Some(_) | None => return Ok((text, None)),
    };
    match port {
        "*" => Ok((name, None)),
        port => match port.parse::<u16>() {
            Ok(number) if number > 0 => Ok((name, Some(number))),
            Ok(_) | Err(_) => Err("has no port between 1 and 65535".to_owned()),
        },
    }
}

/// `[::1]` and `::1` are one address.
fn without_brackets(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.filter(|it| it.contains(':')).unwrap_or(host)
}

/// Names below these are of a network's own or of none, whatever a resolver says of them: RFC 6761,
/// 6762, 7686, 8375, 9476, what ICANN keeps out of the root (`internal`, `corp`, `home`, `mail`), and
/// what routers and clusters give out. `test` and `example` are not here: the public DNS has no such
/// names, so they lead nowhere by themselves.
const PRIVATE_ENDINGS: &[&str] = &[
    "alt",
    "consul",
    "corp",
    "dhcp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "localnet",
    "mail",
    "onion",
    "private",
    "router",
    "svc",
    "workgroup",
];

/// Whether no public server has a name. A single label is private too: a search domain would complete it.
pub fn is_private_name(name: &str) -> bool {
    !name.contains('.') || private_ending(name).is_some()
}

/// The ending by which a name is known not to be public.
pub fn private_ending(name: &str) -> Option<&'static str> {
    let ends = |ending: &&&str| name == **ending || is_below(name, ending);
    PRIVATE_ENDINGS.iter().find(ends).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host(text: &str) -> HostPattern {
        HostPattern::new(text).unwrap()
    }

    #[test]
    fn destinations_are_names_with_ports() {
        for text in [
            "api.example.com:443",
            "*.example.com:443",
            "EXAMPLE.com.:80",
            "localhost:1",
        ] {
            assert!(text.parse::<HostPort>().is_ok(), "{text}");
        }
        for text in [
            "example.com",
            "example.com:0",
            "example.com:99999",
            "10.0.0.1:80",
            "[::1]:80",
            "0x7f000001:80x",
            "a..b:80",
            "-a.com:80",
            ":80",
            "*:80",
            "a.*.com:80",
            "user@h:80",
            "127.1:80",
            "2130706433:80",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn a_star_means_names_below_and_not_the_name_itself() {
        for (rule, other, covers, overlaps) in [
            ("*.x.org:443", "a.x.org:443", true, true),
            ("*.x.org:443", "a.b.x.org:443", true, true),
            ("*.x.org:443", "x.org:443", false, false),
            ("*.x.org:443", "ax.org:443", false, false),
            ("*.x.org", "A.X.ORG.:443", true, true),
            ("x.org:443", "x.org:80", false, false),
            ("x.org", "x.org:80", true, true),
            ("x.org:80", "x.org", false, true),
            ("a.x.org:443", "*.x.org:443", false, true),
            ("*.b.x.org", "*.x.org:1", false, true),
            ("*.b.x.org", "*.c.x.org", false, false),
            ("*", "10.0.0.1:80", true, true),
            ("*:80", "*.x.org:80", true, true),
            ("*.x.org", "10.0.0.1:80", false, false),
            ("[::1]:80", "[::1]:80", true, true),
            ("[x.org]", "x.org", false, false),
        ] {
            assert_eq!(host(rule).covers(&host(other)), covers, "{rule} {other}");
            assert_eq!(
                host(rule).overlaps(&host(other)),
                overlaps,
                "{rule} {other}"
            );
        }
        for bad in [
            "",
            "a.*.org",
            "x:0",
            "x:99999",
            "a b",
            "x/y",
            "*.",
            "**.x",
            ":80",
            "x.org..",
            "x..org",
            "x\u{1}",
            &"x".repeat(257),
        ] {
            assert!(HostPattern::new(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn a_host_is_meant_by_its_name_and_its_port_where_it_has_one() {
        for (pattern, name, port, expected) in [
            ("*.x.org:443", "a.x.org", Some(443), true),
            ("*.x.org:443", "a.x.org", Some(80), false),
            ("*.x.org", "x.org", Some(443), false),
            ("*.x.org", ".x.org", Some(443), false),
            ("*.x.org", "ax.org", Some(443), false),
            ("x.org", "X.ORG.", Some(1), true),
            ("x.org", "x.org..", Some(1), false),
            ("x.org:443", "x.org", None, true),
            ("*", "10.0.0.1", Some(1), true),
            ("[::1]:80", "::1", Some(80), true),
            ("[::1]:80", "[::1]", Some(80), true),
            ("[::1]:80", "::2", Some(80), false),
        ] {
            assert_eq!(
                host(pattern).means(name, port),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn a_destination_is_read_however_it_is_written() {
        for odd in ["x.org..", "X.org.:443", "x.org:*"] {
            let odd = HostPattern::of_destination(odd).unwrap();
            assert!(host("x.org").overlaps(&odd), "{odd}");
        }
        let odd = HostPattern::of_destination("a..x.org").unwrap();
        assert!(host("*.x.org").overlaps(&odd));
    }

    #[test]
    fn private_names_are_known_by_their_ending() {
        for (name, ending) in [
            ("localhost", Some("localhost")),
            ("a.localhost", Some("localhost")),
            ("router.home.arpa", Some("home.arpa")),
            ("x.y.internal", Some("internal")),
            ("corp.example.com", None),
            ("notlocal.io", None),
            ("home-x.io", None),
        ] {
            assert_eq!(private_ending(name), ending, "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_covered_overlaps_and_what_is_meant_by_the_inner_is_by_the_outer(
            outer in "(\\*|(\\*\\.)?[ab](\\.[ab]){0,2})(:[12])?",
            inner in "(\\*|(\\*\\.)?[ab](\\.[ab]){0,2})(:[12])?",
            name in "[ab](\\.[ab]){0,3}",
            port in 1..3_u16,
        ) {
            let (outer, inner) = (host(&outer), host(&inner));
            let both = outer.means(&name, Some(port)) && inner.means(&name, Some(port));
            if outer.covers(&inner) {
                prop_assert!(outer.overlaps(&inner));
                prop_assert!(outer.means(&name, Some(port)) || !inner.means(&name, Some(port)));
            }
            prop_assert!(outer.overlaps(&inner) || !both);
            prop_assert_eq!(outer.overlaps(&inner), inner.overlaps(&outer));
        }
    }
}
