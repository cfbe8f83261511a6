//! Every row of the corpus of server-side request forgeries. A row that nobody handles fails.

use std::path::Path;

use glovebox_egress::retrieve::RetrieveRequest;
use glovebox_egress::{PrivateTargets, Refusal, RefusalCode, Vetted, vet_url};
use glovebox_model::HostPort;
use serde::Deserialize;

use crate::world::{PUBLIC, PUBLIC_6, Road, Server, World, ok, redirect};
use crate::{bodies, clients, pages, tls};

#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    input: String,
    class: String,
    verdict: String,
}

/// Not every copy of the repository has it; where everything has to be tested, that is a failure.
fn beside_the_repository(path: &str) -> std::path::PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(3).unwrap_or(own).join(path)
}

fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|it| it == "true")
}

fn rows() -> Option<Vec<Row>> {
    let file = beside_the_repository("shared/corpora/ssrf.jsonl");
    let text = std::fs::read_to_string(file).ok()?;
    let rows = text.lines().filter(|line| !line.trim().is_empty());
    Some(rows.map(|row| serde_json::from_str(row).unwrap()).collect())
}

#[tokio::test]
async fn every_row_of_the_corpus_is_handled() {
    let Some(rows) = rows() else {
        assert!(!is_ci(), "the corpus does not lie beside the repository");
        println!("the corpus does not lie beside the repository");
        return;
    };
    assert!(rows.len() >= 100, "{} rows", rows.len());
    for row in &rows {
        println!("{} {} {}", row.id, row.class, row.verdict);
        check(row).await;
    }
}

async fn check(row: &Row) {
    match row.id.as_str() {
        "S048" => allowed(&row.input).await,
        "S089" => denied_with(row, &[&["127.0.0.1"]]).await,
        "S090" => denied_with(row, &[&["10.0.0.5"]]).await,
        "S091" => denied_with(row, &[&["93.184.216.34", "127.0.0.1"]]).await,
        "S092" => denied_with(row, &[&[PUBLIC, "::1"]]).await,
        "S093" => one_lookup_is_dialled().await,
        "S095" => a_second_request_is_vetted_again().await,
        "S096" => denied_with(row, &[&["192.168.0.9"]]).await,
        "S099" => many_addresses(row).await,
        "S101" | "S115" | "S117" => each_denied(&row.input).await,
        "S118" => ports(&row.input).await,
        "S102" | "S103" | "S104" | "S105" => redirected(row).await,
        "S107" => a_long_way(21).await,
        "S109" => downgraded().await,
        "S110" => clients::credentials_stay_at_their_origin().await,
        "S112" => refreshes_are_ignored().await,
        "S114" => a_list_holds_for_every_hop().await,
        "S121" | "S122" | "S125" => not_on_the_list(row).await,
        // What a proxy does with it is the gateway's; here there is one authority, the target's.
        "S127" => clients::the_host_header_is_the_targets().await,
        "S130" => bodies::bombs().await,
        "S131" => bodies::nested_codings().await,
        "S133" => bodies::lengths_that_lie().await,
        "S134" => bodies::a_slow_body().await,
        "S135" => bodies::stalls().await,
        "S136" => bodies::heads_without_end().await,
        "S138" => pages::both_types_are_told().await,
        "S140" => pages::names_are_made_safe().await,
        "S142" => tls::certificates_that_do_not_hold().await,
        "S143" => tls::certificates_of_addresses().await,
        "S146" => asked_on_the_host_only().await,
        "S147" => malformed(&row.input).await,
        "S150" => tls::public_hosts_are_read().await,
        id => match (row.verdict.as_str(), row.class.as_str()) {
            // What these say is all in the URL.
            (
                "DENY",
                "ip-literal" | "ip-notation" | "hostname" | "metadata" | "metadata-notation"
                | "ipv6" | "ipv6-mapped" | "ipv6-translated" | "nat64" | "6to4" | "userinfo"
                | "parser-diff" | "idna" | "pct-host",
            ) => denied(&row.input).await,
            ("ALLOW", "ip-boundary" | "parser-diff" | "port") => allowed(&row.input).await,
            (verdict, class) => panic!("{id}: nobody handles {verdict} of {class}"),
        },
    }
}

