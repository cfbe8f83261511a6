//! Running a server.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use glovebox_model::{Millis, Settings};

/// Serve the API over HTTP
///
/// Prints `listening on http://HOST:PORT` on standard error when it is ready. An admin token is in
/// the file `token` of the state directory. On TERM or INT no new work is taken; what runs has
/// `--drain` to end, is asked to stop after it, and is killed four seconds later. A second signal
/// does not wait. What only waited goes on waiting, for the next start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox serve
  glovebox serve --listen 127.0.0.1:0 --unix /run/glovebox/api.sock
  glovebox serve --listen 0.0.0.0:7443 --tls-cert cert.pem --tls-key key.pem --allow-host box.example
  GLOVEBOX_DATABASE=postgres://… glovebox serve --keys-dir /etc/glovebox/keys")]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = glovebox_serve::Options::LISTEN)]
    pub(crate) listen: String,
    /// Listen on a Unix socket too, which only its owner may use
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// The certificate, in PEM: then every TCP connection is TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve plain HTTP beyond this machine: everybody on the way can read tokens and output
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_plain_http: bool,
    /// A name that clients call this server by; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Execs at one time that no setting goes above
    #[arg(long, value_name = "N", default_value_t = Settings::CONCURRENT_CEILING)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_concurrent: u32,
    /// Connections at one time
    #[arg(long, value_name = "N", default_value_t = 4096)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_connections: u32,
    /// How long execs may go on after the first signal
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) drain: Millis,
    /// The form of the log on standard error; `GLOVEBOX_LOG` says how much (`info`, `debug`, …)
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}
