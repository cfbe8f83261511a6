//! `glovebox file upload` and `download`: whole trees as archives.

use std::fs::File;
use std::io::{IsTerminal, Seek};
use std::path::Path;
use std::time::Duration;

use glovebox_api::UnpackAnswer;
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::archive::UnpackLimits;
use glovebox_workspace::files::{self, DownloadLimits, Format, Parents, Placement, Source};
use glovebox_workspace::{Dir, RelPath};
use serde::Serialize;

use super::start;
use crate::args::{ArchiveFormat, DownloadArgs, Global, UploadArgs};
use crate::context::directory;
use crate::exit::Exit;
use crate::fresh_file::FreshFile;
use crate::human::{count, size};
use crate::screen::Screen;
use crate::stop::{Stop, canceled};
use crate::workspaces::{self, Missing, Workspace};
use crate::{render, stdout};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

pub(super) fn upload(global: &Global, args: &UploadArgs) -> Result<Exit> {
    let path = start(args.path.as_deref())?;
    let archive = archive(&args.source)?;
    let workspace = workspaces::open(global, &args.which, Missing::Make)?;
    let unpacked = workspace.upload(path.as_ref(), archive)?;
    if global.json {
        stdout::json(&unpacked)?;
    } else if !global.quiet {
        let files = count(unpacked.files, "file", "files");
        render::note(&format!("{files}, {} uploaded", size(unpacked.bytes)));
    }
    Ok(Exit::SUCCESS)
}

/// From its beginning, without a name of its own if it was made here.
fn archive(source: &Path) -> Result<File> {
    if source == Path::new("-") {
        let mut stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Err(invalid("standard input is a terminal, not an archive")
                .hint("`tar -c DIR | glovebox file upload -`"));
        }
        let mut spool = spool()?;
        let most = UnpackLimits::FILES.total_bytes + 1;
        let copied = std::io::copy(&mut std::io::Read::take(&mut stdin, most), &mut spool);
        copied.map_err(|error| invalid("cannot read standard input").caused_by(error))?;
        return rewound(spool);
    }
    let shown = source.display();
    let failed = |error| invalid(format!("cannot read `{shown}`")).caused_by(error);
    let file = File::open(source).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_dir() {
        return Ok(file);
    }
    let mut spool = spool()?;
    let (dir, limits) = (directory(source)?, DownloadLimits::default());
    let packed = files::download(&dir, None, Format::TarZstd, limits, &mut spool);
    let packed = packed.map_err(|error| error.at(Stage::Parse))?;
    if packed.skipped > 0 {
        let skipped = count(packed.skipped, "entry is", "entries are");
        render::note(&format!(
            "{skipped} left out: neither file, directory nor link, or not readable"
        ));
    }
    rewound(spool)
}

fn spool() -> Result<File> {
    tempfile::tempfile().map_err(|error| {
        Error::new(Code::DiskFull, Stage::Open, "cannot make a temporary file")
            .caused_by(error)
            .hint("`TMPDIR` names another place for it")
    })
}

fn rewound<F: Seek>(mut file: F) -> Result<F> {
    file.rewind()
        .map_err(|error| invalid("cannot read the archive again").caused_by(error))?;
    Ok(file)
}

#[derive(Debug, Serialize)]
struct Downloaded<'d> {
    output: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unpacked: Option<UnpackAnswer>,
}

pub(super) fn download(global: &Global, args: &DownloadArgs) -> Result<Exit> {
    let path = start(args.under.path.as_deref())?;
    let output = args.output.as_path();
    let name = output.to_string_lossy();
    let workspace = workspaces::open(global, &args.under.which, Missing::Refuse)?;
    let (workspace, path) = (&workspace, path.as_ref());
    if output == Path::new("-") {
        if std::io::stdout().is_terminal() {
            return Err(
                invalid("standard output is a terminal, and an archive is no text")
                    .hint("`--output FILE`, or a pipe"),
            );
        }
        let mut screen = Screen::new();
        let format = args.format.unwrap_or(ArchiveFormat::Tar);
        let sent = pack(workspace, path, format, &mut screen);
        screen.settle(sent)?;
        return Ok(Exit::SUCCESS);
    }
    let unpacked = match args.format.or_else(|| ArchiveFormat::of_name(&name)) {
        Some(format) => {
            let mut file = FreshFile::begin(output)?;
            pack(workspace, path, format, &mut file)?;
            file.finish()?;
            None
        }
        None => Some(unpack(workspace, path, output)?),
    };
    if global.json {
        stdout::json(&Downloaded {
            output: &name,
            unpacked,
        })?;
    } else if !global.quiet {
        render::note(&match unpacked {
            None => format!("`{name}` is written"),
            Some(UnpackAnswer { files, bytes, .. }) => {
                let files = count(files, "file", "files");
                format!("{files}, {} in `{name}`", size(bytes))
            }
        });
    }
    Ok(Exit::SUCCESS)
}

fn pack(
    workspace: &Workspace,
    path: Option<&RelPath>,
    format: ArchiveFormat,
    out: &mut dyn std::io::Write,
) -> Result<()> {
    let packed = workspace.download(path, format, out);
    packed.map_err(|error| match error.code {
        Code::Conflict => error.hint("`glovebox file cat` gets a single file"),
        _ => error,
    })
}

/// What a workspace holds is nobody's word: it is unpacked as a stranger's archive is.
fn unpack(workspace: &Workspace, path: Option<&RelPath>, output: &Path) -> Result<UnpackAnswer> {
    let stop = Stop::listen()?;
    let is_new = match std::fs::create_dir(output) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
        Err(error) => {
            let shown = output.display();
            return Err(invalid(format!("cannot make the directory `{shown}`")).caused_by(error));
        }
    };
    let unpacked = unpack_into(&directory(output)?, workspace, path, &stop);
    if unpacked.is_err() && is_new {
        // Only if it is empty: nobody else's files go with it.
        let _ = std::fs::remove_dir(output);
    }
    unpacked.map_err(|error| match stop.wait(Duration::ZERO) {
        true => canceled(),
        false => error,
    })
}

fn unpack_into(
    target: &Dir,
    workspace: &Workspace,
    path: Option<&RelPath>,
    stop: &Stop,
) -> Result<UnpackAnswer> {
    let mut spool = stop.around(spool()?);
    pack(workspace, path, ArchiveFormat::Tar, &mut spool)?;
    let mut spool = rewound(spool)?;
    let unpacked = files::upload(
        target,
        None,
        Source::Tar(&mut spool),
        Placement::Whole,
        Parents::Require,
        UnpackLimits::FILES,
    );
    let unpacked = unpacked.map_err(|error| {
        error
            .at(Stage::Close)
            .hint("`--output FILE.tar` gets it as an archive, with everything in it")
    })?;
    Ok(UnpackAnswer {
        entries: unpacked.entries,
        files: unpacked.files,
        bytes: unpacked.bytes,
    })
}
