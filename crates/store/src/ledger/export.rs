//! Writing a ledger out: as it is, to be verified elsewhere, or as OCSF events.

use std::collections::VecDeque;
use std::io::{self, Write};

use glovebox_model::{Code, Error, Result, SpaceId, Stage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chain::{ENTRY_COLUMNS, StoredHead, read_entry};
use super::entry::{StoredEntry, time_text};
use super::key::{Checkpoint, LedgerKey};
use super::ocsf;
use super::row_check;
use super::verify::{spaces, strangers};
use super::vouch::VouchedRow;
use crate::failure::{Doing, at, tampered};
use crate::hex;
use crate::sql::{Session, values};
use crate::store::Store;

pub(crate) const FORMAT: &str = "glovebox-ledger";
/// Version 1 had no rows and one space.
pub(crate) const VERSION: u32 = 2;

/// Entries, or lines about rows, that are in memory at the same time.
const AT_ONCE: usize = 500;

/// How a ledger is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object per line: a header, every entry, the digests of the rows that the entries
    /// vouch for, and a signed checkpoint of the last entry.
    /// [`verify_export`](crate::verify_export) verifies it without the database.
    Jsonl,
    /// One OCSF event per line.
    Ocsf,
}

/// What an export has: one space, or all of them, the operator's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Space,
    All,
}

/// A line of the JSONL form.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    Header(Header),
    /// Before the entry that closes the exec; of an open one after all entries.
    Exec(VouchedRow),
    Entry(ExportedEntry),
    Row(ExportedRow),
    Checkpoint(Checkpoint),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Version 1 has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<Scope>,
    pub(crate) space_id: String,
    pub(crate) public_key: String,
}

/// The digest of a row as it was when the export was begun.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportedRow {
    pub(crate) row: String,
    pub(crate) sha256: String,
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
/// was begun, and has the rows as they were then; between two pieces it holds nothing of the store.
#[derive(Debug)]
pub struct Export {
    format: ExportFormat,
    scope: Scope,
    /// What is not written yet; the first may be under way.
    sections: VecDeque<Section>,
    /// Of all spaces: the operator's end, which is said once more at the very end.
    seal: Option<(String, Option<End>)>,
    entries: u64,
}

/// One space.
#[derive(Debug)]
struct Section {
    space: String,
    /// The last entry that there was, and so the last that is written.
    end: Option<End>,
    /// The last that was written.
    last: Option<End>,
    /// What stands after the entries.
    rows: VecDeque<Line>,
    at: Place,
}

/// The number and the hash of an entry.
type End = (i64, Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Entries,
    Rows,
}

impl Store {
    /// Writes the whole ledger of a space and returns the number of entries.
    pub fn export(
        &self,
        space: &SpaceId,
        format: ExportFormat,
        out: &mut dyn Write,
    ) -> Result<u64> {
        self.write_out(self.begin_export(space, format)?, out)
    }

    /// The same of all spaces.
    pub fn export_all(&self, format: ExportFormat, out: &mut dyn Write) -> Result<u64> {
        self.write_out(self.begin_export_of_all(format)?, out)
    }

    fn write_out(&self, mut export: Export, out: &mut dyn Write) -> Result<u64> {
        while let Some(piece) = self.next_piece(&mut export)? {
            out.write_all(&piece).map_err(|error| not_written(&error))?;
        }
        out.flush().map_err(|error| not_written(&error))?;
        Ok(export.entries)
    }

    /// Finds where the ledger ends, and what its rows are. Its entries are read by
    /// [`Store::next_piece`].
    pub fn begin_export(&self, space: &SpaceId, format: ExportFormat) -> Result<Export> {
        self.begin(format, Scope::Space, |_| Ok(vec![space.to_string()]))
    }

    /// The same of all spaces.
    pub fn begin_export_of_all(&self, format: ExportFormat) -> Result<Export> {
        self.begin(format, Scope::All, |session| {
            let operator = SpaceId::local().to_string();
            let mut all = spaces(session)?;
            all.remove(&operator);
            Ok(std::iter::once(operator).chain(all).collect())
        })
    }

