//! `diff_size`: how much a person would have to read.

use glovebox_model::{Deed, FailureCode, FileOp};

use super::Found;
use crate::diff::{Line, lines as lines_of};
use crate::evidence::Evidence;
use crate::finding::{Finding, share};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffSize {
    /// Added and removed together.
    pub lines: Option<u64>,
    pub files: Option<u64>,
}

impl DiffSize {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let (mut lines, mut files, mut read) = (0_u64, 0_u64, 0_u64);
        for effect in evidence.effects()? {
            let Deed::FilesystemWrite(write) = &effect.deed else {
                continue;
            };
            if matches!(write.operation, FileOp::Attempted | FileOp::Touched) {
                continue;
            }
            files += 1;
            let has_text = [&write.before, &write.after]
                .into_iter()
                .flatten()
                .any(|it| it.kind == "file" && it.size > 0);
            match &write.diff {
                Some(diff) => {
                    let changed = lines_of(diff).filter(|it| *it != Line::Other);
                    lines =
                        lines.saturating_add(u64::try_from(changed.count()).unwrap_or(u64::MAX));
                    read += 1;
                }
                None if !has_text => read += 1,
                None => {}
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
            (_, Some(_)) if read < files => Ok(Finding::unsure(
                share(read, files),
                format!("the lines of {} files could not be counted", files - read),
            )),
            (_, Some(_) | None) => Ok(Finding::good()),
        }
    }
}
