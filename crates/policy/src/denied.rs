//! The paths that the sandbox itself denies: what rules deny whatever the program is. The text of a
//! command is read to ask early and to explain; this is what holds.

use std::fmt;

use glovebox_model::{BackendName, RuleRef};
use glovebox_risk::read;
use serde::{Deserialize, Serialize};

use crate::assess::Assessed;
use crate::rule::condition::variables;
use crate::rule::facts::{Beside, Facts};
use crate::rule::path::PathGlob;
use crate::rule::{Rule, Rules, concerns};

/// One pattern of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedPath {
    glob: PathGlob,
    name: Option<String>,
    at: RuleRef,
}

impl DeniedPath {
    /// The one path that it names with all below it; `None` where names that appear later match.
    pub fn literal(&self) -> Option<&str> {
        self.glob.literal()
    }

    /// Whether it can match this directory or anything below it.
    pub fn reaches(&self, directory: &str) -> bool {
        self.glob.reaches(directory)
    }

    /// It begins with a wildcard (`**/.env`): it means the files of people, not those of the system.
    pub fn is_anywhere(&self) -> bool {
        self.glob.is_anywhere()
    }

    pub fn rule(&self) -> &RuleRef {
        &self.at
    }
}

/// As refusals name it.
impl fmt::Display for DeniedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, at) = (self.glob.text(), &self.at);
        match &self.name {
            Some(name) => write!(f, "rule `{name}` at {}:{} (`{text}`)", at.file, at.line),
            None => write!(f, "the rule at {}:{} (`{text}`)", at.file, at.line),
        }
    }
}

/// All that hold for one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeniedPaths {
    paths: Vec<DeniedPath>,
}

impl DeniedPaths {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &DeniedPath> {
        self.paths.iter()
    }

    /// Those that can match a directory or anything below it.
    #[must_use]
    pub fn below(&self, directory: &str) -> Self {
        let reach = self
            .iter()
            .filter(|it| it.reaches(directory) || it.holds(directory));
        Self {
            paths: reach.cloned().collect(),
        }
    }

    /// What denies this cleaned absolute path by its own name.
    pub fn named(&self, path: &str) -> Option<&DeniedPath> {
        self.iter().find(|it| it.glob.names(path))
    }

    /// What denies it by its own name or by that of a directory above it.
    pub fn of(&self, path: &str) -> Option<&DeniedPath> {
        self.iter().find(|it| it.holds(path))
    }

    /// Every rule that denies paths to programs, whatever else it names: for what is decided
    /// without the call.
    pub fn of_rules(rules: &Rules) -> Self {
        let mut denied = Self::default();
        for rule in rules.sets.iter().flat_map(|set| set.held()) {
            denied.add(rule);
        }
        denied
    }

    fn add(&mut self, rule: &Rule) {
        for glob in &rule.matchers.path {
            let path = DeniedPath {
                glob: glob.clone(),
                name: rule.name.clone(),
                at: rule.at.clone(),
            };
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
    }
}

impl DeniedPath {
    /// By its own name or by that of a directory above it.
    pub fn holds(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(at, _)| &path[..at.max(1)]);
        above.chain([path]).any(|it| self.glob.names(it))
    }
}

/// What holds for this call, by every name that its tool has.
pub fn denied_paths(
    assessed: &Assessed,
    rules: &Rules,
    tools: &[&str],
    backend: Option<BackendName>,
) -> DeniedPaths {
    let mut denied = DeniedPaths::default();
    if rules.sets.iter().all(|set| set.held().next().is_none()) {
        return denied;
    }
    let reading = read(&assessed.call().program);
    for tool in tools {
        let beside = Beside {
            tool,
            backend,
            scripts: None,
        };
        let facts = Facts::of(assessed, &reading, beside);
        let mut context = None;
        for rule in rules.sets.iter().flat_map(|set| set.held()) {
            let mut secrets = facts.secrets.iter();
            let wanted = &rule.matchers.secret;
            let has_secret = wanted.is_empty()
                || secrets.any(|name| wanted.iter().any(|glob| glob.matches(name)));
            let when = rule.matchers.when.as_ref();
            // What cannot be evaluated forbids.
            if has_secret
                && concerns(rule, &facts)
                && when.is_none_or(|it| {
                    let context = context.get_or_insert_with(|| variables(&facts));
                    it.holds(context).unwrap_or(true)
                })
            {
                denied.add(rule);
            }
        }
    }
    denied
}

/// Who denies the paths of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// Whatever the program is.
    Sandbox,
    /// It names a command or a host as well: only what the text of a command tells is denied.
    Text,
    /// Something else of it does not hold for this call.
    Nothing,
}

/// A rule that denies paths, and what comes of it for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PathRule {
    pub paths: Vec<String>,
    pub name: Option<String>,
    pub rule: RuleRef,
    pub held_by: HeldBy,
}

/// Every rule that denies paths.
pub fn path_rules(rules: &Rules, denied: &DeniedPaths) -> Vec<PathRule> {
    let all = rules.sets.iter().flat_map(|set| set.rules());
    let of = |rule: &Rule| PathRule {
        paths: rule
            .matchers
            .path
            .iter()
            .map(|it| it.text().to_owned())
            .collect(),
        name: rule.name.clone(),
        rule: rule.at.clone(),
        held_by: match denied.iter().any(|it| it.at == rule.at) {
            true => HeldBy::Sandbox,
            false if rule.is_held() => HeldBy::Nothing,
            false => HeldBy::Text,
        },
    };
    all.filter(|it| it.denies_paths()).map(of).collect()
}
