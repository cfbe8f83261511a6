//! `glovebox skill`.

mod add;
mod call;
mod check;
mod info;
mod list;
mod remove;

use std::path::Path;

use glovebox_api::{SkillInfo, SkillList, Target};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::Config;

use crate::args::{Global, SkillCommand, SkillLsArgs, SkillVerb};
use crate::context::{self, Context};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: SkillCommand) -> Result<Exit> {
    match command.verb {
        SkillVerb::Ls(SkillLsArgs {}) => list::run(global),
        SkillVerb::Info(args) => info::run(global, &args),
        SkillVerb::Check(args) => check::run(global, &args),
        SkillVerb::Run(args) => call::run(global, *args),
        SkillVerb::Add(args) => add::run(global, &args),
        SkillVerb::Rm(args) => remove::run(global, &args),
    }
}

/// The operator's own.
fn directory(config: &Config) -> Result<&Path> {
    config.skills().dir.as_deref().ok_or_else(|| {
        let message = "no directory of skills is named";
        Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint("name one: `--skills-dir DIR`, `GLOVEBOX_SKILLS_DIR`, or `dir` under `[skills]`")
    })
}

/// Here or at the server; and here the pins that hold nothing.
fn all(context: &Context<'_>) -> Result<(SkillList, Vec<String>)> {
    if let Some(remote) = context.server()? {
        return Ok((remote.get(Target::new("/v1/skills"))?, Vec::new()));
    }
    // Skills are files: to look at them needs no state directory, and so no API.
    let catalogue = context.skills()?;
    let listing = catalogue.list()?;
    let idle = catalogue.idle_pins(&listing).map(str::to_owned).collect();
    let tools = context.config()?.tools_for(&context::local_ids(None));
    let listed = listing.answer(|it| tools.check(&it.reference().tool()).allowed);
    Ok((listed, idle))
}

fn one(context: &Context<'_>, id: &str) -> Result<SkillInfo> {
    if let Some(remote) = context.server()? {
        return remote.get(Target::new("/v1/skills").segment(id));
    }
    let skill = context.skills()?.find(id)?;
    let tools = context.config()?.tools_for(&context::local_ids(None));
    let allowed = tools.check(&skill.reference().tool()).allowed;
    Ok(skill.whole_info(allowed))
}
