//! The sandbox's DNS.

use glovebox_gateway::RESOLVER;
use glovebox_model::{Approach, NetCode};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{Ground, patiently, policy, question, read_answer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_public_name_has_an_address_and_nobody_outside_is_asked() {
    let ground = Ground::allowing(&["a.test:443"]);
    let (code, v4) = ground.lookup("example.com.", RecordType::A).await;
    assert_eq!(code, ResponseCode::NoError);
    let (_, v6) = ground.lookup("EXAMPLE.com.", RecordType::AAAA).await;
    assert!(v4.unwrap().to_string().starts_with("198.18."));
    assert!(v6.unwrap().to_string().starts_with("fd67:6c6f:7665:"));
    assert_eq!(ground.lookup("example.com.", RecordType::A).await.1, v4);
    assert_ne!(ground.lookup("example.org.", RecordType::A).await.1, v4);
    for kind in [
        RecordType::TXT,
        RecordType::MX,
        RecordType::HTTPS,
        RecordType::SVCB,
        RecordType::CNAME,
    ] {
        assert_eq!(
            ground.lookup("example.com.", kind).await,
            (ResponseCode::NoError, None),
            "{kind}"
        );
    }
    assert!(ground.world.lookups.lock().unwrap().is_empty());
    // A name is told once, however often it is asked for.
    let told = ground.attempts();
    let names: Vec<_> = told.iter().map(|it| it.host.as_str()).collect();
    assert_eq!(names, ["example.com", "example.org"]);
    assert!(
        told.iter()
            .all(|it| it.approach == Approach::Dns && it.code == NetCode::Ok)
    );
    assert_eq!(ground.gateway.traffic().connections, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_never_public_do_not_exist() {
    let ground = Ground::allowing(&["a.test:443"]);
    for name in [
        "localhost",
        "printer.local",
        "db.internal",
        "intranet",
        "nas.home.arpa",
        "x.localhost",
        "metadata.google.internal",
        "127.0.0.1",
        "1.0.0.127.in-addr.arpa.x.lan",
    ] {
        let (code, address) = ground.lookup(name, RecordType::A).await;
        assert_eq!((code, address), (ResponseCode::NXDomain, None), "{name}");
        let told = ground.refused(name, 53, NetCode::DnsDenied).await;
        assert_eq!(told.approach, Approach::Dns);
    }
    let before = ground.attempts().len();
    ground.lookup("localhost", RecordType::A).await;
    assert_eq!(ground.attempts().len(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_is_answered_as_such_and_never_kills_it() {
    let ground = Ground::allowing(&["a.test:443"]);
    let good = question("example.com.", RecordType::A);
    let code = |answer: &[u8]| Message::from_vec(answer).unwrap().metadata.response_code;
    // A count of questions that are not there; a name that points at itself.
    for rubbish in [
        &good[..13],
        &[&good[..4], &[0xff, 0xff], &good[6..]].concat(),
        &[&good[..12], &[0xc0, 0x0c, 0, 1, 0, 1]].concat(),
    ] {
        assert_eq!(code(&ground.ask(rubbish).await), ResponseCode::FormErr);
    }
    let mut two = Message::from_vec(&good).unwrap();
    two.add_query(two.queries[0].clone());
    assert_eq!(
        code(&ground.ask(&two.to_vec().unwrap()).await),
        ResponseCode::FormErr
    );
    // Every cut and every changed byte: no answer, or one that can be read. The good question
    // behind them is answered.
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 0xff;
        ground.toss(&socket, &changed).await;
        ground.toss(&socket, &good[..at]).await;
    }
    assert_eq!(
        ground.lookup("example.com.", RecordType::A).await.0,
        ResponseCode::NoError
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_over_tcp_are_answered_whoever_they_are_for() {
    let ground = Ground::allowing(&["a.test:443"]);
    for server in [&RESOLVER.to_string()[..], "8.8.8.8", "2001:4860:4860::8888"] {
        let mut stream = ground.dial_address(server, 53).await;
        for name in ["example.com.", "localhost."] {
            let asked = question(name, RecordType::A);
            stream
                .write_u16(u16::try_from(asked.len()).unwrap())
                .await
                .unwrap();
            stream.write_all(&asked).await.unwrap();
            let length = patiently(stream.read_u16()).await.unwrap();
            let mut answer = vec![0; usize::from(length)];
            patiently(stream.read_exact(&mut answer)).await.unwrap();
            let (code, address) = read_answer(&answer);
            assert_eq!(code == ResponseCode::NoError, address.is_some());
            assert_eq!(address.is_some(), name == "example.com.");
        }
    }
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_network_there_are_no_names() {
    let ground = Ground::closed(None, &[]);
    assert_eq!(
        ground.lookup("example.com.", RecordType::A).await,
        (ResponseCode::Refused, None)
    );
    ground.heard(|it| it.code == NetCode::NetModeNone).await;
    let mut over = policy(&["a.test:443"]);
    over.closes = std::time::Instant::now();
    ground.gateway.admit(over);
    assert_eq!(
        ground.lookup("example.com.", RecordType::A).await,
        (ResponseCode::Refused, None)
    );
    ground.heard(|it| it.code == NetCode::PolicyExpired).await;
}
