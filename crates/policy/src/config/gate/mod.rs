//! `[[gate]]`: at the top of the file, or under a space, user, agent or conversation. Gates add up:
//! no layer takes another's away.

mod check;
mod example;
mod json;
mod number;
mod scope;

use std::ops::Range;

use glovebox_gate::{CHECKS_MAX, Check, Gate};
use glovebox_model::{Confidence, Correlation, Mode, Recovery, Result, Tier};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries, shown};
use super::rule::read_line;
use super::section::{read_word, unknown_key};
use super::value::read_bool;
use super::{Config, Subject};
use crate::word::Word;
use check::read_check;
use example::{Example, read_examples};
use number::read_decimal;
use scope::Scope;

const KEYS: [&str; 14] = [
    "name",
    "check",
    "spaces",
    "users",
    "agents",
    "conversations",
    "tools",
    "tiers",
    "modes",
    "block",
    "required_confidence",
    "recovery",
    "because",
    "example",
];
/// Each is asked about every exec that it is about.
const GATES_MAX: usize = 256;

impl Word for Recovery {
    const ALL: &'static [Self] = &Recovery::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// Under whose name a gate stands.
pub(super) type Whose<'w> = Option<(Subject, &'w str)>;

/// A gate as it was read, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScopedGate {
    gate: Gate,
    scope: Scope,
    layer: Option<Subject>,
}

impl Config {
    /// The gates that judge an exec, in the order in which they are asked: in a simulation first the
    /// one for what policy would refuse, then those of the file's top, then those of each narrower
    /// layer. The ids must be known to be true. Where nothing runs, nothing is judged.
    pub fn gates_for(
        &self,
        ids: &Correlation,
        tools: &[&str],
        tier: Tier,
        mode: Mode,
    ) -> Vec<Gate> {
        let mut gates = match mode {
            Mode::Mock => return Vec::new(),
            Mode::Simulate => vec![Gate::violations()],
            Mode::Run | Mode::Transactional => Vec::new(),
        };
        let about = self.gates.iter();
        let mut about: Vec<_> = about
            .filter(|it| it.scope.holds(ids, tools, Some(tier), mode))
            .collect();
        about.sort_by_key(|it| it.layer);
        gates.extend(about.into_iter().map(|it| it.gate.clone()));
        gates
    }

    /// Whether a gate may judge an exec whose tier is not known.
    pub fn may_judge(&self, ids: &Correlation, tools: &[&str], mode: Mode) -> bool {
        let mut gates = self.gates.iter();
        mode != Mode::Mock && gates.any(|it| it.scope.holds(ids, tools, None, mode))
    }

    /// Whether a gate wants a program of its own to be run.
    pub fn gates_run_programs(&self) -> bool {
        let is_command = |it: &Check| matches!(it, Check::Command(_));
        self.gates
            .iter()
            .any(|it| it.gate.checks().iter().any(is_command))
    }
}

/// `gates` are those of the whole file so far.
pub(super) fn read_gates(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    whose: Whose<'_>,
    gates: &mut Vec<ScopedGate>,
) -> Result<()> {
    let what = "one or more tables; write `[[gate]]`, with two brackets";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    for item in list.iter() {
        let Some(table) = item.get_ref().as_table() else {
            return Err(document.expected(key, item, what));
        };
        if gates.len() == GATES_MAX {
            let message = format!("there are more than {GATES_MAX} gates");
            return Err(document
                .error(item.span(), message)
                .hint("one gate holds several checks"));
        }
        let gate = read_gate(document, item.span(), table, whose)?;
        let name = gate.gate.name();
        // Records call a gate by its name, whichever layer it stands in.
        if name == Gate::VIOLATIONS || gates.iter().any(|it| it.gate.name() == name) {
            let message = match name {
                Gate::VIOLATIONS => format!("`{name}` is the gate that every simulation has"),
                name => format!("two gates are called `{}`", shown(name)),
            };
            return Err(document.error(item.span(), message).hint("rename one"));
        }
        gates.push(gate);
    }
    Ok(())
}

fn read_gate(
    document: &Document<'_>,
    span: Range<usize>,
    table: &DeTable<'_>,
    whose: Whose<'_>,
) -> Result<ScopedGate> {
    let (mut name, mut because, mut recovery) = (None, None, None);
    let (mut block, mut required) = (true, None);
    let mut checks: Option<Vec<Check>> = None;
    let mut scope = Scope::of(whose);
    let mut examples: Vec<Example> = Vec::new();
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "name" => name = Some(read_line(document, key, node)?),
            "because" => because = Some(read_line(document, key, node)?),
            "check" => checks = Some(read_checks(document, key, node)?),
            "block" => block = read_bool(document, key, node)?,
            "recovery" => recovery = Some(read_word(document, key, node)?),
            "required_confidence" => required = Some(read_confidence(document, key, node)?),
            "example" => examples = read_examples(document, key, node)?,
            _ => {
                if !scope.read(document, key, node, whose)? {
                    let label = format!("in `[[{}gate]]`", shown_layer(whose));
                    return Err(unknown_key(document, &label, key, &KEYS));
                }
            }
        }
    }
    let missing = |key: &str, hint: &str| {
        let message = format!("the gate has no `{key}`");
        document.error(span.clone(), message).hint(hint)
    };
    let name = name.ok_or_else(|| missing("name", "records call it by its name"))?;
    let some = "for example `check = [\"exit\", { max_size = { changed_files = 50 } }]`";
    let checks = checks.ok_or_else(|| missing("check", some))?;
    let gate = Gate::new(&name, checks).ok_or_else(|| missing("check", some))?;
    let mut gate = gate.blocking(block);
    if let Some(required) = required {
        gate = gate.requiring(required);
    }
    if let Some(because) = because {
        gate = gate.because(&because);
    }
    if let Some(recovery) = recovery {
        gate = gate.recovering(recovery);
    }
    for example in &examples {
        example.try_on(document, &gate)?;
    }
    Ok(ScopedGate {
        gate,
        scope,
        layer: whose.map(|it| it.0),
    })
}

fn shown_layer(whose: Whose<'_>) -> String {
    match whose {
        Some((subject, name)) => format!("{}.{}.", subject.as_str(), shown(name)),
        None => String::new(),
    }
}

fn read_checks(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Vec<Check>> {
    let what = "an array of checks such as `[\"exit\", { not_null = { at = \"/id\" } }]`";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    if !(1..=CHECKS_MAX).contains(&list.len()) {
        let message = format!("`check` must hold 1 to {CHECKS_MAX} checks");
        return Err(document
            .error(node.span(), message)
            .hint("for example `check = [\"exit\"]`"));
    }
    let read = |item| read_check(document, key, item);
    list.iter().map(read).collect()
}

fn read_confidence(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Confidence> {
    let number = read_decimal(document, key, node)?;
    Confidence::new(number.get()).ok_or_else(|| {
        let message = "`required_confidence` must be between 0 and 1";
        document.error(node.span(), message)
    })
}
