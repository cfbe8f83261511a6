//! The answer while it is put together. Every mount goes through here, so the guard sees each one.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::entry::Origin;
use super::guard::{Guard, Refusal};
use super::host::Host;
use super::text::show;
use super::{Kind, Link, Mount, Request, Shape, Toolchains};

/// A longer chain of links is not followed.
const LINKS: usize = 8;

/// How much of a prefix is shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tree<'p> {
    Whole,
    /// These alone: what else stands in a prefix can be settings with passwords (`etc/npmrc`,
    /// `pip.conf`) or the environments of other projects.
    Parts(&'p [&'p str]),
}

/// A prefix and the directory that it must really be in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'p> {
    pub(super) prefix: &'p Path,
    /// The prefix itself when only a marker file tells that it is a toolchain.
    pub(super) within: &'p Path,
}

impl<'p> Spot<'p> {
    pub(super) fn itself(prefix: &'p Path) -> Self {
        Self {
            prefix,
            within: prefix,
        }
    }
}

#[derive(Debug)]
pub(super) struct Draft<'h> {
    pub(super) host: &'h Host,
    pub(super) request: &'h Request,
    pub(super) guard: Guard,
    /// The same few roots are asked about for every entry of `PATH`.
    reals: BTreeMap<PathBuf, Option<PathBuf>>,
    out: Toolchains,
}

impl<'h> Draft<'h> {
    pub(super) fn new(host: &'h Host, request: &'h Request) -> Self {
        Self {
            host,
            request,
            guard: Guard::new(host),
            reals: BTreeMap::new(),
            out: Toolchains::default(),
        }
    }

    pub(super) fn real(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.reals.get(path) {
            return known.clone();
        }
        let real = path.canonicalize().ok();
        self.reals.insert(path.to_owned(), real.clone());
        real
    }

    /// Where `entry` is below a manager's `root`, by name or in truth. A root that is as wide as a
    /// home has nothing below it.
    pub(super) fn below(&mut self, kind: Kind, entry: &Path, root: &Path) -> Option<PathBuf> {
        let real_root = self.real(root)?;
        let below = match entry.strip_prefix(root) {
            Ok(below) => below.to_owned(),
            Err(_) => self.real(entry)?.strip_prefix(&real_root).ok()?.to_owned(),
        };
        match self.guard.check_root(&real_root) {
            Ok(()) => Some(below),
            Err(refusal) => {
                self.refused(kind, root, &refusal);
                None
            }
        }
    }

    /// Shows a prefix, or notes why not. Gives the path by which the sandbox knows it.
    pub(super) fn place(
        &mut self,
        kind: Kind,
        spot: Spot<'_>,
        tree: Tree<'_>,
        why: &str,
    ) -> Option<PathBuf> {
        match self.try_place(kind, spot, tree, why) {
            Ok(guest) => Some(guest),
            Err(refusal) => {
                self.refused(kind, spot.prefix, &refusal);
                None
            }
        }
    }

    pub(super) fn try_place(
        &mut self,
        kind: Kind,
        spot: Spot<'_>,
        tree: Tree<'_>,
        why: &str,
    ) -> Result<PathBuf, Refusal> {
        let real = self.real(spot.prefix).ok_or(Refusal::NotADirectory)?;
        if Guard::in_system(&real) {
            return Ok(real);
        }
        self.admit(spot, &real)?;
        let guest = self.guest_of(spot.prefix, &real);
        match tree {
            Tree::Whole => self.add(kind, Shape::Directory, &real, &guest, why),
            Tree::Parts(parts) => {
                for part in parts {
                    self.add_part(kind, &real, &guest, part, why);
                }
            }
        }
        Ok(guest)
    }

    fn admit(&mut self, spot: Spot<'_>, real: &Path) -> Result<(), Refusal> {
        if spot.within != spot.prefix {
            let root = self.real(spot.within).ok_or(Refusal::NotADirectory)?;
            self.guard.check_root(&root)?;
            if real == root || !real.starts_with(&root) {
                return Err(Refusal::Elsewhere(real.to_owned()));
            }
        }
        if !real.starts_with(self.guard.workspace()) && self.stands_in_workspace(spot.prefix) {
            return Err(Refusal::WorkspaceLink);
        }
        self.guard.check(real)?;
        if real.is_dir() {
            Ok(())
        } else {
            Err(Refusal::NotADirectory)
        }
    }

    /// Whether untrusted programs could have put `path` there: any step of the way to it, through
    /// links too, is in the workspace.
    pub(super) fn stands_in_workspace(&mut self, path: &Path) -> bool {
        let mut at = path.to_owned();
        for _ in 0..LINKS {
            let inside = at.ancestors().skip(1).any(|dir| {
                self.real(dir)
                    .is_some_and(|real| real.starts_with(self.guard.workspace()))
            });
            if inside {
                return true;
            }
            match (at.read_link(), at.parent()) {
                (Ok(target), Some(parent)) => at = parent.join(target),
                _ => return false,
            }
        }
        true
    }

