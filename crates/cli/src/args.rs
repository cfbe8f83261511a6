//! What can be typed: flags and commands, exactly as given. What they mean is decided later.

mod audit;
mod execs;
mod policy;
mod serve;
mod settings;
mod token;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use glovebox_model::{Bytes, Count, Cpus, HostPort, Millis, ProjectId};

use crate::remote::Address;

pub(crate) use audit::{AuditCommand, AuditVerb, ExportArgs, QueryArgs, TailArgs, VerifyArgs};
pub(crate) use execs::{CancelArgs, LogsArgs, PsArgs, ShowArgs};
pub(crate) use policy::{CheckArgs, ExplainArgs, PolicyCommand, PolicyVerb};
pub(crate) use serve::{LogFormat, ServeArgs};
pub(crate) use settings::{SettingsCommand, SettingsSetArgs, SettingsVerb};
pub(crate) use token::{
    TokenCommand, TokenCreateArgs, TokenInfoArgs, TokenLsArgs, TokenRmArgs, TokenVerb,
};
pub(crate) use tool::{CompletionsArgs, DoctorArgs, ManArgs};

/// Runs any code, command or tool an agent asks for, in real isolation, and keeps a record.
#[derive(Debug, Parser)]
#[command(name = "glovebox", version, max_term_width = 100)]
#[command(after_help = "Examples:
  glovebox run -- python3 -c 'print(6*7)'       run a command on the current directory
  glovebox run --timeout 30s --json -- pytest   with a limit, and the record as JSON
  glovebox code python script.py                run code from a file or from standard input
  glovebox ps --all                             what ran, newest first
  glovebox serve                                the API, for agents and platforms
  glovebox --server URL run --scratch -- make   the same at a server
  glovebox doctor                               what this host can enforce")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where records, workspaces and the ledger are kept [env: GLOVEBOX_STATE_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Policy and settings, in TOML [env: GLOVEBOX_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Ask this server instead: `http://`, `https://` or `unix:/path` [env: GLOVEBOX_SERVER]
    ///
    /// The token comes from `GLOVEBOX_TOKEN`, from `--token-file`, or, for your own server on this
    /// machine, from its state directory.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<Address>,
    /// The file that holds the token for the server
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The authorities that may vouch for the server, in PEM, instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// A PostgreSQL to keep records in, shared by servers [env: GLOVEBOX_DATABASE]
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub(crate) database: Option<String>,
    /// Where the keys of ledger, tokens and queue lie, when not in the state directory
    /// [env: GLOVEBOX_KEYS_DIR]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) keys_dir: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for, no notes
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Code(CodeArgs),
    Ps(PsArgs),
    Show(ShowArgs),
    Logs(LogsArgs),
    Cancel(CancelArgs),
    Serve(ServeArgs),
    Token(TokenCommand),
    Settings(SettingsCommand),
    Doctor(DoctorArgs),
    Bench(crate::commands::bench::BenchArgs),
    Policy(PolicyCommand),
    Audit(AuditCommand),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Run a command in a sandbox
///
/// The workspace is the current directory, at /workspace/work inside, and the command's exit code
/// is this one's: 124 time-out, 125 Glovebox failed, 126 not executable, 127 not found, 128+N
/// ended by signal N, 130 canceled, 3 refused by policy, 4 not known to the server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox run -- make test
  glovebox run --memory 512M --pids 64 -- ./untrusted.sh
  glovebox run --scratch --input data.csv -- wc -l /workspace/inputs/data.csv
  echo hello | glovebox run --stdin -- tr a-z A-Z
  glovebox --server http://127.0.0.1:7070 run --project demo -- make test")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Run code from a file or from standard input
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox code python script.py
  echo 'print(6*7)' | glovebox code python")]
pub(crate) struct CodeArgs {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    #[arg(value_name = "LANG")]
    pub(crate) language: Language,
    /// The file with the code; standard input when it is left out or `-`
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Python,
    Shell,
    Javascript,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Work on a workspace that Glovebox keeps, by name, instead of the current directory
    #[arg(long, value_name = "ID", help_heading = "Workspace")]
    pub(crate) project: Option<ProjectId>,
    /// Work on an empty workspace that is gone afterwards
    #[arg(long, conflicts_with = "project", help_heading = "Workspace")]
    pub(crate) scratch: bool,
    /// Working directory, relative to the workspace or absolute below /workspace
    #[arg(long, value_name = "DIR", help_heading = "Workspace")]
    pub(crate) cwd: Option<OsString>,
    /// Put a file into /workspace/inputs, read-only; `FILE:NAME` gives it another name
    #[arg(long, value_name = "FILE[:NAME]", help_heading = "Workspace")]
    pub(crate) input: Vec<OsString>,
    /// May the workspace be changed?
    #[arg(long, value_enum, value_name = "ACCESS", help_heading = "Workspace")]
    pub(crate) workspace: Option<AccessArg>,
    /// Interpreters from your home to show inside, read-only: `auto`, `off`, a kind or a directory
    #[arg(long, value_name = "WHAT", help_heading = "Workspace")]
    pub(crate) toolchain: Vec<OsString>,

