//! One section that describes a layer: friendly keys become a partial profile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use glovebox_model::{EnvKey, HostPort, NetworkMode, PartialLimits, PartialProfile, Result};
use toml::de::{DeTable, DeValue};

use super::document::{Document, Key, Node, entries, shown};
use crate::field::{Field, LimitField};
use crate::pattern::check_pattern;
use crate::range::check_amount;
use crate::word::Word;

const OTHER_KEYS: [&str; 10] = [
    "network",
    "allow_net",
    "workspace",
    "env_allow",
    "env",
    "tier",
    "security",
    "limits_demand",
    "backend",
    "image",
];

#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) profile: PartialProfile,
    /// Where each field's key stands.
    pub(super) spans: BTreeMap<Field, Range<usize>>,
}

impl Section {
    /// Where the section names at least one destination.
    pub(super) fn lists_destinations(&self) -> Option<Range<usize>> {
        let list = self.profile.allow_net.as_ref()?;
        if list.is_empty() {
            return None;
        }
        self.spans.get(&Field::AllowNet).cloned()
    }
}

/// Whether an entry was one of the section's own keys, beside those of a profile.
pub(super) enum Own {
    Taken,
    NotMine,
}

/// Reads a profile. `own` sees each entry first and takes the keys that only this section has;
/// `own_keys` are their names.
pub(super) fn read_profile<'i>(
    document: &Document<'i>,
    label: &str,
    table: &DeTable<'i>,
    own_keys: &[&str],
    mut own: impl FnMut(&Key<'i>, &Node<'i>) -> Result<Own>,
) -> Result<Section> {
    let mut section = Section::default();
    for (key, node) in entries(table) {
        if let Own::Taken = own(key, node)? {
            continue;
        }
        if let Some(field) = limit_of(key.get_ref()) {
            let raw = read_amount(document, field, key, node)?;
            field.set(&mut section.profile.limits, raw);
            section.spans.insert(Field::Limit(field), key.span());
        } else {
            read_other(document, label, key, node, own_keys, &mut section)?;
        }
    }
    check_network(document, &section)?;
    Ok(section)
}

/// A section that holds limits alone.
pub(super) fn read_limits(
    document: &Document<'_>,
    label: &str,
    table: &DeTable<'_>,
) -> Result<PartialLimits> {
    let mut limits = PartialLimits::default();
    for (key, node) in entries(table) {
        let Some(field) = limit_of(key.get_ref()) else {
            let valid = LimitField::ALL.map(LimitField::key);
            return Err(unknown_key(document, label, key, &valid));
        };
        field.set(&mut limits, read_amount(document, field, key, node)?);
    }
    Ok(limits)
}

fn read_other(
    document: &Document<'_>,
    label: &str,
    key: &Key<'_>,
    node: &Node<'_>,
    own_keys: &[&str],
    section: &mut Section,
) -> Result<()> {
    let profile = &mut section.profile;
    let field = match key.get_ref().as_ref() {
        "network" => {
            profile.network = Some(read_word(document, key, node)?);
            Field::Network
        }
        "allow_net" => {
            profile.allow_net = Some(read_destinations(document, key, node)?);
            Field::AllowNet
        }
        "workspace" => {
            profile.workspace = Some(read_word(document, key, node)?);
            Field::Workspace
        }
        "env_allow" => {
            profile.env_allow = Some(read_patterns(document, key, node)?);
            Field::EnvAllow
        }
        "env" => return read_env(document, key, node, section),
        "tier" => {
            profile.tier = Some(read_word(document, key, node)?);
            Field::Tier
        }
        "security" => {
            profile.security = Some(read_word(document, key, node)?);
            Field::Security
        }
        "limits_demand" => {
            profile.limits_demand = Some(read_word(document, key, node)?);
            Field::LimitsDemand
        }
        "backend" => {
            profile.backend = Some(read_word(document, key, node)?);
            Field::Backend
        }
        "image" => {
            profile.image = Some(read_image(document, key, node)?);
            Field::Image
        }
        _ => {
            let limits = LimitField::ALL.map(LimitField::key);
            let valid: Vec<&str> = [&limits[..], &OTHER_KEYS, own_keys].concat();
            return Err(unknown_key(document, label, key, &valid));
        }
    };
    section.spans.insert(field, key.span());
    Ok(())
}

fn limit_of(key: &str) -> Option<LimitField> {
    LimitField::ALL.into_iter().find(|field| field.key() == key)
}

