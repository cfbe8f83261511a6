//! What a terminal carries both ways: its size, what is shown of what is typed, and how much.

use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

use glovebox_backend::{Ending, Sink};
use glovebox_model::{Stream, TerminalSize};

use crate::terminal::ground::{Stage, Step, shell};

pub(crate) fn it_has_the_size_that_was_asked_for_and_hears_of_another() {
    let size = |columns, rows| Step::Resize(TerminalSize { columns, rows });
    let line = "stty size; trap 'stty size; echo heard' WINCH; echo ready
        until test \"$(stty size)\" = '65535 1'; do sleep 0.01; done; echo last";
    let steps = vec![
        ("ready", size(132, 50)),
        ("50 132\r\nheard", size(1, 65535)),
        ("65535 1\r\nheard", Step::Close),
    ];
    let told = shell(line, steps);
    let lines = [
        "30 100", "ready", "50 132", "heard", "65535 1", "heard", "last",
    ];
    assert_eq!(told.lines(), lines);
}

pub(crate) fn what_is_typed_at_a_password_prompt_is_not_shown() {
    let line = "printf 'Name: '; read name; stty -echo; printf 'Password: '; read secret
        stty echo; echo; echo $name ${#secret}; printf 'Again: '; read again; echo done";
    let steps = vec![
        ("Name: ", Step::Type("sand\n")),
        ("Password: ", Step::Type("hunter22\n")),
        ("Again: ", Step::Type("shown\n")),
    ];
    let told = shell(line, steps);
    assert_eq!(
        told.lines(),
        ["Name: sand", "Password: ", "sand 8", "Again: shown", "done"].map(str::trim_end),
    );
}

pub(crate) fn the_end_of_what_is_typed_is_not_the_end_of_the_terminal() {
    let line = "trap 'echo hung up' HUP; echo ready; cat; echo ended; read line || echo ended
        sh -c 'echo goes on > /dev/tty'; exit 9";
    // The key that ends what is read, twice; after the second nobody types any more.
    let steps = vec![
        ("ready\r\n", Step::Type("text\n\u{4}")),
        ("ended\r\n", Step::Type("\u{4}")),
        ("", Step::Close),
    ];
    let told = shell(line, steps);
    assert_eq!(told.ending(), Ending::Exited { code: 9 }, "{told:?}");
    let lines: Vec<&str> = told.said.lines().collect();
    let expected = ["ready", "text", "text", "ended", "ended", "goes on"];
    assert_eq!(lines, expected, "{told:?}");
    // Who waits for more is not told of an end, and ends when it is asked to.
    let line = "trap 'echo hung up' HUP; echo ready; cat; echo ended";
    let told = shell(line, vec![("", Step::Close), ("ready", Step::Expire)]);
    assert_eq!(told.ending(), Ending::TimedOut, "{told:?}");
    assert_eq!(told.said, "ready\r\n");
}

/// What every turn of the run calls, with whatever a test wants to know or do there.
struct Watched<Look> {
    said: Vec<u8>,
    /// How often something came while there was no room.
    forced: usize,
    open: Cell<bool>,
    look: RefCell<Look>,
}

impl<Look: FnMut(usize) -> Room> Watched<Look> {
    fn new(look: Look) -> Self {
        Self {
            said: Vec::new(),
            forced: 0,
            open: Cell::new(true),
            look: RefCell::new(look),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }
}

#[derive(PartialEq, Eq)]
enum Room {
    Some,
    None,
}

impl<Look: FnMut(usize) -> Room> Sink for Watched<Look> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        assert_eq!(stream, Stream::Stdout);
        self.forced += usize::from(!self.open.get());
        self.said.extend_from_slice(bytes);
    }

    fn has_room(&self) -> bool {
        let room = (self.look.borrow_mut())(self.said.len());
        self.open.set(room == Room::Some);
        self.open.get()
    }

    fn next_look(&self) -> Option<Instant> {
        Some(Instant::now())
    }
}

fn see<Look: FnMut(usize) -> Room>(
    stage: &Stage,
    code: &str,
    input: UnixStream,
    look: Look,
) -> Watched<Look> {
    let mut watched = Watched::new(look);
    let argv = ["python3", "-u", "-c", code];
    let ended = stage.pipe(&argv, input.into(), &mut watched);
    assert_eq!(
        ended.ending,
        Ending::Exited { code: 0 },
        "{}",
        watched.text()
    );
    watched
}