    /// The name that scripts know, unless it would stand on something of the sandbox's own.
    fn guest_of(&self, named: &Path, real: &Path) -> PathBuf {
        if self.guard.check(named).is_ok() && !Guard::in_system(named) {
            named.components().collect()
        } else {
            real.to_owned()
        }
    }

    fn add_part(&mut self, kind: Kind, real: &Path, guest: &Path, part: &str, why: &str) {
        let Ok(source) = real.join(part).canonicalize() else {
            return;
        };
        let shape = match source.metadata() {
            Ok(meta) if meta.is_dir() => Shape::Directory,
            Ok(meta) if meta.is_file() => Shape::File,
            _ => return,
        };
        if source == real || !source.starts_with(real) {
            if !Guard::in_system(&source) {
                self.refused(kind, &real.join(part), &Refusal::Elsewhere(source));
            }
            return;
        }
        self.push(kind, shape, &source, &guest.join(part), why);
        self.push(kind, shape, &source, &real.join(part), why);
    }

    fn add(&mut self, kind: Kind, shape: Shape, real: &Path, guest: &Path, why: &str) {
        self.push(kind, shape, real, guest, why);
        self.push(kind, shape, real, real, why);
    }

    fn push(&mut self, kind: Kind, shape: Shape, host: &Path, guest: &Path, why: &str) {
        let known = |mount: &Mount| mount.guest == guest;
        if !self.out.mounts.iter().any(known) {
            self.out.mounts.push(Mount {
                host: host.to_owned(),
                guest: guest.to_owned(),
                shape,
                kind,
                why: why.to_owned(),
            });
        }
    }

    /// Shows one program under the name `guest`.
    pub(super) fn try_file(
        &mut self,
        kind: Kind,
        file: &Path,
        guest: &Path,
        why: &str,
    ) -> Result<(), Refusal> {
        let real = file.canonicalize().map_err(|_| Refusal::NotAProgram)?;
        if Guard::in_system(&real) {
            return Ok(());
        }
        self.guard.check(&real)?;
        self.guard.check(guest)?;
        match real.metadata() {
            Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => {
                self.push(kind, Shape::File, &real, guest, why);
                Ok(())
            }
            _ => Err(Refusal::NotAProgram),
        }
    }

    /// Makes `guest` lead to `target`, if the sandbox sees that, and puts `guest` where
    /// `origin` wants it.
    pub(super) fn link(&mut self, guest: &Path, target: &Path, origin: Origin) {
        let mounts = &self.out.mounts;
        let seen =
            Guard::in_system(target) || mounts.iter().any(|mount| target.starts_with(&mount.guest));
        if !seen || self.guard.check(guest).is_err() {
            return;
        }
        let link = Link {
            guest: guest.to_owned(),
            target: target.to_owned(),
        };
        if !self.out.links.contains(&link) {
            self.out.links.push(link);
        }
        if let Some(dir) = guest.parent()
            && origin.on_path()
        {
            self.bin(dir.to_owned());
        }
    }

    pub(super) fn bin(&mut self, dir: PathBuf) {
        let plain = dir
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if plain && !Guard::in_system(&dir) && !self.out.path.contains(&dir) {
            self.out.path.push(dir);
        }
    }

    /// The first to say wins, as the first in `PATH` does.
    pub(super) fn env(&mut self, name: &str, value: &Path) {
        if let Some(value) = value.to_str()
            && !self.out.env.iter().any(|(known, _)| known == name)
        {
            self.out.env.push((name.to_owned(), value.to_owned()));
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.out.notes.contains(&note) {
            self.out.notes.push(note);
        }
    }

    pub(super) fn refused(&mut self, kind: Kind, path: &Path, refusal: &Refusal) {
        self.note(format!(
            "{kind}: `{}` is not shown to the sandbox: {refusal}",
            show(path)
        ));
    }

    /// How much there is so far: what grows was found.
    pub(super) fn size(&self) -> usize {
        self.out.mounts.len() + self.out.links.len() + self.out.path.len()
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.out.notes
    }

    pub(super) fn finish(mut self) -> Toolchains {
        self.out.mounts.sort_by(|a, b| a.guest.cmp(&b.guest));
        let mut kept: Vec<Mount> = Vec::with_capacity(self.out.mounts.len());
        for mount in self.out.mounts {
            // Sorted by component, so whatever covers this one stands before it.
            if !kept.iter().any(|wide| mount.guest.starts_with(&wide.guest)) {
                kept.push(mount);
            }
        }
        let covered = |link: &Link| kept.iter().any(|wide| link.guest.starts_with(&wide.guest));
        self.out.links.retain(|link| !covered(link));
        self.out.mounts = kept;
        self.out
    }
}
