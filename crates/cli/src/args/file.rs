//! The files of a workspace, from outside of it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::WhichOptions;

/// Look at, search, change, watch and move the files of a workspace
///
/// Paths are relative to the workspace, as its programs see them below `/workspace/work`, and never
/// lead out of it. Which workspace: `--project NAME`, else the current directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file ls --project demo
  glovebox file cat --project demo src/main.py
  echo hello | glovebox file write --project demo notes.txt
  glovebox --server http://127.0.0.1:7070 file upload --project demo ./src src")]
pub(crate) struct FileCommand {
    #[command(subcommand)]
    pub(crate) verb: FileVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FileVerb {
    Ls(FileLsArgs),
    Cat(CatArgs),
    Write(WriteArgs),
    Stat(StatArgs),
    Mkdir(MkdirArgs),
    Rm(FileRmArgs),
    Mv(MvArgs),
    Cp(CpArgs),
    Grep(GrepArgs),
    Glob(GlobArgs),
    Replace(ReplaceArgs),
    Watch(WatchArgs),
    Upload(UploadArgs),
    Download(DownloadArgs),
}

/// Something in a workspace.
#[derive(Debug, Args)]
pub(crate) struct AtOptions {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    #[arg(value_name = "PATH")]
    pub(crate) path: OsString,
}

/// A directory of a workspace with everything below it.
#[derive(Debug, Args)]
pub(crate) struct UnderOptions {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// The directory; the workspace itself when it is left out
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<OsString>,
}

/// List a directory of a workspace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file ls --project demo
  glovebox file ls --project demo src --depth 3 --json")]
pub(crate) struct FileLsArgs {
    #[command(flatten)]
    pub(crate) under: UnderOptions,
    /// So many directories deep
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) depth: u16,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

/// Print a file of a workspace, or a part of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file cat --project demo notes.txt
  glovebox file cat --project demo big.log --range 0-1023
  glovebox file cat --project demo big.log --range -4096")]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub(crate) at: AtOptions,
    /// Bytes A to B, both included and counted from 0; `A-` to the end, `-N` the last N
    #[arg(long, value_name = "A-B", allow_hyphen_values = true)]
    pub(crate) range: Option<ByteRange>,
}

/// Part of a file, as HTTP names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteRange {
    From { first: u64, last: Option<u64> },
    Last(u64),
}

impl std::str::FromStr for ByteRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HOW: &str = "write `0-99`, `100-` or `-50`";
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| HOW),
            false => Err(HOW),
        };
        let (first, last) = text.split_once('-').ok_or(HOW)?;
        match (first, last) {
            ("", last) => number(last).map(Self::Last),
            (first, "") => Ok(Self::From {
                first: number(first)?,
                last: None,
            }),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                match first <= last {
                    true => Ok(Self::From {
                        first,
                        last: Some(last),
                    }),
                    false => Err("the range ends before it begins"),
                }
            }
        }
    }
}

/// Write a file of a workspace, whole or not at all; directories on the way are made
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo hello | glovebox file write --project demo notes.txt
  glovebox file write --project demo src/main.py main.py
  glovebox file write --project demo run.sh run.sh --mode 755 --new")]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(crate) at: AtOptions,
    /// What it will hold; standard input when it is left out or `-`
    #[arg(value_name = "FILE")]
    pub(crate) source: Option<PathBuf>,
    /// Permissions, as `644`
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<u32>,
    /// Only over the file with this mark, as `stat` and `ls --json` give it
    #[arg(long, value_name = "ETAG", conflicts_with = "new")]
    pub(crate) if_match: Option<String>,
    /// Only where nothing stands
    #[arg(long)]
    pub(crate) new: bool,
}

fn mode(text: &str) -> Result<u32, &'static str> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("permissions are three octal digits, as `644`"),
    }
}

/// Show what stands at a path of a workspace; a link is not followed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file stat --project demo notes.txt
  glovebox file stat --project demo . --json")]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) at: AtOptions,
}

/// Make a directory in a workspace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file mkdir --project demo src
  glovebox file mkdir --project demo --parents a/b/c")]
pub(crate) struct MkdirArgs {
    #[command(flatten)]
    pub(crate) at: AtOptions,
    /// Make those that are missing on the way; one that is there is no error
    #[arg(long, short)]
    pub(crate) parents: bool,
}

/// Remove files of a workspace; a link goes, what it points at stays
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file rm --project demo notes.txt
  glovebox file rm --project demo --recursive build dist")]
pub(crate) struct FileRmArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<OsString>,
    /// Directories too, with everything in them
    #[arg(long, short)]
    pub(crate) recursive: bool,
}

/// Where to, and what may be there.
#[derive(Debug, Args)]
pub(crate) struct FromTo {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    #[arg(value_name = "FROM")]
    pub(crate) from: OsString,
    /// The new path itself, not a directory to put it into
    #[arg(value_name = "TO")]
    pub(crate) to: OsString,
    /// Replace a file that is there
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Make directories that are missing on the way
    #[arg(long, short)]
    pub(crate) parents: bool,
}

/// Move a file or a directory within a workspace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file mv --project demo draft.txt final.txt
  glovebox file mv --project demo --parents src old/src")]
pub(crate) struct MvArgs {
    #[command(flatten)]
    pub(crate) paths: FromTo,
}

/// Copy a file or a directory within a workspace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file cp --project demo config.toml config.bak
  glovebox file cp --project demo src src-2 --json")]
pub(crate) struct CpArgs {
    #[command(flatten)]
    pub(crate) paths: FromTo,
}

