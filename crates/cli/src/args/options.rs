//! The options of whatever runs something, in the groups that commands take.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::simulation::SimulationOptions;
use clap::Args;
use clap::builder::{
    PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser, ValueParserFactory,
};
use glovebox_model::{
    Access, BackendName, BackendRef, Bytes, Count, Cpus, Guarantee, HostPort, Lifetime, Millis,
    NetworkMode, OnExceed, ProjectId, Tier, Writes,
};

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
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
    #[command(flatten)]
    pub(crate) simulation: SimulationOptions,
}

/// Where it runs and on which files.
#[derive(Debug, Default, Args)]
pub(crate) struct PlaceOptions {
    /// Work on a workspace that Glovebox keeps, by name, instead of the current directory
    #[arg(long, value_name = "ID", help_heading = "Workspace")]
    pub(crate) project: Option<ProjectId>,
    /// Work on an empty workspace that is gone afterwards
    #[arg(long, conflicts_with = "project", help_heading = "Workspace")]
    pub(crate) scratch: bool,
    /// May the workspace be changed?
    #[arg(
        long,
        value_name = "ACCESS",
        value_parser = access(),
        help_heading = "Workspace",
        hide_short_help = true,
    )]
    pub(crate) workspace: Option<Access>,
    /// Interpreters from your home to show inside, read-only: `auto`, `off`, a kind or a directory
    #[arg(
        long,
        value_name = "WHAT",
        help_heading = "Workspace",
        hide_short_help = true
    )]
    pub(crate) toolchain: Vec<OsString>,

    /// How long its sandbox lives: `exec` is a fresh one; the others are kept for the session, the
    /// agent or everybody
    #[arg(
        long,
        value_name = "HOW",
        value_parser = lifetime(&Lifetime::ALL),
        help_heading = "Sandbox",
        hide_short_help = true,
    )]
    pub(crate) lifetime: Option<Lifetime>,
    /// Run it in this sandbox that is kept, on its workspace
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = [
            "lifetime", "project", "scratch", "toolchain", "backend", "runtime", "image"
        ],
        help_heading = "Sandbox",
        hide_short_help = true,
    )]
    pub(crate) sandbox: Option<String>,
}

/// What it runs in. Naming one never lowers what policy demands.
#[derive(Debug, Default, Args)]
pub(crate) struct BackendOptions {
    /// What it runs in; `docker:runsc` names a runtime too
    #[arg(long, value_name = "NAME", value_parser = BackendParser, help_heading = "Sandbox")]
    pub(crate) backend: Option<BackendRef>,
    /// The container runtime, such as `runsc`
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Sandbox",
        hide_short_help = true
    )]
    pub(crate) runtime: Option<String>,
    /// The image that is its root directory
    #[arg(long, value_name = "NAME", help_heading = "Sandbox")]
    pub(crate) image: Option<String>,
}

/// What a sandbox is made with, and what must hold for it.
#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// Memory (`512M`)
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) memory: Option<Bytes>,
    /// Processes and threads
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) pids: Option<Count>,
    /// Processors (`0.5`, `2`)
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) cpus: Option<Cpus>,
    /// End it after this much processor time
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) cpu_time: Option<Millis>,
    /// New bytes on disk
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) disk: Option<Bytes>,
    /// New files on disk
    #[arg(
        long,
        value_name = "N",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) files: Option<Count>,
    /// Open files of one process
    #[arg(
        long,
        value_name = "N",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) open_files: Option<Count>,
    /// Graphics processors, if policy grants them
    #[arg(
        long,
        value_name = "N",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) gpus: Option<Count>,
    /// Tensor processors, if policy grants them
    #[arg(
        long,
        value_name = "N",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) tpus: Option<Count>,
    /// Bytes over the network, in both directions together
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) egress_bytes: Option<Bytes>,
    /// Connections over the network
    #[arg(
        long,
        value_name = "N",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) egress_connections: Option<Count>,
    /// Close the network this long after the start
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) network_time: Option<Millis>,
    /// Refuse unless the kernel keeps this; may be given more than once. `kernel-limits`: every
    /// limit, so that none is only watched
    #[arg(
        long,
        value_name = "WHAT",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) require: Vec<Requirement>,
    /// What happens when a flag asks for more than policy allows
    #[arg(
        long,
        value_name = "HOW",
        value_parser = on_exceed(),
        default_value = "refuse",
        help_heading = "Limits",
        hide_short_help = true,
    )]
    pub(crate) on_exceed: OnExceed,
}

