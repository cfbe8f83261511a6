//! The only way out of a sandbox: in a network namespace with nothing but loopback, every address is
//! local, and rules send all TCP and all questions for names to sockets that are made here and
//! served elsewhere. Everything else is refused on the spot.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, listen, netlink, socket_with, sockopt,
};
use serde::{Deserialize, Serialize};

use crate::netlink::{APPEND, Attributes, CREATE, EXCLUSIVE, Message, ask};
use crate::plan::Steering;
use crate::sys::Result;

/// Below 1024, where nobody inside can listen: no program finds its own port taken.
const TRANSPARENT_PORT: u16 = 1023;
const DNS_PORT: u16 = 53;
/// For programs that know of proxies; where they are used to look for one.
const PROXY_PORT: u16 = 3128;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The sockets, made in the sandbox and served outside it. None blocks.
#[derive(Debug)]
pub struct WayOut {
    /// Whatever address a program dialled; the kernel still knows which (`SO_ORIGINAL_DST`). One
    /// that dialled this very socket has none but its own: to be refused.
    pub transparent: Vec<OwnedFd>,
    /// What programs dial that were told of it.
    pub proxy: Vec<OwnedFd>,
    /// Datagrams to port 53 of any address; an answer comes from the address that was asked.
    pub dns: Vec<OwnedFd>,
}

/// How many of each kind lie beside a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    transparent: u8,
    proxy: u8,
    dns: u8,
}

impl WayOut {
    /// In the current network namespace, which must be a fresh one of the sandbox's own with its
    /// loopback up: on a host it would cut off everybody.
    pub(crate) fn open(steering: &[Steering]) -> Result<Self> {
        // A kernel may have no IPv6, or have it switched off; nothing leads anywhere by it then.
        let hosts: &[Host] = match Host::V6.listener(SocketType::STREAM, TRANSPARENT_PORT) {
            Ok(_) => &[Host::V4, Host::V6],
            Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => &[Host::V4],
            Err(errno) => return Err(errno),
        };
        let sockets = |kind: SocketType, port: u16| -> Result<Vec<OwnedFd>> {
            hosts.iter().map(|it| it.listener(kind, port)).collect()
        };
        let way_out = Self {
            transparent: sockets(SocketType::STREAM, TRANSPARENT_PORT)?,
            proxy: sockets(SocketType::STREAM, PROXY_PORT)?,
            dns: sockets(SocketType::DGRAM, DNS_PORT)?,
        };
        // The rules first: no packet ever finds a route and no rule.
        ask(Some(netlink::NETFILTER), &rules(steering))?;
        if steering.contains(&Steering::Route) {
            let routes: Vec<Message> = hosts.iter().map(|it| it.route()).collect();
            ask(None, &routes)?;
        }
        Ok(way_out)
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all = [&self.transparent, &self.proxy, &self.dns];
        all.into_iter().flatten().map(AsFd::as_fd)
    }

    pub(crate) fn counts(&self) -> Counts {
        // Two of each at most.
        let count = |sockets: &[OwnedFd]| u8::try_from(sockets.len()).unwrap_or(u8::MAX);
        Counts {
            transparent: count(&self.transparent),
            proxy: count(&self.proxy),
            dns: count(&self.dns),
        }
    }

    /// From what came beside a message. Fewer arrive when this process may open no more files.
    pub(crate) fn of(counts: Counts, handed: &mut Vec<OwnedFd>) -> Result<Self> {
        let mut take = |count: u8| -> Result<Vec<OwnedFd>> {
            let count = usize::from(count);
            match count <= handed.len() {
                true => Ok(handed.drain(..count).collect()),
                false => Err(Errno::MFILE),
            }
        };
        Ok(Self {
            transparent: take(counts.transparent)?,
            proxy: take(counts.proxy)?,
            dns: take(counts.dns)?,
        })
    }
}

/// The sandbox itself, as one of the two protocols names it.
#[derive(Debug, Clone, Copy)]
enum Host {
    V4,
    V6,
}

