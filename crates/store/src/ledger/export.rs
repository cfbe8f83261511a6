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

/// An export that is written piece by piece. What it writes ends where the ledger ended when it
/// was begun; between two pieces it holds nothing of the store.
#[derive(Debug)]
pub struct Export {
    space: SpaceId,
    format: ExportFormat,
    /// The last entry that there was, and so the last that is written.
    end: Option<End>,
    /// The last that was written.
    last: Option<End>,
    entries: u64,
    at: Place,
}

/// The number and the hash of an entry.
type End = (i64, Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Entries,
    Over,
}

impl Store {
    /// Writes the whole ledger of a space and returns the number of entries.
    pub fn export(
        &self,
        space: &SpaceId,
        format: ExportFormat,
        out: &mut dyn Write,
    ) -> Result<u64> {
        let mut export = self.begin_export(space, format)?;
        while let Some(piece) = self.next_piece(&mut export)? {
            out.write_all(&piece).map_err(|error| not_written(&error))?;
        }
        out.flush().map_err(|error| not_written(&error))?;
        Ok(export.entries)
    }

    /// Finds where the ledger ends. Its entries are read by [`Store::next_piece`].
    pub fn begin_export(&self, space: &SpaceId, format: ExportFormat) -> Result<Export> {
        let end = self.read(|session| match format {
            ExportFormat::Jsonl => vouched_end(session, space, self.key(session)?),
            ExportFormat::Ocsf => last_entry(session, space),
        });
        Ok(Export {
            space: space.clone(),
            format,
            end: end.map_err(at(Stage::Close))?,
            last: None,
            entries: 0,
            at: Place::Start,
        })
    }

    /// The next lines, some hundred at most; `None` after the last.
    pub fn next_piece(&self, export: &mut Export) -> Result<Option<Vec<u8>>> {
        self.piece(export).map_err(at(Stage::Close))
    }

    fn piece(&self, export: &mut Export) -> Result<Option<Vec<u8>>> {
        let mut out = Vec::new();
        match export.at {
            Place::Over => return Ok(None),
            Place::Start => {
                if export.format == ExportFormat::Jsonl {
                    let key = self.read(|session| self.key(session))?;
                    write_line(&mut out, &Line::Header(header(&export.space, key)))?;
                }
                export.at = Place::Entries;
            }
            Place::Entries => {}
        }
        let seq = |end: &Option<End>| end.as_ref().map_or(i64::MIN, |end| end.0);
        let (after, end) = (seq(&export.last), seq(&export.end));
        let entries = self.entries_between(&export.space, after, end)?;
        let is_last = entries.len() < AT_ONCE;
        for entry in entries {
            export.entries += 1;
            export.last = Some((entry.seq, entry.hash.clone()));
            match export.format {
                ExportFormat::Jsonl => {
                    write_line(&mut out, &Line::Entry(ExportedEntry::new(&entry)?))?;
                }
                ExportFormat::Ocsf => write_line(&mut out, &ocsf::event(&entry.into_entry()?))?,
            }
        }
        if is_last {
            export.at = Place::Over;
            if export.format == ExportFormat::Jsonl {
                write_line(&mut out, &Line::Checkpoint(self.vouch_for(export)?))?;
            }
        }
        Ok(Some(out))
    }

    /// What is signed here is believed elsewhere, so only an export that ends where the ledger
    /// ended is vouched for.
    fn vouch_for(&self, export: &Export) -> Result<Checkpoint> {
        if export.last != export.end {
            return Err(ends_elsewhere());
        }
        let start = (0, vec![0; 32]);
        let end = export.end.as_ref().unwrap_or(&start);
        self.read(|session| sign(self.key(session)?, &export.space, end))
    }

    /// A signed statement of where the ledger of a space ends; `None` while it is empty.
    pub fn checkpoint(&self, space: &SpaceId) -> Result<Option<Checkpoint>> {
        let checkpoint = self.read(|session| {
            let key = self.key(session)?;
            let end = vouched_end(session, space, key)?;
            end.map(|end| sign(key, space, &end)).transpose()
        });
        checkpoint.map_err(at(Stage::Close))
    }

    fn entries_between(&self, space: &SpaceId, after: i64, end: i64) -> Result<Vec<StoredEntry>> {
        self.ask("read the ledger", |session| {
            session.rows(
                &format!(
                    "SELECT {ENTRY_COLUMNS} FROM ledger_entries e
                     WHERE e.space_id = ?1 AND e.seq > ?2 AND e.seq <= ?3
                     ORDER BY e.seq LIMIT {AT_ONCE}"
                ),
                values![space.as_str(), after, end],
                read_entry,
            )
        })
    }
}

fn header(space: &SpaceId, key: &LedgerKey) -> Header {
    Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        space_id: space.as_str().to_owned(),
        public_key: hex::encode(&key.public()),
    }
}

fn sign(key: &LedgerKey, space: &SpaceId, (seq, hash): &End) -> Result<Checkpoint> {
    let hash = hash.as_slice().try_into().map_err(|_| ends_elsewhere())?;
    Ok(key.checkpoint(space.as_str(), seq.unsigned_abs(), &hash))
}

/// The last entry, which must be the one that our signed head names; `None` in an empty ledger.
fn vouched_end(session: &Session, space: &SpaceId, key: &LedgerKey) -> Result<Option<End>> {
    let last = last_entry(session, space)?;
    let head = StoredHead::read(session, space.as_str()).doing("read the ledger's head")?;
    match (head, last) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(tampered("the ledger has entries and no signed head")),
        (Some(head), Some(last))
            if (head.seq, &head.hash) == (last.0, &last.1)
                && head.signed_by(&key.public(), space.as_str()).is_some() =>
        {
            Ok(Some(last))
        }
        (Some(_), _) => Err(ends_elsewhere()),
    }
}

fn last_entry(session: &Session, space: &SpaceId) -> Result<Option<End>> {
    session
        .row(
            "SELECT seq, hash FROM ledger_entries WHERE space_id = ?1 ORDER BY seq DESC LIMIT 1",
            values![space.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .doing("read the ledger's end")
}

fn ends_elsewhere() -> Error {
    tampered("the ledger does not end where its signed head says")
}

fn write_line(out: &mut Vec<u8>, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, line)
        .map_err(|error| crate::failure::internal("cannot write a line").caused_by(error))?;
    out.push(b'\n');
    Ok(())
}

/// Where an export goes is not the store, so its failures are not the store's.
fn not_written(error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::InvalidArgument,
    };
    Error::new(code, Stage::Close, "cannot write the export").caused_by(error)
}
