//! Plain HTTP: every request by itself.

use glovebox_model::{NetCode, Spoken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{Ground, get, one_answer, patiently, tell};
use crate::servers::{http, listen};

async fn ground() -> Ground {
    let ground = Ground::allowing(&["a.test:80", "b.test:80"]);
    ground.world.host("a.test", 80, http().await);
    ground
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_through_and_are_told_without_their_query() {
    let ground = ground().await;
    let mut stream = ground.dial("a.test", 80).await;
    for path in ["/one?key=private", "/two"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nX-Odd-Case: 1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = one_answer(&mut stream).await;
        assert!(answer.contains(&format!("GET {path}\n")), "{answer}");
        assert!(answer.contains("x-odd-case: 1\n"), "{answer}");
    }
    drop(stream);
    let one = ground.heard(|it| it.path.as_deref() == Some("/one")).await;
    assert_eq!(
        (one.code, one.spoken, one.method.as_deref()),
        (NetCode::Ok, Spoken::Http, Some("GET"))
    );
    ground.heard(|it| it.path.as_deref() == Some("/two")).await;
    let ended = ground.heard(|it| it.ended).await;
    assert!(ended.sent > 80 && ended.received > 80, "{ended:?}");
    let all = format!("{:?}", ground.attempts());
    assert!(!all.contains("private"), "{all}");
    // Both went by one connection.
    assert_eq!(ground.dials(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_goes_both_ways() {
    let ground = ground().await;
    let body = "y".repeat(1 << 20);
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = tell(ground.dial("a.test", 80).await, &format!("{head}{body}"))
        .await
        .unwrap();
    assert!(answer.ends_with(&body), "{} bytes", answer.len());
    let chunked = "PUT / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let answer = tell(ground.dial("a.test", 80).await, chunked)
        .await
        .unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/big"))
        .await
        .unwrap();
    assert!(answer.len() > 1 << 20, "{} bytes", answer.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_another_host_is_refused_also_the_second_one() {
    let ground = ground().await;
    let mut stream = ground.dial("a.test", 80).await;
    stream
        .write_all(b"GET /good HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .await
        .unwrap();
    let answer = one_answer(&mut stream).await;
    assert!(answer.contains("GET /good\n"), "{answer}");
    // The other one is on the list as well: a list does not make two hosts one.
    let answer = tell(stream, "GET /front HTTP/1.1\r\nHost: b.test\r\n\r\n")
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(answer.contains("x-glovebox-code: SNI_MISMATCH"), "{answer}");
    let refused = ground.refused("a.test", 80, NetCode::SniMismatch).await;
    assert_eq!(refused.path.as_deref(), Some("/front"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ways_to_name_another_host_are_all_refused() {
    let ground = ground().await;
    for request in [
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test@evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ] {
        let answer = tell(ground.dial("a.test", 80).await, request)
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{request}{answer}");
        assert!(answer.contains("SNI_MISMATCH"), "{request}{answer}");
    }
    // HTTP/2 in the clear, at once or by a change, would carry any host unseen.
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(tell(ground.dial("a.test", 80).await, preface).await, None);
    // What a server may read as a request and the gateway cannot is not sent on.
    for odd in [
        "GET  /  HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET\t/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : evil.test\r\n\r\n",
    ] {
        let answer = tell(ground.dial("a.test", 80).await, odd)
            .await
            .unwrap_or_default();
        assert!(!answer.contains("200"), "{odd}{answer}");
    }
    assert_eq!(ground.dials(), 0);
}

/// Two lengths of one body: whoever reads the other one finds a second request in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_cannot_hide_in_the_body_of_another() {
    let ground = ground().await;
    let hidden = "GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    for head in [
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked",
            hidden.len() + 5
        ),
        "Content-Length: 5\r\nContent-Length: 60".to_owned(),
        "Transfer-Encoding: chunked, identity".to_owned(),
        "Transfer-Encoding: xchunked".to_owned(),
        "Connection: content-length\r\nContent-Length: 5".to_owned(),
    ] {
        let request =
            format!("POST /outer HTTP/1.1\r\nHost: a.test\r\n{head}\r\n\r\n0\r\n\r\n{hidden}");
        let answer = tell(ground.dial("a.test", 80).await, &request)
            .await
            .unwrap_or_default();
        assert!(!answer.contains("GET /hidden"), "{head}: {answer}");
        let passed = ground.attempts();
        let hidden = passed
            .iter()
            .any(|it| it.path.as_deref() == Some("/hidden") && it.code == NetCode::Ok);
        assert!(!hidden, "{head}: {passed:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_to_http2_is_not_passed_on() {
    let ground = ground().await;
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    let mut stream = ground.dial("a.test", 80).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = one_answer(&mut stream).await.to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert!(
        !answer.contains("h2c") && !answer.contains("http2-settings"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_sent_byte_by_byte_is_no_raw_connection() {
    let ground = ground().await;
    let mut stream = ground.dial("a.test", 80).await;
    for byte in get("evil.test", "/").as_bytes() {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut answer = String::new();
    patiently(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("SNI_MISMATCH"), "{answer}");
    assert_eq!(ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_closes_in_between_is_dialled_again() {
    let ground = ground().await;
    let mut stream = ground.dial("a.test", 80).await;
    for _ in 0..3 {
        stream
            .write_all(b"GET /close HTTP/1.1\r\nHost: a.test\r\n\r\n")
            .await
            .unwrap();
        let answer = one_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(ground.dials(), 3);
    assert_eq!(ground.gateway.traffic().connections, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_passes() {
    let ground = ground().await;
    let mut stream = ground.dial("a.test", 80).await;
    stream
        .write_all(b"GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await
        .unwrap();
    let answer = one_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    stream.write_all(FRAME).await.unwrap();
    let mut back = [0; FRAME.len()];
    patiently(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, FRAME);
    stream.shutdown().await.unwrap();
    assert_eq!(patiently(stream.read(&mut back)).await.unwrap(), 0);
    ground.heard(|it| it.ended && it.code == NetCode::Ok).await;
}

/// A client's, with a mask.
pub(crate) const FRAME: &[u8] = b"\x82\x85\0\0\0\0frame";

/// A host that says `101` and goes on to read requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_says_101_is_sent_no_request_that_was_not_judged() {
    let hidden = get("evil.test", "/hidden");
    let asks =
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let plain = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let agrees = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (asks, said, tunnel) in [
        (asks, agrees, true),
        (asks, "", false),
        (asks, "Upgrade: websocket\r\n", false),
        (asks, "Connection: Upgrade\r\nUpgrade: h2c\r\n", false),
        (plain, agrees, false),
        (&asks.replace("GET", "POST"), agrees, false),
        (&asks.replace("Connection: Upgrade\r\n", ""), agrees, false),
    ] {
        let ground = ground().await;
        let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (all, answer) = (heard.clone(), format!("HTTP/1.1 101 Yes\r\n{said}\r\n"));
        let server = listen(move |mut stream| {
            let (all, answer) = (all.clone(), answer.clone());
            async move {
                let mut buffer = [0; 4096];
                let mut answered = false;
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    all.lock().unwrap().extend_from_slice(&buffer[..read]);
                    if !answered {
                        answered = true;
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                }
            }
        })
        .await;
        ground.world.host("a.test", 80, server);
        let mut stream = ground.dial("a.test", 80).await;
        stream.write_all(asks.as_bytes()).await.unwrap();
        let first = one_answer(&mut stream).await;
        assert_eq!(first.starts_with("HTTP/1.1 101"), tunnel, "{said}: {first}");
        tell(stream, &hidden).await;
        let heard = String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
        assert!(!heard.contains("/hidden"), "{said}: {heard}");
    }
}
