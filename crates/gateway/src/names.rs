//! An address for every name that a sandbox asks for. The addresses mean nothing outside: they
//! are how a connection says which name it wants.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_egress::Host;

/// Where the sandbox's `resolv.conf` points.
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// `198.18.0.0/15`, kept for benchmarks: no public host has such an address.
const V4: u32 = 0xc612_0000;
/// `fd67:6c6f:7665::/48`.
const V6: u128 = 0xfd67_6c6f_7665 << 80;
/// The first ones are ours: the resolver is among them.
const KEPT: u32 = 256;

/// A name takes about 400 bytes here, so that a sandbox that makes names up costs 6 MiB.
const NAMES_MOST: usize = 16 * 1024;
/// Of these only names on the list get one, so that made-up names cannot crowd them out.
const LISTED_MORE: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synthetic {
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

impl Synthetic {
    fn of(index: u32) -> Self {
        let number = index + KEPT;
        Self {
            v4: Ipv4Addr::from(V4 + number),
            v6: Ipv6Addr::from(V6 + u128::from(number)),
        }
    }

    fn index(address: IpAddr) -> Option<usize> {
        let number = match address.to_canonical() {
            IpAddr::V4(address) => u128::from(u32::from(address).checked_sub(V4)?),
            IpAddr::V6(address) => u128::from(address).checked_sub(V6)?,
        };
        usize::try_from(number.checked_sub(u128::from(KEPT))?).ok()
    }
}

/// One sandbox's names. A name keeps its address for as long as the sandbox lives: a program may
/// remember it.
#[derive(Debug, Default)]
pub struct Names {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_name: HashMap<Arc<Host>, u32>,
    by_index: Vec<Arc<Host>>,
}

/// Whether a name may use what is kept for listed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Listed,
    Any,
}

/// What asking for a name's address gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    New(Synthetic),
    Known(Synthetic),
    /// The sandbox has made up too many names.
    Full,
}

impl Names {
    pub(crate) fn give(&self, name: &Host, standing: Standing) -> Given {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = table.by_name.get(name) {
            return Given::Known(Synthetic::of(*index));
        }
        let most = match standing {
            Standing::Any => NAMES_MOST,
            Standing::Listed => NAMES_MOST + LISTED_MORE,
        };
        let count = table.by_index.len();
        let (true, Ok(index)) = (count < most, u32::try_from(count)) else {
            return Given::Full;
        };
        let name = Arc::new(name.clone());
        table.by_index.push(Arc::clone(&name));
        table.by_name.insert(name, index);
        Given::New(Synthetic::of(index))
    }

    /// The address that a name has, if it was asked for.
    pub fn address_of(&self, name: &Host) -> Option<Synthetic> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.by_name.get(name).map(|index| Synthetic::of(*index))
    }

    /// None for every address that was not given out here.
    pub fn name_of(&self, address: IpAddr) -> Option<Host> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let name = table.by_index.get(Synthetic::index(address)?)?;
        Some(Host::clone(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn a_name_keeps_its_addresses_and_they_lead_back_to_it() {
        let names = Names::default();
        let Given::New(first) = names.give(&host("a.test"), Standing::Any) else {
            panic!("not new");
        };
        let Given::New(second) = names.give(&host("b.test"), Standing::Any) else {
            panic!("not new");
        };
        assert_ne!(first, second);
        assert_eq!(
            names.give(&host("A.test."), Standing::Any),
            Given::Known(first)
        );
        assert_eq!(names.address_of(&host("b.test")), Some(second));
        for address in [
            IpAddr::from(first.v4),
            first.v6.into(),
            first.v4.to_ipv6_mapped().into(),
        ] {
            assert_eq!(names.name_of(address), Some(host("a.test")), "{address}");
        }
        assert!(first.v4.to_string().starts_with("198.18."));
        assert!(first.v6.to_string().starts_with("fd67:6c6f:7665::"));
    }

    #[test]
    fn no_other_address_has_a_name() {
        let names = Names::default();
        names.give(&host("a.test"), Standing::Any);
        for address in [
            "198.18.0.0",
            "198.18.0.1",
            "198.18.0.255",
            "198.18.1.1",
            "198.19.255.255",
            "198.20.0.0",
            "127.0.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "fd67:6c6f:7665::",
            "fd67:6c6f:7665::1",
            "fd67:6c6f:7665::101",
            "fd67:6c6f:7664::100",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ] {
            assert_eq!(names.name_of(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn made_up_names_do_not_crowd_out_listed_ones() {
        let names = Names::default();
        for number in 0..NAMES_MOST {
            let given = names.give(&host(&format!("n{number}.test")), Standing::Any);
            assert!(matches!(given, Given::New(_)), "{number}");
        }
        assert_eq!(names.give(&host("more.test"), Standing::Any), Given::Full);
        let Given::New(listed) = names.give(&host("listed.test"), Standing::Listed) else {
            panic!("no place is kept");
        };
        assert_eq!(names.name_of(listed.v4.into()), Some(host("listed.test")));
    }
}
