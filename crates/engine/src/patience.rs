//! How long this process waits for others. In debug builds tests may have it wait less, so that they
//! need not: what happens when a wait is over is the same.

use std::time::Duration;

/// Bounds that tests change; each is said where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// For a database that another process has locked.
    Store,
    /// For a sign of life of another server.
    Lease,
    /// For a client that sends a request, or a piece of one.
    Request,
    /// Until a listener's token is checked again.
    Token,
    /// For a program that was asked to stop.
    Grace,
    /// For a server to come back to its sessions.
    Orphans,
    /// For the rest of what may begin a secret.
    Held,
    /// Until what happened to sandboxes behind our back is looked at again.
    Care,
}

impl Wait {
    /// This bound, or the one that a test has set.
    pub fn within(self, usual: Duration) -> Duration {
        told(self).unwrap_or(usual)
    }
}

/// `GLOVEBOX_PATIENCE=NAME:MS,…`
#[cfg(debug_assertions)]
fn told(wait: Wait) -> Option<Duration> {
    let said = std::env::var("GLOVEBOX_PATIENCE").ok()?;
    let name = match wait {
        Wait::Store => "store",
        Wait::Lease => "lease",
        Wait::Request => "request",
        Wait::Token => "token",
        Wait::Grace => "grace",
        Wait::Orphans => "orphans",
        Wait::Held => "held",
        Wait::Care => "care",
    };
    let mut pairs = said.split(',').filter_map(|it| it.split_once(':'));
    let (_, text) = pairs.find(|(key, _)| *key == name)?;
    text.parse().ok().map(Duration::from_millis)
}

#[cfg(not(debug_assertions))]
fn told(_: Wait) -> Option<Duration> {
    None
}
