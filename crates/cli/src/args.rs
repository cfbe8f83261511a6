//! What can be typed: flags and commands, exactly as given. What they mean is decided later.

mod approval;
mod artifact;
mod audit;
mod backend;
mod bench;
mod cache;
mod execs;
mod file;
mod image;
mod mcp;
mod often;
mod options;
mod policy;
mod retrieve;
mod sandbox;
mod secret;
mod serve;
mod session;
mod settings;
mod simulation;
mod skill;
mod snapshot;
mod token;
mod tool;
mod webhook;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use glovebox_api::client::Address;

pub(crate) use approval::{
    ApprovalCommand, ApprovalLsArgs, ApprovalVerb, ApprovalWatchArgs, ApproveArgs, DenyArgs,
    GrantsArgs, RevokeArgs,
};
pub(crate) use artifact::{ArtifactCommand, ArtifactGetArgs, ArtifactLsArgs, ArtifactVerb};
pub(crate) use audit::{
    AuditCommand, AuditVerb, ExportArgs, QueryArgs, TailArgs, TimelineArgs, VerifyArgs,
};
pub(crate) use backend::{BackendCommand, BackendVerb, ProbeArgs};
pub(crate) use bench::BenchArgs;
pub(crate) use cache::{
    CacheCommand, CacheFillArgs, CacheLsArgs, CachePruneArgs, CacheRmArgs, CacheVerb,
};
pub(crate) use execs::{CancelArgs, LogsArgs, PsArgs, ShowArgs};
pub(crate) use file::{
    ArchiveFormat, ByteRange, CatArgs, CpArgs, DownloadArgs, FileCommand, FileLsArgs, FileRmArgs,
    FileVerb, FromTo, GlobArgs, GrepArgs, MkdirArgs, MvArgs, ReplaceArgs, StatArgs, UploadArgs,
    WatchArgs, WriteArgs,
};
pub(crate) use image::{
    ImageCommand, ImageFormatArg, ImageRmArgs, ImageVerb, ImportArgs, PullArgs,
};
pub(crate) use mcp::{AgentHost, McpCommand, McpInstallArgs, McpServeArgs, McpVerb};
pub(crate) use options::{
    BackendOptions, ExecOptions, LimitOptions, PlaceOptions, Requirement, RunOptions, WhoOptions,
};
pub(crate) use policy::{
    CheckArgs, ExplainArgs, PolicyCommand, PolicyVerb, ReplayArgs, ShadowArgs,
};
pub(crate) use retrieve::RetrieveArgs;
pub(crate) use sandbox::{
    SandboxCommand, SandboxCreateArgs, SandboxExplainArgs, SandboxInfoArgs, SandboxLsArgs,
    SandboxRecreateArgs, SandboxRmArgs, SandboxVerb, ScopeOptions,
};
pub(crate) use secret::{
    GrantOrSecret, RotateKeyArgs, SecretCommand, SecretGrantArgs, SecretGrantsArgs, SecretLsArgs,
    SecretRevokeArgs, SecretSetArgs, SecretVerb,
};
pub(crate) use serve::{LogFormat, ServeArgs};
pub(crate) use session::{
    DetachOptions, LifeOptions, SessionAttachArgs, SessionCommand, SessionKeysArgs, SessionLogArgs,
    SessionPasteArgs, SessionRecordArgs, SessionReplayArgs, SessionResizeArgs, SessionSendArgs,
    SessionSignalArgs, SessionStartArgs, SessionVerb, ShellArgs, WhichSession,
};
pub(crate) use settings::{SettingsCommand, SettingsSetArgs, SettingsVerb};
pub(crate) use simulation::{ApplyArgs, DiscardArgs, EffectsArgs, SimulationOptions};
pub(crate) use skill::{
    SkillAddArgs, SkillCheckArgs, SkillCommand, SkillInfoArgs, SkillLsArgs, SkillRmArgs,
    SkillRunArgs, SkillVerb,
};
pub(crate) use snapshot::{
    DiffArgs, RestoreArgs, SnapshotCommand, SnapshotLsArgs, SnapshotRmArgs, SnapshotShowArgs,
    SnapshotVerb, TakeArgs,
};
pub(crate) use token::{
    TokenCommand, TokenCreateArgs, TokenInfoArgs, TokenLsArgs, TokenRmArgs, TokenVerb,
};
pub(crate) use tool::{CompletionsArgs, DoctorArgs, ManArgs};
pub(crate) use webhook::{
    DeliveriesArgs, WebhookCommand, WebhookLsArgs, WebhookTestArgs, WebhookVerb,
};
pub(crate) use workspace::{
    ChangesArgs, ForkArgs, ResetArgs, RollbackArgs, SeedArgs, UndoArgs, WhichOptions,
    WorkspaceCommand, WorkspaceInfoArgs, WorkspaceRmArgs, WorkspaceVerb,
};

