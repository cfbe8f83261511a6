//! One skill, checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use glovebox_model::{Input, SkillRef};
use serde_json::Value;

use crate::interface::Schema;
use crate::manifest::{Manifest, Read};
use crate::package::{MANIFEST, Package, SKILL_MD};
use crate::problem::Problems;
use crate::skill_md;

/// Where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It came with Glovebox.
    Shipped,
    /// It lies in the operator's directory. `replaces`: one of the same id was shipped.
    Directory { path: PathBuf, replaces: bool },
}

#[derive(Debug, Clone)]
pub struct Skill {
    manifest: Manifest,
    inputs: Schema,
    outputs: Schema,
    package: Arc<Package>,
    reference: SkillRef,
    instructions: Option<String>,
    origin: Origin,
}

impl Skill {
    /// `directory` is the name that the id must have.
    pub(crate) fn new(package: Package, directory: &str, origin: Origin) -> Result<Self, Problems> {
        let Read {
            manifest,
            inputs,
            outputs,
        } = Manifest::read(&package, directory)?;
        Ok(Self {
            reference: SkillRef {
                id: manifest.id.clone(),
                version: manifest.version.clone(),
                digest: package.digest(),
            },
            instructions: skill_md::instructions(&package),
            package: Arc::new(package),
            manifest,
            inputs,
            outputs,
            origin,
        })
    }

    pub fn id(&self) -> &str {
        &self.manifest.id
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn reference(&self) -> &SkillRef {
        &self.reference
    }

    pub fn digest(&self) -> &str {
        &self.reference.digest
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The text of its `SKILL.md`, if it has one.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.package.files()
    }

    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.package.file(path)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.package.entries()
    }

    pub(crate) fn replacing(mut self) -> Self {
        if let Origin::Directory { replaces, .. } = &mut self.origin {
            *replaces = true;
        }
        self
    }

    /// Its files beside the manifest, where its program finds them.
    pub(crate) fn placed(&self) -> Vec<Input> {
        let below = self.reference.directory();
        let others = self.package.entries().filter(|(path, _)| *path != MANIFEST);
        others
            .filter_map(|(path, contents)| {
                let path = format!("{below}/{path}");
                Some(Input {
                    path: glovebox_model::ByteString::try_from(path.as_str()).ok()?,
                    content: contents.to_vec(),
                })
            })
            .collect()
    }

    pub(crate) fn input_errors(&self, input: &Value) -> Vec<(String, String)> {
        self.inputs.errors(input)
    }

    pub(crate) fn output_errors(&self, output: &Value) -> Vec<(String, String)> {
        self.outputs.errors(output)
    }
}

/// A directory that may become a skill, or that is one: everything that is wrong with it.
pub fn check(dir: &Path) -> Result<Skill, Problems> {
    let whole = dir
        .canonicalize()
        .map_err(|error| Problems::one("", format!("cannot be read: {error}")))?;
    let package = Package::read(&whole)?;
    let name = whole
        .file_name()
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default();
    if package.file(MANIFEST).is_none() && package.file(SKILL_MD).is_some() {
        let package = skill_md::convert(package)?;
        let id = skill_md::id_of(&package)?;
        let origin = Origin::Directory {
            path: whole,
            replaces: false,
        };
        return Skill::new(package, &id, origin);
    }
    Skill::new(
        package,
        &name,
        Origin::Directory {
            path: whole,
            replaces: false,
        },
    )
}
