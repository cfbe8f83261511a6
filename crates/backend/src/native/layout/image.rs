//! The root of an image instead of the host's programs: each directory at its top is shown read-only
//! at its own name, each link is made anew. Whoever made the image decides what is in it and nothing
//! else: not where anything of ours lies, and not what a name of ours means.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use glovebox_cage::{Source, Step};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::Dir;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2, readlinkat};
use rustix::io::Errno;

use super::{Builder, Etc, Privilege, READ_ONLY, Spec, c_path, path_of};

/// Ours, whatever the image has there; and what no program of an image needs.
const OURS: [&[u8]; 11] = [
    b"proc",
    b"sys",
    b"dev",
    b"run",
    b"tmp",
    b"home",
    b"workspace",
    b"var",
    b"root",
    b"boot",
    b"lost+found",
];
/// Beside it lie our own /var/tmp and nothing else.
const VAR_LIB: &CStr = c"var/lib";
/// More than any root has at its top.
const ENTRIES_MAX: usize = 256;

impl<'fd> Builder<'fd, '_> {
    pub(super) fn image(&mut self, spec: &Spec<'_>, image: &'fd Dir, etc: &Etc) -> Result<()> {
        if !spec.toolchains.is_empty() || !spec.links.is_empty() {
            // Their places could be links of the image's, made before they are.
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Run,
                "a sandbox with an image shows none of the host's toolchains",
            )
            .hint("put the tools into the image"));
        }
        let root = Root::new(image, self)?;
        let listing = image.list(ENTRIES_MAX).map_err(|error| unusable(&error))?;
        if listing.truncated {
            return Err(unusable(&"it has too many entries at its top"));
        }
        let mut own_etc = true;
        for entry in listing.entries {
            let name = CString::new(entry.name.into_bytes()).unwrap_or_default();
            if OURS.contains(&name.to_bytes()) || name.is_empty() {
                continue;
            }
            let is_etc = name.as_c_str() == c"etc";
            match root.kind(&name)? {
                Some(FileType::Directory) => {
                    self.image_part(&root, &name)?;
                    own_etc &= !is_etc;
                }
                Some(FileType::Symlink) if !is_etc => {
                    let target = readlinkat(image.as_fd(), &name, Vec::new());
                    let target = target.map_err(|error| unusable(&error))?;
                    let path = inside(&name)?;
                    self.steps.push(Step::Symlink { path, target });
                }
                // Programs and libraries lie deeper; a file at the top is a note of its maker's.
                Some(_) | None => {}
            }
        }
        if root.kind(VAR_LIB)? == Some(FileType::Directory) {
            self.image_part(&root, VAR_LIB)?;
        }
        match own_etc {
            true => self.mount_path(etc.path(), Path::new("/etc"), &READ_ONLY),
            false => Ok(()),
        }
    }

    fn image_part(&mut self, root: &Root<'_>, path: &CStr) -> Result<()> {
        let source = root.source(path)?;
        let (target, attributes) = (inside(path)?, READ_ONLY.to_vec());
        self.steps.push(Step::Mount {
            source,
            target,
            attributes,
        });
        Ok(())
    }
}

/// How parts of the image are named to the cage.
struct Root<'dir> {
    directory: BorrowedFd<'dir>,
    /// None for an ordinary user, who can hand over nothing but paths.
    index: Option<usize>,
}

impl<'dir> Root<'dir> {
    fn new(image: &'dir Dir, builder: &mut Builder<'dir, '_>) -> Result<Self> {
        let directory = image.as_fd();
        let index = match builder.facts.privilege {
            Privilege::User { .. } => None,
            Privilege::Root => {
                builder.descriptors.push(directory);
                Some(builder.descriptors.len() - 1)
            }
        };
        Ok(Self { directory, index })
    }

    /// What lies there itself, without following a link on the way.
    fn kind(&self, path: &CStr) -> Result<Option<FileType>> {
        let place = match self.open(path) {
            // A link on the way: whatever it leads to is not here.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            other => other.map_err(|error| unusable(&error))?,
        };
        let found = rustix::fs::fstat(&place).map_err(|error| unusable(&error))?;
        Ok(Some(FileType::from_raw_mode(found.st_mode)))
    }

    fn open(&self, path: &CStr) -> rustix::io::Result<OwnedFd> {
        // A link at the end is opened as the link that it is.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(self.directory, path, flags, Mode::empty(), beneath)
    }

    fn source(&self, path: &CStr) -> Result<Source> {
        if let Some(index) = self.index {
            let path = path.into();
            return Ok(Source::Below { index, path });
        }
        let place = self.open(path).map_err(|error| unusable(&error))?;
        let found = rustix::fs::fstat(&place).map_err(|error| unusable(&error))?;
        Ok(Source::Path {
            path: c_path(&path_of(place.as_fd())?)?,
            identity: Some((found.st_dev, found.st_ino)),
        })
    }
}

fn inside(path: &CStr) -> Result<CString> {
    let mut inside = b"/".to_vec();
    inside.extend_from_slice(path.to_bytes());
    CString::new(inside).map_err(|error| unusable(&error))
}

fn unusable(cause: &dyn std::fmt::Display) -> Error {
    Error::new(Code::SetupFailed, Stage::Run, "the image cannot be used")
        .caused_by(cause)
        .hint("`glovebox image rm` and `glovebox image import` unpack it anew")
}
