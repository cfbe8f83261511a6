//! A network that is only played.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use glovebox_gateway::{Authority, Brokered, Inspect, Policy, Seen, Simulated};
use glovebox_model::{Approach, NetCode, NetworkMode, Spoken};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zeroize::Zeroizing;

use crate::authority::sandbox_client;
use crate::ground::{
    Ground, get, one_answer, patiently, policy, question, read_answer, rules, tell, until,
};
use crate::servers::{Trusted, echo, http, secure};

pub(crate) struct Stage {
    pub(crate) ground: Ground,
    pub(crate) authority: Arc<Authority>,
    pub(crate) trusted: Trusted,
}

pub(crate) fn simulated(policy: Policy, simulation: Value) -> Policy {
    let simulation = serde_json::from_value(simulation).unwrap();
    Policy {
        simulate: Some(Simulated::new(&simulation).unwrap()),
        ..policy
    }
}

impl Stage {
    pub(crate) fn empty() -> Self {
        let trusted = Trusted::new();
        let authority = Arc::new(Authority::new(trusted.client()).unwrap());
        Self {
            ground: Ground::closed(Some(Arc::clone(&authority)), &[]),
            authority,
            trusted,
        }
    }

    pub(crate) fn new(policy: Policy, simulation: Value) -> Self {
        let stage = Self::empty();
        stage.ground.gateway.admit(simulated(policy, simulation));
        stage
    }

    /// One request over TLS, by a program that trusts what it is told to.
    pub(crate) async fn ask(&self, stream: TcpStream, name: &str, request: &str) -> Option<String> {
        let config = sandbox_client(&self.authority);
        let stream = patiently(secure(stream, config, name)).await.unwrap();
        tell(stream, request).await
    }

    async fn ask_by_name(&self, name: &str, request: &str) -> String {
        let stream = self.ground.dial(name, 443).await;
        self.ask(stream, name, request).await.expect("a reset")
    }

    pub(crate) async fn plain(&self, name: &str, request: &str) -> Option<String> {
        tell(self.ground.dial(name, 80).await, request).await
    }

    async fn connect(&self, target: &str) -> TcpStream {
        let mut stream = self.ground.to_proxy().await;
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = one_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{target}: {answer}");
        stream
    }

    async fn socks(&self, name: &str, port: u16) -> TcpStream {
        let mut stream = self.ground.to_proxy().await;
        let length = u8::try_from(name.len()).unwrap();
        let asked = [
            &[5, 1, 0, 5, 1, 0, 3, length][..],
            name.as_bytes(),
            &port.to_be_bytes(),
        ]
        .concat();
        stream.write_all(&asked).await.unwrap();
        let mut reply = [0; 12];
        patiently(stream.read_exact(&mut reply)).await.unwrap();
        assert_eq!(reply[..4], [5, 0, 5, 0], "{name}");
        stream
    }

    /// Everything that a program can do at any door, to hosts that are all there.
    async fn everything(&self) {
        let ground = &self.ground;
        let request = get("a.test", "/x");
        tell(ground.dial("a.test", 80).await, &request).await;
        let stream = ground.dial("raw.test", 7000).await;
        let mut raw = stream;
        raw.write_all(b"\x00raw").await.unwrap();
        raw.shutdown().await.unwrap();
        let _ = patiently(raw.read_to_end(&mut Vec::new())).await;
        let stream = ground.dial("tls.test", 443).await;
        let config = sandbox_client(&self.authority);
        if let Ok(stream) = patiently(secure(stream, config, "tls.test")).await {
            tell(stream, &get("tls.test", "/x")).await;
        }
        let absolute = "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        tell(ground.to_proxy().await, absolute).await;
        tell(self.connect("a.test:80").await, &request).await;
        tell(self.socks("a.test", 80).await, &request).await;
        ground.lookup("a.test", RecordType::AAAA).await;
        ask_tcp(ground, "a.test").await;
    }
}