/// On whose behalf.
#[derive(Debug, Default, Args)]
pub(crate) struct WhoOptions {
    /// The agent this is for
    #[arg(long, value_name = "ID", value_parser = id, help_heading = "Sandbox")]
    pub(crate) agent: Option<String>,
    /// The session this is for
    #[arg(long, value_name = "ID", value_parser = id, help_heading = "Sandbox")]
    pub(crate) session: Option<String>,
    /// The conversation this belongs to: what a person allows in one holds in no other
    #[arg(
        long,
        value_name = "ID",
        value_parser = id,
        help_heading = "Policy",
        hide_short_help = true,
    )]
    pub(crate) conversation: Option<String>,
}

/// What is one exec's alone.
#[derive(Debug, Args)]
pub(crate) struct ExecOptions {
    /// Working directory, relative to the workspace or absolute below /workspace
    #[arg(long, value_name = "DIR", help_heading = "Workspace")]
    pub(crate) cwd: Option<OsString>,
    /// Put a file into /workspace/inputs, read-only; `FILE:NAME` gives it another name
    #[arg(long, value_name = "FILE[:NAME]", help_heading = "Workspace")]
    pub(crate) input: Vec<OsString>,
    /// Write beside the workspace; `glovebox workspace changes|keep|discard EXEC` decides later
    #[arg(long, conflicts_with = "keep_if_ok", help_heading = "Workspace")]
    pub(crate) hold: bool,
    /// Write beside the workspace, and keep it only if the exec succeeds
    #[arg(long, help_heading = "Workspace", hide_short_help = true)]
    pub(crate) keep_if_ok: bool,

    /// End it after this time (`30s`, `5m`)
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub(crate) timeout: Option<Millis>,
    /// Bytes of stdout and of stderr that are kept; the rest is read and dropped
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) max_output: Option<Bytes>,
    /// Bytes of artifacts that are kept
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Limits",
        hide_short_help = true
    )]
    pub(crate) max_artifacts: Option<Bytes>,

    /// Set an environment variable; nothing is inherited
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Program")]
    pub(crate) env: Vec<OsString>,
    /// A secret that it needs, by name; repeatable
    ///
    /// `glovebox secret set` sets one. You are asked about it unless it is granted. HOW it is given:
    /// as a `file` in /run/secrets, as a `descriptor`, through the `broker`, or in the `env`;
    /// VARIABLE says where it is.
    #[arg(long, value_name = "NAME[=HOW][:VARIABLE]", help_heading = "Program")]
    pub(crate) secret: Vec<OsString>,
    /// Pass standard input through
    #[arg(long, help_heading = "Program")]
    pub(crate) stdin: bool,
    /// Also write the record as JSON to this file
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Program",
        hide_short_help = true
    )]
    pub(crate) report: Option<PathBuf>,
    /// Your own name for this exec, unique in its space for each agent
    #[arg(
        long,
        value_name = "ID",
        help_heading = "Program",
        hide_short_help = true
    )]
    pub(crate) client_id: Option<glovebox_model::ClientId>,
    /// The task this belongs to, for the record
    #[arg(
        long,
        value_name = "ID",
        help_heading = "Program",
        hide_short_help = true
    )]
    pub(crate) task_id: Option<String>,

    /// Declare how dangerous this is; higher tiers get less
    #[arg(
        long,
        value_name = "TIER",
        value_parser = tier(),
        help_heading = "Policy",
        hide_short_help = true,
    )]
    pub(crate) tier: Option<Tier>,
    /// Network: `none`, unless policy grants more
    #[arg(long, value_name = "MODE", value_parser = network(), help_heading = "Policy")]
    pub(crate) net: Option<NetworkMode>,
    /// A destination to reach, if policy grants it
    #[arg(long, value_name = "HOST:PORT", help_heading = "Policy")]
    pub(crate) allow_net: Vec<HostPort>,
    /// Ask a person for what a flag wants beyond policy: `--on-exceed ask`
    #[arg(long, conflicts_with = "on_exceed", help_heading = "Policy")]
    pub(crate) ask: bool,
    /// Why, for whoever is asked
    #[arg(
        long,
        value_name = "TEXT",
        value_parser = because,
        help_heading = "Policy",
        hide_short_help = true,
    )]
    pub(crate) because: Option<String>,
    /// Where a person has to agree first, do not wait for the answer but exit with 5; at a server
    /// the request stays, and `glovebox approval approve ID --run` goes on
    #[arg(long, help_heading = "Policy", hide_short_help = true)]
    pub(crate) no_wait: bool,
    /// A directory of the host that the operator grants (`host_mounts`), by its place inside; you
    /// are asked about it. Repeatable
    #[arg(
        long,
        value_name = "PLACE",
        help_heading = "Policy",
        hide_short_help = true
    )]
    pub(crate) mount: Vec<String>,
}

