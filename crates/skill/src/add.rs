//! Taking a skill into a directory of skills, checked first and there whole or not at all; and out of
//! it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::{CWD, RenameFlags, fsync, renameat_with};
use rustix::io::Errno;

use crate::package::{MANIFEST, Package, SKILL_MD, hex};
use crate::problem::{Problems, shown};
use crate::shipped;
use crate::skill::{Origin, Skill};
use crate::skill_md;

/// What happens to one that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Never,
    IfThere,
}

#[derive(Debug, Clone)]
pub struct Added {
    pub skill: Skill,
    pub path: PathBuf,
    /// There was one before, with this digest unless it was broken.
    pub replaced: bool,
}

/// A skill of either form that lies in `dir`, or in the only directory in it, as archives have it.
pub fn stage(dir: &Path) -> Result<Skill, Problems> {
    let root = place(dir)?;
    let mut package = Package::read(&root)?;
    if package.file(MANIFEST).is_none() {
        if package.file(SKILL_MD).is_none() {
            let message = "there is neither a `manifest.json` nor a `SKILL.md`";
            return Err(Problems::one("", message));
        }
        package = skill_md::convert(package)?;
    }
    let id = package
        .file(MANIFEST)
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok())
        .and_then(|it| Some(it.get("id")?.as_str()?.to_owned()))
        .unwrap_or_default();
    let origin = Origin::Directory {
        path: root,
        replaces: false,
    };
    Skill::new(package, &id, origin)
}

fn place(dir: &Path) -> Result<PathBuf, Problems> {
    let there = |name: &str| fs::symlink_metadata(dir.join(name)).is_ok();
    if there(MANIFEST) || there(SKILL_MD) {
        return Ok(dir.to_owned());
    }
    let failed = |error: std::io::Error| Problems::one("", format!("cannot be read: {error}"));
    let mut entries = fs::read_dir(dir).map_err(failed)?;
    match (entries.next(), entries.next()) {
        (Some(Ok(only)), None) if only.file_type().is_ok_and(|it| it.is_dir()) => Ok(only.path()),
        _ => Ok(dir.to_owned()),
    }
}

/// Copies it to `root`, under its id.
pub fn add(skill: Skill, root: &Path, replace: Replace) -> Result<Added> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        let message = format!(
            "cannot {what} in the directory of skills `{}`",
            root.display()
        );
        Error::new(Code::InvalidArgument, Stage::Open, message)
            .caused_by(error)
            .hint("name another one: `--skills-dir DIR`")
    };
    fs::create_dir_all(root).map_err(|error| failed("make a directory", &error))?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| failed("make a new name", &error))?;
    let fresh = root.join(format!(".adding-{}", hex(&random)));
    let target = root.join(skill.id());
    let written = write(&skill, &fresh).map_err(|error| failed("write", &error));
    let moved = written.and_then(|()| {
        match renameat_with(CWD, &fresh, CWD, &target, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(false),
            Err(Errno::EXIST) if replace == Replace::IfThere => {
                renameat_with(CWD, &fresh, CWD, &target, RenameFlags::EXCHANGE)
                    .map(|()| true)
                    .map_err(|errno| failed("replace a skill", &errno))
            }
            Err(Errno::EXIST) => {
                let message = format!("skill `{}` is there already", skill.id());
                Err(Error::new(Code::Conflict, Stage::Open, message)
                    .hint("`--replace` puts the new one into its place"))
            }
            Err(errno) => Err(failed("move a skill", &errno)),
        }
    });
    // What is left there is the old one, or what could not be moved.
    let _ = fs::remove_dir_all(&fresh);
    let replaced = moved?;
    Ok(Added {
        skill,
        path: target,
        replaced,
    })
}

/// Takes the one in `root/id` away, whatever is wrong with it: at once, and never one that came with
/// Glovebox.
pub fn remove(id: &str, root: &Path) -> Result<PathBuf> {
    let is_name = !id.is_empty() && !id.starts_with(['.', '_']) && !id.contains(['/', '\0']);
    let target = root.join(id);
    if !is_name || !fs::symlink_metadata(&target).is_ok_and(|it| it.is_dir()) {
        return Err(not_there(id, root));
    }
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("cannot remove `{}`", target.display());
        Error::new(Code::InvalidArgument, Stage::Open, message).caused_by(error)
    };
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| failed(&error))?;
    // Half a skill is not seen by anybody.
    let aside = root.join(format!(".removing-{}", hex(&random)));
    fs::rename(&target, &aside).map_err(|error| failed(&error))?;
    fs::remove_dir_all(&aside).map_err(|error| failed(&error))?;
    Ok(target)
}

fn not_there(id: &str, root: &Path) -> Error {
    let (name, root) = (shown(id), root.display());
    if shipped::find(id).is_some() {
        let message = format!("skill `{name}` came with Glovebox, and is not removed");
        return Error::new(Code::Conflict, Stage::Parse, message).hint(format!(
            "deny it: `deny = [\"skill.{name}\"]` under `[tools]`; or all of them: `shipped = false` under `[skills]`"
        ));
    }
    let message = format!("there is no skill `{name}` in `{root}`");
    Error::new(Code::NotFound, Stage::Parse, message).hint("`glovebox skill ls` lists them")
}

fn write(skill: &Skill, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for (path, contents) in skill.entries() {
        let file = to.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = fs::File::create_new(file)?;
        file.write_all(contents)?;
        fsync(&file)?;
    }
    Ok(())
}
