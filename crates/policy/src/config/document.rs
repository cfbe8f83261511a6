//! A configuration text with a name, so that every complaint can say where.

use std::borrow::Cow;
use std::ops::Range;

use glovebox_model::{Code, Error, Result, Stage};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) type Key<'i> = Spanned<Cow<'i, str>>;
pub(super) type Node<'i> = Spanned<DeValue<'i>>;

/// Far more than anybody writes by hand, and little enough to read at once.
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Document<'i> {
    text: &'i str,
    pub(super) file: &'i str,
    /// Where each line begins, so that many places are found without reading the text each time.
    line_starts: Vec<usize>,
}

impl<'i> Document<'i> {
    pub(super) fn new(text: &'i str, file: &'i str) -> Self {
        let after_newline = |(at, byte)| (byte == b'\n').then_some(at + 1);
        let rest = text.bytes().enumerate().filter_map(after_newline);
        Self {
            text,
            file,
            line_starts: std::iter::once(0).chain(rest).collect(),
        }
    }

    pub(super) fn parse(&self) -> Result<DeTable<'i>> {
        if self.text.len() > BYTES_MAX {
            return Err(self.error(0..0, format!("the file is larger than {BYTES_MAX} bytes")));
        }
        DeTable::parse(self.text)
            .map(Spanned::into_inner)
            .map_err(|error| {
                let message = error.message().replace('\n', ", ");
                self.error(error.span().unwrap_or(0..0), message)
            })
    }

    pub(super) fn line(&self, span: &Range<usize>) -> u32 {
        self.position(span.start).0
    }

    /// Line and column, both from 1; the column counts characters.
    fn position(&self, at: usize) -> (u32, u32) {
        let at = at.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= at);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        // A byte that does not continue a character starts one.
        let starts = |byte: &&u8| **byte & 0xc0 != 0x80;
        let columns = self.text.as_bytes()[start..at]
            .iter()
            .filter(starts)
            .count();
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (narrow(line), narrow(columns + 1))
    }

    pub(super) fn error(&self, span: Range<usize>, message: impl AsRef<str>) -> Error {
        let (line, column) = self.position(span.start);
        let message = format!("{} ({}:{line}:{column})", message.as_ref(), self.file);
        Error::new(Code::InvalidConfig, Stage::Parse, message).at_rule(self.file, line)
    }

    /// A value of the wrong type.
    pub(super) fn expected(&self, key: &Key<'_>, node: &Node<'_>, what: &str) -> Error {
        let found = kind(node.get_ref());
        let key = shown(key.get_ref());
        self.error(node.span(), format!("`{key}` must be {what}, not {found}"))
    }

    /// A name that is not one of the valid ones, with the nearest of them.
    pub(super) fn unknown(
        &self,
        span: Range<usize>,
        message: String,
        given: &str,
        valid: &[&str],
    ) -> Error {
        let error = self.error(span, message);
        match nearest(given, valid) {
            Some(name) => error.hint(format!("did you mean `{name}`?")),
            None => {
                let quoted: Vec<_> = valid.iter().map(|name| format!("`{name}`")).collect();
                error.hint(format!("valid here: {}", quoted.join(", ")))
            }
        }
    }
}

/// In the order of the file, so that the first mistake is the one reported.
pub(super) fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t Node<'i>)> {
    let mut all: Vec<_> = table.iter().collect();
    all.sort_by_key(|(key, _)| key.span().start);
    all
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Text from a file as it may be printed.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

fn nearest<'v>(given: &str, valid: &[&'v str]) -> Option<&'v str> {
    const ALIKE: f64 = 0.8;
    let alike = |name: &str| strsim::jaro_winkler(&given.to_lowercase(), name);
    valid
        .iter()
        .map(|name| (alike(name), *name))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let document = Document::new("é = 1\r\nab\n\nx", "f");
        for (at, position) in [
            (0, (1, 1)),
            (2, (1, 2)),
            (8, (2, 1)),
            (9, (2, 2)),
            (12, (4, 1)),
            (999, (4, 2)),
        ] {
            assert_eq!(document.position(at), position, "{at}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested_only_when_it_is_near() {
        let valid = ["timeout", "memory", "pids", "cpus", "cpu_time"];
        assert_eq!(nearest("memroy", &valid), Some("memory"));
        assert_eq!(nearest("Timeout", &valid), Some("timeout"));
        assert_eq!(nearest("cpu", &valid), Some("cpus"));
        assert_eq!(nearest("zebra", &valid), None);
    }
}
