//! Only what a simulation showed gets out.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use glovebox_gateway::{Brokered, Inspect, Policy, Previewed, Seen};
use glovebox_model::{Approach, NetCode, NetworkRequest, Spoken};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::authority::sandbox_client;
use crate::ground::{Ground, get, one_answer, patiently, policy, tell, until};
use crate::servers::{echo, listen, secure};
use crate::simulation::{Stage, simulated};

/// What a server was asked, with the size of the bodies.
type Noted = Arc<Mutex<Vec<String>>>;

async fn noting() -> (SocketAddr, Noted) {
    let noted = Noted::default();
    let all = Arc::clone(&noted);
    let address = listen(move |stream| {
        let noted = Arc::clone(&all);
        async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let noted = Arc::clone(&noted);
                async move {
                    let what = format!("{} {}", request.method(), request.uri());
                    let body = request.into_body().collect().await;
                    let size = body.map_or(0, |it| it.to_bytes().len());
                    noted.lock().unwrap().push(format!("{what} {size}"));
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("real")))
                }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    })
    .await;
    (address, noted)
}

fn taken(noted: &Noted) -> Vec<String> {
    std::mem::take(&mut noted.lock().unwrap())
}

fn connection(host: &str, port: u16) -> NetworkRequest {
    let at = (host.to_owned(), port);
    NetworkRequest::bare(Approach::Direct, Spoken::Tcp, at, NetCode::Ok)
}

fn digest(bytes: &[u8]) -> Option<String> {
    Some(blake3::hash(bytes).to_hex().to_string())
}

/// Without a body, and without headers beside those that are said elsewhere.
fn request(host: &str, port: u16, method: &str, path: &str) -> NetworkRequest {
    NetworkRequest {
        spoken: match port {
            443 => Spoken::Https,
            _ => Spoken::Http,
        },
        method: Some(method.to_owned()),
        path: Some(path.to_owned()),
        headers_digest: digest(b""),
        body_digest: digest(b""),
        ..connection(host, port)
    }
}

fn shown(requests: impl IntoIterator<Item = NetworkRequest>) -> Policy {
    let requests: Vec<NetworkRequest> = requests.into_iter().collect();
    let mut policy = policy(&["a.test:80", "*.test:443", "raw.test:7000", "b.test:80"]);
    policy.previewed = Some(Previewed::new(&requests));
    policy
}