pub(crate) fn ten_megabytes_arrive_whole() {
    const BYTES: usize = 10 << 20;
    // Every line another, so that what is missing or twice is missed; as long as nothing divides.
    let code = "import os
os.system('stty -opost')
out = open(1, 'wb', 1 << 16, closefd=False)
whole, rest = divmod(10 << 20, 13)
for it in range(whole):
    out.write(b'%012d\\n' % it)
out.write((b'%012d\\n' % whole)[:rest])
out.flush()";
    let (_input, theirs) = UnixStream::pair().unwrap();
    let watched = see(&Stage::new(), code, theirs, |_| Room::Some);
    assert_eq!(watched.said.len(), BYTES);
    let mut lines = watched.said.chunks(13).zip(0..);
    let wrong = lines.find(|(line, at)| !format!("{at:012}\n").as_bytes().starts_with(line));
    assert_eq!(wrong, None);
}

pub(crate) fn a_reader_that_has_no_room_makes_the_program_wait() {
    // Fills the terminal until it takes no more, and says elsewhere that it does.
    let code = "import os
os.system('stty -opost')
os.write(1, b'first')
own = os.open('/dev/tty', os.O_WRONLY | os.O_NONBLOCK)
count = 0
try:
    while count < 1 << 24:
        count += os.write(own, b'x' * 1000)
except BlockingIOError:
    pass
with open('/workspace/artifacts/.full', 'w') as full:
    full.write(str(count))
os.rename('/workspace/artifacts/.full', '/workspace/artifacts/full')
os.write(1, b'last')";
    let stage = Stage::new();
    let full = stage.mark("full");
    let (_input, theirs) = UnixStream::pair().unwrap();
    let watched = see(&stage, code, theirs, |taken| match taken {
        0 => Room::Some,
        _ if full.exists() => Room::Some,
        _ => Room::None,
    });
    // At the most what was with the first word was taken, so what was full was the terminal.
    assert_eq!(watched.forced, 0);
    let count: usize = std::fs::read_to_string(&full).unwrap().parse().unwrap();
    assert!(count < 1 << 20, "{count}");
    let text = watched.text();
    assert_eq!(text.len(), count + "firstlast".len());
    assert!(text.starts_with("firstx") && text.ends_with("xlast"));
}

pub(crate) fn more_typed_than_is_read_waits_outside() {
    const BYTES: usize = 4 << 20;
    /// Turns in which nothing more was taken. Each would have taken something, had it been able to.
    const QUIET: usize = 50;
    let code = "import os, time
os.system('stty raw -echo')
os.write(1, b'ready')
while not os.path.exists('/workspace/artifacts/go'):
    time.sleep(0.001)
count, wrong = 0, 0
while count < 4 << 20:
    got = os.read(0, 1 << 16)
    wrong += sum(it != (at % 251) for at, it in enumerate(got, count))
    count += len(got)
print(f' {count} {wrong}.')";
    let stage = Stage::new();
    let go = stage.mark("go");
    let (mut input, theirs) = UnixStream::pair().unwrap();
    input.set_nonblocking(true).unwrap();
    let text: Vec<u8> = (0..251_u8).cycle().take(BYTES).collect();
    let (mut typed, mut quiet, mut waited_at) = (0, 0, None);
    let watched = see(&stage, code, theirs, |taken| {
        if taken > 0 && typed < BYTES {
            quiet += 1;
            match input.write(&text[typed..]) {
                Ok(count) => {
                    typed += count;
                    quiet = 0;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        if quiet == QUIET && waited_at.is_none() {
            waited_at = Some(typed);
            std::fs::write(&go, "").unwrap();
        }
        Room::Some
    });
    assert_eq!(watched.text(), format!("ready {BYTES} 0.\n"));
    let waited_at = waited_at.expect("all of it was taken at once");
    assert!(waited_at < BYTES / 2, "{waited_at}");
}

pub(crate) fn a_terminal_that_was_let_go_of_can_be_opened_again() {
    const LOOKS: usize = 20;
    // Nobody holds it, until it is opened by name: the session still has it.
    let code = "import os, time
os.write(1, b'before ')
os.closerange(0, 3)
open('/workspace/artifacts/closed', 'w').close()
while not os.path.exists('/workspace/artifacts/go'):
    time.sleep(0.001)
own = os.open('/dev/tty', os.O_RDWR)
os.write(own, b'after ')
os.write(own, os.read(own, 10))";
    let stage = Stage::new();
    let (closed, go): (PathBuf, PathBuf) = (stage.mark("closed"), stage.mark("go"));
    let (mut input, theirs) = UnixStream::pair().unwrap();
    let (mut looks, mut typed) = (0, false);
    let watched = see(&stage, code, theirs, |taken| {
        looks += usize::from(closed.exists());
        if looks == LOOKS {
            std::fs::write(&go, "").unwrap();
        }
        if taken >= "before after ".len() && !typed {
            input.write_all(b"typed\n").unwrap();
            typed = true;
        }
        Room::Some
    });
    assert_eq!(watched.text(), "before after typed\r\ntyped\r\n");
}
