//! Programs that know nothing of a proxy: raw bytes, TLS, and every reason to refuse.

use glovebox_model::{Approach, NetCode, NetworkMode, Spoken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{Ground, get, host, patiently, policy, tell};
use crate::servers::{Trusted, counter, echo, greeter, http, secure};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_go_to_an_allowed_name_and_back_and_are_told() {
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, echo().await);
    let mut stream = ground.dial("a.test", 7000).await;
    stream.write_all(b"\x00hello").await.unwrap();
    let mut back = [0; 6];
    patiently(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"\x00hello");
    stream.shutdown().await.unwrap();
    assert_eq!(patiently(stream.read(&mut back)).await.unwrap(), 0);

    let begun = ground
        .heard(|it| it.approach == Approach::Direct && !it.ended)
        .await;
    assert_eq!((begun.code, begun.spoken), (NetCode::Ok, Spoken::Tcp));
    assert_eq!(begun.rule, Some("a.test:7000".parse().unwrap()));
    assert_eq!(begun.address, Some("93.184.216.1".parse().unwrap()));
    let ended = ground.heard(|it| it.ended).await;
    assert_eq!(
        (ended.code, ended.sent, ended.received),
        (NetCode::Ok, 6, 6)
    );
    assert!(ended.seq > begun.seq);
    let traffic = ground.gateway.traffic();
    assert_eq!(
        (traffic.connections, traffic.sent, traffic.received),
        (1, 6, 6)
    );
    assert!(traffic.refused.is_empty(), "{traffic:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ipv6_leads_to_the_same_name() {
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, counter().await);
    ground.dial("a.test", 7000).await;
    let address = ground.gateway.names().address_of(&host("a.test")).unwrap();
    let stream = ground.dial_address(&address.v6.to_string(), 7000).await;
    let (mut read, mut write) = stream.into_split();
    write.write_all(b"\x01").await.unwrap();
    write.shutdown().await.unwrap();
    let mut text = String::new();
    patiently(read.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "1 bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_on_the_list_is_refused_with_the_rule_that_is_missing() {
    let ground = Ground::allowing(&["a.test:443", "*.b.test:443"]);
    for (name, port, code) in [
        ("c.test", 443, NetCode::NotInAllowlist),
        ("a.test", 80, NetCode::PortNotAllowed),
        ("b.test", 443, NetCode::NotInAllowlist),
        ("x.b.test", 8443, NetCode::PortNotAllowed),
        ("aa.test", 443, NetCode::NotInAllowlist),
        ("a.test.evil.test", 443, NetCode::NotInAllowlist),
    ] {
        let stream = ground.dial(name, port).await;
        assert_eq!(tell(stream, "\x00").await, None, "{name}:{port}");
        let attempt = ground.refused(name, port, code).await;
        let hint = attempt.hint.unwrap();
        assert!(
            hint.contains(&format!("allow_net = [\"{name}:{port}\"]")),
            "{hint}"
        );
        assert!(hint.contains("--ask"), "{hint}");
    }
    assert_eq!(ground.dials(), 0);
    assert!(ground.world.lookups.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_is_answered_with_the_reason() {
    let ground = Ground::allowing(&["a.test:80"]);
    let stream = ground.dial("c.test", 80).await;
    // A body that nobody reads must not turn the answer into a reset.
    let request = format!(
        "POST / HTTP/1.1\r\nHost: c.test\r\nContent-Length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    let answer = tell(stream, &request).await.expect("a reset");
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert!(
        answer.contains("x-glovebox-code: NOT_IN_ALLOWLIST\r\n"),
        "{answer}"
    );
    assert!(answer.contains("allow_net = [\"c.test:80\"]"), "{answer}");
    assert_eq!(
        ground
            .refused("c.test", 80, NetCode::NotInAllowlist)
            .await
            .spoken,
        Spoken::Http
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_handshake_gets_an_alert() {
    let ground = Ground::allowing(&["a.test:443"]);
    let stream = ground.dial("c.test", 443).await;
    let error = patiently(secure(stream, Trusted::new().client(), "c.test"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    assert_eq!(
        ground
            .refused("c.test", 443, NetCode::NotInAllowlist)
            .await
            .spoken,
        Spoken::Tls
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_never_reached_whatever_the_mode() {
    let ground = Ground::closed(None, &[]);
    for mode in [NetworkMode::Allowlist, NetworkMode::Unrestricted] {
        let mut policy = policy(&["a.test:443"]);
        policy.mode = mode;
        ground.gateway.admit(policy);
        for address in [
            "93.184.216.34",
            "127.0.0.1",
            "169.254.169.254",
            "10.0.0.1",
            "::1",
            "2606:4700::1111",
            "198.18.0.1",
            "198.19.255.255",
            "::ffff:127.0.0.1",
        ] {
            let stream = ground.dial_address(address, 443).await;
            assert_eq!(tell(stream, "\x00").await, None, "{address}");
            let shown = address.trim_start_matches("::ffff:");
            ground
                .refused(shown, 443, NetCode::InvalidDestination)
                .await;
        }
    }
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialling_the_listener_itself_leads_nowhere() {
    let ground = Ground::allowing(&["a.test:443"]);
    // Nothing was said, so that the socket's own address is what was dialled.
    let stream = ground.dial_address("127.0.0.1", 1).await;
    drop(stream);
    ground
        .refused("127.0.0.1", 1, NetCode::InvalidDestination)
        .await;
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_policy_and_after_its_end_nothing_is_reached() {
    let ground = Ground::closed(None, &[]);
    ground.world.host("a.test", 80, http().await);
    let stream = ground.dial_address("198.18.1.0", 80).await;
    let answer = tell(stream, &get("a.test", "/")).await.unwrap();
    assert!(
        answer.contains("x-glovebox-code: NET_MODE_NONE"),
        "{answer}"
    );

    ground.gateway.admit(policy(&["a.test:80"]));
    let address = ground.dial("a.test", 80).await;
    let answer = tell(address, &get("a.test", "/")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    ground.gateway.close();
    let known = ground.gateway.names().address_of(&host("a.test")).unwrap();
    let stream = ground.dial_address(&known.v4.to_string(), 80).await;
    let answer = tell(stream, &get("a.test", "/")).await.unwrap();
    assert!(
        answer.contains("x-glovebox-code: NET_MODE_NONE"),
        "{answer}"
    );
    assert_eq!(ground.dials(), 1);

    // The next exec in the same sandbox: names stay, counts begin anew.
    ground.gateway.admit(policy(&["b.test:80"]));
    assert_eq!(ground.gateway.traffic(), glovebox_model::Traffic::default());
    let stream = ground.dial_address(&known.v4.to_string(), 80).await;
    let answer = tell(stream, &get("a.test", "/")).await.unwrap();
    assert!(
        answer.contains("x-glovebox-code: NOT_IN_ALLOWLIST"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allowed_name_that_leads_inside_is_refused() {
    let ground = Ground::allowing(&["a.test:80", "b.test:80", "c.test:80"]);
    ground.world.answers("a.test", &[&["127.0.0.1"]]);
    ground
        .world
        .answers("b.test", &[&["93.184.216.34", "10.0.0.1"]]);
    ground
        .world
        .answers("c.test", &[&["::ffff:169.254.169.254"]]);
    for name in ["a.test", "b.test", "c.test"] {
        let answer = tell(ground.dial(name, 80).await, &get(name, "/"))
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(
            answer.contains("x-glovebox-code: INVALID_DESTINATION"),
            "{answer}"
        );
        ground.refused(name, 80, NetCode::InvalidDestination).await;
    }
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_name_needs_both_the_operator_and_the_list() {
    let ground = Ground::closed(None, &["db.internal:80", "other.internal:80"]);
    ground
        .gateway
        .admit(policy(&["db.internal:80", "third.internal:80"]));
    ground.world.answers("third.internal", &[&["127.0.0.1"]]);
    ground.world.host("db.internal", 80, http().await);
    let answer = tell(
        ground.dial("db.internal", 80).await,
        &get("db.internal", "/"),
    )
    .await
    .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = tell(
        ground.dial("third.internal", 80).await,
        &get("third.internal", "/"),
    )
    .await
    .unwrap();
    assert!(answer.contains("INVALID_DESTINATION"), "{answer}");
    let (code, address) = ground
        .lookup("other.internal", hickory_proto::rr::RecordType::A)
        .await;
    assert_eq!(
        (code, address),
        (hickory_proto::op::ResponseCode::NXDomain, None)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_answer_of_the_dns_never_matters() {
    let ground = Ground::allowing(&["a.test:80"]);
    ground.world.host("a.test", 80, http().await);
    ground.world.answers(
        "a.test",
        &[&["93.184.216.1"], &["127.0.0.1"], &["127.0.0.1"]],
    );
    let stream = ground.dial("a.test", 80).await;
    let answer = tell(stream, &get("a.test", "/")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // One lookup for one dial; the next dial looks again, and finds another answer.
    assert_eq!(ground.world.lookups.lock().unwrap().len(), 1);
    let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/"))
        .await
        .unwrap();
    assert!(answer.contains("INVALID_DESTINATION"), "{answer}");
    let dials = ground.world.dials.lock().unwrap().clone();
    assert_eq!(dials, ["93.184.216.1:80".parse().unwrap()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_goes_through_untouched_when_it_names_the_host() {
    let trusted = Trusted::new();
    let ground = Ground::allowing(&["a.test:443"]);
    ground
        .world
        .host("a.test", 443, trusted.https(&["a.test"]).await);
    let stream = ground.dial("a.test", 443).await;
    let stream = patiently(secure(stream, trusted.client(), "a.test"))
        .await
        .unwrap();
    let answer = tell(stream, &get("a.test", "/x")).await.unwrap();
    assert!(answer.contains("GET /x\n"), "{answer}");
    let begun = ground.heard(|it| it.spoken == Spoken::Tls).await;
    assert_eq!((begun.code, begun.path), (NetCode::Ok, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_for_another_name_is_refused_before_anything_is_dialled() {
    let trusted = Trusted::new();
    let ground = Ground::allowing(&["a.test:443", "b.test:443"]);
    ground
        .world
        .host("a.test", 443, trusted.https(&["a.test", "b.test"]).await);
    for other in ["b.test", "x.a.test", "evil.test"] {
        let stream = ground.dial("a.test", 443).await;
        let error = patiently(secure(stream, trusted.client(), other))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("AccessDenied"), "{error}");
    }
    // An address in the place of a name is no name: the handshake has none then.
    let stream = ground.dial("a.test", 443).await;
    let error = patiently(secure(stream, trusted.client(), "93.184.216.1"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    ground.refused("a.test", 443, NetCode::SniMismatch).await;
    let traffic = ground.gateway.traffic();
    assert_eq!((traffic.refused.len(), traffic.refused[0].times), (1, 4));
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_in_pieces_is_read_whole() {
    let trusted = Trusted::new();
    let ground = Ground::allowing(&["a.test:443"]);
    ground
        .world
        .host("a.test", 443, trusted.https(&["a.test"]).await);
    let stream = ground.dial("a.test", 443).await;
    // Ten bytes in a segment, and the handshake's record cut into several.
    let (client, far) = tokio::io::duplex(10);
    let pump = tokio::spawn(async move {
        let (mut far, mut stream) = (far, stream);
        let _ = tokio::io::copy_bidirectional_with_sizes(&mut far, &mut stream, 10, 10).await;
    });
    let mut config = rustls::ClientConfig::clone(&trusted.client());
    config.max_fragment_size = Some(64);
    let name = rustls::pki_types::ServerName::try_from("a.test").unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let stream = patiently(connector.connect(name, client)).await.unwrap();
    let answer = tell(stream, &get("a.test", "/pieces")).await.unwrap();
    assert!(answer.contains("GET /pieces\n"), "{answer}");
    pump.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_may_speak_first() {
    let ground = Ground::allowing(&["mail.test:25"]);
    ground.world.host("mail.test", 25, greeter().await);
    let mut stream = ground.dial("mail.test", 25).await;
    let mut banner = [0; 13];
    patiently(stream.read_exact(&mut banner)).await.unwrap();
    assert_eq!(&banner, b"220 welcome\r\n");
    let answer = tell(stream, "EHLO me\r\n").await.unwrap();
    assert_eq!(answer, "you said EHLO me\r\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_says_late_is_looked_at_all_the_same() {
    let trusted = Trusted::new();
    let ground = Ground::allowing(&["a.test:443", "b.test:80", "mail.test:25"]);
    ground
        .world
        .host("a.test", 443, trusted.https(&["a.test", "evil.test"]).await);
    ground.world.host("b.test", 80, http().await);
    ground.world.host("mail.test", 25, greeter().await);
    // The host is dialled when nothing was said for a while; only then does the client speak.
    let stream = ground.dial("a.test", 443).await;
    crate::ground::until(|| (ground.dials() == 1).then_some(()))
        .await
        .unwrap();
    let error = patiently(secure(stream, trusted.client(), "evil.test"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("AccessDenied"), "{error}");

    let stream = ground.dial("b.test", 80).await;
    crate::ground::until(|| (ground.dials() == 2).then_some(()))
        .await
        .unwrap();
    let answer = tell(stream, &get("evil.test", "/")).await.unwrap();
    assert!(answer.contains("SNI_MISMATCH"), "{answer}");
    let stream = ground.dial("b.test", 80).await;
    crate::ground::until(|| (ground.dials() == 3).then_some(()))
        .await
        .unwrap();
    let answer = tell(stream, &get("b.test", "/late")).await.unwrap();
    assert!(answer.contains("GET /late\n"), "{answer}");
    // The connection that was dialled ahead is the one that is used.
    assert_eq!(ground.dials(), 3);

    let mut stream = ground.dial("mail.test", 25).await;
    let mut banner = [0; 13];
    patiently(stream.read_exact(&mut banner)).await.unwrap();
    assert_eq!(tell(stream, &get("evil.test", "/")).await, None);
    ground.refused("mail.test", 25, NetCode::SniMismatch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_side_may_close_before_the_other() {
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, counter().await);
    let mut stream = ground.dial("a.test", 7000).await;
    stream.write_all(&vec![0; 300_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    patiently(stream.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "300000 bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_nobody_has_fails_and_says_so() {
    let ground = Ground::allowing(&["gone.test:80"]);
    let answer = tell(ground.dial("gone.test", 80).await, &get("gone.test", "/"))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("x-glovebox-code: DNS_DENIED"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unrestricted_network_reaches_public_names_only() {
    let ground = Ground::closed(None, &[]);
    let mut open = policy(&[]);
    open.mode = NetworkMode::Unrestricted;
    ground.gateway.admit(open);
    ground.world.host("a.test", 8080, http().await);
    ground.world.answers("inside.test", &[&["192.168.0.1"]]);
    let answer = tell(ground.dial("a.test", 8080).await, &get("a.test:8080", "/"))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = tell(
        ground.dial("inside.test", 80).await,
        &get("inside.test", "/"),
    )
    .await
    .unwrap();
    assert!(answer.contains("INVALID_DESTINATION"), "{answer}");
    let stream = ground.dial("a.test", 8080).await;
    let answer = tell(stream, &get("b.test:8080", "/")).await.unwrap();
    assert!(answer.contains("SNI_MISMATCH"), "{answer}");
}
