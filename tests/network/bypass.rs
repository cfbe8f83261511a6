//! Ways around the list.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Outcome, Run};

use crate::ground::Ground;

/// The attacks, after what they share.
fn attack<'a>(ground: &'a Ground, attacks: &str) -> Run<'a> {
    ground.python(&format!(
        "{}\nhttp, tls, trap = int(':HTTP'[1:]), int(':TLS'[1:]), int(':TRAP'[1:])\n{attacks}",
        include_str!("bypass.py")
    ))
}

/// What came of one attack.
#[track_caller]
fn result(outcome: &Outcome, name: &str) -> Value {
    let mut lines = outcome
        .text("stdout")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = lines.find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("nothing of {name}: {}", outcome.record))["what"].clone()
}

#[track_caller]
fn text(outcome: &Outcome, name: &str) -> String {
    result(outcome, name).as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_explained(outcome: &Outcome, name: &str, code: &str) {
    let said = text(outcome, name);
    assert!(said.starts_with("HTTP/1.1 403"), "{name}: {said}");
    for part in ["glovebox refused `", code, "hint: "] {
        assert!(said.contains(part), "{name}: {said}");
    }
}

#[test]
fn an_address_leads_nowhere() {
    for caller in [Caller::Root, Caller::User] {
        let Some(mut ground) = Ground::new(caller, "", "") else {
            return;
        };
        let attacks = "
for host in ['198.51.100.7', '169.254.169.254', '10.0.0.1', '2001:db8::7', 'fe80::1', '::ffff:198.51.100.7',
             '198.18.77.77', 'fd67:6c6f:7665::7777']:
    attempt(host, lambda: get(host, http, name='ok.test'))
# These are the sandbox's own.
for host in ['127.0.0.1', '127.9.9.9', '2130706433', '0x7f.1', '0.0.0.0', '::1', '::ffff:127.0.0.1']:
    attempt(host, lambda: get(host, trap, name='ok.test'))
";
        let outcome = attack(&ground, attacks).json();
        outcome.expect("succeeded", 0, None);
        assert_eq!(ground.kinds(), Vec::<String>::new(), "{}", outcome.record);
        for host in [
            "198.51.100.7",
            "169.254.169.254",
            "10.0.0.1",
            "2001:db8::7",
            "198.18.77.77",
            "fd67:6c6f:7665::7777",
        ] {
            assert_explained(&outcome, host, "INVALID_DESTINATION");
            ground.assert_refused(&outcome, host, ground.http, "INVALID_DESTINATION");
        }
        for host in ["127.0.0.1", "2130706433", "::1", "::ffff:127.0.0.1"] {
            let said = text(&outcome, host);
            assert!(!said.contains("the trap"), "{host}: {said}");
        }
        ground.end();
    }
}

#[test]
fn another_resolver_gives_our_answers() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let attacks = "
for server in ['8.8.8.8', '198.18.0.1']:
    attempt('udp ' + server, lambda: udp(server, 'ok.test'))
    attempt('tcp ' + server, lambda: tcp(server, 'ok.test'))
# Names that carry something out, if anybody were asked about them.
attempt('internal', lambda: udp('8.8.8.8', 'canary.corp.internal'))
attempt('single', lambda: tcp('8.8.8.8', 'localhost'))
attempt('canary', lambda: udp('1.1.1.1', 'canary-in-a-name.example.com'))
def quic():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.settimeout(10)
        it.connect(('198.51.100.7', 443))
        it.send(b'x')
        return repr(it.recv(10))
attempt('quic', quic)
";
    let outcome = attack(&ground, attacks).json();
    outcome.expect("succeeded", 0, None);
    let own = result(&outcome, "udp 198.18.0.1");
    let address = own[1].as_str().unwrap_or_default();
    assert!(
        own[0] == 0 && address.starts_with("198.18."),
        "{}",
        outcome.record
    );
    for name in ["tcp 198.18.0.1", "udp 8.8.8.8", "tcp 8.8.8.8"] {
        assert_eq!(result(&outcome, name), own, "{name}");
    }
    for name in ["internal", "single"] {
        assert_eq!(result(&outcome, name), json!([3, null]), "{name}");
    }
    ground.assert_refused(&outcome, "canary.corp.internal", 53, "DNS_DENIED");
    let canary = result(&outcome, "canary");
    assert!(
        canary[1]
            .as_str()
            .is_some_and(|it| it.starts_with("198.18.")),
        "{canary}"
    );
    let quic = text(&outcome, "quic");
    assert!(quic.starts_with("OSError E"), "{quic}");
    assert_eq!(ground.kinds(), Vec::<String>::new());
    ground.end();
}

