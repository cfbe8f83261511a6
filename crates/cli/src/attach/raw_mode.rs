//! A person's terminal, every key of which goes to a program elsewhere.

use std::io::IsTerminal;

use glovebox_model::{Code, Error, Result, Stage, TerminalSize};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// As long as it lives, keys are passed on as they are pressed. However it ends, also by a panic, the
/// terminal is as it was.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn begin() -> Result<Self> {
        let refused = |errno: rustix::io::Errno| {
            let message = "the terminal cannot be switched to pass on every key";
            Error::new(Code::Internal, Stage::Open, message).caused_by(errno)
        };
        let before = tcgetattr(rustix::stdio::stdin()).map_err(refused)?;
        let mut raw = before.clone();
        raw.make_raw();
        let entered = Self { before };
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw).map_err(refused)?;
        Ok(entered)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Without waiting: a terminal that takes no output must not hold up the end.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

/// What the terminal says of itself. None: nothing that makes sense.
pub(super) fn size() -> Option<TerminalSize> {
    let told = tcgetwinsize(rustix::stdio::stdout()).ok()?;
    let size = TerminalSize {
        columns: told.ws_col.min(TerminalSize::MOST),
        rows: told.ws_row.min(TerminalSize::MOST),
    };
    size.is_possible().then_some(size)
}

/// Both what is typed and what is shown must be a person's. `what` was asked for.
pub(crate) fn require_terminal(what: &str) -> Result<()> {
    let missing = match (
        std::io::stdin().is_terminal(),
        std::io::stdout().is_terminal(),
    ) {
        (true, true) => return Ok(()),
        (false, _) => "standard input",
        (true, false) => "standard output",
    };
    let message = format!("{what} needs a terminal, and {missing} is none");
    Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint("without a terminal: `glovebox run --stdin -- CMD` passes standard input through")
        .hint("`glovebox session start` starts a program, `session send` and `session log` talk to it"))
}
