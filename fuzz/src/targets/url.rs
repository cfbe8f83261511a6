//! URLs and what their names lead to: whatever the text, a target has one spelling, a reader by
//! RFC 3986 sees the same host, and nothing that is not public is vetted.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use glovebox_egress::retrieve::suspected_secret;
use glovebox_egress::{
    Connection, Dialler, Host, PrivateTargets, Refusal, Resolver, Vetter, address, vet_url,
};

use super::{Target, as_it_is};

pub const TARGET: Target = Target {
    name: "url",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        b"http://",
        b"https://",
        b"http:",
        b"//",
        b"/\\",
        b"@",
        b":80",
        b":00080",
        b":443",
        b"#@",
        b"?",
        b"127.0.0.1",
        b"0x7f.1",
        b"0177.1",
        b"2130706433",
        b"169.254.169.254",
        b"[::1]",
        b"[::ffff:7f00:1]",
        b"[64:ff9b::",
        b"[2002:",
        b"localhost",
        b".internal",
        b".local.",
        b"xn--",
        b"%2e",
        b"%00",
        b"\t",
        b"\n",
        b"\xe3\x80\x82",
        b"\xef\xbc\x91",
        b"\xc2\xad",
        b"token=",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 7] = [
        b"https://example.com/a/b?q=1#frag\n\x5d\xb8\xd8\x22",
        b"http://93.184.216.34:80/\n",
        b"http://[2606:2800:220:1::1]/\n",
        b"https://B\xc3\xbccher.example/\n\x7f\0\0\x01",
        b"http://user@127.0.0.1/\n",
        b"http://example.com\\@127.0.0.1/\n",
        b"http://0x7f000001/?access_token=abcdef\n",
    ];
    seeds.map(<[u8]>::to_vec).into()
}

/// Answers with the bytes of the input: four or sixteen for an address.
#[derive(Debug)]
struct Given(Vec<IpAddr>);

impl Resolver for Given {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        let answer = self.0.clone();
        Box::pin(async move { Ok(answer) })
    }
}

#[derive(Debug)]
struct Nobody;

impl Dialler for Nobody {
    fn dial<'a>(&'a self, _: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

fn given(bytes: &[u8]) -> Vec<IpAddr> {
    let four = bytes.chunks_exact(4).take(4).map(|it| {
        let octets: [u8; 4] = it.try_into().expect("four");
        IpAddr::from(octets)
    });
    let sixteen = bytes.chunks_exact(16).take(2).map(|it| {
        let octets: [u8; 16] = it.try_into().expect("sixteen");
        IpAddr::from(Ipv6Addr::from(octets))
    });
    four.chain(sixteen).collect()
}

/// Without the host, which may hold anything.
fn reason(refusal: Refusal) -> String {
    let why = refusal.message.rsplit('`').next().unwrap_or_default();
    format!("{}: {why}", refusal.code)
}

fn run(bytes: &[u8]) -> Result<String, String> {
    let at = bytes.iter().rposition(|it| *it == b'\n');
    let (url, answer) = bytes.split_at(at.unwrap_or(bytes.len()));
    let text = String::from_utf8_lossy(url);
    let _ = suspected_secret(&text);
    if let Ok(host) = Host::parse(&text) {
        assert_eq!(Host::parse(&host.to_string()).as_ref(), Ok(&host));
    }
    let none = PrivateTargets::none();
    let target = vet_url(&text, &none).map_err(reason)?;
    assert_eq!(vet_url(target.as_str(), &none).as_ref(), Ok(&target));
    let (before, _) = text.split_once('#').unwrap_or((&text, ""));
    assert!(!before.contains(['\\', '\t', '\n', '\r', ' ', '\0']));
    let (_, rest) = before.split_once("//").expect("it has a host");
    let authority = rest.split(['/', '?']).next().expect("a first part");
    assert!(!authority.contains('@'));
    let port = authority
        .rsplit_once(':')
        .filter(|(_, port)| !port.contains(']'));
    let host = port.map_or(authority, |it| it.0);
    assert_eq!(Host::parse(host).as_ref(), Ok(target.host()));
    assert!(matches!(target.port(), 80 | 443));
    let vetter = Vetter {
        resolver: Arc::new(Given(given(answer.get(1..).unwrap_or_default()))),
        dialler: Arc::new(Nobody),
        private: none,
    };
    let vetting = vetter.vet(target.host(), target.port()).now_or_never();
    let vetted = vetting.expect("nothing is waited for").map_err(reason)?;
    assert!(!vetted.addresses().is_empty());
    for found in vetted.addresses() {
        assert_eq!(address::blocked(*found), None, "{found} was vetted");
        let plain = found.to_canonical();
        assert!(!plain.is_loopback() && !plain.is_unspecified() && !plain.is_multicast());
    }
    let kind = match target.host() {
        Host::Name(_) => "a name",
        Host::V4(_) => "IPv4",
        Host::V6(_) => "IPv6",
    };
    Ok(format!("{kind} over {:?}", target.scheme()))
}
