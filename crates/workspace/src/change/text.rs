//! The difference of two texts, for people.

use std::fmt::{self, Write};
use std::io::Read;

use imara_diff::{
    Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter,
};

use super::entry::Change;
use super::place::{Place, leads_nowhere};
use crate::dir::{Dir, from_io};
use crate::fault::{FsError, FsResult};
use crate::stat::Kind;

/// The hunks of one change, as `git diff` gives them without its header. None when either side is no
/// text, or larger than `most` bytes; one that is missing is empty.
pub fn text(lower: &Dir, upper: &Dir, change: &Change, most: u64) -> FsResult<Option<String>> {
    let sides = [(lower, &change.before), (upper, &change.after)];
    let mut texts = Vec::new();
    for (dir, facts) in sides {
        match facts {
            None => texts.push(Vec::new()),
            Some(facts) if facts.kind == Kind::File && facts.size <= most => {
                match contents(dir, change.path.as_bytes(), most)? {
                    Some(bytes) => texts.push(bytes),
                    None => return Ok(None),
                }
            }
            Some(_) => return Ok(None),
        }
    }
    Ok(unified(&texts[0], &texts[1]))
}

fn contents(dir: &Dir, path: &[u8], most: u64) -> FsResult<Option<Vec<u8>>> {
    let file = match Place::below(dir, path).and_then(|place| place.open_file()) {
        Ok((file, _)) => std::fs::File::from(file),
        Err(error) if leads_nowhere(error.kind()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| FsError::new("read", path, from_io(&error)))?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// None when either is no text: not UTF-8, or with a NUL inside. The caller bounds their sizes.
pub fn unified(before: &[u8], after: &[u8]) -> Option<String> {
    let is_text = |bytes: &[u8]| !bytes.contains(&0);
    if !is_text(before) || !is_text(after) {
        return None;
    }
    let (before, after) = (std::str::from_utf8(before), std::str::from_utf8(after));
    let (Ok(before), Ok(after)) = (before, after) else {
        return None;
    };
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = Lines(&input.interner);
    let shown = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
    Some(shown.to_string())
}

struct Lines<'l>(&'l Interner<&'l str>);

impl Lines<'_> {
    fn signed(&self, f: &mut impl Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(f, "{sign}{line}")?;
        match line.ends_with('\n') {
            true => Ok(()),
            false => f.write_str("\n\\ No newline at end of file\n"),
        }
    }
}

impl UnifiedDiffPrinter for Lines<'_> {
    fn display_header(
        &self,
        mut f: impl Write,
        before: u32,
        after: u32,
        before_lines: u32,
        after_lines: u32,
    ) -> fmt::Result {
        // Lines count from 1; where there is none, patch tools read the line that it comes after.
        let from = |start: u32, lines: u32| if lines == 0 { start } else { start + 1 };
        let (before, after) = (from(before, before_lines), from(after, after_lines));
        writeln!(f, "@@ -{before},{before_lines} +{after},{after_lines} @@")
    }

    fn display_context_token(&self, mut f: impl Write, token: Token) -> fmt::Result {
        self.signed(&mut f, ' ', token)
    }

    fn display_hunk(&self, mut f: impl Write, before: &[Token], after: &[Token]) -> fmt::Result {
        let removed = before.iter().map(|token| ('-', token));
        let added = after.iter().map(|token| ('+', token));
        removed
            .chain(added)
            .try_for_each(|(sign, token)| self.signed(&mut f, sign, *token))
    }
}
