//! Skills.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::RunOptions;

/// Find, check, call, import and remove skills
///
/// A skill is a directory with a `manifest.json`: a program with described inputs and outputs, and
/// with what it may do and use. Some come with Glovebox; a directory of your own is named by
/// `--skills-dir`, `GLOVEBOX_SKILLS_DIR` or `dir` under `[skills]` of the configuration.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill ls
  glovebox skill info text.search
  glovebox skill run python.run code='print(6*7)'
  glovebox skill check ./skills/report.make
  glovebox skill add ./pdf-forms.zip --skills-dir ~/skills")]
pub(crate) struct SkillCommand {
    #[command(subcommand)]
    pub(crate) verb: SkillVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillVerb {
    Ls(SkillLsArgs),
    Info(SkillInfoArgs),
    Check(SkillCheckArgs),
    Run(Box<SkillRunArgs>),
    Add(SkillAddArgs),
    Rm(SkillRmArgs),
}

/// List the skills, those that are not right too
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill ls
  glovebox skill ls --json
  glovebox --server URL skill ls")]
pub(crate) struct SkillLsArgs {}

/// Show a skill: what it takes, answers, may do and use
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill info data.query
  glovebox skill info md.pdf.forms --instructions
  glovebox --server URL skill info shell.run --json")]
pub(crate) struct SkillInfoArgs {
    /// Its id, as `glovebox skill ls` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print the text of its `SKILL.md` alone
    #[arg(long)]
    pub(crate) instructions: bool,
}

/// Check a skill: everything that is wrong with it, each with its line
///
/// Nothing of it is run. A directory with a `SKILL.md` and no manifest is checked as what `skill
/// add` would make of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill check ./skills/report.make
  glovebox skill check ./skills/report.make --json")]
pub(crate) struct SkillCheckArgs {
    /// The skill's directory, which is named as its id
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Call a skill
///
/// Inputs are `NAME=VALUE`, each as the skill's schema says: a text as it is, anything else as JSON.
/// It runs as `glovebox run` does, with the manifest's permissions and limits as one more layer of
/// policy. Prints what it answers; the exit code is the program's, and 1 when what it answered is
/// not what the manifest promises.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill run shell.run script='ls -l'
  glovebox skill run text.search pattern='fn main' glob='*.rs' max_matches=20
  glovebox skill run data.query --inputs '{\"database\": \"app.db\", \"sql\": \"SELECT 1\"}'
  glovebox skill run json.query --inputs @query.json --json
  glovebox --server URL skill run python.run --project demo code='print(1)'")]
pub(crate) struct SkillRunArgs {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// Its id, as `glovebox skill ls` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// All inputs as one JSON object; `@FILE` reads it from a file, `-` from standard input
    #[arg(long, value_name = "JSON", help_heading = "Program")]
    pub(crate) inputs: Option<String>,
    /// Single inputs, which count before `--inputs`
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) given: Vec<String>,
}

/// Take a skill into your directory of skills
///
/// Either form is taken: a `manifest.json`, or a `SKILL.md` with front matter, for which a manifest
/// is made. It is checked first, and is there whole or not at all. Where it takes the place of another,
/// what it may do and use is compared: more than before, and the place of one that came with Glovebox,
/// is asked about.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill add ./report.make --skills-dir ~/skills
  glovebox skill add ./pdf-forms.tar.gz
  glovebox skill add ./pdf-forms --replace")]
pub(crate) struct SkillAddArgs {
    /// A directory, a tar archive (plain, gzip or zstd) or a ZIP archive
    #[arg(value_name = "DIR|FILE")]
    pub(crate) source: PathBuf,
    /// Put it into the place of one with the same id
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do not ask, also where it may do or use more than the one before it
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Remove a skill from your directory of skills
///
/// Its whole directory goes, whatever is wrong with it. Those that come with Glovebox stay; policy
/// denies them: `deny` under `[tools]`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox skill rm report.make
  glovebox skill rm md.pdf.forms --skills-dir ~/skills")]
pub(crate) struct SkillRmArgs {
    /// Its id, or the name of its directory, as `glovebox skill ls` shows it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}
