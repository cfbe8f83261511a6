//! Words: quotes, escapes, expansions.

use crate::command::{Unclear, Word};

use super::{Outcome, Reader, Stop, Text, script};

/// More words than this are not made of one.
const BRACE_WORDS: usize = 64;

#[derive(Default)]
pub(super) struct Build {
    pub(super) value: String,
    pub(super) unknown: bool,
    /// Any part of it is quoted or escaped.
    pub(super) quoted: bool,
    pub(super) brace: bool,
}

impl Reader<'_, '_> {
    /// The words that stand here: one, or several if braces expand to known ones; none before an
    /// operator.
    pub(super) fn words(&mut self, into: &mut Vec<Text>) -> Outcome<bool> {
        let begins = self.at;
        let Some((text, build)) = self.built()? else {
            return Ok(false);
        };
        if build.brace {
            let raw = self.slice(begins, self.at);
            if let (false, Some(all)) = (build.quoted, braces(raw)) {
                into.extend(all.into_iter().map(|it| Text {
                    word: Word::Known(it),
                    ..text.clone()
                }));
                return Ok(true);
            }
        }
        into.push(text);
        Ok(true)
    }

    pub(super) fn word(&mut self) -> Outcome<Option<Text>> {
        Ok(self.built()?.map(|(text, _)| text))
    }