/// The name that was dialled is the one that must be asked for, whichever way it is said.
#[test]
fn another_name_than_the_dialled_one_is_refused() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let attacks = "
def handshake(name):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(socket.create_connection(('ok.test', tls), timeout=20), server_hostname=name) as it:
        return it.version()
for name in ['other.test', 'also.test']:
    attempt('sni ' + name, lambda: handshake(name))
attempt('sni', lambda: handshake('ok.test'))
def tunnelled():
    context = ssl.create_default_context()
    connection = socket.create_connection(('127.0.0.1', 3128), timeout=20)
    connection.sendall(f'CONNECT ok.test:{tls} HTTP/1.1\\r\\nHost: ok.test:{tls}\\r\\n\\r\\n'.encode())
    head = connection.recv(4096).decode()
    if ' 200 ' not in head:
        return head
    with context.wrap_socket(connection, server_hostname='other.test') as it:
        return it.version()
attempt('sni in a tunnel', tunnelled)
attempt('front', lambda: get('ok.test', http, name='other.test'))
attempt('front by port', lambda: said(socket.create_connection(('ok.test', http), timeout=20),
    f'GET /hello HTTP/1.1\\r\\nHost: ok.test:{trap}\\r\\nConnection: close\\r\\n\\r\\n'.encode()))
attempt('absolute', lambda: said(socket.create_connection(('ok.test', http), timeout=20),
    f'GET http://other.test:{http}/hello HTTP/1.1\\r\\nHost: ok.test:{http}\\r\\nConnection: close\\r\\n\\r\\n'.encode()))
attempt('two hosts', lambda: get('ok.test', http, more=f'Host: other.test:{http}\\r\\n'))
def second():
    with socket.create_connection(('ok.test', http), timeout=20) as it:
        file = it.makefile('rb')
        def ask(path, name, more=''):
            it.sendall(f'GET {path} HTTP/1.1\\r\\nHost: {name}:{http}\\r\\n{more}\\r\\n'.encode())
            head = [file.readline()]
            while head[-1].strip():
                head.append(file.readline())
            length = [int(line.split(b':')[1]) for line in head if line.lower().startswith(b'content-length')]
            return head[0].decode().split()[1], file.read(length[0]).decode()
        return [ask('/hello', 'ok.test'), ask('/hello', 'other.test')]
attempt('second', second)
";
    let outcome = attack(&ground, attacks).json();
    outcome.expect("succeeded", 0, None);
    // One that goes where it says, so that the others could have.
    assert!(
        text(&outcome, "sni").starts_with("TLS"),
        "{}",
        outcome.record
    );
    for name in ["sni other.test", "sni also.test", "sni in a tunnel"] {
        let said = text(&outcome, name);
        assert!(
            said.starts_with("SSLError") && said.contains("ALERT_ACCESS_DENIED"),
            "{name}: {said}"
        );
    }
    ground.assert_refused(&outcome, "ok.test", ground.https, "SNI_MISMATCH");
    for name in ["front", "front by port"] {
        assert_explained(&outcome, name, "SNI_MISMATCH");
    }
    for name in ["absolute", "two hosts"] {
        let said = text(&outcome, name);
        assert!(said.starts_with("HTTP/1.1 4"), "{name}: {said}");
    }
    let second = result(&outcome, "second");
    assert_eq!(second[0], json!(["200", "hello from the site\n"]));
    assert_eq!(second[1][0], "403", "{second}");
    let seen = ground.seen();
    let hosts: Vec<&Value> = seen.iter().map(|it| &it["host"]).collect();
    assert_eq!(
        hosts,
        [&json!(format!("ok.test:{}", ground.http))],
        "{seen:#?}"
    );
    ground.end();
}

