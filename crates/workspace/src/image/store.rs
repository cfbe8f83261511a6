//! The images that are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_model::{Code, Error, Result};
use rustix::fd::AsFd;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::import::{ImageFormat, ImageSource, Job, Progress};
use super::lock::{Lock, Sharing};
use super::name::{ImageDigest, ImageName};
use super::record::{ImageRecord, Names, Removed, sync_dir};
use super::staging::{Staging, fresh_name};
use super::{STAGE, storing};
use crate::archive::{UnpackLimits, make_directory};
use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind};

const IMAGES: &str = "images";
const SHELF: &str = "tmp";
const LOCK: &str = "lock";
const ROOTFS: &str = "rootfs";
const USE: &str = "use";
/// In an import's own directory, until it gets its name.
const NEW: &str = "image";
const MOST: usize = 100_000;

#[derive(Debug)]
pub struct Images {
    dir: Dir,
    shelf: Dir,
    limits: UnpackLimits,
    canceled: Arc<AtomicBool>,
}

/// An image that cannot be removed for as long as this lives.
#[derive(Debug)]
pub struct Held {
    record: ImageRecord,
    rootfs: Dir,
    _use: Lock,
}

impl Held {
    pub fn record(&self) -> &ImageRecord {
        &self.record
    }

    pub fn rootfs(&self) -> &Dir {
        &self.rootfs
    }
}

impl Images {
    /// Opens the images in a state directory, and removes what dead processes left there.
    pub fn open(state: &Dir) -> Result<Self> {
        let dir = state.ensure_dir(IMAGES, 0o700).map_err(storing)?;
        let shelf = dir.ensure_dir(SHELF, 0o700).map_err(storing)?;
        let images = Self {
            dir,
            shelf,
            limits: UnpackLimits::IMAGE,
            canceled: Arc::default(),
        };
        let lock = images.lock()?;
        Staging::sweep(&images.shelf, &lock)?;
        images.drop_unnamed(&lock)?;
        Ok(images)
    }

