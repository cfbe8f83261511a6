//! What the shell reader found, with what only the signals need to know besides.

use crate::command::{Blind, Command, Files, Position, Reading, Unclear};

/// More is not looked at.
pub(crate) const SOURCE_BYTES: usize = 256 * 1024;
pub(crate) const DEPTH: usize = 64;
pub(crate) const COMMANDS: usize = 4096;
const BLIND: usize = 4096;
/// What is shown of a command.
const EXCERPT: usize = 200;

/// In which text a position counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Program,
    /// A script or code given as an argument of the vector; the command itself is argument 0.
    Argument(usize),
}

/// Where the standard input of a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feed {
    Inherited,
    /// From the commands of the outline from the first index up to the second.
    Pipe(usize, usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) command: Command,
    pub(crate) origin: Origin,
    pub(crate) feed: Feed,
    /// The program comes from standard input, not from an argument.
    pub(crate) fed_script: bool,
    /// The program that it runs is in the outline, and is looked at there.
    pub(crate) inline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tongue {
    Python,
    Javascript,
    /// A language that is not analysed.
    Other,
}

/// A program inside a word.
#[derive(Debug, Clone)]
pub(crate) struct Inline {
    pub(crate) tongue: Tongue,
    /// None: only known when it runs.
    pub(crate) code: Option<String>,
    pub(crate) at: Position,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone)]
pub(crate) struct Dark {
    pub(crate) blind: Blind,
    pub(crate) origin: Origin,
}

#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) commands: Vec<Found>,
    pub(crate) dark: Vec<Dark>,
    pub(crate) inline: Vec<Inline>,
    pub(crate) files: Vec<Files>,
    full: bool,
}

impl Outline {
    /// False: there are too many, nothing more is read.
    pub(crate) fn push(&mut self, found: Found) -> bool {
        if self.commands.len() >= COMMANDS {
            self.overflow(found.command.at, found.origin);
            return false;
        }
        self.commands.push(found);
        true
    }

    pub(crate) fn overflow(&mut self, at: Position, origin: Origin) {
        if !self.full {
            self.full = true;
            let blind = Blind {
                why: Unclear::TooLarge,
                hides: true,
                source: String::new(),
                at,
            };
            self.dark.push(Dark { blind, origin });
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn blind(&mut self, why: Unclear, source: &str, at: Position, origin: Origin) {
        let hides = !matches!(why, Unclear::Substitution | Unclear::Interpreter);
        self.darken(why, hides, source, at, origin);
    }

    pub(crate) fn darken(
        &mut self,
        why: Unclear,
        hides: bool,
        source: &str,
        at: Position,
        origin: Origin,
    ) {
        if self.dark.len() >= BLIND {
            return self.overflow(at, origin);
        }
        let same = |it: &Dark| it.blind.why == why && it.blind.at == at && it.origin == origin;
        let near = self.dark.len().saturating_sub(8);
        let mut known = self.dark.iter_mut().skip(near);
        if let Some(known) = known.find(|it| same(it)) {
            known.blind.hides |= hides;
            return;
        }
        let source = excerpt(source);
        self.dark.push(Dark {
            blind: Blind {
                why,
                hides,
                source,
                at,
            },
            origin,
        });
    }

    pub(crate) fn into_reading(self) -> Reading {
        Reading {
            commands: self.commands.into_iter().map(|it| it.command).collect(),
            blind: self.dark.into_iter().map(|it| it.blind).collect(),
            files: self.files,
        }
    }
}

pub(crate) fn excerpt(source: &str) -> String {
    let source = source.trim();
    if source.len() <= EXCERPT {
        return source.to_owned();
    }
    let kept = source.get(..source.floor_char_boundary(EXCERPT));
    format!("{}…", kept.unwrap_or_default())
}
