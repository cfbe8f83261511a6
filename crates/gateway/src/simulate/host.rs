//! Whom an answer or a fault is for.

use glovebox_egress::Host;
use glovebox_model::{NamePattern, Result};

use super::check::{refuse, shown};

/// A name or an address, every name below one, or every one; in the canonical form of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostRule(String);

impl HostRule {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            refuse(format!("`{}` is not a host", shown(text)))
                .hint("write a name, `*.example.com` for every name below one, or `*`")
        };
        let host = |text| Host::parse(text).map_err(|_| wrong());
        let rule = match NamePattern::of(text).ok_or_else(wrong)? {
            NamePattern::Any => text.to_owned(),
            NamePattern::Below(parent) => match host(parent)?.name() {
                None => return Err(wrong()),
                Some(name) => format!("*.{name}"),
            },
            NamePattern::Exact(name) => bare(&host(name)?.to_string()).to_owned(),
        };
        Ok(Self(rule))
    }

    /// `host` in its canonical form, an IPv6 address with or without brackets.
    pub(crate) fn fits(&self, host: &str) -> bool {
        NamePattern::of(&self.0).is_some_and(|it| it.means(bare(host)))
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
