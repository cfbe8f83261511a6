//! `diff_size`: how much a person would have to read.

use glovebox_model::{Deed, FailureCode, FileFacts, FileOp, FileWrite};

use super::Found;
use crate::contents::{Content, Contents};
use crate::diff::{Line, lines as lines_of};
use crate::evidence::Evidence;
use crate::finding::{Finding, share};

/// Read of all files that are too large to be compared line by line.
const READ_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffSize {
    /// Added and removed together.
    pub lines: Option<u64>,
    pub files: Option<u64>,
}

impl DiffSize {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let mut reading = Reading {
            contents: evidence.subject.contents,
            left: READ_BYTES_MAX,
        };
        let (mut lines, mut files, mut read) = (0_u64, 0_u64, 0_u64);
        for effect in evidence.effects()? {
            let Deed::FilesystemWrite(write) = &effect.deed else {
                continue;
            };
            if matches!(write.operation, FileOp::Attempted | FileOp::Touched) {
                continue;
            }
            files += 1;
            let counted = match (&write.diff, self.lines) {
                (Some(diff), _) => {
                    let changed = lines_of(diff).filter(|it| *it != Line::Other);
                    Some(count(changed))
                }
                (None, Some(_)) => reading.lines_at_most(write),
                (None, None) => None,
            };
            if let Some(counted) = counted {
                lines = lines.saturating_add(counted);
                read += 1;
            }
        }
        let too_much = |what: &str, found: u64, most: u64| {
            Err(Finding::bad(
                FailureCode::OutOfScope,
                format!("{found} {what} are changed, above {most}"),
                "make the change in smaller parts, or raise the gate's limit",
            ))
        };
        match (self.files, self.lines) {
            (Some(most), _) if files > most => too_much("files", files, most),
            (_, Some(most)) if lines > most => too_much("lines", lines, most),
            (_, Some(_)) if read < files => Ok(Finding::unseen(
                share(read, files),
                format!("the lines of {} files could not be counted", files - read),
            )),
            (_, Some(_) | None) => Ok(Finding::good()),
        }
    }
}

struct Reading<'r> {
    contents: &'r dyn Contents,
    left: usize,
}

impl Reading<'_> {
    /// Of a file without a diff: all lines from the first that differs to the last. None of what is
    /// no text, since it has no lines that anybody reads.
    fn lines_at_most(&mut self, write: &FileWrite) -> Option<u64> {
        let from = write.from.as_ref().unwrap_or(&write.path);
        let before = self.text(write.before.as_ref(), Content::Before(from))?;
        let after = self.text(write.after.as_ref(), Content::After(&write.path))?;
        let old = || before.split_inclusive('\n');
        let new = || after.split_inclusive('\n');
        let (olds, news) = (count(old()), count(new()));
        let same = |(a, b): &(&str, &str)| a == b;
        let head = count(old().zip(new()).take_while(same));
        let tail = count(old().rev().zip(new().rev()).take_while(same));
        let kept = head + tail.min(olds.min(news) - head);
        Some(olds + news - 2 * kept)
    }

    /// Nothing where there is no file.
    fn text(&mut self, facts: Option<&FileFacts>, content: Content<'_>) -> Option<String> {
        let Some(facts) = facts.filter(|it| it.kind == "file" && it.size > 0) else {
            return Some(String::new());
        };
        let found = self.contents.read(content, self.left)?;
        self.left = self.left.saturating_sub(found.bytes.len());
        let is_whole = found.length >= facts.size && !found.bytes.contains(&0);
        String::from_utf8(found.bytes).ok().filter(|_| is_whole)
    }
}

fn count<T>(lines: impl Iterator<Item = T>) -> u64 {
    u64::try_from(lines.count()).unwrap_or(u64::MAX)
}
