//! A file that has no name until it is whole.

use std::ffi::{CStr, CString};
use std::fs::File;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, fchmod, linkat, mkdirat, openat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;

use crate::dir::{single, temporary_name};
use crate::fault::FsErrorKind;

/// Gone with this value unless it was given a name.
#[derive(Debug)]
pub(super) struct Fresh<'d> {
    dir: BorrowedFd<'d>,
    file: File,
    /// Where the file system has no files without a name.
    temporary: Option<CString>,
}

impl<'d> Fresh<'d> {
    pub(super) fn new(dir: BorrowedFd<'d>) -> Result<Self, FsErrorKind> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(dir, c".", flags | OFlags::TMPFILE, mode) {
            Ok(fd) => {
                return Ok(Self {
                    dir,
                    file: File::from(fd),
                    temporary: None,
                });
            }
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Self::named(dir)
    }

    fn named(dir: BorrowedFd<'d>) -> Result<Self, FsErrorKind> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let name = temporary_name()?;
        let exclusive = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let fd = openat(dir, &name, exclusive, mode)?;
        Ok(Self {
            dir,
            file: File::from(fd),
            temporary: Some(name),
        })
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// False when something stands there, whatever it is.
    pub(super) fn publish(mut self, name: &CStr) -> Result<bool, FsErrorKind> {
        let done = match &self.temporary {
            None => {
                // Our own entry in `/proc` leads to exactly the file that is held.
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, own.as_str(), self.dir, name, AtFlags::SYMLINK_FOLLOW)
            }
            Some(temporary) => {
                let flags = RenameFlags::NOREPLACE;
                match renameat_with(self.dir, temporary, self.dir, name, flags) {
                    // Not every file system can; a second name never replaces anything either.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        linkat(self.dir, temporary, self.dir, name, AtFlags::empty())
                    }
                    Ok(()) => {
                        self.temporary = None;
                        Ok(())
                    }
                    failed => failed,
                }
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Best effort: it has a name that nobody looks for.
            let _ = unlinkat(self.dir, temporary, AtFlags::empty());
        }
    }
}

/// With exactly this mode: the process's umask would take bits away. `EEXIST` when something is
/// there.
pub(crate) fn make_directory(
    parent: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
) -> Result<OwnedFd, FsErrorKind> {
    mkdirat(parent, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let fd = single(parent.as_fd(), name.to_bytes(), flags)?;
    fchmod(&fd, Mode::from_raw_mode(mode))?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(dir: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
        names.collect()
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_replaces_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = openat(CWD, tmp.path(), OFlags::PATH, Mode::empty()).unwrap();
        for (round, make) in [Fresh::new, Fresh::named].into_iter().enumerate() {
            let name = CString::new(format!("file-{round}")).unwrap();
            let path = tmp.path().join(format!("file-{round}"));
            let mut fresh = make(dir.as_fd()).unwrap();
            fresh.file().write_all(b"first").unwrap();
            assert!(!path.exists());
            assert!(fresh.publish(&name).unwrap());
            let mut second = make(dir.as_fd()).unwrap();
            second.file().write_all(b"second").unwrap();
            assert!(!second.publish(&name).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), b"first");
            drop(make(dir.as_fd()).unwrap());
            assert_eq!(names(tmp.path()).len(), round + 1, "nothing else is left");
        }
    }
}
