//! While a program is simulated nothing is on any wire: neither outside nor on loopback.

use std::process::Command;

use serde_json::{Value, json};
use support::{Caller, Helper};

use crate::ground::Simulated;
use crate::town::{Town, UNAWARE};

const ATTEMPTS: &str = r#"
for url in http://shop.test:HTTP/a https://shop.test:TLS/b http://other.test:HTTP/ http://example.com/ \
    https://example.org/ http://198.51.100.7/ http://8.8.8.8/ 'http://[2001:db8::7]/' \
    http://169.254.169.254/latest/meta-data/ http://192.0.2.2/ http://canary-in-a-name.example.net/; do
    curl -s --max-time 20 -o /dev/null -d canary "$url"
done
for server in 8.8.8.8 192.0.2.2; do busybox nslookup canary.example.com $server; done
python3 -c '
import socket
for family, host in ((socket.AF_INET, "198.51.100.7"), (socket.AF_INET, "192.0.2.2"), (socket.AF_INET6, "2001:db8::7")):
    for port in (53, 123, 443, 5353):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            with socket.socket(family, kind) as it:
                it.settimeout(2)
                try:
                    it.connect((host, port))
                    it.send(b"canary")
                except OSError: pass
'
exit 0
"#;

/// The same command in another network, by whoever calls.
fn inside(town: &Town, wire: &Helper, options: &[&str], line: &str) -> Simulated {
    let account = town.ground.trial.caller().account().unwrap();
    let words = [
        &["--json", "run", "--toolchain", "off", "--timeout", "120s"],
        options,
    ]
    .concat();
    let plain = town.ground.command_in(&town.ground.work(), &words);
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/proc/{}/ns/net", wire.pid()))
        .args(["setpriv", "--clear-groups"])
        // Only root may enter, so whoever runs it is chosen after that.
        .arg(format!("--reuid={}", account.uid))
        .arg(format!("--regid={}", account.gid))
        .arg(plain.get_program())
        .args(plain.get_args())
        .args(["--", "/bin/sh", "-c", &town.fill(line)])
        .current_dir(plain.get_current_dir().unwrap());
    for (key, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    Simulated::of(command.output().unwrap())
}

/// But the word to the neighbours with which an interface comes up, which is the kernel's own.
fn packets(wire: &mut Helper) -> Vec<Value> {
    let is_kernels = |packet: &Value| {
        let to = packet[3].as_str().unwrap_or_default();
        ["out", "nobody"].map(|it| json!(it)).contains(&packet[0])
            && [0, 58].map(|it| json!(it)).contains(&packet[1])
            && to.starts_with("ff02::")
    };
    let heard = wire.ask("packets");
    let heard = heard.as_array().unwrap().iter();
    heard.filter(|it| !is_kernels(it)).cloned().collect()
}

fn nothing_leaves(caller: Caller) {
    if caller.account().is_none() {
        return;
    }
    let mut command = Command::new("unshare");
    let code = include_str!("../network/wire.py");
    command.args(["--net", support::python(), "-c", code]);
    let mut wire = Helper::start_with(&mut command);
    let enter = format!("--net=/proc/{}/ns/net", wire.pid());
    let mut town = Town::through(caller, &["nsenter", &enter], "").unwrap();
    for before in [UNAWARE, ""] {
        let simulated = inside(
            &town,
            &wire,
            &["--simulate"],
            &format!("{before}{ATTEMPTS}"),
        );
        assert_eq!(simulated.record["exit_code"], 0, "{:#}", simulated.record);
        let count = simulated.record["effect_count"]["total"].as_u64().unwrap();
        assert!(count > 20, "it tried nothing: {:#}", simulated.record);
        assert_eq!(town.log(), []);
    }
    let heard = packets(&mut wire);
    assert!(heard.is_empty(), "{caller:?}: {heard:#?}");
    // The control: for real the same is heard.
    let line = "curl -fsS http://shop.test:HTTP/a";
    inside(&town, &wire, &[], line).expect("succeeded", 0);
    let tcp = packets(&mut wire).iter().any(|packet| packet[1] == 6);
    assert!(tcp, "nobody listens");
    assert_eq!(town.log().len(), 1);
    town.end();
}

#[test]
fn nothing_leaves_a_simulation_for_root() {
    nothing_leaves(Caller::Root);
}

#[test]
fn nothing_leaves_a_simulation_for_a_user() {
    nothing_leaves(Caller::User);
}