/// Where every name that is asked for is public, so that only the URL itself can be at fault.
async fn vetted(url: &str) -> Result<Vetted, Refusal> {
    let world = World::empty();
    let target = vet_url(url, &PrivateTargets::none())?;
    if let Some(name) = target.host().name() {
        world.names.set(name, &[&[PUBLIC]]);
    }
    world.vetter().vet(target.host(), target.port()).await
}

async fn denied(url: &str) {
    assert!(vetted(url).await.is_err(), "{url} passed");
    // Through the front door as well, and nothing was dialled on the way.
    let world = World::empty();
    let retrieved = world.get(url).await;
    assert!(retrieved.error_code.is_some() && retrieved.text.is_none());
    assert!(world.roads.dialled().is_empty(), "{url}");
}

async fn allowed(url: &str) {
    let vetted = vetted(url).await;
    assert!(vetted.is_ok(), "{url}: {vetted:?}");
}

/// `http://a/ , http://b/`; a scheme alone stands for any URL of it.
async fn each_denied(inputs: &str) {
    for input in inputs.split(" , ") {
        let written = input.trim();
        let whole = match written.strip_suffix("://") {
            Some(_) => format!("{written}127.0.0.1/"),
            None => written.to_owned(),
        };
        denied(&whole).await;
    }
}

async fn ports(inputs: &str) {
    let mut words = inputs.split_whitespace();
    let first = words.next().unwrap();
    let base = first.strip_suffix(":22/").unwrap();
    let rest: Vec<_> = words.map(|it| format!("{base}{it}")).collect();
    assert_eq!(rest.len(), 3);
    for url in std::iter::once(first.to_owned()).chain(rest) {
        let refusal = vetted(&url).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::PortNotAllowed, "{url}");
    }
}

/// The URL before the remark of the row.
fn url(row: &Row) -> &str {
    row.input.split(' ').next().unwrap()
}

async fn denied_with(row: &Row, answers: &[&[&str]]) {
    let world = World::empty();
    let name = url(row).trim_start_matches("http://").trim_end_matches('/');
    world.names.set(name, answers);
    let code = world.code(url(row)).await;
    assert_eq!(code, Some(RefusalCode::DestinationBlocked), "{}", row.id);
    assert_eq!(world.names.asked(), [name]);
    assert!(world.roads.dialled().is_empty());
}

async fn many_addresses(row: &Row) {
    let mut all: Vec<String> = (0..399)
        .map(|it| format!("93.184.{}.{}", it / 256, it % 256))
        .collect();
    all.push("10.0.0.1".to_owned());
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    denied_with(row, &[&all]).await;
    // The cap by itself, and that it is none for honest names.
    denied_with(row, &[&all[..65]]).await;
    let world = World::empty();
    world.names.set("big.test", &[&all[..64]]);
    assert_eq!(
        world.code("http://big.test/").await,
        Some(RefusalCode::ConnectionTimeout)
    );
    assert_eq!(world.roads.dialled().len(), 64);
}

/// S093
async fn one_lookup_is_dialled() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    let world = World::with(&server);
    world.names.set("rebind.test", &[&[PUBLIC], &["127.0.0.1"]]);
    let retrieved = world.get("http://rebind.test/").await;
    assert_eq!(retrieved.text.as_deref(), Some("hello"));
    assert_eq!(world.names.asked(), ["rebind.test"]);
    let dialled: Vec<_> = world
        .roads
        .dialled()
        .iter()
        .map(|it| it.ip().to_string())
        .collect();
    assert_eq!(dialled, [PUBLIC]);
    assert_eq!(retrieved.peer.unwrap().ip().to_string(), PUBLIC);
}

/// S095
async fn a_second_request_is_vetted_again() {
    let server = Server::saying(ok("text/plain", "hello")).await;
    let world = World::with(&server);
    world.names.set("rebind.test", &[&[PUBLIC], &["127.0.0.1"]]);
    assert_eq!(world.code("http://rebind.test/").await, None);
    let code = world.code("http://rebind.test/").await;
    assert_eq!(code, Some(RefusalCode::DestinationBlocked));
    assert_eq!(server.seen().len(), 1);
    let head = server.seen()[0].to_ascii_lowercase();
    assert!(head.contains("connection: close\r\n"), "{head}");
}

