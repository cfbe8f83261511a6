//! A name and a port: what is decided on.

use std::fmt;

use glovebox_egress::Host;
use glovebox_model::HostPort;

/// Never an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    host: Host,
    port: u16,
}

impl Destination {
    /// None for an address, and for port 0.
    pub(crate) fn new(host: Host, port: u16) -> Option<Self> {
        (host.name().is_some() && port != 0).then_some(Self { host, port })
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn name(&self) -> &str {
        self.host.name().unwrap_or_default()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn is_meant_by(&self, rule: &HostPort) -> bool {
        rule.means(self.name(), self.port)
    }

    /// What a `Host` header says of it.
    pub(crate) fn authority(&self, usual_port: u16) -> String {
        match self.port == usual_port {
            true => self.name().to_owned(),
            false => self.to_string(),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// `name`, `name:80`, `[::1]:80`. None: it cannot be read, or could be read in two ways.
pub(crate) fn read_authority(text: &str, usual_port: Option<u16>) -> Option<(Host, u16)> {
    if text.contains('@') {
        return None;
    }
    let after = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text.get(after..)?.find(':') {
        None => (text, usual_port?),
        Some(colon) => {
            let (host, port) = text.split_at(after + colon);
            let port = port.get(1..)?;
            let digits =
                (1..=5).contains(&port.len()) && port.bytes().all(|it| it.is_ascii_digit());
            (host, port.parse().ok().filter(|_| digits)?)
        }
    };
    Some((Host::parse(host).ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_read_in_one_way_or_not_at_all() {
        let read =
            |text| read_authority(text, Some(80)).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(read("A.test.").as_deref(), Some("a.test 80"));
        assert_eq!(read("a.test:8080").as_deref(), Some("a.test 8080"));
        assert_eq!(read("[::1]:8080").as_deref(), Some("[::1] 8080"));
        assert_eq!(read("127.1:80").as_deref(), Some("127.0.0.1 80"));
        for wrong in [
            "",
            ":80",
            "a.test:",
            "a.test:x",
            "a.test:99999",
            "u@a.test",
            "a.test:80:80",
            "a test",
            "a.test/x",
            "a.test:+1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read_authority("a.test", None), None);
    }

    #[test]
    fn rules_name_ports_and_a_star_is_not_the_name_itself() {
        let rule = |text: &str| text.parse::<HostPort>().unwrap();
        let at = |name, port| Destination::new(Host::parse(name).unwrap(), port).unwrap();
        assert!(at("a.test", 443).is_meant_by(&rule("a.test:443")));
        assert!(at("b.a.test", 443).is_meant_by(&rule("*.a.test:443")));
        assert!(!at("a.test", 443).is_meant_by(&rule("*.a.test:443")));
        assert!(!at("a.test", 80).is_meant_by(&rule("a.test:443")));
        assert!(!at("ba.test", 443).is_meant_by(&rule("a.test:443")));
        assert!(!at("ba.test", 443).is_meant_by(&rule("*.a.test:443")));
        assert!(Destination::new(Host::parse("127.0.0.1").unwrap(), 80).is_none());
    }
}
