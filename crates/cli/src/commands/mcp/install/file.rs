//! A host's file: found, read, and replaced whole. A link is followed to the file it stands for, as
//! those who keep their settings elsewhere want it, but not to places that are others' too.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::OFlags;
use rustix::process::{Gid, Uid};

use super::host::{Location, Scope};

/// Larger than any that a person or a host wrote.
const LONGEST: u64 = 32 << 20;

#[derive(Debug)]
pub(super) struct HostFile {
    /// Where the host looks for it.
    pub(super) path: PathBuf,
    /// Where it lies.
    pub(super) target: PathBuf,
    scope: Scope,
    found: Option<Found>,
}

#[derive(Debug, PartialEq, Eq)]
struct Found {
    text: String,
    mode: u32,
    uid: u32,
    gid: u32,
}

impl HostFile {
    pub(super) fn open(location: &Location) -> Result<Self> {
        let path = location.path();
        let target = resolve(location, &path)?;
        Ok(Self {
            found: read(&path, &target)?,
            path,
            target,
            scope: location.scope,
        })
    }

    pub(super) fn is_there(&self) -> bool {
        self.found.is_some()
    }

    pub(super) fn text(&self) -> &str {
        self.found.as_ref().map_or("", |it| it.text.as_str())
    }

    /// All of it or nothing, with the mode and the owner that it had.
    pub(super) fn replace(&self, text: &str) -> Result<()> {
        let failed = |error: io::Error| failed(&self.path, error);
        let directory = self.target.parent().unwrap_or(Path::new("/"));
        let mode = match self.scope {
            Scope::Own => 0o700,
            Scope::Project => 0o777,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(mode);
        builder.create(directory).map_err(failed)?;
        let mut fresh = tempfile::Builder::new()
            .prefix(".glovebox-")
            .tempfile_in(directory)
            .map_err(failed)?;
        fresh.write_all(text.as_bytes()).map_err(failed)?;
        self.dress(fresh.as_file()).map_err(failed)?;
        fresh.as_file().sync_all().map_err(failed)?;
        // The host writes there too.
        if read(&self.path, &self.target)? != self.found {
            return Err(changed(&self.path));
        }
        let kept = match self.found {
            Some(_) => fresh.persist(&self.target),
            None => fresh.persist_noclobber(&self.target),
        };
        kept.map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => changed(&self.path),
            _ => failed(error.error),
        })?;
        let synced = File::open(directory).and_then(|it| it.sync_all());
        synced.map_err(failed)
    }

    fn dress(&self, file: &File) -> io::Result<()> {
        let Some(found) = &self.found else {
            // A temporary file is its owner's alone. So are settings; a project's file is shared.
            return match self.scope {
                Scope::Own => Ok(()),
                Scope::Project => file.set_permissions(Permissions::from_mode(0o666 & !umask())),
            };
        };
        let facts = file.metadata()?;
        if (facts.uid(), facts.gid()) != (found.uid, found.gid) {
            let owner = (Uid::from_raw(found.uid), Gid::from_raw(found.gid));
            rustix::fs::fchown(file, Some(owner.0), Some(owner.1))?;
        }
        file.set_permissions(Permissions::from_mode(found.mode))
    }
}

/// The process has one thread here, and nothing is made between the two calls.
fn umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    rustix::process::umask(mask);
    mask.bits()
}

fn resolve(location: &Location, path: &Path) -> Result<PathBuf> {
    let failed = |error: io::Error| failed(path, error);
    let base = canonical(&location.base).map_err(failed)?;
    let target = match path.symlink_metadata() {
        Ok(facts) => fs::canonicalize(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound if facts.is_symlink() => {
                refused(path, "it is a link that leads nowhere")
                    .hint("make the file that it leads to, or remove the link")
            }
            _ => failed(error),
        })?,
        Err(error) if error.kind() == ErrorKind::NotFound => canonical(path).map_err(failed)?,
        Err(error) => return Err(failed(error)),
    };
    if target == base.join(&location.file) {
        return Ok(target);
    }
    let shown = target.display();
    // A repository is somebody else's work: its links must not choose what is written.
    if location.scope == Scope::Project && !target.starts_with(&base) {
        return Err(refused(
            path,
            &format!("it leads out of the project, to `{shown}`"),
        ));
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    let facts = fs::metadata(directory).map_err(failed)?;
    if is_open_to_others(&facts) {
        let why = format!("it leads to `{shown}`, and others may write into that directory");
        return Err(refused(path, &why).hint(format!(
            "take it from them with `chmod go-w {}`",
            directory.display()
        )));
    }
    Ok(target)
}

