//! Differences between two trees, as people read them: in the manner of git, with the lines of text
//! files in unified form.

use std::fmt::Write as _;

use crate::paint::{Paint, Tone};
use crate::render::one_line;
use crate::terminal::Sanitizer;

/// The text that is printed.
#[derive(Debug)]
pub(crate) struct Patch {
    text: String,
    paint: Paint,
    /// A person's terminal must not obey what stands in a file. Whoever applies it needs every byte.
    is_screen: bool,
}

/// Which sides there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sides {
    Before,
    After,
    Both,
}

impl Patch {
    pub(crate) fn new(paint: Paint, is_screen: bool) -> Self {
        Self {
            text: String::new(),
            paint,
            is_screen,
        }
    }

    pub(crate) fn text(self) -> String {
        self.text
    }

    /// The first line about a path, and what is to be said about it but its lines.
    pub(crate) fn entry(&mut self, path: &str, remarks: &[String]) {
        let path = one_line(path);
        self.line(Tone::Heading, &format!("diff a/{path} b/{path}"));
        for remark in remarks {
            self.line(Tone::Heading, &one_line(remark));
        }
    }

    pub(crate) fn hunks(&mut self, path: &str, sides: Sides, unified: &str) {
        if unified.is_empty() {
            return;
        }
        let path = one_line(path);
        let (before, after) = (format!("a/{path}"), format!("b/{path}"));
        let (before, after) = match sides {
            Sides::Before => (before.as_str(), "/dev/null"),
            Sides::After => ("/dev/null", after.as_str()),
            Sides::Both => (before.as_str(), after.as_str()),
        };
        self.line(Tone::Heading, &format!("--- {before}"));
        self.line(Tone::Heading, &format!("+++ {after}"));
        for line in unified.split_inclusive('\n') {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let tone = match line.as_bytes().first() {
                Some(b'+') => Tone::Good,
                Some(b'-') => Tone::Bad,
                Some(b'@') => Tone::Hint,
                _ => Tone::Plain,
            };
            match self.is_screen {
                false => self.line(tone, line),
                true => {
                    // One of its own: a sequence that is cut off at the end of a line is none.
                    let shown = Sanitizer::default().clean(line.as_bytes());
                    self.line(tone, &String::from_utf8_lossy(&shown));
                }
            }
        }
    }

    fn line(&mut self, tone: Tone, line: &str) {
        let line = self.paint.apply(tone, line);
        let _ = writeln!(self.text, "{line}");
    }
}

/// `+3 -1`.
pub(crate) fn tally(paint: Paint, added: u64, removed: u64) -> String {
    let added = paint.apply(Tone::Good, &format!("+{added}"));
    let removed = paint.apply(Tone::Bad, &format!("-{removed}"));
    format!("{added} {removed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "@@ -1,2 +1,2 @@\n a\n-b\x1b[2J\tc\n+x\n";

    #[test]
    fn a_patch_can_be_applied_and_a_terminal_is_not_steered() {
        let mut patch = Patch::new(Paint::Plain, false);
        patch.entry("dir/f", &["old mode 0644".to_owned()]);
        patch.hunks("dir/f", Sides::Both, UNIFIED);
        let expected =
            format!("diff a/dir/f b/dir/f\nold mode 0644\n--- a/dir/f\n+++ b/dir/f\n{UNIFIED}");
        assert_eq!(patch.text(), expected);

        let mut patch = Patch::new(Paint::Colour, true);
        patch.hunks("f", Sides::After, UNIFIED);
        let shown = patch.text();
        assert!(shown.contains("\x1b[32m+x\x1b[0m\n"), "{shown:?}");
        assert!(shown.contains("--- /dev/null"), "{shown:?}");
        assert!(
            !shown.contains("\x1b[2J") && shown.contains('\t'),
            "{shown:?}"
        );
    }
}
