//! Verifying an export without any database.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, Read};

use glovebox_model::{Code, Error, Numbers, Result, Stage, strict_json};
use jiff::Timestamp;

use super::encoding::canonical;
use super::entry::{StoredEntry, time_text};
use super::export::{ExportedEntry, ExportedRow, FORMAT, Header, Line, Scope, VERSION};
use super::key::{Checkpoint, PublicKey};
use super::operator::{Notes, is_operator};
use super::row_check::difference;
use super::row_proof::{Said, Threads, named};
use super::vouch::{VouchedRow, Vouching, closes};
use super::walk::{Expectations, Verification, Walk};
use crate::hex;

/// No entry is near this long; a longer line is not an export.
const LINE_MOST: u64 = 16 << 20;
/// Fields of a [`Checkpoint`].
const CHECKPOINT_KEYS: usize = 5;

/// Verifies what [`Store::export`](crate::Store::export) or
/// [`Store::export_all`](crate::Store::export_all) wrote as JSONL. The export names its own key:
/// that it is the right one is known only from the expectations.
pub fn verify_export(reader: impl BufRead, expectations: &Expectations) -> Result<Verification> {
    let mut lines = Lines { reader, number: 0 };
    let header = match lines.next()? {
        Some(Ok(Line::Header(header))) if header.format == FORMAT => header,
        _ => return Err(not_an_export("it does not start with a header")),
    };
    let scope = match (header.version, header.scope) {
        (1, None) => Scope::Space,
        (VERSION, Some(scope)) => scope,
        (version, _) => {
            return Err(not_an_export(&format!(
                "it has version {version} and this `glovebox` knows versions up to {VERSION}"
            )));
        }
    };
    let public_key = header.public_key.clone();
    let mut found = match scope {
        Scope::Space => one_space(&mut lines, &header, expectations),
        Scope::All => all_spaces(&mut lines, header, expectations),
    }?;
    found.signed_by = Some(public_key);
    Ok(found)
}

fn one_space(
    lines: &mut Lines<impl BufRead>,
    header: &Header,
    expectations: &Expectations,
) -> Result<Verification> {
    let mut walk = Walk::new(&header.space_id, expectations);
    Section::new(header).read(lines, &mut walk, None)?;
    if lines.next()?.is_some() {
        let number = lines.number;
        walk.problem(None, format!("line {number} comes after the checkpoint"));
    }
    Ok(walk.finish())
}

/// The operator's space comes first and says which others there are. Its checkpoint comes once more
/// at the very end, so that an export that lost whole spaces at its end is known.
fn all_spaces(
    lines: &mut Lines<impl BufRead>,
    first: Header,
    expectations: &Expectations,
) -> Result<Verification> {
    let mut notes = Notes::default();
    let known = expectations.narrowed(&first.space_id);
    let mut walk = Walk::new(&first.space_id, &known);
    if !is_operator(&first.space_id) {
        walk.problem(None, "the export does not start with the operator's space");
    }
    let end = Section::new(&first).read(lines, &mut walk, Some(&mut notes))?;
    let mut all = walk.finish();
    all.all_spaces = true;
    let mut seen = BTreeSet::from([first.space_id.clone()]);
    let mut over = None;
    while let Some(line) = lines.next()? {
        match line {
            Ok(Line::Header(header)) if over.is_none() => {
                let known = expectations.narrowed(&header.space_id);
                let mut walk = Walk::new(&header.space_id, &known);
                if !seen.insert(header.space_id.clone())
                    || (header.version, header.scope) != (first.version, first.scope)
                    || header.public_key != first.public_key
                {
                    walk.problem(None, "the space has another header than the export");
                }
                notes.expect(&header.space_id, &mut walk);
                Section::new(&header).read(lines, &mut walk, None)?;
                notes.check(&header.space_id, &mut walk);
                all.add(walk.finish());
            }
            Ok(Line::Checkpoint(checkpoint)) if over.is_none() => over = Some(checkpoint),
            _ => {
                all.problem(format!("line {} is out of place", lines.number));
                break;
            }
        }
    }
    if over.is_none() || over != end {
        all.problem(
            "the export does not end with the operator's checkpoint: it was cut".to_owned(),
        );
    }
    let missing = notes.spaces().map(String::as_str);
    let missing: BTreeSet<&str> = missing
        .chain(expectations.spaces())
        .filter(|space| !seen.contains(*space))
        .collect();
    for space in missing {
        let known = expectations.narrowed(space);
        let mut walk = Walk::new(space, &known);
        notes.expect(space, &mut walk);
        walk.problem(None, "the space is missing from the export");
        all.add(walk.finish());
    }
    Ok(all)
}

