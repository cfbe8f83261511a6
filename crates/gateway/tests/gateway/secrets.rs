//! Secrets that the sandbox uses and never sees.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_gateway::{Brokered, Policy};
use zeroize::Zeroizing;

use crate::ground::{policy, rules};
use crate::inspection::{Inspected, inspected};

const VALUE: &str = "sk-live-9f8e7d6c5b4a39281706";
const PLACEHOLDER: &str = "glovebox-placeholder-0001";

fn brokered(value: &str) -> Policy {
    let mut policy = policy(&["api.test:443", "other.test:443", "api.test:80"]);
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
        crate::servers::secure(stream, at.trusted.client(), "other.test")
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
