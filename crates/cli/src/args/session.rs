//! Sessions: execs whose program is talked to while it runs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use glovebox_model::{Millis, TerminalSize};

use super::{
    BackendOptions, ExecOptions, LimitOptions, PlaceOptions, RunOptions, SimulationOptions,
    WhoOptions,
};
use crate::attach::DetachKeys;

/// Start, read, type into, end and list sessions
///
/// A session is an exec whose program lives on after this command: a shell, a server, a REPL. It is
/// found again by its id. At a server with `--server`, else on this machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session start --terminal -- psql
  glovebox session ls
  glovebox session log e_3f0c --follow
  glovebox session send e_3f0c --enter 'print(6*7)'
  glovebox session attach e_3f0c
  glovebox session kill e_3f0c")]
pub(crate) struct SessionCommand {
    #[command(subcommand)]
    pub(crate) verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    Start(Box<SessionStartArgs>),
    #[command(alias = "list")]
    Ls(SessionLsArgs),
    Info(SessionInfoArgs),
    #[command(alias = "poll")]
    Log(SessionLogArgs),
    Attach(SessionAttachArgs),
    Record(SessionRecordArgs),
    Replay(SessionReplayArgs),
    Send(SessionSendArgs),
    #[command(alias = "send-keys")]
    Keys(SessionKeysArgs),
    Paste(SessionPasteArgs),
    Resize(SessionResizeArgs),
    #[command(alias = "close-stdin")]
    CloseInput(SessionCloseInputArgs),
    Signal(SessionSignalArgs),
    Kill(SessionKillArgs),
    #[command(alias = "remove")]
    Rm(SessionRmArgs),
    /// `log --follow` under another name
    #[command(hide = true)]
    Stream(SessionLogArgs),
    /// `send --enter` under another name
    #[command(hide = true)]
    Submit(SessionSendArgs),
}

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct WhichSession {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "SESSION")]
    pub(crate) id: String,
}

/// How a terminal of ours is taken away from a session that goes on.
#[derive(Debug, Default, Args)]
pub(crate) struct DetachOptions {
    /// The keys that detach: `C-]`, `C-p,C-q`, or `none`
    #[arg(
        long,
        value_name = "KEYS",
        default_value_t,
        help_heading = "Session",
        hide_short_help = true
    )]
    pub(crate) detach_key: DetachKeys,
}

/// How long it may live.
#[derive(Debug, Default, Args)]
pub(crate) struct LifeOptions {
    /// End it when nothing was written or read for this long (`30m`)
    #[arg(long, value_name = "TIME", help_heading = "Session")]
    pub(crate) idle_timeout: Option<Millis>,
    /// End it after this time, whatever it does (`8h`); `--timeout` is the same
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "timeout",
        help_heading = "Session"
    )]
    pub(crate) session_time: Option<Millis>,
}

/// Start a session; its id is printed
///
/// Its first output goes to standard error. When the program has ended already, the exit code is the
/// program's, as with `glovebox run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session start -- tail -f log
  glovebox session start --terminal --size 120x40 -- vim notes.txt
  glovebox session start --idle-timeout 30m --attach -- bash
  glovebox --server http://127.0.0.1:7070 session start --project demo --json -- python3 -i")]
pub(crate) struct SessionStartArgs {
    /// Give it a terminal; without this a shell alone has one, and everything else pipes
    #[arg(long, conflicts_with = "no_terminal", help_heading = "Session")]
    pub(crate) terminal: bool,
    /// Give it pipes, even to a shell
    #[arg(long, conflicts_with_all = ["size", "attach"], help_heading = "Session")]
    pub(crate) no_terminal: bool,
    /// The terminal's size
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = size, help_heading = "Session")]
    pub(crate) size: Option<TerminalSize>,
    #[command(flatten)]
    pub(crate) life: LifeOptions,
    /// Wait so long for the first output
    #[arg(long, value_name = "N", help_heading = "Session")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub(crate) yield_ms: Option<u64>,
    /// Attach this terminal to it
    #[arg(long, help_heading = "Session")]
    pub(crate) attach: bool,
    #[command(flatten)]
    pub(crate) detach: DetachOptions,
    #[command(flatten)]
    pub(crate) what: SessionWhat,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What every exec takes.
#[derive(Debug, Args)]
pub(crate) struct SessionWhat {
    #[command(flatten)]
    pub(crate) place: PlaceOptions,
    #[command(flatten)]
    pub(crate) backend: BackendOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) who: WhoOptions,
    #[command(flatten)]
    pub(crate) exec: ExecOptions,
}