/// A heading as clap writes its own; where colours are not wanted it is left plain.
macro_rules! heading {
    ($words:literal) => {
        concat!("\x1b[1m\x1b[4m", $words, ":\x1b[0m\n")
    };
}

/// The commands in groups, since clap makes one list of them. A test holds it to what they say of
/// themselves.
const OVERVIEW: &str = concat!(
    "{about-with-newline}\n{usage-heading} {usage}\n\n",
    heading!("Run"),
    "  run          Run a command in a sandbox
  code         Run code from a file or from standard input
  exec         Run a command in a sandbox that is kept
  shell        Open a shell in a sandbox
  session      Start, read, type into, end and list sessions
  skill        Find, check, call, import and remove skills
  retrieve     Read a page of the web as text\n\n",
    heading!("See what ran"),
    "  ps           List execs
  show         Show the record of an exec
  logs         Print what an exec wrote
  artifact     List and get what an exec put into `/workspace/artifacts`
  cancel       End an exec at a server\n\n",
    heading!("Simulate and review"),
    "  effects      Show what an exec did, or would do
  diff         Show what a simulation, or an exec with `--hold`, would change, as a patch
  apply        Apply the changes of a simulation
  discard      Drop what a simulation, or an exec with `--hold`, wrote\n\n",
    heading!("Files"),
    "  workspace    List, undo, fork and remove workspaces; keep or discard changes that wait
  snapshot     Take, list, compare, restore and remove snapshots of a workspace
  file         Look at, search, change, watch and move the files of a workspace\n\n",
    heading!("Policy and record"),
    "  policy       Ask what policy decides, and why
  approval     Answer what waits for a person, and see what was answered
  secret       Keep secrets, and say who may use them
  audit        Read, verify and export the ledger\n\n",
    heading!("Agents and servers"),
    "  mcp          Serve tools to an agent, by MCP on standard input and output
  serve        Serve the API over HTTP
  token        Make, list and revoke the tokens of a server
  settings     Show and change what an operator may change while servers run
  webhook      List webhooks, and what became of their messages\n\n",
    heading!("This machine"),
    "  doctor       Say what this host can enforce, with evidence and fixes
  backend      Show what execs can run in here, and what each enforces
  sandbox      Make, list, explain and remove sandboxes that outlive an exec
  image        Import, list and remove images for native sandboxes
  cache        List, fill, remove and prune the caches that sandboxes are given
  bench        Measure this program beside the peers found on this host
  completions  Print a completion script for a shell
  man          Print the manual page, or write one page per command\n\n",
    heading!("Global options"),
    "{options}{after-help}"
);

/// Runs any code, command or tool an agent asks for, in real isolation, and keeps a record.
#[derive(Debug, Parser)]
#[command(name = "glovebox", version, max_term_width = 100, help_template = OVERVIEW)]
#[command(disable_help_flag = true)]
#[command(after_help = "Examples:
  glovebox run -- python3 -c 'print(6*7)'       run a command on the current directory
  glovebox run --timeout 30s --json -- pytest   with a limit, and the record as JSON
  glovebox run --simulate -- ./migrate.sh       see what it would do, before it happens
  glovebox workspace undo                       take back what the last exec did to its files
  glovebox mcp install claude                   the tools, in an agent's host
  glovebox serve                                the API, for agents and platforms
  glovebox --server URL run --scratch -- make   the same at a server
  glovebox doctor                               what this host can enforce

