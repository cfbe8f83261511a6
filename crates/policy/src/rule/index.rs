//! Rules sorted by what they are about, so that a request looks only at those that may match.

use std::collections::{BTreeSet, HashMap};

use glovebox_model::Permit;

use super::Rule;
use super::command::base;
use super::facts::{Facts, Value};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RuleSet {
    rules: Vec<Rule>,
    /// Rules that name programs, by each of them.
    by_program: HashMap<String, Vec<usize>>,
    /// Rules that name no program but tools, by each of them.
    by_tool: HashMap<String, Vec<usize>>,
    /// Rules that may match anything.
    general: Vec<usize>,
    /// Some rule that denies or asks is about commands, or about paths, which commands that nobody
    /// sees may touch.
    guards_commands: bool,
    guards_paths: bool,
    /// Rules that deny paths, whatever the command is.
    held: Vec<usize>,
}

impl RuleSet {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let mut set = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            let programs: Option<BTreeSet<&str>> = rule
                .matchers
                .command
                .iter()
                .map(|it| it.program())
                .collect();
            if rule.is_held() {
                set.held.push(at);
            }
            let tools: Option<BTreeSet<String>> =
                rule.matchers.tool.iter().map(|it| it.exact()).collect();
            match (programs, tools) {
                (Some(names), _) if !names.is_empty() => {
                    for name in names {
                        set.by_program.entry(name.to_owned()).or_default().push(at);
                    }
                }
                (_, Some(names)) if !names.is_empty() => {
                    for name in names {
                        set.by_tool.entry(name).or_default().push(at);
                    }
                }
                _ => set.general.push(at),
            }
        }
        let guards = |it: &Rule| {
            let it = (it.permit, &it.matchers);
            it.0 > Permit::Allow && !(it.1.command.is_empty() && it.1.path.is_empty())
        };
        let paths = |it: &Rule| it.permit > Permit::Allow && !it.matchers.path.is_empty();
        set.guards_paths = rules.iter().any(paths);
        set.guards_commands = rules.iter().any(guards);
        set.rules = rules;
        set
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn guards_commands(&self) -> bool {
        self.guards_commands
    }

    pub(crate) fn guards_paths(&self) -> bool {
        self.guards_paths
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Those whose paths the sandbox denies.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Rule> {
        self.held.iter().map(|at| &self.rules[*at])
    }

    /// Every rule that may match, each once, in the order of the file.
    pub(crate) fn candidates(&self, facts: &Facts) -> Vec<&Rule> {
        let unnamed = |it: &super::facts::Segment| it.program == Value::Unknown;
        let mut found: Vec<usize> = self.general.clone();
        let all = || facts.segments.iter().chain(&facts.inner);
        if all().any(unnamed) {
            found.extend(self.by_program.values().flatten());
        } else {
            let wrappers = all().flat_map(|it| &it.through);
            let wrappers = wrappers.filter_map(|it| it.split(' ').next());
            let programs = all().filter_map(|it| match &it.program {
                Value::Known(name) => Some(name.as_str()),
                Value::Unknown => None,
            });
            // A rule that denies or asks means a program wherever it lies.
            let named = programs.chain(wrappers);
            let mut names: Vec<&str> = named.flat_map(|it| [it, base(it)]).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                found.extend(self.by_program.get(name).into_iter().flatten());
            }
        }
        let tool = facts.tool.to_ascii_lowercase();
        found.extend(self.by_tool.get(&tool).into_iter().flatten());
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|at| &self.rules[at]).collect()
    }
}
