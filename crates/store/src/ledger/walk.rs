//! Walking along a chain, entry by entry, and naming what is wrong with it. The same walk serves
//! the database and an export.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_model::{Code, Error, ReceiptRef, Result, SpaceId, Stage};
use serde::{Deserialize, Serialize};

use super::entry::StoredEntry;
use super::key::Checkpoint;
use super::operator::is_operator;
use crate::hex;

/// A ledger that is all wrong is described by its first problems.
const PROBLEMS_MOST: usize = 1000;

/// What is known from outside about a ledger. Only this can prove that a ledger was rewritten by
/// somebody who has its key.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    /// Of the space that is verified; where all are, of the operator's.
    pub receipts: Vec<ReceiptRef>,
    /// Of spaces that are named.
    pub of_spaces: Vec<(SpaceId, ReceiptRef)>,
    /// At most one of each space.
    pub checkpoints: Vec<Checkpoint>,
    /// Hexadecimal.
    pub public_key: Option<String>,
    /// Set when nobody waits for the answer any more.
    pub abandoned: Arc<AtomicBool>,
}

impl Expectations {
    /// What of it is about this space, where all spaces are verified.
    pub(super) fn narrowed(&self, space: &str) -> Self {
        let named = self.of_spaces.iter().filter(|(of, _)| of.as_str() == space);
        let receipts = named.map(|(_, receipt)| receipt.clone());
        let own = match is_operator(space) {
            true => self.receipts.as_slice(),
            false => &[],
        };
        Self {
            receipts: own.iter().cloned().chain(receipts).collect(),
            of_spaces: Vec::new(),
            checkpoints: self.checkpoints_of(space).cloned().collect(),
            public_key: self.public_key.clone(),
            abandoned: Arc::clone(&self.abandoned),
        }
    }

    fn checkpoints_of<'e>(&'e self, space: &'e str) -> impl Iterator<Item = &'e Checkpoint> {
        self.checkpoints
            .iter()
            .filter(move |it| it.space_id == space)
    }

    /// The spaces that something is known of.
    pub(super) fn spaces(&self) -> impl Iterator<Item = &str> {
        let named = self.of_spaces.iter().map(|(space, _)| space.as_str());
        named.chain(self.checkpoints.iter().map(|it| it.space_id.as_str()))
    }
}

/// Reads a receipt as people write it: `SEQ:HASH`, or `SPACE:SEQ:HASH` of a space that is named.
pub fn parse_receipt(text: &str) -> Result<(Option<SpaceId>, ReceiptRef)> {
    let parse = || {
        let (place, hash) = text.rsplit_once(':')?;
        let (space, seq) = match place.rsplit_once(':') {
            Some((space, seq)) => (Some(space.parse().ok()?), seq),
            None => (None, place),
        };
        let seq: u64 = seq.parse().ok().filter(|seq| *seq > 0)?;
        let hash = hash.to_ascii_lowercase();
        hex::decode::<32>(&hash)?;
        Some((space, ReceiptRef { seq, hash }))
    };
    parse().ok_or_else(|| {
        let shown: String = text.chars().take(100).flat_map(char::escape_debug).collect();
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("`{shown}` is not a receipt"),
        )
        .hint("a receipt is `SEQ:HASH`, with the 64 hexadecimal digits of the exec record's `receipt`; one of another space is `SPACE:SEQ:HASH`")
    })
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The space whose entries or rows it is about.
    pub space_id: Option<String>,
    /// The entry it is about; null when it is about the whole.
    pub seq: Option<u64>,
    pub what: String,
}

/// A space that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpaceLedger {
    pub space_id: String,
    /// How many entries were seen.
    pub entries: u64,
    /// The last of them.
    pub head: Option<ReceiptRef>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether all spaces were looked at, and not one alone.
    #[serde(default)]
    pub all_spaces: bool,
    /// How many entries were seen, in all spaces.
    pub entries: u64,
    /// The last of them; where all spaces are verified, of the operator's.
    pub head: Option<ReceiptRef>,
    /// Each space that was looked at.
    #[serde(default)]
    pub spaces: Vec<SpaceLedger>,
    pub problems: Vec<Problem>,
    /// Of an export: the key that it names, hexadecimal. That it is the right one is known only to
    /// who compares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

