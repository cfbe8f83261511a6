//! Which addresses nobody is let through to: one table, each range with its reason.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// What an operator can do about a blocked range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Listing a name that leads there, or the address, opens it.
    ByName,
    /// Only the address itself opens it: credentials of the machine are behind it, and a name can
    /// be pointed at it by whoever owns the name.
    ByAddress,
    /// Nothing opens it: no single machine is meant by it.
    Never,
}

/// Why an address is not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub range: &'static str,
    pub why: &'static str,
    pub opening: Opening,
}

use Opening::{ByAddress, ByName, Never};

const fn block(range: &'static str, why: &'static str, opening: Opening) -> Block {
    Block {
        range,
        why,
        opening,
    }
}

macro_rules! v4 {
    ($([$a:literal, $b:literal, $c:literal, $d:literal] / $bits:literal, $why:literal, $opening:ident;)+) => {
        &[$((
            Ipv4Net::new_assert(Ipv4Addr::new($a, $b, $c, $d), $bits),
            block(
                concat!($a, ".", $b, ".", $c, ".", $d, "/", $bits),
                $why,
                $opening,
            ),
        )),+]
    };
}

/// The first range that holds an address decides, so single addresses come first.
const V4: &[(Ipv4Net, Block)] = v4! {
    [169, 254, 169, 254]/32, "a cloud's metadata service", ByAddress;
    [169, 254, 169, 253]/32, "a cloud's resolver", ByAddress;
    [169, 254, 170, 2]/32, "credentials of container tasks", ByAddress;
    [169, 254, 170, 23]/32, "credentials of pods", ByAddress;
    [169, 254, 0, 23]/32, "a cloud's metadata service", ByAddress;
    [100, 100, 100, 200]/32, "a cloud's metadata service", ByAddress;
    [168, 63, 129, 16]/32, "a cloud's host agent", ByAddress;
    [192, 0, 0, 192]/32, "a cloud's metadata service", ByAddress;
    [0, 0, 0, 0]/8, "this network, which connects to this machine", Never;
    [10, 0, 0, 0]/8, "a private network", ByName;
    [100, 64, 0, 0]/10, "a carrier's shared network", ByName;
    [127, 0, 0, 0]/8, "this machine", ByName;
    [169, 254, 0, 0]/16, "the local link", ByAddress;
    [172, 16, 0, 0]/12, "a private network", ByName;
    [192, 0, 0, 0]/24, "kept for protocols", Never;
    [192, 0, 2, 0]/24, "documentation", Never;
    [192, 31, 196, 0]/24, "a service of the DNS, AS112", Never;
    [192, 52, 193, 0]/24, "automatic multicast tunnelling", Never;
    [192, 88, 99, 0]/24, "6to4 relays, which are no more", Never;
    [192, 168, 0, 0]/16, "a private network", ByName;
    [192, 175, 48, 0]/24, "a service of the DNS, AS112", Never;
    [198, 18, 0, 0]/15, "benchmarks, and the names of sandboxes", Never;
    [198, 51, 100, 0]/24, "documentation", Never;
    [203, 0, 113, 0]/24, "documentation", Never;
    [224, 0, 0, 0]/4, "multicast", Never;
    [240, 0, 0, 0]/4, "reserved, and broadcast", Never;
};

macro_rules! v6 {
    ($([$($part:literal),+] / $bits:literal, $range:literal, $why:literal, $opening:ident;)+) => {
        &[$((
            Ipv6Net::new_assert(Ipv6Addr::new($($part),+), $bits),
            block($range, $why, $opening),
        )),+]
    };
}

const V6: &[(Ipv6Net, Block)] = v6! {
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]/128, "fd00:ec2::254/128", "a cloud's metadata service", ByAddress;
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23]/128, "fd00:ec2::23/128", "credentials of pods", ByAddress;
    [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]/128, "fd20:ce::254/128", "a cloud's metadata service", ByAddress;
    [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]/128, "fd00:42::42/128", "a cloud's metadata service", ByAddress;
    [0, 0, 0, 0, 0, 0, 0, 0]/128, "::/128", "the unspecified address, which connects to this machine", Never;
    [0, 0, 0, 0, 0, 0, 0, 1]/128, "::1/128", "this machine", ByName;
    [0x64, 0xff9b, 1, 0, 0, 0, 0, 0]/48, "64:ff9b:1::/48", "translation inside a private network", Never;
    [0x100, 0, 0, 0, 0, 0, 0, 0]/64, "100::/64", "thrown away by routers", Never;
    [0x100, 0, 0, 1, 0, 0, 0, 0]/64, "100:0:0:1::/64", "a dummy prefix", Never;
    [0x2001, 0, 0, 0, 0, 0, 0, 0]/32, "2001::/32", "Teredo, a tunnel to an address that it hides", Never;
    [0x2001, 0, 0, 0, 0, 0, 0, 0]/23, "2001::/23", "kept for protocols", Never;
    [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]/32, "2001:db8::/32", "documentation", Never;
    [0x2002, 0, 0, 0, 0, 0, 0, 0]/16, "2002::/16", "6to4, a tunnel to an address that it hides", Never;
    [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0]/48, "2620:4f:8000::/48", "a service of the DNS, AS112", Never;
    [0x3fff, 0, 0, 0, 0, 0, 0, 0]/20, "3fff::/20", "documentation", Never;
    [0x5f00, 0, 0, 0, 0, 0, 0, 0]/16, "5f00::/16", "segment routing", Never;
    [0xfc00, 0, 0, 0, 0, 0, 0, 0]/7, "fc00::/7", "a private network", ByName;
    [0xfe80, 0, 0, 0, 0, 0, 0, 0]/10, "fe80::/10", "the local link", ByAddress;
    [0xfec0, 0, 0, 0, 0, 0, 0, 0]/10, "fec0::/10", "a private network of an old kind", ByName;
    [0xff00, 0, 0, 0, 0, 0, 0, 0]/8, "ff00::/8", "multicast", Never;
};