/// It is on the list, but leads to the host itself, which the operator has not agreed to.
#[test]
fn a_listed_name_that_leads_to_loopback_is_refused() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let attacks = "
attempt('direct', lambda: get('inside.test', http))
attempt('connect', lambda: said(socket.create_connection(('127.0.0.1', 3128), timeout=20),
    f'CONNECT inside.test:{http} HTTP/1.1\\r\\nHost: inside.test:{http}\\r\\n\\r\\n'.encode()))
for host in ['127.0.0.1', '[::1]', '2130706433', '[::ffff:127.0.0.1]']:
    attempt('connect ' + host, lambda: said(socket.create_connection(('127.0.0.1', 3128), timeout=20),
        f'CONNECT {host}:{trap} HTTP/1.1\\r\\nHost: {host}:{trap}\\r\\n\\r\\n'.encode()))
def socks():
    with socket.create_connection(('127.0.0.1', 3128), timeout=20) as it:
        it.sendall(bytes([5, 1, 0]))
        it.recv(2)
        it.sendall(bytes([5, 1, 0, 1, 127, 0, 0, 1]) + struct.pack('>H', trap))
        return it.recv(10)[1]
attempt('socks', socks)
";
    let outcome = attack(&ground, attacks).json();
    outcome.expect("succeeded", 0, None);
    for name in ["direct", "connect"] {
        assert_explained(&outcome, name, "INVALID_DESTINATION");
    }
    ground.assert_refused(&outcome, "inside.test", ground.http, "INVALID_DESTINATION");
    for host in ["127.0.0.1", "[::1]", "2130706433", "[::ffff:127.0.0.1]"] {
        let said = text(&outcome, &format!("connect {host}"));
        assert!(said.starts_with("HTTP/1.1 403"), "{host}: {said}");
    }
    assert_ne!(result(&outcome, "socks"), 0);
    assert_eq!(ground.kinds(), Vec::<String>::new());
    ground.end();
}

