//! Programs that know of a proxy: CONNECT, absolute form, SOCKS5.

use glovebox_model::{Approach, NetCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ground::{Ground, get, one_answer, patiently, policy, tell};
use crate::servers::{Trusted, echo, greeter, http, secure};

async fn connect(ground: &Ground, target: &str) -> (TcpStream, String) {
    let mut stream = ground.to_proxy().await;
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = one_answer(&mut stream).await;
    (stream, answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_leads_to_its_host_and_no_other() {
    let trusted = Trusted::new();
    let ground = Ground::allowing(&["a.test:443"]);
    ground
        .world
        .host("a.test", 443, trusted.https(&["a.test", "b.test"]).await);
    let (stream, answer) = connect(&ground, "A.test:443").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let stream = patiently(secure(stream, trusted.client(), "a.test"))
        .await
        .unwrap();
    let answer = tell(stream, &get("a.test", "/in")).await.unwrap();
    assert!(answer.contains("GET /in\n"), "{answer}");
    let begun = ground
        .heard(|it| it.approach == Approach::Connect && it.code == NetCode::Ok)
        .await;
    assert_eq!(begun.rule, Some("a.test:443".parse().unwrap()));

    let (stream, _) = connect(&ground, "a.test:443").await;
    let error = patiently(secure(stream, trusted.client(), "b.test"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    ground.refused("a.test", 443, NetCode::SniMismatch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_are_refused_for_the_same_reasons() {
    let ground = Ground::allowing(&["a.test:443", "loop.test:443"]);
    ground.world.answers("loop.test", &[&["127.0.0.1"]]);
    for (target, host, port, code) in [
        ("c.test:443", "c.test", 443, NetCode::NotInAllowlist),
        ("a.test:80", "a.test", 80, NetCode::PortNotAllowed),
        (
            "127.0.0.1:443",
            "127.0.0.1",
            443,
            NetCode::InvalidDestination,
        ),
        (
            "93.184.216.34:443",
            "93.184.216.34",
            443,
            NetCode::InvalidDestination,
        ),
        ("[::1]:443", "[::1]", 443, NetCode::InvalidDestination),
        (
            "2130706433:443",
            "127.0.0.1",
            443,
            NetCode::InvalidDestination,
        ),
        (
            "loop.test:443",
            "loop.test",
            443,
            NetCode::InvalidDestination,
        ),
    ] {
        let (_, answer) = connect(&ground, target).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{target}: {answer}");
        assert!(
            answer.contains(&format!("x-glovebox-code: {code}")),
            "{target}: {answer}"
        );
        ground.refused(host, port, code).await;
    }
    let (_, answer) = connect(&ground, "a.test").await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(ground.dials(), 0);
    let ground = Ground::closed(None, &[]);
    let (_, answer) = connect(&ground, "a.test:443").await;
    assert!(answer.contains("NET_MODE_NONE"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_in_a_tunnel_is_looked_at() {
    let ground = Ground::allowing(&["a.test:80", "mail.test:25"]);
    ground.world.host("a.test", 80, http().await);
    ground.world.host("mail.test", 25, greeter().await);
    let (stream, _) = connect(&ground, "a.test:80").await;
    let answer = tell(stream, &get("evil.test", "/")).await.unwrap();
    assert!(answer.contains("SNI_MISMATCH"), "{answer}");
    let (stream, _) = connect(&ground, "a.test:80").await;
    let answer = tell(stream, &get("a.test", "/in")).await.unwrap();
    assert!(answer.contains("GET /in\n"), "{answer}");
    let (mut stream, _) = connect(&ground, "mail.test:25").await;
    let mut banner = [0; 13];
    patiently(stream.read_exact(&mut banner)).await.unwrap();
    assert_eq!(&banner, b"220 welcome\r\n");
    // Older clients ask for tunnels in HTTP/1.0.
    let mut stream = ground.to_proxy().await;
    stream
        .write_all(b"CONNECT a.test:80 HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    let answer = one_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    let answer = tell(stream, &get("a.test", "/old")).await.unwrap();
    assert!(answer.contains("GET /old\n"), "{answer}");
    // What comes right behind the request belongs to the tunnel.
    let mut stream = ground.to_proxy().await;
    let both = format!(
        "CONNECT a.test:80 HTTP/1.1\r\n\r\n{}",
        get("a.test", "/eager")
    );
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut all = String::new();
    patiently(stream.read_to_string(&mut all)).await.unwrap();
    assert!(all.contains("GET /eager\n"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_absolute_form_are_decided_one_by_one() {
    let ground = Ground::allowing(&["a.test:80", "b.test:8080"]);
    ground.world.host("a.test", 80, http().await);
    ground.world.host("b.test", 8080, http().await);
    let mut stream = ground.to_proxy().await;
    for (target, host, seen) in [
        ("http://a.test/1?q=1", "a.test", "GET /1?q=1\n"),
        ("http://b.test:8080/2", "b.test:8080", "GET /2\n"),
        ("http://a.test", "a.test", "GET /\n"),
    ] {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic eA==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = one_answer(&mut stream).await;
        assert!(answer.contains(seen), "{answer}");
        assert!(!answer.contains("proxy-authorization"), "{answer}");
    }
    let answer = tell(
        stream,
        "GET http://c.test/ HTTP/1.1\r\nHost: c.test\r\n\r\n",
    )
    .await
    .unwrap();
    assert!(answer.contains("NOT_IN_ALLOWLIST"), "{answer}");
    ground.refused("c.test", 80, NetCode::NotInAllowlist).await;
    let two = ground.heard(|it| it.host == "b.test" && !it.ended).await;
    assert_eq!(
        (two.approach, two.path.as_deref()),
        (Approach::Proxied, Some("/2"))
    );
    ground
        .heard(|it| it.host == "b.test" && it.ended && it.sent > 0)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_header_cannot_contradict_the_target() {
    let ground = Ground::allowing(&["a.test:80", "b.test:80"]);
    for host in ["127.0.0.1", "b.test", "a.test:81", "a.test@b.test"] {
        let request = format!("GET http://a.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = tell(ground.to_proxy().await, &request).await.unwrap();
        assert!(
            answer.contains("x-glovebox-code: SNI_MISMATCH"),
            "{host}: {answer}"
        );
    }
    for target in [
        "/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "https://a.test/",
        "ftp://a.test/",
        "http://u@a.test/",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let answer = tell(ground.to_proxy().await, &request).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{target}: {answer}");
    }
    assert_eq!(ground.dials(), 0);
}

/// Greets and asks; the answer's second byte says how it went.
async fn socks(ground: &Ground, request: &[u8]) -> (TcpStream, u8) {
    let mut stream = ground.to_proxy().await;
    stream.write_all(&[5, 1, 0]).await.unwrap();
    let mut greeting = [0; 2];
    patiently(stream.read_exact(&mut greeting)).await.unwrap();
    assert_eq!(greeting, [5, 0]);
    stream.write_all(request).await.unwrap();
    let mut answer = [0; 10];
    patiently(stream.read_exact(&mut answer)).await.unwrap();
    (stream, answer[1])
}

fn by_name(command: u8, name: &str, port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    let head = [5, command, 0, 3, length];
    [&head, name.as_bytes(), &port.to_be_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_connects_by_name() {
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, echo().await);
    let (mut stream, code) = socks(&ground, &by_name(1, "a.test", 7000)).await;
    assert_eq!(code, 0);
    stream.write_all(b"\x00ping").await.unwrap();
    let mut back = [0; 5];
    patiently(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"\x00ping");
    drop(stream);
    ground
        .heard(|it| it.approach == Approach::Socks && it.ended)
        .await;

    // A program that asks the DNS itself names the address that it was given.
    let address = ground
        .lookup("a.test", hickory_proto::rr::RecordType::A)
        .await
        .1
        .unwrap();
    let std::net::IpAddr::V4(address) = address else {
        panic!("{address}");
    };
    let request = [&[5, 1, 0, 1][..], &address.octets(), &7000u16.to_be_bytes()].concat();
    assert_eq!(socks(&ground, &request).await.1, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_refuses_what_is_not_allowed_and_what_is_no_connection() {
    let ground = Ground::allowing(&["a.test:7000", "gone.test:7000"]);
    assert_eq!(socks(&ground, &by_name(1, "c.test", 7000)).await.1, 2);
    ground
        .refused("c.test", 7000, NetCode::NotInAllowlist)
        .await;
    let literal = [5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
    assert_eq!(socks(&ground, &literal).await.1, 2);
    ground
        .refused("127.0.0.1", 80, NetCode::InvalidDestination)
        .await;
    let v6 = [&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat();
    assert_eq!(socks(&ground, &v6).await.1, 2);
    assert_eq!(socks(&ground, &by_name(1, "127.1", 7000)).await.1, 2);
    assert_eq!(socks(&ground, &by_name(1, "gone.test", 7000)).await.1, 4);
    // Listening and UDP.
    assert_eq!(socks(&ground, &by_name(2, "a.test", 7000)).await.1, 7);
    assert_eq!(socks(&ground, &by_name(3, "a.test", 7000)).await.1, 7);
    let mut stream = ground.to_proxy().await;
    stream.write_all(&[5, 1, 2]).await.unwrap();
    let mut answer = [0; 2];
    patiently(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, [5, 0xff]);
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_at_the_proxy_ends_and_leaves_it_standing() {
    let ground = Ground::allowing(&["a.test:80"]);
    ground.world.host("a.test", 80, http().await);
    for rubbish in [
        "\x04\x01\x00\x50",
        "\x05",
        "\x05\x00",
        "\x16\x03\x01\x00\x01\x00",
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
    ] {
        let mut stream = ground.to_proxy().await;
        stream.write_all(rubbish.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut all = Vec::new();
        let _ = patiently(stream.read_to_end(&mut all)).await;
    }
    ground.gateway.admit(policy(&["a.test:80"]));
    let answer = tell(
        ground.to_proxy().await,
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
    )
    .await
    .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
