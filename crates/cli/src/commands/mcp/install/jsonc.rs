//! JSON, with the comments and the commas that editors allow in it.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue as Input, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::edit::{Edit, Unfit};
use super::entry::Entry;
use super::host::Host;

const MARK: char = '\u{feff}';

pub(super) fn put(host: Host, text: &str, entry: &Entry) -> Result<Edit, Unfit> {
    let (mark, inner) = match text.strip_prefix(MARK) {
        Some(rest) => (&text[..MARK.len_utf8()], rest),
        None => ("", text),
    };
    let root = parse(inner)?;
    let whole = root
        .object_value_or_create()
        .ok_or_else(|| Unfit::new("it is no JSON object"))?;
    let fields = entry.fields(host);
    let servers = object(&whole, host.key())?;
    let existing = only(&servers, &entry.name)?;
    let before = existing.as_ref().and_then(CstObjectProp::value);
    let before = before.map(|it| it.to_string());
    let is_asked = ask(&whole, host, entry)?;
    if !write(&servers, existing, entry, fields)? && !is_asked {
        return Ok(Edit::Same);
    }
    let text = format!("{mark}{root}");
    verify(host, inner, &text[mark.len()..], entry)?;
    Ok(Edit::Changed { text, before })
}

fn parse(text: &str) -> Result<CstRootNode, Unfit> {
    // What hosts read, and no more: what they refuse must not pass here for good.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options)
        .map_err(|error| Unfit::new(format!("it is no JSON: {error}")))
}

/// A name that stands twice means one thing to some readers and another to others.
fn only(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, Unfit> {
    let named = |it: &CstObjectProp| it.decoded_name().is_some_and(|it| it == name);
    let mut found = object.properties().into_iter().filter(named);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(Unfit::new(format!("`{name}` stands in it twice"))),
    }
}

fn object(within: &CstObject, key: &str) -> Result<CstObject, Unfit> {
    let Some(property) = only(within, key)? else {
        return within
            .object_value_or_create(key)
            .ok_or_else(|| Unfit::new(format!("`{key}` cannot be put in")));
    };
    let found = property.object_value();
    found.ok_or_else(|| Unfit::new(format!("its `{key}` is no object")))
}

/// Whether anything had to be changed. What else the entry says stays, as long as it is of the same
/// form.
fn write(
    servers: &CstObject,
    existing: Option<CstObjectProp>,
    entry: &Entry,
    fields: Vec<(&'static str, Input)>,
) -> Result<bool, Unfit> {
    let owned = |fields: Vec<(&'static str, Input)>| {
        let fields = fields.into_iter();
        Input::Object(fields.map(|(key, value)| (key.to_owned(), value)).collect())
    };
    let Some(existing) = existing else {
        servers.append(&entry.name, owned(fields));
        return Ok(true);
    };
    let foreign = |it: &CstObject| {
        let keys = it.properties();
        let names = keys.iter().filter_map(CstObjectProp::decoded_name);
        let mut names = names.collect::<Vec<_>>().into_iter();
        names.any(|it| entry.form.foreign_keys().contains(&it.as_str()))
    };
    let Some(object) = existing.object_value().filter(|it| !foreign(it)) else {
        existing.set_value(owned(fields));
        return Ok(true);
    };
    let mut changed = false;
    for (key, value) in fields {
        match only(&object, key)? {
            Some(property) if is_same(&property, &value) => {}
            Some(property) => {
                property.set_value(value);
                changed = true;
            }
            None => {
                object.append(key, value);
                changed = true;
            }
        }
    }
    Ok(changed)
}

fn is_same(property: &CstObjectProp, wanted: &Input) -> bool {
    let found = property.value().and_then(|it| it.to_serde_value());
    found.is_some_and(|it| it == plain(wanted))
}

/// Makes sure that the host asks its user what the entry needs to know.
fn ask(whole: &CstObject, host: Host, entry: &Entry) -> Result<bool, Unfit> {
    const KEY: &str = "inputs";
    let Some((id, question)) = entry.question(host) else {
        return Ok(false);
    };
    let inputs = match only(whole, KEY)? {
        Some(property) => property.array_value(),
        None => whole.array_value_or_create(KEY),
    };
    let inputs = inputs.ok_or_else(|| Unfit::new(format!("its `{KEY}` is no array")))?;
    let is_it = |value: Value| value.get("id").and_then(Value::as_str) == Some(id);
    let mut elements = inputs.elements().into_iter();
    if elements.any(|it| it.to_serde_value().is_some_and(is_it)) {
        return Ok(false);
    }
    inputs.append(question);
    Ok(true)
}

fn plain(value: &Input) -> Value {
    match value {
        Input::Null => Value::Null,
        Input::Bool(value) => Value::Bool(*value),
        Input::Number(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        Input::String(text) => Value::String(text.clone()),
        Input::Array(items) => items.iter().map(plain).collect(),
        Input::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(key, it)| (key.clone(), plain(it))).collect()
        }
    }
}

/// Nothing but the entry may mean anything else than before: a file that many programs depend on is
/// not trusted to one pass of an editor.
fn verify(host: Host, before: &str, after: &str, entry: &Entry) -> Result<(), Unfit> {
    let meaning = |text: &str| parse(text).map(|it| it.to_serde_value().unwrap_or(Value::Null));
    let (mut before, mut after) = (meaning(before)?, meaning(after)?);
    let written = after.pointer(&format!("/{}/{}", host.key(), entry.name));
    let fields = entry.fields(host);
    let holds =
        |(key, value): &(&str, Input)| written.and_then(|it| it.get(key)) == Some(&plain(value));
    let has_all = fields.iter().all(holds);
    for value in [&mut before, &mut after] {
        take(value, host, entry);
    }
    match has_all && before == after {
        true => Ok(()),
        false => Err(Unfit::new("it would not be what it was")),
    }
}

/// The document without what is ours.
fn take(value: &mut Value, host: Host, entry: &Entry) {
    if value.is_null() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(whole) = value else {
        return;
    };
    if let Some(Value::Object(servers)) = whole.get_mut(host.key()) {
        servers.remove(&entry.name);
        if servers.is_empty() {
            whole.remove(host.key());
        }
    }
    let Some((id, _)) = entry.question(host) else {
        return;
    };
    if let Some(Value::Array(inputs)) = whole.get_mut("inputs") {
        inputs.retain(|it| it.get("id").and_then(Value::as_str) != Some(id));
        if inputs.is_empty() {
            whole.remove("inputs");
        }
    }
}