    pub(super) fn built(&mut self) -> Outcome<Option<(Text, Build)>> {
        let begins = self.at;
        let mut build = Build::default();
        let mut brace = Brace::None;
        let mut bracket = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.ahead(1) == Some(b'(') => {
                    build.unknown = true;
                    self.process()?;
                }
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b')' => break,
                b'(' => {
                    let before = self.at.checked_sub(1).and_then(|it| self.bytes.get(it));
                    if self.at > begins && before.is_some_and(|it| b"?*+@!".contains(it)) {
                        if !self.pattern {
                            return Err(Stop::Syntax);
                        }
                        build.unknown = true;
                    }
                    break;
                }
                b'\'' => {
                    build.quoted = true;
                    self.single(&mut build)?;
                }
                b'"' => {
                    build.quoted = true;
                    self.at += 1;
                    self.double(&mut build)?;
                }
                b'\\' => {
                    self.at += 1;
                    match self.char() {
                        // A line that goes on leaves nothing behind.
                        Some('\n') => {}
                        Some(escaped) => {
                            build.quoted = true;
                            build.value.push(escaped);
                        }
                        None => return Err(Stop::Syntax),
                    }
                }
                b'$' => {
                    build.quoted = true;
                    self.dollar(&mut build, false)?;
                }
                b'`' => {
                    build.unknown = true;
                    self.backquote(false)?;
                }
                _ => {
                    let previous = build.value.chars().next_back();
                    let Some(plain) = self.char() else { break };
                    match plain {
                        '*' | '?' => build.unknown = true,
                        '[' => bracket = true,
                        ']' if bracket => build.unknown = true,
                        '~' if matches!(previous, None | Some('=' | ':')) => build.unknown = true,
                        _ => {}
                    }
                    brace = brace.step(plain);
                    build.value.push(plain);
                }
            }
        }
        if self.at == begins {
            return Ok(None);
        }
        build.brace = matches!(brace, Brace::Closed);
        let word = if build.unknown || build.brace {
            Word::Unknown(self.slice(begins, self.at).to_owned())
        } else {
            Word::Known(std::mem::take(&mut build.value))
        };
        let text = Text {
            word,
            at: self.position(begins),
            argument: None,
        };
        Ok(Some((text, build)))
    }

    pub(super) fn char(&mut self) -> Option<char> {
        let found = self.text.get(self.at..)?.chars().next()?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn single(&mut self, build: &mut Build) -> Outcome<()> {
        self.at += 1;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends = memchr::memchr(b'\'', rest).ok_or(Stop::Syntax);
        let ends = ends.inspect_err(|_| self.at = self.bytes.len())?;
        build.value.push_str(self.slice(self.at, self.at + ends));
        self.at += ends + 1;
        Ok(())
    }

    /// After the opening quote.
    pub(super) fn double(&mut self, build: &mut Build) -> Outcome<()> {
        loop {
            match self.peek() {
                None => return Err(Stop::Syntax),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.char() {
                        Some('\n') => {}
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => build.value.push(escaped),
                        Some(other) => {
                            build.value.push('\\');
                            build.value.push(other);
                        }
                        None => return Err(Stop::Syntax),
                    }
                }
                Some(b'$') => self.dollar(build, true)?,
                Some(b'`') => {
                    build.unknown = true;
                    self.backquote(true)?;
                }
                Some(_) => build.value.extend(self.char()),
            }
        }
    }

    /// At a dollar sign.
    pub(super) fn dollar(&mut self, build: &mut Build, quoted: bool) -> Outcome<()> {
        let begins = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !quoted => {
                self.at += 1;
                self.ansi(build)?;
                self.dialect(begins);
                return Ok(());
            }
            Some(b'"') if !quoted => {
                self.at += 1;
                build.unknown = true;
                return self.double(build);
            }
            Some(b'(') => {
                build.unknown = true;
                if self.ahead(1) == Some(b'(')
                    && let Some(ends) = self.arithmetic_end(self.at + 2)
                {
                    self.at += 2;
                    self.nested(|it| it.arithmetic(ends))?;
                    return self.expect("))");
                }
                self.at += 1;
                self.substitution(begins)?;
            }
            Some(b'[') => {
                build.unknown = true;
                self.at += 1;
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let ends = memchr::memchr(b']', rest).ok_or(Stop::Syntax)?;
                let ends = self.at + ends;
                self.nested(|it| it.arithmetic(ends))?;
                self.expect("]")?;
                self.dialect(begins);
            }
            Some(b'{') => {
                build.unknown = true;
                self.at += 1;
                self.nested(|it| it.parameter(quoted))?;
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphanumeric() => {
                build.unknown = true;
                self.at += 1;
                if !byte.is_ascii_digit() {
                    while self.peek().is_some_and(is_name) {
                        self.at += 1;
                    }
                }
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                build.unknown = true;
                self.at += 1;
            }
            // The line goes on, and with it the name.
            Some(b'\\') if self.ahead(1) == Some(b'\n') => return Err(Stop::Syntax),
            _ => build.value.push('$'),
        }
        Ok(())
    }

    /// After `$(`, `<(` or `>(`, up to and with the closing bracket.
    fn substitution(&mut self, begins: usize) -> Outcome<()> {
        self.blind(Unclear::Substitution, begins, self.at);
        let waiting = std::mem::take(&mut self.pending);
        let outer = std::mem::replace(&mut self.outer_pending, !waiting.is_empty());
        let pattern = std::mem::replace(&mut self.pattern, false);
        let result = self.nested(|it| it.list(&[")"]));
        let left = !self.pending.is_empty();
        self.pending = waiting;
        self.outer_pending = outer;
        self.pattern = pattern;
        result?;
        if left {
            return Err(Stop::Syntax);
        }
        self.expect(")")
    }

    fn process(&mut self) -> Outcome<()> {
        let begins = self.at;
        self.at += 2;
        self.substitution(begins)
    }

    /// At a backquote. What is inside is unescaped once and read on its own.
    pub(super) fn backquote(&mut self, quoted: bool) -> Outcome<()> {
        let begins = self.at;
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.char() {
                None => return Err(Stop::Syntax),
                Some('`') => break,
                Some('\\') => match self.char() {
                    Some(escaped @ ('$' | '`' | '\\')) => inner.push(escaped),
                    Some('"') if quoted => inner.push('"'),
                    Some(other) => {
                        inner.push('\\');
                        inner.push(other);
                    }
                    None => return Err(Stop::Syntax),
                },
                Some(other) => inner.push(other),
            }
        }
        self.blind(Unclear::Substitution, begins, self.at);
        let place = self.inside(self.position(begins));
        script(&inner, place, self.outline);
        Ok(())
    }

    /// Inside `${`.
    fn parameter(&mut self, quoted: bool) -> Outcome<()> {
        let begins = self.at;
        let mut build = Build::default();
        if self.peek() == Some(b'!') {
            self.at += 1;
        }
        while self.peek().is_some_and(is_name) {
            self.at += 1;
        }
        let operator = self.at;
        loop {
            match self.peek() {
                None => return Err(Stop::Syntax),
                Some(b'}') => break,
                Some(b'\\') => {
                    self.at += 1;
                    self.char().ok_or(Stop::Syntax)?;
                }
                // Whether it quotes depends on the operator.
                Some(b'\'') if quoted => return Err(Stop::Syntax),
                Some(b'\'') => self.single(&mut build)?,
                Some(b'"') => {
                    self.at += 1;
                    self.nested(|it| it.double(&mut Build::default()))?;
                }
                Some(b'$') => self.dollar(&mut build, quoted)?,
                Some(b'`') => self.backquote(quoted)?,
                Some(b'<' | b'>') if self.ahead(1) == Some(b'(') => self.process()?,
                Some(_) => {
                    self.char();
                }
            }
        }
        let rest = self.slice(operator, self.at);
        let evaluates = self.bytes.get(begins) == Some(&b'!') || !is_plain_operator(rest);
        // `${IFS:=x}` and `${PATH=x}` assign.
        let assigned = self.slice(begins, operator);
        let changes = crate::environment::changes_meaning(assigned)
            && (rest.starts_with('=') || rest.starts_with(":="));
        if evaluates {
            self.blind(Unclear::Evaluation, begins, self.at);
        }
        if changes {
            self.blind(Unclear::Environment, begins, self.at);
        }
        self.expect("}")
    }

    /// Where `))` stands that closes the arithmetic which begins here; none if it is a subshell in
    /// a subshell.
    pub(super) fn arithmetic_end(&self, from: usize) -> Option<usize> {
        let mut open = 0usize;
        let mut at = from;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\'' | b'"' => {
                    let rest = self.bytes.get(at + 1..)?;
                    at += 1 + memchr::memchr(*byte, rest)?;
                }
                b'(' => open += 1,
                b')' if open == 0 => {
                    return (self.bytes.get(at + 1) == Some(&b')')).then_some(at);
                }
                b')' => open -= 1,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Names in arithmetic are evaluated again with what they hold, which may run anything.
    pub(super) fn arithmetic(&mut self, ends: usize) -> Outcome<()> {
        let begins = self.at;
        let mut named = false;
        let mut build = Build::default();
        while self.at < ends {
            match self.peek() {
                Some(b'$') => {
                    named = true;
                    self.dollar(&mut build, true)?;
                }
                Some(b'`') => self.backquote(false)?,
                Some(b'\\') => {
                    self.at += 1;
                    self.char();
                }
                _ => {
                    named |= self
                        .char()
                        .is_some_and(|it| it.is_alphabetic() || it == '_')
                }
            }
        }
        if self.at != ends {
            return Err(Stop::Syntax);
        }
        if named {
            self.blind(Unclear::Evaluation, begins, ends);
        }
        Ok(())
    }

    fn ansi(&mut self, build: &mut Build) -> Outcome<()> {
        loop {
            match self.char().ok_or(Stop::Syntax)? {
                '\'' => return Ok(()),
                '\\' => {
                    let escaped = self.char().ok_or(Stop::Syntax)?;
                    self.escape(escaped, build);
                }
                plain => build.value.push(plain),
            }
        }
    }

    fn escape(&mut self, escaped: char, build: &mut Build) {
        let plain = match escaped {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '?' => escaped,
            'x' => return self.number(16, 2, 0, build),
            'u' => return self.number(16, 4, 0, build),
            'U' => return self.number(16, 8, 0, build),
            // What it makes of the next character is only known later; where the text ends is not
            // changed by that.
            'c' => {
                build.unknown = true;
                return;
            }
            '0'..='7' => return self.number(8, 2, escaped.to_digit(8).unwrap_or(0), build),
            other => {
                build.value.push('\\');
                other
            }
        };
        build.value.push(plain);
    }

    fn number(&mut self, radix: u32, most: usize, first: u32, build: &mut Build) {
        let mut value = first;
        let mut digits = 0;
        while digits < most {
            let next = self.peek().and_then(|it| char::from(it).to_digit(radix));
            let Some(digit) = next else { break };
            value = value.saturating_mul(radix).saturating_add(digit);
            self.at += 1;
            digits += 1;
        }
        // A byte that is no character by itself, or the end of the string.
        let raw_byte = most <= 2 && value > 0x7f;
        match char::from_u32(value) {
            Some(found) if value != 0 && !raw_byte => build.value.push(found),
            _ => build.unknown = true,
        }
    }
}

