//! The names under which a server answers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug)]
pub(crate) struct Hosts {
    names: BTreeSet<String>,
    bound: Option<IpAddr>,
    tls: bool,
}

impl Hosts {
    pub(crate) fn new(bound: Option<SocketAddr>, allowed: &[String], tls: bool) -> Self {
        Self {
            names: allowed
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            bound: bound.map(|address| address.ip().to_canonical()),
            tls,
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// Loopback, the bound address, and what the operator allowed; with or without a port.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        if name == "localhost" || self.names.contains(&name) {
            return true;
        }
        let literal = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let Ok(address) = literal.unwrap_or(&name).parse::<IpAddr>() else {
            return false;
        };
        let address = address.to_canonical();
        // A server on every address cannot list them, and rebinding needs a name.
        address.is_loopback()
            || self
                .bound
                .is_some_and(|bound| bound == address || bound.is_unspecified())
    }
}

/// None for what is no `host[:port]`.
fn without_port(host: &str) -> Option<&str> {
    let colon = match host.rfind(']') {
        Some(bracket) => {
            bracket
                + 1
                + host[bracket + 1..]
                    .find(':')
                    .unwrap_or(host.len() - bracket - 1)
        }
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(colon);
    let plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'[' | b']' | b':');
    let port_fits = match port.strip_prefix(':') {
        Some(digits) => digits.parse::<u16>().is_ok() && !digits.starts_with('+'),
        None => port.is_empty(),
    };
    (port_fits && !name.is_empty() && name.bytes().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_cannot_be_rebound() {
        let bound = "192.168.7.1:7070".parse().unwrap();
        let hosts = Hosts::new(Some(bound), &["Box.Example".to_owned()], false);
        for host in [
            "localhost",
            "LOCALHOST:7070",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]",
            "[::1]:7070",
            "192.168.7.1:7070",
            "box.example",
            "box.EXAMPLE:80",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(hosts.allows(host), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "localhost@evil.test",
            "192.168.7.2",
            "0.0.0.0",
            "localhost:x",
            "localhost:99999",
            "localhost:+1",
            "localhost/",
            "[::1",
            "::1]",
            "2130706433",
            "0x7f.1",
            "localhost,evil.test",
        ] {
            assert!(!hosts.allows(host), "{host}");
        }
    }

    #[test]
    fn on_every_address_any_address_is_one_of_them() {
        let hosts = Hosts::new(Some("0.0.0.0:1".parse().unwrap()), &[], false);
        assert!(hosts.allows("10.1.2.3:1"));
        assert!(!hosts.allows("ten.example:1"));
    }
}
