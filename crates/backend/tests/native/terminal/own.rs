//! What a terminal is to the program on it: its own, and nothing that leads further.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use glovebox_cage::Terminal;
use glovebox_model::Code;

use crate::terminal::ground::{SIZE, Stage, Step, python, shell};

/// Where every part is removed that has a name, by an environment variable.
const MUTATION: &str = "GLOVEBOX_MUTATION";

pub(crate) fn it_is_the_controlling_terminal_and_the_sandboxs_own() {
    // The first numbers are taken among the host's, which are others.
    let window_size = glovebox_cage::WindowSize {
        columns: 80,
        rows: 24,
    };
    let hosts: Vec<_> = (0..3)
        .map(|_| Terminal::of_host(window_size).unwrap())
        .collect();
    let (_, peer) = &hosts[0];
    let peer = std::fs::File::from(peer.try_clone().unwrap());
    let code = "import os, sys
print(*(os.ttyname(it) for it in range(3)))
session = os.getpid()
print(os.getsid(0) == session, os.tcgetpgrp(0) == session)
with open('/dev/tty', 'r+b', 0) as own:
    own.write(b'by its other name\\n')
    print(own.readline())
print(sorted(os.listdir('/dev/pts')))
print('device', os.fstat(0).st_dev, file=sys.stderr)";
    let told = python(
        Some(SIZE),
        code,
        vec![("other name\r\n", Step::Type("typed\n"))],
    );
    let lines = told.lines();
    let device = format!("device {}", peer.metadata().unwrap().dev());
    assert_eq!(
        lines[..lines.len() - 1],
        [
            "/dev/pts/0 /dev/pts/0 /dev/pts/0",
            "True True",
            "by its other name",
            "typed",
            "b'typed\\n'",
            "['0', 'ptmx']",
        ],
    );
    let last = lines.last().unwrap();
    assert!(last.starts_with("device ") && *last != device, "{told:?}");
}

pub(crate) fn the_program_has_no_way_to_the_other_end() {
    let code = "import ctypes, errno, fcntl, os, struct, termios
NUMBER, PEER = 0x80045430, 0x5441
def answer(act):
    try:
        return act()
    except OSError as error:
        return errno.errorcode[error.errno]
def number(end):
    return struct.unpack('i', fcntl.ioctl(end, NUMBER, bytes(4)))[0]
held = [it for it in range(1024) if answer(lambda: os.fstat(it)) != 'EBADF']
print('held', held)
print('of its peer', answer(lambda: number(0)), answer(lambda: fcntl.ioctl(0, PEER, os.O_RDWR)))
print('of pid 1', answer(lambda: os.listdir('/proc/1/fd')))
libc = ctypes.CDLL(None, use_errno=True)
init = libc.syscall(434, 1, 0)
got = {libc.syscall(438, init, it, 0) for it in range(64)}
print('from pid 1', got)
# A terminal of the program's own is another, and there it can do what it cannot here.
ends = [os.open(path, os.O_RDWR | os.O_NOCTTY) for path in ('/dev/ptmx', '/dev/pts/ptmx')]
print('numbers', *(number(it) for it in ends))
fcntl.ioctl(ends[0], 0x40045431, struct.pack('i', 0))
peer = os.open('/dev/pts/1', os.O_RDWR | os.O_NOCTTY)
os.write(ends[0], b'typed\\n')
print('there', os.read(peer, 10))
os.set_blocking(0, False)
print('here', answer(lambda: os.read(0, 10)))";
    let told = python(Some(SIZE), code, Vec::new());
    assert_eq!(
        told.lines(),
        [
            "held [0, 1, 2]",
            "of its peer ENOTTY EIO",
            "of pid 1 ENOENT",
            "from pid 1 {-1}",
            "numbers 1 2",
            "there b'typed\\n'",
            "here EAGAIN",
        ],
    );
}

pub(crate) fn its_owner_is_the_user_inside() {
    let line = "own=$(tty); test \"$(stat -c %u $own)\" = \"$(id -u)\" && echo mine
        stat -c %a $own; chmod 600 $own; stat -c %a $own
        exec 3<> $own && echo opened >&3";
    let told = shell(line, Vec::new());
    assert_eq!(told.lines(), ["mine", "620", "600", "opened"]);
}

