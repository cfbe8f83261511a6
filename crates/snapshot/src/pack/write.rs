//! Writing packs: under a temporary name until everything in it is on disk.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;

use glovebox_model::{Code, Error, Result};
use glovebox_workspace::{Dir, Existing, RelPath};

use super::index::{self, Form, Located};
use super::{MAGIC, SUFFIX, TEMPORARY};
use crate::fault::{STAGE, internal, io, storing};
use crate::hash::ChunkHash;
use crate::snapshots::sync_dir;

/// A pack is closed when it has got this large; garbage is collected by the pack.
const SPLIT_BYTES: u64 = 256 << 20;
const BUFFER: usize = 1 << 20;

/// Chunks as they go into a pack, one after another: many small ones are written at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    items: Vec<Item>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Item {
    hash: ChunkHash,
    stored: u32,
    plain: u32,
    form: Form,
}

impl Batch {
    pub(crate) fn push(
        &mut self,
        hash: ChunkHash,
        plain: u32,
        form: Form,
        bytes: &[u8],
    ) -> Result<()> {
        let stored = u32::try_from(bytes.len()).map_err(|_| internal("a chunk too large"))?;
        self.items.push(Item {
            hash,
            stored,
            plain,
            form,
        });
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether it is worth a write of its own.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= BUFFER
    }
}

/// Dropped before [`PackWriter::finish`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct PackWriter<'s> {
    dir: &'s Dir,
    open: Option<Open>,
    done: Vec<RelPath>,
    /// Of finished packs.
    done_bytes: u64,
    /// A chunk is put once: an index has no two of one name.
    put: HashSet<ChunkHash>,
    /// How many bytes all packs together may take.
    budget: u64,
    limit: u64,
}

#[derive(Debug)]
struct Open {
    name: RelPath,
    file: File,
    buffer: Vec<u8>,
    /// Everything put so far, the buffer included.
    length: u64,
    items: Vec<Located>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) chunks: u64,
}

impl<'s> PackWriter<'s> {
    /// `limit` is only for the message when `budget`, what is left of it, does not do.
    pub(crate) fn new(dir: &'s Dir, budget: u64, limit: u64) -> Self {
        Self {
            dir,
            open: None,
            done: Vec::new(),
            done_bytes: 0,
            put: HashSet::new(),
            budget,
            limit,
        }
    }

    pub(crate) fn put(&mut self, batch: &Batch) -> Result<()> {
        if self
            .open
            .as_ref()
            .is_some_and(|it| it.length >= SPLIT_BYTES)
        {
            self.close()?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open::new(self.dir)?),
        };
        let mut offset = open.length;
        for item in &batch.items {
            // One that was put before lies there twice, and the index names the first.
            if self.put.insert(item.hash) {
                open.items.push(Located {
                    hash: item.hash,
                    offset,
                    stored: item.stored,
                    plain: item.plain,
                    form: item.form,
                });
            }
            offset += u64::from(item.stored);
        }
        open.write(&batch.bytes)?;
        self.within_budget(0)
    }

    /// Everything so far and `more` bytes that will be written elsewhere.
    pub(crate) fn within_budget(&self, more: u64) -> Result<()> {
        let open = self.open.as_ref().map_or(0, |open| {
            open.length + index::encoded_length(open.items.len()) as u64
        });
        if self.done_bytes + open + more <= self.budget {
            return Ok(());
        }
        let message = format!(
            "the snapshots of this space would take more than {} bytes",
            self.limit
        );
        Err(Error::new(Code::DiskFull, STAGE, message)
            .hint("remove snapshots and run `glovebox snapshot gc`, or raise the quota"))
    }

    fn close(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        // Noted first: it goes with the rest if anything fails from here on.
        self.done.push(open.name.clone());
        let begins = open.length;
        let end = index::encode(&mut open.items, begins);
        open.write(&end)?;
        open.flush()?;
        open.file
            .sync_all()
            .map_err(|error| io("write", open.name.as_bytes(), &error))?;
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|_| internal("the system has no random numbers"))?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = named(&format!("{id}{SUFFIX}"))?;
        self.dir
            .rename(&open.name, &name, Existing::Refuse)
            .map_err(storing)?;
        self.done.pop();
        self.done.push(name);
        self.done_bytes += open.length;
        Ok(())
    }

    /// From here on the chunks are there for good: on disk, under a name that survives a crash.
    pub(crate) fn finish(mut self) -> Result<Written> {
        self.close()?;
        if !self.done.is_empty() {
            sync_dir(self.dir)?;
        }
        self.done.clear();
        Ok(Written {
            bytes: self.done_bytes,
            chunks: self.put.len() as u64,
        })
    }
}

impl Drop for PackWriter<'_> {
    fn drop(&mut self) {
        let open = self.open.take().map(|open| open.name);
        for name in self.done.drain(..).chain(open) {
            // What cannot be removed now is an orphan that the next collection removes.
            let _ = self.dir.remove_file(&name);
        }
    }
}

impl Open {
    fn new(dir: &Dir) -> Result<Self> {
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(|_| internal("the system has no random numbers"))?;
        let name = named(&format!("{TEMPORARY}{:016x}", u64::from_ne_bytes(random)))?;
        let file = dir.create(&name, 0o600).map_err(storing)?;
        let mut open = Self {
            name,
            file,
            buffer: Vec::with_capacity(BUFFER),
            length: 0,
            items: Vec::new(),
        };
        open.write(MAGIC)?;
        Ok(open)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        self.length += bytes.len() as u64;
        if bytes.len() >= BUFFER {
            return self.put(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let done = self.put(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        done
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| io("write", self.name.as_bytes(), &error))
    }
}

fn named(name: &str) -> Result<RelPath> {
    RelPath::new(name).map_err(|error| error.at(STAGE, name.as_bytes()))
}
