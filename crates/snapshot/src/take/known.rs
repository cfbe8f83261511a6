//! What an earlier snapshot already knows about the files that are there now.

use glovebox_model::Result;
use glovebox_workspace::{Dir, Kind};
use rustix::fs::{OFlags, fstatfs};

use super::{Take, xattrs_of};
use crate::bytes::Raw;
use crate::chunks::Chunks;
use crate::fault::{os, storing};
use crate::manifest::{Content, Manifest, Meta, Node};
use crate::record::Snapshot;
use crate::snapshots::Snapshots;
use crate::tree::{Facts, Found};

/// File systems that stamp every change, one through a mapped page too. On others (memory, unions,
/// the network) an untouched file cannot be told from a touched one, so everything is read.
const STAMPING: [i64; 3] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
];

#[derive(Debug)]
pub(super) struct Known {
    pub(super) snapshot: Option<Snapshot>,
    manifest: Manifest,
    pub(super) device: (u32, u32),
    /// Whether stamps can be relied on.
    stamps: bool,
}

impl Snapshots {
    pub(super) fn known(&self, chunks: &Chunks, take: &Take<'_>, work: &Dir) -> Result<Known> {
        let top = work
            .open_plain(b"", OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(storing)?;
        let device = Facts::of(&top).map_err(|errno| os("look at", b"", errno))?;
        let system = fstatfs(&top).map_err(|errno| os("look at", b"", errno))?;
        let mut known = Known {
            snapshot: None,
            manifest: Manifest::default(),
            device: device.device,
            stamps: STAMPING.contains(&system.f_type),
        };
        let parent = match &take.parent {
            Some(id) => Some(self.get(id)?),
            None => self.newest(&take.project)?,
        };
        let Some(parent) = parent else {
            return Ok(known);
        };
        // A parent that is damaged knows nothing, and then every file is read.
        if let Ok(manifest) = self.manifest(chunks, &parent) {
            known.manifest = manifest;
            known.snapshot = Some(parent);
        }
        Ok(known)
    }

    fn newest(&self, project: &glovebox_model::ProjectId) -> Result<Option<Snapshot>> {
        Ok(self.list(Some(project))?.snapshots.into_iter().next())
    }
}

impl Known {
    /// The stored contents of a file that nobody has touched since, if every chunk is still there.
    pub(super) fn unchanged(
        &self,
        found: &Found,
        names: u32,
        chunks: &Chunks,
    ) -> Option<(Content, Meta)> {
        let source = self.snapshot.as_ref()?.source;
        if !self.stamps || source.device != self.device || found.facts.device != self.device {
            return None;
        }
        let entry = self.manifest.find(&found.path)?;
        let Node::File(content) = &entry.node else {
            return None;
        };
        let same = content.names == names
            && found.facts.is_still(content, &entry.meta, source.started)
            && content.hashes().all(|hash| chunks.has(hash));
        same.then(|| (content.clone(), entry.meta.clone()))
    }

    /// A directory's attributes; how many were left out.
    pub(super) fn directory_xattrs(
        &self,
        work: &Dir,
        found: &Found,
    ) -> Result<(Vec<(Raw, Raw)>, u64)> {
        debug_assert_eq!(found.facts.kind, Kind::Directory);
        match work.open_plain(&found.path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(fd) => xattrs_of(&fd, &found.path),
            // Gone since it was listed: it is stored as it was seen.
            Err(_) => Ok((Vec::new(), 0)),
        }
    }
}
