//! Rules: what the operator allows, wants to be asked about, or denies.

pub(crate) mod command;
pub(crate) mod condition;
pub(crate) mod facts;
mod host;
mod index;
mod inner;
mod mention;
pub(crate) mod path;
mod verdict;
mod walk;

use std::sync::Arc;

use glovebox_model::{BackendName, Glob, HostPattern, NetworkMode, Permit, RuleRef, Tier};

use command::CommandGlob;
use condition::Condition;
use facts::{Facts, Segment, WORK};
use path::{PathFact, PathGlob, clean};

pub(crate) use index::RuleSet;
pub use inner::Scripts;
pub(crate) use verdict::{Hit, Verdict, concerns, judge};

use crate::tool::ToolGlob;

/// More than anybody writes; a generated file stays within it as well.
pub(crate) const RULES_MAX: usize = 10_000;
pub(crate) const GLOBS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) permit: Permit,
    pub(crate) matchers: Matchers,
    pub(crate) because: Option<String>,
    pub(crate) at: RuleRef,
}

impl Rule {
    pub(crate) fn denies_paths(&self) -> bool {
        self.permit == Permit::Deny && !self.matchers.path.is_empty()
    }

    /// It denies its paths to every program. With a command or a host beside them it denies a
    /// command, which only its text tells.
    pub(crate) fn is_held(&self) -> bool {
        self.denies_paths() && self.matchers.command.is_empty() && self.matchers.host.is_empty()
    }
}

/// An empty list has no opinion. All that have one must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Matchers {
    pub(crate) tool: Vec<ToolGlob>,
    pub(crate) command: Vec<CommandGlob>,
    pub(crate) path: Vec<PathGlob>,
    pub(crate) host: Vec<HostPattern>,
    pub(crate) backend: Vec<BackendName>,
    pub(crate) network: Vec<NetworkMode>,
    pub(crate) secret: Vec<Glob>,
    pub(crate) tier: Option<Tier>,
    pub(crate) when: Option<Condition>,
}

/// What came of trying an example on a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) matcher: &'static str,
    pub(crate) matched: bool,
}

impl Matchers {
    /// Tries one text on the matcher that texts are about. A command is read as a script.
    pub(crate) fn try_on(&self, permit: Permit, text: &str) -> Option<Example> {
        let guards = permit > Permit::Allow;
        let (matcher, matched) = if !self.command.is_empty() {
            let facts = Facts::of_script(text);
            let one = |it: &Segment| match guards {
                true => self.command.iter().any(|glob| glob.touches(it)),
                false => self.command.iter().any(|glob| glob.covers(it)),
            };
            let matched = match guards {
                true => facts.segments.iter().any(one),
                false => {
                    let plain = facts.segments.iter().all(Segment::is_plainly_run);
                    facts.veil.is_none()
                        && plain
                        && !facts.told.is_empty()
                        && facts.told.iter().all(one)
                }
            };
            ("command", matched)
        } else if !self.path.is_empty() {
            let path = PathFact::Known(clean(text, WORK));
            let one = |glob: &PathGlob| match guards {
                true => glob.touches(&path),
                false => glob.covers(&path),
            };
            ("path", self.path.iter().any(one))
        } else if !self.host.is_empty() {
            let host = HostPattern::of_destination(text).ok()?;
            let one = |glob: &HostPattern| match guards {
                true => glob.overlaps(&host),
                false => glob.covers(&host),
            };
            ("host", self.host.iter().any(one))
        } else if !self.tool.is_empty() {
            ("tool", self.tool.iter().any(|glob| glob.matches(text)))
        } else if !self.secret.is_empty() {
            ("secret", self.secret.iter().any(|glob| glob.matches(text)))
        } else {
            return None;
        };
        Some(Example { matcher, matched })
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The rules in force for somebody: those of the file's top and of every layer that applies. Their
/// order has no meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    pub(crate) sets: Vec<Arc<RuleSet>>,
}

impl Rules {
    pub fn len(&self) -> usize {
        self.sets.iter().map(|set| set.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
