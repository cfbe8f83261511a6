//! JSON in a configuration: as a text, or as a table.

use glovebox_model::Result;
use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use crate::config::document::{Document, Key, Node};

const BYTES_MAX: usize = 64 << 10;

/// A text is parsed; a table stands for an object with the same keys.
pub(super) fn read_json(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Value> {
    match node.get_ref() {
        DeValue::String(text) => parse(document, key, node, text),
        DeValue::Table(_) => of_node(document, key, node),
        _ => Err(document.expected(key, node, "a table, or JSON in a string")),
    }
}

pub(super) fn parse(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    text: &str,
) -> Result<Value> {
    let refuse = |why: String| document.error(node.span(), format!("`{}` {why}", key.get_ref()));
    if text.len() > BYTES_MAX {
        return Err(refuse(format!("is longer than {BYTES_MAX} bytes")));
    }
    serde_json::from_str(text).map_err(|why| refuse(format!("is not JSON: {why}")))
}

fn of_node(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Value> {
    let odd = || document.expected(key, node, "something that JSON can say");
    Ok(match node.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(it) => (*it).into(),
        DeValue::Integer(number) if number.radix() == 10 => {
            let whole: i64 = number.as_str().parse().map_err(|_| odd())?;
            whole.into()
        }
        DeValue::Float(number) => {
            let decimal = number.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(decimal.ok_or_else(odd)?)
        }
        DeValue::Array(list) => {
            let items = list.iter().map(|item| of_node(document, key, item));
            Value::Array(items.collect::<Result<_>>()?)
        }
        DeValue::Table(table) => {
            let entry = |(name, item): (&Key<'_>, &Node<'_>)| {
                let value = of_node(document, name, item)?;
                Ok((name.get_ref().to_string(), value))
            };
            Value::Object(table.iter().map(entry).collect::<Result<Map<_, _>>>()?)
        }
        DeValue::Integer(_) | DeValue::Datetime(_) => return Err(odd()),
    })
}
