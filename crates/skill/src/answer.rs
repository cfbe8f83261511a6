//! Skills and what they answered, as the API tells it.

use glovebox_api::{InvalidSkill, SkillAnswer, SkillInfo, SkillList, SkillOrigin};
use glovebox_model::{Exec, SkillRef};
use serde_json::json;

use crate::catalogue::Listing;
use crate::output::Output;
use crate::skill::{Origin, Skill};

impl Skill {
    /// As it is listed.
    pub fn info(&self, allowed: bool) -> SkillInfo {
        let manifest = self.manifest();
        let (origin, replaces_shipped) = match self.origin() {
            Origin::Shipped => (SkillOrigin::Shipped, false),
            Origin::Directory { replaces, .. } => (SkillOrigin::Directory, *replaces),
        };
        SkillInfo {
            id: manifest.id.clone(),
            name: manifest.name.clone(),
            description: manifest.description.clone(),
            version: manifest.version.clone(),
            digest: self.digest().to_owned(),
            origin,
            replaces_shipped,
            allowed,
            inputs: manifest.interface.inputs.clone(),
            outputs: manifest.interface.outputs.clone(),
            runtime: json!(manifest.runtime),
            permissions: json!(manifest.permissions),
            limits: json!(manifest.limits),
            examples: manifest.examples.iter().map(|it| json!(it)).collect(),
            instructions: None,
            files: None,
        }
    }

    /// With its instructions and the names of its files.
    pub fn whole_info(&self, allowed: bool) -> SkillInfo {
        SkillInfo {
            instructions: self.instructions().map(str::to_owned),
            files: Some(self.files().map(str::to_owned).collect()),
            ..self.info(allowed)
        }
    }
}

impl Listing {
    pub fn answer(self, allowed: impl Fn(&Skill) -> bool) -> SkillList {
        let invalid = self.invalid.into_iter().map(|it| InvalidSkill {
            dir: it.dir,
            error: it.error,
        });
        SkillList {
            skills: self.skills.iter().map(|it| it.info(allowed(it))).collect(),
            invalid: invalid.collect(),
        }
    }
}

/// The record of a call with what the skill answered.
pub fn answer(exec: Exec, output: Option<Output>) -> SkillAnswer {
    let (value, valid, error) = match output {
        Some(output) => (output.value, Some(output.valid), output.error),
        None => (None, None, None),
    };
    SkillAnswer {
        exec_id: exec.exec_id.clone(),
        status: exec.status,
        skill: exec.skill_id.clone().map(|id| SkillRef {
            id,
            version: exec.skill_version.clone(),
            digest: exec.skill_digest.clone().unwrap_or_default(),
        }),
        output: value.unwrap_or_default(),
        output_valid: valid,
        output_error: error,
        exec,
    }
}
