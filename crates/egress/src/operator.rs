//! Connections of our own to what the operator configured: the server that `--server` names. It may
//! be private, so it is not vetted; nothing that a caller or a sandbox chose may come here. The
//! operator's database and collector of traces are dialled by the libraries that speak to them, in
//! `store` and in the command. A lint bans every other place, and a test lists them all.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// To a host and port of the operator's configuration, by the system's own resolution.
#[expect(clippy::disallowed_methods, reason = "what the operator configured")]
pub async fn tcp(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    let stream = bounded(TcpStream::connect((host, port)), within).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// To a socket in the file system that the operator's configuration names.
#[expect(clippy::disallowed_methods, reason = "what the operator configured")]
pub async fn unix(path: &Path, within: Duration) -> io::Result<UnixStream> {
    bounded(UnixStream::connect(path), within).await
}

async fn bounded<T>(
    connecting: impl Future<Output = io::Result<T>>,
    within: Duration,
) -> io::Result<T> {
    timeout(within, connecting).await.unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} seconds", within.as_secs_f32()),
        ))
    })
}
