//! All chunks of a store, wherever they lie.

use std::collections::HashMap;

use glovebox_model::Result;
use glovebox_workspace::Dir;

use crate::fault::{damaged, storing};
use crate::hash::ChunkHash;
use crate::pack::{Located, Pack, is_pack_name};

/// A store that collects its garbage has a handful.
pub(crate) const PACKS_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pack: usize,
    pub(crate) located: Located,
}

#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) packs: Vec<Pack>,
    at: HashMap<ChunkHash, Place>,
    /// Second copies: two takes at once, or a collection that was killed.
    more: HashMap<ChunkHash, Vec<Place>>,
    /// Packs that cannot be read, and why.
    pub(crate) unreadable: Vec<(String, String)>,
}

impl Chunks {
    pub(crate) fn load(dir: &Dir) -> Result<Self> {
        let listing = dir.list(PACKS_MAX).map_err(storing)?;
        let mut all = Self {
            packs: Vec::new(),
            at: HashMap::new(),
            more: HashMap::new(),
            unreadable: Vec::new(),
        };
        if listing.truncated {
            return Err(damaged(format!("there are more than {PACKS_MAX} packs")));
        }
        for entry in listing.entries {
            let name = entry.name.display();
            if !is_pack_name(&name) {
                continue;
            }
            match Pack::open(dir, &name) {
                Ok((pack, index)) => all.add(pack, index),
                // The others may have all that is needed; what is missing will be told by name.
                Err(error) => all.unreadable.push((name, error.to_string())),
            }
        }
        Ok(all)
    }

    fn add(&mut self, pack: Pack, index: Vec<Located>) {
        let number = self.packs.len();
        self.packs.push(pack);
        self.at.reserve(index.len());
        for located in index {
            let place = Place {
                pack: number,
                located,
            };
            if let Some(first) = self.at.insert(located.hash, place) {
                self.more.entry(located.hash).or_default().push(first);
            }
        }
    }

    pub(crate) fn has(&self, hash: ChunkHash) -> bool {
        self.at.contains_key(&hash)
    }

    /// Every copy.
    pub(crate) fn places(&self, hash: ChunkHash) -> impl Iterator<Item = &Place> {
        let more = self.more.get(&hash).into_iter().flatten();
        self.at.get(&hash).into_iter().chain(more)
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &Place> {
        self.at.values().chain(self.more.values().flatten())
    }

    /// The bytes that have this hash, from whichever copy is good.
    pub(crate) fn get(&self, hash: ChunkHash) -> Result<Vec<u8>> {
        let mut fault = None;
        for place in self.places(hash) {
            match self.packs[place.pack].chunk(&place.located) {
                Ok(bytes) => return Ok(bytes),
                Err(error) => fault = Some((place.pack, error)),
            }
        }
        Err(match fault {
            Some((pack, error)) => {
                let name = self.packs[pack].name.clone();
                error.caused_by(format!("in pack `{name}`"))
            }
            None => self.missing(hash),
        })
    }

    pub(crate) fn missing(&self, hash: ChunkHash) -> glovebox_model::Error {
        let error = damaged(format!("chunk `{hash}` is missing"));
        match self.unreadable.first() {
            Some((name, why)) => error.caused_by(format!("pack `{name}` cannot be read: {why}")),
            None => error,
        }
    }
}
