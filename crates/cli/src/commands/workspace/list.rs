//! `glovebox workspace ls` and `info`.

use glovebox_api::Workspaces;
use glovebox_model::Result;

use crate::args::{Global, WorkspaceInfoArgs};
use crate::exit::Exit;
use crate::human::{count, size};
use crate::key_values::KeyValues;
use crate::paint::{Paint, Tone};
use crate::table::{Cell, Table};
use crate::workspaces::{self, Missing, Space};
use crate::{render, stdout};

pub(super) fn all(global: &Global) -> Result<Exit> {
    let listed = match Space::open(global)? {
        Some(space) => space.workspaces()?,
        None => Workspaces::default(),
    };
    if global.json {
        stdout::json(&listed)?;
    } else if global.quiet {
        let names = listed.items.iter().map(|it| format!("{}\n", it.project_id));
        stdout::text(&names.collect::<String>())?;
    } else if listed.items.is_empty() {
        render::note("no workspace is kept; `glovebox run --project NAME` makes one");
    } else {
        let mut table = Table::new(["NAME"]);
        for it in &listed.items {
            table.push([Cell::from(it.project_id.as_str())]);
        }
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn one(global: &Global, args: &WorkspaceInfoArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let info = workspace.info()?;
    if global.json {
        stdout::json(&info)?;
        return Ok(Exit::SUCCESS);
    }
    let mut sheet = KeyValues::new(Paint::on(&std::io::stdout()));
    sheet.line("project", info.project_id.as_str());
    let more = if info.complete { "" } else { " or more" };
    let of = |most: Option<String>| most.map(|most| format!(" of {most}")).unwrap_or_default();
    let most = of(info.max_bytes.map(size));
    sheet.line("size", &format!("{}{more}{most}", size(info.bytes)));
    let most = of(info.max_files.map(|most| most.to_string()));
    let files = count(info.files, "file or directory", "files and directories");
    sheet.line("files", &format!("{files}{more}{most}"));
    sheet.line("snapshots", &info.snapshots.to_string());
    for exec in &info.waiting {
        sheet.toned(
            "waiting",
            Tone::Caution,
            &format!("changes of {exec}: `glovebox workspace changes {exec}`"),
        );
    }
    stdout::text(&sheet.text)?;
    Ok(Exit::SUCCESS)
}