pub(crate) fn nothing_is_typed_by_the_program_itself() {
    // TIOCSTI, the same with a bit that the kernel does not look at, TIOCLINUX and TIOCCONS.
    let code = "import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for request in (0x5412, 0x5412 | 1 << 32, 0x541c, 0x541d):
    answer = libc.ioctl(0, ctypes.c_ulong(request), b'\\n')
    print(hex(request), answer, errno.errorcode[ctypes.get_errno()])
os.set_blocking(0, False)
try:
    print('read', os.read(0, 10))
except BlockingIOError:
    print('nothing')
os.set_blocking(0, True)
print('read', os.read(0, 10))";
    let told = python(
        Some(SIZE),
        code,
        vec![("nothing\r\n", Step::Type("typed\n"))],
    );
    assert_eq!(
        told.lines(),
        [
            "0x5412 -1 EPERM",
            "0x100005412 -1 EPERM",
            "0x541c -1 EPERM",
            "0x541d -1 EPERM",
            "nothing",
            "typed",
            "read b'typed\\n'",
        ],
    );
}

pub(crate) fn without_one_there_is_none() {
    let code = "import errno, os
print('terminal' if os.isatty(0) else 'none', os.isatty(1), os.isatty(2))
try:
    print('opened', os.open('/dev/tty', os.O_RDWR))
except OSError as error:
    print(errno.errorcode[error.errno])
print(sorted(os.listdir('/dev/pts')))
print('of the process', open('/proc/self/stat').read().split()[6] != '0')";
    let resize = || vec![("n", Step::Resize(SIZE)), ("proc", Step::Close)];
    let with = python(Some(SIZE), code, resize());
    assert_eq!(
        with.lines(),
        [
            "terminal True True",
            "opened 3",
            "['0', 'ptmx']",
            "of the process True",
        ],
    );
    let without = python(None, code, resize());
    let none = [
        "none False False",
        "ENXIO",
        "['ptmx']",
        "of the process False",
    ];
    assert_eq!(without.lines(), none);
    // Not even when the caller's own input is one.
    let window_size = glovebox_cage::WindowSize {
        columns: 80,
        rows: 24,
    };
    let (_ours, peer) = Terminal::of_host(window_size).unwrap();
    let stage = Stage::new();
    let order = crate::house::order(&["python3", "-u", "-c", code], &[]);
    let told = crate::house::run(stage.open(), &stage.profile, &order, Some(peer)).unwrap();
    assert_eq!(told.stdout.lines().collect::<Vec<_>>(), none, "{told:?}");
}

/// Where there is no place to open it, which a second process of this test finds.
pub(crate) fn a_terminal_that_cannot_be_opened_starts_nothing() {
    let removed = std::env::var_os(MUTATION).is_some();
    let stage = Stage::new();
    let start = |terminal| {
        let line = "echo ran; : > /workspace/artifacts/ran";
        stage.talk(terminal, &["sh", "-c", line], Vec::new())
    };
    let told = start(Some(SIZE));
    if removed {
        let error = told.ended.as_ref().unwrap_err();
        assert_eq!(error.code, Code::SetupFailed, "{told:?}");
        assert!(error.to_string().contains("`terminal` failed"), "{error}");
        assert_eq!(told.said, "");
        assert!(!stage.mark("ran").exists());
        // What needs none is not held up.
        assert_eq!(start(None).lines(), ["ran"]);
        return;
    }
    assert_eq!(told.lines(), ["ran"]);
    assert!(stage.mark("ran").exists());
    let root = rustix::process::geteuid().is_root();
    let caller = if root { "root" } else { "user" };
    let name = "terminal::a_terminal_that_cannot_be_opened_starts_nothing";
    let again = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{caller}::{name}"), "--exact"])
        .env(MUTATION, "terminals")
        .output()
        .unwrap();
    assert!(again.status.success(), "{again:?}");
}
