//! Unified hunks of one file, line by line.

/// The lines that were added and those that were removed, each without its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'d> {
    Added(&'d str),
    Removed(&'d str),
    Other,
}

/// What stands before the first hunk may name the two files; after it every line counts, however
/// much it looks like such a name.
pub(crate) fn lines(diff: &str) -> impl Iterator<Item = Line<'_>> {
    let mut in_hunk = false;
    diff.lines().map(move |line| {
        if line.starts_with("@@") {
            in_hunk = true;
            return Line::Other;
        }
        if !in_hunk && (line.starts_with("--- ") || line.starts_with("+++ ")) {
            return Line::Other;
        }
        match (line.strip_prefix('+'), line.strip_prefix('-')) {
            (Some(added), _) => Line::Added(added),
            (None, Some(removed)) => Line::Removed(removed),
            (None, None) => Line::Other,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_looks_like_a_header_counts_within_a_hunk() {
        let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n-y\n+z\n";
        let changed: Vec<_> = lines(diff).filter(|it| *it != Line::Other).collect();
        assert_eq!(
            changed,
            [
                Line::Removed("-- old"),
                Line::Added("++ new"),
                Line::Removed("y"),
                Line::Added("z"),
            ]
        );
        assert_eq!(lines("+x").collect::<Vec<_>>(), [Line::Added("x")]);
    }
}