async fn ask_tcp(ground: &Ground, name: &str) -> (ResponseCode, Option<IpAddr>) {
    let mut stream = ground.dial_address("8.8.8.8", 53).await;
    let asked = question(name, RecordType::A);
    let length = u16::try_from(asked.len()).unwrap();
    stream.write_u16(length).await.unwrap();
    stream.write_all(&asked).await.unwrap();
    let length = patiently(stream.read_u16()).await.unwrap();
    let mut answer = vec![0; usize::from(length)];
    patiently(stream.read_exact(&mut answer)).await.unwrap();
    read_answer(&answer)
}

fn everywhere() -> Policy {
    policy(&["a.test:80", "raw.test:7000", "tls.test:443", "api.test:443"])
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_door_of_a_simulation_leads_outside_and_each_does_for_real() {
    let stage = Stage::empty();
    let world = &stage.ground.world;
    world.host("a.test", 80, http().await);
    world.host("raw.test", 7000, echo().await);
    world.host("tls.test", 443, stage.trusted.https(&["tls.test"]).await);
    let admit = |policy| stage.ground.gateway.admit(policy);
    admit(simulated(
        everywhere(),
        json!({"responses": [{"host": "*"}]}),
    ));
    stage.everything().await;
    assert_eq!(stage.ground.dials(), 0);
    assert!(world.lookups.lock().unwrap().is_empty());
    assert_eq!(stage.ground.gateway.traffic().connections, 6);

    // The same for real, so that the above is no accident: one for each of the six, and none for
    // questions to the DNS.
    admit(everywhere());
    stage.everything().await;
    assert_eq!(stage.ground.dials(), 6);
    assert_eq!(world.lookups.lock().unwrap().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_were_given_come_back_whole_over_tls_and_without() {
    let stage = Stage::new(
        everywhere(),
        json!({"responses": [
            {"host": "api.test", "port": 443, "method": "POST", "path": "/v1/*", "status": 201,
             "headers": {"X-Kind": "made"}, "json": {"id": 7}},
            {"host": "*.test", "path": "/text", "body": "hello"},
            {"host": "*", "path": "/bytes", "body_base64": "AAECAw=="},
            {"host": "a.test", "path": "/none", "status": 204},
        ]}),
    );
    let post = "POST /v1/items?secret=1 HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde";
    let answer = stage.ask_by_name("api.test", post).await;
    assert_eq!(status(&answer), 201, "{answer}");
    assert!(answer.contains("\r\nx-kind: made\r\n"), "{answer}");
    assert!(answer.contains("\r\ncontent-type: application/json\r\n"));
    assert!(answer.contains("\r\ncontent-length: 8\r\n"), "{answer}");
    assert!(answer.contains("\r\nx-glovebox-simulated: 1\r\n"));
    assert!(answer.ends_with("\r\n\r\n{\"id\":7}"), "{answer}");
    let seen = stage.ground.seen(|it| it.method.is_some()).await;
    assert_eq!((seen.spoken, seen.code), (Spoken::Https, NetCode::Ok));
    assert_eq!(seen.path.as_deref(), Some("/v1/items"));
    assert_eq!(seen.server_name.as_deref(), Some("api.test"));
    assert_eq!(seen.body_bytes, 5);
    let digest = blake3::hash(b"abcde").to_hex().to_string();
    assert_eq!(seen.body_digest, Some(digest));
    let told = seen.answer.unwrap();
    assert_eq!(
        (told.status, told.preset, told.fault),
        (Some(201), Some(0), None)
    );
    assert!(!format!("{seen:?}").contains("secret"), "{seen:?}");

    // Several requests on one connection, also one whose answer has no body.
    let mut stream = stage.ground.dial("a.test", 80).await;
    for (request, body) in [
        ("GET /text", "hello"),
        ("GET /bytes", "\0\u{1}\u{2}\u{3}"),
        ("GET /none", ""),
        ("PUT /text", "hello"),
    ] {
        let request = format!("{request} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = one_answer(&mut stream).await;
        assert!(answer.contains("x-glovebox-simulated: 1"), "{answer}");
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, body);
    }
    let head = "HEAD /text HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = tell(stream, head).await.unwrap();
    assert_eq!(status(&answer), 200);
    assert!(answer.contains("\r\ncontent-length: 5\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    let requests = |it: &&Seen| it.host == "a.test" && it.method.is_some();
    assert_eq!(stage.ground.all_seen().iter().filter(requests).count(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_answer_the_program_is_told_that_nothing_was_sent() {
    let stage = Stage::new(everywhere(), json!({}));
    let chunked = "POST /up HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let answer = stage.plain("a.test", chunked).await.unwrap();
    assert_eq!(status(&answer), 502, "{answer}");
    assert!(answer.contains("x-glovebox-simulated: 1"), "{answer}");
    assert!(answer.contains("content-type: text/plain"), "{answer}");
    assert!(answer.contains("this is a simulation: nothing was sent to `a.test:80`"));
    let seen = stage.ground.seen(|it| it.method.is_some()).await;
    assert_eq!(seen.body_bytes, 5);
    assert_eq!(
        seen.body_digest,
        Some(blake3::hash(b"abcde").to_hex().to_string())
    );
    let told = seen.answer.unwrap();
    assert_eq!((told.status, told.preset), (Some(502), None));
    assert!(seen.would_succeed());
    // The log has it too, with its beginning and its end.
    let begun = stage.ground.heard(|it| it.method.is_some()).await;
    assert_eq!(begun.rule, Some("a.test:80".parse().unwrap()));
    let ended = stage.ground.heard(|it| it.ended).await;
    assert_eq!((ended.code, ended.address), (NetCode::Ok, None));

    let upgrade =
        "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let stage = Stage::new(everywhere(), json!({"responses": [{"host": "*"}]}));
    let mut stream = stage.ground.dial("a.test", 80).await;
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    assert_eq!(status(&one_answer(&mut stream).await), 502);
    let seen = stage.ground.seen(|it| it.method.is_some()).await;
    assert_eq!(seen.path.as_deref(), Some("/ws"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_policy_would_refuse_is_recorded_as_such_and_answered_all_the_same() {
    let stage = Stage::new(everywhere(), json!({"responses": [{"host": "*"}]}));
    let ground = &stage.ground;
    let answer = stage.plain("c.test", &get("c.test", "/1")).await.unwrap();
    assert_eq!(status(&answer), 200, "{answer}");
    let answer = stage.plain("tls.test", &get("tls.test", "/2")).await;
    assert_eq!(status(&answer.unwrap()), 200);
    // Addresses, at every door.
    let stream = ground.dial_address("93.184.216.34", 80).await;
    assert_eq!(
        status(&tell(stream, &get("93.184.216.34", "/3")).await.unwrap()),
        200
    );
    let stream = ground.dial_address("93.184.216.34", 443).await;
    let request = get("93.184.216.34", "/4");
    let answer = stage.ask(stream, "93.184.216.34", &request).await;
    assert_eq!(status(&answer.unwrap()), 200);
    let stream = stage.connect("93.184.216.34:80").await;
    assert_eq!(
        status(&tell(stream, &get("93.184.216.34", "/5")).await.unwrap()),
        200
    );
    let stream = stage.socks("93.184.216.34", 80).await;
    assert_eq!(
        status(&tell(stream, &get("93.184.216.34", "/6")).await.unwrap()),
        200
    );
    let absolute =
        "GET http://[2001:db8::1]/7 HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: close\r\n\r\n";
    assert_eq!(
        status(&tell(ground.to_proxy().await, absolute).await.unwrap()),
        200
    );
    // Names that contradict each other.
    let stream = ground.dial("api.test", 443).await;
    let answer = stage.ask(stream, "evil.test", &get("api.test", "/8")).await;
    assert_eq!(status(&answer.unwrap()), 200);
    let answer = stage.plain("a.test", &get("evil.test", "/9")).await;
    assert_eq!(status(&answer.unwrap()), 200);
    for (path, code, approach, host) in [
        ("/1", NetCode::NotInAllowlist, Approach::Direct, "c.test"),
        ("/2", NetCode::PortNotAllowed, Approach::Direct, "tls.test"),
        (
            "/3",
            NetCode::InvalidDestination,
            Approach::Direct,
            "93.184.216.34",
        ),
        (
            "/4",
            NetCode::InvalidDestination,
            Approach::Direct,
            "93.184.216.34",
        ),
        (
            "/5",
            NetCode::InvalidDestination,
            Approach::Connect,
            "93.184.216.34",
        ),
        (
            "/6",
            NetCode::InvalidDestination,
            Approach::Socks,
            "93.184.216.34",
        ),
        (
            "/7",
            NetCode::InvalidDestination,
            Approach::Proxied,
            "[2001:db8::1]",
        ),
        ("/8", NetCode::SniMismatch, Approach::Direct, "api.test"),
        ("/9", NetCode::SniMismatch, Approach::Direct, "a.test"),
    ] {
        let seen = ground.seen(|it| it.path.as_deref() == Some(path)).await;
        assert_eq!((seen.code, seen.approach), (code, approach), "{path}");
        assert_eq!(seen.host, host, "{path}");
        assert!(!seen.would_succeed() && seen.why.is_some() && seen.hint.is_some());
        assert_eq!(seen.answer.unwrap().preset, Some(0), "{path}");
        let told = ground.heard(|it| it.path.as_deref() == Some(path)).await;
        assert_eq!(told.code, code, "{path}");
    }
    let seen = ground.seen(|it| it.path.as_deref() == Some("/8")).await;
    assert_eq!(seen.server_name.as_deref(), Some("evil.test"));
    assert_eq!(ground.gateway.traffic().connections, 0);
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_times_rules_and_limits_are_recorded_and_do_not_stop_a_simulation() {
    let answered = json!({"responses": [{"host": "a.test"}, {"host": "api.test"}]});
    let none = Policy {
        mode: NetworkMode::None,
        ..everywhere()
    };
    let over = Policy {
        closes: Instant::now(),
        ..everywhere()
    };
    let few = Policy {
        connections: 0,
        ..everywhere()
    };
    for (policy, code) in [
        (none, NetCode::NetModeNone),
        (over, NetCode::PolicyExpired),
        (few, NetCode::Other),
    ] {
        let stage = Stage::new(policy, answered.clone());
        let answer = stage.plain("a.test", &get("a.test", "/")).await.unwrap();
        assert_eq!(status(&answer), 200, "{code}: {answer}");
        // A name goes on being told also where nobody answers for it.
        let (told, address) = stage.ground.lookup("b.test", RecordType::A).await;
        assert_eq!((told, address.is_some()), (ResponseCode::NoError, true));
        let seen = stage.ground.seen(|it| it.method.is_some()).await;
        assert_eq!(seen.code, code);
        let asked = stage.ground.seen(|it| it.spoken == Spoken::Dns).await;
        assert_eq!(asked.code == NetCode::Ok, code == NetCode::Other, "{code}");
    }
    let ruled = Policy {
        inspect: vec![Inspect {
            host: "api.test:443".parse().unwrap(),
            methods: Some(["GET".to_owned()].into()),
            paths: None,
        }],
        ..everywhere()
    };
    let stage = Stage::new(ruled, answered);
    let request = get("api.test", "/");
    assert_eq!(status(&stage.ask_by_name("api.test", &request).await), 200);
    let other = request.replace("GET", "DELETE");
    assert_eq!(status(&stage.ask_by_name("api.test", &other).await), 200);
    for (method, code) in [("GET", NetCode::Ok), ("DELETE", NetCode::NotInAllowlist)] {
        let seen = stage.ground.seen(|it| it.method.as_deref() == Some(method));
        assert_eq!(seen.await.code, code);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_trusts_only_the_real_world_is_seen_by_its_name() {
    let stage = Stage::new(everywhere(), json!({"responses": [{"host": "*"}]}));
    let stream = stage.ground.dial("api.test", 443).await;
    let refused = patiently(secure(stream, stage.trusted.client(), "api.test")).await;
    assert!(refused.is_err());
    let seen = stage.ground.seen(|it| it.spoken == Spoken::Tls).await;
    assert_eq!((seen.host.as_str(), seen.port), ("api.test", 443));
    assert_eq!(seen.server_name.as_deref(), Some("api.test"));
    // For real it would not have been opened.
    assert_eq!((seen.code, seen.method), (NetCode::Ok, None));
    assert_eq!(seen.answer, None);
    stage.ground.heard(|it| it.spoken == Spoken::Tls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_nobody_can_read_are_counted_and_end() {
    let stage = Stage::new(everywhere(), json!({}));
    let mut stream = stage.ground.dial("raw.test", 7000).await;
    stream.write_all(&[0; 100_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    assert_eq!(patiently(stream.read_to_end(&mut back)).await.unwrap(), 0);
    let seen = stage.ground.seen(|it| it.spoken == Spoken::Tcp).await;
    assert_eq!(
        (seen.host.as_str(), seen.port, seen.code),
        ("raw.test", 7000, NetCode::Ok)
    );
    assert_eq!((seen.body_bytes, &seen.body_digest), (100_000, &None));
    // Behind a proxy only what was meant for the host counts.
    let mut stream = stage.connect("raw.test:7001").await;
    stream.write_all(b"\x00four").await.unwrap();
    drop(stream);
    let seen = stage
        .ground
        .seen(|it| it.approach == Approach::Connect)
        .await;
    assert_eq!((seen.body_bytes, seen.code), (5, NetCode::PortNotAllowed));
    // One that waits for the host to speak first is closed in the end, without a reset.
    let mut stream = stage.ground.dial_address("192.0.2.1", 25).await;
    assert_eq!(patiently(stream.read_to_end(&mut back)).await.unwrap(), 0);
    let seen = stage.ground.seen(|it| it.port == 25).await;
    assert_eq!(seen.code, NetCode::InvalidDestination);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_still_open_at_the_end_is_told_of() {
    let stage = Stage::new(everywhere(), json!({}));
    let mut stream = stage.ground.dial("raw.test", 7000).await;
    stream.write_all(b"\x00open").await.unwrap();
    let sent = || (stage.ground.gateway.traffic().sent == 5).then_some(());
    until(sent).await.unwrap();
    stage.ground.gateway.close();
    let seen = stage.ground.seen(|it| it.spoken == Spoken::Tcp).await;
    // That it was ended is no refusal.
    assert_eq!((seen.body_bytes, seen.code), (5, NetCode::Ok));
    assert!(stage.ground.gateway.traffic().refused.is_empty());
    assert!(patiently(stream.read_u8()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_read_up_to_the_limit_and_no_further() {
    let few = Policy {
        bytes: 100_000,
        ..everywhere()
    };
    let stage = Stage::new(few, json!({"responses": [{"host": "*"}]}));
    let mut stream = stage.ground.dial("a.test", 80).await;
    let head = "PUT /big HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let block = vec![7; 64 * 1024];
    while stream.write_all(&block).await.is_ok() {}
    let seen = stage.ground.seen(|it| it.method.is_some()).await;
    assert_eq!((seen.code, &seen.body_digest), (NetCode::Other, &None));
    assert!(seen.body_bytes <= 100_000, "{}", seen.body_bytes);
    assert!(seen.hint.unwrap().contains("egress_bytes"));
    assert_eq!(seen.answer, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_question_to_the_dns_is_seen_with_its_type() {
    let stage = Stage::new(
        everywhere(),
        json!({"responses": [{"host": "db.internal"}]}),
    );
    let ground = &stage.ground;
    for kind in [
        RecordType::A,
        RecordType::AAAA,
        RecordType::TXT,
        RecordType::A,
    ] {
        ground.lookup("example.com.", kind).await;
    }
    assert!(ask_tcp(ground, "example.com.").await.1.is_some());
    let types = |name: &str| -> Vec<_> {
        let all = ground.all_seen().into_iter();
        all.filter(|it| it.host == name && it.approach == Approach::Dns)
            .map(|it| (it.record_type.unwrap(), it.code))
            .collect()
    };
    let expected = ["A", "AAAA", "TXT", "A", "A"].map(|it| (it.to_owned(), NetCode::Ok));
    assert_eq!(types("example.com"), expected);
    // A name that does not exist for real exists if somebody answers for it, and is told as such.
    let (code, address) = ground.lookup("db.internal", RecordType::A).await;
    assert_eq!((code, address.is_some()), (ResponseCode::NoError, true));
    assert_eq!(types("db.internal"), [("A".to_owned(), NetCode::DnsDenied)]);
    let (code, address) = ground.lookup("other.internal", RecordType::A).await;
    assert_eq!((code, address), (ResponseCode::NXDomain, None));
    assert_eq!(
        types("other.internal"),
        [("A".to_owned(), NetCode::DnsDenied)]
    );
    let answer = stage.plain("db.internal", &get("db.internal", "/")).await;
    assert_eq!(status(&answer.unwrap()), 200);
    assert!(ground.world.lookups.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mark_in_the_place_of_a_secret_stays_a_mark() {
    let value = "sk-live-9f8e7d6c5b4a39281706";
    let brokered = Policy {
        secrets: vec![Brokered {
            name: "api-key".parse().unwrap(),
            placeholder: "MARK".to_owned(),
            value: Zeroizing::new(value.as_bytes().to_vec()),
            hosts: rules(&["api.test:443"]),
        }],
        ..everywhere()
    };
    let stage = Stage::new(
        brokered,
        json!({"responses": [{"host": "*", "body": value}]}),
    );
    let request = get("api.test", "/MARK").replace("\r\n\r\n", "\r\nAuthorization: MARK\r\n\r\n");
    let answer = stage.ask_by_name("api.test", &request).await;
    // Nobody compares with the value either: it is not known here.
    assert!(answer.ends_with(value), "{answer}");
    assert!(!format!("{:?}", stage.ground.all_seen()).contains(value));
    assert_eq!(stage.ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_answered_by_the_name_that_is_given_with_it() {
    let stage = Stage::new(
        everywhere(),
        json!({"responses": [{"host": "api.test", "status": 201}]}),
    );
    let stream = stage.ground.dial_address("93.184.216.34", 443).await;
    let answer = stage.ask(stream, "api.test", &get("api.test", "/")).await;
    assert_eq!(status(&answer.unwrap()), 201);
    let stream = stage.ground.dial_address("93.184.216.34", 80).await;
    let answer = tell(stream, &get("api.test", "/")).await.unwrap();
    assert_eq!(status(&answer), 201);
    // A name that was dialled is not overruled by another one.
    let answer = stage.plain("a.test", &get("api.test", "/")).await.unwrap();
    assert_eq!(status(&answer), 502);
    assert!(
        answer.contains("policy would refuse it: SNI_MISMATCH"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_body_does_not_come_whole_is_told_of() {
    let stage = Stage::new(everywhere(), json!({"responses": [{"host": "*"}]}));
    let half = "PUT /half HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n12345";
    let mut stream = stage.ground.dial("a.test", 80).await;
    let first = "GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n";
    stream.write_all(first.as_bytes()).await.unwrap();
    one_answer(&mut stream).await;
    stream.write_all(half.as_bytes()).await.unwrap();
    drop(stream);
    let halves = || -> Vec<Seen> {
        let all = stage.ground.all_seen().into_iter();
        all.filter(|it| it.path.as_deref() == Some("/half"))
            .collect()
    };
    until(|| (halves().len() == 1).then_some(())).await.unwrap();
    let mut stream = stage.ground.dial("a.test", 80).await;
    stream.write_all(half.as_bytes()).await.unwrap();
    let sent = first.len() + 2 * half.len();
    let all_sent = || (stage.ground.gateway.traffic().sent == sent as u64).then_some(());
    until(all_sent).await.unwrap();
    stage.ground.gateway.close();
    until(|| (halves().len() == 2).then_some(())).await.unwrap();
    for seen in halves() {
        assert_eq!((seen.body_bytes, &seen.body_digest), (5, &None));
        assert_eq!((seen.code, seen.answer), (NetCode::Ok, None));
    }
}
