//! Patterns of destinations: `name`, `name:port`, `*.name` (any name below, not the name itself), or
//! `*`. Names are compared in lower case, without a last dot.

use std::fmt;

const BYTES_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    name: Name,
    port: Option<u16>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Any,
    Below(String),
    Exact(String),
}

impl HostPattern {
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("is longer than {BYTES_MAX} bytes"));
        }
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'/')
        {
            return Err("is not a destination; write `host` or `host:port`".to_owned());
        }
        let (name, port) = split(text);
        let port = match port {
            None | Some("*") => None,
            Some(port) => match port.parse::<u16>() {
                Ok(number) if number > 0 => Some(number),
                Ok(_) | Err(_) => return Err("has no port between 1 and 65535".to_owned()),
            },
        };
        let name = match name {
            // A last dot is no label.
            "*." => String::new(),
            name => clean(name),
        };
        let name = match name.strip_prefix("*.") {
            None if name == "*" => Name::Any,
            Some(below) if !below.is_empty() && !below.contains('*') => {
                Name::Below(below.to_owned())
            }
            None if !name.is_empty() && !name.contains('*') => Name::Exact(name),
            Some(_) | None => {
                return Err("has a `*` elsewhere than as its first label, or no name".to_owned());
            }
        };
        Ok(Self {
            name,
            port,
            text: text.to_owned(),
        })
    }

    /// Without a port, the name alone is compared: whoever only asks for an address names none.
    pub(crate) fn covers(&self, host: &str, port: Option<u16>) -> bool {
        let host = clean(host);
        let name = match &self.name {
            Name::Any => true,
            Name::Below(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            Name::Exact(name) => *name == host,
        };
        name && (self.port.is_none() || port.is_none() || self.port == port)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn clean(name: &str) -> String {
    let name = name.strip_prefix('[').unwrap_or(name);
    let name = name.strip_suffix(']').unwrap_or(name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// An address in brackets keeps its colons.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        Some(_) | None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_means_names_below_and_not_the_name_itself() {
        for (pattern, host, port, expected) in [
            ("*.x.org:443", "a.x.org", Some(443), true),
            ("*.x.org:443", "a.x.org", Some(80), false),
            ("*.x.org", "x.org", Some(443), false),
            ("*.x.org", "ax.org", Some(443), false),
            ("x.org", "X.ORG.", Some(1), true),
            ("x.org:443", "x.org", None, true),
            ("*", "10.0.0.1", Some(1), true),
            ("[::1]:80", "::1", Some(80), true),
            ("[::1]:80", "::2", Some(80), false),
        ] {
            let found = HostPattern::new(pattern).unwrap().covers(host, port);
            assert_eq!(found, expected, "{pattern} {host}");
        }
        for bad in ["", "a.*.org", "x:0", "x:99999", "a b", "x/y", "*.", ":80"] {
            assert!(HostPattern::new(bad).is_err(), "{bad}");
        }
    }
}
