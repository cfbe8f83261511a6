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
mod options;
mod policy;
mod retrieve;
mod sandbox;
mod secret;
mod serve;
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

/// Runs any code, command or tool an agent asks for, in real isolation, and keeps a record.
#[derive(Debug, Parser)]
#[command(name = "glovebox", version, max_term_width = 100)]
#[command(after_help = "Examples:
  glovebox run -- python3 -c 'print(6*7)'       run a command on the current directory
  glovebox run --timeout 30s --json -- pytest   with a limit, and the record as JSON
  glovebox code python script.py                run code from a file or from standard input
  glovebox exec SANDBOX -- make test            run it in a sandbox that is kept
  glovebox ps --all                             what ran, newest first
  glovebox workspace undo                       take back what the last exec did to its files
  glovebox serve                                the API, for agents and platforms
  glovebox mcp install claude                   the tools, in an agent's host
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
    /// A policy that is only tried: what it would have decided otherwise is written to the ledger
    /// [env: GLOVEBOX_SHADOW_POLICY]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) shadow_policy: Option<PathBuf>,
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
    /// The file with the key that seals secrets: 32 bytes in hexadecimal or base64; without it the
    /// one in `GLOVEBOX_SECRETS_KEY`, in the kernel's keyring (`glovebox:secrets`), or a generated
    /// one [env: GLOVEBOX_SECRETS_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) secrets_key_file: Option<PathBuf>,
    /// A directory of skills beside those that come with Glovebox [env: GLOVEBOX_SKILLS_DIR]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) skills_dir: Option<PathBuf>,
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
    Exec(ExecArgs),
    Ps(PsArgs),
    Show(ShowArgs),
    Logs(LogsArgs),
    Cancel(CancelArgs),
    Effects(EffectsArgs),
    /// Show what a simulation, or an exec with `--hold`, would change, as a patch
    Diff(ChangesArgs),
    Apply(ApplyArgs),
    Discard(DiscardArgs),
    Serve(ServeArgs),
    Mcp(McpCommand),
    Token(TokenCommand),
    Settings(SettingsCommand),
    Sandbox(SandboxCommand),
    Workspace(WorkspaceCommand),
    Snapshot(SnapshotCommand),
    File(FileCommand),
    Artifact(ArtifactCommand),
    Cache(CacheCommand),
    Retrieve(RetrieveArgs),
    Skill(SkillCommand),
    Webhook(WebhookCommand),
    Image(ImageCommand),
    Backend(BackendCommand),
    Doctor(DoctorArgs),
    Bench(BenchArgs),
    Policy(PolicyCommand),
    Approval(ApprovalCommand),
    Secret(SecretCommand),
    Audit(AuditCommand),
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
  glovebox run --memory 512M --pids 64 -- ./untrusted.sh
  glovebox run --simulate -- ./migrate.sh
  glovebox run --scratch --input data.csv -- wc -l /workspace/inputs/data.csv
  echo hello | glovebox run --stdin -- tr a-z A-Z
  glovebox run --backend docker --runtime runsc --scratch -- ./untrusted.sh
  glovebox run --require own_kernel --scratch -- ./untrusted.sh
  glovebox run --lifetime agent --agent builder --project demo -- make test
  glovebox run --hold -- ./rewrite-everything.sh
  glovebox run --memory 8G --ask --because 'the linker needs it' -- make
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
}
