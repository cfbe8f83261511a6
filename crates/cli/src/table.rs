//! Rows under a header, in columns as wide as their widest cell.

use crate::paint::{Paint, Tone};
use crate::render::one_line;

#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[Cell; N]>,
}

#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn toned(tone: Tone, text: &str) -> Self {
        Self {
            text: one_line(text),
            tone,
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(Tone::Plain, text.as_ref())
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(header: [&'static str; N]) -> Self {
        Self {
            header,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: [Cell; N]) {
        self.rows.push(row);
    }

    pub(crate) fn text(&self, paint: Paint) -> String {
        let header = self.header.map(|text| Cell::toned(Tone::Heading, text));
        self.lines(std::iter::once(&header).chain(&self.rows), paint)
    }

    /// Only the rows, in the header's columns all the same.
    pub(crate) fn body(&self, paint: Paint) -> String {
        self.lines(self.rows.iter(), paint)
    }

    fn lines<'c>(&self, rows: impl Iterator<Item = &'c [Cell; N]>, paint: Paint) -> String {
        let mut widths = self.header.map(width);
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = width(&cell.text).max(*widest);
            }
        }
        let mut text = String::new();
        for row in rows {
            for (column, (cell, widest)) in row.iter().zip(widths).enumerate() {
                text.push_str(&paint.apply(cell.tone, &cell.text));
                if column + 1 < N {
                    text.push_str(&" ".repeat(widest - width(&cell.text) + 2));
                }
            }
            text.push('\n');
        }
        text
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_not_padded() {
        let mut table = Table::new(["ID", "STATUS", "AGE"]);
        table.push(["a".into(), Cell::toned(Tone::Good, "ok"), "5s".into()]);
        table.push(["long-name".into(), "x\ny\x1b[31m".into(), "1h".into()]);
        let expected = "\
ID         STATUS         AGE
a          ok             5s
long-name  x␤y\\u{1b}[31m  1h
";
        assert_eq!(table.text(Paint::Plain), expected);
        let coloured = table.text(Paint::Colour);
        assert!(
            coloured.contains("\x1b[32mok\x1b[0m             5s"),
            "{coloured:?}"
        );
        assert!(!coloured.contains("y\x1b[31m"), "{coloured:?}");
    }
}
