//! Patterns of destinations: `name:port`, `*.name:port` (any name below, not the name itself), or
//! `*`; the port may be `*` or left out for any. Names are compared in lower case, without a last
//! dot.

/// A destination that a call may reach, as a pattern of the same kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostPattern {
    name: Name,
    port: Option<u16>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    Any,
    Below(String),
    Exact(String),
}

impl HostPattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (name, port) = split_port(&lower)?;
        let name = match name {
            "*." => name,
            name => name.trim_end_matches('.'),
        };
        let name = match name.strip_prefix("*.") {
            _ if name == "*" => Name::Any,
            Some(below) if !below.is_empty() && !below.contains('*') => {
                Name::Below(below.to_owned())
            }
            None if !name.is_empty() && !name.contains('*') => Name::Exact(name.to_owned()),
            Some(_) | None => {
                return Err("has a `*` elsewhere than as its first label".to_owned());
            }
        };
        if lower.chars().any(|it| it.is_whitespace() || it == '/') {
            return Err("is not a destination; write `host:port`".to_owned());
        }
        Ok(Self {
            name,
            port,
            text: text.to_owned(),
        })
    }

    /// The destination of a URL, with the usual port of its scheme.
    pub(crate) fn of_url(word: &str) -> Option<Self> {
        let (scheme, rest) = word.split_once("://")?;
        let scheme = scheme
            .rsplit(|it: char| !it.is_ascii_alphanumeric())
            .next()?;
        let authority = rest.split(['/', '?', '#', '\\']).next()?;
        let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
        let has_port = split_port(host).is_ok_and(|(_, port)| port.is_some());
        let usual = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => ":80",
            "https" | "wss" => ":443",
            "ftp" => ":21",
            "ssh" | "sftp" => ":22",
            "git" => ":9418",
            _ => "",
        };
        let port = if has_port { "" } else { usual };
        Self::new(&format!("{host}{port}")).ok()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether everything that the other means is meant by this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let port = self.port.is_none() || self.port == other.port;
        let name = match (&self.name, &other.name) {
            (Name::Any, _) => true,
            (Name::Below(mine), Name::Below(theirs)) => mine == theirs || is_below(theirs, mine),
            (Name::Below(mine), Name::Exact(theirs)) => is_below(theirs, mine),
            (Name::Exact(mine), Name::Exact(theirs)) => mine == theirs,
            (Name::Below(_) | Name::Exact(_), Name::Any) | (Name::Exact(_), Name::Below(_)) => {
                false
            }
        };
        port && name
    }

    /// Whether some destination is meant by both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let port = match (self.port, other.port) {
            (Some(mine), Some(theirs)) => mine == theirs,
            (None, _) | (_, None) => true,
        };
        let name = match (&self.name, &other.name) {
            (Name::Any, _) | (_, Name::Any) => true,
            (Name::Below(a), Name::Below(b)) => a == b || is_below(a, b) || is_below(b, a),
            (Name::Below(below), Name::Exact(name)) | (Name::Exact(name), Name::Below(below)) => {
                is_below(name, below)
            }
            (Name::Exact(a), Name::Exact(b)) => a == b,
        };
        port && name
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent)
        .is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostPattern {
        HostPattern::new(text).unwrap()
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
            ("*", "10.0.0.1:80", true, true),
            ("*.x.org", "10.0.0.1:80", false, false),
            ("[::1]:80", "[::1]:80", true, true),
        ] {
            assert_eq!(host(rule).covers(&host(other)), covers, "{rule} {other}");
            assert_eq!(
                host(rule).overlaps(&host(other)),
                overlaps,
                "{rule} {other}"
            );
        }
        for bad in ["a.*.org", "", "x:0", "x:99999", "a b", "x/y", "*.", "**.x"] {
            assert!(HostPattern::new(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn a_url_names_its_host() {
        for (url, expected) in [
            ("https://Evil.example/x", "evil.example:443"),
            ("http://u:p@evil.example:8080/x", "evil.example:8080"),
            ("http://evil.example?x", "evil.example:80"),
            ("--url=https://evil.example", "evil.example:443"),
            ("git://evil.example/r", "evil.example:9418"),
        ] {
            let found = HostPattern::of_url(url).unwrap();
            assert!(
                host(expected).covers(&found) && found.covers(&host(expected)),
                "{url}"
            );
        }
        assert_eq!(HostPattern::of_url("plain"), None);
    }
}
