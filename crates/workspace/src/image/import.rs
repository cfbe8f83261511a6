//! From whatever an image comes as to a root directory.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_model::{Error, Result};
use jiff::Timestamp;
use rustix::fd::AsFd;
use rustix::fs::{OFlags, syncfs};

use super::bundle::{Bundle, Looks, Spool, peek};
use super::layer::{apply_all, apply_one};
use super::name::{ImageDigest, ImageName};
use super::oci::Plan;
use super::record::{ImageConfig, ImageRecord};
use super::{STAGE, docker, oci, storing, unfit};
use crate::archive::{Flow, UnpackLimits, Unpacked};
use crate::dir::{Dir, Order, Visit, WalkEnd, WalkLimits, single, walk};
use crate::fault::FsError;
use crate::stat::Kind;

/// Links inside an image can make a directory deeper than any path in it, and nobody could open
/// what has a longer path than this.
const DEEPEST: usize = 2048;
const PATH_BYTES: usize = 4095;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Told apart by what is in it.
    Auto,
    OciLayout,
    DockerSave,
    /// An archive whose entries are the files of the root directory.
    Rootfs,
}

/// Where an image is read from. Whoever was given a path opens it.
pub enum ImageSource<'r> {
    /// An OCI layout, or what `docker save` wrote, as a directory.
    Folder(Dir),
    /// An archive, plain or compressed with gzip or zstd.
    Archive(Box<dyn Read + 'r>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The archive is copied to be looked at.
    Copying,
    Layer {
        number: usize,
        of: usize,
    },
    Unpacking {
        entries: u64,
        bytes: u64,
    },
    /// Everything is unpacked and goes to disk.
    Keeping,
}

/// What an import knows when everything is unpacked.
#[derive(Debug)]
pub(super) struct Imported {
    known: Known,
    skipped: u64,
    size_bytes: u64,
    files: u64,
}

/// What an image says of itself.
#[derive(Debug)]
struct Known {
    digest: ImageDigest,
    created_at: Option<Timestamp>,
    architecture: Option<String>,
    config: ImageConfig,
}

impl Imported {
    pub(super) fn record(self, name: ImageName) -> ImageRecord {
        ImageRecord {
            name,
            digest: self.known.digest,
            created_at: self.known.created_at,
            imported_at: Timestamp::now(),
            size_bytes: self.size_bytes,
            files: self.files,
            skipped: self.skipped,
            architecture: self.known.architecture,
            config: self.known.config,
        }
    }
}

/// One import: from what, and where to.
#[derive(Debug)]
pub(super) struct Job<'t> {
    pub(super) format: ImageFormat,
    /// For what must be copied first.
    pub(super) room: &'t Dir,
    pub(super) rootfs: &'t Dir,
    pub(super) limits: UnpackLimits,
    pub(super) canceled: &'t AtomicBool,
}

impl Job<'_> {
    /// Fills `rootfs`.
    pub(super) fn run(
        &self,
        source: ImageSource<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Imported> {
        let (known, unpacked) = match source {
            ImageSource::Folder(dir) => {
                let bundle = Bundle::Folder(dir);
                match plan_of(&bundle, self.format)? {
                    Some(plan) => self.layers(&bundle, plan, progress)?,
                    None => return Err(unknown_folder()),
                }
            }
            ImageSource::Archive(source) => {
                let source = Until::new(source, self.canceled);
                let flow = Flow::new(source, self.limits).map_err(|error| error.at(STAGE))?;
                let (looks, plain) = peek(flow)?;
                let streams = match self.format {
                    ImageFormat::Rootfs => true,
                    ImageFormat::Auto => looks == Looks::LikeARoot,
                    ImageFormat::OciLayout | ImageFormat::DockerSave => false,
                };
                match streams {
                    true => self.root(plain, progress)?,
                    false => self.copied(plain, progress)?,
                }
            }
        };
        progress(Progress::Keeping);
        let (files, size_bytes) = measure(self.rootfs, self.limits)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let synced = single(self.rootfs.as_fd(), b".", flags).and_then(|fd| Ok(syncfs(fd)?));
        synced.map_err(|kind| storing(FsError::new("sync", b"rootfs", kind)))?;
        Ok(Imported {
            known,
            skipped: unpacked.skipped,
            size_bytes,
            files,
        })
    }

    fn layers(
        &self,
        bundle: &Bundle,
        plan: Plan,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Known, Unpacked)> {
        let unpacked = apply_all(self, bundle, &plan, progress)?;
        let known = Known {
            digest: plan.digest,
            created_at: plan.created_at,
            architecture: Some(plan.architecture),
            config: plan.config,
        };
        Ok((known, unpacked))
    }

    fn root(
        &self,
        plain: impl Read,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Known, Unpacked)> {
        let plain = Until::new(plain, self.canceled);
        let (unpacked, digest) = apply_one(plain, self.rootfs, self.limits, progress)?;
        let known = Known {
            digest,
            created_at: None,
            architecture: None,
            config: ImageConfig::default(),
        };
        Ok((known, unpacked))
    }

    fn copied(
        &self,
        plain: impl Read,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Known, Unpacked)> {
        const SPOOL: &str = "spool";
        progress(Progress::Copying);
        let writer = self.room.create_name(SPOOL, 0o600).map_err(storing)?;
        let reader = self.room.open_file_name(SPOOL).map_err(storing)?;
        let spool = Spool::new(plain, &writer, reader, self.limits);
        let bundle = Bundle::Spooled(spool.map_err(|error| error.at(STAGE))?);
        match (plan_of(&bundle, self.format)?, &bundle) {
            (Some(plan), _) => self.layers(&bundle, plan, progress),
            (None, Bundle::Spooled(spool)) => self.root(spool.whole(), progress),
            (None, Bundle::Folder(_)) => Err(unknown_folder()),
        }
    }
}