/// The path without links, as far as it is there.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        match fs::canonicalize(there) {
            Ok(mut found) => {
                found.extend(missing.iter().rev());
                return Ok(found);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let (Some(name), Some(parent)) = (there.file_name(), there.parent()) else {
            return Err(ErrorKind::NotFound.into());
        };
        missing.push(name);
        there = parent;
    }
}

/// A group that bears its user's number has nobody else in it.
fn is_open_to_others(directory: &fs::Metadata) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_trusted = [own, 0].contains(&directory.uid());
    let by_group = directory.mode() & 0o020 != 0 && ![own, 0].contains(&directory.gid());
    !is_trusted || by_group || directory.mode() & 0o002 != 0
}

fn read(path: &Path, target: &Path) -> Result<Option<Found>> {
    let failed = |error: io::Error| failed(path, error);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(target);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let facts = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid();
    if !facts.is_file() {
        return Err(refused(path, "it is no file"));
    }
    if facts.uid() != own.as_raw() && !own.is_root() {
        return Err(refused(path, "it belongs to somebody else"));
    }
    if facts.len() > LONGEST {
        return Err(refused(path, "it is larger than 32 MiB"));
    }
    let mut text = String::new();
    match file.take(LONGEST).read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(refused(path, "it is no text in UTF-8"));
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(Some(Found {
        text,
        mode: facts.mode() & 0o7777,
        uid: facts.uid(),
        gid: facts.gid(),
    }))
}

pub(super) fn refused(path: &Path, why: &str) -> Error {
    let message = format!("`{}` stays as it is: {why}", path.display());
    Error::new(Code::InvalidConfig, Stage::Parse, message)
}

fn changed(path: &Path) -> Error {
    let message = format!("`{}` was changed meanwhile, and stays so", path.display());
    Error::new(Code::Conflict, Stage::Close, message).hint("run the command again")
}

fn failed(path: &Path, error: io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::InvalidArgument,
    };
    let message = format!("cannot edit `{}`", path.display());
    Error::new(code, Stage::Close, message).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(base: &Path) -> Location {
        Location {
            base: base.to_owned(),
            file: "deep/er/mcp.json".into(),
            scope: Scope::Own,
        }
    }

    #[test]
    fn what_its_host_wrote_meanwhile_is_not_lost() {
        let place = tempfile::tempdir().unwrap();
        let location = location(place.path());
        let absent = HostFile::open(&location).unwrap();
        assert!(!absent.is_there());
        absent.replace("one").unwrap();
        // It thinks that there is no file yet.
        assert_eq!(absent.replace("two").unwrap_err().code, Code::Conflict);
        let there = HostFile::open(&location).unwrap();
        assert_eq!(there.text(), "one");
        fs::write(location.path(), "by the host").unwrap();
        assert_eq!(there.replace("two").unwrap_err().code, Code::Conflict);
        assert_eq!(fs::read_to_string(location.path()).unwrap(), "by the host");
        let directory = location.path();
        let names = fs::read_dir(directory.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "nothing is left behind");
    }

    #[test]
    fn mode_and_owner_stay() {
        let place = tempfile::tempdir().unwrap();
        let location = location(place.path());
        let path = location.path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
        }
        HostFile::open(&location).unwrap().replace("two").unwrap();
        let facts = fs::metadata(&path).unwrap();
        assert_eq!(facts.mode() & 0o7777, 0o604);
        if is_root {
            assert_eq!((facts.uid(), facts.gid()), (12, 34));
        }
    }
}
