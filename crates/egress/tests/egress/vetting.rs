//! What the vetter lets through, whom it dials, and whom it believes.

use std::time::Duration;

use glovebox_egress::{Host, PrivateTargets, RefusalCode, Vetter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::world::{PUBLIC, PUBLIC_6, Road, Server, World, ok};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn listing(rules: &[&str]) -> World {
    let mut world = World::empty();
    world.retriever.client.vetter.private = PrivateTargets::parse(rules).unwrap();
    world
}

async fn code(world: &World, host: &str, port: u16) -> Option<RefusalCode> {
    let vetted = world.vetter().vet(&Host::parse(host).unwrap(), port).await;
    vetted.err().map(|it| it.code)
}

const BLOCKED: Option<RefusalCode> = Some(RefusalCode::DestinationBlocked);

#[tokio::test]
async fn the_listed_private_destination_opens_itself_alone() {
    let world = listing(&[
        "db.internal:5432",
        "127.0.0.1:5000",
        "[::1]:5000",
        "localhost:6000",
    ]);
    world.names.set("db.internal", &[&["10.0.0.5"]]);
    world.names.set("localhost", &[&["127.0.0.1", "::1"]]);
    world.names.set("other.test", &[&["10.0.0.5"]]);
    world.names.set("loop.test", &[&["127.0.0.1"]]);
    for (host, port, expected) in [
        ("db.internal", 5432, None),
        ("db.internal", 5433, BLOCKED),
        ("other.test", 5432, BLOCKED),
        ("10.0.0.5", 5432, BLOCKED),
        ("127.0.0.1", 5000, None),
        ("2130706433", 5000, None),
        ("[::1]", 5000, None),
        ("127.0.0.1", 5001, BLOCKED),
        ("127.0.0.2", 5000, BLOCKED),
        ("localhost", 6000, None),
        ("localhost", 5000, BLOCKED),
        ("loop.test", 5000, BLOCKED),
        ("[::ffff:127.0.0.1]", 5000, BLOCKED),
    ] {
        assert_eq!(code(&world, host, port).await, expected, "{host}:{port}");
    }
}

#[tokio::test]
async fn a_listed_name_does_not_open_the_metadata_service() {
    let world = listing(&[
        "meta.test:80",
        "169.254.169.254:80",
        "link.test:80",
        "zero.test:80",
        "0.0.0.0:80",
        "224.0.0.1:80",
    ]);
    for (host, address) in [
        ("meta.test", "169.254.169.254"),
        ("link.test", "169.254.1.1"),
        ("zero.test", "0.0.0.0"),
    ] {
        world.names.set(host, &[&[address]]);
        assert_eq!(code(&world, host, 80).await, BLOCKED, "{host}");
    }
    world.names.set(
        "meta.test",
        &[&["168.63.129.16"], &["fd00:ec2::254"], &["100.100.100.200"]],
    );
    for _ in 0..3 {
        assert_eq!(code(&world, "meta.test", 80).await, BLOCKED);
    }
    assert_eq!(code(&world, "169.254.169.254", 80).await, None);
    assert_eq!(code(&world, "0.0.0.0", 80).await, BLOCKED);
    assert_eq!(code(&world, "224.0.0.1", 80).await, BLOCKED);
}

#[tokio::test]
async fn a_peer_that_was_not_vetted_is_hung_up_on() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    for peer in ["127.0.0.1:80", "93.184.216.34:81", "10.0.0.1:80"] {
        let world = World::with(&server);
        let peer = peer.parse().unwrap();
        world
            .roads
            .set(PUBLIC, 80, Road::Reports(server.address, peer));
        assert_eq!(world.code("http://ok.test/").await, BLOCKED, "{peer}");
    }
    // The same address in its IPv6 form is the same.
    let world = World::with(&server);
    let peer = "[::ffff:93.184.216.34]:80".parse().unwrap();
    world
        .roads
        .set(PUBLIC, 80, Road::Reports(server.address, peer));
    assert_eq!(world.code("http://ok.test/").await, None);
}

#[tokio::test]
async fn an_address_that_does_not_answer_does_not_hold_up_the_next() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    let world = World::with(&server);
    world
        .names
        .set("ok.test", &[&[PUBLIC_6, "93.184.216.99", PUBLIC]]);
    world.roads.set(PUBLIC_6, 80, Road::Nowhere);
    // The one at .99 refuses at once.
    assert_eq!(world.code("http://ok.test/").await, None);
    let dialled: Vec<_> = world
        .roads
        .dialled()
        .iter()
        .map(|it| it.ip().to_string())
        .collect();
    assert_eq!(dialled, [PUBLIC_6, "93.184.216.99", PUBLIC]);
}

#[tokio::test]
async fn nobody_there_is_told_as_such() {
    let world = World::empty();
    world.names.set("ok.test", &[&[PUBLIC]]);
    world.names.set("none.test", &[&[]]);
    let refused = world.get("http://ok.test/").await.error.unwrap();
    assert_eq!(refused.code, RefusalCode::ConnectionTimeout);
    assert!(refused.message.contains("refused"), "{refused}");
    assert_eq!(
        world.code("http://none.test/").await,
        Some(RefusalCode::DnsFailed)
    );
    assert_eq!(
        world.code("http://nx.test/").await,
        Some(RefusalCode::DnsFailed)
    );
}

/// With the system's own resolver and sockets.
#[tokio::test]
async fn the_real_way_to_a_listed_place_on_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepting = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
    });
    let rules = [
        format!("{address}"),
        format!("localhost:{}", address.port()),
    ];
    let vetter = Vetter::system(PrivateTargets::parse(rules).unwrap());
    let name = Host::parse("localhost").unwrap();
    let vetted = vetter.vet(&name, address.port()).await.unwrap();
    assert!(vetted.addresses().iter().all(|it| it.is_loopback()));
    let mut connection = vetter.connect(&vetted, soon()).await.unwrap();
    assert_eq!(connection.peer().unwrap(), address);
    let mut text = String::new();
    connection.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello");
    assert!(connection.into_tcp().unwrap().nodelay().unwrap());
    accepting.await.unwrap();

    let unlisted = Vetter::system(PrivateTargets::none());
    let literal = Host::parse("127.0.0.1").unwrap();
    for host in [name, literal] {
        let refusal = unlisted.vet(&host, address.port()).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::DestinationBlocked);
        assert!(refusal.hint.unwrap().contains("[network] private"));
    }
}

#[tokio::test]
async fn the_operators_door_reaches_what_it_is_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let within = Duration::from_secs(60);
    glovebox_egress::operator::tcp("127.0.0.1", port, within)
        .await
        .unwrap();
    drop(listener);
    let gone = glovebox_egress::operator::tcp("127.0.0.1", port, within).await;
    assert_eq!(
        gone.unwrap_err().kind(),
        std::io::ErrorKind::ConnectionRefused
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let _listener = tokio::net::UnixListener::bind(&path).unwrap();
    glovebox_egress::operator::unix(&path, within)
        .await
        .unwrap();
}