async fn redirected(row: &Row) {
    let (_, rest) = row.input.split_once('\u{2192}').unwrap();
    let mut words = rest.split_whitespace();
    let status: u16 = words.next().unwrap().parse().unwrap();
    let place = words.next().unwrap();
    for place in [place.to_owned(), place.replace("http://", "HTTP:\\\\")] {
        let server = Server::saying(redirect(status, &place)).await;
        let world = World::with(&server);
        let code = world.code("http://ok.test/").await;
        assert_eq!(code, Some(RefusalCode::RedirectBlocked), "{place}");
        assert_eq!(world.roads.dialled().len(), 1, "{place}");
    }
}

/// S107
async fn a_long_way(hops: usize) {
    let server = Server::start(move |mut stream, head| {
        Box::pin(async move {
            let at: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap_or(0);
            let answer = match at < hops {
                true => redirect(302, &format!("/{}", at + 1)),
                false => ok("text/plain", "there"),
            };
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        })
    })
    .await;
    let world = World::with(&server);
    let retrieved = world.get("http://ok.test/0").await;
    assert_eq!(
        retrieved.error_code,
        Some(RefusalCode::RedirectLimitExceeded)
    );
    assert!(
        retrieved.error.unwrap().message.contains('5'),
        "names the cap"
    );
    assert_eq!(server.seen().len(), 6, "the first and five redirects");
    // The control: as many as are allowed arrive.
    let near = format!("http://ok.test/{}", hops - 5);
    let retrieved = world.get(&near).await;
    assert_eq!(retrieved.text.as_deref(), Some("there"));
    assert_eq!(retrieved.redirects, 5);
    assert_eq!(retrieved.final_url.as_deref(), Some("http://ok.test/21"));
}

/// S109
async fn downgraded() {
    let (server, _) = tls::named("ok.test", redirect(302, "http://ok.test/")).await;
    let plain = Server::saying(ok("text/plain", "plain")).await;
    let world = World::with(&plain);
    world.roads.set(PUBLIC, 443, Road::To(server.address));
    let code = world.code("https://ok.test/").await;
    assert_eq!(code, Some(RefusalCode::RedirectBlocked));
    assert!(plain.seen().is_empty());
    // The other way is an upgrade.
    let (server, _) = tls::named("ok.test", ok("text/plain", "safe")).await;
    let plain = Server::saying(redirect(301, "https://ok.test/")).await;
    let world = World::with(&plain);
    world.roads.set(PUBLIC, 443, Road::To(server.address));
    let text = world.get("http://ok.test/").await.text;
    assert_eq!(text.as_deref(), Some("safe"));
}

