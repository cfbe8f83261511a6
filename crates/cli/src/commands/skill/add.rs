//! `glovebox skill add`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use glovebox_skill::{Before, Changed, Replace, Skill};
use glovebox_workspace::Dir;
use glovebox_workspace::archive::{Purpose, UnpackLimits, unpack_over, unpack_zip_over};
use serde_json::json;

use crate::args::{Global, SkillAddArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::prompt::Prompt;
use crate::{render, stdout};

/// No skill is larger.
const LIMITS: UnpackLimits = UnpackLimits {
    entries: 1000,
    total_bytes: 16 << 20,
    file_bytes: 8 << 20,
    depth: 16,
    path_bytes: 1024,
    ratio: 200,
    ratio_from_bytes: 1 << 20,
};

pub(super) fn run(global: &Global, args: &SkillAddArgs) -> Result<Exit> {
    let context = Context::new(global);
    let config = context.config()?;
    let root = super::directory(&config)?;
    let skill = staged(&args.source)?;
    let replace = match args.replace {
        true => Replace::IfThere,
        false => Replace::Never,
    };
    // One that stays is told by `add` itself.
    let before =
        Before::of(skill.id(), root).filter(|it| args.replace || matches!(it, Before::Shipped(_)));
    let changed = before
        .as_ref()
        .map_or_else(Vec::new, |it| it.compared(&skill));
    if let Some(before) = &before
        && !is_agreed(global, args, before, &changed, skill.id())?
    {
        let message = format!(
            "skill `{}` was not added: no person agreed to it",
            skill.id()
        );
        return Err(Error::new(Code::Canceled, Stage::Obtain, message));
    }
    let added = glovebox_skill::add(skill, root, replace)?;
    if global.json {
        stdout::json(&json!({
            "skill": added.skill.reference(),
            "path": added.path,
            "replaced": added.replaced,
            "changed": changed,
        }))?;
        return Ok(Exit::SUCCESS);
    }
    let id = added.skill.id();
    match global.quiet {
        true => stdout::text(&format!("{id}\n"))?,
        false => stdout::text(&format!("added `{id}`: {}\n", added.skill.digest()))?,
    };
    if !global.quiet {
        let pinned = config.skills().pin.get(id);
        if pinned.is_some_and(|it| it != added.skill.digest()) {
            render::note(&format!(
                "another digest of `{id}` is pinned, so it cannot be called"
            ));
        }
        render::note(&format!("look at it: `glovebox skill info {id}`"));
    }
    Ok(Exit::SUCCESS)
}

/// What differs is shown in any case. A person agrees to more than before.
fn is_agreed(
    global: &Global,
    args: &SkillAddArgs,
    before: &Before,
    changed: &[Changed],
    id: &str,
) -> Result<bool> {
    let shown = shown(before, changed, id);
    if args.yes || !before.asks(changed) {
        if !global.quiet && !global.json && !shown.is_empty() {
            render::note(shown.trim_end());
        }
        return Ok(true);
    }
    let Some(prompt) = Prompt::open()? else {
        let message = format!("there is no terminal to ask on:\n{}", shown.trim_end());
        return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint("`--yes` adds it without asking"));
    };
    Ok(prompt.confirm(|_| shown, "add it? [y]es, [n]o: "))
}

fn shown(before: &Before, changed: &[Changed], id: &str) -> String {
    let mut text = match before {
        Before::Own(_) if changed.is_empty() => String::new(),
        Before::Own(_) => format!("`{id}` may do and use something else than the one before it:\n"),
        Before::Broken => format!(
            "`{id}` is there already and cannot be read, so that what it might do is not known\n"
        ),
        Before::Shipped(_) => {
            format!("`{id}` comes with Glovebox, and its callers would get this one instead\n")
        }
    };
    for it in changed {
        let mark = if it.wider { " (more)" } else { "" };
        let line = format!("  {}: {} -> {}{mark}", it.field, it.before, it.after);
        text += &(render::one_line(&line) + "\n");
    }
    text
}

/// Checked, from a directory or an archive that nobody vouches for.
fn staged(source: &Path) -> Result<Skill> {
    let shown = source.display().to_string();
    let facts = std::fs::metadata(source)
        .map_err(|error| invalid(format!("cannot read `{shown}`")).caused_by(error))?;
    let name = |skill: Result<Skill, glovebox_skill::Problems>| {
        skill.map_err(|problems| problems.error(&shown))
    };
    if facts.is_dir() {
        return name(glovebox_skill::stage(source));
    }
    let room = tempfile::tempdir()
        .map_err(|error| invalid("cannot make a temporary directory").caused_by(error))?;
    unpack(source, room.path())?;
    name(glovebox_skill::stage(room.path()))
}

fn unpack(source: &Path, room: &Path) -> Result<()> {
    let shown = source.display();
    let failed = |error: &dyn std::fmt::Display| {
        invalid(format!("cannot unpack `{shown}`"))
            .caused_by(error)
            .hint("a tar archive (plain, gzip or zstd) or a ZIP archive is taken")
    };
    let mut file = File::open(source).map_err(|error| failed(&error))?;
    let mut magic = [0; 4];
    let is_zip = file.read_exact(&mut magic).is_ok() && magic == *b"PK\x03\x04";
    std::io::Seek::rewind(&mut file).map_err(|error| failed(&error))?;
    let into = Dir::open_trusted(room).map_err(|error| failed(&error))?;
    let done = match is_zip {
        true => unpack_zip_over(&mut file, &into, LIMITS),
        false => unpack_over(file, &into, Purpose::Files, LIMITS),
    };
    done.map(drop).map_err(|error| failed(&error))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}
