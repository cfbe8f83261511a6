//! `cel`: an expression over what is judged.

use std::sync::{Arc, LazyLock};

use cel::common::ast::{EntryExpr, Expr};
use cel::{Context, Env, IdedExpr, Program, Value};
use glovebox_model::{Deed, EffectKind, FailureCode, Spoken};

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::kinds::Kinds;
use crate::metric::Metric;
use facts::{Facts, Weight};

mod facts;

pub use facts::VARIABLES;

const BYTES_MAX: usize = 2048;
/// How often the innermost part of an expression is evaluated at most.
const STEPS_MAX: u64 = 200_000;
/// Text that is searched in each step.
const STDOUT_BYTES_MAX: usize = 256 << 10;

/// Made once: it holds the whole library of functions.
static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    program: Arc<Program>,
    uses: Vec<&'static str>,
    /// How many loops stand within each other.
    loops: u32,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl Expression {
    /// Its names are looked at, and unless it uses `output`, whose shape nobody knows, it is tried once
    /// on facts that hold something everywhere.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("is longer than {BYTES_MAX} bytes"));
        }
        let program = LANGUAGE.compile(text).map_err(|why| {
            let why = why.to_string().replace('\n', ", ");
            format!("is not a CEL expression: {why}")
        })?;
        let references = program.references();
        let uses: Vec<&str> = VARIABLES
            .into_iter()
            .filter(|name| references.has_variable(name))
            .collect();
        let loops = loops(program.expression());
        let expression = Self {
            text: text.to_owned(),
            program: Arc::new(program),
            uses,
            loops,
        };
        if expression.uses("output") {
            return Ok(expression);
        }
        match expression.execute(&Facts::sample()) {
            Ok(Value::Bool(_)) => Ok(expression),
            Ok(_) => Err("is neither true nor false".to_owned()),
            Err(why) => Err(format!("cannot be evaluated: {why}")),
        }
    }

    pub(super) fn asks(&self) -> Kinds {
        let account = ["effects", "effect_count", "violations"];
        let writes = ["changed_files", "changed_bytes"];
        let asked = match account.into_iter().any(|it| self.uses(it)) {
            true => Kinds::ACCOUNT,
            false if writes.into_iter().any(|it| self.uses(it)) => Kinds::WRITES,
            false => Kinds::NONE,
        };
        // No kind is known by anything but its name.
        let reads = self.uses("effects") && self.text.contains(EffectKind::FilesystemRead.as_str());
        let asked = if reads {
            asked.with(Kinds::READS)
        } else {
            asked
        };
        let refused = self.uses("violations") || self.text.contains("would_succeed");
        if refused {
            asked.with(Kinds::ATTEMPTS)
        } else {
            asked
        }
    }

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let unknown =
            |reason: String, way_out: &str| Finding::bad(FailureCode::MissingData, reason, way_out);
        let subject = evidence.subject;
        if self.uses("effects") {
            let effects = evidence.effects()?;
            if let Some(what) = effects.iter().find_map(|it| self.unknown_of(&it.deed)) {
                return Err(unknown(
                    what,
                    "do less in one run, or let the gate ask less",
                ));
            }
        }
        let whole = subject.stdout_is_whole() && subject.stdout.len() <= STDOUT_BYTES_MAX;
        if self.uses("stdout") && !whole {
            let reason = format!(
                "the output is longer than what is kept of it, or than the {STDOUT_BYTES_MAX} bytes \
                 that an expression is given"
            );
            return Err(unknown(reason, "print less"));
        }
        if self.uses("output") {
            evidence.output()?;
        }
        for (name, metric) in [
            ("changed_files", Metric::ChangedFiles),
            ("changed_bytes", Metric::ChangedBytes),
        ] {
            if self.uses(name) && metric.of(subject).is_none() {
                let reason = format!("`{name}` is not known: there was more than was counted");
                return Err(unknown(reason, "do less in one run"));
            }
        }
        let facts = Facts::of(evidence, &|name| self.uses(name));
        let Weight(values) = facts.weight();
        if values
            .max(1)
            .checked_pow(self.loops)
            .is_none_or(|steps| steps > STEPS_MAX)
        {
            let reason = format!("there are {values} values, too many for this expression");
            return Err(unknown(
                reason,
                "do less in one run, or use fewer loops in the gate's expression",
            ));
        }
        match self.execute(&facts) {
            Ok(Value::Bool(true)) => Ok(Finding::good()),
            Ok(Value::Bool(false)) => Err(Finding::bad(
                FailureCode::PolicyViolation,
                format!("`{}` does not hold", self.text),
                "change what it does so that the gate's expression holds",
            )),
            Ok(_) => Err(Finding::bad(
                FailureCode::ToolError,
                format!("`{}` is neither true nor false", self.text),
                "mend the gate's expression",
            )),
            Err(why) => Err(Finding::bad(
                FailureCode::ToolError,
                format!("`{}` cannot be evaluated: {why}", self.text),
                "mend the gate's expression; `has(output.x)` asks whether something is there",
            )),
        }
    }

    /// What it asks of an effect that is not known of this one, or not all of it.
    fn unknown_of(&self, deed: &Deed) -> Option<String> {
        let asks = |name: &str| self.text.contains(name);
        match deed {
            Deed::ProcessSpawn(it) if it.argv_truncated && asks("argv") => Some(format!(
                "not all arguments of `{}` are known",
                it.program.one_line()
            )),
            Deed::NetworkRequest(it) if it.method.is_none() && it.spoken != Spoken::Dns => {
                let of_it = asks("network_request") && asks("path");
                (asks("method") || asks("query") || of_it).then(|| {
                    let (host, port) = (&it.host, it.port);
                    format!("what was asked of `{host}:{port}` is not known: only the connection was seen")
                })
            }
            _ => None,
        }
    }

    fn uses(&self, name: &str) -> bool {
        self.uses.contains(&name)
    }

    fn execute(&self, facts: &Facts) -> Result<Value, String> {
        let mut context = Context::with_env(Arc::clone(&LANGUAGE));
        for (name, value) in facts.variables() {
            context.add_variable_from_value(name.to_owned(), value.clone());
        }
        self.program
            .execute(&context)
            .map_err(|why| why.to_string())
    }
}

