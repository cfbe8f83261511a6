//! Reading the ledger.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use glovebox_model::{Mode, SpaceId};
use glovebox_store::{ExportFormat, Kind, RetentionTier};

/// Read, verify and export the ledger
///
/// Every exec leaves two entries: what was planned, on disk before it started, and how it ended.
/// Each entry holds the hash of the one before it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox audit tail --follow
  glovebox audit query --kind refused --since 1d
  glovebox audit timeline build-12
  glovebox audit verify
  glovebox audit export --output ledger.jsonl")]
pub(crate) struct AuditCommand {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    Tail(TailArgs),
    Query(QueryArgs),
    Timeline(TimelineArgs),
    Verify(VerifyArgs),
    Export(ExportArgs),
}

/// Print the newest entries, the newest last
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox audit tail
  glovebox audit tail -n 100 --json
  glovebox audit tail --follow")]
pub(crate) struct TailArgs {
    /// At most so many
    #[arg(long = "lines", short = 'n', value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) lines: u16,
    /// Go on with those that come
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Find entries, the newest first
///
/// Entries that match everything that is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox audit query --exec e_3f0c
  glovebox audit query --kind refused --since 7d
  glovebox audit query --tag simulation_mode --tag failure
  glovebox audit query --mode transactional --tier cold
  glovebox audit query --task build-12 --since 2026-08-01 --until 2026-08-02 --json")]
pub(crate) struct QueryArgs {
    /// Of this exec; enough of the beginning of its id will do
    #[arg(long, value_name = "ID")]
    pub(crate) exec: Option<String>,
    /// What happened
    #[arg(long, value_name = "KIND", value_parser = kind())]
    pub(crate) kind: Option<Kind>,
    /// From this time on: `2026-08-01`, `2026-08-01T10:00:00Z`, or `2h` ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Of this workflow
    #[arg(long, value_name = "ID")]
    pub(crate) workflow: Option<String>,
    /// Of this agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Of this sandbox, by its whole id
    #[arg(long, value_name = "ID")]
    pub(crate) sandbox: Option<String>,
    /// With this tag, such as `success` or `status:failed`; given more than once, with all of them
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Of execs of this mode
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub(crate) mode: Option<Mode>,
    /// So bad; what is only information has none
    #[arg(long, value_name = "SEVERITY", value_parser = ["warning", "error", "critical"])]
    pub(crate) severity: Option<String>,
    /// So old: of the last 24 hours, 7 days, 30 days, or older
    #[arg(long, value_name = "TIER", value_parser = tier())]
    pub(crate) tier: Option<RetentionTier>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

fn kind() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::as_str))
        .try_map(|text| Kind::parse(&text).ok_or("not a kind"))
}

fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::as_str)).try_map(|text| {
        let mode = Mode::ALL.into_iter().find(|mode| mode.as_str() == text);
        mode.ok_or("not a mode")
    })
}

fn tier() -> impl TypedValueParser<Value = RetentionTier> {
    PossibleValuesParser::new(RetentionTier::ALL.map(RetentionTier::as_str))
        .try_map(|text| RetentionTier::parse(&text).ok_or("not a tier"))
}

/// Show everything of one task in order: what was planned, and how it ended
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox audit timeline build-12
  glovebox audit timeline build-12 --json")]
pub(crate) struct TimelineArgs {
    /// The task's id, as `--task` gave it
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// At most so many steps
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// Check that no one changed the ledger or the rows it vouches for
///
/// Looks at all spaces: at every entry, at the records of execs, and at tokens, settings, approvals,
/// grants, secrets and sandboxes. Exits with 0 when all is sound and 1 when it is not, and says where. A person who has the
/// ledger's key can write a whole new one: a receipt or a checkpoint that was kept elsewhere shows
/// that too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox audit verify
  glovebox audit verify --receipt 4:5f1c…
  glovebox audit verify --receipt team-a:17:90ab…
  glovebox audit verify --checkpoint last-week.jsonl
  glovebox audit verify --export ledger.jsonl")]
pub(crate) struct VerifyArgs {
    /// A receipt that was kept: this entry must be there; may be given more than once
    ///
    /// Of the space `local`, or of the one that `--space` names; `SPACE:SEQ:HASH` is of another.
    #[arg(long, value_name = "SEQ:HASH")]
    pub(crate) receipt: Vec<String>,
    /// A file that ends with a signed checkpoint, such as an older export
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// The public key that must have signed it, in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub(crate) public_key: Option<String>,
    /// Verify this export (`-` is standard input) instead of the state directory
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Only this space
    #[arg(long, value_name = "SPACE", conflicts_with = "export")]
    pub(crate) space: Option<SpaceId>,
}

/// Write the whole ledger out, of all spaces
///
/// With the digests of the rows that it vouches for, so that it verifies elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox audit export > ledger.jsonl
  glovebox audit export --format ocsf --output events.jsonl
  glovebox audit export | glovebox audit verify --export -")]
pub(crate) struct ExportArgs {
    /// `jsonl` can be verified elsewhere; `ocsf` is for a SIEM
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "jsonl")]
    pub(crate) format: ExportFormatArg,
    /// Where to; standard output when it is left out or `-`
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Only this space
    #[arg(long, value_name = "SPACE")]
    pub(crate) space: Option<SpaceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormatArg {
    Jsonl,
    Ocsf,
}

impl From<ExportFormatArg> for ExportFormat {
    fn from(format: ExportFormatArg) -> Self {
        match format {
            ExportFormatArg::Jsonl => Self::Jsonl,
            ExportFormatArg::Ocsf => Self::Ocsf,
        }
    }
}