    /// All of it in one view: what one space says of another is of the same moment.
    fn begin(
        &self,
        format: ExportFormat,
        scope: Scope,
        spaces: impl FnOnce(&Session) -> Result<Vec<String>>,
    ) -> Result<Export> {
        let jsonl = format == ExportFormat::Jsonl;
        let sections = self.read(|session| {
            let spaces = spaces(session)?;
            let mut sections = VecDeque::with_capacity(spaces.len());
            for space in spaces {
                sections.push_back(match jsonl {
                    true => Section::vouched(session, space, self.key(session)?)?,
                    false => Section::plain(session, space)?,
                });
            }
            if jsonl {
                add_rows(session, scope, &mut sections)?;
            }
            Ok(sections)
        });
        let sections = sections.map_err(at(Stage::Close))?;
        let seal = sections.front().filter(|_| jsonl && scope == Scope::All);
        Ok(Export {
            format,
            scope,
            seal: seal.map(|operator| (operator.space.clone(), operator.end.clone())),
            sections,
            entries: 0,
        })
    }

    /// The next lines, some hundred at most; `None` after the last.
    pub fn next_piece(&self, export: &mut Export) -> Result<Option<Vec<u8>>> {
        self.piece(export).map_err(at(Stage::Close))
    }

    fn piece(&self, export: &mut Export) -> Result<Option<Vec<u8>>> {
        let mut out = Vec::new();
        let Some(mut section) = export.sections.pop_front() else {
            let Some((space, end)) = export.seal.take() else {
                return Ok(None);
            };
            write_line(
                &mut out,
                &Line::Checkpoint(self.sign(&space, end.as_ref())?),
            )?;
            return Ok(Some(out));
        };
        let jsonl = export.format == ExportFormat::Jsonl;
        if section.at == Place::Start {
            if jsonl {
                let key = self.read(|session| self.key(session))?;
                let header = header(export.scope, &section.space, key);
                write_line(&mut out, &Line::Header(header))?;
            }
            section.at = Place::Entries;
        }
        if section.at == Place::Entries {
            let written = self.write_entries(export.format, &mut section, &mut out)?;
            export.entries += written as u64;
            if written < AT_ONCE {
                section.at = Place::Rows;
            }
        }
        let over = section.at == Place::Rows && write_rows(&mut section, &mut out)?;
        match over {
            false => export.sections.push_front(section),
            true if jsonl => {
                write_line(&mut out, &Line::Checkpoint(self.vouch_for(&section)?))?;
            }
            true => {}
        }
        Ok(Some(out))
    }

    /// Returns how many there were.
    fn write_entries(
        &self,
        format: ExportFormat,
        section: &mut Section,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let seq = |end: &Option<End>| end.as_ref().map_or(i64::MIN, |end| end.0);
        let (after, end) = (seq(&section.last), seq(&section.end));
        let entries = self.entries_between(&section.space, after, end)?;
        let count = entries.len();
        for (entry, row) in entries {
            section.last = Some((entry.seq, entry.hash.clone()));
            match format {
                ExportFormat::Jsonl => {
                    if let Some(row) = row {
                        write_line(out, &Line::Exec(row))?;
                    }
                    write_line(out, &Line::Entry(ExportedEntry::new(&entry)?))?;
                }
                ExportFormat::Ocsf => write_line(out, &ocsf::event(&entry.into_entry()?))?,
            }
        }
        Ok(count)
    }

    /// What is signed here is believed elsewhere, so only an export that ends where the ledger
    /// ended is vouched for.
    fn vouch_for(&self, section: &Section) -> Result<Checkpoint> {
        if section.last != section.end {
            return Err(ends_elsewhere(&section.space));
        }
        self.sign(&section.space, section.end.as_ref())
    }

    fn sign(&self, space: &str, end: Option<&End>) -> Result<Checkpoint> {
        let start = (0, vec![0; 32]);
        self.read(|session| sign(self.key(session)?, space, end.unwrap_or(&start)))
    }

    /// A signed statement of where the ledger of a space ends; `None` while it is empty.
    pub fn checkpoint(&self, space: &SpaceId) -> Result<Option<Checkpoint>> {
        let checkpoint = self.read(|session| {
            let key = self.key(session)?;
            let end = vouched_end(session, space.as_str(), key)?;
            end.map(|end| sign(key, space.as_str(), &end)).transpose()
        });
        checkpoint.map_err(at(Stage::Close))
    }

    fn entries_between(
        &self,
        space: &str,
        after: i64,
        end: i64,
    ) -> Result<Vec<(StoredEntry, Option<VouchedRow>)>> {
        self.ask("read the ledger", |session| {
            session.rows(
                &format!(
                    "SELECT {ENTRY_COLUMNS}, {} FROM ledger_entries e
                     LEFT JOIN sandbox_execs x
                         ON x.space_id = e.space_id AND x.exec_id = e.exec_id AND {}
                     WHERE e.space_id = ?1 AND e.seq > ?2 AND e.seq <= ?3
                     ORDER BY e.seq LIMIT {AT_ONCE}",
                    VouchedRow::columns(session),
                    VouchedRow::CLOSES
                ),
                values![space, after, end],
                |row| Ok((read_entry(row)?, VouchedRow::read(session, row, 10)?)),
            )
        })
    }
}

