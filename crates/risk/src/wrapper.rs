//! Programs that only run another one: where its name stands behind their options.

use crate::environment::{assigned, changes_meaning};
use crate::shell::Text;
use crate::wrapper_table::ALL;

#[derive(Debug)]
pub(crate) struct Wrapper {
    pub(crate) names: &'static [&'static str],
    /// Short options without and with a value.
    pub(crate) flags: &'static str,
    pub(crate) values: &'static str,
    pub(crate) long: &'static [&'static str],
    pub(crate) long_values: &'static [&'static str],
    /// Operands before the command.
    pub(crate) operands: usize,
    pub(crate) assignments: bool,
    /// Where its command begins is not told by its options.
    pub(crate) vague: bool,
}

/// How the command behind a wrapper is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// It begins at this word.
    Command(usize),
    /// There is none: the wrapper does something of its own.
    Nothing,
    /// It begins at this word or at a later one: an option is not known, or there is a choice.
    Unsure(usize),
}

#[derive(Debug)]
pub(crate) struct Stripped {
    pub(crate) behind: Behind,
    /// A variable is set that changes what names mean.
    pub(crate) environment: bool,
}

pub(crate) fn named(base: &str) -> Option<&'static Wrapper> {
    let loader = base.starts_with("ld-linux")
        || base.starts_with("ld-musl")
        || (base.starts_with("ld") && base.contains(".so"));
    let base = if loader { "ld.so" } else { base };
    ALL.iter().find(|it| it.names.contains(&base))
}

impl Wrapper {
    pub(crate) fn strip(&self, words: &[Text]) -> Stripped {
        let mut environment = false;
        let mut operands = self.operands;
        let mut options = true;
        let mut at = 1;
        let unsure = |at: usize, environment| Stripped {
            behind: Behind::Unsure(at),
            environment,
        };
        if self.vague && words.len() > 1 {
            return unsure(1, false);
        }
        while let Some(text) = words.get(at) {
            let Some(word) = text.known() else {
                if operands > 0 && !options {
                    operands -= 1;
                    at += 1;
                    continue;
                }
                // It may be an option, the command, or several words.
                return unsure(at, environment);
            };
            if options && word == "--" {
                options = false;
                at += 1;
            } else if options && word.len() > 1 && word.starts_with('-') {
                let Some(taken) = self.option(word) else {
                    return unsure(at + 1, environment);
                };
                // A value that is not known may be several words, the command among them.
                let values = words.get(at + 1..at + taken).unwrap_or_default();
                if values.iter().any(|it| it.known().is_none()) {
                    return unsure(at + 1, environment);
                }
                at += taken;
            } else if options && word == "-" && self.names == ["env"] {
                at += 1;
            } else if self.assignments && word.contains('=') {
                environment |= assigned(word).is_none_or(changes_meaning);
                options = false;
                at += 1;
            } else if operands > 0 {
                options = false;
                operands -= 1;
                at += 1;
            } else {
                return Stripped {
                    behind: Behind::Command(at),
                    environment,
                };
            }
        }
        Stripped {
            behind: Behind::Nothing,
            environment,
        }
    }

    /// Whether these options start the command in another directory or under another root.
    pub(crate) fn moves(&self, options: &[Text]) -> bool {
        let letters: &[char] = match self.names.first() {
            Some(&("chroot" | "nsenter" | "systemd-run" | "proot" | "run0")) => return true,
            Some(&"env") => &['C'],
            Some(&"sudo") => &['D', 'R'],
            Some(&"unshare") => &['R', 'w'],
            _ => return false,
        };
        let long = ["--chdir", "--chroot", "--root", "--wd"];
        options.iter().map(Text::shown).any(|it| {
            let short = it.starts_with('-') && !it.starts_with("--") && it.contains(letters);
            short || long.iter().any(|name| it.starts_with(name))
        })
    }

    /// How many words the option takes; none if it is not known.
    fn option(&self, word: &str) -> Option<usize> {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if self.long.contains(&name) {
                return Some(1);
            }
            let valued = self.long_values.contains(&name);
            return valued.then_some(if value.is_some() { 1 } else { 2 });
        }
        let letters = word.strip_prefix('-')?;
        // `nice -10`.
        if self.names == ["nice"] && letters.bytes().all(|it| it.is_ascii_digit()) {
            return Some(1);
        }
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let attached = at + letter.len_utf8() < letters.len();
                return Some(if attached { 1 } else { 2 });
            }
            // Their value is optional, and only attached.
            if self.names.first() == Some(&"xargs") && "ile".contains(letter) {
                return Some(1);
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}
