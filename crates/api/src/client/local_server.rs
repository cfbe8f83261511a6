//! Whether a server on this machine is our own. Any user may listen on a port while our server is
//! down; a token that is sent by itself must not go to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::address::Address;

/// As far as this machine can tell before anything is sent.
pub(crate) fn is_ours(address: &Address) -> bool {
    let own = rustix::process::geteuid().as_raw();
    match address {
        Address::Unix(path) => socket_owner(path) == Some(own),
        Address::Tcp { host, port, .. } => {
            let table = |file| std::fs::read_to_string(file).unwrap_or_default();
            let tables = [table("/proc/self/net/tcp"), table("/proc/self/net/tcp6")];
            let hosts: Vec<IpAddr> = match host.parse() {
                Ok(host) => vec![host],
                Err(_) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            };
            let rows = tables
                .iter()
                .flat_map(|table| table.lines().filter_map(Listener::parse));
            let mut answering = rows.filter(|it| it.answers(&hosts, *port)).peekable();
            answering.peek().is_some() && answering.all(|it| it.owner == own)
        }
    }
}

fn socket_owner(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|facts| facts.uid())
}

/// One row of the kernel's table of sockets, if it is one that takes connections.
#[derive(Debug, PartialEq, Eq)]
struct Listener {
    host: IpAddr,
    port: u16,
    owner: u32,
}

impl Listener {
    fn parse(line: &str) -> Option<Self> {
        const LISTEN: &str = "0A";
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if *fields.get(3)? != LISTEN {
            return None;
        }
        let (host, port) = fields.get(1)?.split_once(':')?;
        Some(Self {
            host: read_host(host)?,
            port: u16::from_str_radix(port, 16).ok()?,
            owner: fields.get(7)?.parse().ok()?,
        })
    }

    fn answers(&self, hosts: &[IpAddr], port: u16) -> bool {
        self.port == port && (self.host.is_unspecified() || hosts.contains(&self.host))
    }
}

/// Words of 32 bits, each in the machine's own order.
fn read_host(digits: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = (0..digits.len())
        .step_by(8)
        .map(|at| {
            let word = u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?;
            Some(word.to_ne_bytes())
        })
        .collect();
    match words?.as_slice() {
        [word] => Some(Ipv4Addr::from(*word).into()),
        words @ [_, _, _, _] => {
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            let host = Ipv6Addr::from(bytes);
            Some(host.to_ipv4_mapped().map_or(host.into(), IpAddr::from))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn tcp(port: u16) -> Address {
        format!("http://127.0.0.1:{port}").parse().unwrap()
    }

    #[test]
    fn our_own_listener_is_ours_and_a_closed_port_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_ours(&tcp(port)));
        // Nothing listens on port 1.
        assert!(!is_ours(&tcp(1)));
        assert!(!is_ours(&Address::Unix("/nowhere/at/all.sock".into())));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn rows_of_the_kernel_are_read() {
        let row = "   1: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1";
        let listener = Listener::parse(row).unwrap();
        assert_eq!(listener.host, IpAddr::from([127, 0, 0, 1]));
        assert_eq!((listener.port, listener.owner), (7070, 1000));
        assert!(Listener::parse(&row.replace(" 0A ", " 01 ")).is_none());
        assert!(Listener::parse("  sl  local_address rem_address   st").is_none());
        let mapped = "0000000000000000FFFF00000100007F";
        assert_eq!(read_host(mapped), Some(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(
            read_host("00000000000000000000000001000000"),
            Some(Ipv6Addr::LOCALHOST.into())
        );
    }
}