impl Section {
    fn new(space: String, end: Option<End>) -> Self {
        Self {
            space,
            end,
            last: None,
            rows: VecDeque::new(),
            at: Place::Start,
        }
    }

    fn plain(session: &Session, space: String) -> Result<Self> {
        let end = last_entry(session, &space)?;
        Ok(Self::new(space, end))
    }

    fn vouched(session: &Session, space: String, key: &LedgerKey) -> Result<Self> {
        let end = vouched_end(session, &space, key)?;
        Ok(Self::new(space, end))
    }
}

/// What stands after the entries of each space: the rows of execs that no entry closed, and those
/// that authorise something.
fn add_rows(session: &Session, scope: Scope, sections: &mut VecDeque<Section>) -> Result<()> {
    for section in sections.iter_mut() {
        let space = section.space.as_str();
        let columns = VouchedRow::columns(session);
        let open = session
            .rows(
                &format!(
                    "SELECT {columns} FROM sandbox_execs x
                     WHERE x.space_id = ?1 AND x.closed_seq IS NULL"
                ),
                values![space],
                |row| VouchedRow::read(session, row, 0),
            )
            .doing("read the execs")?;
        let open = open.into_iter().flatten().map(Line::Exec);
        section.rows.extend(open);
        for stranger in strangers(session, space)? {
            let row = session
                .row(
                    &format!(
                        "SELECT {columns} FROM sandbox_execs x
                         WHERE x.space_id = ?1 AND x.exec_id = ?2 AND x.closed_seq IS NOT NULL"
                    ),
                    values![space, &stranger.exec_id],
                    |row| VouchedRow::read(session, row, 0),
                )
                .doing("read the execs")?;
            section.rows.extend(row.flatten().map(Line::Exec));
        }
    }
    let space = match scope {
        Scope::Space => sections.front().map(|section| section.space.clone()),
        Scope::All => None,
    };
    for (of, row, digest) in row_check::all(session, space.as_deref())? {
        let section = sections.iter_mut().find(|section| section.space == of);
        if let Some(section) = section {
            section.rows.push_back(Line::Row(ExportedRow {
                row,
                sha256: digest,
            }));
        }
    }
    Ok(())
}

/// Whether these were the last.
fn write_rows(section: &mut Section, out: &mut Vec<u8>) -> Result<bool> {
    let some = section.rows.len().min(AT_ONCE);
    for line in section.rows.drain(..some) {
        write_line(out, &line)?;
    }
    Ok(section.rows.is_empty())
}

fn header(scope: Scope, space: &str, key: &LedgerKey) -> Header {
    Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        scope: Some(scope),
        space_id: space.to_owned(),
        public_key: hex::encode(&key.public()),
    }
}

fn sign(key: &LedgerKey, space: &str, (seq, hash): &End) -> Result<Checkpoint> {
    let hash = hash
        .as_slice()
        .try_into()
        .map_err(|_| ends_elsewhere(space))?;
    Ok(key.checkpoint(space, seq.unsigned_abs(), &hash))
}

/// The last entry, which must be the one that our signed head names; `None` in an empty ledger.
fn vouched_end(session: &Session, space: &str, key: &LedgerKey) -> Result<Option<End>> {
    let last = last_entry(session, space)?;
    let head = StoredHead::read(session, space).doing("read the ledger's head")?;
    match (head, last) {
        (None, None) => Ok(None),
        // The operator's, before its first entry.
        (Some(head), None) if head.seq == 0 && head.signed_by(&key.public(), space).is_some() => {
            Ok(None)
        }
        (None, Some(_)) => Err(tampered(format!(
            "the ledger of space `{space}` has entries and no signed head"
        ))),
        (Some(head), Some(last))
            if (head.seq, &head.hash) == (last.0, &last.1)
                && head.signed_by(&key.public(), space).is_some() =>
        {
            Ok(Some(last))
        }
        (Some(_), _) => Err(ends_elsewhere(space)),
    }
}

fn last_entry(session: &Session, space: &str) -> Result<Option<End>> {
    session
        .row(
            "SELECT seq, hash FROM ledger_entries WHERE space_id = ?1 ORDER BY seq DESC LIMIT 1",
            values![space],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .doing("read the ledger's end")
}

fn ends_elsewhere(space: &str) -> Error {
    tampered(format!(
        "the ledger of space `{space}` does not end where its signed head says"
    ))
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
