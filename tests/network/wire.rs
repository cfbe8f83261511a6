//! What the host sends while a sandbox tries everything: nothing but to the server of the list.

use std::process::Command;

use serde_json::{Value, json};
use support::{Caller, Helper};

use crate::ground::{Ground, UNAWARE};

const ATTEMPTS: &str = r#"
curl -sS --max-time 20 http://ok.test:HTTP/hello
for url in http://other.test:HTTP/hello http://ok.test:TRAP/ http://example.com/ https://example.org/ \
    http://198.51.100.7/ http://8.8.8.8/ 'http://[2001:db8::7]/' http://169.254.169.254/latest/meta-data/ \
    http://192.0.2.2/ http://canary-in-a-name.example.net/ http://host.internal/ http://inside.test:HTTP/; do
    curl -s --max-time 20 -o /dev/null "$url"
done
for server in 8.8.8.8 192.0.2.2; do
    busybox nslookup canary.example.com $server
done
/usr/bin/python3 -c '
import socket
for family, host in ((socket.AF_INET, "198.51.100.7"), (socket.AF_INET, "192.0.2.2"), (socket.AF_INET6, "2001:db8::7")):
    for port in (53, 123, 443, 5353):
        with socket.socket(family, socket.SOCK_DGRAM) as it:
            try:
                it.sendto(b"canary", (host, port))
            except OSError:
                pass
'
exit 0
"#;

/// Glovebox and the site in a network of their own, where everything is heard.
fn nothing_leaves(caller: Caller) {
    let Some(account) = caller.account() else {
        return;
    };
    let mut command = Command::new("unshare");
    command.args(["--net", support::python(), "-c", include_str!("wire.py")]);
    let mut wire = Helper::start_with(&mut command);
    let inside = format!("--net=/proc/{}/ns/net", wire.pid());
    let mut ground = Ground::through(caller, &["nsenter", &inside], "", "").unwrap();
    let run = ground.run(&format!("{UNAWARE}{ATTEMPTS}")).with(["--json"]);
    // Only root may enter, so whoever runs it is chosen after that.
    let (plain, ids) = (run.command(), (account.uid, account.gid));
    let mut command = Command::new("nsenter");
    command
        .args([&inside, "setpriv", "--clear-groups"])
        .args([format!("--reuid={}", ids.0), format!("--regid={}", ids.1)])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap());
    for (key, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let output = command.output().unwrap();
    let record: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    });
    assert_eq!(record["status"], "succeeded", "{record}");
    let said = record["stdout"].as_str().unwrap();
    assert!(said.starts_with("hello from the site\n"), "{record}");
    assert_eq!(ground.kinds(), ["http"]);

    let packets = wire.ask("packets");
    let packets = packets.as_array().unwrap();
    let is_ours = |packet: &&Value| {
        let [device, protocol, from, to, one, other] = [0, 1, 2, 3, 4, 5].map(|at| &packet[at]);
        device == "lo"
            && *protocol == 6
            && from == "127.0.0.1"
            && to == "127.0.0.1"
            && (*one == ground.http || *other == ground.http)
    };
    // The interface comes up with a word to its neighbours; nobody but the kernel says that.
    let is_kernels = |packet: &&Value| {
        let (protocol, to) = (&packet[1], packet[3].as_str().unwrap_or_default());
        ["out", "nobody"].map(|it| json!(it)).contains(&packet[0])
            && ([0, 58].map(|it| json!(it)).contains(protocol) && to.starts_with("ff02::"))
    };
    assert!(packets.iter().any(|it| is_ours(&it)), "{packets:#?}");
    let others: Vec<&Value> = packets
        .iter()
        .filter(|it| !is_ours(it) && !is_kernels(it))
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    ground.end();
}

#[test]
fn nothing_leaves_but_to_the_list_for_root() {
    nothing_leaves(Caller::Root);
}

#[test]
fn nothing_leaves_but_to_the_list_for_a_user() {
    nothing_leaves(Caller::User);
}

/// A wire that hears nothing proves nothing.
#[test]
fn what_leaves_is_heard() {
    let mut command = Command::new("unshare");
    command.args(["--net", support::python(), "-c", include_str!("wire.py")]);
    let mut wire = Helper::start_with(&mut command);
    let send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53))";
    let status = Command::new("nsenter")
        .arg(format!("--net=/proc/{}/ns/net", wire.pid()))
        .args([support::python(), "-c", send])
        .status()
        .unwrap();
    assert!(status.success());
    let packets = wire.ask("packets");
    let heard = packets.as_array().unwrap().iter();
    assert!(
        heard.filter(|it| it[3] == "8.8.8.8" && it[5] == 53).count() > 0,
        "{packets}"
    );
}
