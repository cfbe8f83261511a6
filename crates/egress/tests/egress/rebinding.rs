//! Names whose answers change with every lookup, and servers that send the caller round. Nothing
//! is dialled that was not vetted.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use glovebox_egress::client::{Client, Trust};
use glovebox_egress::retrieve::{RetrieveRequest, Retriever};
use glovebox_egress::{
    Connection, Dialler, PrivateTargets, Refusal, RefusalCode, Resolver, Vetter, address,
};
use tokio::io::AsyncWriteExt;

use crate::tls;
use crate::world::{head, ok, redirect};

/// The same numbers for the same seed.
#[derive(Debug)]
struct Dice(AtomicU64);

impl Dice {
    fn throw(&self, sides: u64) -> u64 {
        // SplitMix64.
        let mut it = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ (it >> 31)) % sides
    }

    fn address(&self) -> IpAddr {
        let any = u32::try_from(self.throw(1 << 16)).unwrap();
        match self.throw(12) {
            0 => Ipv4Addr::LOCALHOST.into(),
            1 => Ipv4Addr::from(0x0a00_0000 | any).into(),
            2 => "169.254.169.254".parse().unwrap(),
            3 => "::1".parse().unwrap(),
            4 => Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
            _ => Ipv4Addr::from(0x5db8_0000 | any).into(),
        }
    }
}

/// Each lookup answers anew: mostly public, sometimes not, sometimes both.
#[derive(Debug)]
struct Turning {
    dice: Dice,
    lookups: AtomicU64,
    /// Every address of an answer that was all public.
    vetted: Mutex<HashSet<IpAddr>>,
}

impl Resolver for Turning {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let count = 1 + self.dice.throw(3);
        let answer: Vec<_> = (0..count).map(|_| self.dice.address()).collect();
        if answer.iter().all(|it| address::blocked(*it).is_none()) {
            self.vetted.lock().unwrap().extend(&answer);
        }
        Box::pin(async move { Ok(answer) })
    }
}

/// In memory: answers, sends round, or turns out to be somebody else.
#[derive(Debug)]
struct Dialled {
    dice: Dice,
    resolver: Arc<Turning>,
    dials: AtomicU64,
    unvetted: Mutex<Vec<SocketAddr>>,
    lied: AtomicU64,
}

impl Dialler for Dialled {
    fn dial<'a>(&'a self, address: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        self.dials.fetch_add(1, Ordering::Relaxed);
        let known = self.resolver.vetted.lock().unwrap().contains(&address.ip());
        if !known || address::blocked(address.ip()).is_some() {
            self.unvetted.lock().unwrap().push(address);
        }
        let peer = match self.dice.throw(20) {
            0 => {
                self.lied.fetch_add(1, Ordering::Relaxed);
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port())
            }
            _ => address,
        };
        let answer = match self.dice.throw(6) {
            0 => redirect(302, "http://again.test/"),
            1 => redirect(302, "http://127.0.0.1/"),
            2 => redirect(307, "//[::1]/"),
            _ => ok("text/plain", "hello"),
        };
        let (ours, mut theirs) = tokio::io::duplex(4096);
        tokio::spawn(async move {
            head(&mut theirs).await;
            let _ = theirs.write_all(answer.as_bytes()).await;
        });
        Box::pin(async move { Ok(Connection::other(ours, peer)) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_rebinding_makes_an_unvetted_dial() {
    let attempts = std::env::var("GLOVEBOX_TEST_REBINDS").ok();
    let attempts: u64 = attempts.map_or(100_000, |it| it.parse().unwrap());
    let resolver = Arc::new(Turning {
        dice: Dice(AtomicU64::new(1)),
        lookups: AtomicU64::new(0),
        vetted: Mutex::default(),
    });
    let dialler = Arc::new(Dialled {
        dice: Dice(AtomicU64::new(2)),
        resolver: resolver.clone(),
        dials: AtomicU64::new(0),
        unvetted: Mutex::default(),
        lied: AtomicU64::new(0),
    });
    let vetter = Vetter {
        resolver: resolver.clone(),
        dialler: dialler.clone(),
        private: PrivateTargets::none(),
    };
    let trust = Trust::only(tls::authority().pem().as_bytes()).unwrap();
    let retriever = Arc::new(Retriever::new(Client::new(vetter, trust)));
    let (read, refused, hops) = stream::iter(0..attempts)
        .map(|_| {
            let retriever = retriever.clone();
            async move {
                let request = RetrieveRequest::of("http://rebind.test/");
                retriever.get("me", request).await
            }
        })
        .buffer_unordered(64)
        .fold(
            (0u64, 0u64, 0u64),
            |(read, refused, hops), retrieved| async move {
                // An address that is sent to is not looked up.
                let literal = retrieved.error.as_ref().is_some_and(|it| {
                    it.code == RefusalCode::RedirectBlocked && it.message.contains("` is in `")
                });
                let hops = hops + 1 + u64::from(retrieved.redirects) - u64::from(literal);
                match retrieved.error_code {
                    None => {
                        let peer = retrieved.peer.unwrap();
                        assert_eq!(address::blocked(peer.ip()), None);
                        assert!(retrieved.addresses.contains(&peer.ip()));
                        (read + 1, refused, hops)
                    }
                    Some(
                        RefusalCode::DestinationBlocked
                        | RefusalCode::RedirectBlocked
                        | RefusalCode::RedirectLimitExceeded,
                    ) => (read, refused + 1, hops),
                    Some(other) => panic!("{other}: {:?}", retrieved.error),
                }
            },
        )
        .await;
    let (lookups, dials) = (
        resolver.lookups.load(Ordering::Relaxed),
        dialler.dials.load(Ordering::Relaxed),
    );
    println!(
        "{attempts} attempts: {read} read, {refused} refused, {lookups} lookups, {dials} dials"
    );
    assert_eq!(*dialler.unvetted.lock().unwrap(), []);
    assert_eq!(lookups, hops, "one lookup for each name");
    assert!(dials <= lookups, "one dial at most, since nobody was slow");
    // Both happened, or nothing was shown.
    assert!(read > attempts / 20 && refused > attempts / 20);
    assert!(dialler.lied.load(Ordering::Relaxed) > attempts / 100);
}
