//! Whom a call addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;

use super::memory::bytes;

/// `struct sockaddr_storage`: the kernel takes no longer one.
const ADDRESS_MAX: u64 = 128;
const INET: u16 = 2;
const INET6: u16 = 10;

/// None for who is inside, and for other kinds of addresses.
pub(super) fn read(pid: i32, address: u64, length: u64) -> Result<Option<SocketAddr>, Errno> {
    if address == 0 || length > ADDRESS_MAX {
        return Ok(None);
    }
    let mut buffer = vec![0; usize::try_from(length).map_err(|_| Errno::INVAL)?];
    bytes(pid, address, &mut buffer)?;
    Ok(parse(&buffer).filter(|it| is_outside(it.ip())))
}

fn parse(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip: IpAddr = match family {
        INET => Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?).into(),
        INET6 => Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    // The kernel sends to the address of version 4 that is in one of version 6.
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Whoever addresses nobody means its own host.
fn is_outside(ip: IpAddr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified()
}

/// Whether what is sent through this socket goes in datagrams; none when that cannot be seen. The
/// descriptor itself is not touched: closing our copy could wait for the program's data to go.
pub(super) fn is_datagram(pid: i32, socket: i32) -> Option<bool> {
    let mut name = [0u8; 32];
    let path = format!("/proc/{pid}/fd/{socket}");
    let length = rustix::fs::getxattr(path, "system.sockprotoname", &mut name[..]).ok()?;
    let name = name.get(..length)?;
    Some(!name.starts_with(b"TCP") && !name.starts_with(b"MPTCP") && !name.starts_with(b"SCTP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(ip: [u8; 4]) -> Vec<u8> {
        [&INET.to_ne_bytes()[..], &[1, 187], &ip, &[0; 8]].concat()
    }

    fn six(ip: &str) -> Vec<u8> {
        let ip: Ipv6Addr = ip.parse().unwrap();
        let (family, rest) = (INET6.to_ne_bytes(), [0; 4]);
        [&family[..], &[0, 53], &rest, &ip.octets(), &rest].concat()
    }

    fn seen(bytes: &[u8]) -> Option<String> {
        let pid = std::process::id().cast_signed();
        let read = read(pid, bytes.as_ptr() as u64, bytes.len() as u64);
        read.unwrap().map(|it| it.to_string())
    }

    #[test]
    fn addresses_outside_are_told() {
        assert_eq!(
            seen(&four([93, 184, 216, 34])).unwrap(),
            "93.184.216.34:443"
        );
        assert_eq!(seen(&six("2001:db8::1")).unwrap(), "[2001:db8::1]:53");
        assert_eq!(seen(&six("::ffff:10.0.0.1")).unwrap(), "10.0.0.1:53");
    }

    #[test]
    fn others_are_not() {
        let unix = [&1u16.to_ne_bytes()[..], b"/run/socket"].concat();
        let short = four([10, 0, 0, 1])[..5].to_vec();
        let inside = [four([127, 9, 9, 9]), four([0; 4]), six("::1"), six("::")];
        for bytes in inside.iter().chain([&unix, &short, &vec![2, 0]]) {
            assert_eq!(seen(bytes), None);
        }
        assert_eq!(read(1, 0, 16).unwrap(), None);
        assert_eq!(read(1, 1, u64::MAX).unwrap(), None);
    }

    #[test]
    fn a_socket_says_what_it_is() {
        use std::os::fd::AsRawFd;
        let pid = std::process::id().cast_signed();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(is_datagram(pid, tcp.as_raw_fd()), Some(false));
        assert_eq!(is_datagram(pid, udp.as_raw_fd()), Some(true));
        assert_eq!(is_datagram(pid, -1), None);
    }
}
