//! One side of a comparison as a list of names.

use std::collections::HashMap;

use glovebox_model::Result;
use glovebox_workspace::{Dir, Kind};

use super::{EntryKind, Side};
use crate::bytes::byte_string;
use crate::chunks::Chunks;
use crate::manifest::{Content, Entry, Manifest, Node};
use crate::progress::Watch;
use crate::reach::Locked;
use crate::record::Snapshot;
use crate::snapshots::Snapshots;
use crate::tree::{Bounds, Facts, Found, walk};

const ENTRIES_MAX: usize = 4_000_000;

pub(super) enum Tree<'t> {
    Stored {
        snapshot: Box<Snapshot>,
        manifest: Manifest,
        chunks: &'t Chunks,
    },
    Live {
        dir: &'t Dir,
        found: Vec<Found>,
        /// From a further name of a file to its first.
        first: HashMap<usize, usize>,
    },
}

pub(super) enum Item<'i> {
    Stored {
        entry: &'i Entry,
        content: Option<&'i Content>,
    },
    Live {
        found: &'i Found,
        first: &'i [u8],
    },
}

impl<'t> Tree<'t> {
    pub(super) fn load(
        snapshots: &Snapshots,
        chunks: &'t Chunks,
        side: Side<'t>,
        watch: &mut dyn Watch,
    ) -> Result<Self> {
        match side {
            Side::Snapshot(id) => {
                let snapshot = snapshots.get(id)?;
                let manifest = snapshots.manifest(chunks, &snapshot)?;
                Ok(Self::Stored {
                    snapshot: Box::new(snapshot),
                    manifest,
                    chunks,
                })
            }
            Side::Live(dir) => {
                let bounds = Bounds {
                    entries: ENTRIES_MAX,
                    depth: usize::MAX,
                };
                let mut found = walk(dir, bounds, Locked::Refuse, &|_| true, watch)?;
                found.retain(|it| !it.facts.is_mount && is_kept(it.facts.kind));
                let mut firsts: HashMap<((u32, u32), u64), usize> = HashMap::new();
                let mut first = HashMap::new();
                for (at, entry) in found.iter().enumerate() {
                    let Facts {
                        kind,
                        links,
                        device,
                        ino,
                        ..
                    } = entry.facts;
                    if kind == Kind::File && links > 1 {
                        first.insert(at, *firsts.entry((device, ino)).or_insert(at));
                    }
                }
                Ok(Self::Live { dir, found, first })
            }
        }
    }

    pub(super) fn items(&self) -> Vec<Item<'_>> {
        match self {
            Self::Stored { manifest, .. } => manifest
                .entries()
                .iter()
                .map(|entry| Item::Stored {
                    entry,
                    content: manifest.content(entry),
                })
                .collect(),
            Self::Live { found, first, .. } => found
                .iter()
                .enumerate()
                .map(|(at, entry)| Item::Live {
                    found: entry,
                    first: &found[first.get(&at).copied().unwrap_or(at)].path,
                })
                .collect(),
        }
    }
}

/// What a snapshot has no place for is no difference to one.
fn is_kept(kind: Kind) -> bool {
    match kind {
        Kind::File | Kind::Directory | Kind::Symlink | Kind::Fifo => true,
        Kind::Socket | Kind::Device | Kind::Unknown => false,
    }
}

impl Item<'_> {
    pub(super) fn path(&self) -> &[u8] {
        match self {
            Self::Stored { entry, .. } => &entry.path.0,
            Self::Live { found, .. } => &found.path,
        }
    }

    pub(super) fn mode(&self) -> u32 {
        match self {
            Self::Stored { entry, .. } => entry.meta.mode,
            Self::Live { found, .. } => found.facts.kept_mode(),
        }
    }

    /// Of all names of the same file, the one that comes first.
    pub(super) fn first_name(&self) -> &[u8] {
        match self {
            Self::Stored { entry, .. } => match &entry.node {
                Node::Link { to } => &to.0,
                _ => &entry.path.0,
            },
            Self::Live { first, .. } => first,
        }
    }

    pub(super) fn kind(&self) -> EntryKind {
        let link = |target: &[u8]| EntryKind::Symlink {
            target: byte_string(target),
        };
        match self {
            Self::Stored { entry, content } => match &entry.node {
                Node::Directory => EntryKind::Directory,
                Node::File(_) | Node::Link { .. } => EntryKind::File {
                    bytes: content.map_or(0, |content| content.size),
                },
                Node::Symlink { target } => link(&target.0),
                Node::Fifo => EntryKind::Fifo,
            },
            Self::Live { found, .. } => match found.facts.kind {
                Kind::File => EntryKind::File {
                    bytes: found.facts.size,
                },
                Kind::Directory => EntryKind::Directory,
                Kind::Symlink => link(found.target.as_deref().unwrap_or_default()),
                Kind::Fifo => EntryKind::Fifo,
                Kind::Socket | Kind::Device | Kind::Unknown => EntryKind::Other,
            },
        }
    }
}
