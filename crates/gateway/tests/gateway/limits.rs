//! Budgets, time, and ends.

use std::time::{Duration, Instant};

use glovebox_model::NetCode;
use hickory_proto::rr::RecordType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ground::{Ground, get, host, patiently, policy, tell, until};
use crate::servers::{echo, http};

/// A connection that is open and works.
async fn open(ground: &Ground) -> TcpStream {
    let mut stream = ground.dial("a.test", 7000).await;
    stream.write_all(b"\x00").await.unwrap();
    patiently(stream.read_u8()).await.unwrap();
    stream
}

async fn is_reset(mut stream: TcpStream) -> bool {
    let read = patiently(stream.read_u8()).await;
    read.is_err_and(|it| it.kind() == std::io::ErrorKind::ConnectionReset)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_counted_and_end() {
    let ground = Ground::closed(None, &[]);
    ground.world.host("a.test", 80, http().await);
    let mut few = policy(&["a.test:80"]);
    few.connections = 2;
    ground.gateway.admit(few);
    for _ in 0..2 {
        let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/"))
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/"))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(answer.contains("egress_connections"), "{answer}");
    let told = ground.refused("a.test", 80, NetCode::Other).await;
    assert!(told.hint.unwrap().contains("egress_connections"));
    assert_eq!(ground.dials(), 2);
    assert_eq!(ground.gateway.traffic().connections, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_counted_while_they_move() {
    let ground = Ground::closed(None, &[]);
    ground.world.host("a.test", 7000, echo().await);
    let mut few = policy(&["a.test:7000"]);
    few.bytes = 1_000_000;
    ground.gateway.admit(few);
    let stream = open(&ground).await;
    let (mut read, mut write) = stream.into_split();
    let pump = tokio::spawn(async move {
        let block = vec![0; 64 * 1024];
        loop {
            if let Err(error) = write.write_all(&block).await {
                return error;
            }
        }
    });
    let mut back = 0;
    let mut buffer = vec![0; 64 * 1024];
    let read = loop {
        match patiently(read.read(&mut buffer)).await {
            Ok(0) => break None,
            Ok(bytes) => back += bytes,
            Err(error) => break Some(error),
        }
    };
    // The kernel tells a reset once, to whoever asks first.
    let errors = [read, Some(patiently(pump).await.unwrap())];
    let mut kinds = errors.iter().flatten().map(std::io::Error::kind);
    assert!(
        kinds.any(|it| it == std::io::ErrorKind::ConnectionReset),
        "{errors:?}"
    );
    assert!(back <= 1_000_000, "{back}");
    let told = ground
        .heard(|it| it.ended && it.code == NetCode::Other)
        .await;
    assert!(told.hint.unwrap().contains("egress_bytes"));
    assert_eq!(tell(ground.dial("a.test", 7000).await, "\x00").await, None);
    assert_eq!(ground.dials(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_connection_is_cut_when_the_time_is_over() {
    // A host that has no time for this now gets more of it.
    for seconds in [1, 5, 30] {
        if cut_after(Duration::from_secs(seconds)).await {
            return;
        }
    }
    panic!("no connection ever stood");
}

/// Whether it stood before the time was over.
async fn cut_after(time: Duration) -> bool {
    let ground = Ground::closed(None, &[]);
    ground.world.host("a.test", 7000, echo().await);
    let mut short = policy(&["a.test:7000"]);
    short.closes = Instant::now() + time;
    ground.gateway.admit(short);
    let Some(address) = ground.lookup("a.test", RecordType::A).await.1 else {
        return false;
    };
    let mut stream = ground.dial_address(&address.to_string(), 7000).await;
    let _ = stream.write_all(b"\x00").await;
    if patiently(stream.read_u8()).await.is_err() {
        return false;
    }
    assert!(is_reset(stream).await);
    let told = ground.heard(|it| it.ended).await;
    assert_eq!(told.code, NetCode::PolicyExpired);
    let known = ground.gateway.names().address_of(&host("a.test")).unwrap();
    let stream = ground.dial_address(&known.v4.to_string(), 7000).await;
    assert_eq!(tell(stream, "\x00").await, None);
    ground.refused("a.test", 7000, NetCode::PolicyExpired).await;
    assert_eq!(ground.dials(), 1);
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_and_admitting_anew_cut_what_is_open() {
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, echo().await);
    let stream = open(&ground).await;
    ground.gateway.close();
    assert!(is_reset(stream).await);
    ground.gateway.admit(policy(&["a.test:7000"]));
    let stream = open(&ground).await;
    ground.gateway.admit(policy(&["a.test:7000"]));
    assert!(is_reset(stream).await);
    let stream = open(&ground).await;
    let proxied = ground.to_proxy().await;
    drop(ground.gateway);
    assert!(is_reset(stream).await);
    drop(proxied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_breaks_off_breaks_the_host_off_too() {
    let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let server = crate::servers::listen(move |mut stream| {
        let sender = sender.clone();
        async move {
            let mut all = Vec::new();
            let read = stream.read_to_end(&mut all).await;
            let _ = sender.send(read.is_ok());
        }
    })
    .await;
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, server);
    let mut stream = ground.dial("a.test", 7000).await;
    stream.write_all(b"\x00half").await.unwrap();
    until(|| (ground.gateway.traffic().sent == 5).then_some(()))
        .await
        .unwrap();
    stream.set_zero_linger().unwrap();
    drop(stream);
    assert_eq!(
        patiently(ended.recv()).await,
        Some(false),
        "an upload that was cut off looks whole"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_connections_stand_at_once() {
    let ground = Ground::allowing(&["a.test:7000"]);
    ground.world.host("a.test", 7000, echo().await);
    let mut standing = Vec::new();
    for _ in 0..512 {
        standing.push(open(&ground).await);
    }
    let known = ground.gateway.names().address_of(&host("a.test")).unwrap();
    if let Ok(stream) = ground.try_dial(&known.v4.to_string(), 7000).await {
        assert_eq!(tell(stream, "\x00").await, None);
    }
    ground.heard(|it| it.code == NetCode::Other).await;
    drop(standing);
    until(|| (ground.attempts().iter().filter(|it| it.ended).count() >= 512).then_some(()))
        .await
        .unwrap();
    open(&ground).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_has_the_first_refusals_and_counts_the_rest() {
    let ground = Ground::allowing(&["a.test:80"]);
    for number in 0..40 {
        for _ in 0..2 {
            let stream = ground.dial(&format!("n{number}.test"), 80).await;
            tell(stream, &get("n.test", "/")).await.unwrap();
        }
    }
    let traffic = ground.gateway.traffic();
    assert_eq!(traffic.refused.len(), 32);
    assert!(
        traffic.refused.iter().all(|it| it.times == 2),
        "{traffic:?}"
    );
    assert_eq!(traffic.refused_more, 16);
}
