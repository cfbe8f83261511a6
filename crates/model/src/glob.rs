//! Globs: `?` is one character, `*` any number of them, `**` any number across separators. There
//! are no other special characters. Matching walks a set of states, so that its time is bounded by
//! the length of the glob times the length of the text, whatever both hold.

/// What one step of a glob takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    One(char),
    /// Any character but the separator.
    Within,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Literal(char),
    /// `?`
    Single,
    /// `*`
    Star,
    /// `**`
    Deep,
    /// `**/` after a separator begins: it means nothing, or whatever ends with a separator.
    Folders,
    /// It means something, and goes on up to a separator. Follows the one above.
    Inside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    tokens: Vec<Token>,
    separator: Option<char>,
    text: String,
}

impl Glob {
    /// Of the text of one that people write.
    pub const BYTES_MAX: usize = 256;

    /// Without a separator, `*` and `**` are the same.
    pub fn new(text: &str, separator: Option<char>) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut tokens = Vec::with_capacity(chars.len());
        let mut at = 0;
        while let Some(char) = chars.get(at) {
            let starts_segment = at == 0 || chars.get(at - 1).copied() == separator;
            let token = match char {
                '*' if chars.get(at + 1) == Some(&'*') => {
                    at += 1;
                    if separator.is_some()
                        && starts_segment
                        && chars.get(at + 1).copied() == separator
                    {
                        at += 1;
                        Token::Folders
                    } else {
                        Token::Deep
                    }
                }
                '*' if separator.is_none() => Token::Deep,
                '*' => Token::Star,
                '?' => Token::Single,
                other => Token::Literal(*other),
            };
            tokens.push(token);
            if token == Token::Folders {
                tokens.push(Token::Inside);
            }
            at += 1;
        }
        Self {
            tokens,
            separator,
            text: text.to_owned(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The one text that it matches, if there is no more than one.
    pub fn literal(&self) -> Option<&str> {
        let fixed = |token: &Token| matches!(token, Token::Literal(_));
        self.tokens.iter().all(fixed).then_some(self.text.as_str())
    }

    pub fn matches(&self, text: &str) -> bool {
        self.matches_chars(text.chars())
    }

    fn matches_chars(&self, mut rest: impl Iterator<Item = char>) -> bool {
        let fixed = self
            .tokens
            .iter()
            .take_while(|it| matches!(it, Token::Literal(_)))
            .count();
        // Most texts differ from most globs in their first characters.
        for token in &self.tokens[..fixed] {
            match (token, rest.next()) {
                (Token::Literal(wanted), Some(found)) if *wanted == found => {}
                _ => return false,
            }
        }
        let tokens = &self.tokens[fixed..];
        if tokens.is_empty() {
            return rest.next().is_none();
        }
        let mut now = vec![false; tokens.len() + 1];
        let mut next = vec![false; tokens.len() + 1];
        enter(tokens, 0, &mut now);
        for char in rest {
            next.fill(false);
            let mut alive = false;
            for (state, _) in now.iter().enumerate().filter(|(_, on)| **on) {
                for (class, to) in self.steps(tokens, state).into_iter().flatten() {
                    if self.takes(class, char) {
                        enter(tokens, to, &mut next);
                        alive = true;
                    }
                }
            }
            if !alive {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now[tokens.len()]
    }

    /// Whether some text matches both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (rows, columns) = (self.tokens.len() + 1, other.tokens.len() + 1);
        let mut seen = vec![false; rows * columns];
        let mut open = vec![(0, 0)];
        while let Some((mine, theirs)) = open.pop() {
            if std::mem::replace(&mut seen[mine * columns + theirs], true) {
                continue;
            }
            if mine + 1 == rows && theirs + 1 == columns {
                return true;
            }
            for to in skips(&self.tokens, mine).into_iter().flatten() {
                open.push((to, theirs));
            }
            for to in skips(&other.tokens, theirs).into_iter().flatten() {
                open.push((mine, to));
            }
            for (class, to) in self.steps(&self.tokens, mine).into_iter().flatten() {
                for (class_b, to_b) in other.steps(&other.tokens, theirs).into_iter().flatten() {
                    if self.meet(class, class_b) {
                        open.push((to, to_b));
                    }
                }
            }
        }
        false
    }

    /// What can be taken in a state, and where it leads.
    fn steps(&self, tokens: &[Token], state: usize) -> [Option<(Class, usize)>; 2] {
        match tokens.get(state) {
            None => [None, None],
            Some(Token::Literal(char)) => [Some((Class::One(*char), state + 1)), None],
            Some(Token::Single) => [Some((Class::Within, state + 1)), None],
            Some(Token::Star) => [Some((Class::Within, state)), None],
            Some(Token::Deep) => [Some((Class::Any, state)), None],
            Some(Token::Folders) => [None, None],
            Some(Token::Inside) => [
                Some((Class::Any, state)),
                self.separator.map(|it| (Class::One(it), state + 1)),
            ],
        }
    }

    fn takes(&self, class: Class, char: char) -> bool {
        match class {
            Class::One(wanted) => wanted == char,
            Class::Within => Some(char) != self.separator,
            Class::Any => true,
        }
    }

    fn meet(&self, a: Class, b: Class) -> bool {
        match (a, b) {
            (Class::One(char), class) | (class, Class::One(char)) => self.takes(class, char),
            (Class::Within | Class::Any, Class::Within | Class::Any) => true,
        }
    }
}

/// A glob for texts that need not be UTF-8, such as paths: `?` is one byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteGlob(Glob);

impl ByteGlob {
    pub fn new(text: &str, separator: Option<char>) -> Self {
        let bytes: String = text.bytes().map(char::from).collect();
        Self(Glob::new(&bytes, separator))
    }

    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.matches_chars(text.iter().copied().map(char::from))
    }
}

/// Where a state leads without taking a character.
fn skips(tokens: &[Token], state: usize) -> [Option<usize>; 2] {
    match tokens.get(state) {
        Some(Token::Star | Token::Deep) => [Some(state + 1), None],
        Some(Token::Folders) => [Some(state + 1), Some(state + 2)],
        Some(Token::Literal(_) | Token::Single | Token::Inside) | None => [None, None],
    }
}

/// Turns a state on, with all that it reaches without taking a character.
fn enter(tokens: &[Token], state: usize, on: &mut [bool]) {
    // Every way leads forward, so that each state is looked at once at most.
    if std::mem::replace(&mut on[state], true) {
        return;
    }
    for to in skips(tokens, state).into_iter().flatten() {
        enter(tokens, to, on);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> Glob {
        Glob::new(text, Some('/'))
    }

    #[test]
    fn a_star_stays_within_its_segment() {
        for (glob, text, expected) in [
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/*", "/a/", true),
            ("/a/**", "/a/b/c", true),
            ("/a/**/c", "/a/c", true),
            ("/a/**/c", "/a/b/b/c", true),
            ("/a/**/c", "/a/bc", false),
            ("**/c", "c", true),
            ("**/c", "/x/c", true),
            ("/a?c", "/abc", true),
            ("/a?c", "/a/c", false),
            ("/a*c*e", "/abcde", true),
            ("/a*c*e", "/ab/de", false),
            ("/[a]", "/a", false),
            ("/[a]", "/[a]", true),
            ("/é*", "/éa", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(path(glob).matches(text), expected, "{glob} {text}");
        }
        assert!(Glob::new("a*b", None).matches("a/x/b"));
        assert!(path("/?").matches("/é"));
    }

    #[test]
    fn bytes_that_are_no_text_are_matched_one_by_one() {
        let glob = |text| ByteGlob::new(text, Some('/'));
        assert!(glob("a/*").matches(b"a/\xff"));
        assert!(glob("é/?").matches("é/x".as_bytes()));
        assert!(!glob("?").matches("é".as_bytes()));
        assert!(glob("??").matches("é".as_bytes()));
        assert!(!glob("a/*").matches(b"a/\xff/b"));
    }

    #[test]
    fn overlaps_are_found_without_trying_texts() {
        for (a, b, expected) in [
            ("/w/*.py", "/w/a*", true),
            ("/w/*.py", "/w/*.rs", false),
            ("/w/*", "/w/.git/**", false),
            ("/w/**", "/w/.git/config", true),
            ("**/.ssh/id", "/home/**", true),
            ("/a/?", "/a/b", true),
            ("/a/?", "/a/bc", false),
        ] {
            assert_eq!(path(a).overlaps(&path(b)), expected, "{a} {b}");
            assert_eq!(path(b).overlaps(&path(a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn many_stars_take_no_more_than_their_product() {
        let glob = path(&"*a".repeat(120));
        let text = "a".repeat(4000) + "b";
        assert!(!glob.matches(&text));
        assert!(glob.overlaps(&path(&"*a".repeat(120))));
    }

    proptest! {
        #[test]
        fn a_text_is_matched_by_the_glob_that_spells_it(text in "[a-c/.]{0,12}") {
            prop_assert!(path(&text).matches(&text));
            prop_assert!(path("**").matches(&text));
        }

        #[test]
        fn matching_a_text_is_overlapping_with_it(
            glob in "[ab/*?]{0,8}", text in "[ab/]{0,8}",
        ) {
            prop_assert_eq!(path(&glob).matches(&text), path(&glob).overlaps(&path(&text)));
        }
    }
}