pub(super) fn unknown_key(
    document: &Document<'_>,
    label: &str,
    key: &Key<'_>,
    valid: &[&str],
) -> glovebox_model::Error {
    let given = key.get_ref();
    let message = format!("unknown key `{}` {label}", shown(given));
    // The names in the API's JSON differ; whoever copies one from there is told.
    let api_name =
        |field: &LimitField| field.path().strip_prefix("limits.") == Some(given.as_ref());
    match LimitField::ALL.into_iter().find(api_name) {
        Some(field) if valid.contains(&field.key()) => document
            .error(key.span(), message)
            .hint(format!("here it is called `{}`", field.key())),
        Some(_) | None => document.unknown(key.span(), message, given, valid),
    }
}

fn read_amount(
    document: &Document<'_>,
    field: LimitField,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<u64> {
    let parsed = match node.get_ref() {
        DeValue::String(text) => field.parse(text),
        DeValue::Integer(number) if number.radix() == 10 => field.parse(number.as_str()),
        DeValue::Float(number) => match field {
            LimitField::Cpus | LimitField::Wall | LimitField::CpuTime => {
                field.parse(number.as_str())
            }
            LimitField::Memory
            | LimitField::Pids
            | LimitField::Disk
            | LimitField::Files
            | LimitField::Stdout
            | LimitField::Stderr
            | LimitField::Artifacts
            | LimitField::OpenFiles => return Err(wrong_amount(document, field, key, node)),
        },
        DeValue::Integer(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => return Err(wrong_amount(document, field, key, node)),
    };
    let raw = parsed.map_err(|why| {
        let why = format!(
            "`{}`: `{}` is not {}",
            field.key(),
            shown(&why.text),
            why.expected
        );
        document.error(node.span(), why)
    })?;
    check_amount(field, raw).map_err(|why| document.error(node.span(), why))?;
    Ok(raw)
}

fn wrong_amount(
    document: &Document<'_>,
    field: LimitField,
    key: &Key<'_>,
    node: &Node<'_>,
) -> glovebox_model::Error {
    let what = field
        .parse("")
        .map_or_else(|why| why.expected, |_| "a number");
    document.expected(key, node, what)
}

pub(super) fn read_word<T: Word>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<T> {
    let Some(text) = node.get_ref().as_str() else {
        return Err(document.expected(key, node, "a string"));
    };
    T::from_word(text).ok_or_else(|| {
        let words = T::words();
        let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = format!(
            "`{}`: `{}` is not one of {}",
            key.get_ref(),
            shown(text),
            quoted.join(", ")
        );
        document.unknown(node.span(), message, text, &words)
    })
}

/// The strings of an array, each with its place.
fn read_strings<'n>(
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

fn read_destinations(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<HostPort>> {
    let read = |(text, span): (&str, _)| {
        text.parse()
            .map_err(|why| document.error(span, format!("`allow_net`: {why}")))
    };
    read_strings(document, key, node)?
        .into_iter()
        .map(read)
        .collect()
}

fn read_patterns(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<String>> {
    let read = |(text, span): (&str, _)| match check_pattern(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => Err(document.error(span, format!("`env_allow`: {why}"))),
    };
    read_strings(document, key, node)?
        .into_iter()
        .map(read)
        .collect()
}

fn read_env(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    section: &mut Section,
) -> Result<()> {
    let Some(table) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table of strings"));
    };
    for (name, value) in entries(table) {
        let env_key: EnvKey = name
            .get_ref()
            .parse()
            .map_err(|why| document.error(name.span(), format!("`env`: {why}")))?;
        let Some(text) = value.get_ref().as_str() else {
            return Err(document.expected(name, value, "a string"));
        };
        if text.contains('\0') {
            let why = format!("the value of environment key `{env_key}` contains a NUL byte");
            return Err(document.error(value.span(), why));
        }
        section
            .spans
            .insert(Field::Env(env_key.clone()), name.span());
        section.profile.env.insert(env_key, text.to_owned());
    }
    Ok(())
}

fn read_image(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<String> {
    match node.get_ref().as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        Some(_) => Err(document.error(node.span(), "`image` is empty")),
        None => Err(document.expected(key, node, "a string")),
    }
}

/// A list that its own section makes unreachable is a mistake, not an opinion.
fn check_network(document: &Document<'_>, section: &Section) -> Result<()> {
    let Some(span) = section.lists_destinations() else {
        return Ok(());
    };
    match section.profile.network {
        Some(mode @ (NetworkMode::None | NetworkMode::Retrieval | NetworkMode::Unrestricted)) => {
            Err(document
                .error(
                    span,
                    format!("`allow_net` has no meaning with `network = \"{mode}\"`"),
                )
                .hint("set `network = \"allowlist\"`, or leave out `allow_net`"))
        }
        Some(NetworkMode::Allowlist) | None => Ok(()),
    }
}