#[test]
fn other_kinds_of_sockets_reach_nothing() {
    for caller in [Caller::Root, Caller::User] {
        let Some(mut ground) = Ground::new(caller, "", "") else {
            return;
        };
        let name = ground.trial.tag().to_owned();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _listens = UnixListener::bind_addr(&address).unwrap();
        let path = ground.trial.home().join("socket");
        let _listens_too = UnixListener::bind(&path).unwrap();
        let attacks = "
import ctypes, ctypes.util
def made(*kind):
    with socket.socket(*kind) as it:
        return 'made'
def joined(name):
    with socket.socket(socket.AF_UNIX) as it:
        it.connect(name)
        return 'connected'
attempt('abstract', lambda: joined('\\0NAME'))
attempt('path', lambda: joined('PATH'))
attempt('raw', lambda: made(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt('raw6', lambda: made(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6))
attempt('packet', lambda: made(socket.AF_PACKET, socket.SOCK_RAW, 0))
def vsock():
    with socket.socket(40, socket.SOCK_STREAM) as it:
        it.settimeout(5)
        it.connect((2, 1024))
        return 'connected'
attempt('vsock', vsock)
def changed(family, kind, flags, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family) as it:
        it.settimeout(5)
        it.bind((0, 0))
        it.send(struct.pack('=IHHII', 16 + len(body), kind, 5 | flags, 1, 0) + body)
        answer = it.recv(4096)
        code = -struct.unpack('=i', answer[16:20])[0]
        return 'changed' if code == 0 else 'OSError ' + errno.errorcode.get(code, str(code))
# Loopback down; another route; our rules gone.
attempt('link', lambda: changed(0, 16, 0, struct.pack('=BxHiII', 0, 0, 1, 0, 1)))
attempt('route', lambda: changed(0, 24, 0x400, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0)
    + struct.pack('=HHI', 8, 4, 1)))
attempt('rules', lambda: changed(12, (10 << 8) | 2, 0, struct.pack('=BBH', 1, 0, 0)))
attempt('descriptors', lambda: sorted(it for it in os.listdir('/proc/self/fd')
    if os.path.exists('/proc/self/fd/' + it)))
attempt('bound', lambda: socket.create_server(('0.0.0.0', 3128)) and 'bound')
"
        .replace("NAME", &name)
        .replace("PATH", &path.to_string_lossy());
        let outcome = attack(&ground, &attacks).json();
        outcome.expect("succeeded", 0, None);
        for name in [
            "abstract", "path", "raw", "raw6", "packet", "vsock", "link", "route", "rules", "bound",
        ] {
            let said = text(&outcome, name);
            assert!(said.starts_with("OSError "), "{name}: {said}");
        }
        // Its standard streams; the listing's own is closed when it is looked at.
        assert_eq!(result(&outcome, "descriptors"), json!(["0", "1", "2"]));
        assert_eq!(ground.kinds(), Vec::<String>::new());
        ground.end();
    }
}

#[test]
fn a_connection_that_outlives_its_time_is_cut() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let attacks = "
began = time.monotonic()
def drip():
    connection = socket.create_connection(('ok.test', http), timeout=20)
    connection.sendall(f'GET /drip HTTP/1.1\\r\\nHost: ok.test:{http}\\r\\n\\r\\n'.encode())
    count = 0
    try:
        while piece := connection.recv(4096):
            count += len(piece)
    except ConnectionResetError:
        pass
    return [count, time.monotonic() - began]
address = socket.gethostbyname('ok.test')
attempt('drip', drip)
attempt('after', lambda: get(address, http, name='ok.test'))
attempt('name after', lambda: get('ok.test', http))
";
    let run = attack(&ground, attacks).with(["--network-time", "5s"]);
    let outcome = run.json();
    outcome.expect("succeeded", 0, None);
    let drip = result(&outcome, "drip");
    assert!(drip[0].as_u64().is_some_and(|it| it > 100), "{drip}");
    let took = drip[1].as_f64().unwrap();
    // Nobody else would have ended it before the exec's own time was over.
    assert!((0.5..100.0).contains(&took), "{drip}");
    assert_explained(&outcome, "after", "POLICY_EXPIRED");
    ground.assert_refused(&outcome, "ok.test", ground.http, "POLICY_EXPIRED");
    ground.assert_refused(&outcome, "ok.test", 53, "POLICY_EXPIRED");
    assert!(text(&outcome, "name after").starts_with("OSError"));
    let mut all = Vec::new();
    // The server notices with its next byte.
    let noticed = support::wait_until(Duration::from_secs(60), || {
        all.extend(ground.kinds());
        all == ["http", "cut"]
    });
    assert!(noticed, "{all:?}");
    ground.end();
}

#[test]
fn budgets_cut() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let attacks = "
attempt('big', lambda: len(get('ok.test', http, '/big')))
attempt('more', lambda: get('ok.test', http))
";
    let run = attack(&ground, attacks).with(["--egress-bytes", "1M"]);
    let outcome = run.json();
    outcome.expect("succeeded", 0, None);
    let big = result(&outcome, "big");
    assert!(big.as_u64().is_none_or(|it| it <= 1 << 20), "{big}");
    let said = text(&outcome, "more");
    assert!(
        said.contains("egress_bytes") && !said.contains("hello"),
        "{said}"
    );
    let traffic = &outcome.record["traffic"];
    let bytes = traffic["sent"].as_u64().unwrap() + traffic["received"].as_u64().unwrap();
    // What was on its way when the limit was met is counted, and was not passed on.
    assert!(bytes < 2 << 20, "{traffic}");
    assert_eq!(ground.kinds(), ["http"]);

    let attacks = "
for number in range(3):
    attempt(str(number), lambda: get('ok.test', http))
";
    let run = attack(&ground, attacks).with(["--egress-connections", "2"]);
    let outcome = run.json();
    outcome.expect("succeeded", 0, None);
    for name in ["0", "1"] {
        assert!(text(&outcome, name).contains("hello from"), "{name}");
    }
    assert_explained(&outcome, "2", "egress_connections");
    ground.assert_refused(&outcome, "ok.test", ground.http, "OTHER");
    assert_eq!(ground.kinds(), ["http", "http"]);
    ground.end();
}