impl Host {
    fn listener(self, kind: SocketType, port: u16) -> Result<OwnedFd> {
        let (family, address) = match self {
            Self::V4 => (AddressFamily::INET, (Ipv4Addr::LOCALHOST, port).into()),
            Self::V6 => (AddressFamily::INET6, (Ipv6Addr::LOCALHOST, port).into()),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, kind, flags, None)?;
        if family == AddressFamily::INET6 {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        let address: SocketAddr = address;
        bind(&socket, &address)?;
        if kind == SocketType::STREAM {
            listen(&socket, BACKLOG)?;
        }
        Ok(socket)
    }

    /// Every address is this host. Without a preferred source IPv4 would answer from the address
    /// that was dialled, and the rules would take the answer for something on its way out.
    fn route(self) -> Message {
        const NEW_ROUTE: u16 = 24;
        const TABLE_LOCAL: u8 = 255;
        const BY_ADMINISTRATOR: u8 = 4;
        const TYPE_LOCAL: u8 = 2;
        const INTERFACE: u16 = 4;
        const PREFERRED_SOURCE: u16 = 7;
        /// The first of every namespace.
        const LOOPBACK: u32 = 1;
        let (family, scope, source) = match self {
            Self::V4 => (libc::AF_INET, 254, Ipv4Addr::LOCALHOST.octets().to_vec()),
            Self::V6 => (libc::AF_INET6, 0, Ipv6Addr::LOCALHOST.octets().to_vec()),
        };
        // Family, lengths of destination and source, service, table, origin, scope, type, flags.
        let header = [
            u8::try_from(family).unwrap_or_default(),
            0,
            0,
            0,
            TABLE_LOCAL,
            BY_ADMINISTRATOR,
            scope,
            TYPE_LOCAL,
            0,
            0,
            0,
            0,
        ];
        let attributes = Attributes::default()
            .bytes(INTERFACE, &LOOPBACK.to_ne_bytes())
            .bytes(PREFERRED_SOURCE, &source);
        Message::new(NEW_ROUTE, CREATE | EXCLUSIVE, &header, attributes)
    }
}

/// Of linux/netfilter/nfnetlink.h and nf_tables.h.
const TABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = TABLES << 8;
const NEW_CHAIN: u16 = TABLES << 8 | 3;
const NEW_RULE: u16 = TABLES << 8 | 6;
/// Family (both protocols at once), version, resource.
const BOTH: [u8; 4] = [1, 0, 0, 0];
const TABLE: &std::ffi::CStr = c"glovebox";
const NAT: &std::ffi::CStr = c"detour";
const FILTER: &std::ffi::CStr = c"refuse";
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
/// -5: what follows in this chain is not asked.
const RETURN: u32 = 0xffff_fffb;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// One transaction: all of them or none.
fn rules(steering: &[Steering]) -> Vec<Message> {
    let table = Attributes::default().name(1, TABLE);
    let mut all = vec![
        // The resource is the subsystem, in the network's byte order.
        Message::mark(BATCH_BEGIN, &[0, 0, 0, TABLES.to_be_bytes()[1]]),
        // A second one would be somebody else's.
        Message::new(NEW_TABLE, CREATE | EXCLUSIVE, &BOTH, table),
    ];
    if steering.contains(&Steering::Redirect) {
        // Where destinations are translated, before anything is filtered.
        all.push(chain(NAT, c"nat", -100, ACCEPT));
        let to_us = |port: u16| Expressions::default().redirect(port);
        // Names are ours to answer whoever is asked, loopback too: where no server is named,
        // programs ask there.
        all.push(rule(NAT, Expressions::port(UDP, 53).then(to_us(DNS_PORT))));
        all.push(rule(
            NAT,
            Expressions::port(TCP, 53).then(to_us(TRANSPARENT_PORT)),
        ));
        for own in Expressions::loopback() {
            all.push(rule(NAT, own.verdict(RETURN)));
        }
        let tcp = Expressions::protocol(TCP);
        all.push(rule(NAT, tcp.then(to_us(TRANSPARENT_PORT))));
    }
    if steering.contains(&Steering::Refuse) {
        // What was sent to us goes to loopback by now. Whoever sends anything else hears it at once.
        all.push(chain(FILTER, c"filter", 0, DROP));
        for own in Expressions::loopback() {
            all.push(rule(FILTER, own.verdict(ACCEPT)));
        }
    }
    all.push(Message::mark(
        BATCH_END,
        &[0, 0, 0, TABLES.to_be_bytes()[1]],
    ));
    all
}

/// For what this host itself sends.
fn chain(name: &std::ffi::CStr, kind: &std::ffi::CStr, priority: i32, policy: u32) -> Message {
    const LOCAL_OUT: u32 = 3;
    let hook = Attributes::default()
        .number(1, LOCAL_OUT)
        .bytes(2, &priority.to_be_bytes());
    let attributes = Attributes::default()
        .name(1, TABLE)
        .name(3, name)
        .nest(4, hook)
        .number(5, policy)
        .name(7, kind);
    Message::new(NEW_CHAIN, CREATE, &BOTH, attributes)
}

fn rule(chain: &std::ffi::CStr, expressions: Expressions) -> Message {
    let attributes = Attributes::default()
        .name(1, TABLE)
        .name(2, chain)
        .nest(4, expressions.0);
    Message::new(NEW_RULE, CREATE | APPEND, &BOTH, attributes)
}

/// What a rule looks at and does, in order; each ends the rule where it does not hold.
#[derive(Debug, Default, Clone)]
struct Expressions(Attributes);

/// The register for verdicts, and the one that everything here uses.
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;

impl Expressions {
    fn push(self, name: &std::ffi::CStr, data: Attributes) -> Self {
        let expression = Attributes::default().name(1, name).nest(2, data);
        Self(self.0.nest(1, expression))
    }