/// What stands between a header and its checkpoint.
struct Section<'h> {
    header: &'h Header,
    key: Option<PublicKey>,
    vouching: Vouching,
    /// Rows of execs whose closing entry was not read yet.
    execs: HashMap<String, VouchedRow>,
    /// What the last entries say of the rows that authorise something, and where.
    said: BTreeMap<String, (i64, Said)>,
    threads: Threads,
}

impl<'h> Section<'h> {
    fn new(header: &'h Header) -> Self {
        Self {
            header,
            key: hex::decode::<32>(&header.public_key),
            vouching: Vouching::default(),
            execs: HashMap::new(),
            said: BTreeMap::new(),
            threads: Threads::default(),
        }
    }

    fn has_rows(&self) -> bool {
        self.header.version >= VERSION
    }

    /// Returns the checkpoint at its end.
    fn read(
        mut self,
        lines: &mut Lines<impl BufRead>,
        walk: &mut Walk<'_>,
        mut notes: Option<&mut Notes>,
    ) -> Result<Option<Checkpoint>> {
        if let Some(key) = &self.key {
            walk.key(key);
        }
        let mut end = None;
        while end.is_none() {
            let Some(line) = lines.next()? else { break };
            let number = lines.number;
            match line {
                Ok(Line::Entry(exported)) => match stored(&self.header.space_id, exported) {
                    Some(entry) => self.entry(&entry, walk, notes.as_deref_mut()),
                    None => walk.problem(
                        None,
                        format!("line {number} is not an entry as it is written"),
                    ),
                },
                Ok(Line::Exec(row)) if self.has_rows() => {
                    let id = row.exec_id.clone();
                    // One that is not compared could say anything. What comes after the entry that
                    // closes it is found at the end.
                    if self.execs.insert(id.clone(), row).is_some() {
                        walk.problem(None, format!("line {number}: exec `{id}` has two rows"));
                    }
                }
                Ok(Line::Row(row)) if self.has_rows() => self.row(&row, walk),
                Ok(Line::Checkpoint(checkpoint)) => end = Some(checkpoint),
                Ok(Line::Header(_) | Line::Exec(_) | Line::Row(_)) => {
                    walk.problem(None, format!("line {number} is out of place"));
                }
                Err(_) => walk.problem(None, format!("line {number} cannot be read")),
            }
        }
        check_end(self.header, end.as_ref(), walk);
        self.finish(walk)?;
        Ok(end)
    }

    fn entry(&mut self, entry: &StoredEntry, walk: &mut Walk<'_>, notes: Option<&mut Notes>) {
        walk.entry(entry);
        if let Some(notes) = notes {
            notes.entry(entry, self.key.as_ref(), walk);
        }
        if !self.has_rows() {
            return;
        }
        let row = match closes(entry) {
            true => self.execs.remove(&entry.exec_id),
            false => None,
        };
        self.vouching.entry(entry, row, walk);
        let said = named(&entry.body);
        self.threads.entry(entry, &said, walk);
        for ((table, key), said) in said {
            self.said
                .insert(format!("{table}/{key}"), (entry.seq, said));
        }
    }

    fn row(&mut self, there: &ExportedRow, walk: &mut Walk<'_>) {
        let row = &there.row;
        let Some((seq, said)) = self.said.remove(row) else {
            walk.problem(None, format!("`{row}` is there, and no entry made it"));
            return;
        };
        if let Some(wrong) = difference(Some(&said), Some(&there.sha256)) {
            walk.problem(Some(seq.unsigned_abs()), format!("`{row}` {wrong}"));
        }
    }

    fn finish(mut self, walk: &mut Walk<'_>) -> Result<()> {
        if !self.has_rows() {
            return Ok(());
        }
        let vouching = std::mem::take(&mut self.vouching);
        let mut closed = Vec::new();
        vouching.finish(walk, |id| {
            let row = self.execs.remove(id);
            let end = row.as_ref().and_then(|row| row.closed_seq);
            closed.extend(end.map(|end| (id.to_owned(), end)));
            Ok(row)
        })?;
        for (id, end) in closed {
            let what = format!("exec `{id}` is closed, and no entry closed it");
            walk.problem(Some(end.unsigned_abs()), what);
        }
        for id in self.execs.keys() {
            walk.problem(
                None,
                format!("exec `{id}` has a row, and no entry opened it"),
            );
        }
        for (row, (seq, said)) in &self.said {
            if let Some(wrong) = difference(Some(said), None) {
                walk.problem(Some(seq.unsigned_abs()), format!("`{row}` {wrong}"));
            }
        }
        Ok(())
    }
}