/// How deep loops stand within each other. What a loop runs over counts as well: it may itself have
/// been made by one.
fn loops(expression: &IdedExpr) -> u32 {
    let most = |list: &mut dyn Iterator<Item = &IdedExpr>| list.map(loops).max().unwrap_or(0);
    match &expression.expr {
        Expr::Comprehension(it) => {
            let parts = [
                &it.iter_range,
                &it.accu_init,
                &it.loop_cond,
                &it.loop_step,
                &it.result,
            ];
            1 + most(&mut parts.into_iter())
        }
        Expr::Call(it) => most(&mut it.target.as_deref().into_iter().chain(&it.args)),
        Expr::List(it) => most(&mut it.elements.iter()),
        Expr::Select(it) => loops(&it.operand),
        Expr::Map(it) => most(&mut it.entries.iter().flat_map(|entry| parts(&entry.expr))),
        Expr::Struct(it) => most(&mut it.entries.iter().flat_map(|entry| parts(&entry.expr))),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
    }
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(it) => vec![&it.value],
        EntryExpr::MapEntry(it) => vec![&it.key, &it.value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_within_loops_are_counted() {
        for (text, expected) in [
            ("exit_code == 0", 0),
            ("effects.all(e, e.would_succeed)", 1),
            ("effects.all(e, true) && effects.exists(e, true)", 1),
            ("effects.all(e, argv.exists(a, a == e.path))", 2),
            ("effects.filter(e, true).all(e, true)", 2),
            ("[effects.all(e, true)] == [true]", 1),
        ] {
            assert_eq!(Expression::new(text).unwrap().loops, expected, "{text}");
        }
    }

    #[test]
    fn an_expression_with_a_mistake_is_refused_when_it_is_read() {
        for (text, why) in [
            ("1 + 1", "is neither true nor false"),
            ("nobody == 1", "cannot be evaluated"),
            ("effects.all(e, e.colour == 'red')", "cannot be evaluated"),
            ("exit_code ==", "is not a CEL expression"),
            ("stdout > 3", "cannot be evaluated"),
        ] {
            let found = Expression::new(text).unwrap_err();
            assert!(found.starts_with(why), "{text}: {found}");
        }
        assert!(Expression::new(&"1 == 1 || ".repeat(300)).is_err());
        assert!(Expression::new("output.anything.at.all > 3").is_ok());
    }
}
