//! Single values of the sections that are not a profile.

use std::ops::Range;
use std::str::FromStr;

use glovebox_model::{Bytes, EnvKey, Millis, Result, UnitError};
use toml::de::DeValue;

use super::document::{Document, Key, Node, entries, shown};

pub(super) fn read_bool(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<bool> {
    match node.get_ref() {
        DeValue::Boolean(it) => Ok(*it),
        _ => Err(document.expected(key, node, "`true` or `false`")),
    }
}

/// A text that `check` finds nothing wrong with.
pub(super) fn read_text(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    check: fn(&str) -> std::result::Result<(), String>,
) -> Result<String> {
    let Some(text) = node.get_ref().as_str() else {
        return Err(document.expected(key, node, "a string"));
    };
    check(text).map_err(|why| refuse(document, key, text, node.span(), &why))?;
    Ok(text.to_owned())
}

pub(super) fn read_texts(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    check: fn(&str) -> std::result::Result<(), String>,
) -> Result<Vec<String>> {
    read_strings(document, key, node)?
        .into_iter()
        .map(|(text, span)| match check(text) {
            Ok(()) => Ok(text.to_owned()),
            Err(why) => Err(refuse(document, key, text, span, &why)),
        })
        .collect()
}

/// One entry of an `env` table.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) key: EnvKey,
    /// Of its name.
    pub(super) span: Range<usize>,
    pub(super) value: String,
}

/// `unfit` are the characters that no value may hold, and what they are called.
pub(super) fn read_variables(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    (unfit, called): (&[char], &str),
) -> Result<Vec<Variable>> {
    let Some(table) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table of strings"));
    };
    let read = |(name, value): (&Key<'_>, &Node<'_>)| {
        let key: EnvKey = name
            .get_ref()
            .parse()
            .map_err(|why| document.error(name.span(), format!("`env`: {why}")))?;
        let Some(text) = value.get_ref().as_str() else {
            return Err(document.expected(name, value, "a string"));
        };
        if text.contains(unfit) {
            let why = format!("the value of environment key `{key}` contains {called}");
            return Err(document.error(value.span(), why));
        }
        Ok(Variable {
            key,
            span: name.span(),
            value: text.to_owned(),
        })
    };
    entries(table).into_iter().map(read).collect()
}

/// A file of the host's, by its text alone.
pub(super) fn check_file(text: &str) -> std::result::Result<(), String> {
    let odd = |part: &str| part == "." || part == "..";
    if !text.starts_with('/') {
        return Err("is not an absolute path".to_owned());
    }
    if text.ends_with('/') || text.contains("//") || text.split('/').any(odd) {
        return Err("is not the clean path of a file".to_owned());
    }
    if text.contains(char::is_control) {
        return Err("holds a control character".to_owned());
    }
    Ok(())
}

/// `why` follows the value: "is not …".
pub(super) fn refuse(
    document: &Document<'_>,
    key: &Key<'_>,
    text: &str,
    span: Range<usize>,
    why: &str,
) -> glovebox_model::Error {
    let key = shown(key.get_ref());
    document.error(span, format!("`{key}`: `{}` {why}", shown(text)))
}

/// The strings of an array, each with its place.
pub(super) fn read_strings<'n>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &'n Node<'_>,
) -> Result<Vec<(&'n str, Range<usize>)>> {
    let what = "an array of strings";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    list.iter()
        .map(|item| match item.get_ref().as_str() {
            Some(text) => Ok((text, item.span())),
            None => Err(document.expected(key, item, what)),
        })
        .collect()
}

/// A whole number that is written as one, within `range`.
pub(super) fn read_whole(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64> {
    let what = format!("a whole number from {} to {}", range.start(), range.end());
    let number = match node.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        _ => return Err(document.expected(key, node, &what)),
    };
    number.filter(|it| range.contains(it)).ok_or_else(|| {
        let key = shown(key.get_ref());
        document.error(node.span(), format!("`{key}` must be {what}"))
    })
}

pub(super) fn read_size(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    least: Bytes,
) -> Result<Bytes> {
    let what = "a size such as `512M`, `1G` or `4096`";
    let size: Bytes = read_quantity(document, key, node, what)?;
    if size < least {
        let why = format!("is below `{least}`, the least that works");
        return Err(refuse(document, key, &size.to_string(), node.span(), &why));
    }
    Ok(size)
}

pub(super) fn read_time(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    range: std::ops::RangeInclusive<Millis>,
) -> Result<Millis> {
    let what = "a duration such as `30s`, `250ms`, `5m` or `1h`";
    let time: Millis = read_quantity(document, key, node, what)?;
    let why = if time < *range.start() {
        format!("is below `{}`, the least that works", range.start())
    } else if time > *range.end() {
        format!("is above `{}`, the most that makes sense", range.end())
    } else {
        return Ok(time);
    };
    Err(refuse(document, key, &time.to_string(), node.span(), &why))
}

fn read_quantity<T: FromStr<Err = UnitError>>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    what: &str,
) -> Result<T> {
    let text = match node.get_ref() {
        DeValue::String(text) => text,
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        _ => return Err(document.expected(key, node, what)),
    };
    text.parse().map_err(|why: UnitError| {
        let why = format!("is not {}", why.expected);
        refuse(document, key, text, node.span(), &why)
    })
}
