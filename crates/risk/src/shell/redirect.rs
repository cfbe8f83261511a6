//! Redirections and here-documents.

use crate::command::{Direction, Redirect, Unclear, Word};
use crate::environment::changes_meaning;

use super::word::{Build, is_name};
use super::{Outcome, Reader, Stop};

pub(super) struct Heredoc {
    delimiter: String,
    literal: bool,
    tabs: bool,
}

/// What the redirections of one command say.
#[derive(Debug, Default)]
pub(super) struct Redirects {
    pub(super) files: Vec<Redirect>,
    /// Standard input is a text in the script.
    pub(super) here: bool,
    pub(super) here_string: Option<String>,
}

impl Reader<'_, '_> {
    /// False: no redirection stands here.
    pub(super) fn redirect(&mut self, into: &mut Redirects) -> Outcome<bool> {
        let begins = self.at;
        let mut at = self.at;
        while self.bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at == begins && self.bytes.get(at) == Some(&b'{') {
            let mut end = at + 1;
            while self.bytes.get(end).copied().is_some_and(is_name) {
                end += 1;
            }
            if end > at + 1 && self.bytes.get(end) == Some(&b'}') {
                at = end + 1;
            }
        }
        let first = self.bytes.get(at).copied();
        let second = self.bytes.get(at + 1).copied();
        let operator = match (first, second) {
            (Some(b'<' | b'>'), Some(b'(')) => false,
            (Some(b'<' | b'>'), _) => true,
            (Some(b'&'), Some(b'>')) => at == begins,
            _ => false,
        };
        if !operator {
            return Ok(false);
        }
        self.at = at;
        const OPERATORS: [&str; 13] = [
            "&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">", "",
        ];
        let found = OPERATORS.iter().find(|it| self.starts(it)).copied();
        let found = found.filter(|it| !it.is_empty()).ok_or(Stop::Syntax)?;
        self.at += found.len();
        let variable = self.slice(begins, at).strip_prefix('{');
        let variable = variable.and_then(|it| it.strip_suffix('}'));
        let (sets, changes) = (variable.is_some(), variable.is_some_and(changes_meaning));
        if changes {
            self.blind(Unclear::Environment, begins, self.at);
        }
        if sets || found.starts_with('&') {
            self.dialect(begins);
        }
        self.blanks();
        if matches!(found, "<<" | "<<-") {
            self.heredoc(found == "<<-")?;
            into.here = true;
            return Ok(true);
        }
        let target = self.word()?.ok_or(Stop::Syntax)?.word;
        let mut push = |direction, target| into.files.push(Redirect { direction, target });
        match (found, target) {
            ("<<<", Word::Known(text)) => {
                into.here = true;
                into.here_string = Some(text);
            }
            ("<<<", Word::Unknown(_)) => into.here = true,
            ("<", target) => push(Direction::Read, target),
            (">>" | "&>>", target) => push(Direction::Append, target),
            ("<>", target) => {
                push(Direction::Read, target.clone());
                push(Direction::Write, target);
            }
            ("<&" | ">&", Word::Known(text)) if is_descriptor(&text) => {}
            ("<&", target) => push(Direction::Read, target),
            (_, target) => push(Direction::Write, target),
        }
        Ok(true)
    }

    /// The word after `<<`.
    fn heredoc(&mut self, tabs: bool) -> Outcome<()> {
        let begins = self.at;
        // Nothing expands in it, so what looks like an expansion is left alone.
        let raw_dollar = |it: &str| it.contains(['$', '`']);
        let known = self.outline.dark.len();
        let Some((text, build)) = self.built()? else {
            return Err(Stop::Syntax);
        };
        let raw = self.slice(begins, self.at);
        let literal = build.quoted;
        if raw_dollar(raw) || self.outline.dark.len() != known || raw.contains("\\\n") {
            return Err(Stop::Syntax);
        }
        let delimiter = match text.word {
            Word::Known(delimiter) => delimiter,
            // Patterns and tildes mean nothing here, unless quotes are mixed in.
            Word::Unknown(raw) if !literal => raw,
            Word::Unknown(_) => return Err(Stop::Syntax),
        };
        if delimiter.contains('\n') {
            return Err(Stop::Syntax);
        }
        self.pending.push(Heredoc {
            delimiter,
            literal,
            tabs,
        });
        Ok(())
    }

    /// Past a line break, and past the here-documents that begin behind it.
    pub(super) fn newline(&mut self) -> Outcome<()> {
        if self.outer_pending {
            return Err(Stop::Syntax);
        }
        self.at += 1;
        for waiting in std::mem::take(&mut self.pending) {
            self.body(&waiting)?;
        }
        Ok(())
    }

    fn body(&mut self, heredoc: &Heredoc) -> Outcome<()> {
        let begins = self.at;
        let mut at = begins;
        let (ends, after) = loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            if rest.is_empty() {
                // The shell takes the end of the script for the delimiter.
                break (at, at);
            }
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = self.slice(at, at + length);
            let next = (at + length + 1).min(self.bytes.len());
            let compared = if heredoc.tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if compared == heredoc.delimiter {
                break (at, next);
            }
            // A line that goes on may hide the delimiter, or be it.
            if !heredoc.literal && line.ends_with('\\') {
                self.blind(Unclear::Syntax, at, at + length);
            }
            at = next;
        };
        if !heredoc.literal {
            self.nested(|it| it.expansions(ends))?;
        }
        self.at = after;
        Ok(())
    }

    /// Substitutions in a text that is otherwise taken as it is.
    fn expansions(&mut self, ends: usize) -> Outcome<()> {
        let mut build = Build::default();
        while self.at < ends {
            match self.peek() {
                Some(b'$') => self.dollar(&mut build, true)?,
                Some(b'`') => self.backquote(false)?,
                Some(b'\\') => {
                    self.at += 1;
                    self.char();
                }
                _ => {
                    self.char();
                }
            }
        }
        // It began in the text and ended behind it.
        if self.at > ends {
            Err(Stop::Syntax)
        } else {
            Ok(())
        }
    }
}

fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    !text.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}
