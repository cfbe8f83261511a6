//! The server's log, on standard error. No secret that the server knows is in it.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use glovebox_engine::LogMask;
use glovebox_model::{Code, Error, Result, Stage};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::args::LogFormat;

const VARIABLE: &str = "GLOVEBOX_LOG";

/// Known once the server has its secrets; nothing is logged of anybody's before.
static MASK: OnceLock<LogMask> = OnceLock::new();

pub(crate) fn mask_with(mask: LogMask) {
    let _ = MASK.set(mask);
}

/// Standard error. Each line comes in one piece.
struct Clean;

impl Write for Clean {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match MASK.get() {
            Some(mask) => io::stderr().write_all(&mask.clean(line))?,
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// What is logged if nobody says how much.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Usual {
    /// For a server, whose log somebody keeps.
    Info,
    /// For a process whose standard error a host shows to its user.
    Warn,
}

pub(crate) fn begin(format: LogFormat, usual: Usual) -> Result<()> {
    let refused = |error: &dyn std::fmt::Display| {
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("`{VARIABLE}` does not say how much to log"),
        )
        .caused_by(error)
        .hint("write `warn`, `info`, `debug`, or `glovebox_serve=debug,warn`")
    };
    let wanted = std::env::var(VARIABLE).ok().filter(|it| !it.is_empty());
    let usual = match usual {
        Usual::Info => "info",
        // The SDK warns of every wrong request; the client is told anyway.
        Usual::Warn => "warn,rmcp=error",
    };
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(usual));
    let filter = filter.map_err(|error| refused(&error))?;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(io::stderr().is_terminal() && !plain)
        .with_writer(|| Clean);
    let layer = match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    #[cfg(feature = "otel")]
    let subscriber = subscriber.with(super::traces::layer()?);
    subscriber.try_init().map_err(|error| refused(&error))
}