impl SessionWhat {
    /// A session is not simulated: it is talked to.
    pub(crate) fn run_options(self) -> RunOptions {
        RunOptions {
            place: self.place,
            backend: self.backend,
            limits: self.limits,
            who: self.who,
            exec: self.exec,
            simulation: SimulationOptions::default(),
        }
    }
}

/// Open a shell in a sandbox
///
/// A session with a terminal, and this one attached to it: `glovebox run -t -- bash`. It works on the
/// current directory. With the name of a sandbox that is kept, it works on the workspace of that one,
/// in a sandbox of its own with the same backend and image. The shell's exit code is this one's, 0 when
/// you detach.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox shell
  glovebox shell --scratch -- python3
  glovebox shell glovebox-builder-0a1b2c3d
  glovebox --server http://127.0.0.1:7070 shell --project demo")]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub(crate) life: LifeOptions,
    #[command(flatten)]
    pub(crate) detach: DetachOptions,
    #[command(flatten)]
    pub(crate) what: SessionWhat,
    /// A sandbox that is kept, to be beside: its name or its id
    #[arg(value_name = "SANDBOX", conflicts_with_all = [
        "sandbox", "lifetime", "project", "scratch", "toolchain", "backend", "runtime", "image"
    ])]
    pub(crate) kept: Option<String>,
    /// Another command than `bash`
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// List sessions, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session ls
  glovebox session ls --quiet
  glovebox --server http://127.0.0.1:7070 session ls --json")]
pub(crate) struct SessionLsArgs {}

/// Show a session: its state, its terminal, what it has put out
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session info e_3f0c
  glovebox session info e_3f0c --json")]
pub(crate) struct SessionInfoArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
}

/// Print what a session has put out, as far as it is kept
///
/// On a terminal of yours colours pass, and nothing else that a terminal would obey. A file or a pipe
/// gets every byte.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session log e_3f0c
  glovebox session log e_3f0c --follow
  glovebox session log e_3f0c --screen
  glovebox session log e_3f0c --stderr | less")]
pub(crate) struct SessionLogArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// Go on until it ends
    #[arg(long, short, conflicts_with = "screen")]
    pub(crate) follow: bool,
    /// What its terminal shows now, line by line
    #[arg(long)]
    pub(crate) screen: bool,
    /// Only its stderr, to standard output
    #[arg(long, conflicts_with = "screen")]
    pub(crate) stderr: bool,
}

/// Write what a session put out, with its times, as a recording (asciicast)
///
/// What it put out until now, as far as it is kept. Other players of asciicast version 2 read it, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session record e_3f0c demo.cast
  glovebox session record e_3f0c | gzip > demo.cast.gz")]
pub(crate) struct SessionRecordArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// Where to; standard output without it, or with `-`
    #[arg(value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Play a recording, or what a session has put out, in this terminal
///
/// On a terminal nothing passes that would reach beyond its window. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session replay demo.cast
  glovebox session replay e_3f0c --speed 4
  glovebox session replay demo.cast --pause 0s")]
pub(crate) struct SessionReplayArgs {
    /// A file with a recording, or a session
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) what: String,
    /// So many times as fast
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub(crate) speed: f64,
    /// The longest pause
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) pause: Millis,
}

fn speed(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "a number is wanted, such as `2`".to_owned())?;
    match (0.01..=1000.0).contains(&number) {
        true => Ok(number),
        false => Err("from 0.01 to 1000".to_owned()),
    }
}

/// Attach this terminal to a session
///
/// What you type goes to its program, and what the program puts out comes here, but for what would
/// reach beyond this window: titles, the clipboard, questions to the terminal. `C-]` detaches; the
/// session goes on. When it ends, its exit code is this command's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session attach e_3f0c
  glovebox session attach e_3f0c --detach-key C-p,C-q")]
pub(crate) struct SessionAttachArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    #[command(flatten)]
    pub(crate) detach: DetachOptions,
}

/// Type text into a session
///
/// As it is: without `--enter` nothing is added to it. `-` reads standard input to its end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session send e_3f0c --enter 'print(6*7)'
  glovebox session send e_3f0c y
  glovebox session send e_3f0c - < commands.txt")]
pub(crate) struct SessionSendArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// The text, or `-`
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Press Enter after it
    #[arg(long)]
    pub(crate) enter: bool,
}

/// Press keys in a session that has a terminal
///
/// A key is one character or a name: `Enter`, `Tab`, `Escape`, `Space`, `Backspace`, `Up`, `Down`,
/// `Left`, `Right`, `Home`, `End`, `PageUp`, `PageDown`, `Insert`, `Delete`, `F1` to `F12`. `C-`, `M-`
/// and `S-` before it hold Control, Alt and Shift.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session keys e_3f0c C-c
  glovebox session keys e_3f0c Up Up Enter
  glovebox session keys e_3f0c Escape : w q Enter")]
