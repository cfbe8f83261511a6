//! Lists, pipelines, compound commands, simple commands.

use crate::command::{Redirect, Unclear, Word};
use crate::environment::{assigned, changes_meaning};
use crate::outline::{Feed, excerpt};
use crate::resolve::{Simple, resolve};

use super::redirect::Redirects;
use super::word::is_name;
use super::{Outcome, Reader, Stop, Text};

const CLOSERS: [&str; 10] = [
    "then", "else", "elif", "fi", "do", "done", "esac", "}", ")", ";;",
];

impl Reader<'_, '_> {
    /// Up to one of the closers, which is left standing, or to the end of the script.
    pub(super) fn list(&mut self, until: &[&str]) -> Outcome<()> {
        loop {
            self.lines()?;
            if self.outline.is_full() {
                return Err(Stop::TooLarge);
            }
            let Some(byte) = self.peek() else {
                return if until.is_empty() {
                    Ok(())
                } else {
                    Err(Stop::Syntax)
                };
            };
            let closes = match byte {
                b')' => Some(")"),
                b';' => Some(";;"),
                _ => CLOSERS.iter().find(|it| self.reserved(it)).copied(),
            };
            if let Some(closer) = closes {
                return if until.contains(&closer) {
                    Ok(())
                } else {
                    Err(Stop::Syntax)
                };
            }
            self.pipeline()?;
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b')' | b'#') => {}
                Some(b';') if matches!(self.ahead(1), Some(b';' | b'&')) => {}
                Some(b';') => self.at += 1,
                Some(b'&') => {
                    self.at += 1;
                    self.eat("&");
                }
                Some(b'|') if self.ahead(1) == Some(b'|') => self.at += 2,
                // Only a compound command leaves a word behind.
                Some(_) => return Err(Stop::Syntax),
            }
        }
    }

    /// Spaces and lines that go on.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.ahead(1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Spaces, comments and line breaks.
    pub(super) fn lines(&mut self) -> Outcome<()> {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'#') => self.comment(),
                Some(b'\n') => self.newline()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// A word of the language stands here, unquoted and whole.
    fn reserved(&self, word: &str) -> bool {
        self.starts(word)
            && self
                .ahead(word.len())
                .is_none_or(|it| b" \t\n;&|<>()".contains(&it))
    }

    fn eat_reserved(&mut self, word: &str) -> bool {
        let found = self.reserved(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn need(&mut self, word: &str) -> Outcome<()> {
        self.lines()?;
        if self.eat_reserved(word) {
            Ok(())
        } else {
            Err(Stop::Syntax)
        }
    }

    fn pipeline(&mut self) -> Outcome<()> {
        loop {
            self.blanks();
            if self.eat_reserved("time") {
                self.blanks();
                if self.eat_reserved("-p") {
                    self.blanks();
                }
                self.eat_reserved("--");
            } else if !self.eat_reserved("!") {
                break;
            }
        }
        let outer = self.place.feed;
        let result = self.piped();
        self.place.feed = outer;
        result
    }

    fn piped(&mut self) -> Outcome<()> {
        let mut from = self.outline.commands.len();
        loop {
            self.command()?;
            self.blanks();
            if self.peek() != Some(b'|') || self.ahead(1) == Some(b'|') {
                return Ok(());
            }
            self.at += 1;
            self.eat("&");
            let to = self.outline.commands.len();
            self.place.feed = Feed::Pipe(from, to);
            from = to;
            self.lines()?;
        }
    }

    fn command(&mut self) -> Outcome<()> {
        self.blanks();
        let from = self.outline.commands.len();
        let begins = self.at;
        if !self.compound()? {
            return self.simple();
        }
        let mut redirects = Redirects::default();
        loop {
            self.blanks();
            if !self.redirect(&mut redirects)? {
                break;
            }
        }
        self.attach(redirects.files, from, begins)
    }

    /// Redirections of a compound command belong to the first command inside it.
    fn attach(&mut self, files: Vec<Redirect>, from: usize, begins: usize) -> Outcome<()> {
        if files.is_empty() {
            return Ok(());
        }
        if let Some(first) = self.outline.commands.get_mut(from) {
            first.command.redirects.extend(files);
            return Ok(());
        }
        self.emit(Vec::new(), files, None, begins)
    }

    fn compound(&mut self) -> Outcome<bool> {
        if self.peek() == Some(b'(') {
            if self.ahead(1) == Some(b'(')
                && let Some(ends) = self.arithmetic_end(self.at + 2)
            {
                let begins = self.at;
                self.at += 2;
                self.nested(|it| it.arithmetic(ends))?;
                self.expect("))")?;
                self.dialect(begins);
                return Ok(true);
            }
            self.at += 1;
            self.block(&[")"])?;
            self.expect(")")?;
            return Ok(true);
        }
        if self.eat_reserved("{") {
            self.block(&["}"])?;
            self.expect("}")?;
        } else if self.eat_reserved("if") {
            self.branches()?;
        } else if self.eat_reserved("while") || self.eat_reserved("until") {
            self.block(&["do"])?;
            self.body_of_loop()?;
        } else if self.eat_reserved("for") || self.eat_reserved("select") {
            self.counted()?;
        } else if self.eat_reserved("case") {
            self.nested(Self::case)?;
        } else if self.eat_reserved("[[") {
            self.nested(Self::condition)?;
        } else if self.eat_reserved("function") {
            self.blanks();
            let begins = self.at;
            self.word()?.ok_or(Stop::Syntax)?;
            self.blanks();
            if self.eat("(") {
                self.blanks();
                self.expect(")")?;
            }
            self.definition(begins)?;
        } else if self.eat_reserved("coproc") {
            self.coprocess()?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn block(&mut self, until: &[&str]) -> Outcome<()> {
        self.nested(|it| it.list(until))
    }

    fn branches(&mut self) -> Outcome<()> {
        self.block(&["then"])?;
        self.need("then")?;
        loop {
            self.block(&["elif", "else", "fi"])?;
            if self.eat_reserved("elif") {
                self.block(&["then"])?;
                self.need("then")?;
            } else if self.eat_reserved("fi") {
                return Ok(());
            } else {
                self.need("else")?;
            }
        }
    }

    fn body_of_loop(&mut self) -> Outcome<()> {
        self.need("do")?;
        self.block(&["done"])?;
        self.need("done")
    }

    fn counted(&mut self) -> Outcome<()> {
        self.blanks();
        if self.starts("((") {
            let ends = self.arithmetic_end(self.at + 2).ok_or(Stop::Syntax)?;
            self.at += 2;
            self.nested(|it| it.arithmetic(ends))?;
            self.expect("))")?;
        } else {
            let begins = self.at;
            let name = self.word()?.ok_or(Stop::Syntax)?;
            if changes_meaning(name.shown()) {
                self.blind(Unclear::Environment, begins, self.at);
            }
            self.lines()?;
            if self.eat_reserved("in") {
                loop {
                    self.blanks();
                    if !self.words(&mut Vec::new())? {
                        break;
                    }
                }
            }
        }
        self.blanks();
        if self.peek() == Some(b';') && self.ahead(1) != Some(b';') {
            self.at += 1;
        }
        self.lines()?;
        if self.eat_reserved("{") {
            self.block(&["}"])?;
            return self.expect("}");
        }
        self.body_of_loop()
    }

    fn case(&mut self) -> Outcome<()> {
        self.blanks();
        self.word()?.ok_or(Stop::Syntax)?;
        self.need("in")?;
        loop {
            self.lines()?;
            if self.eat_reserved("esac") {
                return Ok(());
            }
            self.eat("(");
            loop {
                self.blanks();
                self.word()?.ok_or(Stop::Syntax)?;
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.expect(")")?;
            self.list(&[";;", "esac"])?;
            let _ = self.eat(";;&") || self.eat(";;") || self.eat(";&");
        }
    }

    fn condition(&mut self) -> Outcome<()> {
        let begins = self.at;
        let pattern = std::mem::replace(&mut self.pattern, true);
        let mut evaluates = false;
        let result = loop {
            if let Err(stop) = self.lines_in_condition() {
                break Err(stop);
            }
            if self.eat_reserved("]]") {
                break Ok(());
            }
            match self.peek() {
                None | Some(b';') => break Err(Stop::Syntax),
                Some(b'(' | b')' | b'|' | b'&') => self.at += 1,
                Some(b'<' | b'>') if self.ahead(1) != Some(b'(') => self.at += 1,
                Some(_) => match self.word() {
                    Ok(Some(text)) => {
                        evaluates |= matches!(
                            text.shown(),
                            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R"
                        );
                    }
                    Ok(None) => self.at += 1,
                    Err(stop) => break Err(stop),
                },
            }
        };
        self.pattern = pattern;
        result?;
        if evaluates {
            self.blind(Unclear::Evaluation, begins, self.at);
        }
        let inner = self.slice(begins, self.at);
        if inner.contains('#') {
            self.blind(Unclear::Syntax, begins, self.at);
        } else if inner.contains(['|', '&', ';', '<', '>', '(', ')', '\n']) {
            self.dialect(begins);
        }
        Ok(())
    }

    fn lines_in_condition(&mut self) -> Outcome<()> {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline()?,
                _ => return Ok(()),
            }
        }
    }

    /// Its name becomes a variable, and to other shells the word is a program.
    fn coprocess(&mut self) -> Outcome<()> {
        self.blanks();
        let begins = self.at;
        self.dialect(begins);
        let mut end = self.at;
        while self.bytes.get(end).copied().is_some_and(is_name) {
            end += 1;
        }
        // A name is only a name before a compound command.
        if end > begins && matches!(self.bytes.get(end), Some(b' ' | b'\t')) {
            self.at = end;
            self.blanks();
            let named = ["{", "if", "while", "until", "for", "case", "select", "[["]
                .iter()
                .any(|it| self.reserved(it));
            if !named && self.peek() != Some(b'(') {
                self.at = begins;
            } else if changes_meaning(self.slice(begins, end)) {
                self.blind(Unclear::Environment, begins, end);
            }
        }
        self.nested(Self::command)
    }

    fn definition(&mut self, begins: usize) -> Outcome<()> {
        self.blind(Unclear::Definition, begins, self.at);
        self.lines()?;
        self.nested(|it| {
            if it.compound()? {
                Ok(())
            } else {
                Err(Stop::Syntax)
            }
        })
    }

    fn simple(&mut self) -> Outcome<()> {
        let begins = self.at;
        let mut words: Vec<Text> = Vec::new();
        let mut redirects = Redirects::default();
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'#') => {
                    self.comment();
                    break;
                }
                Some(b'&') if self.ahead(1) != Some(b'>') => break,
                Some(b'(') => return self.bracket(&words, begins),
                Some(_) => {}
            }
            if self.redirect(&mut redirects)? {
                continue;
            }
            if words.is_empty() && self.assignment()? {
                continue;
            }
            let (from, first) = (self.at, words.is_empty());
            if !self.words(&mut words)? {
                return Err(Stop::Syntax);
            }
            // A subscript behind a name that goes on in the next line is read by other rules.
            let raw = self.slice(from, self.at);
            if first && raw.contains("\\\n") && raw.contains('[') {
                return Err(Stop::Syntax);
            }
            if self.peek() == Some(b'(') && self.declares(&words) {
                self.array()?;
            }
        }
        if words.is_empty() && redirects.files.is_empty() {
            return Ok(());
        }
        self.emit(words, redirects.files, redirects.here_string, begins)
    }

    /// `name ()`, or what nobody expects.
    fn bracket(&mut self, words: &[Text], begins: usize) -> Outcome<()> {
        self.at += 1;
        self.blanks();
        if words.len() != 1 || !self.eat(")") {
            return Err(Stop::Syntax);
        }
        self.definition(begins)
    }

    fn declares(&self, words: &[Text]) -> bool {
        const DECLARING: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];
        let first = words.first().and_then(Text::known);
        first.is_some_and(|it| DECLARING.contains(&it))
            && words.last().is_some_and(|it| it.shown().ends_with('='))
    }

    /// `NAME=value`, `NAME+=value`, `NAME[…]=value`, `NAME=(…)`.
    fn assignment(&mut self) -> Outcome<bool> {
        let begins = self.at;
        let mut at = begins;
        while self.bytes.get(at).copied().is_some_and(is_name) {
            at += 1;
        }
        if at == begins || self.bytes.get(begins).is_some_and(u8::is_ascii_digit) {
            return Ok(false);
        }
        let name_ends = at;
        let mut subscript = None;
        if self.bytes.get(at) == Some(&b'[') {
            let rest = self.slice(at + 1, self.text.floor_char_boundary(at + 257));
            let inner = rest.find(']').and_then(|it| rest.get(..it));
            // The shell reads on to the bracket, over anything; which one it is depends on what
            // is quoted.
            let inner = inner
                .filter(|it| !it.contains(['[', '\'', '"', '\\', ' ', '\t', '\n', ';', '&', '|']))
                .ok_or(Stop::Syntax)?;
            let close = at + 1 + inner.len();
            subscript = Some((at + 1, close));
            at = close + 1;
        }
        if self.bytes.get(at) == Some(&b'+') {
            at += 1;
        }
        if self.bytes.get(at) != Some(&b'=') {
            return Ok(false);
        }
        // To other shells this is the name of a program.
        let is_of_bash = at > name_ends;
        if let Some((from, to)) = subscript {
            self.at = from;
            self.nested(|it| it.arithmetic(to))?;
        }
        self.at = at + 1;
        if self.peek() == Some(b'(') {
            self.array()?;
        } else {
            self.word()?;
        }
        if is_of_bash {
            self.dialect(begins);
        }
        if changes_meaning(self.slice(begins, name_ends)) {
            self.blind(Unclear::Environment, begins, self.at);
        }
        Ok(true)
    }

    fn array(&mut self) -> Outcome<()> {
        self.at += 1;
        self.nested(|it| {
            loop {
                it.lines()?;
                if it.eat(")") {
                    return Ok(());
                }
                let begins = it.at;
                if it.peek() == Some(b'[') {
                    // Subscripts are arithmetic.
                    it.blind(Unclear::Evaluation, begins, begins + 1);
                }
                if !it.words(&mut Vec::new())? {
                    return Err(Stop::Syntax);
                }
            }
        })
    }

    fn emit(
        &mut self,
        mut words: Vec<Text>,
        redirects: Vec<Redirect>,
        here_string: Option<String>,
        begins: usize,
    ) -> Outcome<()> {
        let at = self.position(begins);
        let source = excerpt(self.slice(begins, self.at.min(self.bytes.len())));
        if words.is_empty() {
            // Only files are opened: as the command that does nothing.
            words.push(Text {
                word: Word::Known(":".to_owned()),
                at,
                argument: None,
            });
        }
        let first = words.first().and_then(Text::known);
        if first.is_some_and(|it| assigned(it).is_some()) {
            self.blind(Unclear::Name, begins, self.at);
        }
        let simple = Simple {
            words,
            redirects,
            here_string,
            source,
            at,
            place: self.place.clone(),
        };
        resolve(simple, self.outline);
        if self.outline.is_full() {
            Err(Stop::TooLarge)
        } else {
            Ok(())
        }
    }
}
