//! How a run ended, told apart: the program's own end, a limit, a cancellation, or our own failure
//! (which is an error and never here).

use std::time::Duration;

use glovebox_model::{LimitKind, Usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The program returned.
    Exited {
        code: i32,
    },
    /// A signal ended the program, sent by itself or another program inside.
    Signaled {
        signal: i32,
    },
    /// Its time was up.
    TimedOut,
    /// It was ended for passing a limit.
    LimitKilled,
    Canceled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub ending: Ending,
    /// The signal that ended the program itself, whoever sent it.
    pub signal: Option<i32>,
    /// The limit that ended it or that it ran into.
    pub limit_hit: Option<LimitKind>,
    pub duration: Duration,
    pub usage: Usage,
    /// Calls of an observed program that were let through and not told: there were too many, or they
    /// could not be read.
    pub notices_dropped: u64,
}
