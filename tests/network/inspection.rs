//! TLS: opened on the way where policy says so, and end to end where it does not.

use serde_json::{Value, json};
use support::{Caller, Outcome};

use crate::ground::{Ground, UNAWARE};

const INSPECT: &str =
    r#"inspect = [{ host = "ok.test:TLS", methods = ["GET"], paths = ["/hello", "/open/**"] }]"#;

/// Who signed what a server shows, and a digest of it.
const SHOWN: &str = r#"
import hashlib, json, socket, ssl, sys
for name in sys.argv[1:]:
    with ssl.create_default_context().wrap_socket(
            socket.create_connection((name, int(":TLS"[1:])), timeout=20), server_hostname=name) as it:
        issuer = dict(pair for part in it.getpeercert()["issuer"] for pair in part)
        print(json.dumps([issuer["commonName"], hashlib.sha256(it.getpeercert(True)).hexdigest()]))
"#;

fn shown(ground: &Ground) -> Vec<Value> {
    let code = ground.fill(SHOWN);
    let words = [support::python(), "-c", &code, "ok.test", "also.test"];
    let outcome = ground.with_net("allowlist", words).json();
    outcome.expect("succeeded", 0, None);
    let lines = outcome.text("stdout").lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Of the certificate that the site has, in hexadecimal.
fn digest(ground: &Ground) -> String {
    let output = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(ground.trial.home().join("site.crt"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let digits = text.split('=').nth(1).unwrap();
    digits.trim().replace(':', "").to_lowercase()
}

#[test]
fn tls_that_nobody_inspects_is_the_servers_own() {
    for caller in [Caller::Root, Caller::User] {
        let Some(mut ground) = Ground::new(caller, "", "") else {
            return;
        };
        let own = json!(["authority of the site", digest(&ground)]);
        assert_eq!(shown(&ground), [own.clone(), own]);
        // Any path and method, since nobody looks.
        let script = format!(
            "{UNAWARE}curl -fsS https://ok.test:TLS/hello && curl -fsS -d x https://ok.test:TLS/else"
        );
        let outcome = ground.run(&script).json();
        outcome.expect("succeeded", 0, None);
        assert_eq!(outcome.text("stdout"), "hello from the site\nposted");
        assert_eq!(ground.kinds(), ["https", "post"]);
        ground.end();
    }
}

/// The last status, and what was said.
fn part<'a>(outcome: &'a Outcome, name: &str) -> &'a str {
    let rest = outcome.text("stdout").split(&format!("<{name} ")).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("nothing of {name}: {}", outcome.record));
    rest.split("\n>").next().unwrap()
}

#[test]
fn an_inspected_host_is_asked_only_what_its_rule_lets_through() {
    for caller in [Caller::Root, Caller::User] {
        let Some(mut ground) = Ground::new(caller, INSPECT, "") else {
            return;
        };
        let certificates = shown(&ground);
        assert_ne!(certificates[0][0], "authority of the site");
        assert_ne!(certificates[0][1], digest(&ground));
        // Another host of the list is not opened.
        assert_eq!(
            certificates[1],
            json!(["authority of the site", digest(&ground)])
        );
        let ask = r#"ask() { name=$1; shift; echo "<$name $(curl -sS --max-time 20 -w '%{http_code}' "$@" 2>&1)
>"; }
"#;
        let script = format!(
            "{ask}
            ask tunnel https://ok.test:TLS/hello
            {UNAWARE}
            ask direct https://ok.test:TLS/hello
            ask path https://ok.test:TLS/else
            ask dots --path-as-is https://ok.test:TLS/open/../else
            ask coded --path-as-is https://ok.test:TLS/open/%2e%2e/else
            ask method -X DELETE https://ok.test:TLS/hello
            ask posted -d x https://ok.test:TLS/hello
            ask override -H 'X-HTTP-Method-Override: DELETE' https://ok.test:TLS/hello
            ask front -H 'Host: also.test:TLS' https://ok.test:TLS/hello
            ask two https://ok.test:TLS/hello https://ok.test:TLS/else
            "
        );
        let outcome = ground.run(&script).json();
        outcome.expect("succeeded", 0, None);
        for name in ["tunnel", "direct", "override"] {
            assert_eq!(part(&outcome, name), "hello from the site\n200", "{name}");
        }
        for name in ["path", "dots", "coded", "method", "posted", "front", "two"] {
            let said = part(&outcome, name);
            assert!(
                said.contains("glovebox refused") && said.ends_with("403"),
                "{name}: {said}"
            );
        }
        for seen in ground.seen() {
            assert_eq!(
                (&seen["kind"], &seen["path"]),
                (&json!("https"), &json!("/hello")),
                "{seen}"
            );
        }
        let attempts = ground.attempts(&outcome);
        let path = attempts
            .iter()
            .find(|it| it["path"] == "/else" && it["code"] != "OK");
        let path = path.unwrap();
        assert_eq!(
            (&path["method"], &path["code"]),
            (&json!("GET"), &json!("NOT_IN_ALLOWLIST")),
            "{path}"
        );
        let hint = path["hint"].as_str().unwrap();
        assert!(hint.contains("`GET /else`"), "{hint}");
        assert_eq!(
            outcome.record["traffic"]["refused"][0]["code"], "NOT_IN_ALLOWLIST",
            "{}",
            outcome.record
        );
        ground.end();
    }
}

/// Somebody whose certificate nobody vouches for is not spoken to in the server's name.
#[test]
fn a_server_without_a_trusted_certificate_is_not_inspected() {
    let ground = Ground::new(Caller::Root, INSPECT, "").unwrap();
    let config = std::fs::read_to_string(&ground.config).unwrap();
    let without: Vec<&str> = config
        .lines()
        .filter(|line| !line.contains("extra_ca"))
        .collect();
    std::fs::write(&ground.config, without.join("\n")).unwrap();
    let script = format!("{UNAWARE}curl -sS -k -w '%{{http_code}}' https://ok.test:TLS/hello");
    let outcome = ground.run(&script).json();
    outcome.expect("succeeded", 0, None);
    let said = outcome.text("stdout");
    assert!(
        said.ends_with("502") && !said.contains("hello from"),
        "{said}"
    );
    ground.end();
}
