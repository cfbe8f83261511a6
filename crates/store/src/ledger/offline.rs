//! Verifying an export without any database.

use std::io::{BufRead, Read};

use glovebox_model::{Code, Error, Result, Stage};
use jiff::Timestamp;

use super::encoding::canonical;
use super::entry::{StoredEntry, time_text};
use super::export::{ExportedEntry, FORMAT, Header, Line, VERSION};
use super::key::Checkpoint;
use super::walk::{Expectations, Verification, Walk};
use crate::hex;

/// No entry is near this long; a longer line is not an export.
const LINE_MOST: u64 = 16 << 20;

/// Verifies what [`Store::export`](crate::Store::export) wrote as JSONL. The export names its own
/// key: that it is the right one is known only from the expectations.
pub fn verify_export(
    mut reader: impl BufRead,
    expectations: &Expectations,
) -> Result<Verification> {
    let header = match next_line(&mut reader)? {
        Some(Ok(Line::Header(header))) if header.format == FORMAT => header,
        _ => return Err(not_an_export("it does not start with a header")),
    };
    if header.version != VERSION {
        return Err(not_an_export(&format!(
            "it has version {} and this `glovebox` knows version {VERSION}",
            header.version
        )));
    }
    let mut walk = Walk::new(&header.space_id, expectations);
    if let Some(key) = hex::decode::<32>(&header.public_key) {
        walk.key(&key);
    }
    let mut end = None;
    let mut number = 1;
    while let Some(line) = next_line(&mut reader)? {
        number += 1;
        if end.is_some() {
            walk.problem(None, format!("line {number} comes after the checkpoint"));
            break;
        }
        match line {
            Ok(Line::Entry(exported)) => match stored(&header.space_id, exported) {
                Some(entry) => walk.entry(&entry),
                None => walk.problem(
                    None,
                    format!("line {number} is not an entry as it is written"),
                ),
            },
            Ok(Line::Checkpoint(checkpoint)) => end = Some(checkpoint),
            Ok(Line::Header(_)) => walk.problem(None, format!("line {number} is a second header")),
            Err(_) => walk.problem(None, format!("line {number} cannot be read")),
        }
    }
    check_end(&header, end, &mut walk);
    Ok(walk.finish())
}

fn check_end(header: &Header, end: Option<Checkpoint>, walk: &mut Walk<'_>) {
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

fn next_line(reader: &mut impl BufRead) -> Result<Option<serde_json::Result<Line>>> {
    let mut bytes = Vec::new();
    let length = reader
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
    Ok(Some(serde_json::from_slice(&bytes)))
}

fn not_an_export(why: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("this is not an export of a ledger: {why}"),
    )
    .hint("make one: `glovebox audit export`")
}
