//! What the client sends, and to whom.

use std::time::Duration;

use glovebox_egress::client::{Authorization, DeliveryRequest, Fetch, RedirectRules};
use glovebox_egress::{PrivateTargets, RefusalCode, vet_url};
use hyper::header::{HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::tls;
use crate::world::{PUBLIC, Road, Server, World, ok, redirect};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

const SECRET: &str = "Bearer of-a-secret";

fn fetch(url: &str, ports: &PrivateTargets) -> Fetch {
    Fetch {
        target: vet_url(url, ports).unwrap(),
        accept: "application/json".to_owned(),
        authorization: Some(Authorization::new(SECRET).unwrap()),
    }
}

fn carries(head: &str) -> bool {
    head.contains(SECRET)
}

/// S110: another host, another port, another scheme; and it does not come back with the way.
pub(crate) async fn credentials_stay_at_their_origin() {
    let ports = PrivateTargets::parse(["a.test:8443"]).unwrap();
    let rules = RedirectRules {
        ports: &ports,
        domains: &[],
        policy: None,
        url: None,
        redirects: 5,
    };
    for elsewhere in ["https://b.test/", "https://a.test:8443/"] {
        let (first, first_heard) = tls::named("a.test", redirect(302, elsewhere)).await;
        let name = match elsewhere.contains("b.test") {
            true => "b.test",
            false => "a.test",
        };
        let (second, second_heard) = tls::named(name, redirect(302, "https://a.test/back")).await;
        let world = World::empty();
        world.names.set("a.test", &[&[PUBLIC]]);
        world.names.set("b.test", &[&["93.184.216.35"]]);
        world.roads.set(PUBLIC, 443, Road::To(first.address));
        world.roads.set(PUBLIC, 8443, Road::To(second.address));
        world
            .roads
            .set("93.184.216.35", 443, Road::To(second.address));
        let client = &world.retriever.client;
        let ended = client
            .fetch(fetch("https://a.test/", &ports), rules, soon())
            .await;
        assert_eq!(ended.unwrap_err().code, RefusalCode::RedirectLimitExceeded);
        let first: Vec<_> = first_heard
            .heads
            .lock()
            .unwrap()
            .iter()
            .map(|it| carries(it))
            .collect();
        assert_eq!(first, [true, false, false], "{elsewhere}");
        let second = second_heard.heads.lock().unwrap();
        assert!(
            second.len() == 3 && !second.iter().any(|it| carries(it)),
            "{elsewhere}"
        );
    }

    // From http to https of the same host, too; and within an origin it stays.
    let plain = Server::saying(redirect(302, "https://a.test/")).await;
    let (secure, heard) = tls::named("a.test", ok("application/json", "{}")).await;
    let world = World::empty();
    world.names.set("a.test", &[&[PUBLIC]]);
    world.roads.set(PUBLIC, 80, Road::To(plain.address));
    world.roads.set(PUBLIC, 443, Road::To(secure.address));
    let client = &world.retriever.client;
    let mut followed = client
        .fetch(fetch("http://a.test/", &ports), rules, soon())
        .await
        .unwrap();
    assert_eq!(
        followed.answer.chunk().await.unwrap().as_deref(),
        Some(&b"{}"[..])
    );
    assert_eq!(followed.answer.chunk().await.unwrap(), None);
    assert!(carries(&plain.seen()[0]));
    assert!(!carries(&heard.heads.lock().unwrap()[0]));
}

#[tokio::test]
async fn credentials_follow_a_redirect_within_their_origin() {
    let server = Server::saying(redirect(307, "/again")).await;
    let world = World::with(&server);
    let ports = PrivateTargets::none();
    let rules = RedirectRules {
        ports: &ports,
        domains: &[],
        policy: None,
        url: None,
        redirects: 2,
    };
    let client = &world.retriever.client;
    let ended = client
        .fetch(fetch("http://ok.test/", &ports), rules, soon())
        .await;
    assert_eq!(ended.unwrap_err().code, RefusalCode::RedirectLimitExceeded);
    let carried: Vec<_> = server.seen().iter().map(|it| carries(it)).collect();
    assert_eq!(carried, [true, true, true]);
    assert!(!format!("{:?}", fetch("http://ok.test/x?y=z", &ports)).contains("of-a-secret"));
}

/// S127
pub(crate) async fn the_host_header_is_the_targets() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    let mut world = World::with(&server);
    world.retriever.ports = PrivateTargets::parse(["ok.test:8080"]).unwrap();
    world.roads.set(PUBLIC, 8080, Road::To(server.address));
    for url in [
        "http://OK.test:80/a?b#c",
        "http://ok.test.:8080/",
        "http://93.184.216.34/",
    ] {
        assert_eq!(world.code(url).await, None, "{url}");
    }
    let hosts: Vec<_> = server
        .seen()
        .iter()
        .map(|head| {
            let lines: Vec<_> = head
                .lines()
                .filter(|it| it.to_ascii_lowercase().starts_with("host:"))
                .collect();
            assert_eq!(lines.len(), 1);
            lines[0][5..].trim().to_owned()
        })
        .collect();
    assert_eq!(hosts, ["ok.test", "ok.test:8080", "93.184.216.34"]);
    assert!(server.seen()[0].starts_with("GET /a?b HTTP/1.1\r\n"));
}

#[tokio::test]
async fn retrieval_sends_nothing_of_anybody() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    World::with(&server).get("http://ok.test/").await;
    let head = server.seen()[0].to_ascii_lowercase();
    let mut names: Vec<_> = head
        .lines()
        .skip(1)
        .filter_map(|it| it.split_once(':'))
        .map(|it| it.0)
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "accept-encoding",
            "connection",
            "host",
            "user-agent"
        ]
    );
}

#[tokio::test]
async fn a_delivery_is_posted_once_and_not_redirected() {
    let server = Server::start(|mut stream, head| {
        Box::pin(async move {
            let mut body = [0; 7];
            let _ = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body).await;
            let right = &body == b"{\"a\":1}" && head.contains("x-signature: abc\r\n");
            let answer = match right {
                true => {
                    "HTTP/1.1 503 Later\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n".to_owned()
                }
                false => redirect(302, "http://127.0.0.1/"),
            };
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        })
    })
    .await;
    let world = World::with(&server);
    let delivery = |signature: &'static str| DeliveryRequest {
        target: vet_url("http://ok.test/hook", &PrivateTargets::none()).unwrap(),
        content_type: HeaderValue::from_static("application/json"),
        headers: vec![(
            HeaderName::from_static("x-signature"),
            HeaderValue::from_static(signature),
        )],
        body: "{\"a\":1}".into(),
    };
    let client = &world.retriever.client;
    let delivered = client.deliver(&delivery("abc"), soon()).await.unwrap();
    assert_eq!((delivered.status, delivered.retry_after), (503, Some(7)));
    let delivered = client.deliver(&delivery("other"), soon()).await.unwrap();
    assert_eq!(delivered.status, 302);
    assert_eq!(world.roads.dialled().len(), 2);
    assert!(server.seen()[0].starts_with("POST /hook HTTP/1.1\r\n"));
    // Where it leads is judged as everything else.
    world.names.set("ok.test", &[&["10.0.0.1"]]);
    let refusal = client.deliver(&delivery("abc"), soon()).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::DestinationBlocked);
}
