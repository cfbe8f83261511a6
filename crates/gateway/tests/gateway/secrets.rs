//! Secrets that the sandbox uses and never sees.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_gateway::{Brokered, Policy};
use glovebox_model::NetCode;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::authority::sandbox_client;
use crate::ground::{patiently, policy, rules, tell};
use crate::inspection::{Inspected, inspected};
use crate::servers::{echo, greeter, listen, saying, secure};

const VALUE: &str = "sk-live-9f8e7d6c5b4a39281706";
const PLACEHOLDER: &str = "glovebox-placeholder-0001";

fn brokered(value: &str) -> Policy {
    let mut policy = policy(&[
        "api.test:443",
        "other.test:443",
        "api.test:80",
        "other.test:9000",
    ]);
    policy.secrets = vec![Brokered {
        name: "api-key".parse().unwrap(),
        placeholder: PLACEHOLDER.to_owned(),
        value: Zeroizing::new(value.as_bytes().to_vec()),
        hosts: rules(&["api.test:443"]),
    }];
    policy
}

fn authorized(path: &str, credentials: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: api.test\r\nAccept-Encoding: gzip\r\nRange: bytes=0-3\r\nAuthorization: {credentials}\r\nConnection: close\r\n\r\n"
    )
}

/// What the server was sent, as the server itself saw it.
async fn seen_by_server(at: &Inspected, request: &str) -> (String, Vec<String>) {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = at
        .trusted
        .watched(&["api.test"], std::sync::Arc::clone(&seen))
        .await;
    at.ground.world.host("api.test", 443, server);
    let answer = at.ask("api.test", request).await;
    let seen = seen.lock().unwrap().clone();
    (answer, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_value_reaches_its_host_and_does_not_come_back() {
    let at = inspected(brokered(VALUE)).await;
    let (answer, seen) =
        seen_by_server(&at, &authorized("/x", &format!("Bearer {PLACEHOLDER}"))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(seen, [format!("Bearer {VALUE}")]);
    // The server says its headers back, in its body and in a header.
    assert!(!answer.contains(VALUE), "{answer}");
    assert!(answer.contains("[secret api-key]"), "{answer}");
    assert!(
        answer.contains("x-echo: Bearer [secret api-key]"),
        "{answer}"
    );
    // What would keep the answer from being searched is not passed on.
    assert!(
        answer.contains("accept-encoding: identity\n") && !answer.contains("range:"),
        "{answer}"
    );

    let basic = format!("Basic {}", STANDARD.encode(format!("me:{PLACEHOLDER}")));
    let (answer, seen) = seen_by_server(&at, &authorized("/x", &basic)).await;
    assert_eq!(
        seen,
        [format!("Basic {}", STANDARD.encode(format!("me:{VALUE}")))]
    );
    assert!(
        !answer.contains(VALUE) && !answer.contains(&STANDARD.encode(VALUE)[..20]),
        "{answer}"
    );
    assert!(!format!("{:?}", at.ground.attempts()).contains(VALUE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_host_and_no_plain_connection_gets_the_value() {
    let at = inspected(brokered(VALUE)).await;
    let stream = {
        at.ground
            .world
            .host("other.test", 443, at.trusted.https(&["other.test"]).await);
        let stream = at.ground.dial("other.test", 443).await;
        // Its answers are searched as well, so its TLS is opened.
        crate::servers::secure(stream, sandbox_client(&at.authority), "other.test")
            .await
            .unwrap()
    };
    let request = authorized("/x", PLACEHOLDER).replace("api.test", "other.test");
    let answer = crate::ground::tell(stream, &request).await.unwrap();
    assert!(
        answer.contains(&format!("authorization: {PLACEHOLDER}\n")),
        "{answer}"
    );

    at.ground
        .world
        .host("api.test", 80, crate::servers::http().await);
    let stream = at.ground.dial("api.test", 80).await;
    let answer = crate::ground::tell(stream, &authorized("/x", PLACEHOLDER))
        .await
        .unwrap();
    assert!(
        answer.contains(&format!("authorization: {PLACEHOLDER}\n")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compressed_answer_cannot_be_searched_and_is_not_given() {
    let at = inspected(brokered(VALUE)).await;
    let answer = at
        .ask("api.test", &authorized("/compressed", PLACEHOLDER))
        .await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(
        answer.contains("compressed") && !answer.contains(VALUE),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_secret_is_not_put_in_any_more() {
    let at = inspected(brokered(VALUE)).await;
    at.ground.gateway.revoke_secret(&"api-key".parse().unwrap());
    let (_, seen) = seen_by_server(&at, &authorized("/x", PLACEHOLDER)).await;
    assert_eq!(seen, [PLACEHOLDER]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_could_not_be_masked_is_not_sent() {
    let at = inspected(brokered("true")).await;
    let (answer, seen) = seen_by_server(&at, &authorized("/x", PLACEHOLDER)).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(seen.is_empty(), "{seen:?}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    coder.write_all(bytes).unwrap();
    coder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    coder.write_all(bytes).unwrap();
    coder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    coder.write_all(bytes).unwrap();
    coder.finish().unwrap()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    let mut coder = brotli::CompressorWriter::new(&mut coded, 4096, 9, 22);
    coder.write_all(bytes).unwrap();
    drop(coder);
    coded
}

/// As no browser reads it.
fn large_brotli(bytes: &[u8]) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        large_window: true,
        lgwin: 30,
        ..Default::default()
    };
    let mut coded = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut coded, &params).unwrap();
    coded
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn checked_zstd(bytes: &[u8]) -> Vec<u8> {
    let mut coder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    coder.include_checksum(true).unwrap();
    coder.write_all(bytes).unwrap();
    coder.finish().unwrap()
}

/// One of the last bytes is another.
fn wrong(mut coded: Vec<u8>, last: usize) -> Vec<u8> {
    let at = coded.len() - last;
    coded[at] ^= 0xff;
    coded
}

fn named_gzip(length: usize) -> Vec<u8> {
    let plain = gzip(&said());
    let name = vec![b'n'; length];
    [
        b"\x1f\x8b\x08\x08",
        &plain[4..10],
        &name,
        b"\0",
        &plain[10..],
    ]
    .concat()
}

fn extra_gzip() -> Vec<u8> {
    let plain = gzip(&said());
    // An extra field of three bytes, a name, a comment and a checksum of the head.
    let head = [
        b"\x1f\x8b\x08\x1e",
        &plain[4..10],
        b"\x03\0abcname\0comment\0\0\0",
    ]
    .concat();
    [&head, &plain[10..]].concat()
}

fn said() -> Vec<u8> {
    format!(
        "{{\"headers\": {{\"authorization\": \"Bearer {VALUE}\"}}, \"padding\": \"{}\"}}",
        "x".repeat(200)
    )
    .into_bytes()
}

fn whole(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    [
        format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n")
            .as_bytes(),
        body,
    ]
    .concat()
}

fn chunked(head: &str, body: &[u8], trailers: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n{:x}\r\n",
        body.len()
    );
    [
        head.as_bytes(),
        body,
        format!("\r\n0\r\n{trailers}\r\n").as_bytes(),
    ]
    .concat()
}

fn each(write: impl Fn(char) -> String) -> Vec<u8> {
    VALUE.chars().map(write).collect::<String>().into_bytes()
}

fn base32() -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: Vec<u8> = VALUE
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
        .collect();
    let letter = |bits: &[u8]| {
        LETTERS[(0..5).fold(0, |sum, at| {
            sum << 1 | usize::from(*bits.get(at).unwrap_or(&0))
        })]
    };
    bits.chunks(5).map(letter).collect()
}

/// Answers of a host that says the value back, and what of each must not arrive.
fn disguises() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let lower = VALUE.to_lowercase().into_bytes();
    let mut all = vec![
        ("a transfer coding", chunked("Transfer-Encoding: gzip, chunked\r\n", &gzip(&said()), ""), gzip(&said())),
        ("two transfer codings", chunked("Transfer-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n", &zlib(&said()), ""), zlib(&said())),
        ("a header's name", whole(&format!("X-{VALUE}: 1\r\n"), b"x"), lower.clone()),
        ("a header's name and value", whole(&format!("{}: {}\r\n", &VALUE[..10], &VALUE[10..]), b"x"), VALUE.as_bytes()[10..].to_vec()),
        ("a trailer's name", chunked(&format!("Transfer-Encoding: chunked\r\nTrailer: x-{VALUE}\r\n"), b"x", &format!("x-{VALUE}: 1\r\n")), lower.clone()),
        ("the reason", format!("HTTP/1.1 200 {VALUE}\r\nContent-Length: 0\r\n\r\n").into_bytes(), VALUE.into()),
        ("a part that was not asked for", [b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 3-27/28\r\nContent-Length: 25\r\n\r\n", &VALUE.as_bytes()[3..]].concat(), VALUE.as_bytes()[3..].to_vec()),
    ];
    for (coding, coded) in [
        ("gzip", gzip(&said())),
        ("zlib", zlib(&said())),
        ("deflate", deflate(&said())),
        ("br", brotli(&said())),
        ("br with a large window", large_brotli(&said())),
        ("zstd", zstd(&said())),
        ("gzip in gzip", gzip(&gzip(&said()))),
        ("br in gzip", gzip(&brotli(&said()))),
        ("gzip with a long name", named_gzip(70_000)),
        ("gzip with an extra field", extra_gzip()),
        ("gzip with a wrong checksum", wrong(gzip(&said()), 8)),
        ("zlib with a wrong checksum", wrong(zlib(&said()), 4)),
        (
            "zstd with a wrong checksum",
            wrong(checked_zstd(&said()), 4),
        ),
        (
            "gzip that breaks off wrong",
            [&gzip(&said())[..], b"\x1f\x8b\x07"].concat(),
        ),
        (
            "gzip behind gzip",
            [gzip(b"first of all"), gzip(&said())].concat(),
        ),
        (
            "zlib behind zlib",
            [zlib(b"first of all"), zlib(&said())].concat(),
        ),
        (
            "deflate behind deflate",
            [deflate(b"first of all"), deflate(&said())].concat(),
        ),
        (
            "zlib behind a wrong one",
            [wrong(zlib(b"first of all"), 4), zlib(&said())].concat(),
        ),
        (
            "zstd behind gzip",
            [gzip(b"first of all"), zstd(&said())].concat(),
        ),
        (
            "br behind zstd",
            [zstd(b"first of all"), brotli(&said())].concat(),
        ),
    ] {
        all.push((
            coding,
            whole("Content-Type: application/octet-stream\r\n", &coded),
            coded.clone(),
        ));
        all.push((
            coding,
            whole(
                "Content-Encoding: identity\r\nContent-Type: text/plain\r\n",
                &coded,
            ),
            coded.clone(),
        ));
        all.push((
            coding,
            chunked("Transfer-Encoding: chunked\r\n", &coded, ""),
            coded.clone(),
        ));
        all.push((coding, whole("Content-Encoding: gzip\r\n", &coded), coded));
    }
    for (how, written) in [
        ("upper case", VALUE.to_uppercase().into_bytes()),
        ("base32", base32()),
        ("base32, lower case", base32().to_ascii_lowercase()),
        ("entities", each(|it| format!("&#{};", u32::from(it)))),
        (
            "padded entities",
            each(|it| format!("&#{:05};", u32::from(it))),
        ),
        (
            "hexadecimal entities",
            each(|it| format!("&#x{:x};", u32::from(it))),
        ),
        ("octal", each(|it| format!("\\{:03o}", u32::from(it)))),
        ("\\u", each(|it| format!("\\u{:04X}", u32::from(it)))),
        ("\\u{}", each(|it| format!("\\u{{{:x}}}", u32::from(it)))),
        (
            "some percent",
            each(|it| {
                if it.is_ascii_digit() {
                    format!("%{:x}", u32::from(it))
                } else {
                    it.into()
                }
            }),
        ),
        (
            "percent twice",
            each(|it| format!("%25{:x}", u32::from(it))),
        ),
        (
            "some entities",
            each(|it| {
                if it == '-' {
                    "&hyphen;&#45;".replace("&hyphen;", "")
                } else {
                    it.into()
                }
            }),
        ),
        (
            "a list of numbers",
            each(|it| format!("{}, ", u32::from(it))),
        ),
        (
            "UTF-32",
            VALUE
                .chars()
                .flat_map(|it| u32::from(it).to_le_bytes())
                .collect(),
        ),
    ] {
        // White space and punctuation at its end says nothing.
        let essential = written.strip_suffix(b", ").unwrap_or(&written).to_vec();
        all.push((
            how,
            whole("", &[b"<p>", &written[..], b"</p>"].concat()),
            essential,
        ));
    }
    all
}

/// Everything that comes, also before a reset.
async fn bytes_from(at: &Inspected, name: &str, port: u16, request: &str) -> Vec<u8> {
    let stream = at.ground.dial(name, port).await;
    let mut got = Vec::new();
    if port == 443 {
        let mut stream = patiently(secure(stream, sandbox_client(&at.authority), name))
            .await
            .unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        let _ = patiently(stream.read_to_end(&mut got)).await;
    } else {
        let mut stream = stream;
        let _ = stream.write_all(request.as_bytes()).await;
        let _ = patiently(stream.read_to_end(&mut got)).await;
    }
    got
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len())
        .any(|it| it.eq_ignore_ascii_case(part))
}

/// From its own host, from another one that was told it elsewhere, and from another port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_value_comes_back_in_no_disguise_of_a_message_and_from_no_host() {
    let at = inspected(brokered(VALUE)).await;
    for (what, answer, part) in disguises() {
        for (name, port) in [("api.test", 443), ("other.test", 443), ("api.test", 80)] {
            let said = answer.clone();
            let server = match port {
                443 => at.trusted.saying(&[name], move |_| said.clone()).await,
                _ => saying(move |_| said.clone()).await,
            };
            at.ground.world.host(name, port, server);
            let request =
                authorized("/x", &format!("Bearer {PLACEHOLDER}")).replace("api.test", name);
            let got = bytes_from(&at, name, port, &request).await;
            assert!(holds(&answer, &part), "{what}");
            assert!(
                !holds(&got, &part),
                "{what} from {name}:{port}: {}",
                got.escape_ascii()
            );
            assert!(!holds(&got, VALUE.as_bytes()), "{what} from {name}:{port}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_no_secret_passes_byte_for_byte() {
    let at = inspected(brokered(VALUE)).await;
    let archive: Vec<u8> = (0..200_000u32)
        .flat_map(|it| it.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    for body in [
        gzip(&archive),
        zstd(&archive),
        archive.clone(),
        brotli(b"nothing"),
        b"text".to_vec(),
        // They begin as zlib and Brotli do.
        b"80% of x\n".repeat(1000),
        b"x = 1; hCx".to_vec(),
        b";".repeat(100_000),
        gzip(&archive[..1000]).repeat(1500),
    ] {
        let said = whole("Content-Type: application/octet-stream\r\n", &body);
        let server = at
            .trusted
            .saying(&["api.test"], move |_| said.clone())
            .await;
        at.ground.world.host("api.test", 443, server);
        let got = bytes_from(&at, "api.test", 443, &authorized("/x", PLACEHOLDER)).await;
        let begins = got.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert!(unchunked(&got[begins..]) == body, "{} bytes", body.len());
    }
}

/// A body in these chunks: each is sent when there is a permit for it.
async fn dripping(chunks: Vec<Vec<u8>>, permits: Arc<Semaphore>) -> SocketAddr {
    listen(move |mut stream| {
        let (chunks, permits) = (chunks.clone(), Arc::clone(&permits));
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else {
                    return;
                };
                head.push(byte);
            }
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head).await;
            for chunk in chunks {
                permits.acquire().await.unwrap().forget();
                let _ = stream.write_all(&chunk).await;
            }
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    })
    .await
}

fn one_chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// What a program gets while its host waits for it before it says the next thing.
async fn dripped(at: &Inspected, chunks: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let (count, permits) = (chunks.len(), Arc::new(Semaphore::new(0)));
    let server = dripping(chunks, Arc::clone(&permits)).await;
    at.ground.world.host("api.test", 80, server);
    let mut stream = at.ground.dial("api.test", 80).await;
    let request = authorized("/x", PLACEHOLDER);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(patiently(stream.read_u8()).await.unwrap());
    }
    let mut got = Vec::new();
    for _ in 0..count {
        permits.add_permits(1);
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            match patiently(stream.read_u8()).await {
                Ok(byte) => line.push(byte),
                Err(_) => return got,
            }
        }
        let digits = std::str::from_utf8(line.trim_ascii()).unwrap();
        let mut chunk = vec![0; usize::from_str_radix(digits, 16).unwrap() + 2];
        patiently(stream.read_exact(&mut chunk)).await.unwrap();
        chunk.truncate(chunk.len() - 2);
        got.push(chunk);
    }
    got
}

/// A gzip stream that says each text as soon as it can be said.
fn flushed(texts: &[String]) -> Vec<Vec<u8>> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    let flushed = texts.iter().map(|text| {
        coder.write_all(text.as_bytes()).unwrap();
        coder.flush().unwrap();
        std::mem::take(coder.get_mut())
    });
    flushed.collect()
}

/// Pieces, their sizes and their order are the same for what begins the value and for what does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_an_answer_goes_on_does_not_tell_how_the_value_begins() {
    let at = inspected(brokered(VALUE)).await;
    let other = "sk-live-0000000000000000000x";
    let beginnings = |of: &str| -> Vec<String> {
        let hex: String = of.bytes().map(|it| format!("{it:02x}")).collect();
        vec![
            of[..27].to_owned(),
            format!(" {}", &of[..9]),
            format!(" {}", &hex[..40]),
            format!(" {}", &STANDARD.encode(of)[..20]),
            format!(" %73{}", &of[1..20]),
            " 00000000: 736b 2d6c".to_owned(),
        ]
    };
    let mut got = Vec::new();
    for of in [VALUE, other] {
        let texts = beginnings(of);
        let plain: Vec<_> = texts.iter().map(|it| it.as_bytes().to_vec()).collect();
        let chunks = plain.iter().map(|it| one_chunk(it)).collect();
        assert_eq!(dripped(&at, chunks).await, plain, "{of}");
        let coded = flushed(&texts);
        let chunks = coded.iter().map(|it| one_chunk(it)).collect();
        assert_eq!(dripped(&at, chunks).await, coded, "{of}, compressed");
        got.push(plain.iter().chain(&coded).map(Vec::len).collect::<Vec<_>>());
    }
    assert_eq!(got[0], got[1]);
    // What comes soon after is not too late, wherever it is cut; what is out is out, and no more.
    for cut in [1, 9, 20, 27] {
        let (one, rest) = VALUE.split_at(cut);
        let together = [one_chunk(one.as_bytes()), one_chunk(rest.as_bytes())].concat();
        let came = dripped(&at, vec![together]).await;
        assert_eq!(came, [b"[secret api-key]"], "{cut}");
        let apart = vec![one_chunk(one.as_bytes()), one_chunk(rest.as_bytes())];
        let came = dripped(&at, apart).await;
        assert_eq!(came, [one.as_bytes(), b"[secret api-key]"], "{cut}");
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = rest.windows(2).position(|it| it == b"\r\n").unwrap();
        let length =
            usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 4 + length..];
    }
}

/// What cannot be searched: a protocol that is changed to, and whatever is not HTTP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_a_secret_reaches_nothing_that_cannot_be_searched() {
    let at = inspected(brokered(VALUE)).await;
    at.ground
        .world
        .host("api.test", 80, crate::servers::http().await);
    for (name, port) in [("api.test", 443), ("api.test", 80)] {
        let request = "GET /ws HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let got = bytes_from(&at, name, port, request).await;
        let got = String::from_utf8_lossy(&got);
        assert!(
            got.starts_with("HTTP/1.1 403") && got.contains("brokered"),
            "{port}: {got}"
        );
    }
    for server in [echo().await, greeter().await] {
        at.ground.world.host("other.test", 9000, server);
        let stream = at.ground.dial("other.test", 9000).await;
        assert_eq!(tell(stream, "\x00give it to me").await, None);
    }
    at.ground
        .refused("other.test", 9000, NetCode::NotInAllowlist)
        .await;
    // A program that trusts only the real world gets nowhere either.
    at.ground
        .world
        .host("other.test", 443, at.trusted.https(&["other.test"]).await);
    let stream = at.ground.dial("other.test", 443).await;
    assert!(
        patiently(secure(stream, at.trusted.client(), "other.test"))
            .await
            .is_err()
    );
}