    /// Other limits than those of [`UnpackLimits::IMAGE`] for what is imported from now on.
    #[must_use]
    pub fn with_limits(mut self, limits: UnpackLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Imports stop soon after this becomes true, and leave nothing.
    #[must_use]
    pub fn until(mut self, canceled: Arc<AtomicBool>) -> Self {
        self.canceled = canceled;
        self
    }

    /// Brings an image in under a name. A name that is taken means the new image from then on.
    pub fn import(
        &self,
        source: ImageSource<'_>,
        name: &ImageName,
        format: ImageFormat,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImageRecord> {
        let staging = Staging::new(&self.shelf, &self.lock()?)?;
        let new = staging.dir.make_new_dir(NEW, 0o700).map_err(storing)?;
        // Whoever runs in it may have another id.
        make_directory(new.as_fd(), c"rootfs", 0o755)
            .map_err(|errno| storing(FsError::os("make", ROOTFS.as_bytes(), errno)))?;
        let rootfs = new.open_name(ROOTFS).map_err(storing)?;
        drop(new.create_name(USE, 0o600).map_err(storing)?);
        let job = Job {
            format,
            room: &staging.dir,
            rootfs: &rootfs,
            limits: self.limits,
            canceled: &self.canceled,
        };
        let imported = job.run(source, progress);
        // Before anybody else can see it; and what reading then failed with says nothing.
        if self.canceled.load(Ordering::Relaxed) {
            let message = "the import was canceled; nothing is left of it";
            return Err(Error::new(Code::Canceled, STAGE, message));
        }
        let imported = imported?;
        let record = imported.record(name.clone());
        let lock = self.lock()?;
        self.publish(&staging, &record.digest)?;
        let mut names = Names::read(&self.dir)?;
        names.images.insert(name.clone(), record.clone());
        names.write(&self.dir)?;
        // What the name meant before, unless somebody runs in it.
        self.drop_unnamed(&lock)?;
        Ok(record)
    }

    /// By name.
    pub fn ls(&self) -> Result<Vec<ImageRecord>> {
        Ok(Names::read(&self.dir)?.images.into_values().collect())
    }

    /// Refused while somebody holds it, unless it has another name.
    pub fn rm(&self, name: &ImageName) -> Result<Removed> {
        let lock = self.lock()?;
        let mut names = Names::read(&self.dir)?;
        let Some(record) = names.images.remove(name) else {
            return Err(unknown(name));
        };
        let digest = record.digest;
        let files_removed = !names.mention(&digest);
        if files_removed && self.in_use(&digest)? {
            return Err(
                Error::new(Code::Busy, STAGE, format!("image `{name}` is in use"))
                    .hint("wait for the sandboxes that run in it to end, or stop them"),
            );
        }
        names.write(&self.dir)?;
        self.drop_unnamed(&lock)?;
        Ok(Removed {
            name: name.clone(),
            digest,
            files_removed,
        })
    }

    /// Keeps an image from being removed while something runs in it.
    pub fn hold(&self, name: &ImageName) -> Result<Held> {
        let _lock = self.lock()?;
        let mut names = Names::read(&self.dir)?;
        let record = names.images.remove(name).ok_or_else(|| unknown(name))?;
        let image = match self.dir.open_name(record.digest.hex()) {
            Err(error) if error.kind() == FsErrorKind::NotFound => return Err(gone(name)),
            opened => opened.map_err(storing)?,
        };
        let rootfs = image.open_name(ROOTFS).map_err(storing)?;
        let using = Lock::attempt(&image, USE, Sharing::Shared)?.ok_or_else(|| gone(name))?;
        Ok(Held {
            record,
            rootfs,
            _use: using,
        })
    }

    fn lock(&self) -> Result<Lock> {
        Lock::wait(&self.dir, LOCK)
    }

    /// Moves a finished image to its place. One with the same digest has the same contents.
    fn publish(&self, staging: &Staging, digest: &ImageDigest) -> Result<()> {
        let moved = rustix::fs::renameat_with(
            &staging.dir,
            NEW,
            &self.dir,
            digest.hex(),
            RenameFlags::NOREPLACE,
        );
        match moved {
            Ok(()) => sync_dir(&self.dir)
                .map_err(|kind| storing(FsError::new("sync", IMAGES.as_bytes(), kind))),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(storing(FsError::os("rename", NEW.as_bytes(), errno))),
        }
    }

    fn in_use(&self, digest: &ImageDigest) -> Result<bool> {
        match self.dir.open_name(digest.hex()) {
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
            Err(error) => Err(storing(error)),
            Ok(image) => Ok(Lock::attempt(&image, USE, Sharing::Alone)?.is_none()),
        }
    }

    /// Removes images that no name means and nobody runs in. Whoever takes one into use holds the
    /// store's lock meanwhile, so none is taken between the look and the removal.
    fn drop_unnamed(&self, _lock: &Lock) -> Result<()> {
        let names = Names::read(&self.dir)?;
        let listing = self.dir.list(MOST).map_err(storing)?;
        for entry in listing.entries {
            let Some(digest) = ImageDigest::from_hex(&entry.name.display()) else {
                continue;
            };
            if names.mention(&digest) || self.in_use(&digest)? {
                continue;
            }
            // Moved first: half an image must never be found under its digest.
            let doomed = fresh_name()?;
            rustix::fs::renameat(&self.dir, digest.hex(), &self.shelf, doomed.as_str())
                .map_err(|errno| storing(FsError::os("remove", IMAGES.as_bytes(), errno)))?;
            self.shelf.remove_entry(&doomed).map_err(storing)?;
        }
        Ok(())
    }
}

fn unknown(name: &ImageName) -> Error {
    Error::new(Code::NotFound, STAGE, format!("there is no image `{name}`"))
        .hint("`glovebox image ls` lists those that are here")
}

fn gone(name: &ImageName) -> Error {
    let message = format!("the files of image `{name}` are gone");
    Error::new(Code::StoreUnavailable, STAGE, message).hint("import it again")
}