/// What stands behind a name in `${…}` and evaluates no other name: the operators that are known.
fn is_plain_operator(rest: &str) -> bool {
    // `${#}`, `${@}`, `${#name}`: the parameter itself is not a name.
    let rest = match rest.strip_prefix(['#', '@', '*', '?', '$', '-']) {
        Some(more) if more.is_empty() || rest.starts_with(['@', '*']) => more,
        Some(more) if more.bytes().all(is_name) => return true,
        _ => rest,
    };
    let rest = match rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((inner, more)) => {
            let plain = matches!(inner, "@" | "*") || inner.bytes().all(|it| it.is_ascii_digit());
            if inner.is_empty() || !plain {
                return false;
            }
            more
        }
        None => rest,
    };
    let Some(operator) = rest.chars().next() else {
        return true;
    };
    match operator {
        '-' | '=' | '?' | '+' | '#' | '%' | '/' | '^' | ',' => true,
        ':' => {
            let numbers = |it: char| it.is_ascii_digit() || matches!(it, ' ' | ':' | '-');
            let more = rest.get(1..).unwrap_or_default();
            more.starts_with(['-', '=', '?', '+']) || more.chars().all(numbers)
        }
        '@' => matches!(
            rest,
            "@Q" | "@E" | "@U" | "@u" | "@L" | "@A" | "@K" | "@a" | "@k"
        ),
        _ => false,
    }
}

