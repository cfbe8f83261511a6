//! What a program sends, and where it arrives.

use glovebox_backend::{Cancel, Ending, Kept, Run, Sandbox, Spec};
use rustix::net::sockopt;

use crate::house::{Both, Rooms, Yard, order, profile, soon, unbound};
use crate::network::ground::{Server, has_v6, networked, open, see, served, spec};

const DIAL: &str = r#"
import socket, sys
def dial(host, port):
    try:
        with socket.create_connection((host, port), 10) as it:
            peer = it.getpeername()[:2]
            print(it.makefile().readline().strip(), "as", peer[0], peer[1])
    except OSError as error:
        print(host, port, error.errno)
"#;

pub(crate) fn whatever_is_dialled_arrives_with_its_address() {
    let dialled = [
        ("93.184.216.34", 80),
        ("10.0.0.1", 22),
        ("169.254.169.254", 80),
        ("198.18.0.77", 443),
        ("8.8.8.8", 53),
        ("255.255.255.254", 65535),
        ("2606:2800:220:1::1", 443),
        ("fd67:6c6f:7665::5", 8080),
        ("2001:4860:4860::8888", 53),
    ];
    let dialled = dialled.into_iter();
    let dialled: Vec<_> = dialled
        .filter(|(host, _)| has_v6() || !host.contains(':'))
        .collect();
    let calls = dialled
        .iter()
        .map(|(host, port)| format!("dial({host:?}, {port})\n"));
    let (said, heard) = served(&(DIAL.to_owned() + &calls.collect::<String>()));
    let arrived = |(host, port): &(&str, i32)| match host.contains(':') {
        true => format!("tcp [{host}]:{port}"),
        false => format!("tcp {host}:{port}"),
    };
    let expected: Vec<String> = dialled.iter().map(arrived).collect();
    assert_eq!(heard, expected);
    // And the program believes that it speaks to whom it dialled.
    let lines = dialled.iter().zip(&expected);
    let lines = lines.map(|((host, port), line)| format!("{line} as {host} {port}\n"));
    assert_eq!(said, lines.collect::<String>());
}

