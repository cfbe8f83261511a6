//! A server of our own: started, asked for its token, and ended with this value.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::{Args, Fallible};

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    /// Removed with this value.
    _state: TempDir,
}

impl Server {
    pub(crate) fn start(args: &Args, concurrent: u32, config: &str) -> Fallible<Self> {
        let state = tempfile::Builder::new()
            .prefix("glovebox-load-")
            .tempdir_in(&args.below)?;
        let file = state.path().join("config.toml");
        std::fs::write(&file, config)?;
        let mut command = Command::new(&args.glovebox);
        command
            .arg("--state-dir")
            .arg(state.path().join("state"))
            .arg("--config")
            .arg(file)
            .args(["serve", "--listen", "127.0.0.1:0", "--max-concurrent"])
            .arg(concurrent.to_string());
        if let Some(database) = &args.database {
            command.args(["--database", database]);
        }
        let mut child = command
            .env("GLOVEBOX_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", args.glovebox.display()))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let mut said = Vec::new();
        let address = loop {
            let Some(line) = lines.next().transpose()? else {
                return Err(format!("the server ended: {}", said.join(" / ")).into());
            };
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.trim().parse()?;
            }
            said.push(line);
        };
        // Read on, so that the server never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        let token = std::fs::read_to_string(state.path().join("state").join("token"))?;
        Ok(Self {
            child,
            address,
            token: token.trim().to_owned(),
            _state: state,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Of the server process alone, in seconds: user and system.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        let ticks = |place: usize| -> f64 {
            fields
                .get(place)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0.0)
        };
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Politely: it takes its sandboxes down and gives its files up.
        let _ = Command::new("kill").arg(self.pid().to_string()).status();
        let _ = self.child.wait();
    }
}
