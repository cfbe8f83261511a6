//! Whom programs address.

use glovebox_backend::{Observe, Sandbox};
use glovebox_model::{Grade, Guarantee, NetworkMode};

use crate::house::{Yard, order};
use crate::observe::ground::{open, python, roomy, run};

pub(crate) fn whoever_is_addressed_is_told() {
    let told = python(
        r#"
import ctypes, socket, struct
def attempt(kind, act):
    with socket.socket(socket.AF_INET, kind) as it:
        it.setblocking(False)
        try: act(it)
        except OSError: pass
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
attempt(TCP, lambda it: it.connect(("93.184.216.34", 443)))
attempt(UDP, lambda it: it.connect(("198.51.100.1", 123)))
attempt(UDP, lambda it: it.connect(("198.51.100.1", 0)))
attempt(UDP, lambda it: it.sendto(b"x", ("198.51.100.2", 53)))
attempt(UDP, lambda it: it.sendmsg([b"x"], [], 0, ("198.51.100.3", 5353)))
def many(it):
    names = [socket.inet_aton(f"198.51.100.{n}") for n in (4, 5, 5)]
    names = [ctypes.create_string_buffer(struct.pack("<H", 2) + b"\0\x09" + n + bytes(8)) for n in names]
    headers = b"".join(struct.pack("<QIxxxxQQQQQI4x", ctypes.addressof(n), 16, 0, 0, 0, 0, 0, 0) for n in names)
    ctypes.CDLL(None).sendmmsg(it.fileno(), headers, 3, 0)
attempt(UDP, many)
with socket.socket(socket.AF_INET6, TCP) as it:
    it.setblocking(False)
    for host in ("2001:db8::1", "::ffff:192.0.2.1"):
        try: it.connect((host, 80))
        except OSError: pass
"#,
    );
    let expected = [
        "tcp 93.184.216.34:443",
        "udp 198.51.100.1:123",
        "udp 198.51.100.2:53",
        "udp 198.51.100.3:5353",
        "udp 198.51.100.4:9",
        "udp 198.51.100.5:9",
        "tcp [2001:db8::1]:80",
        "tcp 192.0.2.1:80",
    ];
    assert_eq!(told.connects(), expected);
}

pub(crate) fn who_is_inside_is_not() {
    let told = python(
        r#"
import socket
server = socket.create_server(("127.0.0.1", 0))
for host in ("127.0.0.1", "localhost", "127.9.9.9", "0.0.0.0"):
    try: socket.create_connection((host, server.getsockname()[1])).close()
    except OSError: pass
with socket.socket(socket.AF_UNIX) as it:
    try: it.connect("/run/nothing")
    except OSError: pass
one, other = socket.socketpair()
one.sendmsg([b"x"])
one.send(b"x")
"#,
    );
    assert_eq!(told.connects(), [""; 0]);
}

pub(crate) fn there_is_a_way_out_whatever_the_profile_says() {
    for network in [NetworkMode::None, NetworkMode::Allowlist] {
        let yard = Yard::new();
        let mut profile = roomy();
        profile.network = network;
        let mut prepared = open(&yard, &profile, Observe::default());
        let way_out = prepared.way_out().unwrap().expect("a way out");
        assert!(!way_out.transparent.is_empty());
        // It is said that there is one.
        let grade = prepared.isolation().0.get(&Guarantee::NoNetwork);
        assert_eq!(grade, Some(&Grade::Unavailable));
        drop(way_out);
        let line = "cat /etc/resolv.conf; bash -c 'echo > /dev/tcp/192.0.2.7/80' 2>/dev/null";
        let (_, told) = run(prepared, &profile, &order(&["sh", "-c", line], &[]));
        assert_eq!(told.stdout, "nameserver 198.18.0.1\n");
        assert_eq!(told.connects(), ["tcp 192.0.2.7:80"]);
    }
}
