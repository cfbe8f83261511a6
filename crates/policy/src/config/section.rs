//! One section that describes a layer: friendly keys become a partial profile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use glovebox_model::{
    BackendName, BackendRef, Guarantee, HostPort, LimitField, NetworkMode, PartialLimits,
    PartialProfile, Result,
};
use toml::de::{DeTable, DeValue};

use super::document::{Document, Key, Node, entries, shown};
use super::value::{read_strings, read_variables};
use crate::effective::{WITHOUT_NETWORK, forbids_network};
use crate::field::Field;
use crate::name::{check_image, check_runtime};
use crate::pattern::check_pattern;
use crate::range::check_amount;
use crate::word::Word;

const OTHER_KEYS: [&str; 13] = [
    "network",
    "allow_net",
    "workspace",
    "env_allow",
    "env",
    "tier",
    "security",
    "limits_demand",
    "approval",
    "require",
    "backend",
    "runtime",
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

/// How far anybody may go, with approval or by settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ceilings {
    pub(super) limits: PartialLimits,
    pub(super) network: Option<NetworkMode>,
}

pub(super) fn read_ceilings(
    document: &Document<'_>,
    label: &str,
    table: &DeTable<'_>,
) -> Result<Ceilings> {
    let mut ceilings = Ceilings::default();
    for (key, node) in entries(table) {
        if key.get_ref() == "network" {
            ceilings.network = Some(read_word(document, key, node)?);
            continue;
        }
        let Some(field) = limit_of(key.get_ref()) else {
            let limits = LimitField::ALL.map(LimitField::key);
            let valid = [&limits[..], &["network"]].concat();
            return Err(unknown_key(document, label, key, &valid));
        };
        let amount = read_amount(document, field, key, node)?;
        field.set(&mut ceilings.limits, amount);
    }
    Ok(ceilings)
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
        "approval" => {
            profile.approval = Some(read_word(document, key, node)?);
            Field::Approval
        }
        "require" => {
            profile.require = read_guarantees(document, key, node)?;
            Field::Require
        }
        "runtime" => {
            let runtime = read_name(document, key, node, check_runtime)?;
            profile
                .name_runtime(runtime)
                .map_err(|why| document.error(node.span(), why))?;
            Field::Runtime
        }
        "backend" => {
            let backend = read_backend(document, key, node)?;
            if backend.runtime.is_some() {
                section.spans.insert(Field::Runtime, key.span());
            }
            profile
                .name_backend(backend)
                .map_err(|why| document.error(node.span(), why))?;
            Field::Backend
        }
        "image" => {
            profile.image = Some(read_name(document, key, node, check_image)?);
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
        DeValue::Float(number) if field.has_fractions() => field.parse(number.as_str()),
        DeValue::Float(_)
        | DeValue::Integer(_)
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
    word_of(document, key.get_ref(), text, node.span())
}

pub(super) fn word_of<T: Word>(
    document: &Document<'_>,
    key: &str,
    text: &str,
    span: Range<usize>,
) -> Result<T> {
    T::from_word(text).ok_or_else(|| {
        let words = T::words();
        let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = format!(
            "`{key}`: `{}` is not one of {}",
            shown(text),
            quoted.join(", ")
        );
        document.unknown(span, message, text, &words)
    })
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
    for variable in read_variables(document, key, node, (&['\0'], "a NUL byte"))? {
        let field = Field::Env(variable.key.clone());
        section.spans.insert(field, variable.span);
        section.profile.env.insert(variable.key, variable.value);
    }
    Ok(())
}

fn read_guarantees(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<Guarantee>> {
    let read = |(text, span): (&str, _)| word_of(document, "require", text, span);
    read_strings(document, key, node)?
        .into_iter()
        .map(read)
        .collect()
}

/// A word, or `docker` with its runtime after a colon.
fn read_backend(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<BackendRef> {
    match node.get_ref().as_str() {
        Some(text) if text.contains(':') => {
            let wrong = |why: String| document.error(node.span(), format!("`backend`: {why}"));
            let backend: BackendRef = text.parse().map_err(wrong)?;
            let runtime = backend.runtime.as_deref();
            runtime.map_or(Ok(()), check_runtime).map_err(wrong)?;
            Ok(backend)
        }
        _ => read_word::<BackendName>(document, key, node).map(BackendRef::from),
    }
}

/// A name that a command line will carry.
pub(super) fn read_name(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    check: fn(&str) -> std::result::Result<(), String>,
) -> Result<String> {
    let Some(text) = node.get_ref().as_str() else {
        return Err(document.expected(key, node, "a string"));
    };
    check(text).map_err(|why| document.error(node.span(), why))?;
    Ok(text.to_owned())
}

/// A list that its own section makes unreachable is a mistake, not an opinion.
fn check_network(document: &Document<'_>, section: &Section) -> Result<()> {
    if let Some(mode) = section.profile.network
        && mode > WITHOUT_NETWORK
        && forbids_network(&section.profile)
    {
        let span = section.spans.get(&Field::Require).cloned();
        return Err(document
            .error(
                span.unwrap_or_default(),
                format!("`require` of `no_network` contradicts `network = \"{mode}\"`"),
            )
            .hint("leave out one of the two"));
    }
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
