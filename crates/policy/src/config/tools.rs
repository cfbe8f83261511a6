//! `[tools]` and `[agent.NAME.tools]`.

use glovebox_model::{Glob, Result, RuleRef};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries};
use super::section::unknown_key;
use super::value::{read_strings, refuse};
use crate::tool::{ToolGlob, ToolList, ToolSection};

const KEYS: [&str; 2] = ["allow", "deny"];
const ENTRIES_MAX: usize = 1000;

pub(super) fn read_tools(
    document: &Document<'_>,
    label: &str,
    table: &DeTable<'_>,
) -> Result<ToolSection> {
    let mut section = ToolSection::default();
    for (key, node) in entries(table) {
        let place = match key.get_ref().as_ref() {
            "allow" => &mut section.allow,
            "deny" => &mut section.deny,
            _ => return Err(unknown_key(document, label, key, &KEYS)),
        };
        *place = Some(read_list(document, key, node)?);
    }
    Ok(section)
}

fn read_list(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<ToolList> {
    let listed = read_strings(document, key, node)?;
    if listed.len() > ENTRIES_MAX {
        let message = format!("`{}` holds more than {ENTRIES_MAX} tools", key.get_ref());
        return Err(document.error(node.span(), message));
    }
    let read = |(text, span): (&str, _)| {
        let made = match text.len() {
            0..=Glob::BYTES_MAX => ToolGlob::new(text),
            _ => Err(format!("is longer than {} bytes", Glob::BYTES_MAX)),
        };
        made.map_err(|why| refuse(document, key, text, span, &why))
    };
    Ok(ToolList {
        globs: listed.into_iter().map(read).collect::<Result<_>>()?,
        at: Some(RuleRef {
            file: document.file.to_owned(),
            line: document.line(&key.span()),
        }),
    })
}
