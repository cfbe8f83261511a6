//! Answers that are too much: too large, too slow, without an end.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_egress::RefusalCode;
use glovebox_egress::retrieve::RetrieveRequest;
use tokio::io::AsyncWriteExt;

use crate::world::{PUBLIC, Road, Server, World};

const TOO_LARGE: Option<RefusalCode> = Some(RefusalCode::ResponseTooLarge);

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut coded, 4096, 9, 22);
    writer.write_all(bytes).unwrap();
    drop(writer);
    coded
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn coded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => gzip(bytes),
        "deflate" => deflate(bytes),
        "br" => brotli(bytes),
        "zstd" => zstd(bytes),
        other => panic!("{other}"),
    }
}

const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

fn answer(codings: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: {codings}\r\n\
         Content-Length: {length}\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The most memory this process ever had, in KiB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM")).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// S130: 10 MB that decode to 10 GB, as members of gzip one after another.
pub(crate) async fn bombs() {
    let member = gzip(&vec![0; 10 << 20]);
    let members = 1000;
    let length = member.len() * members;
    assert!(length > 9 << 20 && length < 12 << 20, "{length}");
    let member: Arc<[u8]> = member.into();
    let server = Server::start(move |mut stream, _| {
        let member = Arc::clone(&member);
        Box::pin(async move {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            let mut written = stream.write_all(head.as_bytes()).await;
            for _ in 0..members {
                if written.is_ok() {
                    written = stream.write_all(&member).await;
                }
            }
        })
    })
    .await;
    let mut world = World::with(&server);
    world.retriever.limits.bytes = 20 << 20;
    let before = most_memory();
    assert_eq!(world.code("http://ok.test/").await, TOO_LARGE);
    let grown = most_memory() - before;
    assert!(grown < 64 * 1024, "{grown} KiB more");

    for coding in CODINGS {
        // Past the size, and within the size but grown too much.
        let server = Server::saying(answer(coding, &coded(coding, &vec![0; 3 << 20]))).await;
        let mut world = World::with(&server);
        assert_eq!(world.code("http://ok.test/").await, TOO_LARGE, "{coding}");
        world.retriever.limits.bytes = 20 << 20;
        let refusal = world.get("http://ok.test/").await.error.unwrap();
        assert!(refusal.message.contains("200 times"), "{coding}: {refusal}");
    }
}

/// S131
pub(crate) async fn nested_codings() {
    let body = gzip(&gzip(b"hello"));
    for codings in [
        "gzip, gzip",
        "gzip, gzip, br",
        "gzip\r\nContent-Encoding: br",
    ] {
        let server = Server::saying(answer(codings, &body)).await;
        let code = World::with(&server).code("http://ok.test/").await;
        assert_eq!(code, Some(RefusalCode::DecodeError), "{codings}");
    }
    let server = Server::saying(answer("compress", b"hello")).await;
    let code = World::with(&server).code("http://ok.test/").await;
    assert_eq!(code, Some(RefusalCode::DecodeError));
}

/// S133
pub(crate) async fn lengths_that_lie() {
    let piece = vec![b'a'; 64 * 1024];
    let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n";
    let server = Server::repeating(begin, piece.clone(), Duration::ZERO).await;
    let retrieved = World::with(&server).get("http://ok.test/").await;
    assert_eq!(retrieved.text.as_deref(), Some("aaaaaaaaaa"));

    let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend_from_slice(&piece);
    chunk.extend_from_slice(b"\r\n");
    let server = Server::repeating(begin, chunk, Duration::ZERO).await;
    assert_eq!(
        World::with(&server).code("http://ok.test/").await,
        TOO_LARGE
    );

    let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let server = Server::repeating(begin, piece, Duration::ZERO).await;
    assert_eq!(
        World::with(&server).code("http://ok.test/").await,
        TOO_LARGE
    );
}

/// Ends in about the time that is given, with this code. A busy host may not have come so far by
/// then, and has more time.
async fn ends(world: &World, url: &str, code: RefusalCode) {
    let mut told = None;
    for time in [300, 2000, 8000].map(Duration::from_millis) {
        let began = Instant::now();
        let request = RetrieveRequest {
            timeout_ms: Some(u64::try_from(time.as_millis()).unwrap()),
            ..RetrieveRequest::of(url)
        };
        let retrieved = world.retriever.get("me", request).await;
        let took = began.elapsed();
        assert!(took >= time, "{took:?}, {:?}", retrieved.error);
        assert!(took < time + Duration::from_secs(20), "{took:?}");
        if retrieved.error_code == Some(code) {
            return;
        }
        told = retrieved.error;
    }
    panic!("{told:?} instead of {code}");
}

/// S134: always something within any idle limit, and never an end.
pub(crate) async fn a_slow_body() {
    let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let server = Server::repeating(begin, b"a".to_vec(), Duration::from_millis(20)).await;
    ends(
        &World::with(&server),
        "http://ok.test/",
        RefusalCode::ReadTimeout,
    )
    .await;
}

/// S135
pub(crate) async fn stalls() {
    let silent = Server::silent().await;
    let world = World::with(&silent);
    ends(&world, "http://ok.test/", RefusalCode::ReadTimeout).await;
    world.roads.set(PUBLIC, 443, Road::To(silent.address));
    ends(&world, "https://ok.test/", RefusalCode::ConnectionTimeout).await;
    world.names.set("stall.test", &[]);
    ends(&world, "http://stall.test/", RefusalCode::DnsFailed).await;
    world.roads.set(PUBLIC, 80, Road::Nowhere);
    ends(&world, "http://ok.test/", RefusalCode::ConnectionTimeout).await;
    let begin = "HTTP/1.1 200 OK\r\nX-A: ";
    let server = Server::repeating(begin, b"a".to_vec(), Duration::from_millis(20)).await;
    ends(
        &World::with(&server),
        "http://ok.test/",
        RefusalCode::ReadTimeout,
    )
    .await;
}

/// S136
pub(crate) async fn heads_without_end() {
    let long = format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "a".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: a\r\n".repeat(10_000));
    let some = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: a\r\n".repeat(101));
    for head in [long, many, some] {
        let server = Server::saying(head).await;
        assert_eq!(
            World::with(&server).code("http://ok.test/").await,
            TOO_LARGE
        );
    }
    let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec();
    let server = Server::repeating("", interim.clone(), Duration::ZERO).await;
    assert_eq!(
        World::with(&server).code("http://ok.test/").await,
        TOO_LARGE
    );
    // A few are as they should be.
    let mut bytes = interim.repeat(3);
    bytes.extend_from_slice(crate::world::ok("text/plain", "hello").as_bytes());
    let server = Server::saying(bytes).await;
    let text = World::with(&server).get("http://ok.test/").await.text;
    assert_eq!(text.as_deref(), Some("hello"));
}

#[tokio::test]
async fn each_coding_is_decoded_and_must_be_whole() {
    let text = "The quick brown fox. ".repeat(500);
    for coding in CODINGS {
        let body = coded(coding, text.as_bytes());
        let server = Server::saying(answer(coding, &body)).await;
        let retrieved = World::with(&server).get("http://ok.test/").await;
        assert_eq!(retrieved.text.as_deref(), Some(text.as_str()), "{coding}");
        assert_eq!(retrieved.wire_bytes, body.len() as u64);
        assert_eq!(retrieved.bytes_read, text.len() as u64);

        let cut = &body[..body.len() - 5];
        let server = Server::saying(answer(coding, cut)).await;
        let code = World::with(&server).code("http://ok.test/").await;
        assert_eq!(code, Some(RefusalCode::DecodeError), "{coding} cut off");

        let server = Server::saying(answer(coding, b"this is not coded at all")).await;
        let code = World::with(&server).code("http://ok.test/").await;
        assert_eq!(code, Some(RefusalCode::DecodeError), "{coding} of nothing");
    }
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    for bytes in [
        "hello\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ] {
        let server = Server::saying(bytes).await;
        let code = World::with(&server).code("http://ok.test/").await;
        assert_eq!(code, Some(RefusalCode::DecodeError), "{bytes}");
    }
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    ] {
        let server = Server::saying(bytes).await;
        let code = World::with(&server).code("http://ok.test/").await;
        assert_eq!(code, Some(RefusalCode::ReadTimeout), "{bytes}");
    }
}
