//! A secret that a program uses without having it.

use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, wait_until};

use crate::canary::{VALUE, grant, holds, order, serve};
use crate::ground::Ground;

/// What servers were told by way of authorization.
fn told(seen: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    seen.iter()
        .map(|it| (text(&it["host"]), text(&it["authorization"])))
        .collect()
}

#[test]
fn the_value_goes_to_its_host_and_to_no_other() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let server = serve(&ground);
    let script = ground.fill(
        r#"
        echo "have $CANARY"
        for host in ok.test also.test; do
            curl -sS -H "Authorization: Bearer $CANARY" https://$host:TLS/echo
            (unset https_proxy HTTPS_PROXY; curl -sS -H "Authorization: Bearer $CANARY" https://$host:TLS/echo)
            curl -sS -u "me:$CANARY" https://$host:TLS/echo
        done
        # In the clear it is nobody's.
        curl -sS -H "Authorization: Bearer $CANARY" http://ok.test:HTTP/echo
        "#,
    );
    let body = order(&["/bin/sh", "-c", &script], "broker");
    let ran = server.exec(&body);
    assert_eq!(ran.status, 200, "{}", ran.text());
    assert!(!holds(&ran.body), "{}", ran.text());
    let record = ran.json();
    let stdout = record["stdout"].as_str().unwrap();
    let placeholder = stdout
        .lines()
        .next()
        .unwrap()
        .strip_prefix("have ")
        .unwrap();
    assert!(
        placeholder.len() > 16 && !VALUE.contains(placeholder),
        "{record}"
    );
    let (ok, also) = (ground.fill("ok.test:TLS"), ground.fill("also.test:TLS"));
    let plain = ground.fill("ok.test:HTTP");
    let told = told(&ground.seen());
    let bearer = |host: &str, what: &str| (host.to_owned(), format!("Bearer {what}"));
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(told[0], bearer(&ok, VALUE));
    assert_eq!(told[1], bearer(&ok, VALUE));
    // `me:` and the value, in base64.
    assert_eq!(told[2].1, "Basic bWU6Y25yeS03ZjNLcT05WnRXeCtZd1Eydkxw");
    assert_eq!(told[3], bearer(&also, placeholder));
    assert_eq!(told[4], bearer(&also, placeholder));
    assert_eq!(told[6], bearer(&plain, placeholder));
    assert!(!told[5].1.contains(VALUE));
    // The echo came back, without it.
    let echoed = stdout.matches("Authorization: ").count();
    assert!(echoed >= 5, "{stdout}");
    assert_eq!(server.stop(), 0);
    ground.end();
}

/// A host that says back what it was told, and others that it has told.
#[test]
fn a_value_that_hosts_say_back_does_not_arrive_in_any_disguise() {
    let ground = Ground::new(Caller::Root, "", "").unwrap();
    let server = serve(&ground);
    let program = include_str!("reflect.py").replace("TLS_PORT", &ground.https.to_string());
    let program = ground.fill(&program);
    let ran = server.exec(&order(&[support::python(), "-c", &program], "broker"));
    assert_eq!(ran.status, 200, "{}", ran.text());
    let record = ran.json();
    assert_eq!(record["stdout"], "done\n", "{}", record["stderr"]);
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_revoked_one_is_not_put_in_any_more_while_the_program_runs() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let server = serve(&ground);
    let client = server.client();
    let script = ground.fill(
        r#"while :; do
            curl -sS -H "Authorization: Bearer $CANARY" https://ok.test:TLS/echo >/dev/null
        done"#,
    );
    let mut body = order(&["/bin/sh", "-c", &script], "broker");
    body["wait"] = json!(false);
    // It ends when it is canceled, however long that takes here.
    body["policy_overrides"]["timeout"] = json!("5m");
    let started = client.post("/v1/execs", &body);
    assert_eq!(started.status, 202, "{}", started.text());
    let exec = started.json()["exec_id"].as_str().unwrap().to_owned();
    let real = format!("Bearer {VALUE}");
    let patience = Duration::from_secs(60);
    let used = wait_until(patience, || {
        told(&ground.seen()).iter().any(|it| it.1 == real)
    });
    assert!(used, "it was never used");

    let grants = client.get("/v1/secret-grants").json();
    let grant_id = grants["items"][0]["grant_id"].as_str().unwrap();
    let revoked = client.send("DELETE", &format!("/v1/secret-grants/{grant_id}"), None);
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    // A request may be on its way; whatever begins from here on has nothing.
    let placeholder = wait_until(patience, || {
        let told = told(&ground.seen());
        told.last().is_some_and(|it| it.1 != real)
    });
    assert!(placeholder, "it is still put in");
    let mut later = Vec::new();
    assert!(wait_until(patience, || {
        later.extend(told(&ground.seen()));
        later.len() >= 3
    }));
    assert!(later.iter().all(|it| it.1 != real), "{later:?}");
    // A new grant is for new execs.
    grant(&client);
    ground.seen();
    let mut later = Vec::new();
    assert!(wait_until(patience, || {
        later.extend(told(&ground.seen()));
        later.len() >= 3
    }));
    assert!(later.iter().all(|it| it.1 != real), "{later:?}");

    let cancelled = client.post(&format!("/v1/execs/{exec}/cancel"), &json!({}));
    assert_eq!(cancelled.status / 100, 2, "{}", cancelled.text());
    let ended = wait_until(patience, || {
        client.get(&format!("/v1/execs/{exec}")).json()["status"] == "canceled"
    });
    assert!(ended, "{}", client.get(&format!("/v1/execs/{exec}")).text());
    assert_eq!(server.stop(), 0);
    ground.end();
}
