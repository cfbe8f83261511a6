//! The program itself: its host, its completions, its manual.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Say what this host can enforce, with evidence and fixes
///
/// Looks at the host, then runs a small program in a real sandbox and asks it what it sees. Exits
/// with 0 when the default backend is fully usable and 1 when it is not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox doctor
  glovebox doctor --json")]
pub(crate) struct DoctorArgs {}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox completions bash > ~/.local/share/bash-completion/completions/glovebox
  glovebox completions zsh > ~/.zfunc/_glovebox
  glovebox completions fish > ~/.config/fish/completions/glovebox.fish")]
pub(crate) struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one page per command
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox man | man -l -
  glovebox man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write `glovebox.1` and a page for each command into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
