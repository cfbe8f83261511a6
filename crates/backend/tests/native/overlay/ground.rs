//! A workspace, a sandbox on a layer over it, and the two compared.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use glovebox_backend::{
    Cancel, Layer, Layers, MemoryLayer, Place, Prepared, Run, Sandbox, Spec, Tree,
};
use glovebox_model::{Access, Bytes, Count, Profile, Result};
use glovebox_workspace::Dir;
use glovebox_workspace::change::{Changes, EntryChange, Held, Outcome, ReadLimits};

use crate::house::{Both, Told, Yard, profile, shell};

pub(crate) struct Ground {
    pub(crate) yard: Yard,
    pub(crate) profile: Profile,
    pub(crate) lower: Dir,
    pub(crate) shelf: Dir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let yard = Yard::new();
        let path = |name: &str| yard.house.path().join(name);
        for name in ["work", "held"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let mut profile = profile();
        profile.workspace = Access::Rw;
        // More than neighbours can take meanwhile: what they took is laid to whoever closes a directory.
        profile.limits.disk_bytes = Bytes::mib(1 << 20);
        profile.limits.disk_files = Count(1 << 30);
        Self {
            lower: Dir::open_trusted(&path("work")).unwrap(),
            shelf: Dir::open_trusted(&path("held")).unwrap(),
            profile,
            yard,
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.yard.house.path().join("work")
    }

    /// A few files to begin with.
    pub(crate) fn furnish(&self) {
        let work = self.work();
        for dir in ["d/e/f", "keep/me"] {
            std::fs::create_dir_all(work.join(dir)).unwrap();
        }
        for (file, text) in [
            ("a", "one\ntwo\nthree\n"),
            ("b", "b\n"),
            ("c", "c\n"),
            ("d/x", "x\n"),
            ("d/e/y", "y\n"),
            ("d/e/f/z", "z\n"),
            ("keep/me/whole", "untouched\n"),
        ] {
            std::fs::write(work.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink("a", work.join("link")).unwrap();
    }

    pub(crate) fn hold(&self, name: &str) -> Held {
        Held::create(&self.shelf, name, &self.lower).unwrap()
    }

    pub(crate) fn spec(&self) -> Spec<'_> {
        Spec {
            work: Place::Tree(Tree {
                directory: &self.lower,
                access: Access::Rw,
            }),
            ..Spec::new(&self.profile)
        }
    }

    pub(crate) fn open<'dir>(
        &self,
        layers: impl Into<Layers<'dir>>,
    ) -> Result<(Prepared, MemoryLayer)> {
        let state = self.yard.house.state();
        let native = self.yard.native();
        native.open_layered(&self.spec(), layers.into(), &state)
    }

    /// Runs a line of shell on a layer on disk.
    pub(crate) fn run(&self, held: &Held, line: &str) -> Told {
        let (prepared, _) = self.open(Layer::Disk(held.layer())).unwrap();
        held.begin().unwrap();
        self.see(prepared, &[held.upper()], line).unwrap()
    }

    pub(crate) fn see(&self, prepared: Prepared, watched: &[&Dir], line: &str) -> Result<Told> {
        self.see_with(prepared, watched, None, line)
    }

    pub(crate) fn see_with(
        &self,
        prepared: Prepared,
        watched: &[&Dir],
        stdin: Option<OwnedFd>,
        line: &str,
    ) -> Result<Told> {
        let (cancel, _canceler) = Cancel::new().unwrap();
        let mut both = Both::default();
        let (ended, remains) = Box::new(prepared).run(Run {
            order: &shell(line),
            profile: &self.profile,
            watched,
            stdin,
            terminal: None,
            secrets: &[],
            sink: &mut both,
            cancel: &cancel,
            control: None,
        });
        drop(remains);
        ended.map(|ended| both.told(ended))
    }

    pub(crate) fn changes(&self, held: &Held) -> Changes {
        held.changes(&self.lower, ReadLimits::default()).unwrap()
    }

    pub(crate) fn keep(&self, held: &Held) -> Outcome {
        held.keep(&self.lower, ReadLimits::default()).unwrap()
    }

    pub(crate) fn tree(&self) -> Listing {
        tree(&self.work())
    }
}

impl Drop for Ground {
    /// The kernel leaves directories in a layer that their own user must open first.
    fn drop(&mut self) {
        for entry in self.shelf.list(100).unwrap().entries {
            Held::remove(&self.shelf, &entry.name.display()).unwrap();
        }
    }
}

/// A line for each path: kind, mode, links, and what is in it.
pub(crate) type Listing = BTreeMap<String, String>;

pub(crate) fn tree(top: &Path) -> Listing {
    let mut found = Listing::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            let mode = facts.permissions().mode();
            let line = if facts.is_dir() {
                waiting.push(path.clone());
                format!("directory {mode:o}")
            } else if facts.is_symlink() {
                format!("link {}", path.read_link().unwrap().display())
            } else if facts.is_file() {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                let shown: String = text.chars().take(100).collect();
                format!("file {mode:o} {} {} {shown}", facts.nlink(), text.len())
            } else {
                format!("other {mode:o}")
            };
            let name = path.strip_prefix(top).unwrap().display().to_string();
            found.insert(name, line);
        }
    }
    found
}

pub(crate) fn told(changes: &Changes) -> Vec<(String, EntryChange)> {
    let mut all: Vec<(String, EntryChange)> = changes
        .entries
        .iter()
        .map(|it| (it.path.display(), it.what))
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

pub(crate) fn applied(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}
