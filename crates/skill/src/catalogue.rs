//! Which skills there are: those that came with Glovebox, and those in the operator's directory.
//! That one is looked at for every question, so that a change counts from the next call on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::{AtFlags, CWD, Dir, FileType, statat};
use rustix::io::Errno;

use crate::package::{MANIFEST, Package, SKILL_MD, Stamps, open, open_name};
use crate::problem::{Problems, shown};
use crate::shipped;
use crate::skill::{Origin, Skill};

const SKILLS_MAX: usize = 1000;

/// What the operator says about skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub dir: Option<PathBuf>,
    /// Whether those that came with Glovebox are there.
    pub shipped: bool,
    /// The only digest that a skill of this id may have.
    pub pin: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dir: None,
            shipped: true,
            pin: BTreeMap::new(),
        }
    }
}

/// A directory that is no usable skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Its name.
    pub dir: String,
    pub error: Error,
}

#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// By id.
    pub skills: Vec<Skill>,
    pub invalid: Vec<Invalid>,
}

#[derive(Debug)]
pub struct Catalogue {
    settings: Settings,
    /// By the directory's name, as it was when it had rested.
    known: Mutex<BTreeMap<String, Known>>,
}

type Known = (Stamps, Result<Skill, Problems>);

impl Catalogue {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            known: Mutex::default(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Every skill, and everything that would be one and is not right.
    pub fn list(&self) -> Result<Listing> {
        self.check_configured()?;
        let mut found: BTreeMap<String, Result<Skill, Error>> = BTreeMap::new();
        if self.settings.shipped {
            for skill in shipped::all() {
                found.insert(skill.id().to_owned(), Ok(skill.clone()));
            }
        }
        for name in self.names()? {
            if let Some(skill) = self.in_directory(&name)? {
                found.insert(name, skill);
            }
        }
        let mut listing = Listing::default();
        for (dir, skill) in found {
            match skill.and_then(|skill| self.pinned(skill)) {
                Ok(skill) => listing.skills.push(skill),
                Err(error) => listing.invalid.push(Invalid { dir, error }),
            }
        }
        Ok(listing)
    }

    /// Pins of ids that no skill has: most likely misspelt, and then nothing is held.
    pub fn idle_pins<'s>(&'s self, listing: &'s Listing) -> impl Iterator<Item = &'s str> {
        let ids = self.settings.pin.keys().map(String::as_str);
        ids.filter(|id| {
            let is_there = listing.skills.iter().any(|it| it.id() == *id);
            !is_there && listing.invalid.iter().all(|it| it.dir != *id)
        })
    }

    /// One that can be called as it is now.
    pub fn find(&self, id: &str) -> Result<Skill> {
        self.check_configured()?;
        // Only what could be an id is looked for among files.
        let own = match is_id(id) {
            true => self.in_directory(id)?,
            false => None,
        };
        let skill = match own {
            Some(own) => own?,
            None => {
                let shipped = self.settings.shipped.then(|| shipped::find(id)).flatten();
                shipped.cloned().ok_or_else(|| missing(id))?
            }
        };
        self.pinned(skill)
    }

    fn check_configured(&self) -> Result<()> {
        match self.settings.shipped || self.settings.dir.is_some() {
            true => Ok(()),
            false => Err(Error::new(
                Code::SkillsNotConfigured,
                Stage::Parse,
                "there are no skills here: those that came with Glovebox are turned off, and no directory is named",
            )
            .hint("name one: `--skills-dir DIR`, `GLOVEBOX_SKILLS_DIR`, or `dir` under `[skills]`")),
        }
    }

    fn pinned(&self, skill: Skill) -> Result<Skill> {
        match self.settings.pin.get(skill.id()) {
            Some(digest) if digest != skill.digest() => {
                let message = format!(
                    "skill `{}` is not the one that is pinned: its digest is `{}`, the configuration says `{digest}`",
                    skill.id(),
                    skill.digest()
                );
                Err(Error::new(Code::InvalidManifest, Stage::Parse, message)
                    .hint("look at what changed, then pin the new digest under `[skills.pin]`"))
            }
            _ => Ok(skill),
        }
    }

    /// The directories that would be skills.
    fn names(&self) -> Result<Vec<String>> {
        let Some(root) = self.root()? else {
            return Ok(Vec::new());
        };
        let unreadable = |errno: Errno| self.unreadable(errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&root).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // `_schema`, and what is being added.
            if name.starts_with(['.', '_']) {
                continue;
            }
            let stat = statat(&root, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            let kind = stat.map(|it| FileType::from_raw_mode(it.st_mode));
            if kind.is_ok_and(|kind| kind == FileType::RegularFile) {
                continue;
            }
            names.push(name);
            if names.len() > SKILLS_MAX {
                let message = format!("the directory of skills holds more than {SKILLS_MAX}");
                return Err(Error::new(Code::InvalidConfig, Stage::Parse, message));
            }
        }
        Ok(names)
    }

    fn root(&self) -> Result<Option<std::os::fd::OwnedFd>> {
        let Some(dir) = &self.settings.dir else {
            return Ok(None);
        };
        open(CWD, dir)
            .map(Some)
            .map_err(|errno| self.unreadable(errno))
    }

    fn unreadable(&self, errno: Errno) -> Error {
        let dir = self.settings.dir.as_deref().unwrap_or("".as_ref());
        let message = format!("cannot read the directory of skills `{}`", dir.display());
        Error::new(Code::SkillsNotConfigured, Stage::Parse, message)
            .caused_by(errno)
            .hint("name one that is there: `--skills-dir DIR`, or `dir` under `[skills]`")
    }

    /// None when there is no such directory.
    fn in_directory(&self, name: &str) -> Result<Option<Result<Skill>>> {
        let Some(root) = self.root()? else {
            return Ok(None);
        };
        let dir = match open_name(&root, name) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let problems = Problems::one("", "it is a link or no directory");
                return Ok(Some(Err(problems.error(name))));
            }
            Err(errno) => {
                let problems = Problems::one("", format!("it cannot be read: {errno}"));
                return Ok(Some(Err(problems.error(name))));
            }
        };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(stamps) = Stamps::of(&dir)
            && let Some((before, skill)) = known().get(name)
            && *before == stamps
        {
            return Ok(Some(skill.clone().map_err(|it| it.error(name))));
        }
        let read = Package::read_stamped(&dir);
        let (made, stamps) = match read {
            Ok((package, stamps)) => (self.made(package, name), stamps),
            Err(problems) => (Err(problems), None),
        };
        match stamps {
            Some(stamps) => known().insert(name.to_owned(), (stamps, made.clone())),
            None => known().remove(name),
        };
        Ok(Some(made.map_err(|it| it.error(name))))
    }

    fn made(&self, package: Package, name: &str) -> Result<Skill, Problems> {
        if package.file(MANIFEST).is_none() && package.file(SKILL_MD).is_some() {
            let message = "it has a `SKILL.md` and no manifest; `glovebox skill add` takes it in";
            return Err(Problems::one("", message));
        }
        let root = self.settings.dir.clone().unwrap_or_default();
        let origin = Origin::Directory {
            path: root.join(name),
            replaces: false,
        };
        let skill = Skill::new(package, name, origin)?;
        let is_shipped = self.settings.shipped && shipped::find(name).is_some();
        Ok(match is_shipped {
            true => skill.replacing(),
            false => skill,
        })
    }
}

/// As in the manifest's schema.
fn is_id(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    text.len() <= 64 && text.contains('.') && text.split('.').all(word)
}

fn missing(id: &str) -> Error {
    let message = format!("there is no skill `{}`", shown(id));
    Error::new(Code::NotFound, Stage::Parse, message)
        .hint("`glovebox skill ls` and `GET /v1/skills` list them")
}