impl Verification {
    /// Of a ledger that could not be looked at, since it is not one any more.
    pub fn of_nothing(what: String) -> Self {
        let mut found = Self {
            all_spaces: true,
            entries: 0,
            head: None,
            spaces: Vec::new(),
            problems: Vec::new(),
            signed_by: None,
        };
        found.problem(what);
        found
    }

    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// One of the whole, of no space.
    pub(super) fn problem(&mut self, what: String) {
        self.problems.push(Problem {
            space_id: None,
            seq: None,
            what,
        });
    }

    /// What was found in a further space.
    pub(super) fn add(&mut self, other: Self) {
        self.entries += other.entries;
        let space = other.spaces.first().map(|space| space.space_id.clone());
        self.spaces.extend(other.spaces);
        let room = PROBLEMS_MOST.saturating_sub(self.problems.len());
        let unlisted = other.problems.len().saturating_sub(room);
        self.problems.extend(other.problems.into_iter().take(room));
        if unlisted > 0 {
            self.problems.push(Problem {
                space_id: space,
                seq: None,
                what: format!("and {unlisted} more problems"),
            });
        }
    }
}

#[derive(Debug)]
pub(crate) struct Walk<'e> {
    space: String,
    expectations: &'e Expectations,
    /// By place: the hash that must be there, and who says so.
    awaited: BTreeMap<u64, Vec<(&'e str, &'static str)>>,
    entries: u64,
    last_seq: i64,
    last_hash: Vec<u8>,
    problems: Vec<Problem>,
    unlisted: u64,
}

impl<'e> Walk<'e> {
    pub(crate) fn new(space: &str, expectations: &'e Expectations) -> Self {
        let mut walk = Self {
            space: space.to_owned(),
            expectations,
            awaited: BTreeMap::new(),
            entries: 0,
            last_seq: 0,
            last_hash: vec![0; 32],
            problems: Vec::new(),
            unlisted: 0,
        };
        for receipt in &expectations.receipts {
            walk.await_entry(receipt.seq, &receipt.hash, "a receipt");
        }
        for (of, receipt) in &expectations.of_spaces {
            match of.as_str() == space {
                true => walk.await_entry(receipt.seq, &receipt.hash, "a receipt"),
                false => walk.problem(None, format!("a receipt is of space `{of}`")),
            }
        }
        // An export of all spaces has one of each, of which one is about this space.
        let own = |it: &&Checkpoint| it.space_id == space;
        let known = &expectations.checkpoints;
        for checkpoint in known.iter().filter(own) {
            walk.expect_checkpoint(checkpoint);
        }
        if let (Some(other), false) = (known.first(), known.iter().any(|it| own(&it))) {
            let of = &other.space_id;
            walk.problem(None, format!("the outside checkpoint is of space `{of}`"));
        }
        walk
    }

    fn expect_checkpoint(&mut self, checkpoint: &'e Checkpoint) {
        if !checkpoint.is_signed() {
            self.problem(
                None,
                "the outside checkpoint is not signed by the key it names",
            );
        } else if checkpoint.seq > 0 {
            self.await_entry(checkpoint.seq, &checkpoint.hash, "the outside checkpoint");
        }
    }

    /// That this entry must be there, and who says so.
    pub(crate) fn await_entry(&mut self, seq: u64, hash: &'e str, who: &'static str) {
        self.awaited.entry(seq).or_default().push((hash, who));
    }

    pub(crate) fn problem(&mut self, seq: Option<u64>, what: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MOST {
            let problem = self.described(seq, what.into());
            self.problems.push(problem);
        } else {
            self.unlisted += 1;
        }
    }

    fn described(&self, seq: Option<u64>, what: String) -> Problem {
        let space_id = Some(self.space.clone());
        Problem {
            space_id,
            seq,
            what,
        }
    }

