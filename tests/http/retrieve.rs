//! Reading pages through the server: what comes back, every way in which nothing does, and what is
//! written down of it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Asked, Caller, Client, Said, Server, Site, Trial, wait_until};

use crate::pool_fire::serve;

const PATIENCE: Duration = Duration::from_secs(60);

fn site() -> Site {
    Site::open(|asked: &Asked| match asked.path.as_str() {
        "/page" => Said::page(
            "text/html; charset=utf-8",
            "<html><head><title>A page</title><script>steal()</script></head>\
             <body><h1>Hello</h1><p>out there</p></body></html>",
        ),
        "/there" => Said::status(302).with("Location", "/page"),
        "/round" => Said::status(302).with("Location", "/round"),
        "/meta" => Said::status(302).with("Location", "http://169.254.169.254/latest/"),
        "/large" => Said::page("text/plain", vec![b'x'; 100_000]),
        "/image" => Said::page("image/png", b"\x89PNG\r\n\x1a\n0000".to_vec()),
        "/broken" => Said::page("text/plain", b"no gzip".to_vec()).with("Content-Encoding", "gzip"),
        "/silent" => Said::Silence,
        _ => Said::page("text/plain", "plain\n"),
    })
}

/// Where nobody listens, and nobody else can begin to for as long as this process lives: it is the near
/// end of a connection.
fn nobody() -> SocketAddr {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = TcpStream::connect(door.local_addr().unwrap()).unwrap();
    let address = held.local_addr().unwrap();
    std::mem::forget((door, held));
    address
}

fn opened(site: &Site, more: &str) -> (Trial, Server) {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let (address, nobody) = (site.address(), nobody());
    std::fs::write(trial.home().join("nobody"), nobody.to_string()).unwrap();
    let config = format!(
        "[settings]\nnetwork = \"retrieval\"\n\
         [network]\nprivate = [\"{address}\", \"{nobody}\"]\n\
         [network.retrieval]\nports = [\"{address}\", \"{nobody}\"]\n{more}"
    );
    let server = serve(&trial, &config).on(&trial);
    (trial, server)
}

