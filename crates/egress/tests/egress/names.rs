//! Hosts and URLs have one spelling.

use std::net::Ipv4Addr;

use glovebox_egress::{Host, PrivateTargets, RefusalCode, vet_url};
use glovebox_model::HostPort;
use proptest::prelude::*;

fn host(text: &str) -> String {
    match Host::parse(text) {
        Ok(host) => host.to_string(),
        Err(refusal) => refusal.code.to_string(),
    }
}

#[test]
fn hosts_are_spelled_in_one_way() {
    for (text, expected) in [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("B\u{fc}cher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("0x7f.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("[::FFFF:7f00:1]", "[::ffff:127.0.0.1]"),
        ("loc\u{ad}alhost", "localhost"),
        ("", "invalid_url"),
        (".", "invalid_url"),
        ("..", "invalid_url"),
        ("example.com..", "invalid_url"),
        (".example.com", "invalid_url"),
        ("a..b", "invalid_url"),
        ("-a.com", "invalid_url"),
        ("a-.com", "invalid_url"),
        ("a b.com", "invalid_url"),
        ("a*b.com", "invalid_url"),
        ("a,b.com", "invalid_url"),
        ("a%2eb.com", "invalid_url"),
        ("a\\b.com", "invalid_url"),
        ("a@b.com", "invalid_url"),
        ("a\0b.com", "invalid_url"),
        ("a\r\nb.com", "invalid_url"),
        ("1.2.3.4.5", "invalid_url"),
        ("256.1.1.1", "invalid_url"),
        ("[::1", "invalid_url"),
        ("::1", "invalid_url"),
        ("[fe80::1%25eth0]", "invalid_url"),
        ("[127.0.0.1]", "invalid_url"),
    ] {
        assert_eq!(host(text), expected, "{text:?}");
    }
}

#[test]
fn names_of_private_networks_are_refused_and_public_ones_are_not() {
    for name in [
        "localhost",
        "a.localhost",
        "intranet",
        "printer.local",
        "db.internal",
        "x.corp",
        "x.lan",
        "nas.home",
        "nas.home.arpa",
        "localhost.localdomain",
        "x.onion",
        "x.invalid",
        "kubernetes.default.svc",
        "metadata.google.internal",
    ] {
        let refusal = Host::parse(name).unwrap().check_name().unwrap_err();
        assert_eq!(refusal.code, RefusalCode::DestinationBlocked, "{name}");
    }
    for name in [
        "example.com",
        "ok.test",
        "a.example",
        "local.example.com",
        "mylocal.net",
        "notlan.com",
        "xlocal.org",
        "home.example.org",
        "in-addr.arpa",
    ] {
        assert_eq!(Host::parse(name).unwrap().check_name(), Ok(()), "{name}");
    }
}

#[test]
fn a_rule_means_whole_labels() {
    let name = Host::parse("a.allowed.com").unwrap();
    let rule = |text: &str| text.parse::<HostPort>().unwrap();
    assert!(name.is_meant_by(&rule("a.allowed.com:1")));
    assert!(name.is_meant_by(&rule("*.allowed.com:1")));
    for text in ["allowed.com:1", "*.lowed.com:1", "*.a.allowed.com:1"] {
        assert!(!name.is_meant_by(&rule(text)), "{text}");
    }
    for text in ["*:1", "*.:1", ":1", "1.1.1.1:1", "*.1.1.1:1"] {
        assert!(text.parse::<HostPort>().is_err(), "{text}");
    }
    let address = Host::parse("1.1.1.1").unwrap();
    assert!(!address.is_meant_by(&rule("*.allowed.com:1")));
}

#[test]
fn a_url_says_what_is_wrong_with_it() {
    use RefusalCode::{
        DestinationBlocked, InvalidUrl, PortNotAllowed, UnsupportedScheme, UserinfoNotAllowed,
    };
    for (url, code) in [
        ("", InvalidUrl),
        ("example.com", InvalidUrl),
        ("//example.com/", InvalidUrl),
        ("http:example.com", InvalidUrl),
        ("http:/example.com", InvalidUrl),
        ("http:///example.com", InvalidUrl),
        (" http://example.com", InvalidUrl),
        ("http://example.com /", InvalidUrl),
        ("http://example.com/a b", InvalidUrl),
        ("http://example.com/\u{85}", InvalidUrl),
        ("http://example.com:port/", InvalidUrl),
        ("http://example.com:/", InvalidUrl),
        ("http://example.com:0/", InvalidUrl),
        ("http://example.com:65536/", InvalidUrl),
        ("http://example.com:+80/", InvalidUrl),
        ("http://[::1]x/", InvalidUrl),
        ("ftp://example.com/", UnsupportedScheme),
        ("http://u@example.com/", UserinfoNotAllowed),
        ("http://@example.com/", UserinfoNotAllowed),
        ("http://u:p@example.com/", UserinfoNotAllowed),
        ("https://example.com:8443/", PortNotAllowed),
        ("http://localhost/", DestinationBlocked),
    ] {
        let refusal = vet_url(url, &PrivateTargets::none()).unwrap_err();
        assert_eq!(refusal.code, code, "{url:?}: {refusal}");
    }
    let target = vet_url(
        "hTTps://EXAMPLE.com.:443/a/../b?q=1#frag",
        &PrivateTargets::none(),
    );
    let target = target.unwrap();
    assert_eq!(target.as_str(), "https://example.com/b?q=1");
    assert_eq!(target.authority(), "example.com");
    assert!(!format!("{target:?}").contains("q=1"));
    // An `@` after the host is part of the path.
    assert!(vet_url("https://example.com/@user", &PrivateTargets::none()).is_ok());
}

#[test]
fn the_configured_ports_are_the_very_ones() {
    let ports = PrivateTargets::parse(["example.com:8080", "[2606::1]:81"]).unwrap();
    for (url, passes) in [
        ("http://example.com:8080/", true),
        ("http://EXAMPLE.com.:8080/", true),
        ("http://[2606:0::1]:81/", true),
        ("http://a.example.com:8080/", false),
        ("http://example.com:8081/", false),
    ] {
        assert_eq!(vet_url(url, &ports).is_ok(), passes, "{url}");
    }
    for rule in [
        "example.com",
        "example.com:",
        "example.com:0",
        ":80",
        "a b:80",
        "x:+1",
    ] {
        assert!(PrivateTargets::parse([rule]).is_err(), "{rule}");
    }
}

proptest! {
    #[test]
    fn a_host_is_its_own_spelling(text in "\\PC{0,40}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
        }
    }

    #[test]
    fn a_target_is_its_own_spelling(rest in "[a-z0-9.:/?@\\[\\]%\u{e9}\u{ff10}#&=_-]{0,40}") {
        for scheme in ["http://", "https://", "http:", ""] {
            if let Ok(target) = vet_url(&format!("{scheme}{rest}"), &PrivateTargets::none()) {
                let again = vet_url(target.as_str(), &PrivateTargets::none());
                prop_assert_eq!(again, Ok(target));
            }
        }
    }

    #[test]
    fn every_way_to_write_an_address_is_that_address(bits: u32, dot: bool) {
        let [a, b, c, d] = bits.to_be_bytes();
        let tail = u32::from(b) << 16 | u32::from(c) << 8 | u32::from(d);
        let half = u32::from(c) << 8 | u32::from(d);
        for form in [
            format!("{a}.{b}.{c}.{d}"),
            format!("{bits}"),
            format!("0x{bits:x}"),
            format!("0X{bits:X}"),
            format!("0{bits:o}"),
            format!("{a}.{tail}"),
            format!("{a}.{b}.{half}"),
            format!("0{a:o}.0x{b:x}.{c}.0{d:o}"),
            format!("0x{a:08x}.0{tail:o}"),
        ] {
            let form = if dot { format!("{form}.") } else { form };
            prop_assert_eq!(Host::parse(&form).unwrap(), Host::V4(Ipv4Addr::from(bits)), "{}", form);
        }
    }

    #[test]
    fn no_text_is_a_target_that_another_reader_sees_elsewhere(text in "(http|https)://[a-z0-9@:./\\\\?#\\[\\]%]{0,30}") {
        if let Ok(target) = vet_url(&text, &PrivateTargets::none()) {
            // As RFC 3986 cuts it: up to the first `/`, `?` or `#`.
            let rest = text.split_once("//").unwrap().1;
            let authority = rest.split(['/', '?', '#']).next().unwrap();
            prop_assert!(!authority.contains('@') && !text.split('#').next().unwrap().contains('\\'));
            let host = authority.rsplit_once(':').filter(|it| !it.1.contains(']')).map_or(authority, |it| it.0);
            prop_assert_eq!(&Host::parse(host).unwrap(), target.host());
        }
    }
}