    /// To be asked now and then: a ledger is long.
    pub(crate) fn ensure_awaited(&self) -> Result<()> {
        match self.expectations.abandoned.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::new(
                Code::Canceled,
                Stage::Close,
                "nobody waits for the verification any more",
            )),
        }
    }

    /// A problem of the entry that was walked over last.
    pub(crate) fn problem_here(&mut self, what: impl Into<String>) {
        self.problem(Some(self.last_seq.unsigned_abs()), what);
    }

    pub(crate) fn last(&self) -> (i64, &[u8]) {
        (self.last_seq, &self.last_hash)
    }

    pub(crate) fn entry(&mut self, entry: &StoredEntry) {
        let seq = Some(entry.seq.unsigned_abs());
        let expected = self.last_seq.saturating_add(1);
        if entry.seq > expected {
            let missing = Some(expected.unsigned_abs());
            let what = match entry.seq - 1 {
                last if last == expected => format!("entry {expected} is missing"),
                last => format!("entries {expected} to {last} are missing"),
            };
            self.problem(missing, what);
        } else if entry.seq < expected {
            self.problem(seq, "entry is out of order");
        } else if entry.prev_hash != self.last_hash {
            self.problem(seq, "entry does not follow from the one before it");
        }
        if entry.hash != entry.expected_hash() {
            self.problem(seq, "entry was edited: its hash is not that of its content");
        }
        let place = entry.seq.unsigned_abs();
        for (hash, who) in self.awaited.remove(&place).unwrap_or_default() {
            if hash != hex::encode(&entry.hash) {
                self.problem(seq, format!("{who} says that another entry was here"));
            }
        }
        self.entries += 1;
        self.last_seq = entry.seq;
        self.last_hash.clone_from(&entry.hash);
    }

    /// The key that signed the head.
    pub(crate) fn key(&mut self, public_key: &[u8]) {
        let actual = hex::encode(public_key);
        let expectations = self.expectations;
        if expectations
            .public_key
            .as_ref()
            .is_some_and(|key| *key != actual)
        {
            self.problem(None, "the ledger is signed by another key than expected");
        }
        let other_key = |it: &Checkpoint| it.public_key != actual;
        if expectations.checkpoints.iter().any(other_key) {
            self.problem(
                None,
                "the ledger is signed by another key than the outside checkpoint",
            );
        }
    }

    pub(crate) fn finish(mut self) -> Verification {
        for (seq, expected) in std::mem::take(&mut self.awaited) {
            for (_, who) in expected {
                self.problem(
                    Some(seq),
                    format!("{who} names entry {seq}, which is not there"),
                );
            }
        }
        if self.unlisted > 0 {
            let what = format!("and {} more problems", self.unlisted);
            self.problems.push(self.described(None, what));
        }
        let head = (self.entries > 0).then(|| ReceiptRef {
            seq: self.last_seq.unsigned_abs(),
            hash: hex::encode(&self.last_hash),
        });
        Verification {
            all_spaces: false,
            entries: self.entries,
            head: head.clone(),
            spaces: vec![SpaceLedger {
                space_id: self.space,
                entries: self.entries,
                head,
            }],
            problems: self.problems,
            signed_by: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_read_as_they_are_printed() {
        let hash = "ab".repeat(32);
        for (text, of) in [("12", None), ("other:12", Some("other"))] {
            let (space, receipt) = parse_receipt(&format!("{text}:{hash}")).unwrap();
            assert_eq!((receipt.seq, &receipt.hash), (12, &hash));
            assert_eq!(space.as_ref().map(SpaceId::as_str), of);
            let loud = format!("{text}:{}", hash.to_uppercase());
            assert_eq!(parse_receipt(&loud).unwrap().1, receipt);
        }
        for text in [
            "",
            "12",
            "12:",
            "12:ab",
            &format!("0:{hash}"),
            &format!("-1:{hash}"),
            &format!(":1:{hash}"),
            &format!("a/b:1:{hash}"),
        ] {
            assert_eq!(
                parse_receipt(text).unwrap_err().code,
                Code::InvalidArgument,
                "{text}"
            );
        }
    }
}
