//! Whether what a connection speaks agrees with the destination that was decided on. That it does
//! grants nothing.

use glovebox_egress::Host;
use glovebox_model::{NetCode, Spoken};

use crate::denial::Denial;
use crate::destination::Destination;
use crate::sniff::First;

pub(crate) fn check(destination: &Destination, first: &First) -> Result<Spoken, Denial> {
    match first {
        First::Nothing | First::End | First::Bare | First::Other => Ok(Spoken::Tcp),
        First::Http => Ok(Spoken::Http),
        First::Tls(name) => check_name(destination, name.as_deref()).map(|()| Spoken::Tls),
        First::Unreadable(why) => Err(Denial::mismatch(destination, *why)),
        First::Http2 => Err(Denial::new(
            NetCode::SniMismatch,
            "HTTP/2 without TLS carries requests for any host",
            "use HTTP/1.1, or TLS",
        )),
    }
}

/// A handshake without a name is refused too: a host that has several could be meant by it.
pub(crate) fn check_name(destination: &Destination, name: Option<&str>) -> Result<(), Denial> {
    let Some(text) = name else {
        let why = "the TLS handshake names no host";
        return Err(Denial::mismatch(destination, why));
    };
    match Host::parse(text).is_ok_and(|it| it == *destination.host()) {
        true => Ok(()),
        false => {
            let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
            let why = format!(
                "the TLS handshake names `{shown}`, not `{}`",
                destination.name()
            );
            Err(Denial::mismatch(destination, why))
        }
    }
}

/// An inspected host is spoken to in what can be read, since no rule could be held against
/// anything else.
pub(crate) fn check_inspected(destination: &Destination, first: &First) -> Result<(), Denial> {
    match first {
        First::End | First::Http => Ok(()),
        First::Tls(name) => check_name(destination, name.as_deref()),
        First::Nothing | First::Bare | First::Other | First::Http2 | First::Unreadable(_) => {
            Err(Denial::new(
                NetCode::NotInAllowlist,
                format!("`{destination}` is inspected, and this is not HTTP/1.1"),
                "speak HTTP/1.1, over TLS or not, to hosts that are inspected; in an exec that holds a brokered secret all are",
            ))
        }
    }
}

/// A program that does not take our certificate for an inspected host.
pub(crate) fn broken_off(error: &std::io::Error) -> Denial {
    Denial::new(
        NetCode::Other,
        format!("the program broke off TLS to an inspected host: {error}"),
        "it must trust the sandbox's own authority, which `SSL_CERT_FILE` names, and speak HTTP/1.1",
    )
}
