//! An image as the archive that the importer reads: an OCI layout whose files come from the registry
//! while they are read. Each is counted and compared with its digest before it counts as whole.

use std::collections::VecDeque;
use std::io::{self, Read};

use glovebox_egress::client::Answer;
use glovebox_model::{Error, Result};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use super::Telling;
use super::manifest::{Descriptor, unfit};
use super::registry::{Found, Registry, hex_digest, mismatch, told};

const BLOCK: usize = 512;

pub(super) struct Layout<'p> {
    registry: Registry<'p>,
    runtime: &'p Handle,
    /// What is known already and only has to be read.
    ready: VecDeque<u8>,
    left: VecDeque<Descriptor>,
    now: Option<Part>,
    telling: &'p Telling<'p>,
    ended: bool,
}

/// A file that is on its way.
struct Part {
    of: Descriptor,
    answer: Answer,
    hash: Sha256,
    read: u64,
}

impl<'p> Layout<'p> {
    pub(super) fn new(
        registry: Registry<'p>,
        runtime: &'p Handle,
        found: Found,
        telling: &'p Telling<'p>,
    ) -> Result<Self> {
        let mut layout = Self {
            registry,
            runtime,
            ready: VecDeque::new(),
            left: found.parts.into(),
            now: None,
            telling,
            ended: false,
        };
        let index = serde_json::json!({
            "schemaVersion": 2,
            "manifests": [{
                "mediaType": found.media_type,
                "digest": found.digest,
                "size": found.manifest.len(),
            }],
        });
        layout.file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        layout.file("index.json", index.to_string().as_bytes())?;
        layout.file(&blob(&found.digest.to_string()), &found.manifest)?;
        Ok(layout)
    }

    fn file(&mut self, name: &str, contents: &[u8]) -> Result<()> {
        self.header(name, contents.len() as u64)?;
        self.ready.extend(contents);
        self.pad(contents.len() as u64);
        Ok(())
    }

    fn header(&mut self, name: &str, size: u64) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header
            .set_path(name)
            .map_err(|error| unfit("a file of it has no name").caused_by(error))?;
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o600);
        header.set_size(size);
        header.set_cksum();
        self.ready.extend(header.as_bytes());
        Ok(())
    }

    /// Files of an archive begin at a multiple of 512.
    fn pad(&mut self, size: u64) {
        let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
        if over > 0 {
            self.ready.extend(std::iter::repeat_n(0, BLOCK - over));
        }
    }

    /// Brings something to be read, or the end.
    fn advance(&mut self) -> Result<()> {
        if let Some(part) = &mut self.now {
            let chunk = self.runtime.block_on(part.answer.chunk()).map_err(told)?;
            let Some(chunk) = chunk else {
                return self.whole();
            };
            part.read = part.read.saturating_add(chunk.len() as u64);
            if part.read > part.of.size {
                return Err(mismatch(&part.of.digest.to_string()));
            }
            part.hash.update(&chunk);
            self.telling.came(chunk.len() as u64);
            self.ready.extend(chunk.as_ref());
            return Ok(());
        }
        let Some(next) = self.left.pop_front() else {
            if !self.ended {
                self.ended = true;
                self.ready.extend([0; 2 * BLOCK]);
            }
            return Ok(());
        };
        let answer = self.runtime.block_on(self.registry.blob(&next))?;
        self.header(&blob(&next.digest.to_string()), next.size)?;
        self.now = Some(Part {
            of: next,
            answer,
            hash: Sha256::new(),
            read: 0,
        });
        Ok(())
    }

    fn whole(&mut self) -> Result<()> {
        let Some(part) = self.now.take() else {
            return Ok(());
        };
        let digest = hex_digest(&part.hash.finalize())?;
        if part.read != part.of.size || digest != part.of.digest {
            return Err(mismatch(&part.of.digest.to_string()));
        }
        self.pad(part.read);
        Ok(())
    }
}

/// Where an OCI layout keeps it.
fn blob(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

impl Read for Layout<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() && !self.ended {
            if let Err(error) = self.advance() {
                // The importer says that it cannot read on; why is told by whoever pulls.
                let said = io::Error::other(error.message.clone());
                self.telling.failed(error);
                return Err(said);
            }
        }
        self.ready.read(buffer)
    }
}

pub(super) fn total(found: &Found) -> u64 {
    found
        .parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(part.size))
}

pub(super) type Fault = Option<Error>;