impl ExecOptions {
    pub(crate) const fn writes(&self) -> Writes {
        match (self.hold, self.keep_if_ok) {
            (true, _) => Writes::Held,
            (false, true) => Writes::IfOk,
            (false, false) => Writes::Direct,
        }
    }
}

/// Something without which it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requirement {
    KernelLimits,
    Guarantee(Guarantee),
}

impl ValueParserFactory for Requirement {
    type Parser = RequirementParser;

    fn value_parser() -> Self::Parser {
        RequirementParser
    }
}

/// Guarantees under the names that they have everywhere, with `_` or `-` between words.
#[derive(Debug, Clone)]
pub(crate) struct RequirementParser;

impl TypedValueParser for RequirementParser {
    type Value = Requirement;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Requirement, clap::Error> {
        let word = value.to_str().map(|text| text.replace('-', "_"));
        let named = Guarantee::ALL
            .into_iter()
            .find(|it| Some(it.as_str()) == word.as_deref());
        match (named, word.as_deref()) {
            (Some(guarantee), _) => Ok(Requirement::Guarantee(guarantee)),
            (None, Some("kernel_limits")) => Ok(Requirement::KernelLimits),
            // Refuses, and says which there are.
            _ => PossibleValuesParser::new(requirements())
                .parse_ref(command, arg, value)
                .map(|_| Requirement::KernelLimits),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(requirements().map(PossibleValue::new)))
    }
}

fn requirements() -> impl Iterator<Item = &'static str> {
    std::iter::once("kernel-limits").chain(Guarantee::ALL.into_iter().map(Guarantee::as_str))
}

/// A backend, with its runtime after a colon where it has one.
#[derive(Debug, Clone)]
pub(super) struct BackendParser;

impl TypedValueParser for BackendParser {
    type Value = BackendRef;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<BackendRef, clap::Error> {
        // Whoever mistypes a plain name is shown the list; with a runtime it is none of a list.
        match value.as_encoded_bytes().contains(&b':') {
            true => StringValueParser::new()
                .try_map(|text| text.parse::<BackendRef>())
                .parse_ref(command, arg, value),
            false => words(BackendName::ALL.map(|it| (it.as_str(), it)))
                .parse_ref(command, arg, value)
                .map(BackendRef::from),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = BackendName::ALL.map(BackendName::as_str);
        Some(Box::new(names.into_iter().map(PossibleValue::new)))
    }
}

/// Words that each stand for a value, as the API writes them.
pub(super) fn words<T>(
    all: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let all: Vec<_> = all.into_iter().collect();
    PossibleValuesParser::new(all.iter().map(|(word, _)| *word)).try_map(move |text| {
        let found = all.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or("not one of them")
    })
}

pub(super) fn lifetime(some: &'static [Lifetime]) -> impl TypedValueParser<Value = Lifetime> {
    words(some.iter().map(|it| (it.as_str(), *it)))
}

fn tier() -> impl TypedValueParser<Value = Tier> {
    words(Tier::ALL.map(|it| (it.as_str(), it)))
}

fn network() -> impl TypedValueParser<Value = NetworkMode> {
    words(NetworkMode::ALL.map(|it| (it.as_str(), it)))
}

fn access() -> impl TypedValueParser<Value = Access> {
    words([
        ("none", Access::None),
        ("ro", Access::Ro),
        ("rw", Access::Rw),
    ])
}

fn on_exceed() -> impl TypedValueParser<Value = OnExceed> {
    words([
        ("refuse", OnExceed::Refuse),
        ("cap", OnExceed::Cap),
        ("ask", OnExceed::Ask),
    ])
}

/// As many characters as the API takes.
fn because(text: &str) -> Result<String, &'static str> {
    match text.chars().count() {
        1..=2000 => Ok(text.to_owned()),
        _ => Err("a reason has 1 to 2000 characters"),
    }
}

/// The caller's own text, as long as the API takes it.
pub(super) fn id(text: &str) -> Result<String, &'static str> {
    match text.chars().count() {
        1..=255 => Ok(text.to_owned()),
        _ => Err("an id has 1 to 255 characters"),
    }
}
