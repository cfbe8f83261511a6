//! `glovebox snapshot ls` and `show`.

use glovebox_api::{SnapshotCounts, SnapshotInfo};
use glovebox_model::Result;
use jiff::Timestamp;

use super::resolve;
use crate::args::{Global, SnapshotLsArgs, SnapshotShowArgs};
use crate::exit::Exit;
use crate::human::{age, clip, count, size, time};
use crate::key_values::KeyValues;
use crate::paint::{Paint, Tone};
use crate::table::{Cell, Table};
use crate::workspaces::{self, Missing};
use crate::{render, stdout};

const ID: usize = "snap_".len() + 12;
const WIDEST: usize = 60;

pub(super) fn all(global: &Global, args: &SnapshotLsArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let listed = workspace.snapshots()?;
    if global.json {
        stdout::json(&listed)?;
    } else if global.quiet {
        let ids = listed
            .items
            .iter()
            .map(|it| format!("{}\n", it.snapshot_id));
        stdout::text(&ids.collect::<String>())?;
    } else if listed.items.is_empty() {
        render::note("there is no snapshot; `glovebox snapshot take` takes one");
    } else {
        let table = table(&listed.items, Timestamp::now());
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn table(items: &[SnapshotInfo], now: Timestamp) -> Table<7> {
    let mut table = Table::new(["ID", "LABEL", "FILES", "SIZE", "VERIFIED", "NOTE", "AGE"]);
    for it in items {
        let or_dash = |text: Option<&str>| clip(text.unwrap_or("-"), WIDEST);
        let id: String = it.snapshot_id.as_str().chars().take(ID).collect();
        table.push([
            Cell::from(id),
            Cell::toned(Tone::Good, &or_dash(it.label.as_deref())),
            Cell::from(it.counts.files.to_string()),
            Cell::from(size(it.counts.bytes)),
            Cell::from(match it.verified_at {
                Some(at) => format!("{} ago", age(at, now)),
                None => "-".to_owned(),
            }),
            Cell::from(or_dash(it.note.as_deref())),
            Cell::from(age(it.taken_at, now)),
        ]);
    }
    table
}

pub(super) fn one(global: &Global, args: &SnapshotShowArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let snapshot = workspace.snapshot(&resolve(&workspace, &args.id)?)?;
    if global.json {
        stdout::json(&snapshot)?;
        return Ok(Exit::SUCCESS);
    }
    let mut sheet = KeyValues::new(Paint::on(&std::io::stdout()));
    sheet.line("snapshot", snapshot.snapshot_id.as_str());
    sheet.line("project", snapshot.project_id.as_str());
    let since = age(snapshot.taken_at, Timestamp::now());
    sheet.line(
        "taken",
        &format!("{} ({since} ago)", time(snapshot.taken_at)),
    );
    sheet.line(
        "verified",
        &match snapshot.verified_at {
            Some(at) => format!("{} ({} ago)", time(at), age(at, Timestamp::now())),
            None => "no; `glovebox snapshot verify` reads all of it".to_owned(),
        },
    );
    sheet.optional("label", snapshot.label.as_deref());
    sheet.optional("note", snapshot.note.as_deref());
    sheet.optional("parent", snapshot.parent.as_ref().map(|it| it.as_str()));
    counts(&mut sheet, &snapshot.counts);
    stdout::text(&sheet.text)?;
    Ok(Exit::SUCCESS)
}

fn counts(sheet: &mut KeyValues, counts: &SnapshotCounts) {
    sheet.title("holds");
    let files = count(counts.files, "file", "files");
    sheet.line("files", &format!("{files}, {}", size(counts.bytes)));
    for (name, number) in [
        ("directories", counts.directories),
        ("links", counts.symlinks),
        ("hard links", counts.hard_links),
        ("fifos", counts.fifos),
    ] {
        if number > 0 {
            sheet.line(name, &number.to_string());
        }
    }
    let missing = [
        (counts.sockets_skipped, "sockets"),
        (counts.devices_skipped, "devices"),
        (counts.mounts_skipped, "other file systems"),
        (counts.set_id_dropped, "set-id bits"),
        (counts.xattrs_dropped, "attributes"),
    ];
    if missing.iter().any(|(number, _)| *number > 0) {
        sheet.title("does not hold");
        for (number, what) in missing.into_iter().filter(|(number, _)| *number > 0) {
            sheet.line(what, &number.to_string());
        }
    }
    if counts.unstable > 0 {
        let unstable = count(counts.unstable, "file", "files");
        sheet.toned(
            "unstable",
            Tone::Caution,
            &format!("{unstable} changed each time while being read"),
        );
    }
}
