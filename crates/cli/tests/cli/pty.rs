//! A command at a terminal of its own that has a size, can be looked at byte by byte, and hangs up.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::trial::{PATIENCE, Running, Trial, until};

pub(crate) struct Pty {
    child: Running,
    /// The side where a person sits.
    person: File,
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    closes: Arc<AtomicBool>,
}

fn winsize(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Pty {
    pub(crate) fn start(trial: &Trial, args: &[&str]) -> Self {
        Self::start_with(trial, args, &[])
    }

    /// `setsid` makes the terminal the controlling one, so that signals of it arrive.
    pub(crate) fn start_with(trial: &Trial, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let person =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        tcsetwinsize(&person, winsize(80, 24)).unwrap();
        let plain = trial.command(args);
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(trial.work())
            .env_clear();
        for (key, value) in plain.get_envs() {
            command.env(key, value.unwrap_or_default());
        }
        command.envs(variables.iter().copied());
        let copy = |side: &OwnedFd| Stdio::from(side.try_clone().unwrap());
        let child = command
            .stdin(copy(&side))
            .stdout(copy(&side))
            .stderr(copy(&side))
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let closes = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closes);
        let mut screen = File::from(person.try_clone().unwrap());
        let reader = thread::spawn(move || {
            let mut bytes = [0; 65536];
            let soon = Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            while !closed.load(Ordering::SeqCst) {
                let mut sources = [PollFd::new(&screen, PollFlags::IN)];
                if poll(&mut sources, Some(&soon)).unwrap() == 0 {
                    continue;
                }
                // An error: nothing has the other side open any more.
                let Ok(count @ 1..) = screen.read(&mut bytes) else {
                    return;
                };
                heard.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            child: Running(child),
            person: File::from(person),
            said,
            reader: Some(reader),
            closes,
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// Waits until it has said this.
    pub(crate) fn shows(&self, text: &str) {
        let since = Instant::now();
        while !self.text().contains(text) {
            let said = self.text();
            assert!(since.elapsed() < PATIENCE, "no {text:?} in {said:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The window is closed. What ran in it is left.
    pub(crate) fn close(mut self) -> Running {
        self.closes.store(true, Ordering::SeqCst);
        self.reader.take().unwrap().join().unwrap();
        let Self { child, person, .. } = self;
        drop(person);
        child
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.person, winsize(columns, rows)).unwrap();
    }

    pub(crate) fn settings(&self) -> Termios {
        tcgetattr(self.person.as_fd()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).unwrap();
    }

    /// Its exit code and all that it said, once it has ended by itself.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = until(|| self.child.0.try_wait().unwrap()).code();
        self.reader.take().unwrap().join().unwrap();
        (code, self.text())
    }
}
