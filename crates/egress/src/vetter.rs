//! One lookup, one judgement, and only what was judged is dialled.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout_at};

use crate::address::{self, Opening};
use crate::dial::{Connection, Dialler, TcpDialler};
use crate::host::Host;
use crate::refusal::{Refusal, RefusalCode, shown};
use crate::resolve::{Resolver, SystemResolver};

/// More addresses than any honest name has; all of them are judged.
const ADDRESSES_MOST: usize = 64;
/// The next address is tried beside one that has not answered for this long.
const STAGGER: Duration = Duration::from_millis(250);

/// The very destinations that an operator lists as `host:port`, and nothing near them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateTargets(BTreeSet<(Host, u16)>);

impl PrivateTargets {
    pub fn none() -> Self {
        Self::default()
    }

    /// `name:port`, `127.0.0.1:port` or `[::1]:port`.
    pub fn parse<T: AsRef<str>>(rules: impl IntoIterator<Item = T>) -> Result<Self, Refusal> {
        rules
            .into_iter()
            .map(|rule| endpoint(rule.as_ref()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub fn contains(&self, host: &Host, port: u16) -> bool {
        // The lookup would need an owned key; the list is short.
        self.0.iter().any(|it| it.0 == *host && it.1 == port)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }
}

fn endpoint(text: &str) -> Result<(Host, u16), Refusal> {
    let refuse = |why: &str| {
        Refusal::new(
            RefusalCode::InvalidUrl,
            format!("`{}` is not a `host:port`: {why}", shown(text)),
        )
        .hint("write for example `registry.example.com:5000` or `127.0.0.1:5000`")
    };
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| refuse("it has no port"))?;
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse::<u16>().ok().filter(|it| digits && *it != 0);
    let port = port.ok_or_else(|| refuse("the port is not a number from 1 to 65535"))?;
    let host = Host::parse(host).map_err(|refusal| refuse(&refusal.message))?;
    Ok((host, port))
}

/// A destination whose every address was judged. Only [`Vetter::vet`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vetted {
    host: Host,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl Vetted {
    pub fn host(&self) -> &Host {
        &self.host
    }
    pub fn port(&self) -> u16 {
        self.port
    }
    /// Never empty; in the order in which they are tried.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

#[derive(Debug, Clone)]
pub struct Vetter {
    pub resolver: Arc<dyn Resolver>,
    pub dialler: Arc<dyn Dialler>,
    pub private: PrivateTargets,
}

impl Vetter {
    /// Over the host's resolver and the kernel's sockets.
    pub fn system(private: PrivateTargets) -> Self {
        Self {
            resolver: Arc::new(SystemResolver::new()),
            dialler: Arc::new(TcpDialler),
            private,
        }
    }

    /// Asks for the addresses once and refuses if any of them is blocked. Has no time limit of its
    /// own; the caller's deadline covers it.
    pub async fn vet(&self, host: &Host, port: u16) -> Result<Vetted, Refusal> {
        if port == 0 {
            return Err(Refusal::new(
                RefusalCode::PortNotAllowed,
                "there is no port 0",
            ));
        }
        let listed = self.private.contains(host, port);
        if !listed {
            host.check_name()?;
        }
        let found = match host {
            Host::Name(name) => self.resolver.resolve(name.as_str()).await?,
            Host::V4(address) => vec![(*address).into()],
            Host::V6(address) => vec![(*address).into()],
        };
        if found.is_empty() {
            return Err(Refusal::new(
                RefusalCode::DnsFailed,
                format!("`{host}` has no address"),
            ));
        }
        if found.len() > ADDRESSES_MOST {
            return Err(Refusal::new(
                RefusalCode::DestinationBlocked,
                format!("`{host}` has more than {ADDRESSES_MOST} addresses"),
            ));
        }
        for address in &found {
            judge(host, *address, listed)?;
        }
        Ok(Vetted {
            host: host.clone(),
            port,
            addresses: in_turns(found),
        })
    }

    /// Dials the vetted addresses and no others, the next one beside one that is slow, and checks
    /// who answered.
    pub async fn connect(&self, vetted: &Vetted, deadline: Instant) -> Result<Connection, Refusal> {
        match timeout_at(deadline, self.race(vetted)).await {
            Ok(connected) => connected,
            Err(_) => Err(Refusal::new(
                RefusalCode::ConnectionTimeout,
                format!("no connection to `{}` in time", destination(vetted)),
            )),
        }
    }

    async fn race(&self, vetted: &Vetted) -> Result<Connection, Refusal> {
        let mut waiting = vetted.addresses.iter();
        let mut attempts = FuturesUnordered::new();
        let mut last = None;
        loop {
            let next = waiting.next();
            if let Some(address) = next {
                attempts.push(self.attempt(vetted, *address));
            } else if attempts.is_empty() {
                return Err(last.unwrap_or_else(|| unreachable_peer(vetted, "no address is left")));
            }
            let more = waiting.len() > 0;
            tokio::select! {
                ended = attempts.next() => match ended {
                    Some(Ok(connection)) => return Ok(connection),
                    // An answer from elsewhere is an attack or a broken network, and no reason to
                    // try on.
                    Some(Err(refusal)) if refusal.code == RefusalCode::DestinationBlocked => {
                        return Err(refusal);
                    }
                    Some(Err(refusal)) => last = Some(refusal),
                    None => {}
                },
                () = sleep(STAGGER), if more => {}
            }
        }
    }

    async fn attempt(&self, vetted: &Vetted, address: IpAddr) -> Result<Connection, Refusal> {
        let wanted = SocketAddr::new(address, vetted.port);
        let connection = self.dialler.dial(wanted).await;
        let connection = connection.map_err(|it| unreachable_peer(vetted, &it.to_string()))?;
        let peer = connection.peer();
        let peer = peer.map_err(|it| unreachable_peer(vetted, &it.to_string()))?;
        let same = address::canonical(peer.ip()) == address::canonical(address)
            && peer.port() == vetted.port;
        match same {
            true => Ok(connection),
            false => Err(Refusal::new(
                RefusalCode::DestinationBlocked,
                format!(
                    "the peer of `{}` is not the address that was vetted",
                    destination(vetted)
                ),
            )),
        }
    }
}

fn destination(vetted: &Vetted) -> String {
    format!("{}:{}", vetted.host, vetted.port)
}

fn unreachable_peer(vetted: &Vetted, why: &str) -> Refusal {
    Refusal::new(
        RefusalCode::ConnectionTimeout,
        format!("no connection to `{}`: {why}", destination(vetted)),
    )
}

fn judge(host: &Host, address: IpAddr, listed: bool) -> Result<(), Refusal> {
    let Some(block) = address::blocked(address) else {
        return Ok(());
    };
    let opened = listed
        && match block.opening {
            Opening::ByName => true,
            Opening::ByAddress => host.address().is_some(),
            Opening::Never => false,
        };
    if opened {
        return Ok(());
    }
    let leads = match host.address() {
        Some(_) => format!("`{host}` is"),
        None => format!("`{host}` leads to `{address}`,"),
    };
    let refusal = Refusal::new(
        RefusalCode::DestinationBlocked,
        format!("{leads} in `{}`: {}", block.range, block.why),
    );
    Err(match block.opening {
        Opening::ByName => {
            refusal.hint("an operator can list the very `host:port` in `[network] private`")
        }
        Opening::ByAddress => refusal.hint(
            "an operator can list the address itself, as `address:port`, in `[network] private`",
        ),
        Opening::Never => refusal,
    })
}

/// Both families alternate, beginning with the one that the resolver named first, so that a
/// family without a route costs one step.
fn in_turns(found: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut seen = BTreeSet::new();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let leads_v6 = found.first().is_some_and(IpAddr::is_ipv6);
    for address in found {
        if seen.insert(address) {
            match address.is_ipv6() == leads_v6 {
                true => first.push(address),
                false => second.push(address),
            }
        }
    }
    let mut turns = Vec::with_capacity(seen.len());
    let mut second = second.into_iter();
    for address in first {
        turns.push(address);
        turns.extend(second.next());
    }
    turns.extend(second);
    turns
}
