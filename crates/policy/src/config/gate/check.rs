//! One check of a gate: its name, or its name with what it is told.

use std::collections::BTreeSet;
use std::ops::Range;

use glovebox_gate::{
    Anomaly, Bounds, Check, CheckName, CommandCheck, Deterministic, DiffSize, Exit, Expression,
    Finite, Hosts, MaxSize, Method, Metric, Monotonic, NoSecrets, NotNull, PathGlob, PathScope,
    Pointer, Quantity, Schema, VARIABLES,
};
use glovebox_model::{Bytes, Error, HostPattern, Millis, Result};
use toml::de::DeValue;

use super::json::read_json;
use super::number::read_decimal;
use crate::config::document::{Document, Key, Node, entries};
use crate::config::rule::one_or_more;
use crate::config::section::{read_word, unknown_key, word_of};
use crate::config::value::{read_bool, read_size, read_strings, read_time, read_whole, refuse};
use crate::word::Word;

const COUNT_MAX: u64 = 1_000_000_000;
const CODES_MAX: usize = 64;
const SAMPLES_MAX: u64 = 1000;
const PIDS_MAX: u64 = 32_768;
const TIMES: std::ops::RangeInclusive<Millis> = Millis(100)..=Millis::secs(3600);
const LEAST_MEMORY: Bytes = Bytes::mib(8);

impl Word for CheckName {
    const ALL: &'static [Self] = &CheckName::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Metric {
    const ALL: &'static [Self] = &Metric::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Method {
    const ALL: &'static [Self] = &Method::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// What a check is told: the keys that it knows, each with its place.
struct Told<'d, 'n, 'i> {
    document: &'d Document<'d>,
    name: CheckName,
    span: Range<usize>,
    entries: Vec<(&'n Key<'i>, &'n Node<'i>)>,
}

impl<'n, 'i> Told<'_, 'n, 'i> {
    fn get(&self, key: &str) -> Option<(&'n Key<'i>, &'n Node<'i>)> {
        let found = self.entries.iter().find(|it| it.0.get_ref() == key);
        found.copied()
    }

    /// What is wrong with the check as a whole.
    fn wrong(&self, why: &str) -> Error {
        let message = format!("`{}` {why}", self.name.as_str());
        self.document.error(self.span.clone(), message)
    }

    fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Document<'_>, &Key<'_>, &Node<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((key, node)) = self.get(key) else {
            return Ok(None);
        };
        read(self.document, key, node).map(Some)
    }

    fn count(&self, key: &str) -> Result<Option<u64>> {
        self.read(key, |document, key, node| {
            read_whole(document, key, node, 0..=COUNT_MAX)
        })
    }

    fn size(&self, key: &str) -> Result<Option<Bytes>> {
        self.read(key, |document, key, node| {
            read_size(document, key, node, Bytes(0))
        })
    }

    fn flag(&self, key: &str) -> Result<bool> {
        Ok(self.read(key, read_bool)?.unwrap_or_default())
    }

    fn pointer(&self) -> Result<Option<Pointer>> {
        self.read("at", |document, key, node| {
            let Some(text) = node.get_ref().as_str() else {
                return Err(document.expected(key, node, "a JSON pointer such as `/items/0`"));
            };
            Pointer::new(text).map_err(|why| refuse(document, key, text, node.span(), &why))
        })
    }

    fn quantity(&self) -> Result<Quantity> {
        match (self.read("metric", read_word::<Metric>)?, self.pointer()?) {
            (Some(metric), None) => Ok(Quantity::Metric(metric)),
            (None, Some(at)) => Ok(Quantity::At(at)),
            (Some(_), Some(_)) => Err(self
                .wrong("has both `metric` and `at`")
                .hint("leave out one of the two")),
            (None, None) => Err(self
                .wrong("has neither `metric` nor `at`")
                .hint(format!("`metric` is one of {}", Metric::words().join(", ")))),
        }
    }

    fn globs(&self, key: &str) -> Result<Vec<PathGlob>> {
        let globs = self.read(key, |document, key, node| {
            let make = |(text, span): (&str, _)| {
                PathGlob::new(text).map_err(|why| refuse(document, key, text, span, &why))
            };
            one_or_more(document, key, node)?
                .into_iter()
                .map(make)
                .collect::<Result<Vec<_>>>()
        });
        Ok(globs?.unwrap_or_default())
    }
}

pub(super) fn read_check(document: &Document<'_>, key: &Key<'_>, item: &Node<'_>) -> Result<Check> {
    if let Some(text) = item.get_ref().as_str() {
        let name = word_of(document, key.get_ref(), text, item.span())?;
        return of_name(document, name, item.span());
    }
    let what = "the name of a check, or a table with one check";
    let Some(table) = item.get_ref().as_table() else {
        return Err(document.expected(key, item, what));
    };
    let mut entries = entries(table).into_iter();
    let (Some((name, node)), None) = (entries.next(), entries.next()) else {
        let message = format!("each entry of `check` must be {what}");
        return Err(document
            .error(item.span(), message)
            .hint("write `{ exit = {} }, { no_network = {} }`, each in brackets of its own"));
    };
    let kind = word_of(document, key.get_ref(), name.get_ref(), name.span())?;
    with_value(document, kind, name, node)
}