const NOT_GLOBAL: Block = block("outside 2000::/3", "no public address", Never);
const COMPATIBLE: Block = block(
    "::/96",
    "an IPv4 address in a form that nothing uses any more",
    Never,
);
const TUNNEL: Block = block("::0:5efe:0:0/96", "ISATAP, a tunnel inside a site", Never);

/// None means public. An IPv6 address that stands for an IPv4 address is judged by that one; a
/// form that hides where a tunnel ends is refused whatever it holds.
pub fn blocked(address: IpAddr) -> Option<Block> {
    match address {
        IpAddr::V4(address) => blocked_v4(address),
        IpAddr::V6(address) => blocked_v6(address),
    }
}

fn blocked_v4(address: Ipv4Addr) -> Option<Block> {
    let row = V4.iter().find(|(range, _)| range.contains(&address));
    row.map(|(_, block)| *block)
}

fn blocked_v6(address: Ipv6Addr) -> Option<Block> {
    if let Some((_, block)) = V6.iter().find(|(range, _)| range.contains(&address)) {
        return Some(*block);
    }
    let parts = address.segments();
    let embedded = Ipv4Addr::from(u32::from(parts[6]) << 16 | u32::from(parts[7]));
    match parts {
        // Mapped, translated (SIIT), and the well-known prefix of NAT64: the embedded address is
        // what is reached. Networks with DNS64 answer with the last for every IPv4 host.
        [0, 0, 0, 0, 0, 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => return blocked_v4(embedded),
        [0, 0, 0, 0, 0, 0, _, _] => return Some(blocked_v4(embedded).unwrap_or(COMPATIBLE)),
        _ => {}
    }
    // The interface part of ISATAP is inside any prefix, with or without the universal bit.
    if parts[4] & !0x0200 == 0 && parts[5] == 0x5efe {
        return Some(blocked_v4(embedded).unwrap_or(TUNNEL));
    }
    match parts[0] & 0xe000 == 0x2000 {
        true => None,
        false => Some(NOT_GLOBAL),
    }
}

/// The address that is really dialled: a mapped one is an IPv4 connection to the kernel.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_blocked(text: &str) -> bool {
        blocked(text.parse().unwrap()).is_some()
    }

    #[test]
    fn every_range_blocks_its_first_and_last_address_and_not_its_neighbours() {
        // Neighbours that are in another range of the table themselves.
        let bordered = |address: u32| blocked_v4(address.into());
        for (range, block) in V4 {
            assert!(blocked_v4(range.network()).is_some(), "{}", block.range);
            assert!(blocked_v4(range.broadcast()).is_some(), "{}", block.range);
            for beside in [
                u32::from(range.network()).checked_sub(1),
                u32::from(range.broadcast()).checked_add(1),
            ]
            .into_iter()
            .flatten()
            {
                let found = bordered(beside);
                assert_ne!(found, Some(*block), "{beside:x} beside {}", block.range);
            }
        }
        for (range, block) in V6 {
            assert!(blocked_v6(range.network()).is_some(), "{}", block.range);
            assert!(blocked_v6(range.broadcast()).is_some(), "{}", block.range);
        }
    }

    #[test]
    fn public_addresses_pass() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "2001:200::1",
            "2003::1",
            "2600::1",
            "::ffff:8.8.8.8",
            "::ffff:0:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(!is_blocked(text), "{text}");
        }
    }

    #[test]
    fn forms_that_hold_an_address_do_not_hide_it() {
        for text in [
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "::127.0.0.1",
            "::8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "2002:7f00:1::",
            "2002:808:808::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:a00:1",
            "2606:4700::5efe:808:808",
            "fe80::5efe:808:808",
        ] {
            assert!(is_blocked(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_judged_as_the_address(bits: u32) {
            let plain = Ipv4Addr::from(bits);
            prop_assert_eq!(blocked(plain.to_ipv6_mapped().into()), blocked(plain.into()));
        }

        #[test]
        fn what_the_standard_library_knows_as_not_public_is_blocked(bits: u32) {
            let it = Ipv4Addr::from(bits);
            let known = it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_broadcast()
                || it.is_documentation()
                || it.is_multicast()
                || it.is_unspecified();
            prop_assert!(!known || blocked(it.into()).is_some());
        }

        #[test]
        fn nothing_outside_the_global_range_passes_as_itself(bits: u128) {
            let it = Ipv6Addr::from(bits);
            if blocked(it.into()).is_none() {
                let stands_for_v4 = it.to_ipv4().is_some()
                    || it.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0]
                    || it.segments()[..6] == [0, 0, 0, 0, 0xffff, 0];
                prop_assert!(it.segments()[0] >> 13 == 1 || stands_for_v4);
            }
        }
    }
}
