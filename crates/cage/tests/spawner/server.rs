//! A server of its own, to be killed: this very program, started again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use glovebox_cage::Spawner;

use crate::processes::Held;
use crate::sandbox;

const ROLE: &str = "--be-a-server";
pub(crate) const SECRET: &str = "correct-horse-battery-staple";

pub(crate) fn is_asked_for() -> bool {
    std::env::args().nth(1).as_deref() == Some(ROLE)
}

/// One sandbox runs, others could; it says where its spawner is and waits to be killed.
pub(crate) fn be() -> ExitCode {
    let spawner = Spawner::fork().unwrap();
    let handle = spawner.spawn().unwrap();
    sandbox::start(&handle, "sleep 1000 & sleep 1000");
    println!("{} {}", spawner.pid(), handle.keeper_pid());
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
    ExitCode::SUCCESS
}

pub(crate) struct Server {
    child: Child,
    pub(crate) spawner: Held,
    pub(crate) keeper: Held,
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([ROLE, SECRET])
            .env("GLOVEBOX_TEST_SECRET", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let mut numbers = line.split_whitespace().map(|it| it.parse().unwrap());
        let mut held = || Held::open(numbers.next().unwrap()).unwrap();
        let (spawner, keeper) = (held(), held());
        Self {
            child,
            spawner,
            keeper,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
