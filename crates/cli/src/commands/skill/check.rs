//! `glovebox skill check`.

use glovebox_model::Result;
use serde_json::json;

use crate::args::{Global, SkillCheckArgs};
use crate::exit::Exit;
use crate::render::{self, one_line};
use crate::stdout;

pub(super) fn run(global: &Global, args: &SkillCheckArgs) -> Result<Exit> {
    let checked = glovebox_skill::check(&args.dir);
    if global.json {
        stdout::json(&match &checked {
            Ok(skill) => json!({"valid": true, "skill": skill.reference(), "problems": []}),
            Err(problems) => json!({"valid": false, "problems": problems.list()}),
        })?;
    } else {
        match &checked {
            Ok(skill) => {
                let (id, digest) = (skill.id(), skill.digest());
                stdout::text(&format!("skill `{id}` is right: {digest}\n"))?;
            }
            Err(problems) => {
                let dir = args.dir.display().to_string();
                for problem in problems.list() {
                    let (dir, said) = (dir.trim_end_matches('/'), one_line(&problem.to_string()));
                    let between = if problem.file.is_empty() { ": " } else { "/" };
                    stdout::text(&format!("{dir}{between}{said}\n"))?;
                }
                if !global.quiet {
                    let hint = "the form of a manifest: docs/reference/skill-manifest.md";
                    render::hint(hint);
                }
            }
        }
    }
    Ok(match checked {
        Ok(_) => Exit::SUCCESS,
        Err(_) => Exit::FAILURE,
    })
}