fn check_end(header: &Header, end: Option<&Checkpoint>, walk: &mut Walk<'_>) {
    let Some(checkpoint) = end else {
        walk.problem_here("the export has no checkpoint at its end: it was cut");
        return;
    };
    let (seq, hash) = walk.last();
    let there = (seq.unsigned_abs(), hex::encode(hash));
    if (checkpoint.seq, &checkpoint.hash) != (there.0, &there.1) {
        walk.problem_here(format!(
            "the checkpoint names entry {} and the export ends with entry {seq}, or with another hash",
            checkpoint.seq
        ));
    }
    let of_header =
        (&checkpoint.space_id, &checkpoint.public_key) == (&header.space_id, &header.public_key);
    if !of_header || !checkpoint.is_signed() {
        walk.problem_here("the checkpoint at the end is not signed by the export's key");
    }
}

fn stored(space: &str, exported: ExportedEntry) -> Option<StoredEntry> {
    let at: Timestamp = exported.at.parse().ok()?;
    let at_us = at.as_microsecond();
    // Another spelling of the same time was never exported.
    if time_text(at_us) != exported.at || exported.exec_id.as_deref() == Some("") {
        return None;
    }
    Some(StoredEntry {
        space: space.to_owned(),
        seq: exported.seq,
        at_us,
        kind: exported.kind,
        exec_id: exported.exec_id.unwrap_or_default(),
        ids: canonical(&exported.ids),
        tags: canonical(&exported.tags),
        body: canonical(&exported.body),
        prev_hash: hex::decode::<32>(&exported.prev_hash)?.to_vec(),
        hash: hex::decode::<32>(&exported.hash)?.to_vec(),
    })
}

struct Lines<R> {
    reader: R,
    /// Of the line that was read last.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<serde_json::Result<Line>>> {
        let mut bytes = Vec::new();
        let length = self
            .reader
            .by_ref()
            .take(LINE_MOST)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| not_an_export("it cannot be read").caused_by(error))?;
        if length == 0 {
            return Ok(None);
        }
        if length as u64 == LINE_MOST {
            return Err(not_an_export("it has a line that is too long"));
        }
        self.number += 1;
        Ok(Some(line(&bytes)))
    }
}

/// A line without anything that another reader could understand otherwise: no key twice, and none
/// that nobody looks at.
fn line(bytes: &[u8]) -> serde_json::Result<Line> {
    use serde::de::Error as _;
    let text = std::str::from_utf8(bytes).map_err(serde_json::Error::custom)?;
    let value = strict_json(text, Numbers::AsWritten)?;
    let keys = value.as_object().map_or(0, serde_json::Map::len);
    let line = serde_json::from_value(value)?;
    match line {
        // With its `type`.
        Line::Checkpoint(_) if keys != CHECKPOINT_KEYS + 1 => {
            Err(serde_json::Error::custom("unknown key in a checkpoint"))
        }
        line => Ok(line),
    }
}

/// The last checkpoint of each space in a file: a checkpoint by itself, or an export, which ends with
/// one.
pub fn read_checkpoints(mut reader: impl BufRead) -> Result<Vec<Checkpoint>> {
    let mut found: BTreeMap<String, Checkpoint> = BTreeMap::new();
    let mut ends_with_one = false;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = reader
            .by_ref()
            .take(LINE_MOST)
            .read_until(b'\n', &mut bytes);
        let length = read.map_err(|error| no_checkpoint().caused_by(error))?;
        match length as u64 {
            0 => break,
            LINE_MOST => return Err(no_checkpoint()),
            _ if bytes.trim_ascii().is_empty() => continue,
            _ => {}
        }
        let checkpoint = match line(&bytes) {
            Ok(Line::Checkpoint(checkpoint)) => Some(checkpoint),
            Ok(_) => None,
            Err(_) => serde_json::from_slice(&bytes).ok(),
        };
        ends_with_one = checkpoint.is_some();
        if let Some(checkpoint) = checkpoint {
            found.insert(checkpoint.space_id.clone(), checkpoint);
        }
    }
    match ends_with_one {
        true => Ok(found.into_values().collect()),
        false => Err(no_checkpoint()),
    }
}

fn no_checkpoint() -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        "the file does not end with a checkpoint",
    )
    .hint("an export ends with one: `glovebox audit export --output FILE`")
}

fn not_an_export(why: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("this is not an export of a ledger: {why}"),
    )
    .hint("make one: `glovebox audit export`")
}
