//! Landlock: a second wall behind the mounts, and the only one in front of the writable files of
//! /proc.

use std::os::fd::OwnedFd;

use crate::sys::Result;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::plan::{FileRule, Rights};

/// The newest version whose rights are asked for; an older kernel enforces those it knows.
const NEWEST: ABI = ABI::V6;

pub(super) fn restrict(rules: &[FileRule]) -> Result<()> {
    // Every failure here means the same: this kernel does not do what the plan says.
    let failed = |_| Errno::NOTSUP;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(failed)?
        .scope(Scope::from_all(NEWEST))
        .map_err(failed)?
        .create()
        .map_err(failed)?
        // A step of its own: a plan without it must fail here, not be mended.
        .no_new_privs(false);
    for rule in rules {
        let file = match open(rule) {
            // Devices and directories that this host does not have need no right.
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        let beneath = PathBeneath::new(file, rights(rule.rights));
        ruleset = ruleset.add_rule(beneath).map_err(failed)?;
    }
    match ruleset.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(Errno::NOTSUP),
    }
}

fn open(rule: &FileRule) -> Result<OwnedFd> {
    rustix::fs::open(&rule.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn rights(rights: Rights) -> BitFlags<AccessFs> {
    match rights {
        Rights::Read => AccessFs::from_read(NEWEST),
        // Devices cannot be made inside, so control of them is never needed below a directory.
        Rights::Write => AccessFs::from_all(NEWEST) & !AccessFs::IoctlDev,
        Rights::Device => {
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
        }
    }
}