#[track_caller]
fn read(client: &Client, body: Value) -> Value {
    let answer = client.post("/v1/retrieve", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[track_caller]
fn assert_code(client: &Client, body: Value, code: &str) {
    let read = read(client, body.clone());
    assert_eq!(read["error_code"], code, "{body}: {read}");
    assert_eq!(read["error"]["code"], code);
    assert!(read["text"].is_null(), "{read}");
    assert!(!read["error"]["message"].as_str().unwrap().is_empty());
}

#[test]
fn a_page_comes_as_text_with_where_it_came_from() {
    let site = site();
    let (trial, server) = opened(&site, "");
    let agent = server.client_of(&server.token_of("agent", "local", "robot"));
    let read = read(
        &agent,
        json!({"url": site.url("/there"), "task_ref": {"conversation_id": "c-1"}}),
    );
    let text = read["text"].as_str().unwrap();
    assert!(
        text.contains("Hello") && text.contains("out there"),
        "{text}"
    );
    assert!(!text.contains("steal"), "{text}");
    assert_eq!(read["final_url"], site.url("/page"));
    assert_eq!(
        (&read["status_code"], &read["redirects"]),
        (&json!(200), &json!(1))
    );
    assert_eq!(read["content_type"], "text/html");
    assert_eq!(read["content_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(read["peer"], site.address().to_string());
    assert!(read["error_code"].is_null());
    // Nothing of the caller's own goes out.
    for asked in site.asked() {
        assert_eq!(asked.method, "GET");
        for name in ["authorization", "cookie", "referer"] {
            assert!(!asked.headers.iter().any(|(it, _)| it == name), "{asked:?}");
        }
    }
    let entries = server
        .client()
        .get("/v1/audit?tag=event:retrieval&conversation_id=c-1");
    let entries = entries.json();
    let body = &entries["items"][0]["body"];
    let details = &body["details"];
    assert_eq!(details["requested_host"], site.address().to_string());
    assert_eq!(
        (&details["status_code"], &details["redirects"]),
        (&json!(200), &json!(1))
    );
    assert_eq!(details["resolved_addresses"], 1);
    assert_eq!(details["requested_url_hmac"].as_str().unwrap().len(), 64);
    assert_eq!(body["by"]["name"], "robot");
    // It was on disk that it would be asked before it was, under the same hash.
    let planned = server
        .client()
        .get("/v1/audit?tag=event:retrieval.planned&conversation_id=c-1")
        .json();
    let plans = planned["items"].as_array().unwrap();
    assert_eq!(plans.len(), 1, "{planned}");
    assert!(
        plans[0]["seq"].as_u64() < entries["items"][0]["seq"].as_u64(),
        "{planned} {entries}"
    );
    let of = &plans[0]["body"]["details"];
    for field in ["requested_host", "requested_url_hmac"] {
        assert_eq!(of[field], details[field], "{planned}");
    }
    for private in ["/there", "/page", "Hello", "A page"] {
        for told in [&entries, &planned] {
            assert!(!told.to_string().contains(private), "{told}");
        }
    }
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn every_way_to_get_nothing_has_its_code() {
    let site = site();
    let (trial, server) = opened(&site, "");
    let client = server.client();
    let nobody = std::fs::read_to_string(trial.home().join("nobody")).unwrap();
    let url = |path: &str| json!({"url": site.url(path)});
    let of = |url: &str| json!({"url": url});
    let address = site.address();
    for (body, code) in [
        (of("http:/example.com"), "invalid_url"),
        (of("https://example.com/a b"), "invalid_url"),
        (of("ftp://example.com/"), "unsupported_scheme"),
        (of("file:///etc/passwd"), "unsupported_scheme"),
        (
            json!({"url": site.url("/page"), "method": "POST"}),
            "unsupported_method",
        ),
        (of("https://user:pw@example.com/"), "userinfo_not_allowed"),
        (of("https://example.com:8443/"), "port_not_allowed"),
        (
            of("https://no-such-name-at-all.glovebox-nowhere.net/"),
            "dns_failed",
        ),
        (
            of("http://169.254.169.254/latest/meta-data/"),
            "destination_blocked",
        ),
        (of("http://localhost/"), "destination_blocked"),
        (of("http://0x7f000001/"), "destination_blocked"),
        (of("http://[::ffff:10.0.0.1]/"), "destination_blocked"),
        (url("/round"), "redirect_limit_exceeded"),
        (url("/meta"), "redirect_blocked"),
        (of(&format!("https://{address}/page")), "tls_error"),
        (of(&format!("http://{nobody}/")), "connection_timeout"),
        (
            json!({"url": site.url("/silent"), "timeout_ms": 2000}),
            "read_timeout",
        ),
        (
            json!({"url": site.url("/large"), "max_bytes": 1000}),
            "response_too_large",
        ),
        (url("/image"), "unsupported_content_type"),
        (url("/broken"), "decode_error"),
        (
            url("/page?token=ghp_0123456789abcdefghijABCDEFGHIJ012345"),
            "suspected_secret_in_url",
        ),
    ] {
        assert_code(&client, body, code);
    }
    // A refusal is written down as well, by its code.
    let entries = client
        .get("/v1/audit?tag=retrieval:suspected_secret_in_url")
        .json();
    assert_eq!(entries["items"].as_array().unwrap().len(), 1, "{entries}");
    assert!(!entries.to_string().contains("ghp_"), "{entries}");
    let asked: Vec<String> = site.asked().iter().map(|it| it.path.clone()).collect();
    assert!(!asked.iter().any(|it| it.contains("ghp_")), "{asked:?}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn whoever_reads_too_often_is_told_when_to_come_back() {
    let site = site();
    let (trial, server) = opened(&site, "per_minute = 2\nconcurrent = 1\n");
    let client = server.client_of(&server.token_of("agent", "local", "one"));
    let other = server.client_of(&server.token_of("agent", "local", "two"));
    // One more comes back every half minute, which a busy disk may take for a page or two.
    let mut pages = 0;
    let refused = loop {
        let answer = client.post("/v1/retrieve", &json!({"url": site.url("/")}));
        if answer.status != 200 {
            break answer;
        }
        assert!(answer.json()["error_code"].is_null(), "{}", answer.text());
        pages += 1;
        assert!(pages < 10, "nobody is refused");
    };
    assert!(pages >= 2, "refused after {pages}");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "rate_limited")
    );
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    // Another caller has a rate of its own, and one place.
    let slow = {
        let (other, url) = (other.clone(), site.url("/silent"));
        std::thread::spawn(move || read(&other, json!({"url": url, "timeout_ms": 30_000})))
    };
    let silent = || site.asked().iter().any(|it| it.path == "/silent");
    assert!(wait_until(PATIENCE, silent));
    let refused = other.post("/v1/retrieve", &json!({"url": site.url("/")}));
    assert_eq!(refused.status, 429, "{}", refused.text());
    // It is not waited for to the end of its time.
    drop(site);
    let slow = slow.join().unwrap();
    assert!(slow["error_code"].is_string(), "{slow}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn policy_decides_who_reads_what() {
    let site = site();
    let address = site.address();
    let rules = "allow = [\"*.example.com:443\"]\n\
                 [[rule]]\nname = \"no-evil\"\ndecision = \"deny\"\nhost = \"evil.example:443\"\n\
                 [[rule]]\ndecision = \"ask\"\nhost = \"wiki.example.com\"\n";
    let (trial, server) = opened(&site, rules);
    let client = server.client();
    let denied = client.post("/v1/retrieve", &json!({"url": "https://evil.example/x"}));
    assert_eq!(
        (denied.status, denied.code().as_str()),
        (403, "policy_denied")
    );
    let asks = client.post(
        "/v1/retrieve",
        &json!({"url": "https://wiki.example.com/x"}),
    );
    assert_eq!((asks.status, asks.code().as_str()), (403, "policy_denied"));
    assert!(asks.text().contains("decision"), "{}", asks.text());
    // Beside the list nothing is read, not even what may be dialled.
    assert_code(
        &client,
        json!({"url": site.url("/page")}),
        "destination_blocked",
    );
    assert!(site.asked().is_empty());
    let approver = server.client_of(&server.token_of("approver", "local", "ann"));
    let refused = approver.post("/v1/retrieve", &json!({"url": "https://example.com/"}));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "forbidden")
    );
    assert_eq!(server.stop(), 0);
    trial.end();

    // Without a word about the network there is no way out, and a rule holds where a redirect leads.
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = serve(&trial, &format!("[network]\nprivate = [\"{address}\"]\n")).on(&trial);
    let closed = server
        .client()
        .post("/v1/retrieve", &json!({"url": site.url("/page")}));
    assert_eq!(
        (closed.status, closed.code().as_str()),
        (403, "policy_denied")
    );
    assert!(closed.text().contains("retrieval"), "{}", closed.text());
    let entries = server
        .client()
        .get("/v1/audit?tag=retrieval:policy_denied")
        .json();
    assert_eq!(entries["items"].as_array().unwrap().len(), 1, "{entries}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_rule_that_denies_a_host_holds_wherever_a_redirect_leads() {
    let inner = site();
    let target = inner.url("/page");
    let front = Site::open(move |_| Said::status(302).with("Location", &target));
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let config = format!(
        "[settings]\nnetwork = \"retrieval\"\n[network]\nprivate = [\"{0}\", \"{1}\"]\n\
         [network.retrieval]\nports = [\"{0}\", \"{1}\"]\n\
         [[rule]]\ndecision = \"deny\"\nhost = \"{1}\"\n",
        front.address(),
        inner.address()
    );
    let server = serve(&trial, &config).on(&trial);
    assert_code(
        &server.client(),
        json!({"url": front.url("/")}),
        "redirect_blocked",
    );
    assert!(inner.asked().is_empty());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_sandboxes_may_reach_is_not_for_everybody_to_read() {
    let site = site();
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let config = format!(
        "[settings]\nnetwork = \"retrieval\"\n[network]\nprivate = [\"{}\"]\n",
        site.address()
    );
    let server = serve(&trial, &config).on(&trial);
    assert_code(
        &server.client(),
        json!({"url": site.url("/page")}),
        "port_not_allowed",
    );
    assert!(site.asked().is_empty());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn the_command_reads_with_a_server_and_without_one() {
    let site = site();
    let (trial, server) = opened(&site, "");
    let config = trial.home().join("config.toml");
    let address = format!("http://{}", server.address);
    let run = |by_server: bool, words: &[&str]| {
        let mut command = trial.glovebox();
        match by_server {
            true => command.args(["--server", &address]),
            false => command.arg("--config").arg(&config),
        };
        command.args(words).output().unwrap()
    };
    for by_server in [true, false] {
        let read = run(by_server, &["retrieve", &site.url("/page")]);
        assert!(read.status.success(), "{read:?}");
        let text = String::from_utf8(read.stdout).unwrap();
        assert!(text.contains("Hello"), "{text}");
        let blocked = run(by_server, &["--json", "retrieve", "http://10.0.0.1/"]);
        assert_eq!(blocked.status.code(), Some(1), "{blocked:?}");
        let record: Value = serde_json::from_slice(&blocked.stdout).unwrap();
        assert_eq!(record["error_code"], "destination_blocked");
    }
    assert_eq!(server.stop(), 0);
    let audit = run(
        false,
        &["--json", "audit", "query", "--tag", "event:retrieval"],
    );
    let said = String::from_utf8(audit.stdout).unwrap();
    assert!(said.contains("requested_url_hmac"), "{said}");
    trial.end();
}

/// Nothing may be asked of anybody that cannot be recorded.
#[test]
fn without_a_ledger_nothing_is_read() {
    let site = site();
    let (trial, server) = opened(&site, "");
    let client = server.client();
    assert!(read(&client, json!({"url": site.url("/page")}))["error_code"].is_null());
    assert_eq!(site.asked().len(), 1);
    let database = rusqlite::Connection::open(trial.state().join("glovebox.db")).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON ledger_entries
                  BEGIN SELECT RAISE(ABORT, 'no more entries'); END";
    database.execute_batch(refuse).unwrap();
    let refused = client.post("/v1/retrieve", &json!({"url": site.url("/page")}));
    assert!(refused.status >= 500, "{}", refused.text());
    assert_eq!(site.asked().len(), 1, "it was asked unrecorded");
    database.execute_batch("DROP TRIGGER refuse").unwrap();
    assert!(read(&client, json!({"url": site.url("/page")}))["error_code"].is_null());
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}