/// A check that needs to be told nothing.
fn of_name(document: &Document<'_>, name: CheckName, span: Range<usize>) -> Result<Check> {
    let told = Told {
        document,
        name,
        span,
        entries: Vec::new(),
    };
    match name {
        CheckName::Cel | CheckName::Hosts => Err(told.needs_more()),
        _ => of_table(&told),
    }
}

impl Told<'_, '_, '_> {
    fn needs_more(&self) -> Error {
        let example = match self.name {
            CheckName::Cel => "{ cel = \"exit_code == 0\" }",
            CheckName::Hosts => "{ hosts = [\"api.example.com:443\"] }",
            CheckName::Schema => "{ schema = { is = '{\"type\": \"object\"}' } }",
            CheckName::Monotonic => "{ monotonic = { at = \"/version\" } }",
            CheckName::MaxSize => "{ max_size = { changed_files = 50 } }",
            CheckName::PathScope => "{ path_scope = { within = [\"src/**\"] } }",
            CheckName::DiffSize => "{ diff_size = { lines = 500 } }",
            CheckName::Command => "{ command = { argv = [\"pytest\", \"-q\"] } }",
            CheckName::StatisticalBounds
            | CheckName::Anomaly
            | CheckName::NotNull
            | CheckName::NoSecrets
            | CheckName::NoViolations
            | CheckName::Exit
            | CheckName::NoNetwork
            | CheckName::Deterministic => "{ anomaly = { metric = \"changed_files\" } }",
        };
        self.wrong("must be told more")
            .hint(format!("for example `{example}`"))
    }
}

fn with_value(
    document: &Document<'_>,
    name: CheckName,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Check> {
    match (name, node.get_ref()) {
        (CheckName::Cel, DeValue::String(text)) => {
            let expression = Expression::new(text).map_err(|why| {
                refuse(document, key, text, node.span(), &why)
                    .hint(format!("it may use {}", VARIABLES.join(", ")))
            })?;
            Ok(Check::Cel(expression))
        }
        (CheckName::Cel, _) => Err(document.expected(key, node, "an expression in a string")),
        (CheckName::Hosts, DeValue::String(_) | DeValue::Array(_)) => {
            let make = |(text, span): (&str, _)| {
                HostPattern::new(text).map_err(|why| refuse(document, key, text, span, &why))
            };
            let hosts = one_or_more(document, key, node)?.into_iter().map(make);
            let hosts = Hosts::new(hosts.collect::<Result<_>>()?);
            hosts.map(Check::Hosts).ok_or_else(|| {
                let message = format!("`hosts` must hold 1 to {} entries", Hosts::PATTERNS_MAX);
                document.error(node.span(), message)
            })
        }
        (CheckName::Hosts, _) => {
            Err(document.expected(key, node, "a destination, or an array of them"))
        }
        (_, DeValue::Table(table)) => {
            let entries = entries(table);
            let valid = keys(name);
            if let Some((key, _)) = entries
                .iter()
                .find(|(key, _)| !valid.contains(&key.get_ref().as_ref()))
            {
                let label = format!("in `{}`", name.as_str());
                return Err(match valid {
                    [] => document.error(
                        key.span(),
                        format!("unknown key `{}` {label}, which takes none", key.get_ref()),
                    ),
                    valid => unknown_key(document, &label, key, valid),
                });
            }
            of_table(&Told {
                document,
                name,
                span: key.span(),
                entries,
            })
        }
        (_, _) => Err(document.expected(key, node, "a table such as `{}`")),
    }
}

const fn keys(name: CheckName) -> &'static [&'static str] {
    match name {
        CheckName::NotNull => &["at"],
        CheckName::Schema => &["at", "is"],
        CheckName::Monotonic => &["at", "strict"],
        CheckName::MaxSize => &[
            "stdout",
            "changed_bytes",
            "changed_files",
            "artifacts",
            "artifact_bytes",
        ],
        CheckName::StatisticalBounds => &["metric", "at", "min", "max"],
        CheckName::Anomaly => &[
            "metric",
            "at",
            "method",
            "limit",
            "min_samples",
            "min_spread",
        ],
        CheckName::NoSecrets => &["high_entropy"],
        CheckName::PathScope => &["within", "outside"],
        CheckName::DiffSize => &["lines", "files"],
        CheckName::Exit => &["codes"],
        CheckName::Command => &["argv", "timeout", "memory", "pids"],
        CheckName::NoViolations
        | CheckName::NoNetwork
        | CheckName::Hosts
        | CheckName::Deterministic
        | CheckName::Cel => &[],
    }
}

