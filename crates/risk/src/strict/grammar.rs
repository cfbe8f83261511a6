//! The part of the shell's language that dash and bash read alike, and in which nothing is known
//! only when it runs. It lists what is accepted; all else is a doubt, so that a form which was
//! not thought of is one too.

use super::Doubt;
use crate::outline::{COMMANDS, SOURCE_BYTES, excerpt};

/// A command as it is written: its words without their quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    pub(super) source: String,
}

/// They begin or end a compound command, or change how the next word is read.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "if", "then", "else", "elif", "fi", "do", "done", "case", "esac",
    "while", "until", "for", "in", "function", "select", "coproc", "]",
];

/// Whether a word, where a command belongs, is the name of a program and nothing of the language.
pub(super) fn is_name(word: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '/' | '.' | '_' | '[' | ':');
    !RESERVED.contains(&word) && word.starts_with(plain) && !word.contains('=')
}

pub(super) fn lines(text: &str) -> Result<Vec<Line>, Doubt> {
    if text.len() > SOURCE_BYTES {
        return Err(Doubt::new("the script is too long to be read"));
    }
    Scan {
        text,
        bytes: text.as_bytes(),
        at: 0,
    }
    .all()
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// What stands behind a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    /// `;`, a line break or the end: another command may follow.
    Ends,
    /// `&&`, `||`, `|`: another command must follow.
    Needs,
}

