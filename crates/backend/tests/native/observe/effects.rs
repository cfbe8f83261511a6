//! The socket for what programs tell of themselves, and that nobody has more of the observation.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use glovebox_backend::{Observe, Sandbox};

use crate::house::{Yard, order};
use crate::observe::ground::{open, roomy, run, shell, some_command, spec};

pub(crate) fn programs_tell_of_themselves() {
    let yard = Yard::new();
    let profile = roomy();
    let observe = Observe {
        effect_command: Some(some_command()),
        ..Observe::default()
    };
    let mut prepared = open(&yard, &profile, observe);
    let effects = prepared.observation().unwrap().unwrap().effects;
    let server = std::thread::spawn(move || {
        let listener = UnixListener::from(effects);
        listener.set_nonblocking(false).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(b"heard\n").unwrap();
        heard
    });
    let code = r#"
import errno, os, socket, subprocess
with socket.socket(socket.AF_UNIX) as it:
    it.connect("/run/glovebox/effects.sock")
    it.sendall(b"hello")
    print(it.makefile().readline().strip())
print(subprocess.run(["/run/glovebox/glovebox-effect", "echo", "shown"], capture_output=True).stdout)
def refused(act):
    try: act()
    except OSError as error: print(errno.errorcode[error.errno])
refused(lambda: os.unlink("/run/glovebox/effects.sock"))
refused(lambda: os.rename("/run/glovebox/effects.sock", "/run/glovebox/x"))
refused(lambda: open("/run/glovebox/x", "w"))
refused(lambda: open("/run/glovebox/glovebox-effect", "r+b"))
with socket.socket(socket.AF_UNIX) as it:
    refused(lambda: it.bind("/run/glovebox/effects.sock"))
"#;
    let order = order(&["python3", "-c", code], &[("PATH", "/usr/bin")]);
    let (ended, told) = run(prepared, &profile, &order);
    ended.unwrap();
    let mut said = told.stdout.lines();
    assert_eq!(said.next(), Some("heard"), "{told:?}");
    assert_eq!(said.next(), Some(r"b'shown\n'"));
    for refusal in said.by_ref().take(5) {
        assert!(
            ["EROFS", "EACCES", "EADDRINUSE"].contains(&refusal),
            "{told:?}"
        );
    }
    assert_eq!(told.stdout.lines().count(), 7);
    assert_eq!(&server.join().unwrap(), b"hello");
}

pub(crate) fn nobody_inside_has_what_observes_it() {
    let told = shell(
        "for fd in /proc/self/fd/* /proc/*/fd/*; do readlink $fd; done; ls /proc; \
         cat /proc/1/status; cat /proc/1/environ; cat /proc/net/unix | grep -c effects",
    );
    for word in ["seccomp", "anon_inode", "glovebox-init"] {
        assert!(!told.stdout.contains(word), "{word}: {}", told.stdout);
    }
    // Neither can they have one of their own: there is one in a chain.
    let code = r#"
import ctypes, errno, struct
program = struct.pack("<HBBI", 6, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None, use_errno=True)
header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(buffer)))
NUMBER = {"x86_64": 317, "aarch64": 277}[__import__("os").uname().machine]
print(libc.syscall(NUMBER, 1, 8, header), errno.errorcode[ctypes.get_errno()])
print(libc.syscall(NUMBER, 1, 0, header))
"#;
    let told = crate::observe::ground::python(code);
    assert_eq!(told.stdout, "-1 EBUSY\n0\n");
}

pub(crate) fn it_is_handed_out_once() {
    let yard = Yard::new();
    let profile = roomy();
    let mut prepared = open(&yard, &profile, Observe::default());
    let first = prepared.observation().unwrap().unwrap();
    let closed = rustix::io::FdFlags::CLOEXEC;
    assert!(
        rustix::io::fcntl_getfd(&first.effects)
            .unwrap()
            .contains(closed)
    );
    assert!(prepared.observation().unwrap().is_none());
    drop(first);
    // Unserved it leads nowhere.
    let code = "import socket\nprint(socket.socket(socket.AF_UNIX).connect_ex('/run/glovebox/effects.sock'))";
    let (ended, told) = run(prepared, &profile, &order(&["python3", "-c", code], &[]));
    ended.unwrap();
    assert_eq!(told.stdout, "111\n");
}

pub(crate) fn unobserved_there_is_nothing_of_it() {
    let yard = Yard::new();
    let profile = roomy();
    let state = yard.house.state();
    let mut prepared = yard.native().open(&spec(&profile, None), &state).unwrap();
    assert!(prepared.observation().unwrap().is_none());
    assert!(prepared.way_out().unwrap().is_none());
    let line = "ls /run; ls /tmp; echo > /tmp/x";
    let (ended, told) = run(
        prepared,
        &profile,
        &order(&["sh", "-c", line], &[("PATH", "/usr/bin")]),
    );
    ended.unwrap();
    assert_eq!(told.stdout, "");
    assert_eq!(told.notices, []);
}

/// Pid 1 stands there and waits; nobody answers any call.
pub(crate) fn one_that_never_runs_leaves_nothing() {
    let yard = Yard::new();
    let profile = roomy();
    let prepared = open(&yard, &profile, Observe::default());
    drop(prepared);
    let mut prepared = open(&yard, &profile, Observe::default());
    drop(prepared.observation().unwrap());
    drop(Box::new(prepared).dismiss());
    // Nor does one whose command is not there, or whose directory.
    for (argv, cwd) in [("nosuchcommand", "/workspace/work"), ("true", "/nowhere")] {
        let prepared = open(&yard, &profile, Observe::default());
        let mut order = order(&[argv], &[]);
        order.cwd = crate::house::text(cwd);
        let (ended, told) = run(prepared, &profile, &order);
        ended.unwrap_err();
        assert_eq!(told.notices, []);
    }
}
