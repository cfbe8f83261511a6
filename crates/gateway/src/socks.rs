//! SOCKS5: no authentication, `CONNECT` only.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use glovebox_egress::Host;
use glovebox_model::NetCode;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::denial::Denial;
use crate::downstream::Near;

pub(crate) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NONE_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
/// A client of a proxy on loopback says what it wants at once.
const GREETING: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// Reads the greeting and the request. None: it was refused, and told so.
pub(crate) async fn greet(near: &mut Near) -> io::Result<Option<Wanted>> {
    match timeout(GREETING, exchange(near)).await {
        Ok(wanted) => wanted,
        Err(_) => Ok(None),
    }
}

async fn exchange(near: &mut Near) -> io::Result<Option<Wanted>> {
    let [_, count] = take(near).await?;
    let methods = take_many(near, usize::from(count)).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        near.write_all(&[VERSION, NONE_ACCEPTABLE]).await?;
        return Ok(None);
    }
    near.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = take(near).await?;
    if version != VERSION {
        return Ok(None);
    }
    let host = match kind {
        1 => Some(Host::V4(Ipv4Addr::from(take::<4>(near).await?))),
        4 => Some(Host::V6(Ipv6Addr::from(take::<16>(near).await?))),
        3 => {
            let [length] = take(near).await?;
            let name = take_many(near, usize::from(length)).await?;
            let name = std::str::from_utf8(&name).ok();
            name.and_then(|it| Host::parse(it).ok())
        }
        _ => None,
    };
    let Some(host) = host else {
        answer(near, Reply::AddressNotSupported).await?;
        return Ok(None);
    };
    let port = u16::from_be_bytes(take(near).await?);
    if command != CONNECT {
        answer(near, Reply::CommandNotSupported).await?;
        return Ok(None);
    }
    Ok(Some(Wanted { host, port }))
}

/// Why a client was told no.
pub(crate) fn not_served() -> Denial {
    let why = "only `CONNECT` without authentication is served";
    Denial::new(NetCode::ProxyRequired, why, "use TCP by `CONNECT`")
}

/// The address that it is bound to means nothing here.
pub(crate) async fn answer(near: &mut Near, reply: Reply) -> io::Result<()> {
    near.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
}

async fn take<const N: usize>(near: &mut Near) -> io::Result<[u8; N]> {
    let bytes = take_many(near, N).await?;
    bytes
        .try_into()
        .map_err(|_| io::ErrorKind::UnexpectedEof.into())
}

async fn take_many(near: &mut Near, count: usize) -> io::Result<Vec<u8>> {
    while near.ahead().len() < count {
        if near.fill().await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let bytes = near.ahead()[..count].to_vec();
    near.skip(count);
    Ok(bytes)
}
