//! TOML, as Codex has it: one table for each server.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

use super::edit::{Edit, Unfit};
use super::entry::{Entry, Form, VARIABLE};
use super::host::Host;

pub(super) fn put(text: &str, entry: &Entry) -> Result<Edit, Unfit> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| Unfit::new(format!("it is no TOML: {error}")))?;
    let key = Host::Codex.key();
    let fields = fields(entry);
    let servers = document.entry(key).or_insert_with(|| {
        // No line of its own: the tables below it say all there is.
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = servers.is_inline_table();
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| Unfit::new(format!("its `{key}` is no table")))?;
    let before = servers
        .get(&entry.name)
        .map(|it| it.to_string().trim().to_owned());
    if !write(servers, is_inline, entry, fields) {
        return Ok(Edit::Same);
    }
    let after = with_ends(document.to_string(), text)?;
    verify(text, &after, entry)?;
    Ok(Edit::Changed {
        text: after,
        before,
    })
}

/// The editor ends every line in one way. So did the file, or it would not be the same.
fn with_ends(after: String, before: &str) -> Result<String, Unfit> {
    let (all, returned) = (before.matches('\n').count(), before.matches("\r\n").count());
    match returned {
        0 => Ok(after),
        _ if returned == all => Ok(after.replace('\n', "\r\n")),
        _ => Err(Unfit::new(
            "some of its lines end in another way than others",
        )),
    }
}

fn fields(entry: &Entry) -> Vec<(&'static str, Value)> {
    match &entry.form {
        Form::Program { command, args } => {
            let args: Array = args.iter().map(String::as_str).collect();
            vec![("command", command.into()), ("args", args.into())]
        }
        Form::Server { url } => vec![
            ("url", url.into()),
            ("bearer_token_env_var", VARIABLE.into()),
        ],
    }
}

fn write(
    servers: &mut dyn TableLike,
    is_inline: bool,
    entry: &Entry,
    fields: Vec<(&'static str, Value)>,
) -> bool {
    let foreign = entry.form.foreign_keys();
    let existing = servers.get_mut(&entry.name);
    let existing = existing.and_then(|it| it.as_table_like_mut());
    let Some(table) = existing.filter(|it| !foreign.iter().any(|key| it.contains_key(key))) else {
        servers.remove(&entry.name);
        servers.insert(&entry.name, whole(is_inline, fields));
        return true;
    };
    let mut changed = false;
    for (key, wanted) in fields {
        match table.get_mut(key).map(|it| (it.as_value().cloned(), it)) {
            Some((Some(found), _)) if plain(&found) == plain(&wanted) => continue,
            Some((Some(found), item)) => {
                let mut wanted = wanted;
                // With the comment that stands behind it.
                *wanted.decor_mut() = found.decor().clone();
                *item = Item::Value(wanted);
            }
            Some((None, item)) => *item = value(wanted),
            None => {
                table.insert(key, value(wanted));
            }
        }
        changed = true;
    }
    changed
}

fn whole(is_inline: bool, fields: Vec<(&'static str, Value)>) -> Item {
    if is_inline {
        let mut table = InlineTable::new();
        table.extend(fields);
        return value(table);
    }
    let mut table = Table::new();
    for (key, it) in fields {
        table.insert(key, value(it));
    }
    Item::Table(table)
}

/// What it says, however it is written.
fn plain(it: &Value) -> Option<toml::Value> {
    let text = format!("it = {}", it.clone().decorated(" ", ""));
    toml::from_str::<toml::Table>(&text).ok()?.remove("it")
}

/// Nothing but the entry may mean anything else than before.
fn verify(before: &str, after: &str, entry: &Entry) -> Result<(), Unfit> {
    let meaning = |text: &str| {
        toml::from_str::<toml::Table>(text)
            .map_err(|error| Unfit::new(format!("it would be no TOML: {}", error.message())))
    };
    let (mut before, mut after) = (meaning(before)?, meaning(after)?);
    let key = Host::Codex.key();
    let servers = after.get(key).and_then(|it| it.get(&entry.name));
    let holds = |(key, wanted): &(&str, Value)| {
        servers.and_then(|it| it.get(key)).cloned() == plain(wanted)
    };
    let has_all = fields(entry).iter().all(holds);
    for table in [&mut before, &mut after] {
        let Some(toml::Value::Table(servers)) = table.get_mut(key) else {
            continue;
        };
        servers.remove(&entry.name);
        if servers.is_empty() {
            table.remove(key);
        }
    }
    match has_all && before == after {
        true => Ok(()),
        false => Err(Unfit::new("it would not be what it was")),
    }
}
