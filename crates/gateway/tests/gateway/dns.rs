//! The sandbox's DNS.

use glovebox_gateway::RESOLVER;
use glovebox_model::{Approach, NetCode};
use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{Ground, patiently, policy, question, read_answer, until};
use crate::simulation::{Stage, simulated};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_answered_is_told_by_its_names_or_counted_in_a_simulation() {
    let ground = &Stage::empty().ground;
    ground
        .gateway
        .admit(simulated(policy(&["a.test:443"]), json!({})));
    let odd = |name: &str, change: fn(&mut Message)| {
        let mut message = Message::from_vec(&question(name, RecordType::TXT)).unwrap();
        change(&mut message);
        message.to_vec().unwrap()
    };
    let class = odd("class.example.", |it| {
        it.queries[0].set_query_class(DNSClass::CH);
    });
    let update = odd("update.example.", |it| {
        it.metadata.op_code = OpCode::Update;
    });
    let two = odd("one.example.", |it| {
        let other = Message::from_vec(&question("two.example.", RecordType::A)).unwrap();
        it.add_query(other.queries[0].clone());
    });
    for message in [class, update, two] {
        ground.ask(&message).await;
    }
    let seen = ground.all_seen();
    let names: Vec<_> = seen.iter().map(|it| it.host.as_str()).collect();
    let all = [
        "class.example",
        "update.example",
        "one.example",
        "two.example",
    ];
    assert_eq!(names, all);
    assert!(seen.iter().all(|it| it.code == NetCode::DnsDenied));
    assert_eq!(seen[0].record_type.as_deref(), Some("TXT"));
    assert_eq!(ground.untold(), 0);
    // No name: rubbish with and without an id, an answer, and a message without a question.
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let good = question("example.com.", RecordType::A);
    let none = odd("none.example.", |it| it.queries.clear());
    let answer = [&good[..2], &[good[2] | 0x80], &good[3..]].concat();
    for rubbish in [&b"x"[..], b"SECRET SECRET SECRET", &none, &answer] {
        ground.toss(&socket, rubbish).await;
    }
    until(|| (ground.untold() == 4).then_some(()))
        .await
        .unwrap();
    // Half a message, and a connection without any; one whose questions were told is no more.
    for (bytes, untold) in [(&[0, 40, 1][..], 5), (&[], 6)] {
        let mut stream = ground.dial_address("9.9.9.9", 53).await;
        stream.write_all(bytes).await.unwrap();
        drop(stream);
        let counted = until(|| (ground.untold() == untold).then_some(())).await;
        assert!(counted.is_some(), "{bytes:?}: {}", ground.untold());
    }
    let mut stream = ground.dial_address("9.9.9.9", 53).await;
    let length = u16::try_from(good.len()).unwrap();
    stream.write_u16(length).await.unwrap();
    stream.write_all(&good).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    patiently(stream.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(read_answer(&answer[2..]).0, ResponseCode::NoError);
    assert_eq!(ground.untold(), 6);
    assert_eq!(ground.all_seen().len(), all.len() + 1);
}