pub(super) fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

#[derive(Clone, Copy)]
enum Brace {
    None,
    Open(bool, bool),
    Closed,
}

impl Brace {
    /// Open: whether the last was a dot, and whether a comma or two dots were seen.
    fn step(self, next: char) -> Self {
        match (self, next) {
            (Self::Closed, _) => Self::Closed,
            (Self::None, '{') => Self::Open(false, false),
            (Self::None, _) => Self::None,
            (Self::Open(_, true), '}') => Self::Closed,
            (Self::Open(_, _), ',') | (Self::Open(true, _), '.') => Self::Open(false, true),
            (Self::Open(_, seen), '.') => Self::Open(true, seen),
            (Self::Open(_, seen), _) => Self::Open(false, seen),
        }
    }
}

/// `a{b,c}d` without anything else.
fn braces(raw: &str) -> Option<Vec<String>> {
    let special = |it: char| "\\'\"`$*?[]~\n".contains(it);
    let (before, rest) = raw.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    if raw.contains(special)
        || inner.contains('{')
        || after.contains(['{', '}'])
        || inner.contains("..")
    {
        return None;
    }
    let parts: Vec<&str> = inner.split(',').collect();
    let few = parts.len() > 1 && parts.len() <= BRACE_WORDS;
    let whole = |it: &str| format!("{before}{it}{after}");
    // An empty unquoted word is no word.
    let words = parts.iter().map(|it| whole(it)).filter(|it| !it.is_empty());
    few.then(|| words.collect())
}