async fn put(ground: &Ground, path: &str, body: &str) -> Option<String> {
    let text = format!(
        "PUT {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    tell(ground.dial("a.test", 80).await, &text).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_pass_as_often_as_they_were_shown_and_then_nothing_does() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, noted) = noting().await;
    ground.world.host("a.test", 80, server);
    ground.gateway.admit(shown([
        NetworkRequest {
            query_digest: digest(b"q=1"),
            ..request("A.test.", 80, "GET", "/x")
        },
        request("a.test", 80, "GET", "/x"),
        request("a.test", 80, "GET", "/y"),
    ]));
    let mut stream = ground.dial("a.test", 80).await;
    for path in ["/x?q=1", "/y", "/x"] {
        let text = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        assert!(one_answer(&mut stream).await.ends_with("real"));
    }
    assert_eq!(taken(&noted), ["GET /x?q=1 0", "GET /y 0", "GET /x 0"]);
    assert_eq!(ground.gateway.strayed(), None);
    let answer = tell(stream, &get("a.test", "/x")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(
        answer.contains("x-glovebox-code: NOT_PREVIEWED"),
        "{answer}"
    );
    assert!(answer.contains("`GET a.test:80/x`"), "{answer}");
    assert!(answer.contains("simulate it again"), "{answer}");
    let stray = ground.gateway.strayed().unwrap();
    assert_eq!(stray.to_string(), "GET a.test:80/x");
    assert_eq!(
        (stray.method.as_deref(), stray.path.as_deref()),
        (Some("GET"), Some("/x"))
    );
    assert_eq!(ground.gateway.traffic().strayed, Some(stray.to_string()));
    ground.refused("a.test", 80, NetCode::NotPreviewed).await;
    assert_eq!(taken(&noted), Vec::<String>::new());
    // Another exec begins anew.
    ground
        .gateway
        .admit(shown([request("a.test", 80, "GET", "/x")]));
    assert_eq!(ground.gateway.strayed(), None);
    let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/x")).await;
    assert!(answer.unwrap().ends_with("real"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inside_tls_a_request_that_was_not_shown_never_reaches_its_host() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let host = stage.trusted.https(&["api.test"]).await;
    ground.world.host("api.test", 443, host);
    ground
        .gateway
        .admit(shown([request("api.test", 443, "GET", "/good")]));
    let ask = async |text: &str| {
        let stream = ground.dial("api.test", 443).await;
        stage.ask(stream, "api.test", text).await.unwrap()
    };
    let sly =
        get("api.test", "/good").replace("\r\n\r\n", "\r\nX-HTTP-Method-Override: DELETE\r\n\r\n");
    let answer = ask(&sly).await;
    assert!(answer.contains("GET /good\n"), "{answer}");
    assert!(!answer.contains("override"), "{answer}");
    assert_eq!(ground.dials(), 1);
    let answer = ask(&get("api.test", "/other")).await;
    assert!(answer.contains("NOT_PREVIEWED"), "{answer}");
    assert_eq!(ground.dials(), 1);
    assert_eq!(
        ground.gateway.strayed().unwrap().to_string(),
        "GET api.test:443/other"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_shown_passes_and_the_next_is_not_dialled() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    ground.world.host("raw.test", 7000, echo().await);
    ground.gateway.admit(shown([connection("raw.test", 7000)]));
    let mut stream = ground.dial("raw.test", 7000).await;
    stream.write_all(b"\x00echo").await.unwrap();
    let mut back = [0; 5];
    patiently(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"\x00echo");
    assert_eq!(ground.dials(), 1);
    assert_eq!(
        tell(ground.dial("raw.test", 7000).await, "\x00").await,
        None
    );
    assert_eq!(ground.dials(), 1);
    let told = ground
        .refused("raw.test", 7000, NetCode::NotPreviewed)
        .await;
    assert_eq!(told.approach, Approach::Direct);
    // What was open is cut as well.
    assert!(patiently(stream.read_u8()).await.is_err());
    assert_eq!(
        ground.gateway.strayed().unwrap().to_string(),
        "raw.test:7000"
    );
}

/// How a connection to a host is come by.
#[derive(Debug, Clone, Copy)]
enum Door {
    Direct,
    Connect,
    Socks,
}

async fn through(ground: &Ground, door: Door, name: &str, port: u16) -> TcpStream {
    match door {
        Door::Direct => ground.dial(name, port).await,
        Door::Connect => {
            let mut stream = ground.to_proxy().await;
            let text = format!("CONNECT {name}:{port} HTTP/1.1\r\n\r\n");
            stream.write_all(text.as_bytes()).await.unwrap();
            assert!(one_answer(&mut stream).await.starts_with("HTTP/1.1 200"));
            stream
        }
        Door::Socks => {
            let mut stream = ground.to_proxy().await;
            let length = u8::try_from(name.len()).unwrap();
            let head = [5, 1, 0, 5, 1, 0, 3, length];
            let asked = [&head[..], name.as_bytes(), &port.to_be_bytes()].concat();
            stream.write_all(&asked).await.unwrap();
            let mut reply = [0; 12];
            patiently(stream.read_exact(&mut reply)).await.unwrap();
            assert_eq!(reply[..4], [5, 0, 5, 0]);
            stream
        }
    }
}

const DOORS: [Door; 3] = [Door::Direct, Door::Connect, Door::Socks];

/// What a host that never speaks by itself has heard.
async fn hearing() -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&heard);
    let address = listen(move |mut stream| {
        let heard = Arc::clone(&all);
        async move {
            let mut buffer = [0; 4096];
            while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
                heard.lock().unwrap().extend_from_slice(&buffer[..bytes]);
            }
        }
    })
    .await;
    (address, heard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_shown_carries_no_requests_by_any_door() {
    let post = "POST /evil HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\nSECRET";
    for door in DOORS {
        for (text, stray) in [
            (post, "POST a.test:80/evil"),
            ("GET /evil\r\n\r\n", "a.test:80"),
        ] {
            // At once, and when the host has been dialled, in case that it speaks first.
            for late in [false, true] {
                let stage = Stage::empty();
                let ground = &stage.ground;
                let (server, heard) = hearing().await;
                ground.world.host("a.test", 80, server);
                ground.gateway.admit(shown([connection("a.test", 80)]));
                let stream = through(ground, door, "a.test", 80).await;
                if late {
                    let dialled = until(|| (ground.dials() == 1).then_some(())).await;
                    assert!(dialled.is_some(), "{door:?}");
                }
                let answer = tell(stream, text).await;
                assert!(
                    answer.is_none_or(|it| it.contains("NOT_PREVIEWED")),
                    "{door:?} {late} {text}"
                );
                assert_eq!(*heard.lock().unwrap(), b"", "{door:?} {late}");
                assert_eq!(ground.dials(), usize::from(late));
                assert_eq!(ground.gateway.strayed().unwrap().to_string(), stray);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_on_a_connection_that_was_shown_is_opened_and_its_request_stopped() {
    for door in DOORS {
        for late in [false, true] {
            let stage = Stage::empty();
            let ground = &stage.ground;
            let (server, heard) = hearing().await;
            ground.world.host("tls.test", 443, server);
            ground.gateway.admit(shown([connection("tls.test", 443)]));
            let stream = through(ground, door, "tls.test", 443).await;
            if late {
                let dialled = until(|| (ground.dials() == 1).then_some(())).await;
                assert!(dialled.is_some(), "{door:?}");
            }
            let text = get("tls.test", "/evil");
            let answer = stage.ask(stream, "tls.test", &text).await.unwrap();
            assert!(answer.contains("NOT_PREVIEWED"), "{answer}");
            assert_eq!(*heard.lock().unwrap(), b"", "{door:?} {late}");
            assert_eq!(
                ground.gateway.strayed().unwrap().to_string(),
                "GET tls.test:443/evil"
            );
        }
    }
    // One that speaks first cannot be answered for any more.
    let stage = Stage::empty();
    let ground = &stage.ground;
    let heard = Noted::default();
    let all = Arc::clone(&heard);
    let server = listen(move |mut stream| {
        let heard = Arc::clone(&all);
        async move {
            let _ = stream.write_all(b"hello\n").await;
            if let Ok(byte) = stream.read_u8().await {
                heard.lock().unwrap().push(byte.to_string());
            }
        }
    })
    .await;
    ground.world.host("tls.test", 443, server);
    ground.gateway.admit(shown([connection("tls.test", 443)]));
    let mut stream = ground.dial("tls.test", 443).await;
    let mut said = [0; 6];
    patiently(stream.read_exact(&mut said)).await.unwrap();
    let config = sandbox_client(&stage.authority);
    let secured = patiently(secure(stream, config, "tls.test")).await;
    assert!(secured.is_err());
    assert_eq!(
        ground.gateway.strayed().unwrap().to_string(),
        "tls.test:443"
    );
    assert_eq!(taken(&heard), Vec::<String>::new());
}

/// A request by the proxy is one of its own, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_shown_is_no_request_to_a_proxy() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, noted) = noting().await;
    ground.world.host("a.test", 80, server);
    ground.gateway.admit(shown([connection("a.test", 80)]));
    let text = get("a.test", "/evil").replace("GET /", "GET http://a.test/");
    let answer = tell(ground.to_proxy().await, &text).await.unwrap();
    assert!(answer.contains("NOT_PREVIEWED"), "{answer}");
    assert_eq!((ground.dials(), taken(&noted).len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_first_stray_everything_is_refused_also_what_was_shown() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, noted) = noting().await;
    ground.world.host("a.test", 80, server);
    ground.gateway.admit(shown([
        request("a.test", 80, "GET", "/x"),
        request("a.test", 80, "GET", "/x"),
        connection("raw.test", 7000),
    ]));
    let address = ground.lookup("a.test", RecordType::A).await.1.unwrap();
    let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/x")).await;
    assert!(answer.unwrap().ends_with("real"));
    let mut stream = ground.to_proxy().await;
    stream
        .write_all(b"CONNECT b.test:443 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let answer = one_answer(&mut stream).await;
    assert!(
        answer.contains("x-glovebox-code: NOT_PREVIEWED"),
        "{answer}"
    );
    assert!(answer.contains("`b.test:443`"), "{answer}");
    let stream = ground.dial_address(&address.to_string(), 80).await;
    let answer = tell(stream, &get("a.test", "/x")).await.unwrap();
    assert!(
        answer.contains("NOT_PREVIEWED") && answer.contains("`b.test:443`"),
        "{answer}"
    );
    let (code, _) = ground.lookup("raw.test", RecordType::A).await;
    assert_eq!(code, ResponseCode::Refused);
    assert_eq!(taken(&noted).len(), 1);
    assert_eq!(ground.dials(), 1);
    let stray = ground.gateway.strayed().unwrap();
    assert_eq!(
        (stray.host.as_str(), stray.port, stray.method),
        ("b.test", 443, None)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_and_absolute_requests_are_held_against_it_too() {
    for bytes in [
        &b"\x05\x01\x00\x05\x01\x00\x03\x06b.test\x01\xbb"[..],
        b"GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n",
    ] {
        let stage = Stage::empty();
        let ground = &stage.ground;
        let (server, _) = noting().await;
        ground.world.host("b.test", 80, server);
        ground
            .gateway
            .admit(shown([request("a.test", 80, "GET", "/")]));
        let mut stream = ground.to_proxy().await;
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = patiently(stream.read_to_end(&mut answer)).await;
        match bytes[0] {
            5 => assert_eq!(answer[2..4], [5, 2]),
            _ => assert!(String::from_utf8_lossy(&answer).contains("NOT_PREVIEWED")),
        }
        assert_eq!(ground.gateway.strayed().unwrap().host, "b.test");
        assert_eq!(ground.dials(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_were_not_shown_are_not_told_and_are_no_stray() {
    let ground = Ground::closed(None, &[]);
    ground
        .gateway
        .admit(shown([request("a.test", 80, "GET", "/")]));
    let (code, address) = ground.lookup("a.test", RecordType::A).await;
    assert_eq!((code, address.is_some()), (ResponseCode::NoError, true));
    let (code, address) = ground.lookup("b.test", RecordType::A).await;
    assert_eq!((code, address), (ResponseCode::Refused, None));
    ground.refused("b.test", 53, NetCode::NotPreviewed).await;
    assert_eq!(ground.gateway.strayed(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_policy_refuses_anyway_is_no_stray() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, _) = noting().await;
    ground.world.host("a.test", 80, server);
    let mut ruled = shown([request("a.test", 80, "GET", "/x")]);
    ruled.inspect = vec![Inspect {
        host: "a.test:80".parse().unwrap(),
        methods: Some(["GET".to_owned()].into()),
        paths: None,
    }];
    ground.gateway.admit(ruled);
    for (text, code) in [
        (
            get("a.test", "/x").replace("GET", "DELETE"),
            "NOT_IN_ALLOWLIST",
        ),
        (get("evil.test", "/x"), "SNI_MISMATCH"),
    ] {
        let answer = tell(ground.dial("a.test", 80).await, &text).await.unwrap();
        assert!(answer.contains(code), "{answer}");
    }
    let stream = ground.dial_address("93.184.216.34", 80).await;
    let answer = tell(stream, &get("93.184.216.34", "/")).await.unwrap();
    assert!(answer.contains("INVALID_DESTINATION"), "{answer}");
    assert_eq!(ground.gateway.strayed(), None);
    let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/x")).await;
    assert!(answer.unwrap().ends_with("real"));
}

/// What a program that says `text` to `a.test` is told, when what says `first` was simulated. Nothing
/// must be dialled if it is not let through.
async fn after(first: &str, text: &str) -> Result<Vec<String>, String> {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, noted) = noting().await;
    ground.world.host("a.test", 80, server);
    let all = policy(&["a.test:80"]);
    ground.gateway.admit(simulated(all.clone(), json!({})));
    let _ = tell(ground.dial("a.test", 80).await, first).await;
    ground.seen(|it| it.method.is_some()).await;
    let effects: Vec<_> = ground.all_seen().iter().map(Seen::request).collect();
    let mut real = all;
    real.previewed = Some(Previewed::new(&effects));
    ground.gateway.admit(real);
    let answer = tell(ground.dial("a.test", 80).await, text).await;
    let Some(stray) = ground.gateway.strayed() else {
        let answer = answer.unwrap();
        assert!(answer.contains(" 200 OK"), "{answer}");
        return Ok(taken(&noted));
    };
    assert_eq!((ground.dials(), taken(&noted).len()), (0, 0), "{text}");
    assert!(answer.is_none_or(|it| it.contains("NOT_PREVIEWED")));
    Err(stray.to_string())
}

fn said(first: &str, headers: &str, body: &str) -> String {
    format!("{first} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{headers}\r\n{body}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_compared_whole_before_any_of_it_leaves() {
    let large = "b".repeat(1024 * 1024 + 1);
    let sized = |body: &str| format!("Content-Length: {}\r\n", body.len());
    let put = |more: &str, body: &str| said("PUT /x", &(sized(body) + more), body);
    let pieces = |end: &str| {
        let body = format!("2\r\nte\r\n1\r\na\r\n0\r\n{end}\r\n");
        said(
            "PUT /x",
            "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n",
            &body,
        )
    };
    let plain = || said("GET /x", "", "");
    for (first, text, passes) in [
        // The same, however it is written and framed.
        (plain(), plain(), Ok("GET /x 0")),
        (put("", "tea"), pieces(""), Ok("PUT /x 3")),
        (pieces(""), put("", "tea"), Ok("PUT /x 3")),
        (
            put("", "tea"),
            put("Expect: 100-continue\r\n", "tea"),
            Err("other headers"),
        ),
        (
            put("Expect: 100-continue\r\n", "tea"),
            put("EXPECT: 100-continue\r\n", "tea"),
            Ok("PUT /x 3"),
        ),
        (
            said("GET /x?a=1", "X-A: 1\r\nX-B: 2\r\nDate: x\r\n", ""),
            said(
                "GET /x?a=1",
                "x-b: 2\r\nTraceparent: leak\r\nX-a: 1\r\n",
                "",
            ),
            Ok("GET /x?a=1 0"),
        ),
        (
            plain(),
            "GET /x HTTP/1.0\r\nHost: a.test\r\n\r\n".to_owned(),
            Ok("GET /x 0"),
        ),
        (
            said("HEAD /x", "", ""),
            said("HEAD /x", "", ""),
            Ok("HEAD /x 0"),
        ),
        (
            said("GET /x", &sized("tea"), "tea"),
            said("GET /x", &sized("tea"), "tea"),
            Ok("GET /x 3"),
        ),
        // Anything else does not leave.
        (plain(), said("GET /x?leak=1", "", ""), Err("another query")),
        (said("GET /x?a", "", ""), plain(), Err("another query")),
        (plain(), said("GET /x?", "", ""), Err("another query")),
        (plain(), said("GET /y", "", ""), Err("GET a.test:80/y")),
        (plain(), said("HEAD /x", "", ""), Err("HEAD a.test:80/x")),
        (
            plain(),
            said("GET /x", "X-Leak: 1\r\n", ""),
            Err("other headers"),
        ),
        (
            said("GET /x", "Cookie: a\r\n", ""),
            said("GET /x", "Cookie: b\r\n", ""),
            Err("other headers"),
        ),
        (
            said("GET /x", "X-A: 1\r\nX-A: 2\r\n", ""),
            said("GET /x", "X-A: 2\r\nX-A: 1\r\n", ""),
            Err("other headers"),
        ),
        (
            plain(),
            said("GET /x", &sized("tea"), "tea"),
            Err("another body"),
        ),
        (put("", "tea"), put("", "gin"), Err("another body")),
        (put("", "gin"), pieces(""), Err("another body")),
        (put("", "tea"), put("", &large), Err("too large")),
        (put("", &large), put("", &large), Err("too large")),
        (put("", "tea"), pieces("X-T: leak\r\n"), Err("trailers")),
        (
            pieces("X-T: a\r\n"),
            pieces("X-T: a\r\n"),
            Err("PUT a.test:80/x"),
        ),
    ] {
        let shown: String = text.chars().take(160).collect();
        match (after(&first, &text).await, passes) {
            (Ok(noted), Ok(expected)) => assert_eq!(noted, [expected], "{shown}"),
            (Err(stray), Err(why)) => assert!(stray.contains(why), "{stray}: {shown}"),
            (ended, _) => panic!("{ended:?}: {shown}"),
        }
    }
}

/// The second of two requests that come at once is one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_behind_another_is_compared_too() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, noted) = noting().await;
    ground.world.host("a.test", 80, server);
    ground.gateway.admit(shown([
        request("a.test", 80, "GET", "/x"),
        request("a.test", 80, "GET", "/x"),
    ]));
    let first = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let both = format!("{first}{}", said("GET /x?leak=1", "", ""));
    let answer = tell(ground.dial("a.test", 80).await, &both).await.unwrap();
    assert!(answer.contains("NOT_PREVIEWED"), "{answer}");
    assert_eq!(taken(&noted), ["GET /x 0"]);
}

/// A placeholder is another one in each run, and stands for the same secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_put_in_is_the_same_in_each_run() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let host = stage.trusted.https(&["api.test"]).await;
    ground.world.host("api.test", 443, host);
    let with = |placeholder: &str| {
        let mut policy = policy(&["api.test:443"]);
        policy.secrets = vec![Brokered {
            name: "token".parse().unwrap(),
            placeholder: placeholder.to_owned(),
            value: zeroize::Zeroizing::new(b"the real value".to_vec()),
            hosts: ["api.test:443".parse().unwrap()].into(),
        }];
        policy
    };
    let ask = async |key: &str| {
        let text = get("api.test", "/x");
        let text = text.replace(
            "\r\n\r\n",
            &format!("\r\nAuthorization: Bearer {key}\r\n\r\n"),
        );
        let stream = ground.dial("api.test", 443).await;
        stage.ask(stream, "api.test", &text).await.unwrap()
    };
    ground.gateway.admit(simulated(with("FIRST"), json!({})));
    ask("FIRST").await;
    ground.seen(|it| it.method.is_some()).await;
    let effects: Vec<_> = ground.all_seen().iter().map(Seen::request).collect();
    for (key, passes) in [("SECOND", true), ("FIRST", false)] {
        let mut real = with("SECOND");
        real.previewed = Some(Previewed::new(&effects));
        ground.gateway.admit(real);
        let answer = ask(key).await;
        assert_eq!(answer.contains("HTTP/1.1 200"), passes, "{answer}");
        assert_eq!(ground.gateway.strayed().is_none(), passes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_simulation_saw_can_be_done_for_real_once() {
    let stage = Stage::empty();
    let ground = &stage.ground;
    let (server, noted) = noting().await;
    ground.world.host("a.test", 80, server);
    ground.world.host("raw.test", 7000, echo().await);
    let host = stage.trusted.https(&["api.test"]).await;
    ground.world.host("api.test", 443, host);
    let all = ["a.test:80", "api.test:443", "raw.test:7000"];
    let program = async || {
        let mut answers = vec![put(ground, "/up", "body").await.unwrap()];
        let stream = ground.dial("api.test", 443).await;
        let stream = secure(stream, sandbox_client(&stage.authority), "api.test").await;
        let answer = tell(stream.unwrap(), &get("api.test", "/v1")).await;
        answers.push(answer.unwrap());
        let mut raw = ground.dial("raw.test", 7000).await;
        raw.write_all(b"\x00raw").await.unwrap();
        raw.shutdown().await.unwrap();
        let mut back = Vec::new();
        patiently(raw.read_to_end(&mut back)).await.unwrap();
        answers.push(String::from_utf8(back).unwrap());
        answers
    };
    ground.gateway.admit(simulated(policy(&all), json!({})));
    program().await;
    ground
        .seen(|it| it.host == "raw.test" && it.port == 7000)
        .await;
    assert_eq!((ground.dials(), taken(&noted).len()), (0, 0));
    let seen = ground.all_seen();
    let effects: Vec<_> = seen.iter().map(Seen::request).collect();
    let mut real = policy(&all);
    real.previewed = Some(Previewed::new(&effects));
    ground.gateway.admit(real);
    let answers = program().await;
    assert!(answers[0].ends_with("real"), "{answers:?}");
    assert!(answers[1].contains("GET /v1\n"), "{answers:?}");
    assert_eq!(answers[2], "\x00raw");
    assert_eq!(ground.gateway.strayed(), None);
    let answer = put(ground, "/up", "body").await.unwrap();
    assert!(answer.contains("NOT_PREVIEWED"), "{answer}");
    assert_eq!(taken(&noted), ["PUT /up 4"]);
}
