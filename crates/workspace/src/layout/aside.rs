//! Workspaces that come with files: built under a name that nobody knows, and there under their own
//! when they are whole. Whoever is killed meanwhile leaves something that the next one removes.

use glovebox_model::{Code, Error, ProjectId, Result, Stage};
use rustix::fd::AsFd;
use rustix::fs::{FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use super::{Layout, ORDINARY, PRIVATE, Project, WORK, WorkKind, check_name, opening};
use crate::dir::{Dir, single, temporary_name};
use crate::fault::{FsError, FsErrorKind, FsResult};

/// No id of a project begins with a dot.
const ASIDE: &str = ".aside";
const MOST: usize = 100_000;
const ATTEMPTS: usize = 8;

impl Layout {
    /// Makes a workspace that is not there, whole or not at all. A `conflict` when somebody else was
    /// faster.
    pub fn build<T>(&self, id: &ProjectId, fill: impl FnOnce(&Project) -> Result<T>) -> Result<T> {
        check_name(id)?;
        if self.projects.open_name(id.as_str()).is_ok() {
            return Err(there(id));
        }
        // Best effort: what cannot go now is tried again by the next one.
        let _ = self.clear_aside();
        let (name, project, _alone) = self.begin_aside(id)?;
        let filled = fill(&project).and_then(|filled| {
            let (from, to) = (name.as_str(), id.as_str());
            match renameat_with(
                &self.projects,
                from,
                &self.projects,
                to,
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => Ok(filled),
                Err(Errno::EXIST | Errno::NOTEMPTY) => Err(there(id)),
                Err(errno) => Err(opening(FsError::os(
                    "make the workspace",
                    to.as_bytes(),
                    errno,
                ))),
            }
        });
        if filled.is_err() {
            let _ = self.projects.remove_entry(&name);
        }
        filled
    }

    /// Removes what was being built by somebody who is gone, and says how many there were.
    pub fn clear_aside(&self) -> Result<usize> {
        let listing = self.projects.list(MOST).map_err(opening)?;
        let mut removed = 0;
        for entry in listing.entries {
            let name = entry.name.display();
            if name.starts_with(ASIDE) && self.is_left(&name).map_err(opening)? {
                self.projects.remove_entry(&name).map_err(opening)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Whoever builds has it locked.
    fn is_left(&self, name: &str) -> FsResult<bool> {
        let home = match self.projects.open_name(name) {
            Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(false),
            home => home?,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let lock = single(home.as_fd(), b".", flags)
            .map_err(|kind| FsError::new("lock the workspace", name.as_bytes(), kind))?;
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(FsError::os("lock the workspace", name.as_bytes(), errno)),
        }
    }

    fn begin_aside(&self, id: &ProjectId) -> Result<(String, Project, crate::lock::Occupied)> {
        for _ in 0..ATTEMPTS {
            let random = temporary_name().map_err(|kind| opening(making(kind)))?;
            let name = format!("{ASIDE}{}", random.to_string_lossy());
            let home = self
                .projects
                .make_new_dir(&name, PRIVATE)
                .map_err(opening)?;
            let mut project = Project {
                id: id.clone(),
                home,
                work: None,
                kind: WorkKind::Managed,
                agent: None,
            };
            let Ok(alone) = project.occupy() else {
                continue;
            };
            // Somebody who tidies up may have taken it for left, before it was locked.
            if !self.is_still(&name, &project.home) {
                continue;
            }
            let work = project.home.make_new_dir(WORK, ORDINARY).map_err(opening)?;
            project.work = Some(work);
            return Ok((name, project, alone));
        }
        Err(opening(making(FsErrorKind::Contended)))
    }

    fn is_still(&self, name: &str, home: &Dir) -> bool {
        let found = self.projects.open_name(name).and_then(|found| found.id());
        matches!((found, home.id()), (Ok(found), Ok(home)) if found == home)
    }
}

fn making(kind: FsErrorKind) -> FsError {
    FsError::new("make the workspace", b"", kind)
}

fn there(id: &ProjectId) -> Error {
    let message = format!("workspace `{id}` is there already");
    Error::new(Code::Conflict, Stage::Resolve, message)
        .hint("choose another name, or remove that one first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_when_it_is_whole_and_what_is_left_goes() {
        let place = tempfile::tempdir().unwrap();
        let layout = Layout::open(Dir::open_trusted(place.path()).unwrap()).unwrap();
        let id: ProjectId = "a".parse().unwrap();
        let names = || {
            let entries = std::fs::read_dir(place.path().join("projects")).unwrap();
            let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        layout
            .build(&id, |project| {
                assert!(layout.existing(&id).is_err(), "nobody sees half of it");
                // Another who tidies up leaves it alone.
                assert_eq!(layout.clear_aside()?, 0);
                let file = crate::relpath::RelPath::new("f").unwrap();
                project.work().unwrap().create(&file, 0o644).unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!(names(), ["a"]);
        assert!(place.path().join("projects/a/work/f").exists());
        let twice = layout.build(&id, |_| Ok(())).unwrap_err();
        assert_eq!(twice.code, Code::Conflict);
        let other: ProjectId = "b".parse().unwrap();
        let failed = layout.build(&other, |_| Err::<(), _>(there(&id)));
        assert!(failed.is_err());
        assert_eq!(names(), ["a"], "half a workspace is none");
        // Somebody was killed here.
        std::fs::create_dir_all(place.path().join("projects/.aside-x/work/deep")).unwrap();
        assert_eq!(layout.clear_aside().unwrap(), 1);
        assert_eq!(names(), ["a"]);
        // Two at once: one of them has it.
        let lost = layout.build(&other, |_| layout.build(&other, |_| Ok(())));
        assert_eq!(lost.unwrap_err().code, Code::Conflict);
        assert_eq!(names(), ["a", "b"]);
    }
}
