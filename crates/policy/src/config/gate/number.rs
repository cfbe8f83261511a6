//! Decimal numbers of gates.

use glovebox_gate::Finite;
use glovebox_model::Result;
use toml::de::DeValue;

use crate::config::document::{Document, Key, Node};

pub(super) fn read_decimal(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Finite> {
    let number = match node.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    };
    number
        .and_then(Finite::new)
        .ok_or_else(|| document.expected(key, node, "a number such as `0.8`"))
}