pub(crate) struct SessionKeysArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// The keys, one after the other
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
}

/// Paste text into a session that has a terminal
///
/// In brackets where its program asked for that, so that an editor or a shell does not take it for
/// typed. `-` reads standard input to its end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session paste e_3f0c 'two words'
  glovebox session paste e_3f0c - < function.py")]
pub(crate) struct SessionPasteArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// The text, or `-`
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,
}

/// Give a session's terminal another size
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session resize e_3f0c 120x40")]
pub(crate) struct SessionResizeArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// From 1x1 to 500x500
    #[arg(value_name = "COLUMNSxROWS", value_parser = size)]
    pub(crate) size: TerminalSize,
}

/// End the input of a session: its pipe is closed, or `C-d` is pressed on its terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session close-input e_3f0c")]
pub(crate) struct SessionCloseInputArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
}

/// Send a signal to everything that runs in a session
///
/// On a terminal `INT`, `QUIT` and `TSTP` go to what is in the foreground, as their keys do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session signal e_3f0c INT
  glovebox session signal e_3f0c SIGUSR1")]
pub(crate) struct SessionSignalArgs {
    #[command(flatten)]
    pub(crate) which: WhichSession,
    /// Its name or number
    #[arg(value_name = "SIGNAL")]
    pub(crate) signal: String,
}

/// End sessions at once, with everything in them
///
/// Returns when nothing of them is left. One that has ended stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session kill e_3f0c
  glovebox session kill $(glovebox session ls --quiet)")]
pub(crate) struct SessionKillArgs {
    /// Their ids, enough of the beginning of each, or their client ids
    #[arg(value_name = "SESSION", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Remove sessions that have ended: what they put out is forgotten, their records stay
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox session rm e_3f0c
  glovebox session rm e_3f0c e_9a1b")]
pub(crate) struct SessionRmArgs {
    /// Their ids, enough of the beginning of each, or their client ids
    #[arg(value_name = "SESSION", required = true)]
    pub(crate) ids: Vec<String>,
}

fn size(text: &str) -> Result<TerminalSize, &'static str> {
    let numbers = text.split_once(['x', 'X']);
    let size = numbers.and_then(|(columns, rows)| {
        Some(TerminalSize {
            columns: columns.parse().ok()?,
            rows: rows.parse().ok()?,
        })
    });
    size.filter(|it| it.is_possible())
        .ok_or("a size is COLUMNSxROWS, such as 120x40; from 1 to 500 of each")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn session(words: &str) -> Option<SessionVerb> {
        let words = "glovebox session".split(' ').chain(words.split(' '));
        match Cli::try_parse_from(words).ok()?.command {
            Command::Session(command) => Some(command.verb),
            _ => None,
        }
    }

    #[test]
    fn verbs_have_a_second_name() {
        for (alias, name) in [
            ("list", "ls"),
            ("poll e_1", "log e_1"),
            ("send-keys e_1 C-c", "keys e_1 C-c"),
            ("close-stdin e_1", "close-input e_1"),
            ("remove e_1", "rm e_1"),
        ] {
            let [alias, name] = [alias, name].map(|it| format!("{:?}", session(it).unwrap()));
            assert_eq!(alias, name);
        }
        assert!(matches!(
            session("stream e_1"),
            Some(SessionVerb::Stream(_))
        ));
        assert!(matches!(
            session("submit e_1 x"),
            Some(SessionVerb::Submit(_))
        ));
    }

    #[test]
    fn what_is_sent_may_begin_with_a_hyphen() {
        let Some(SessionVerb::Send(send)) = session("send e_1 -") else {
            panic!("another verb");
        };
        assert_eq!(send.text, "-");
        let Some(SessionVerb::Keys(keys)) = session("keys e_1 - C-c") else {
            panic!("another verb");
        };
        assert_eq!(keys.keys, ["-", "C-c"]);
        // Options stay options.
        assert!(session("keys e_1 C-c --nothing").is_none());
    }

    #[test]
    fn a_size_has_two_numbers() {
        let size_of = |columns, rows| Ok(TerminalSize { columns, rows });
        assert_eq!(size("120x40"), size_of(120, 40));
        assert_eq!(size("1X500"), size_of(1, 500));
        for wrong in ["", "x", "80", "80x", "0x24", "80x501", "80x24x1", "-1x2"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(session("start --no-terminal --size 80x24 -- bash").is_none());
        assert!(session("start --terminal --size 80x24 -- bash").is_some());
    }
}
