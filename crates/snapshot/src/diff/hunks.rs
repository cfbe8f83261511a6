//! The lines that differ between two texts, in unified form.

use std::fmt::{self, Write};

use imara_diff::{
    Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter,
};

use super::Text;

/// Bytes that a text does not have, looked for where a binary file has them early.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
}

pub(super) fn between(old: &[u8], new: &[u8], most: usize) -> Text {
    if is_binary(old) || is_binary(new) {
        return Text::Binary;
    }
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        return Text::Binary;
    };
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = Lines(&input.interner);
    let mut bounded = Bounded {
        text: String::new(),
        most,
        truncated: false,
    };
    let shown = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
    // Only the bound makes it fail.
    let _ = write!(bounded, "{shown}");
    Text::Hunks {
        lines_added: diff.count_additions(),
        lines_removed: diff.count_removals(),
        unified: bounded.text,
        truncated: bounded.truncated,
    }
}

/// Takes whole lines until it is full.
struct Bounded {
    text: String,
    most: usize,
    truncated: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.most - self.text.len();
        if text.len() <= left {
            self.text.push_str(text);
            return Ok(());
        }
        self.truncated = true;
        let end = (0..=left).rev().find(|at| text.is_char_boundary(*at));
        self.text.push_str(&text[..end.unwrap_or(0)]);
        let line = self.text.rfind('\n').map_or(0, |at| at + 1);
        self.text.truncate(line);
        Err(fmt::Error)
    }
}

struct Lines<'l>(&'l Interner<&'l str>);

impl Lines<'_> {
    fn line(&self, f: &mut impl Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        match line.ends_with('\n') {
            true => write!(f, "{sign}{line}"),
            false => writeln!(f, "{sign}{line}\n\\ No newline at end of file"),
        }
    }
}

impl UnifiedDiffPrinter for Lines<'_> {
    fn display_header(
        &self,
        mut f: impl Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        // An empty side stands before its first line.
        let first = |start: u32, length: u32| start + u32::from(length > 0);
        writeln!(
            f,
            "@@ -{},{len_before} +{},{len_after} @@",
            first(start_before, len_before),
            first(start_after, len_after),
        )
    }

    fn display_context_token(&self, mut f: impl Write, token: Token) -> fmt::Result {
        self.line(&mut f, ' ', token)
    }

    fn display_hunk(&self, mut f: impl Write, before: &[Token], after: &[Token]) -> fmt::Result {
        for token in before {
            self.line(&mut f, '-', *token)?;
        }
        for token in after {
            self.line(&mut f, '+', *token)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(old: &str, new: &str, most: usize) -> (String, bool) {
        match between(old.as_bytes(), new.as_bytes(), most) {
            Text::Hunks {
                unified, truncated, ..
            } => (unified, truncated),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_changed_line_is_shown_with_its_surroundings() {
        let (unified, _) = hunks("a\nb\nc\nd\n", "a\nb\nX\nd\n", 1000);
        assert_eq!(unified, "@@ -1,4 +1,4 @@\n a\n b\n-c\n+X\n d\n");
    }

    #[test]
    fn a_new_file_is_all_added_and_a_missing_last_newline_is_told() {
        let (unified, _) = hunks("", "a\nb", 1000);
        let wanted = "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n";
        assert_eq!(unified, wanted);
        assert!(hunks("a", "a\n", 1000).0.contains("No newline"));
    }

    #[test]
    fn what_does_not_fit_is_cut_at_a_line() {
        let (unified, truncated) = hunks("", "äöü\nsecond\n", 27);
        assert!(truncated);
        assert!(
            unified.ends_with('\n') && unified.len() <= 27,
            "{unified:?}"
        );
    }

    #[test]
    fn bytes_that_are_no_text_have_no_hunks() {
        assert_eq!(between(b"a\0b", b"a", 100), Text::Binary);
        assert_eq!(between(b"a", b"\xff", 100), Text::Binary);
    }
}
