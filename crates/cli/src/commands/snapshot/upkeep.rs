//! `glovebox snapshot gc` and `verify`.

use glovebox_api::{CollectAnswer, VerifiedSpace, VerifyAnswer};
use glovebox_model::Result;

use crate::args::Global;
use crate::exit::Exit;
use crate::human::{count, size};
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::stdout;
use crate::workspaces::Space;

pub(super) fn collect(global: &Global) -> Result<Exit> {
    let done = match Space::open(global)? {
        Some(space) => space.collect()?,
        None => CollectAnswer::default(),
    };
    let is_whole = done.spaces.iter().all(|it| it.error.is_none());
    let exit = match is_whole {
        true => Exit::SUCCESS,
        false => Exit::FAILURE,
    };
    if global.json {
        stdout::json(&done)?;
        return Ok(exit);
    }
    for space in &done.spaces {
        if let Some(error) = &space.error {
            render::error(error, false);
            continue;
        }
        let removed = space.removed.iter().map(|id| format!("{id}\n"));
        stdout::text(&removed.collect::<String>())?;
        if !global.quiet {
            let left = count(space.snapshots_left, "snapshot", "snapshots");
            let freed = size(space.bytes_before.saturating_sub(space.bytes_after));
            let gone = count(space.removed.len() as u64, "snapshot", "snapshots");
            render::note(&format!(
                "`{}`: {gone} removed, {freed} freed; {left} in {} stay",
                space.space_id,
                size(space.bytes_after)
            ));
        }
    }
    if done.spaces.is_empty() && !global.quiet {
        render::note("there is no snapshot");
    }
    Ok(exit)
}

/// The verdict is in the exit code too.
pub(super) fn verify(global: &Global) -> Result<Exit> {
    let done = match Space::open(global)? {
        Some(space) => space.verify()?,
        None => VerifyAnswer {
            sound: true,
            spaces: Vec::new(),
        },
    };
    let exit = match done.sound {
        true => Exit::SUCCESS,
        false => Exit::FAILURE,
    };
    match global.json {
        true => drop(stdout::json(&done)?),
        false => drop(stdout::text(&page(&done, Paint::on(&std::io::stdout())))?),
    }
    Ok(exit)
}

fn page(done: &VerifyAnswer, paint: Paint) -> String {
    let mut text = String::new();
    for space in &done.spaces {
        if let Some(error) = &space.error {
            text.push_str(&render::sentence(error, paint));
        }
        for it in &space.damage {
            let line = format!("damaged {} {}: {}", it.what, it.name, it.why);
            text.push_str(&paint.apply(Tone::Bad, &one_line(&line)));
            text.push('\n');
        }
        for it in &space.hurts {
            let what = it.path.as_ref().map(|path| path.display());
            let what = what.unwrap_or_else(|| "all of it".to_owned());
            let line = format!("cannot be restored: {what} of {}", it.snapshot_id);
            text.push_str(&one_line(&line));
            text.push('\n');
        }
    }
    let sum = |of: fn(&VerifiedSpace) -> u64| -> u64 { done.spaces.iter().map(of).sum() };
    let verdict = match done.sound {
        true => paint.apply(Tone::Good, "sound"),
        false => paint.apply(Tone::Bad, "damaged"),
    };
    let snapshots = count(sum(|it| it.snapshots), "snapshot", "snapshots");
    let chunks = count(sum(|it| it.chunks), "chunk", "chunks");
    text + &format!(
        "{verdict}: {snapshots}, {chunks}, {} read\n",
        size(sum(|it| it.bytes))
    )
}
