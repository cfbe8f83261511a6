//! Programs that are started in unusual ways, or are unusual themselves.

use crate::observe::ground::{Told, python};

pub(crate) fn programs_are_told_however_they_are_started() {
    let told = python(
        r#"
import ctypes, os, subprocess
os.waitpid(os.posix_spawn("/usr/bin/true", ["spawned"], {}), 0)
os.waitpid(os.posix_spawnp("true", ["searched"], {"PATH": "/nowhere:/usr/bin"}), 0)
subprocess.run(["/usr/bin/true", "forked"], preexec_fn=lambda: None)
subprocess.run(["/usr/bin/true", "vforked"])
try: subprocess.run(["nosuchcommand"])
except FileNotFoundError: pass
# By descriptor.
pid = os.fork()
if pid == 0:
    os.execve(os.open("/usr/bin/true", os.O_RDONLY), ["by descriptor"], {})
os.waitpid(pid, 0)
# By its name below a directory.
libc = ctypes.CDLL(None)
pid = os.fork()
if pid == 0:
    argv = (ctypes.c_char_p * 2)(b"below", None)
    libc.execveat(os.open("/usr", os.O_PATH), b"bin/true", argv, None, 0)
    os._exit(9)
os.waitpid(pid, 0)
os.execv("/usr/bin/true", ["itself"])
"#,
    );
    let expected = [
        "spawned",
        "searched",
        "forked",
        "vforked",
        "by descriptor",
        "below",
        "itself",
    ];
    let line = |word: &&str| match *word {
        "forked" | "vforked" => format!(r#""/usr/bin/true" ["/usr/bin/true", "{word}"]"#),
        _ => format!(r#""/usr/bin/true" ["{word}"]"#),
    };
    let expected: Vec<String> = expected.iter().map(line).collect();
    assert_eq!(told.execs()[1..], expected);
}

pub(crate) fn a_thread_that_becomes_a_program_is_told_once() {
    let code = r#"
import os, threading, time
start = threading.Barrier(4)
def become(word):
    start.wait()
    os.execv("/usr/bin/true", ["true", word])
for word in ("a", "b", "c"):
    threading.Thread(target=become, args=(word,)).start()
start.wait()
time.sleep(60)
"#;
    for _ in 0..5 {
        let execs = python(code).execs();
        assert_eq!(execs.len(), 2, "{execs:?}");
        assert!(
            execs[1].starts_with(r#""/usr/bin/true" ["true", ""#),
            "{execs:?}"
        );
    }
}

/// A program of a few bytes, without any library: what it does is these instructions.
fn tiny(instructions: &str) -> String {
    format!(
        r#"
import os, struct, sys
code = bytes.fromhex("{instructions}")
at = 0x400000
header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, at + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
segment = struct.pack("<IIQQQQQQ", 1, 5, 0, at, at, 120 + len(code), 120 + len(code), 4096)
with open("/tmp/tiny", "wb") as it: it.write(header + segment + code)
os.chmod("/tmp/tiny", 0o755)
for _ in range(50):
    pid = os.fork()
    if pid == 0:
        os.execv("/tmp/tiny", ["tiny"])
    print(os.waitpid(pid, 0)[1])
"#
    )
}

fn tinies(told: &Told) -> usize {
    let programs = told.programs();
    programs.iter().filter(|it| *it == "/tmp/tiny").count()
}

pub(crate) fn one_that_dies_at_once_is_told() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    // exit(0), by the call that ends a thread; then one that is no instruction at all.
    for (instructions, status) in [("31ffb83c0000000f05", "0"), ("0f0b", "4")] {
        let told = python(&tiny(instructions));
        assert_eq!(told.stdout, format!("{status}\n").repeat(50), "{told:?}");
        assert_eq!(tinies(&told), 50, "{instructions}");
        assert_eq!(told.programs().len(), 51);
    }
}

pub(crate) fn one_that_failed_and_was_killed_is_none() {
    let told = python(
        r#"
import os, signal, time
pid = os.fork()
if pid == 0:
    try: os.execv("/nowhere", ["x"])
    except OSError: time.sleep(60)
time.sleep(0.5)
os.kill(pid, signal.SIGKILL)
os.wait()
"#,
    );
    assert_eq!(told.programs(), ["/usr/bin/python3"]);
}

pub(crate) fn names_that_are_no_text_hide_nobody() {
    let told = python(
        r#"
import ctypes, os
ctypes.CDLL(None).prctl(15, b"\xff) Z \xfe\nPPid:")
if os.fork() == 0:
    os.execv("/usr/bin/true", [b"\xff\xfe"])
os.wait()
try: os.unlink(b"/tmp/\xff")
except OSError: pass
"#,
    );
    assert_eq!(told.execs()[1], r#""/usr/bin/true" ["\\xff\\xfe"]"#);
    assert_eq!(told.writes(), [r"unlink /tmp/\xff"]);
}