pub(crate) fn names_are_asked_of_us_whoever_is_asked() {
    let code = r#"
import socket
for host in ("8.8.8.8", "198.18.0.1", "10.1.2.3", "127.0.0.1", "127.0.0.53", "2001:4860:4860::8888", "::1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for connected in (True, False):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as it:
                it.settimeout(10)
                word = f"{host} {connected}".encode()
                if connected:
                    it.connect((host, 53))
                    it.send(word)
                else:
                    it.sendto(word, (host, 53))
                answer, source = it.recvfrom(100)
                assert answer == word and source[:2] == (host, 53), (answer, source)
        except OSError as error:
            print(host, connected, error)
"#;
    let (said, heard) = served(code);
    let v6 = if has_v6() { "" } else { said.as_str() };
    assert_eq!(said, v6);
    assert_eq!(heard.len(), if has_v6() { 14 } else { 10 }, "{heard:?}");
}

pub(crate) fn a_program_that_knows_of_nothing_finds_its_host() {
    let code = r#"
import socket
print(open("/etc/resolv.conf").read().strip())
print(socket.gethostbyname("files.example.com"))
print(sorted({it[4][0] for it in socket.getaddrinfo("other.example.com", 443)}))
print(socket.gethostbyname("localhost"))
with socket.create_connection(("files.example.com", 443), 10) as it:
    print(it.makefile().readline().strip())
"#;
    let (said, heard) = served(code);
    let expected =
        "nameserver 198.18.0.1\n198.18.0.7\n['198.18.0.7']\n127.0.0.1\ntcp 198.18.0.7:443\n";
    assert_eq!(said, expected);
    assert!(heard.iter().any(|it| it.starts_with("dns")), "{heard:?}");
    // Nothing was asked about a name that is the sandbox's own.
    assert!(
        !heard.iter().any(|it| it.contains("localhost")),
        "{heard:?}"
    );
}

pub(crate) fn loopback_is_the_sandboxs_own() {
    let code = r#"
import errno, socket
for host, family in (("127.0.0.1", socket.AF_INET), ("127.4.5.6", socket.AF_INET), ("::1", socket.AF_INET6)):
    try:
        with socket.socket(family) as server:
            server.bind((host, 0))
            server.listen(1)
            with socket.create_connection(server.getsockname()[:2], 10) as client:
                server.accept()[0].send(b"here\n")
                print(client.makefile().readline().strip())
        with socket.socket(family, socket.SOCK_DGRAM) as server:
            server.bind((host, 0))
            with socket.socket(family, socket.SOCK_DGRAM) as client:
                client.sendto(b"datagram", server.getsockname())
                server.settimeout(10)
                print(server.recv(10).decode())
        with socket.socket(family) as client:
            print(errno.errorcode[client.connect_ex((host, 9))])
    except OSError as error:
        print(host, error)
"#;
    let (said, heard) = served(code);
    let each = "here\ndatagram\nECONNREFUSED\n";
    assert_eq!(said, each.repeat(if has_v6() { 3 } else { 2 }));
    assert_eq!(heard, [""; 0]);
}

pub(crate) fn a_proxy_is_there_for_those_who_look() {
    let code = format!("{DIAL}\ndial('127.0.0.1', 3128)\ndial('localhost', 3128)");
    let (said, heard) = served(&code);
    assert_eq!(said.matches("proxy as").count(), 2, "{said}");
    assert_eq!(heard, ["proxy", "proxy"]);
    // Whoever dials the other socket itself has nowhere to go, and that shows.
    let (_, heard) = served(&format!("{DIAL}\ndial('127.0.0.1', 1023)"));
    assert_eq!(heard.len(), 1);
    assert!(heard[0].ends_with("127.0.0.1:1023"), "{heard:?}");
}

pub(crate) fn unserved_it_leads_nowhere() {
    let yard = Yard::new();
    let profile = networked();
    let mut prepared = open(&yard, &profile);
    let way_out = prepared.way_out().unwrap().unwrap();
    for socket in way_out.transparent.iter().chain(&way_out.proxy) {
        assert!(sockopt::socket_acceptconn(socket).unwrap());
        let nonblocking = rustix::fs::OFlags::NONBLOCK;
        assert!(
            rustix::fs::fcntl_getfl(socket)
                .unwrap()
                .contains(nonblocking)
        );
        let closed = rustix::io::FdFlags::CLOEXEC;
        assert!(rustix::io::fcntl_getfd(socket).unwrap().contains(closed));
    }
    let families = if has_v6() { 2 } else { 1 };
    assert_eq!(way_out.dns.len(), families);
    // Taken once, and gone with whoever took them.
    assert!(prepared.way_out().unwrap().is_none());
    drop(way_out);
    let code = format!("{DIAL}\ndial('93.184.216.34', 80)\ndial('127.0.0.1', 3128)");
    let told = see(prepared, &profile, &code, &[]).unwrap();
    assert_eq!(told.stdout, "93.184.216.34 80 111\n127.0.0.1 3128 111\n");
}

pub(crate) fn without_a_network_there_is_no_way_out() {
    let yard = Yard::new();
    let profile = profile();
    let mut prepared = open(&yard, &profile);
    assert!(prepared.way_out().unwrap().is_none());
    let code = format!(
        "{DIAL}\ndial('93.184.216.34', 80)\ndial('2606:2800:220:1::1', 80)\nprint(len(open('/etc/resolv.conf').read()))"
    );
    let told = see(prepared, &profile, &code, &[]).unwrap();
    let said: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(said[0], "93.184.216.34 80 101", "{told:?}");
    assert!(!said[1].contains("tcp"), "{told:?}");
    assert_eq!(said[2], "0");
}

pub(crate) fn a_kept_sandbox_has_one_way_out_for_all_its_runs() {
    let yard = Yard::new();
    let profile = networked();
    let spec = Spec {
        secrets: spec(&profile).secrets,
        ..unbound(&profile)
    };
    let mut kept = yard.native().keep(&spec, &yard.house.state()).unwrap();
    let server = Server::start(kept.way_out().unwrap().unwrap());
    kept.settle(soon()).unwrap();
    assert!(kept.is_alive());
    let rooms = Rooms::new(&yard.house, "a");
    for port in [80, 81] {
        let (cancel, _canceler) = Cancel::new().unwrap();
        let mut both = Both::default();
        let code = format!("{DIAL}\ndial('93.184.216.34', {port})");
        let run = Run {
            order: &order(&["python3", "-c", &code], &[]),
            profile: &profile,
            watched: &[],
            stdin: None,
            terminal: None,
            secrets: &[],
            sink: &mut both,
            cancel: &cancel,
            control: None,
        };
        let ended = kept.run(rooms.room(), run).unwrap();
        assert_eq!(ended.ending, Ending::Exited { code: 0 });
    }
    drop(Box::new(kept).close());
    let expected = ["tcp 93.184.216.34:80", "tcp 93.184.216.34:81"];
    assert_eq!(server.stop(), expected);
}