impl Scan<'_> {
    fn all(mut self) -> Result<Vec<Line>, Doubt> {
        let mut found = Vec::new();
        let mut link = Link::Ends;
        loop {
            self.empty_lines()?;
            if self.at >= self.bytes.len() {
                return match link {
                    Link::Ends => Ok(found),
                    Link::Needs => Err(Doubt::new("the script ends in the middle of a list")),
                };
            }
            if found.len() >= COMMANDS {
                return Err(Doubt::new("the script holds too many commands"));
            }
            found.push(self.line()?);
            link = self.link()?;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn ahead(&self) -> Option<u8> {
        self.bytes.get(self.at + 1).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Blanks, line breaks and comments. A comment ends with its line in both shells, whatever is in it.
    fn empty_lines(&mut self) -> Result<(), Doubt> {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<(), Doubt> {
        while let Some(byte) = self.peek().filter(|it| *it != b'\n') {
            if byte.is_ascii_control() && byte != b'\t' {
                return Err(Doubt::new("a comment holds a control character"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn line(&mut self) -> Result<Line, Doubt> {
        let begins = self.at;
        let mut words: Vec<String> = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b'#') => break,
                Some(b'<' | b'>') => self.redirect()?,
                Some(_) => {
                    if let Some(word) = self.word(words.is_empty())? {
                        words.push(word);
                    }
                }
            }
        }
        let source = excerpt(self.text.get(begins..self.at).unwrap_or_default());
        let Some(first) = words.first() else {
            return Err(self.doubt(begins, "an operator stands where a command belongs"));
        };
        if first.contains('=') {
            return Err(self.doubt(begins, "it sets a variable"));
        }
        Ok(Line { words, source })
    }

    fn link(&mut self) -> Result<Link, Doubt> {
        let begins = self.at;
        let (length, link) = match (self.peek(), self.ahead()) {
            (None, _) => return Ok(Link::Ends),
            (Some(b'#'), _) => {
                self.comment()?;
                return Ok(Link::Ends);
            }
            (Some(b'\n'), _) => (1, Link::Ends),
            (Some(b';'), Some(b';' | b'&' | b'|')) => {
                return Err(self.doubt(begins, "it is more than a plain list of commands"));
            }
            (Some(b';'), _) => (1, Link::Ends),
            (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => (2, Link::Needs),
            (Some(b'|'), Some(b'&')) => {
                return Err(self.doubt(begins, "shells read `|&` differently"));
            }
            (Some(b'|'), _) => (1, Link::Needs),
            (Some(b'&'), Some(b'>')) => {
                return Err(self.doubt(begins, "shells read `&>` differently"));
            }
            _ => return Err(self.doubt(begins, "a command is left in the background")),
        };
        self.at += length;
        Ok(link)
    }

    /// To or from `/dev/null`, and of the two outputs into each other.
    fn redirect(&mut self) -> Result<(), Doubt> {
        let begins = self.at;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends_word = |at: usize| {
            rest.get(at)
                .is_none_or(|it| matches!(it, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|'))
        };
        if let [b'>', b'&', b'1' | b'2', ..] = rest
            && ends_word(3)
        {
            self.at += 3;
            return Ok(());
        }
        let operator = match rest {
            [b'>', b'>', ..] => 2,
            _ => 1,
        };
        let after = rest.get(operator..).unwrap_or_default();
        let blanks = after
            .iter()
            .take_while(|it| matches!(it, b' ' | b'\t'))
            .count();
        let target = operator + blanks;
        let null = b"/dev/null";
        if rest.get(target..).is_some_and(|it| it.starts_with(null))
            && ends_word(target + null.len())
        {
            self.at += target + null.len();
            return Ok(());
        }
        Err(self.doubt(begins, "the shell opens a file or a text for it"))
    }

    /// `None`: it was the number of a redirection, which stands behind it.
    fn word(&mut self, first: bool) -> Result<Option<String>, Doubt> {
        let begins = self.at;
        let mut value = String::new();
        let mut quoted = false;
        let mut open = false;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' => break,
                b'<' | b'>' => {
                    let digits = !quoted && value.bytes().all(|it| it.is_ascii_digit());
                    match value.as_str() {
                        "1" | "2" if digits => return self.redirect().map(|()| None),
                        // dash takes a longer number for a word.
                        _ if digits => return Err(self.doubt(begins, "it opens a descriptor")),
                        _ => break,
                    }
                }
                b'\'' | b'"' => {
                    quoted = true;
                    self.quoted(byte, &mut value)?;
                }
                _ => {
                    self.plain(byte, begins)?;
                    open |= matches!(byte, b'[' | b']' | b'!');
                    value.push(char::from(byte));
                    self.at += 1;
                }
            }
        }
        let whole = self.text.get(begins..self.at).unwrap_or_default();
        // Alone they are words of `test`; elsewhere they make a pattern or negate.
        let is_of_test = matches!(whole, "[" | "]" | "!") && !(first && whole != "[");
        if open && !is_of_test {
            return Err(self.doubt(begins, "a pattern stands for names"));
        }
        Ok(Some(value))
    }

    /// Up to and with the closing quote.
    fn quoted(&mut self, quote: u8, value: &mut String) -> Result<(), Doubt> {
        let begins = self.at;
        self.at += 1;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(length) = memchr::memchr(quote, rest.as_bytes()) else {
            return Err(self.doubt(begins, "a quote is not closed"));
        };
        let inner = rest.get(..length).unwrap_or_default();
        if quote == b'"' && inner.contains(['$', '`', '\\']) {
            return Err(self.doubt(begins, "the shell puts something in place of a word"));
        }
        if inner.contains(|it: char| it.is_control() && !matches!(it, '\n' | '\t')) {
            return Err(self.doubt(begins, "it holds a control character"));
        }
        value.push_str(inner);
        self.at += length + 1;
        Ok(())
    }

    /// Whether an unquoted character stands for itself there.
    fn plain(&self, byte: u8, begins: usize) -> Result<(), Doubt> {
        let before = self.at.checked_sub(1).filter(|it| *it >= begins);
        let before = before.and_then(|it| self.bytes.get(it)).copied();
        let inside = before.is_some_and(|it| it.is_ascii_alphanumeric() || it == b'^');
        let why = match byte {
            _ if byte.is_ascii_alphanumeric() => return Ok(()),
            b'_' | b'-' | b'+' | b'=' | b'.' | b'/' | b',' | b':' | b'@' | b'%' | b'^' => {
                return Ok(());
            }
            // Judged with the whole word.
            b'[' | b']' | b'!' => return Ok(()),
            b'~' | b'#' if inside => return Ok(()),
            b'$' | b'`' | b'~' => "the shell puts something in place of a word",
            b'*' | b'?' => "a pattern stands for names",
            b'{' | b'}' => "shells read braces differently",
            b'\\' => "a backslash changes how it is read",
            b'(' | b')' => "it is more than a plain list of commands",
            _ => "it holds a character that shells may read differently",
        };
        Err(self.doubt(begins, why))
    }

    fn doubt(&self, from: usize, why: &str) -> Doubt {
        let rest = self.text.get(from..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        Doubt::at(why, line)
    }
}