/// Ends a reading that nobody wants any more.
pub(super) struct Until<'c, R> {
    inner: R,
    canceled: &'c AtomicBool,
}

impl<'c, R: Read> Until<'c, R> {
    pub(super) fn new(inner: R, canceled: &'c AtomicBool) -> Self {
        Self { inner, canceled }
    }
}

impl<R: Read> Read for Until<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.canceled.load(Ordering::Relaxed) {
            // Not `Interrupted`: that means to try again.
            true => Err(io::Error::other("canceled")),
            false => self.inner.read(buffer),
        }
    }
}

/// None when it is neither kind of image.
fn plan_of(bundle: &Bundle, format: ImageFormat) -> Result<Option<Plan>> {
    let oci = bundle.has("oci-layout") && bundle.has("index.json");
    match format {
        ImageFormat::OciLayout => oci::plan(bundle).map(Some),
        ImageFormat::DockerSave => docker::plan(bundle).map(Some),
        ImageFormat::Auto if oci => oci::plan(bundle).map(Some),
        ImageFormat::Auto if bundle.has("manifest.json") => docker::plan(bundle).map(Some),
        ImageFormat::Auto | ImageFormat::Rootfs => Ok(None),
    }
}

fn unknown_folder() -> Error {
    unfit("the directory is no OCI layout and was not written by `docker save`")
        .hint("to import the files of a root directory, give a tar archive of them")
}

/// Regular files and their bytes. The walk must see everything, or nobody can be told later what
/// the image takes.
fn measure(rootfs: &Dir, limits: UnpackLimits) -> Result<(u64, u64)> {
    let walk_limits = WalkLimits {
        depth: DEEPEST,
        path_bytes: PATH_BYTES,
        // Directories that no entry names are made too.
        entries: limits.entries.saturating_mul(limits.depth as u64),
        deadline: None,
    };
    let (mut files, mut bytes, mut complete) = (0u64, 0u64, true);
    let mut linked = HashSet::new();
    let end = walk(rootfs, walk_limits, Order::AsRead, &mut |visit| {
        match visit {
            Visit::Entry(entry) if entry.stat.kind == Kind::File => {
                if entry.stat.links < 2 || linked.insert(entry.stat.id) {
                    files += 1;
                    bytes = bytes.saturating_add(entry.stat.size);
                }
            }
            Visit::Entry(_) => {}
            Visit::Skipped { .. } => complete = false,
        }
        ControlFlow::Continue(())
    });
    let end = end.map_err(|kind| storing(FsError::new("measure", b"rootfs", kind)))?;
    match complete && end == WalkEnd::Complete {
        true => Ok((files, bytes)),
        false => Err(unfit("its directories lie too deeply within one another")
            .hint("no ordinary image has paths of more than 4095 bytes")),
    }
}

impl fmt::Debug for ImageSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Folder(_) => "Folder",
            Self::Archive(_) => "Archive",
        })
    }
}
