//! What does not go out, and what cannot be changed from inside.

use crate::network::ground::served;

pub(crate) fn what_is_neither_tcp_nor_a_name_is_refused_at_once() {
    let code = r#"
import errno, socket, time
def attempt(what, act):
    started = time.monotonic()
    try:
        act()
        answer = "done"
    except OSError as error:
        answer = errno.errorcode[error.errno]
    assert time.monotonic() - started < 20, what
    print(what, answer)
def send(host, port, kind=socket.SOCK_DGRAM, protocol=0, connected=False):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, kind, protocol) as it:
        it.settimeout(60)
        if connected:
            it.connect((host, port))
            it.send(b"x")
        else:
            it.sendto(b"x", (host, port))
for host in ("93.184.216.34", "2606:2800:220:1::1", "224.0.0.251", "10.0.0.1"):
    attempt("udp", lambda: send(host, 443))
    attempt("udp", lambda: send(host, 5353, connected=True))
attempt("ping", lambda: send("93.184.216.34", 0, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attempt("raw", lambda: send("93.184.216.34", 0, socket.SOCK_RAW, 253))
attempt("raw6", lambda: send("2606:2800:220:1::1", 0, socket.SOCK_RAW, 253))
attempt("udplite", lambda: send("93.184.216.34", 53, socket.SOCK_DGRAM, 136))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW, 0x300).close())
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).close())
attempt("alg", lambda: socket.socket(38, 5).close())
attempt("netfilter", lambda: socket.socket(16, socket.SOCK_RAW, 12).close())
attempt("bluetooth", lambda: socket.socket(31, socket.SOCK_RAW).close())
attempt("sctp", lambda: send("93.184.216.34", 80, socket.SOCK_STREAM, 132, True))
"#;
    let (said, heard) = served(code);
    let answers = |what: &str| -> Vec<String> {
        let lines = said.lines().filter_map(|line| line.split_once(' '));
        let own = lines.filter(|(name, _)| *name == what);
        own.map(|(_, answer)| answer.to_owned()).collect()
    };
    for answer in answers("udp") {
        assert!(
            ["EPERM", "ENETUNREACH", "EACCES"].contains(&answer.as_str()),
            "{said}"
        );
    }
    assert_eq!(
        answers("udp").iter().filter(|it| *it == "EPERM").count(),
        8,
        "{said}"
    );
    for (what, expected) in [
        ("ping", "EACCES EPERM"),
        ("raw", "EPERM"),
        ("raw6", "EPERM"),
        ("udplite", "EPERM EPROTONOSUPPORT"),
        ("packet", "EAFNOSUPPORT"),
        ("vsock", "EAFNOSUPPORT"),
        ("alg", "EAFNOSUPPORT"),
        ("netfilter", "EPROTONOSUPPORT"),
        ("bluetooth", "EAFNOSUPPORT"),
        ("sctp", "EPROTONOSUPPORT ESOCKTNOSUPPORT EPERM"),
    ] {
        let [answer] = &answers(what)[..] else {
            panic!("{what}: {said}")
        };
        assert!(expected.split(' ').any(|it| it == answer), "{what}: {said}");
    }
    assert_eq!(heard, [""; 0]);
}

pub(crate) fn nothing_can_be_undone() {
    let code = r#"
import ctypes, errno, fcntl, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, act):
    try:
        act()
        print(what, "done")
    except OSError as error:
        print(what, errno.errorcode[error.errno])
def ask(kind, body, flags=5):
    with socket.socket(16, socket.SOCK_RAW, 0) as line:
        message = struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body
        line.send(message)
        answer = line.recv(4096)
        code = struct.unpack_from("i", answer, 16)[0]
        if code:
            raise OSError(-code, "")
def route(kind, family, flags):
    scope = 254 if family == 2 else 0
    source = socket.inet_pton(family, "127.0.0.1" if family == 2 else "::1")
    body = struct.pack("8BI", family, 0, 0, 0, 255, 4, scope, 2, 0) + struct.pack("HHI", 8, 4, 1)
    ask(kind, body + struct.pack("HH", 4 + len(source), 7) + source, flags)
attempt("route gone", lambda: route(25, 2, 5))
attempt("route6 gone", lambda: route(25, 10, 5))
attempt("route new", lambda: route(24, 2, 0x605))
attempt("lo down", lambda: ask(16, struct.pack("BxHiII", 0, 0, 1, 0, 1)))
attempt("address", lambda: ask(20, struct.pack("4BI", 2, 8, 0, 0, 1) + struct.pack("HH4s", 8, 2, bytes([10, 0, 0, 1]))))
attempt("link new", lambda: ask(16, struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH", 20, 18 | 0x8000) + struct.pack("HH6s2x", 10, 1, b"dummy\0"), 0x605))
with socket.socket(2, 2) as it:
    attempt("flags", lambda: fcntl.ioctl(it, 0x8914, struct.pack("16sH14x", b"lo", 0)))
    attempt("mark", lambda: it.setsockopt(1, 36, 1))
    attempt("transparent", lambda: it.setsockopt(0, 19, 1))
def call(number, *words):
    if libc.syscall(number, *words) < 0:
        raise OSError(ctypes.get_errno(), "")
unshare, setns = (272, 308) if os.uname().machine == "x86_64" else (97, 268)
attempt("own network", lambda: call(unshare, 0x10000000 | 0x40000000))
attempt("network", lambda: call(unshare, 0x40000000))
attempt("into pid 1's", lambda: call(setns, os.open("/proc/self/ns/net", 0), 0x40000000))
attempt("rules", lambda: socket.socket(16, 3, 12))
attempt("sysctl", lambda: open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w").write("0"))
attempt("sysctl", lambda: open("/proc/sys/net/ipv4/conf/lo/route_localnet", "w").write("1"))
# And it still goes the one way.
with socket.create_connection(("93.184.216.34", 80), 10) as it:
    print("still", it.makefile().readline().strip())
"#;
    let (said, heard) = served(code);
    assert!(!said.contains(" done"), "{said}");
    assert_eq!(said.lines().count(), 16, "{said}");
    for line in said.lines().take(8) {
        assert!(line.ends_with(" EPERM"), "{line} of {said}");
    }
    assert!(said.ends_with("still tcp 93.184.216.34:80\n"), "{said}");
    assert_eq!(heard, ["tcp 93.184.216.34:80"]);
}

pub(crate) fn our_ports_cannot_be_taken_over() {
    let code = r#"
import errno, socket
for kind, port in ((1, 1023), (2, 53), (1, 53), (1, 3128)):
    for host, family in (("127.0.0.1", 2), ("0.0.0.0", 2), ("::1", 10), ("::", 10)):
        for option in (None, 2, 15):
            with socket.socket(family, kind) as it:
                if option:
                    it.setsockopt(1, option, 1)
                try:
                    it.bind((host, port))
                    if kind == 1:
                        it.listen()
                    print("bound", kind, host, port, option)
                except OSError as error:
                    assert error.errno in (errno.EACCES, errno.EADDRINUSE, errno.EADDRNOTAVAIL), error
with socket.create_connection(("127.0.0.1", 3128), 10) as it:
    print(it.makefile().readline().strip())
"#;
    let (said, _) = served(code);
    assert_eq!(said, "proxy\n");
}
