//! What the operator says about the ways out: `[network]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use glovebox_model::{Bytes, HostPort, IdError, Millis, is_private_name};

/// `[network]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkSettings {
    /// Private destinations that may be dialled where they are allowed as well. Nothing else of
    /// this machine or of its networks ever is.
    pub private: BTreeSet<Endpoint>,
    /// Names of the operator's own, which the host's resolver is not asked for.
    pub hosts: BTreeMap<String, IpAddr>,
    /// A file of certificates that are trusted beside those of the host.
    pub extra_ca: Option<PathBuf>,
    /// Hosts whose TLS is opened on the way, and what may be asked of them.
    pub inspect: Vec<InspectSettings>,
    pub retrieval: RetrievalSettings,
}

impl NetworkSettings {
    pub(crate) fn nearness(&self, destination: &HostPort) -> Nearness {
        let name = destination.below().unwrap_or(destination.host());
        if self.private.contains(&Endpoint::Name(destination.clone())) {
            Nearness::Listed
        } else if is_private_name(name) {
            Nearness::Unlisted
        } else {
            Nearness::Public
        }
    }
}

/// What can be said of a destination before its name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nearness {
    Public,
    /// The operator lists it as private.
    Listed,
    /// Its name says that it is on this machine or on a network of its own, and nobody lists it.
    Unlisted,
}

/// One place that can be dialled: a name or an address, with its port; never a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    Name(HostPort),
    Address(SocketAddr),
}

impl Endpoint {
    pub fn port(&self) -> u16 {
        match self {
            Self::Name(name) => name.port(),
            Self::Address(address) => address.port(),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    /// The form in which `Display` writes it: `registry.corp:5000`, `127.0.0.1:5000`, `[::1]:5000`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err("has no port between 1 and 65535".to_owned()),
                _ => Ok(Self::Address(address)),
            };
        }
        let name: HostPort = text.parse().map_err(|why: IdError| why.why.to_owned())?;
        if name.below().is_some() {
            return Err("is a pattern; write each host out".to_owned());
        }
        Ok(Self::Name(name))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// One entry of `inspect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectSettings {
    pub host: HostPort,
    /// In capitals. None: any.
    pub methods: Option<BTreeSet<String>>,
    /// Globs over the path: `*` stays within a segment, `**` crosses them. None: any.
    pub paths: Option<Vec<String>>,
}

/// `[network.retrieval]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrievalSettings {
    /// Where pages may be read from; anywhere public when it is empty.
    pub allow: BTreeSet<HostPort>,
    /// Destinations whose port is neither 80 nor 443.
    pub ports: BTreeSet<Endpoint>,
    /// Of one answer, after decompression.
    pub max_bytes: Bytes,
    /// From the first question to the last byte.
    pub timeout: Millis,
    pub connect_timeout: Millis,
    pub redirects: u32,
    /// At once, for one user.
    pub concurrent: u32,
    /// At once, for all.
    pub concurrent_total: u32,
    /// For one user.
    pub per_minute: u32,
    pub json_depth: u32,
    pub json_nodes: u64,
}

impl Default for RetrievalSettings {
    fn default() -> Self {
        Self {
            allow: BTreeSet::new(),
            ports: BTreeSet::new(),
            max_bytes: Bytes::mib(5),
            timeout: Millis::secs(20),
            connect_timeout: Millis::secs(5),
            redirects: 5,
            concurrent: 4,
            concurrent_total: 32,
            per_minute: 60,
            json_depth: 64,
            json_nodes: 100_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_one_place_and_reads_back() {
        for text in [
            "registry.corp:5000",
            "127.0.0.1:5000",
            "[::1]:5000",
            "registry:1",
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), text);
        }
        for text in [
            "*.corp:5000",
            "registry.corp",
            "127.0.0.1:0",
            "127.0.0.1",
            "127.1:80",
            "[::1]",
            "10.0.0.0/8:80",
            "http://a.b:1",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn names_without_a_public_server_are_private() {
        let nearness = |text: &str| NetworkSettings::default().nearness(&text.parse().unwrap());
        for host in [
            "localhost:1",
            "db:1",
            "printer.local:1",
            "*.corp:1",
            "*.build.corp:1",
        ] {
            assert_eq!(nearness(host), Nearness::Unlisted, "{host}");
        }
        for host in ["example.com:1", "corp.example.com:1", "*.home-x.io:1"] {
            assert_eq!(nearness(host), Nearness::Public, "{host}");
        }
    }
}