/// S112
async fn refreshes_are_ignored() {
    let body = "<meta http-equiv=refresh content=\"0;url=http://127.0.0.1/\"><p>stays</p>";
    let length = body.len();
    let server = Server::saying(format!(
        "HTTP/1.1 200 OK\r\nRefresh: 0;url=http://127.0.0.1/\r\nContent-Type: text/html\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ))
    .await;
    let world = World::with(&server);
    let retrieved = world.get("http://ok.test/").await;
    assert_eq!(retrieved.text.as_deref(), Some("stays"));
    assert_eq!(retrieved.redirects, 0);
    assert_eq!(world.roads.dialled().len(), 1);
}

fn asking(url: &str, allow: &[&str]) -> RetrieveRequest {
    RetrieveRequest {
        allow: Some(
            allow
                .iter()
                .map(|it| it.parse::<HostPort>().unwrap())
                .collect(),
        ),
        ..RetrieveRequest::of(url)
    }
}

/// S114
async fn a_list_holds_for_every_hop() {
    let last = Server::saying(ok("text/plain", "not listed")).await;
    let second = Server::saying(redirect(302, "http://other.test/")).await;
    let first = Server::saying(redirect(302, "http://listed.test/")).await;
    let world = World::with(&first);
    world.names.set("listed.test", &[&["93.184.216.35"]]);
    world.names.set("other.test", &[&["93.184.216.36"]]);
    world
        .roads
        .set("93.184.216.35", 80, Road::To(second.address));
    world.roads.set("93.184.216.36", 80, Road::To(last.address));
    let listed = ["ok.test:80", "listed.test:80"];
    let request = asking("http://ok.test/", &listed);
    let retrieved = world.retriever.get("me", request).await;
    assert_eq!(retrieved.error_code, Some(RefusalCode::RedirectBlocked));
    assert_eq!(retrieved.redirects, 2);
    assert!(last.seen().is_empty());
    // Without a list it arrives, and the operator's list holds whatever the request's says.
    let text = world.get("http://ok.test/").await.text;
    assert_eq!(text.as_deref(), Some("not listed"));
    let mut world = world;
    world.retriever.domains = asking("", &listed).allow;
    let all = ["ok.test:80", "listed.test:80", "other.test:80"];
    let retrieved = world
        .retriever
        .get("me", asking("http://ok.test/", &all))
        .await;
    assert_eq!(retrieved.error_code, Some(RefusalCode::RedirectBlocked));
}

async fn not_on_the_list(row: &Row) {
    for rule in ["allowed.com:80", "*.allowed.com:80"] {
        let world = World::empty();
        let request = asking(url(row), &[rule]);
        let retrieved = world.retriever.get("me", request).await;
        let blocked = Some(RefusalCode::DestinationBlocked);
        assert_eq!(retrieved.error_code, blocked, "{} by {rule}", row.id);
        assert!(world.names.asked().is_empty(), "asked before it was judged");
    }
    // The control: the names that are meant get past the list, to the lookup.
    for (url, rule) in [
        ("http://allowed.com/", "allowed.com:80"),
        ("http://ALLOWED.com./", "allowed.com:80"),
        ("http://a.b.allowed.com/", "*.allowed.com:80"),
    ] {
        let retrieved = World::empty()
            .retriever
            .get("me", asking(url, &[rule]))
            .await;
        assert_eq!(retrieved.error_code, Some(RefusalCode::DnsFailed), "{url}");
    }
    let itself = World::empty()
        .retriever
        .get("me", asking("http://allowed.com/", &["*.allowed.com:80"]))
        .await;
    assert_eq!(itself.error_code, Some(RefusalCode::DestinationBlocked));
}

/// S146: nothing but the injected resolver is asked, once for a hop, with the name as it is.
async fn asked_on_the_host_only() {
    let server = Server::saying(redirect(302, "http://next.test/")).await;
    let world = World::with(&server);
    world.names.set("next.test", &[&[PUBLIC_6]]);
    assert_eq!(
        world.code("http://ok.test/").await,
        Some(RefusalCode::ConnectionTimeout)
    );
    assert_eq!(world.names.asked(), ["ok.test", "next.test"]);
}

async fn malformed(inputs: &str) {
    assert_eq!(inputs.split(';').count(), 5, "{inputs}");
    let label = "a".repeat(64);
    for url in [
        format!("http://example.com/{}", "a".repeat(64 * 1024)),
        format!("http://{}example.com/", "a.".repeat(150)),
        format!("http://{label}.example.com/"),
        "http://:80/".to_owned(),
        "http://.../".to_owned(),
    ] {
        let refusal = vetted(&url).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::InvalidUrl, "{url:.60}");
        assert!(refusal.message.len() < 300 && refusal.hint.is_some());
    }
}

/// Lets through what is not named, and notes what it was asked.
#[derive(Debug, Default)]
struct Not(&'static str, std::sync::Mutex<Vec<String>>);

impl glovebox_egress::client::HopPolicy for Not {
    fn check(&self, host: &glovebox_egress::Host, port: u16) -> Result<(), Refusal> {
        self.1.lock().unwrap().push(format!("{host}:{port}"));
        match host.name() == Some(self.0) {
            true => Err(Refusal::new(RefusalCode::DestinationBlocked, "not there")),
            false => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_policy_is_asked_at_every_hop_before_the_resolver() {
    let server = Server::saying(redirect(302, "http://next.test/")).await;
    for (refused, code, asked) in [
        ("ok.test", RefusalCode::DestinationBlocked, 0),
        ("next.test", RefusalCode::RedirectBlocked, 1),
    ] {
        let mut world = World::with(&server);
        world.names.set("next.test", &[&[PUBLIC]]);
        let policy = std::sync::Arc::new(Not(refused, Default::default()));
        world.retriever.hops = Some(policy.clone());
        assert_eq!(world.code("http://ok.test/").await, Some(code));
        assert_eq!(world.names.asked().len(), asked);
        assert_eq!(policy.1.lock().unwrap().len(), asked + 1);
    }
}
