//! Texts that a JavaScript program puts together from constants, and what its names stand for.

use std::collections::HashMap;

use tree_sitter::Node;

use super::decode::{self, LONGEST};
use super::{Effort, FOLLOWED, parts, slice};

pub(super) struct Folder<'c> {
    pub(super) code: &'c str,
    pub(super) paths: HashMap<String, String>,
    /// None: assigned more than once.
    pub(super) texts: HashMap<String, Option<String>>,
    pub(super) effort: Effort,
}

/// The object that holds all global names.
const GLOBALS: [&str; 8] = [
    "globalThis",
    "global",
    "window",
    "self",
    "top",
    "this",
    "frames",
    "parent",
];

pub(super) fn is_global(path: &str) -> bool {
    GLOBALS.contains(&path)
}

impl<'c> Folder<'c> {
    pub(super) fn text(&self, node: Node<'_>) -> &'c str {
        slice(self.code, node)
    }

    /// A name, with its escapes read.
    pub(super) fn name(&self, node: Node<'_>) -> String {
        let name = self.text(node);
        if name.contains('\\') {
            decode::unescape(name)
        } else {
            name.to_owned()
        }
    }

    pub(super) fn arguments<'t>(&self, call: Node<'t>) -> Vec<Node<'t>> {
        match call.child_by_field_name("arguments") {
            Some(list) if list.kind() == "arguments" => parts(list, 256),
            // A template after a function.
            Some(template) => vec![template],
            None => Vec::new(),
        }
    }

    /// `child_process.exec`, for whatever spelling of it. Modules go by their names.
    pub(super) fn path(&self, node: Node<'_>, depth: usize) -> Option<String> {
        if depth > FOLLOWED || !self.effort.step(depth) {
            return None;
        }
        let deeper = |node: Node<'_>| self.path(node, depth + 1);
        let found = match node.kind() {
            "identifier" => {
                let name = self.name(node);
                self.paths.get(&name).cloned().unwrap_or(name)
            }
            "this" | "import" => self.text(node).to_owned(),
            "member_expression" => {
                let object = deeper(node.child_by_field_name("object")?)?;
                let property = self.name(node.child_by_field_name("property")?);
                member(&object, &property)
            }
            "subscript_expression" => {
                let object = deeper(node.child_by_field_name("object")?)?;
                let index = self.fold(node.child_by_field_name("index")?, depth + 1)?;
                member(&object, &index)
            }
            "parenthesized_expression" => deeper(node.named_child(0)?)?,
            "sequence_expression" => {
                let last = node.named_child(
                    u32::try_from(node.named_child_count())
                        .ok()?
                        .checked_sub(1)?,
                )?;
                deeper(last)?
            }
            "await_expression"
            | "non_null_expression"
            | "as_expression"
            | "satisfies_expression" => deeper(node.named_child(0)?)?,
            "call_expression" => {
                let function = deeper(node.child_by_field_name("function")?)?;
                let first = self.arguments(node).first().copied();
                match function.as_str() {
                    "require"
                    | "import"
                    | "module.require"
                    | "process.mainModule.require"
                    | "process.getBuiltinModule"
                    | "createRequire()" => {
                        let name = self.fold(first?, depth + 1)?;
                        name.strip_prefix("node:").unwrap_or(&name).to_owned()
                    }
                    // `f.bind(x)` is `f`.
                    _ => match function.strip_suffix(".bind") {
                        Some(bound) => bound.to_owned(),
                        None => format!("{function}()"),
                    },
                }
            }
            "new_expression" => {
                let class = deeper(node.child_by_field_name("constructor")?)?;
                format!("{class}()")
            }
            "string" | "template_string" => "''".to_owned(),
            "array" => "[]".to_owned(),
            "object" => "{}".to_owned(),
            "number" => "0".to_owned(),
            "function_expression" | "arrow_function" => "function".to_owned(),
            _ => return None,
        };
        (found.len() <= 256).then_some(found)
    }

    pub(super) fn fold(&self, node: Node<'_>, depth: usize) -> Option<String> {
        if depth > FOLLOWED || !self.effort.step(depth) {
            return None;
        }
        let deeper = |node: Node<'_>| self.fold(node, depth + 1);
        let text = match node.kind() {
            "string" => {
                let raw = self.text(node);
                let inner = raw.get(1..raw.len().checked_sub(1)?)?;
                decode::unescape(inner)
            }
            "template_string" => {
                let mut text = String::new();
                for part in parts(node, 256) {
                    match part.kind() {
                        "template_substitution" => text.push_str(&deeper(part.named_child(0)?)?),
                        _ => text.push_str(&decode::unescape(self.text(part))),
                    }
                }
                text
            }
            "identifier" => self.texts.get(&self.name(node))?.clone()?,
            "number" => self.text(node).to_owned(),
            "parenthesized_expression" => deeper(node.named_child(0)?)?,
            "binary_expression" => self.sum(node, depth)?,
            "call_expression" => self.called(node, depth)?,
            _ => return None,
        };
        (text.len() <= LONGEST).then_some(text)
    }

    fn sum(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let mut terms = Vec::new();
        let mut at = node;
        while at.kind() == "binary_expression" && terms.len() < 256 {
            if self.text(at.child_by_field_name("operator")?) != "+" {
                return None;
            }
            terms.push(at.child_by_field_name("right")?);
            at = at.child_by_field_name("left")?;
        }
        terms.push(at);
        let fold = |it: Node<'_>| self.fold(it, depth + 1);
        let texts: Option<Vec<String>> = terms.into_iter().rev().map(fold).collect();
        Some(texts?.concat())
    }

    fn called(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let function = node.child_by_field_name("function")?;
        let arguments = self.arguments(node);
        let deeper = |node: Node<'_>| self.fold(node, depth + 1);
        let first = arguments.first().copied();
        let path = self.path(function, depth + 1);
        match path.as_deref() {
            Some("String.fromCharCode" | "String.fromCodePoint") => {
                let character = |it: &Node<'_>| char::from_u32(decode::integer(self.text(*it))?);
                return arguments.iter().map(character).collect();
            }
            Some("atob") => return decode::base64(&deeper(first?)?),
            Some("unescape" | "decodeURIComponent" | "decodeURI") => {
                let text = deeper(first?)?;
                return Some(percent(&text));
            }
            Some("String") => return deeper(first?),
            Some("Buffer.from") => {
                let text = deeper(first?)?;
                return match arguments.get(1).and_then(|it| deeper(*it)).as_deref() {
                    Some("base64" | "base64url") => decode::base64(&text),
                    Some("hex") => decode::hex(&text),
                    _ => Some(text),
                };
            }
            _ => {}
        }
        if function.kind() != "member_expression" {
            return None;
        }
        let object = function.child_by_field_name("object")?;
        match self.text(function.child_by_field_name("property")?) {
            "toString" | "valueOf" | "trim" | "normalize" => deeper(object),
            "concat" => {
                let rest: Option<Vec<String>> = arguments.iter().map(|it| deeper(*it)).collect();
                Some(deeper(object)? + &rest?.concat())
            }
            "toLowerCase" => Some(deeper(object)?.to_lowercase()),
            "toUpperCase" => Some(deeper(object)?.to_uppercase()),
            "replace" | "replaceAll" => {
                let (from, to) = (deeper(first?)?, deeper(*arguments.get(1)?)?);
                Some(deeper(object)?.replace(&from, &to))
            }
            "join" => {
                let separator = first.and_then(deeper).unwrap_or_default();
                self.list(object, depth + 1).map(|it| it.join(&separator))
            }
            _ => None,
        }
    }

    fn list(&self, node: Node<'_>, depth: usize) -> Option<Vec<String>> {
        if depth > FOLLOWED || !self.effort.step(depth) {
            return None;
        }
        match node.kind() {
            "array" => parts(node, 256)
                .into_iter()
                .map(|it| self.fold(it, depth + 1))
                .collect(),
            "call_expression" => {
                let function = node.child_by_field_name("function")?;
                let object = function.child_by_field_name("object")?;
                match self.text(function.child_by_field_name("property")?) {
                    "reverse" => {
                        let mut list = self.list(object, depth + 1)?;
                        list.reverse();
                        Some(list)
                    }
                    "split" => {
                        let separator = self.fold(*self.arguments(node).first()?, depth + 1)?;
                        let text = self.fold(object, depth + 1)?;
                        Some(if separator.is_empty() {
                            text.chars().map(String::from).collect()
                        } else {
                            text.split(&separator).map(str::to_owned).collect()
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn member(object: &str, property: &str) -> String {
    if is_global(object) {
        return property.to_owned();
    }
    // `f.call(…)` and `f.apply(…)` are `f`.
    if matches!(property, "call" | "apply") && !object.is_empty() {
        return object.to_owned();
    }
    format!("{object}.{property}")
}

fn percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let raw = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        let pair = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match pair.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                at += 3;
            }
            None => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