fn of_table(told: &Told<'_, '_, '_>) -> Result<Check> {
    Ok(match told.name {
        CheckName::NotNull => Check::NotNull(NotNull {
            at: told.pointer()?,
        }),
        CheckName::Schema => {
            let at = told.pointer()?.unwrap_or_default();
            let schema = told.read("is", |document, key, node| {
                let json = read_json(document, key, node)?;
                let refuse = |why| document.error(node.span(), format!("`schema` {why}"));
                Schema::new(at, &json).map_err(refuse)
            })?;
            Check::Schema(schema.ok_or_else(|| told.needs_more())?)
        }
        CheckName::Monotonic => Check::Monotonic(Monotonic {
            at: told.pointer()?.ok_or_else(|| told.needs_more())?,
            strict: told.flag("strict")?,
        }),
        CheckName::MaxSize => {
            let size = MaxSize {
                stdout: told.size("stdout")?,
                changed_bytes: told.size("changed_bytes")?,
                changed_files: told.count("changed_files")?,
                artifacts: told.count("artifacts")?,
                artifact_bytes: told.size("artifact_bytes")?,
            };
            match size == MaxSize::default() {
                true => return Err(told.needs_more()),
                false => Check::MaxSize(size),
            }
        }
        CheckName::StatisticalBounds => {
            let (min, max) = (
                told.read("min", read_decimal)?,
                told.read("max", read_decimal)?,
            );
            let bounds = Bounds::new(told.quantity()?, min, max);
            Check::StatisticalBounds(bounds.map_err(|why| told.wrong(&why))?)
        }
        CheckName::Anomaly => Check::Anomaly(read_anomaly(told)?),
        CheckName::NoSecrets => Check::NoSecrets(NoSecrets {
            high_entropy: told.flag("high_entropy")?,
        }),
        CheckName::PathScope => {
            let scope = PathScope {
                within: told.globs("within")?,
                outside: told.globs("outside")?,
            };
            match scope == PathScope::default() {
                true => return Err(told.needs_more()),
                false => Check::PathScope(scope),
            }
        }
        CheckName::DiffSize => {
            let size = DiffSize {
                lines: told.count("lines")?,
                files: told.count("files")?,
            };
            match size == DiffSize::default() {
                true => return Err(told.needs_more()),
                false => Check::DiffSize(size),
            }
        }
        CheckName::NoViolations => Check::NoViolations,
        CheckName::Exit => Check::Exit(Exit {
            codes: told.read("codes", read_codes)?.unwrap_or_default(),
        }),
        CheckName::NoNetwork => Check::NoNetwork,
        CheckName::Deterministic => Check::Deterministic(Deterministic),
        CheckName::Command => Check::Command(read_command(told)?),
        CheckName::Hosts | CheckName::Cel => return Err(told.needs_more()),
    })
}

fn read_anomaly(told: &Told<'_, '_, '_>) -> Result<Anomaly> {
    let zero = Finite::new(0.0);
    let above = |key: &str, usual: Option<Finite>, least: Option<Finite>| {
        let number = told.read(key, read_decimal)?.or(usual);
        number
            .filter(|it| Some(*it) >= least && (key != "limit" || Some(*it) > zero))
            .ok_or_else(|| told.wrong(&format!("needs a `{key}` above 0")))
    };
    let samples = told.read("min_samples", |document, key, node| {
        read_whole(document, key, node, 1..=SAMPLES_MAX)
    })?;
    Ok(Anomaly {
        quantity: told.quantity()?,
        method: told.read("method", read_word)?.unwrap_or_default(),
        limit: above("limit", Anomaly::LIMIT, zero)?,
        min_samples: samples.unwrap_or(Anomaly::MIN_SAMPLES),
        min_spread: above("min_spread", zero, zero)?,
    })
}

fn read_codes(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<BTreeSet<i32>> {
    let what = format!("an array of 1 to {CODES_MAX} exit codes from 0 to 255");
    let wrong = |node: &Node<'_>| document.expected(key, node, &what);
    let list = node.get_ref().as_array().ok_or_else(|| wrong(node))?;
    if !(1..=CODES_MAX).contains(&list.len()) {
        return Err(document.error(node.span(), format!("`codes` must be {what}")));
    }
    let code = |item: &Node<'_>| match item.get_ref() {
        DeValue::Integer(number) => {
            let code = number.as_str().parse::<u8>();
            code.map(i32::from).map_err(|_| wrong(item))
        }
        _ => Err(wrong(item)),
    };
    list.iter().map(code).collect()
}

fn read_command(told: &Told<'_, '_, '_>) -> Result<CommandCheck> {
    let command = told.read("argv", |document, key, node| {
        let argv = read_strings(document, key, node)?;
        let argv = argv.into_iter().map(|(text, _)| text.to_owned()).collect();
        CommandCheck::new(argv).map_err(|why| document.error(node.span(), format!("`argv` {why}")))
    })?;
    let mut command = command.ok_or_else(|| told.needs_more())?;
    let timeout = told.read("timeout", |document, key, node| {
        read_time(document, key, node, TIMES)
    })?;
    command.timeout = timeout.unwrap_or(CommandCheck::TIMEOUT);
    command.memory = told.read("memory", |document, key, node| {
        read_size(document, key, node, LEAST_MEMORY)
    })?;
    command.pids = told.read("pids", |document, key, node| {
        read_whole(document, key, node, 1..=PIDS_MAX)
    })?;
    Ok(command)
}
