//! What comes out of an answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_egress::RefusalCode;
use glovebox_egress::retrieve::{Limiter, LimiterRules, RetrieveRequest, Retrieved};

use crate::world::{Server, World, ok};

async fn got(answer: impl Into<Vec<u8>>) -> Retrieved {
    let server = Server::saying(answer).await;
    World::with(&server)
        .get("http://ok.test/dir/page.html?x=1")
        .await
}

async fn html(body: &str) -> String {
    let mut retrieved = got(ok("text/html; charset=utf-8", body)).await;
    // On a busy host any page may seem to take too long.
    for _ in 0..10 {
        if retrieved.error_code != Some(RefusalCode::ExtractFailed) {
            break;
        }
        retrieved = got(ok("text/html; charset=utf-8", body)).await;
    }
    assert_eq!(retrieved.error, None);
    retrieved.text.unwrap()
}

fn with_bytes(content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// S138
pub(crate) async fn both_types_are_told() {
    let body = "<html><script>alert(1)</script>hi</html>";
    for (declared, taken) in [
        ("image/png", false),
        ("text/plain", true),
        ("text/html", true),
    ] {
        let retrieved = got(ok(declared, body)).await;
        assert_eq!(retrieved.content_type.as_deref(), Some(declared));
        assert_eq!(
            retrieved.sniffed_type.as_deref(),
            Some("text/html"),
            "{declared}"
        );
        let expected = (!taken).then_some(RefusalCode::UnsupportedContentType);
        assert_eq!(retrieved.error_code, expected, "{declared}");
    }
    // The other way round: bytes that are no text are refused whatever they are called.
    for declared in [
        "text/html",
        "application/json",
        "application/octet-stream",
        "nonsense",
    ] {
        let retrieved = got(with_bytes(declared, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")).await;
        assert_eq!(
            retrieved.sniffed_type.as_deref(),
            Some("image/png"),
            "{declared}"
        );
        assert_eq!(
            retrieved.error_code,
            Some(RefusalCode::UnsupportedContentType)
        );
        assert_eq!(retrieved.text, None);
    }
}

/// S140
pub(crate) async fn names_are_made_safe() {
    for (header, name) in [
        ("attachment; filename=\"../../.bashrc\"", Some("bashrc")),
        ("attachment; filename*=UTF-8''%2e%2e%2fx", Some("x")),
        (
            "attachment; filename*=UTF-8''a%0d%0aSet-Cookie:b",
            Some("aSet-Cookie_b"),
        ),
        ("inline", Some("page.html")),
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\
             Content-Disposition: {header}\r\n\r\nhi"
        );
        let retrieved = got(answer).await;
        assert_eq!(retrieved.suggested_name.as_deref(), name, "{header}");
    }
}

#[tokio::test]
async fn a_page_is_read_as_text() {
    let page = "<!doctype html><html><head><title> A &amp;\n title </title>\
        <style>p { color: red }</style><script>var a = '<p>no</p>';</script></head>\
        <body><nav><a href='/home'>Home</a></nav><h1>Heading &#38; more</h1>\
        <p>One   <b>bold</b> word,\n and a <a href=\"../other?a=1#frag\">link</a>.</p>\
        <ul><li>first<li>second<ul><li>inner</ul></ul><ol><li>one</li><li>two</li></ol>\
        <pre>a\n  b</pre><table><tr><td>1</td><td>2</td></tr><tr><td>3<td>4</table>\
        <img alt='a picture' src=x><a href='javascript:alert(1)'>js</a>\
        <div hidden>secret instructions</div><span style='display: none'>unseen</span>\
        <noscript>without scripts</noscript><iframe>frame</iframe><template>t</template>\
        <textarea>typed</textarea><br>last<!-- comment --></body></html>";
    let retrieved = got(ok("text/html", page)).await;
    assert_eq!(retrieved.title.as_deref(), Some("A & title"));
    let expected = "[Home](http://ok.test/home)\n\n# Heading & more\n\n\
        One bold word, and a [link](http://ok.test/other?a=1).\n\n\
        - first\n- second\n  - inner\n\n1. one\n2. two\n\na\n  b\n\n1 | 2\n3 | 4\n\n\
        [image: a picture]jswithout scriptstyped\nlast";
    assert_eq!(retrieved.text.as_deref(), Some(expected));
}

#[tokio::test]
async fn hostile_pages_are_read_in_time_and_memory() {
    let began = Instant::now();
    let deep = "<div><b><ul>".repeat(50_000);
    assert_eq!(html(&format!("{deep}down here")).await, "down here");
    assert_eq!(
        html(&format!("{}x", "<a href=/x>".repeat(50_000))).await,
        "[x](http://ok.test/x)"
    );
    assert_eq!(html("<title>never closed").await, "");
    assert_eq!(html("<script>never closed").await, "");
    assert_eq!(html("a\u{1b}[31mred&#7;").await, "a[31mred");
    assert_eq!(html("</p></div></ul></a>x").await, "x");
    // One tag with so many attributes that comparing them all takes minutes.
    let attributes: String = (0..150_000).map(|it| format!(" {it:x}")).collect();
    let retrieved = got(ok("text/html", &format!("<p{attributes}>x"))).await;
    if let Some(code) = retrieved.error_code {
        assert_eq!(code, RefusalCode::ExtractFailed);
    }
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "{:?}",
        began.elapsed()
    );
}

/// Retrieval asks for the whole, without conditions.
#[tokio::test]
async fn an_answer_to_what_was_not_asked_is_an_error() {
    for (status, more) in [
        (
            "101 Switching Protocols",
            "Connection: upgrade\r\nUpgrade: x\r\n",
        ),
        ("206 Partial Content", "Content-Range: bytes 0-4/100\r\n"),
        ("304 Not Modified", "ETag: \"1\"\r\n"),
        (
            "416 Range Not Satisfiable",
            "Content-Range: bytes */100\r\n",
        ),
    ] {
        let body = if status.starts_with("304") {
            ""
        } else {
            "hello"
        };
        let said = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let retrieved = got(said.into_bytes()).await;
        assert_eq!(
            retrieved.error_code,
            Some(RefusalCode::DecodeError),
            "{status}"
        );
        assert_eq!(retrieved.text, None, "{status}");
        assert_eq!(retrieved.status_code, status[..3].parse().ok(), "{status}");
    }
    let other = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(
        got(other.as_bytes().to_vec()).await.text.as_deref(),
        Some("no")
    );
}

#[tokio::test]
async fn long_text_is_cut_and_marked() {
    for (content_type, body) in [
        ("text/plain", "\u{e9}".repeat(600)),
        ("text/html", format!("<p>{}</p>", "\u{e9}".repeat(600))),
        ("application/json", format!("\"{}\"", "\u{e9}".repeat(600))),
    ] {
        let server = Server::saying(ok(content_type, &body)).await;
        let request = RetrieveRequest {
            max_text_bytes: Some(101),
            ..RetrieveRequest::of("http://ok.test/")
        };
        let world = World::with(&server);
        let retrieved = world.retriever.get("me", request).await;
        assert!(retrieved.truncated, "{content_type}");
        let length = retrieved.text.unwrap().len();
        assert!((100..=101).contains(&length), "{content_type}: {length}");
        assert!(!world.get("http://ok.test/").await.truncated);
        let request = RetrieveRequest {
            max_bytes: Some(100),
            ..RetrieveRequest::of("http://ok.test/")
        };
        let retrieved = world.retriever.get("me", request).await;
        assert_eq!(retrieved.error_code, Some(RefusalCode::ResponseTooLarge));
    }
}

#[tokio::test]
async fn character_sets_are_decoded() {
    for (content_type, body, expected) in [
        (
            "text/plain; charset=iso-8859-1",
            &b"caf\xe9"[..],
            Some("caf\u{e9}"),
        ),
        (
            "text/plain; charset=\"Shift_JIS\"",
            b"\x83e\x83X\x83g",
            Some("\u{30c6}\u{30b9}\u{30c8}"),
        ),
        ("text/plain", b"caf\xe9", Some("caf\u{e9}")),
        ("text/plain", "caf\u{e9}".as_bytes(), Some("caf\u{e9}")),
        ("text/plain", b"\xff\xfeh\0i\0", Some("hi")),
        (
            "text/html",
            b"<meta charset=koi8-r><p>\xf4\xc5\xd3\xd4",
            Some("\u{422}\u{435}\u{441}\u{442}"),
        ),
        ("text/plain; charset=no-such-set", b"hi", None),
        ("text/plain; charset=iso-2022-kr", b"hi", None),
        ("application/json", b"\"caf\xe9\"", Some("\"caf\u{fffd}\"")),
    ] {
        let retrieved = got(with_bytes(content_type, body)).await;
        assert_eq!(retrieved.text.as_deref(), expected, "{content_type}");
        if expected.is_none() {
            assert_eq!(retrieved.error_code, Some(RefusalCode::DecodeError));
        }
    }
}

#[tokio::test]
async fn json_is_read_within_its_limits() {
    let retrieved = got(ok("application/ld+json", "{\"a\": [1, 2]}")).await;
    assert_eq!(retrieved.text.as_deref(), Some("{\"a\": [1, 2]}"));
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let retrieved = got(ok("application/json", &deep)).await;
    assert_eq!(retrieved.error_code, Some(RefusalCode::ExtractFailed));
    let retrieved = got(ok("application/json", "{nope")).await;
    assert_eq!(retrieved.error_code, Some(RefusalCode::DecodeError));
}

#[tokio::test]
async fn an_answer_that_is_no_success_is_still_an_answer() {
    let server = Server::saying(
        "HTTP/1.1 404 No\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ngone",
    )
    .await;
    let retrieved = World::with(&server).get("http://ok.test/").await;
    assert_eq!(
        (retrieved.status_code, retrieved.text.as_deref()),
        (Some(404), Some("gone"))
    );
}

#[tokio::test]
async fn a_url_with_a_secret_is_not_sent_anywhere() {
    let world = World::empty();
    for url in [
        "https://ok.test/?api_key=abcdefgh".to_owned(),
        ["https://ok.test/ghp_", &"a1".repeat(20)].concat(),
    ] {
        let retrieved = world.get(&url).await;
        assert_eq!(
            retrieved.error_code,
            Some(RefusalCode::SuspectedSecretInUrl)
        );
        let told = serde_json::to_string(&retrieved).unwrap();
        assert!(
            !told.contains("abcdefgh") && !told.contains("a1a1a1"),
            "{told}"
        );
    }
    assert!(world.names.asked().is_empty());
    // Nor one that somebody redirects to.
    let there = "HTTP/1.1 302 Found\r\nLocation: /?api_key=abcdefgh\r\nContent-Length: 0\r\n\r\n";
    let retrieved = got(there.as_bytes().to_vec()).await;
    assert_eq!(
        retrieved.error_code,
        Some(RefusalCode::SuspectedSecretInUrl)
    );
    let told = serde_json::to_string(&retrieved).unwrap();
    assert!(!told.contains("abcdefgh"), "{told}");
}

#[tokio::test]
async fn only_get_and_no_more_than_the_rate() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    let mut world = World::with(&server);
    world.retriever.limiter = Some(Arc::new(Limiter::new(LimiterRules {
        in_a_minute: 2,
        ..LimiterRules::default()
    })));
    let post = RetrieveRequest {
        method: Some("POST".to_owned()),
        ..RetrieveRequest::of("http://ok.test/")
    };
    let retrieved = world.retriever.get("me", post).await;
    assert_eq!(retrieved.error_code, Some(RefusalCode::UnsupportedMethod));
    assert_eq!(world.code("http://ok.test/").await, None);
    assert_eq!(world.code("http://ok.test/").await, None);
    let refusal = world.get("http://ok.test/").await.error.unwrap();
    assert_eq!(refusal.code, RefusalCode::RateLimited);
    assert!(
        refusal
            .retry_after_ms
            .is_some_and(|it| (1..=30_000).contains(&it))
    );
    let other = RetrieveRequest::of("http://ok.test/");
    assert!(world.retriever.get("somebody else", other).await.is_ok());
}

#[test]
fn a_request_has_no_place_for_headers_and_the_codes_are_the_contracts() {
    for extra in ["headers", "body", "cookies", "authorization"] {
        let text = format!("{{\"url\":\"https://ok.test/\",\"{extra}\":{{}}}}");
        assert!(
            serde_json::from_str::<RetrieveRequest>(&text).is_err(),
            "{extra}"
        );
    }
    let names: Vec<_> = RefusalCode::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(names.len(), 18);
    for code in RefusalCode::ALL {
        assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{code}\""));
    }
}
