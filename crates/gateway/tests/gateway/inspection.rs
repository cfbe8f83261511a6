//! Hosts whose TLS is opened on the way.

use std::sync::Arc;

use glovebox_gateway::{Authority, Inspect, Policy};
use glovebox_model::{NetCode, Spoken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authority::sandbox_client;
use crate::ground::{Ground, get, one_answer, patiently, policy, tell};
use crate::http::FRAME;
use crate::servers::{Trusted, secure};

pub(crate) struct Inspected {
    pub(crate) ground: Ground,
    pub(crate) authority: Arc<Authority>,
    pub(crate) trusted: Trusted,
}

pub(crate) async fn inspected(policy: Policy) -> Inspected {
    let trusted = Trusted::new();
    let authority = Arc::new(Authority::new(trusted.client()).unwrap());
    let ground = Ground::closed(Some(Arc::clone(&authority)), &[]);
    ground.gateway.admit(policy);
    ground
        .world
        .host("api.test", 443, trusted.https(&["api.test"]).await);
    Inspected {
        ground,
        authority,
        trusted,
    }
}

impl Inspected {
    /// One request over TLS, as a program in the sandbox makes it.
    pub(crate) async fn ask(&self, name: &str, request: &str) -> String {
        let stream = self.ground.dial(name, 443).await;
        let config = sandbox_client(&self.authority);
        let stream = patiently(secure(stream, config, name)).await.unwrap();
        tell(stream, request).await.expect("a reset")
    }
}

fn rule(methods: &[&str], paths: &[&str]) -> Inspect {
    Inspect {
        host: "api.test:443".parse().unwrap(),
        methods: Some(methods.iter().map(ToString::to_string).collect()),
        paths: Some(paths.iter().map(|it| it.parse().unwrap()).collect()),
    }
}

fn ruled() -> Policy {
    let mut policy = policy(&["api.test:443", "plain.test:443"]);
    policy.inspect = vec![
        rule(&["GET", "HEAD"], &["/v1/**"]),
        rule(&["POST"], &["/v1/items"]),
    ];
    policy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_name_methods_and_paths() {
    let at = inspected(ruled()).await;
    let answer = at.ask("api.test", &get("api.test", "/v1/a/b?q=1")).await;
    assert!(answer.contains("GET /v1/a/b?q=1\n"), "{answer}");
    let told = at
        .ground
        .heard(|it| it.path.as_deref() == Some("/v1/a/b"))
        .await;
    assert_eq!((told.spoken, told.code), (Spoken::Https, NetCode::Ok));
    let post = "POST /v1/items HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let answer = at.ask("api.test", post).await;
    assert!(answer.ends_with("hi"), "{answer}");
    let sly = get("api.test", "/v1/sly").replace(
        "\r\n\r\n",
        "\r\nX-Original-URL: /v2/a\r\nX-HTTP-Method-Override: DELETE\r\nX-Forwarded-Uri: /v2/a\r\nX-Forwarded-Prefix: /v2\r\nX-Http-Path-Override: /v2/a\r\nX_Forwarded_Host: b\r\n\r\n",
    );
    let answer = at.ask("api.test", &sly).await;
    assert!(answer.contains("GET /v1/sly\n"), "{answer}");
    assert!(
        !answer.contains("x-original-url")
            && !answer.contains("override")
            && !answer.contains("forwarded"),
        "{answer}"
    );
    for request in [
        get("api.test", "/v2/a"),
        get("api.test", "/v1/../v2/a"),
        get("api.test", "/v1/%2e%2e/v2/a"),
        get("api.test", "/v1//x"),
        get("api.test", "/v1/%EF%BC%8E%EF%BC%8E/v2/a"),
        get("api.test", "/v1/a").replace("GET", "DELETE"),
        get("api.test", "/v1/other").replace("GET", "POST"),
    ] {
        let answer = at.ask("api.test", &request).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{request}{answer}");
        assert!(answer.contains("NOT_IN_ALLOWLIST"), "{answer}");
    }
    let told = at
        .ground
        .heard(|it| it.path.as_deref() == Some("/v2/a") && it.code == NetCode::NotInAllowlist)
        .await;
    assert!(told.hint.unwrap().contains("GET /v2/a"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fronting_is_refused_inside_tls_too() {
    let at = inspected(ruled()).await;
    let answer = at.ask("api.test", &get("plain.test", "/v1/a")).await;
    assert!(answer.contains("SNI_MISMATCH"), "{answer}");
    let stream = at.ground.dial("api.test", 443).await;
    let mut stream = secure(stream, sandbox_client(&at.authority), "api.test")
        .await
        .unwrap();
    stream
        .write_all(b"GET /v1/1 HTTP/1.1\r\nHost: api.test\r\n\r\n")
        .await
        .unwrap();
    assert!(one_answer(&mut stream).await.contains("GET /v1/1\n"));
    let answer = tell(stream, &get("evil.test", "/v1/2")).await.unwrap();
    assert!(answer.contains("SNI_MISMATCH"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_does_not_pass_an_inspected_host() {
    let at = inspected(ruled()).await;
    assert_eq!(
        tell(at.ground.dial("api.test", 443).await, "\x00raw").await,
        None
    );
    at.ground
        .refused("api.test", 443, NetCode::NotInAllowlist)
        .await;
    // A handshake that names another host, and one by a program that trusts only the real world.
    let stream = at.ground.dial("api.test", 443).await;
    let error = patiently(secure(stream, sandbox_client(&at.authority), "evil.test")).await;
    assert!(error.unwrap_err().to_string().contains("AccessDenied"));
    let stream = at.ground.dial("api.test", 443).await;
    assert!(
        patiently(secure(stream, at.trusted.client(), "api.test"))
            .await
            .is_err()
    );
    let told = at.ground.heard(|it| it.code == NetCode::Other).await;
    assert!(told.hint.unwrap().contains("SSL_CERT_FILE"));
    assert_eq!(at.ground.dials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_cannot_prove_its_name_is_not_asked() {
    let at = inspected(ruled()).await;
    let other = Trusted::new();
    at.ground
        .world
        .host("api.test", 443, other.https(&["api.test"]).await);
    let answer = at.ask("api.test", &get("api.test", "/v1/a")).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(
        answer.contains("is signed by nobody who is trusted\n")
            && answer.contains("`[network] extra_ca`"),
        "{answer}"
    );
    at.ground
        .world
        .host("api.test", 443, at.trusted.https(&["other.test"]).await);
    let answer = at.ask("api.test", &get("api.test", "/v1/a")).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("is for another name\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_hosts_stay_closed_to_the_gateway() {
    let at = inspected(ruled()).await;
    at.ground
        .world
        .host("plain.test", 443, at.trusted.https(&["plain.test"]).await);
    let stream = at.ground.dial("plain.test", 443).await;
    let stream = patiently(secure(stream, at.trusted.client(), "plain.test"))
        .await
        .unwrap();
    let answer = tell(stream, &get("plain.test", "/")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspection_works_through_a_tunnel_and_for_websockets() {
    let at = inspected({
        let mut policy = policy(&["api.test:443"]);
        policy.inspect = vec![rule(&["GET"], &["/ws"])];
        policy
    })
    .await;
    let mut stream = at.ground.to_proxy().await;
    stream
        .write_all(b"CONNECT api.test:443 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let answer = one_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut stream = secure(stream, sandbox_client(&at.authority), "api.test")
        .await
        .unwrap();
    stream
        .write_all(b"GET /ws HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await
        .unwrap();
    let answer = one_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    stream.write_all(FRAME).await.unwrap();
    let mut back = [0; FRAME.len()];
    patiently(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, FRAME);
    // One connection was enough: the host is dialled when the request is known.
    assert_eq!(at.ground.dials(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_authority_an_inspected_host_is_not_reached() {
    let ground = Ground::closed(None, &[]);
    ground.gateway.admit(ruled());
    let stream = ground.dial("api.test", 443).await;
    assert!(
        patiently(secure(stream, Trusted::new().client(), "api.test"))
            .await
            .is_err()
    );
    ground
        .refused("api.test", 443, NetCode::InternalError)
        .await;
    assert_eq!(ground.dials(), 0);
}
