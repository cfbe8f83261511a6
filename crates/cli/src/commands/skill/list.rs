//! `glovebox skill ls`.

use glovebox_api::{InvalidSkill, SkillInfo, SkillOrigin};
use glovebox_model::Result;

use crate::args::Global;
use crate::context::Context;
use crate::exit::Exit;
use crate::human::clip;
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::stdout;
use crate::table::{Cell, Table};

const NAME_MOST: usize = 50;

pub(super) fn run(global: &Global) -> Result<Exit> {
    let (listed, idle) = super::all(&Context::new(global))?;
    if global.json {
        stdout::json(&listed)?;
        return Ok(Exit::SUCCESS);
    }
    if global.quiet {
        let ids = listed.skills.iter().map(|it| format!("{}\n", it.id));
        stdout::text(&ids.collect::<String>())?;
        return Ok(Exit::SUCCESS);
    }
    let mut table = Table::new(["SKILL", "VERSION", "FROM", "CALLABLE", "WHAT IT DOES"]);
    for it in &listed.skills {
        table.push([
            Cell::from(it.id.as_str()),
            Cell::from(it.version.as_deref().unwrap_or("-")),
            Cell::from(origin(it)),
            match it.allowed {
                true => Cell::from("yes"),
                false => Cell::toned(Tone::Caution, "no"),
            },
            Cell::from(clip(&one_line(&it.name), NAME_MOST)),
        ]);
    }
    for it in &listed.invalid {
        table.push([
            Cell::from(it.dir.as_str()),
            Cell::from("-"),
            Cell::from("-"),
            Cell::toned(Tone::Bad, "no"),
            Cell::toned(Tone::Bad, &clip(&one_line(short(it)), NAME_MOST)),
        ]);
    }
    stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    for it in &listed.invalid {
        render::note(&one_line(&it.error.message));
    }
    for id in &idle {
        let id = one_line(id);
        render::note(&format!(
            "`{id}` is pinned, and there is no such skill: nothing is held by that pin"
        ));
    }
    if listed.skills.iter().any(|it| !it.allowed) {
        render::note("`no`: the policy of tools denies it; see `[tools]` of the configuration");
    }
    Ok(Exit::SUCCESS)
}

/// What is wrong, without saying of what: the row does.
fn short(it: &InvalidSkill) -> &str {
    let said = &it.error.message;
    let said = match said.strip_prefix(&format!("skill `{}` ", it.dir)) {
        Some(rest) => rest.strip_prefix("cannot be used: ").unwrap_or(rest),
        None => said,
    };
    // A digest is longer than a row.
    said.split(": its digest").next().unwrap_or(said)
}

pub(super) fn origin(skill: &SkillInfo) -> &'static str {
    match (skill.origin, skill.replaces_shipped) {
        (SkillOrigin::Shipped, _) => "glovebox",
        (SkillOrigin::Directory, false) => "directory",
        (SkillOrigin::Directory, true) => "directory, in place of glovebox's",
    }
}
