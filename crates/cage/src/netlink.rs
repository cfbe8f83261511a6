//! Messages to the kernel's network configuration, built by hand: a sandbox has no `ip` and no
//! `nft`, and starting them would take longer than building the rest of it.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};

use crate::sys::Result;

/// Of linux/netlink.h.
const HEADER: usize = 16;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;

/// Attributes, one after the other.
#[derive(Debug, Default, Clone)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    #[must_use]
    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        // Values are built here, at most a few hundred bytes deep.
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// With its NUL, as the kernel wants names.
    #[must_use]
    pub(crate) fn name(self, kind: u16, value: &std::ffi::CStr) -> Self {
        self.bytes(kind, value.to_bytes_with_nul())
    }

    /// nf_tables speaks the network's byte order.
    #[must_use]
    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    #[must_use]
    pub(crate) fn followed_by(mut self, others: &Self) -> Self {
        self.0.extend_from_slice(&others.0);
        self
    }

    #[must_use]
    pub(crate) fn nest(self, kind: u16, inner: Self) -> Self {
        self.bytes(kind | NESTED, &inner.0)
    }
}

/// One message without its number, which it gets when it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Message {
    /// One that the kernel answers, with the header that its kind has.
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8], attributes: Attributes) -> Self {
        let mut body = header.to_vec();
        body.extend_from_slice(&attributes.0);
        Self {
            kind,
            flags: flags | REQUEST | ACKNOWLEDGE,
            body,
        }
    }

    /// One that only marks a place among others.
    pub(crate) fn mark(kind: u16, header: &[u8]) -> Self {
        Self {
            kind,
            flags: REQUEST,
            body: header.to_vec(),
        }
    }

    fn is_answered(&self) -> bool {
        self.flags & ACKNOWLEDGE != 0
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        let length = u32::try_from(HEADER + self.body.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_ne_bytes());
        out.extend_from_slice(&self.kind.to_ne_bytes());
        out.extend_from_slice(&self.flags.to_ne_bytes());
        out.extend_from_slice(&number.to_ne_bytes());
        out.extend_from_slice(&0u32.to_ne_bytes());
        out.extend_from_slice(&self.body);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// Sends them all at once to one part of the kernel, in the current network namespace. Done only
/// when each that is answered was answered well.
#[expect(clippy::disallowed_methods, reason = "the kernel itself")]
pub(crate) fn ask(part: Option<Protocol>, messages: &[Message]) -> Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let line = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, part)?;
    let mut packet = Vec::with_capacity(2048);
    for (number, message) in (1..).zip(messages) {
        message.write(number, &mut packet);
    }
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    if sendto(&line, &packet, SendFlags::empty(), &kernel)? != packet.len() {
        return Err(Errno::MSGSIZE);
    }
    let mut due = messages.iter().filter(|it| it.is_answered()).count();
    let mut buffer = [0; 8192];
    // The kernel has done the work when the message is sent: what it has to say lies there.
    while due > 0 {
        let (count, _) = match recv(&line, &mut buffer, RecvFlags::empty()) {
            Err(Errno::AGAIN) => return Err(Errno::PROTO),
            other => other?,
        };
        let mut rest = buffer.get(..count).ok_or(Errno::MSGSIZE)?;
        while !rest.is_empty() {
            let (answer, further) = first_answer(rest)?;
            answer?;
            due = due.saturating_sub(1);
            rest = further;
        }
    }
    Ok(())
}

/// Whether this kernel can be asked about netfilter at all; nothing is asked.
///
/// # Errors
/// Why it cannot.
pub fn can_ask_netfilter() -> std::io::Result<()> {
    let (kind, part) = (SocketType::RAW, Some(netlink::NETFILTER));
    socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, part)?;
    Ok(())
}

/// What the first message of a packet says, and the rest of the packet.
fn first_answer(packet: &[u8]) -> Result<(Result<()>, &[u8])> {
    let word = |at: usize| -> Result<[u8; 4]> {
        let bytes = packet.get(at..at + 4).ok_or(Errno::BADMSG)?;
        bytes.try_into().map_err(|_| Errno::BADMSG)
    };
    let length = usize::try_from(u32::from_ne_bytes(word(0)?)).map_err(|_| Errno::BADMSG)?;
    let [low, high, ..] = word(4)?;
    if u16::from_ne_bytes([low, high]) != ERROR || length < HEADER + 4 {
        return Err(Errno::BADMSG);
    }
    let answer = match i32::from_ne_bytes(word(HEADER)?) {
        0 => Ok(()),
        code => Err(Errno::from_raw_os_error(code.saturating_neg())),
    };
    let next = length.next_multiple_of(4).min(packet.len());
    Ok((answer, packet.get(next..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_count_their_own_length_only() {
        let inner = Attributes::default().name(1, c"ab");
        let all = Attributes::default().nest(2, inner).number(3, 7);
        let length = |value: u16| value.to_ne_bytes();
        let expected = [
            &length(12)[..],
            &length(0x8002),
            &length(7),
            &length(1),
            b"ab\0\0",
            &length(8),
            &length(3),
            &[0, 0, 0, 7],
        ];
        assert_eq!(all.0, expected.concat());
    }

    #[test]
    fn the_kernels_refusals_are_told_and_nonsense_is_no_answer() {
        let packet = |code: i32| {
            let mut packet = 20u32.to_ne_bytes().to_vec();
            packet.extend(ERROR.to_ne_bytes());
            packet.extend([0; 10]);
            packet.extend(code.to_ne_bytes());
            packet
        };
        let two = [packet(0), packet(-libc::EPERM)].concat();
        let (first, rest) = first_answer(&two).unwrap();
        assert_eq!(first, Ok(()));
        let (second, rest) = first_answer(rest).unwrap();
        assert_eq!(second, Err(Errno::PERM));
        assert!(rest.is_empty());
        for short in 0..20 {
            assert_eq!(first_answer(&packet(0)[..short]), Err(Errno::BADMSG));
        }
        assert_eq!(first_answer(&[0xff; 64]), Err(Errno::BADMSG));
    }

    #[test]
    fn the_kernel_refuses_what_it_does_not_know() {
        // RTM_NEWROUTE of a family that there is not: nothing changes, whoever asks.
        let header = [0xee, 0, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0];
        let message = Message::new(24, EXCLUSIVE, &header, Attributes::default());
        assert!(ask(None, &[message]).is_err());
    }
}