    /// End it after this time (`30s`, `5m`)
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub(crate) timeout: Option<Millis>,
    /// End it after this much processor time
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub(crate) cpu_time: Option<Millis>,
    /// Memory (`512M`)
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) memory: Option<Bytes>,
    /// Processes and threads
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) pids: Option<Count>,
    /// Processors (`0.5`, `2`)
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) cpus: Option<Cpus>,
    /// New bytes on disk
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) disk: Option<Bytes>,
    /// New files on disk
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) files: Option<Count>,
    /// Bytes of stdout and of stderr that are kept; the rest is read and dropped
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) max_output: Option<Bytes>,
    /// Bytes of artifacts that are kept
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) max_artifacts: Option<Bytes>,
    /// Open files of one process
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) open_files: Option<Count>,
    /// Refuse instead of accepting limits that are only watched
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Limits")]
    pub(crate) require: Option<Requirement>,
    /// What happens when a flag asks for more than policy allows
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "refuse",
        help_heading = "Limits"
    )]
    pub(crate) on_exceed: OnExceedArg,

    /// Set an environment variable; nothing is inherited
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Program")]
    pub(crate) env: Vec<OsString>,
    /// Pass standard input through
    #[arg(long, help_heading = "Program")]
    pub(crate) stdin: bool,
    /// Declare how dangerous this is; higher tiers get less
    #[arg(long, value_enum, value_name = "TIER", help_heading = "Policy")]
    pub(crate) tier: Option<TierArg>,
    /// Network: `none`, unless policy grants more
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Policy")]
    pub(crate) net: Option<NetArg>,
    /// A destination to reach, if policy grants it
    #[arg(long, value_name = "HOST:PORT", help_heading = "Policy")]
    pub(crate) allow_net: Vec<HostPort>,
    /// What it runs in
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Policy")]
    pub(crate) backend: Option<BackendArg>,
    /// Also write the record as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = "Program")]
    pub(crate) report: Option<PathBuf>,
    /// Your own name for this exec, unique in its space
    #[arg(long, value_name = "ID", help_heading = "Program")]
    pub(crate) client_id: Option<glovebox_model::ClientId>,
    /// The task this belongs to, for the record
    #[arg(long, value_name = "ID", help_heading = "Program")]
    pub(crate) task_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessArg {
    None,
    Ro,
    Rw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Requirement {
    KernelLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExceedArg {
    Refuse,
    Cap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierArg {
    Safe,
    Low,
    Medium,
    High,
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetArg {
    None,
    Retrieval,
    Allowlist,
    Unrestricted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendArg {
    Native,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_server_is_named_anywhere_and_a_token_never() {
        let parse = |words: &[&str]| Cli::try_parse_from(words);
        for words in [
            &["glovebox", "--server", "http://h:1", "ps"][..],
            &["glovebox", "ps", "--server", "unix:/x", "--token-file", "t"],
        ] {
            assert!(parse(words).unwrap().global.server.is_some(), "{words:?}");
        }
        assert!(parse(&["glovebox", "--server", "h:1", "ps"]).is_err());
        assert!(
            parse(&[
                "glovebox", "--server", "http://h", "--token", "gb_1_2", "ps"
            ])
            .is_err()
        );
    }

    #[test]
    fn a_server_starts_with_both_halves_of_tls_or_none() {
        let parse = |words: &str| {
            Cli::try_parse_from(
                "glovebox serve"
                    .split(' ')
                    .chain(words.split_ascii_whitespace()),
            )
        };
        assert!(parse("").is_ok());
        assert!(parse("--tls-cert c --tls-key k").is_ok());
        for wrong in [
            "--tls-cert c",
            "--tls-key k",
            "--tls-cert c --tls-key k --insecure-plain-http",
            "--max-concurrent 0",
            "--drain soon",
            "--log-format xml",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }
}
