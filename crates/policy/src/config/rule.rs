//! `[[rule]]`: at the top of the file, or under a space, user, agent or conversation.

use std::collections::BTreeSet;
use std::ops::Range;

use glovebox_model::{Glob, HostPattern, Permit, Result, RuleRef};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries, shown};
use super::section::{read_word, unknown_key, word_of};
use super::value::refuse;
use crate::rule::command::CommandGlob;
use crate::rule::condition::Condition;
use crate::rule::facts::Facts;
use crate::rule::path::PathGlob;
use crate::rule::{Example, GLOBS_MAX, Matchers, RULES_MAX, Rule};
use crate::tool::ToolGlob;
use crate::word::Word;

const KEYS: [&str; 14] = [
    "name",
    "decision",
    "tool",
    "command",
    "path",
    "host",
    "backend",
    "network",
    "secret",
    "tier",
    "when",
    "because",
    "match",
    "not_match",
];
const TEXT_BYTES_MAX: usize = 1000;

/// `count` is of the whole file so far.
pub(super) fn read_rules(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    count: &mut usize,
) -> Result<Vec<Rule>> {
    let what = "one or more tables; write `[[rule]]`, with two brackets";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    let mut names = BTreeSet::new();
    let mut rules = Vec::with_capacity(list.len());
    for item in list.iter() {
        let Some(table) = item.get_ref().as_table() else {
            return Err(document.expected(key, item, what));
        };
        *count += 1;
        if *count > RULES_MAX {
            let message = format!("there are more than {RULES_MAX} rules");
            return Err(document.error(item.span(), message).hint(
                "a glob list holds several patterns, and `when` says what a list would repeat",
            ));
        }
        let rule = read_rule(document, item.span(), table)?;
        if let Some(name) = &rule.name
            && !names.insert(name.clone())
        {
            let message = format!("two rules are called `{}`", shown(name));
            return Err(document.error(item.span(), message).hint("rename one"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn read_rule(document: &Document<'_>, span: Range<usize>, table: &DeTable<'_>) -> Result<Rule> {
    let mut matchers = Matchers::default();
    let (mut name, mut because, mut permit) = (None, None, None);
    let mut examples = Vec::new();
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "name" => name = Some(read_line(document, key, node)?),
            "because" => because = Some(read_line(document, key, node)?),
            "decision" => permit = Some(read_word::<Permit>(document, key, node)?),
            "tool" => matchers.tool = globs(document, key, node, ToolGlob::new)?,
            "command" => matchers.command = globs(document, key, node, CommandGlob::new)?,
            "path" => matchers.path = globs(document, key, node, PathGlob::new)?,
            "host" => matchers.host = globs(document, key, node, HostPattern::new)?,
            "secret" => {
                matchers.secret = globs(document, key, node, |it| Ok(Glob::new(it, None)))?;
            }
            "backend" => matchers.backend = words(document, key, node)?,
            "network" => matchers.network = words(document, key, node)?,
            "tier" => matchers.tier = Some(read_word(document, key, node)?),
            "when" => {
                let Some(text) = node.get_ref().as_str() else {
                    return Err(document.expected(key, node, "a string"));
                };
                let condition = Condition::new(text, &Facts::sample());
                let condition = condition.map_err(|why| {
                    refuse(document, key, text, node.span(), &why).hint(format!(
                        "it may use {}",
                        crate::rule::condition::VARIABLES.join(", ")
                    ))
                })?;
                matchers.when = Some(condition);
            }
            "match" => examples.extend(read_examples(document, key, node, true)?),
            "not_match" => examples.extend(read_examples(document, key, node, false)?),
            _ => return Err(unknown_key(document, "in `[[rule]]`", key, &KEYS)),
        }
    }
    let Some(permit) = permit else {
        return Err(document
            .error(span, "the rule has no `decision`")
            .hint("`decision` is one of `allow`, `ask`, `deny`"));
    };
    if matchers.is_empty() {
        return Err(document
            .error(span, "the rule says nothing about what it matches")
            .hint("`tool = \"*\"` matches everything"));
    }
    for (text, span, wanted) in examples {
        check_example(document, &matchers, permit, &text, span, wanted)?;
    }
    Ok(Rule {
        name,
        permit,
        matchers,
        because,
        at: RuleRef {
            file: document.file.to_owned(),
            line: document.line(&span),
        },
    })
}

/// One string, or a list of them, each with its place.
pub(super) fn one_or_more<'n>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &'n Node<'_>,
) -> Result<Vec<(&'n str, Range<usize>)>> {
    let what = "a string or an array of strings";
    if let Some(text) = node.get_ref().as_str() {
        return Ok(vec![(text, node.span())]);
    }
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    if list.is_empty() || list.len() > GLOBS_MAX {
        let key = shown(key.get_ref());
        let message = format!("`{key}` must hold 1 to {GLOBS_MAX} entries");
        return Err(document.error(node.span(), message));
    }
    let read = |item: &'n Node<'_>| match item.get_ref().as_str() {
        Some(text) => Ok((text, item.span())),
        None => Err(document.expected(key, item, what)),
    };
    list.iter().map(read).collect()
}

pub(super) fn globs<T>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    make: impl Fn(&str) -> std::result::Result<T, String>,
) -> Result<Vec<T>> {
    let read = |(text, span): (&str, Range<usize>)| {
        let made = match text.len() {
            0 => Err("is empty".to_owned()),
            1..=Glob::BYTES_MAX => make(text),
            _ => Err(format!("is longer than {} bytes", Glob::BYTES_MAX)),
        };
        made.map_err(|why| refuse(document, key, text, span, &why))
    };
    one_or_more(document, key, node)?
        .into_iter()
        .map(read)
        .collect()
}

pub(super) fn words<T: Word>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Vec<T>> {
    one_or_more(document, key, node)?
        .into_iter()
        .map(|(text, span)| word_of(document, key.get_ref(), text, span))
        .collect()
}

/// Shown to people in one line.
pub(super) fn read_line(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<String> {
    let Some(text) = node.get_ref().as_str() else {
        return Err(document.expected(key, node, "a string"));
    };
    let why = if text.trim().is_empty() {
        "is empty".to_owned()
    } else if text.len() > TEXT_BYTES_MAX {
        format!("is longer than {TEXT_BYTES_MAX} bytes")
    } else if text.chars().any(char::is_control) {
        "holds a line break or another control character".to_owned()
    } else {
        return Ok(text.to_owned());
    };
    Err(refuse(document, key, text, node.span(), &why))
}

fn read_examples(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    wanted: bool,
) -> Result<Vec<(String, Range<usize>, bool)>> {
    let read = |(text, span): (&str, Range<usize>)| (text.to_owned(), span, wanted);
    Ok(one_or_more(document, key, node)?
        .into_iter()
        .map(read)
        .collect())
}

fn check_example(
    document: &Document<'_>,
    matchers: &Matchers,
    permit: Permit,
    text: &str,
    span: Range<usize>,
    wanted: bool,
) -> Result<()> {
    let Some(Example { matcher, matched }) = matchers.try_on(permit, text) else {
        let message = "the rule has no matcher that an example can be tried on";
        return Err(document
            .error(span, message)
            .hint("examples are of `command`, or else of `path`, `host`, `tool` or `secret`"));
    };
    if matched == wanted {
        return Ok(());
    }
    let (key, does) = match wanted {
        true => ("match", "is not matched"),
        false => ("not_match", "is matched"),
    };
    let message = format!("`{key}`: `{}` {does} by `{matcher}`", shown(text));
    Err(document
        .error(span, message)
        .hint(format!("change the example, or `{matcher}`")))
}
