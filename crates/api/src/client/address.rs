//! Where a server is.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use hyper::Uri;

/// `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp {
        scheme: Scheme,
        /// A name or an address, an IPv6 one without its brackets.
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Plain,
    Tls,
}

impl Scheme {
    const fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls => "https",
        }
    }

    const fn usual_port(self) -> u16 {
        match self {
            Self::Plain => 80,
            Self::Tls => 443,
        }
    }
}

impl Address {
    /// What goes into `Host`.
    pub fn authority(&self) -> String {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp { host, port, .. } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Nothing that is sent there leaves this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback())
            }
        }
    }

    /// The same place spoken to in the other way, unless that is the way it has.
    pub fn over(&self, scheme: Scheme) -> Option<Self> {
        match self {
            Self::Tcp {
                scheme: own,
                host,
                port,
            } if *own != scheme => Some(Self::Tcp {
                scheme,
                host: host.clone(),
                port: *port,
            }),
            Self::Tcp { .. } | Self::Unix(_) => None,
        }
    }

    /// Everybody on the way can read it.
    pub fn is_exposed(&self) -> bool {
        let plain = matches!(self, Self::Tcp { scheme, .. } if *scheme == Scheme::Plain);
        plain && !self.is_local()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { scheme, .. } => {
                write!(f, "{}://{}", scheme.scheme(), self.authority())
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str =
            "write `http://HOST:PORT`, `https://HOST:PORT` or `unix:/path`, and nothing after it";
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err("the path of a Unix socket begins with `/`"),
            };
        }
        let uri: Uri = text.parse().map_err(|_| FORMS)?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Plain,
            Some("https") => Scheme::Tls,
            _ => return Err(FORMS),
        };
        let authority = uri.authority().ok_or(FORMS)?;
        if authority.as_str().contains('@') {
            return Err(
                "a token goes into `GLOVEBOX_TOKEN` or `--token-file`, not into the address",
            );
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err(FORMS);
        }
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'))
            .unwrap_or(host);
        // A port that is no number must not quietly become the usual one.
        let port = match authority.as_str().len() > authority.host().len() {
            true => authority.port_u16().ok_or(FORMS)?,
            false => scheme.usual_port(),
        };
        if host.is_empty() {
            return Err(FORMS);
        }
        Ok(Self::Tcp {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_shown() {
        for (text, shown) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070"),
            ("http://127.0.0.1:7070/", "http://127.0.0.1:7070"),
            ("https://Box.example", "https://box.example:443"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("unix:/run/glovebox.sock", "unix:/run/glovebox.sock"),
            ("unix:///run/glovebox.sock", "unix:/run/glovebox.sock"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            "127.0.0.1:7070",
            "ftp://host",
            "http://",
            "http://host/v1",
            "http://host?x=1",
            "http://me:secret@host",
            "http://host:99999",
            "http://host:",
            "unix:relative.sock",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_listens_in_is_known() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        for local in [
            "http://localhost:1",
            "http://127.3.2.1",
            "http://[::1]",
            "unix:/x",
        ] {
            assert!(
                address(local).is_local() && !address(local).is_exposed(),
                "{local}"
            );
        }
        assert!(address("http://10.0.0.1").is_exposed());
        assert!(!address("https://10.0.0.1").is_exposed());
        // A name that only begins like a local one is somebody else's.
        assert!(address("http://localhost.example").is_exposed());
        assert!(address("http://127.0.0.1.example").is_exposed());
    }
}
