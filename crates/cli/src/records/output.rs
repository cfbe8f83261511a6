//! What an exec printed, in pieces.

use std::io::{self, Read};

use glovebox_api::Target;
use glovebox_api::client::Client;
use glovebox_model::{Code, Error, Exec, Result, Stage, Stream};

use super::of_exec;

/// Of one stream at once.
const PIECE: usize = 1 << 20;

/// A stream of an exec. At its end a later read may find more.
#[derive(Debug)]
pub(crate) struct Output<'r> {
    client: &'r Client,
    base: Target,
    /// What the next piece begins with.
    offset: u64,
    held: Vec<u8>,
}

impl<'r> Output<'r> {
    /// `None` when nothing was kept of it.
    pub(super) fn open(client: &'r Client, exec: &Exec, stream: Stream) -> Result<Option<Self>> {
        let mut output = Self {
            client,
            base: of_exec(exec).segment(match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            }),
            offset: 0,
            held: Vec::new(),
        };
        match output.fetch() {
            Ok(()) => Ok(Some(output)),
            Err(error) if error.code == Code::NotFound => {
                match client.is_remote() && is_elsewhere(exec, stream) {
                    true => Err(elsewhere(exec)),
                    false => Ok(None),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn fetch(&mut self) -> Result<()> {
        let target = self
            .base
            .clone()
            .query("offset", self.offset)
            .query("limit", PIECE);
        let piece = self
            .client
            .insistently(|| self.client.bytes(target.clone()))?;
        self.offset += piece.len() as u64;
        self.held = piece.into();
        Ok(())
    }
}

impl Read for Output<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            self.fetch().map_err(io::Error::other)?;
        }
        let count = self.held.len().min(into.len());
        into[..count].copy_from_slice(&self.held[..count]);
        self.held.drain(..count);
        Ok(count)
    }
}

/// Servers of one database share their records; files lie in the state directory of the server
/// that ran the exec.
fn is_elsewhere(exec: &Exec, stream: Stream) -> bool {
    let written = match stream {
        Stream::Stdout => exec.stdout_bytes,
        Stream::Stderr => exec.stderr_bytes,
    };
    exec.status.is_final() && written > 0
}

fn elsewhere(exec: &Exec) -> Error {
    let id = &exec.exec_id;
    Error::new(
        Code::NotFound,
        Stage::Collect,
        format!("the output of `{id}` does not lie with this server"),
    )
    .of_exec(id.clone())
    .hint("ask the server that ran it: each keeps the output of its own execs")
    .hint("servers on one `--state-dir` share it")
}