`glovebox COMMAND -h` shows the usual options of a command, `--help` all of them.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, listed after its own options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for, no notes
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Ask this server, by HTTP or `unix:/path` [env: GLOVEBOX_SERVER]
    ///
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:/path`.
    /// The token comes from `GLOVEBOX_TOKEN`, from `--token-file`, or, for your own server on this
    /// machine, from its state directory.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<Address>,
    /// Policy and settings, in TOML [env: GLOVEBOX_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where everything durable is kept [env: GLOVEBOX_STATE_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The file that holds the token for the server
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) token_file: Option<PathBuf>,
    /// The authorities that may vouch for the server, in PEM, instead of the system's
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// A policy that is only tried: what it would have decided otherwise is written to the ledger
    /// [env: GLOVEBOX_SHADOW_POLICY]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) shadow_policy: Option<PathBuf>,
    /// A PostgreSQL to keep records in, shared by servers [env: GLOVEBOX_DATABASE]
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub(crate) database: Option<String>,
    /// Where the keys of ledger, tokens and queue lie, when not in the state directory
    /// [env: GLOVEBOX_KEYS_DIR]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) keys_dir: Option<PathBuf>,
    /// The file with the key that seals secrets: 32 bytes in hexadecimal or base64; without it the
    /// one in `GLOVEBOX_SECRETS_KEY`, in the kernel's keyring (`glovebox:secrets`), or a generated
    /// one [env: GLOVEBOX_SECRETS_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) secrets_key_file: Option<PathBuf>,
    /// A directory of skills beside those that come with Glovebox [env: GLOVEBOX_SKILLS_DIR]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) skills_dir: Option<PathBuf>,
    /// Print help: `-h` the usual options, `--help` all of them
    // Our own, so that it stands among these.
    #[arg(long, short, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Code(CodeArgs),
    Exec(ExecArgs),
    Shell(Box<ShellArgs>),
    Session(SessionCommand),
    Skill(SkillCommand),
    Retrieve(RetrieveArgs),
    Ps(PsArgs),
    Show(ShowArgs),
    Logs(LogsArgs),
    Artifact(ArtifactCommand),
    Cancel(CancelArgs),
    Effects(EffectsArgs),
    /// Show what a simulation, or an exec with `--hold`, would change, as a patch
    Diff(ChangesArgs),
    Apply(ApplyArgs),
    Discard(DiscardArgs),
    Workspace(WorkspaceCommand),
    Snapshot(SnapshotCommand),
    File(FileCommand),
    Policy(PolicyCommand),
    Approval(ApprovalCommand),
    Secret(SecretCommand),
    Audit(AuditCommand),
    Mcp(McpCommand),
    Serve(ServeArgs),
    Token(TokenCommand),
    Settings(SettingsCommand),
    Webhook(WebhookCommand),
    Doctor(DoctorArgs),
    Backend(BackendCommand),
    Sandbox(SandboxCommand),
    Image(ImageCommand),
    Cache(CacheCommand),
    Bench(BenchArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Run a command in a sandbox
///
/// The workspace is the current directory, at /workspace/work inside, and the command's exit code
/// is this one's: 124 time-out, 125 Glovebox failed, 126 not executable, 127 not found, 128+N
/// ended by signal N, 130 canceled, 3 refused by policy, 4 not known to the server, 6 held by a
/// gate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox run -- make test
  glovebox run --memory 512M --timeout 30s -- ./untrusted.sh
  glovebox run --simulate -- ./migrate.sh

`glovebox run --help` has all options, exit codes and more examples.")]
#[command(after_long_help = "Examples:
  glovebox run -- make test
  glovebox run --memory 512M --pids 64 -- ./untrusted.sh
  glovebox run --simulate -- ./migrate.sh
  glovebox run --scratch --input data.csv -- wc -l /workspace/inputs/data.csv
  echo hello | glovebox run --stdin -- tr a-z A-Z
  glovebox run -it -- python3
  glovebox run --backend docker --runtime runsc --scratch -- ./untrusted.sh
  glovebox run --require own_kernel --scratch -- ./untrusted.sh
  glovebox run --lifetime agent --agent builder --project demo -- make test
  glovebox run --hold -- ./rewrite-everything.sh
  glovebox run --memory 8G --ask --because 'the linker needs it' -- make
  glovebox --server http://127.0.0.1:7070 run --project demo -- make test")]
pub(crate) struct RunArgs {
    /// Pass standard input through: `--stdin`
    #[arg(long, short, help_heading = "Program")]
    pub(crate) interactive: bool,
    /// Give it a terminal, and attach this one to it; `-it` is the same
    #[arg(long, short, help_heading = "Program")]
    pub(crate) tty: bool,
    #[command(flatten)]
    pub(crate) detach: DetachOptions,
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

/// Run a command in a sandbox that is kept
///
/// It works on that sandbox's own workspace. One exec at a time is in a sandbox; the next waits for
/// its turn. Exit codes are those of `glovebox run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox exec glovebox-builder-0a1b2c3d -- make test
  glovebox exec glovebox-builder-0a1b2c3d --timeout 30s --json -- pytest
  glovebox --server http://127.0.0.1:7070 exec sb_3f0c… -- git status")]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) who: WhoOptions,
    #[command(flatten)]
    pub(crate) options: ExecOptions,
    /// Its name or its id, as `glovebox sandbox ls` shows them
    #[arg(value_name = "SANDBOX")]
    pub(crate) sandbox: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Python,
    Shell,
    Javascript,
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

    #[test]
    fn every_command_is_in_one_group_with_what_it_says_of_itself() {
        let listed: Vec<(&str, String)> = OVERVIEW
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
            .map(|(name, about)| (name, about.trim_start().to_owned()))
            .collect();
        let all = Cli::command();
        let there: Vec<(&str, String)> = all
            .get_subcommands()
            .map(|it| (it.get_name(), it.get_about().unwrap().to_string()))
            .collect();
        assert_eq!(listed, there);
    }

    /// Every option that a command takes, by what is printed.
    fn options(words: &str) -> Vec<String> {
        let printed = Cli::try_parse_from(words.split(' '))
            .unwrap_err()
            .to_string();
        let starts = printed.lines().filter_map(|line| {
            let line = line.trim_start();
            line.starts_with('-').then_some(line)
        });
        starts
            .flat_map(|line| line.split([' ', ',']).take(3))
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_short_help_of_run_has_the_usual_options_and_the_long_one_all() {
        let (short, long) = (options("glovebox run -h"), options("glovebox run --help"));
        assert!(short.len() * 2 < long.len(), "{short:?} {long:?}");
        assert!(short.iter().all(|it| long.contains(it)), "{short:?}");
        for usual in ["--scratch", "--timeout", "--memory", "--simulate", "--json"] {
            assert!(short.iter().any(|it| it == usual), "{usual}");
        }
        let run = Cli::command();
        let run = run.find_subcommand("run").unwrap();
        for option in run.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(long.contains(&format!("--{option}")), "{option}");
        }
    }

    #[test]
    fn global_options_come_last() {
        for words in [
            "glovebox -h",
            "glovebox run -h",
            "glovebox workspace undo --help",
        ] {
            let printed = Cli::try_parse_from(words.split(' '))
                .unwrap_err()
                .to_string();
            let (_, last) = printed.split_once("Global options:\n").unwrap();
            assert!(
                last.contains("--json") && last.contains("-h, --help"),
                "{words}: {last}"
            );
            let after = last.split("Examples:").next().unwrap();
            let heading = |line: &&str| !line.starts_with(' ') && line.ends_with(':');
            assert_eq!(after.lines().find(heading), None, "{words}");
        }
    }
}