    fn then(self, other: Self) -> Self {
        Self(self.0.followed_by(&other.0))
    }

    fn meta(self, key: u32) -> Self {
        let data = Attributes::default().number(1, REGISTER).number(2, key);
        self.push(c"meta", data)
    }

    /// Some bytes of the network's (1) or the transport's (2) header.
    fn payload(self, header: u32, offset: u32, length: u32) -> Self {
        let data = Attributes::default()
            .number(1, REGISTER)
            .number(2, header)
            .number(3, offset)
            .number(4, length);
        self.push(c"payload", data)
    }

    fn equals(self, value: &[u8]) -> Self {
        const EQUAL: u32 = 0;
        let data = Attributes::default()
            .number(1, REGISTER)
            .number(2, EQUAL)
            .nest(3, Attributes::default().bytes(1, value));
        self.push(c"cmp", data)
    }

    fn protocol(protocol: u8) -> Self {
        const TRANSPORT_PROTOCOL: u32 = 16;
        Self::default().meta(TRANSPORT_PROTOCOL).equals(&[protocol])
    }

    fn port(protocol: u8, port: u16) -> Self {
        Self::protocol(protocol)
            .payload(2, 2, 2)
            .equals(&port.to_be_bytes())
    }

    /// Destinations inside: 127.0.0.0/8 and ::1.
    fn loopback() -> [Self; 2] {
        const NETWORK_PROTOCOL: u32 = 15;
        const V4: u8 = 2;
        const V6: u8 = 10;
        let v4 = Self::default().meta(NETWORK_PROTOCOL).equals(&[V4]);
        let v6 = Self::default().meta(NETWORK_PROTOCOL).equals(&[V6]);
        [
            v4.payload(1, 16, 1).equals(&[127]),
            v6.payload(1, 24, 16).equals(&Ipv6Addr::LOCALHOST.octets()),
        ]
    }

    fn verdict(self, code: u32) -> Self {
        let verdict = Attributes::default().number(1, code);
        let data = Attributes::default()
            .number(1, VERDICT)
            .nest(2, Attributes::default().nest(2, verdict));
        self.push(c"immediate", data)
    }

    fn redirect(self, port: u16) -> Self {
        let value = Attributes::default().bytes(1, &port.to_be_bytes());
        let load = Attributes::default().number(1, REGISTER).nest(2, value);
        let from = Attributes::default().number(1, REGISTER);
        self.push(c"immediate", load).push(c"redir", from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    /// What every test here needs and only root has: a network of its own for a thread.
    fn alone<T: Send>(look: impl FnOnce() -> T + Send) -> Option<T> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                sys::unshare(crate::plan::Namespace::Net.flag()).unwrap();
                look()
            });
            Some(inside.join().unwrap())
        })
    }

    #[test]
    fn a_network_that_has_one_gets_no_second() {
        alone(|| {
            sys::loopback_up().unwrap();
            let first = WayOut::open(&Steering::ALL).unwrap();
            assert_eq!(WayOut::open(&Steering::ALL).unwrap_err(), Errno::ADDRINUSE);
            drop(first);
            assert_eq!(WayOut::open(&Steering::ALL).unwrap_err(), Errno::EXIST);
        });
    }

    #[test]
    fn without_version_6_there_is_one_socket_of_each() {
        alone(|| {
            // Loopback that is down has no address of that version.
            let way_out = WayOut::open(&[Steering::Redirect, Steering::Refuse]).unwrap();
            let counts = [&way_out.transparent, &way_out.proxy, &way_out.dns].map(Vec::len);
            assert_eq!(counts, [1, 1, 1]);
        });
    }

    #[test]
    fn what_did_not_all_arrive_is_no_way_out() {
        let counts = Counts {
            transparent: 2,
            proxy: 2,
            dns: 2,
        };
        let some = || rustix::pipe::pipe().unwrap();
        let mut handed: Vec<OwnedFd> = [some(), some()]
            .into_iter()
            .flat_map(<[_; 2]>::from)
            .collect();
        assert_eq!(WayOut::of(counts, &mut handed).unwrap_err(), Errno::MFILE);
    }
}
