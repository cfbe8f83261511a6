//! Whom an answer or a fault is for.

use glovebox_egress::Host;
use glovebox_model::Result;

use super::check::{refuse, shown};

/// A name or an address, every name below one, or every one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostRule {
    Any,
    Below(String),
    Exact(String),
}

impl HostRule {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let wrong = || {
            refuse(format!("`{}` is not a host", shown(text)))
                .hint("write a name, `*.example.com` for every name below one, or `*`")
        };
        let (name, below) = match text.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (text, false),
        };
        let host = Host::parse(name).map_err(|_| wrong())?;
        match (below, host.name()) {
            (true, None) => Err(wrong()),
            (true, Some(name)) => Ok(Self::Below(name.to_owned())),
            (false, _) => Ok(Self::Exact(bare(&host.to_string()).to_owned())),
        }
    }

    /// `host` in its canonical form, an IPv6 address with or without brackets.
    pub(crate) fn fits(&self, host: &str) -> bool {
        let host = bare(host);
        match self {
            Self::Any => true,
            Self::Exact(name) => host == name,
            Self::Below(parent) => host
                .strip_suffix(parent.as_str())
                .and_then(|it| it.strip_suffix('.'))
                .is_some_and(|it| !it.is_empty()),
        }
    }
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_name_what_is_below_one_or_all() {
        for (rule, host, fits) in [
            ("*", "a.test", true),
            ("*", "127.0.0.1", true),
            ("A.test.", "a.test", true),
            ("a.test", "b.a.test", false),
            ("*.a.test", "b.a.test", true),
            ("*.a.test", "a.test", false),
            ("*.a.test", "ba.test", false),
            ("93.184.216.34", "93.184.216.34", true),
            ("[2001:db8::1]", "2001:db8::1", true),
            ("[2001:db8::1]", "[2001:db8::1]", true),
        ] {
            let it = HostRule::parse(rule).unwrap();
            assert_eq!(it.fits(host), fits, "{rule} {host}");
        }
        for wrong in [
            "",
            "*.",
            "*.*",
            "a*",
            "a.*.test",
            "*.127.0.0.1",
            "a test",
            "**",
        ] {
            assert!(HostRule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
