//! What the operator decides when a server is started.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use glovebox_mcp::{Api, Server};
use tokio_util::sync::CancellationToken;

/// Makes the service at `/mcp` from Glovebox's own tools and the API behind them. It ends with the
/// token.
pub type McpService = fn(Server, Arc<dyn Api>, CancellationToken) -> Router;

/// How a server listens and how patient it is. [`Options::new`] is what `glovebox serve` does
/// without a flag.
#[derive(Debug, Clone)]
pub struct Options {
    /// `HOST:PORT`; port 0 takes a free one.
    pub listen: String,
    /// Also, or in place of nothing, a Unix socket that only its owner may use.
    pub socket: Option<PathBuf>,
    /// With these every TCP connection is TLS.
    pub tls: Option<TlsFiles>,
    /// Names in `Host` that are answered beside the loopback ones and the bound address.
    pub allow_hosts: Vec<String>,
    /// The directory of `token.key`: the state directory unless the keys lie elsewhere.
    pub keys: PathBuf,
    /// Connections at one time; one more waits in the kernel's queue.
    pub connections: usize,
    /// Bad tokens in a minute from one address before it is told to wait.
    pub bad_tokens: u32,
    /// How long execs may go on after the first signal.
    pub patience: Duration,
    pub times: Times,
    /// Glovebox's own tools, unless another handler is to be served over the same transport.
    pub mcp: McpService,
}

#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// PEM, the server's own certificate first.
    pub certificates: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// From the first byte of a request to the end of its head; also for a TLS handshake.
    pub head: Duration,
    /// Between two pieces of a body.
    pub body_pause: Duration,
    /// For a whole body.
    pub body: Duration,
    /// Between two requests of one connection.
    pub idle: Duration,
    /// A response of which the client takes nothing for so long is cut.
    pub write: Duration,
    /// A `wait: true` that lasts longer is answered with 202.
    pub wait: Duration,
    /// Between two comments in a stream of events that has nothing to say.
    pub keep_alive: Duration,
    /// How soon a stream notices that its token was revoked.
    pub recheck: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body_pause: Duration::from_secs(10),
            body: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
            wait: Duration::from_secs(600),
            keep_alive: Duration::from_secs(15),
            recheck: Duration::from_secs(5),
        }
    }
}

impl Options {
    pub const LISTEN: &'static str = "127.0.0.1:7070";
    pub const CONNECTIONS: usize = 4096;
    pub const BAD_TOKENS: u32 = 20;
    pub const PATIENCE: Duration = Duration::from_secs(30);

    pub fn new(keys: impl Into<PathBuf>) -> Self {
        Self {
            listen: Self::LISTEN.to_owned(),
            socket: None,
            tls: None,
            allow_hosts: Vec::new(),
            keys: keys.into(),
            connections: Self::CONNECTIONS,
            bad_tokens: Self::BAD_TOKENS,
            patience: Self::PATIENCE,
            times: Times::default(),
            mcp: glovebox_mcp::service,
        }
    }
}
