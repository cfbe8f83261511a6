//! Writing a ledger out: as it is, to be verified elsewhere, or as OCSF events.

use std::io::{self, Write};

use glovebox_model::{Code, Error, Result, SpaceId, Stage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chain::{ENTRY_COLUMNS, StoredHead, read_entry};
use super::entry::{StoredEntry, time_text};
use super::key::{Checkpoint, LedgerKey};
use super::ocsf;
use crate::failure::{Doing, at, tampered};
use crate::hex;
use crate::sql::{Session, values};
use crate::store::Store;

pub(crate) const FORMAT: &str = "glovebox-ledger";
pub(crate) const VERSION: u32 = 1;

/// Entries that are in memory at the same time.
const AT_ONCE: usize = 500;

/// How a ledger is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object per line: a header, every entry, and a signed checkpoint of the last.
    /// [`verify_export`](crate::verify_export) verifies it without the database.
    Jsonl,
    /// One OCSF event per line.
    Ocsf,
}

/// A line of the JSONL form.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    Header(Header),
    Entry(ExportedEntry),
    Checkpoint(Checkpoint),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) space_id: String,
    pub(crate) public_key: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportedEntry {
    pub(crate) seq: i64,
    pub(crate) at: String,
    pub(crate) kind: String,
    pub(crate) exec_id: Option<String>,
    pub(crate) ids: Value,
    pub(crate) tags: Value,
    pub(crate) body: Value,
    pub(crate) prev_hash: String,
    pub(crate) hash: String,
}

impl ExportedEntry {
    fn new(entry: &StoredEntry) -> Result<Self> {
        let json = |text: &str| {
            serde_json::from_str(text)
                .map_err(|_| tampered(format!("ledger entry {} cannot be read", entry.seq)))
        };
        Ok(Self {
            seq: entry.seq,
            at: time_text(entry.at_us),
            kind: entry.kind.clone(),
            exec_id: (!entry.exec_id.is_empty()).then(|| entry.exec_id.clone()),
            ids: json(&entry.ids)?,
            tags: json(&entry.tags)?,
            body: json(&entry.body)?,
            prev_hash: hex::encode(&entry.prev_hash),
            hash: hex::encode(&entry.hash),
        })
    }
}

impl Store {
    /// Writes the whole ledger of a space and returns the number of entries.
    pub fn export(
        &self,
        space: &SpaceId,
        format: ExportFormat,
        out: &mut dyn Write,
    ) -> Result<u64> {
        self.read(|session| match format {
            ExportFormat::Jsonl => {
                let key = self.key(session)?;
                export_jsonl(session, space, key, out)
            }
            ExportFormat::Ocsf => {
                let mut count = 0;
                each_entry(session, space, |entry| {
                    count += 1;
                    write_line(out, &ocsf::event(&entry.into_entry()?))
                })?;
                out.flush().map_err(|error| not_written(&error))?;
                Ok(count)
            }
        })
        .map_err(at(Stage::Close))
    }
}

fn export_jsonl(
    session: &Session,
    space: &SpaceId,
    key: &LedgerKey,
    out: &mut dyn Write,
) -> Result<u64> {
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        space_id: space.as_str().to_owned(),
        public_key: hex::encode(&key.public()),
    };
    write_line(out, &Line::Header(header))?;
    let mut count = 0;
    let mut last = (0, vec![0; 32]);
    each_entry(session, space, |entry| {
        count += 1;
        write_line(out, &Line::Entry(ExportedEntry::new(&entry)?))?;
        last = (entry.seq, entry.hash);
        Ok(())
    })?;
    // What is signed here is believed elsewhere, so only a head that is ours is vouched for.
    let head = StoredHead::read(session, space.as_str()).doing("read the ledger's head")?;
    let (seq, hash) = match head {
        None if count == 0 => (0, [0; 32]),
        None => return Err(tampered("the ledger has entries and no signed head")),
        Some(stored) => match stored.signed_by(&key.public(), space.as_str()) {
            Some(head) if (stored.seq, &stored.hash) == (last.0, &last.1) => (head.seq, head.hash),
            _ => {
                return Err(tampered(
                    "the ledger does not end where its signed head says",
                ));
            }
        },
    };
    let checkpoint = key.checkpoint(space.as_str(), seq, &hash);
    write_line(out, &Line::Checkpoint(checkpoint))?;
    out.flush().map_err(|error| not_written(&error))?;
    Ok(count)
}

fn each_entry(
    session: &Session,
    space: &SpaceId,
    mut each: impl FnMut(StoredEntry) -> Result<()>,
) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let entries = session
            .rows(
                &format!(
                    "SELECT {ENTRY_COLUMNS} FROM ledger_entries e
                     WHERE e.space_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT {AT_ONCE}"
                ),
                values![space.as_str(), after],
                read_entry,
            )
            .doing("read the ledger")?;
        let Some(last) = entries.last() else {
            return Ok(());
        };
        after = last.seq;
        for entry in entries {
            each(entry)?;
        }
    }
}

fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec(line)
        .map_err(|error| crate::failure::internal("cannot write a line").caused_by(error))?;
    bytes.push(b'\n');
    out.write_all(&bytes).map_err(|error| not_written(&error))
}

/// Where an export goes is not the store, so its failures are not the store's.
fn not_written(error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::InvalidArgument,
    };
    Error::new(code, Stage::Close, "cannot write the export").caused_by(error)
}