/// Search the files of a workspace for a regular expression
///
/// The exit code is 1 when nothing is found. Files that are not text are passed over.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file grep --project demo 'def \\w+'
  glovebox file grep --project demo --fixed 'a[0]' src --include '*.py'
  glovebox file grep --project demo -i todo --context 2 --json")]
pub(crate) struct GrepArgs {
    /// The expression, or with `--fixed` the text
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: String,
    #[command(flatten)]
    pub(crate) under: UnderOptions,
    /// Look for the text itself
    #[arg(long, short = 'F')]
    pub(crate) fixed: bool,
    /// Take upper and lower case for the same
    #[arg(long, short)]
    pub(crate) ignore_case: bool,
    /// So many lines before and after
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=20))]
    pub(crate) context: u8,
    /// Only files that this pattern matches; may be given more than once
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Neither files nor directories that this pattern matches; may be given more than once
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Also names that begin with a dot
    #[arg(long)]
    pub(crate) hidden: bool,
    /// At most so many lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=5000))]
    pub(crate) limit: u16,
}

/// Find the files of a workspace by a pattern
///
/// `*` and `?` stay within a name, `**` crosses directories. The exit code is 1 when nothing is
/// found.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file glob --project demo '**/*.py'
  glovebox file glob --project demo '*.md' docs --json")]
pub(crate) struct GlobArgs {
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: String,
    #[command(flatten)]
    pub(crate) under: UnderOptions,
    /// Also names that begin with a dot
    #[arg(long)]
    pub(crate) hidden: bool,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
}

/// Replace a text in a file of a workspace; it must be there exactly once
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file replace --project demo app.py 'debug = True' 'debug = False'
  glovebox file replace --project demo app.py colour color --all --json")]
pub(crate) struct ReplaceArgs {
    #[command(flatten)]
    pub(crate) at: AtOptions,
    #[arg(value_name = "OLD", allow_hyphen_values = true)]
    pub(crate) old: String,
    #[arg(value_name = "NEW", allow_hyphen_values = true)]
    pub(crate) new: String,
    /// Everywhere in the file
    #[arg(long)]
    pub(crate) all: bool,
    /// Only in the file with this mark
    #[arg(long, value_name = "ETAG")]
    pub(crate) if_match: Option<String>,
}

/// Print what changes in a workspace, as it happens, until Ctrl-C
///
/// One line for each change; with `--json` one object.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file watch --project demo
  glovebox file watch --project demo src --json")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) under: UnderOptions,
    /// End after so many changes
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<u64>,
}

/// Put a directory or an archive of this machine into a workspace: all of it, or nothing
///
/// What has the same name is replaced; nothing else is touched. An archive is a tar (plain, gzip or
/// zstd) or a zip; one that would leave the workspace is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file upload --project demo ./src src
  glovebox file upload --project demo release.tar.gz
  tar -c . | glovebox file upload --project demo - --json")]
pub(crate) struct UploadArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// A directory, an archive, or `-` for an archive on standard input
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,
    /// The directory that it goes into, made when it is not there; the workspace itself without it
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<OsString>,
}

/// Get a workspace, or a directory of it, as an archive or as a directory of this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox file download --project demo --output demo.tar.zst
  glovebox file download --project demo src --output ./src
  glovebox file download --project demo --format tar --output - | tar -t")]
pub(crate) struct DownloadArgs {
    #[command(flatten)]
    pub(crate) under: UnderOptions,
    /// An archive, `-` for one on standard output, or a directory to unpack into
    #[arg(long, short, value_name = "DEST")]
    pub(crate) output: PathBuf,
    /// The archive's form; without it, as DEST ends
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ArchiveFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArchiveFormat {
    #[value(name = "tar")]
    Tar,
    #[value(name = "tar.gz")]
    TarGzip,
    #[value(name = "tar.zst")]
    TarZstd,
    #[value(name = "zip")]
    Zip,
}

impl ArchiveFormat {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::TarGzip => "tar.gz",
            Self::TarZstd => "tar.zst",
            Self::Zip => "zip",
        }
    }

    /// By what a file's name ends in.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        match () {
            () if ends(&[".tar"]) => Some(Self::Tar),
            () if ends(&[".tar.gz", ".tgz"]) => Some(Self::TarGzip),
            () if ends(&[".tar.zst", ".tzst"]) => Some(Self::TarZstd),
            () if ends(&[".zip"]) => Some(Self::Zip),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_as_in_http() {
        let range = |text: &str| text.parse::<ByteRange>();
        let from = |first, last| Ok(ByteRange::From { first, last });
        assert_eq!(range("0-99"), from(0, Some(99)));
        assert_eq!(range("7-7"), from(7, Some(7)));
        assert_eq!(range("100-"), from(100, None));
        assert_eq!(range("-50"), Ok(ByteRange::Last(50)));
        for wrong in ["", "-", "5", "9-3", "a-b", "+1-2", "1-2-3", "--1"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_form_of_an_archive_is_in_its_name() {
        for (name, form) in [
            ("a.tar", Some(ArchiveFormat::Tar)),
            ("a.tgz", Some(ArchiveFormat::TarGzip)),
            ("a.b.tar.zst", Some(ArchiveFormat::TarZstd)),
            ("a.zip", Some(ArchiveFormat::Zip)),
            ("a", None),
            ("tar", None),
        ] {
            assert_eq!(ArchiveFormat::of_name(name), form, "{name}");
        }
    }
}
