//! `glovebox artifact`.

use std::io::{self, Write};
use std::path::Path;

use glovebox_model::{Artifact, Code, Error, Exec, Result, Stage};
use sha2::{Digest, Sha256};

use crate::args::{ArtifactCommand, ArtifactGetArgs, ArtifactLsArgs, ArtifactVerb, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::fresh_file::FreshFile;
use crate::human::size;
use crate::paint::Paint;
use crate::records::Records;
use crate::screen::Screen;
use crate::table::{Cell, Table};
use crate::{render, stdout, workspaces};

/// Enough of a digest to tell two apart at a glance.
const DIGEST: usize = 12;

pub(crate) fn run(global: &Global, command: ArtifactCommand) -> Result<Exit> {
    match command.verb {
        ArtifactVerb::Ls(args) => list(global, &args),
        ArtifactVerb::Get(args) => get(global, &args),
    }
}

fn list(global: &Global, args: &ArtifactLsArgs) -> Result<Exit> {
    let exec = Context::new(global).some_records()?.find(&args.exec)?;
    if global.json {
        stdout::json(
            &serde_json::json!({ "exec_id": exec.exec_id, "files": exec.artifacts,
            "dropped": exec.artifacts_dropped }),
        )?;
        return Ok(Exit::SUCCESS);
    }
    if global.quiet {
        let paths = exec.artifacts.iter().map(|it| it.path.display());
        let lines = paths.map(|path| format!("{}\n", render::one_line(&path)));
        stdout::text(&lines.collect::<String>())?;
        return Ok(Exit::SUCCESS);
    }
    if exec.artifacts.is_empty() {
        render::note(match exec.status.is_final() {
            true => "it left no artifacts",
            false => "it has not ended yet",
        });
    } else {
        let mut table = Table::new(["SIZE", "SHA-256", "PATH"]);
        for it in &exec.artifacts {
            let digest: String = it.hash.chars().take(DIGEST).collect();
            table.push([
                Cell::from(size(it.size)),
                Cell::from(digest),
                Cell::from(it.path.display()),
            ]);
        }
        stdout::text(&table.text(Paint::on(&io::stdout())))?;
    }
    if exec.artifacts_dropped > 0 {
        let dropped = exec.artifacts_dropped;
        render::note(&format!(
            "{dropped} were not kept; `manifest.json` says which and why"
        ));
    }
    Ok(Exit::SUCCESS)
}

fn get(global: &Global, args: &ArtifactGetArgs) -> Result<Exit> {
    let records = Context::new(global).some_records()?;
    let exec = records.find(&args.exec)?;
    let path = workspaces::inside(&args.path)?;
    let known = exec
        .artifacts
        .iter()
        .find(|it| it.path.as_bytes() == path.as_bytes());
    match args.output.as_deref() {
        Some(output) if output != Path::new("-") => {
            let mut file = FreshFile::begin(output)?;
            fetch(&records, &exec, &path, known, &mut file)?;
            file.finish()?;
            if !global.quiet {
                render::note(&format!("`{}` is written", output.display()));
            }
        }
        _ => {
            let mut screen = Screen::new();
            let printed = fetch(&records, &exec, &path, known, &mut screen);
            screen.settle(printed)?;
        }
    }
    Ok(Exit::SUCCESS)
}

/// Whatever lies there now must be what the record says.
fn fetch(
    records: &Records,
    exec: &Exec,
    path: &glovebox_workspace::RelPath,
    known: Option<&Artifact>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut checked = Checked {
        out,
        digest: Sha256::new(),
        left: known.map(|it| it.size),
    };
    records.artifact(exec, path, &mut checked)?;
    let digest: String = checked
        .digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match known {
        Some(known) if known.hash != digest => Err(changed(&known.path.display())),
        _ => Ok(()),
    }
}

fn changed(path: &str) -> Error {
    let message = format!("the artifact `{path}` is not what the record says");
    Error::new(Code::LedgerTampered, Stage::Collect, message)
        .hint("somebody changed the file since the exec ended")
}

struct Checked<'o> {
    out: &'o mut dyn Write,
    digest: Sha256,
    /// Never more than was recorded.
    left: Option<u64>,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = &mut self.left {
            *left = left
                .checked_sub(bytes.len() as u64)
                .ok_or_else(|| io::Error::other("there is more than was recorded"))?;
        }
        self.out.write_all(bytes)?;
        self.digest.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
