//! `path_scope`: what may be written, and what may not. A rename counts at both its ends.

use glovebox_model::{Deed, FailureCode, FileOp, FileWrite};

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::glob::{PathGlob, is_clean};

const SHOWN: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathScope {
    /// Empty: anywhere, but for what `outside` forbids.
    pub within: Vec<PathGlob>,
    pub outside: Vec<PathGlob>,
}

impl PathScope {
    pub const GLOBS_MAX: usize = 64;

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let mut wrong: Vec<String> = Vec::new();
        let mut count = 0_usize;
        for effect in evidence.effects()? {
            let Deed::FilesystemWrite(write) = &effect.deed else {
                continue;
            };
            let ends = std::iter::once(&write.path).chain(&write.from);
            for path in ends.filter(|path| !self.allows(write, path.as_bytes())) {
                count += 1;
                if wrong.len() < SHOWN {
                    wrong.push(format!("`{}`", path.one_line()));
                }
            }
        }
        if count == 0 {
            return Ok(Finding::good());
        }
        let more = match count - wrong.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let list = |globs: &[PathGlob]| -> String {
            let globs: Vec<_> = globs.iter().map(|it| format!("`{}`", it.text())).collect();
            globs.join(", ")
        };
        let way_out = match (self.within.is_empty(), self.outside.is_empty()) {
            (false, true) => format!("write only within {}", list(&self.within)),
            (true, _) => format!("leave {} alone", list(&self.outside)),
            (false, false) => format!(
                "write only within {}, and leave {} alone",
                list(&self.within),
                list(&self.outside)
            ),
        };
        let reason = format!("{}{more} must not be written", wrong.join(", "));
        Err(Finding::bad(FailureCode::OutOfScope, reason, way_out))
    }

    fn allows(&self, write: &FileWrite, path: &[u8]) -> bool {
        let directory = |kind: &str| kind == "directory";
        let sides = [&write.before, &write.after];
        let was_directory = write.before.as_ref().is_some_and(|it| directory(&it.kind));
        let only_directory = sides.iter().any(|it| it.is_some())
            && sides.into_iter().flatten().all(|it| directory(&it.kind));
        // Whoever moves or removes a directory moves or removes what is in it.
        let takes_all = match write.operation {
            FileOp::Removed | FileOp::Renamed | FileOp::Replaced => was_directory || only_directory,
            FileOp::Attempted => true,
            FileOp::Created | FileOp::Modified | FileOp::Touched => false,
        };
        let forbids = |glob: &PathGlob| glob.touches(path) || (takes_all && glob.is_below(path));
        let covers = |glob: &PathGlob| glob.covers(path, only_directory);
        is_clean(path)
            && !self.outside.iter().any(forbids)
            && (self.within.is_empty() || self.within.iter().any(covers))
    }
}
