//! Texts that a Python program puts together from constants, and what its names stand for.

use std::collections::HashMap;

use tree_sitter::Node;

use super::decode::{self, LONGEST};
use super::{Effort, FOLLOWED, parts, slice};

#[derive(Default)]
pub(super) struct Names {
    /// What a name stands for: `o` for `os`.
    pub(super) paths: HashMap<String, String>,
    /// None: assigned more than once.
    pub(super) texts: HashMap<String, Option<String>>,
    /// Modules whose names were all imported.
    pub(super) wild: Vec<String>,
}

pub(super) struct Folder<'c> {
    pub(super) code: &'c str,
    pub(super) names: Names,
    pub(super) effort: Effort,
}

impl<'c> Folder<'c> {
    pub(super) fn text(&self, node: Node<'_>) -> &'c str {
        slice(self.code, node)
    }

    pub(super) fn arguments<'t>(&self, call: Node<'t>) -> Vec<Node<'t>> {
        let list = call.child_by_field_name("arguments");
        let nodes = list.map(|it| parts(it, 64)).unwrap_or_default();
        let positional = |it: &Node<'_>| it.kind() != "keyword_argument" && it.kind() != "comment";
        nodes.into_iter().filter(positional).collect()
    }

    pub(super) fn keyword<'t>(&self, call: Node<'t>, name: &str) -> Option<Node<'t>> {
        let nodes = parts(call.child_by_field_name("arguments")?, 64);
        let named = |it: &Node<'_>| {
            it.kind() == "keyword_argument"
                && it
                    .child_by_field_name("name")
                    .is_some_and(|it| self.text(it) == name)
        };
        nodes.into_iter().find(named)?.child_by_field_name("value")
    }

    /// `os.system`, for whatever spelling of it.
    pub(super) fn path(&self, node: Node<'_>, depth: usize) -> Option<String> {
        if depth > FOLLOWED || !self.effort.step(depth) {
            return None;
        }
        let deeper = |node: Node<'_>| self.path(node, depth + 1);
        let found = match node.kind() {
            "identifier" => {
                let name = self.text(node);
                match self.names.paths.get(name) {
                    Some(path) => path.clone(),
                    None => name.to_owned(),
                }
            }
            "attribute" => {
                let object = deeper(node.child_by_field_name("object")?)?;
                let attribute = self.text(node.child_by_field_name("attribute")?);
                format!("{object}.{attribute}")
            }
            "parenthesized_expression" => deeper(node.named_child(0)?)?,
            "named_expression" => deeper(node.child_by_field_name("value")?)?,
            "await" => deeper(node.named_child(0)?)?,
            "call" => {
                let function = deeper(node.child_by_field_name("function")?)?;
                let arguments = self.arguments(node);
                match function.as_str() {
                    "getattr" | "builtins.getattr" => {
                        let object = deeper(*arguments.first()?)?;
                        let name = self.fold(*arguments.get(1)?, depth + 1)?;
                        format!("{object}.{name}")
                    }
                    "__import__"
                    | "importlib.import_module"
                    | "importlib.__import__"
                    | "builtins.__import__" => self.fold(*arguments.first()?, depth + 1)?,
                    "vars" if !arguments.is_empty() => {
                        format!("{}.__dict__", deeper(*arguments.first()?)?)
                    }
                    _ => format!("{function}()"),
                }
            }
            "subscript" => {
                let object = deeper(node.child_by_field_name("value")?)?;
                let key = self.fold(node.child_by_field_name("subscript")?, depth + 1)?;
                table(&object, &key)?
            }
            _ => return None,
        };
        (found.len() <= 256).then_some(found)
    }

    /// The text that an expression of constants makes.
    pub(super) fn fold(&self, node: Node<'_>, depth: usize) -> Option<String> {
        if depth > FOLLOWED || !self.effort.step(depth) {
            return None;
        }
        let deeper = |node: Node<'_>| self.fold(node, depth + 1);
        let text = match node.kind() {
            "string" => self.string(node, depth)?,
            "concatenated_string" => {
                let all: Option<Vec<String>> = parts(node, 256).into_iter().map(deeper).collect();
                all?.concat()
            }
            "identifier" => self.names.texts.get(self.text(node))?.clone()?,
            "parenthesized_expression" => deeper(node.named_child(0)?)?,
            "binary_operator" => {
                let left = node.child_by_field_name("left")?;
                let right = node.child_by_field_name("right")?;
                match self.text(node.child_by_field_name("operator")?) {
                    "+" => self.sum(node, depth)?,
                    "*" => {
                        let times = decode::integer(self.text(right))?;
                        let text = deeper(left)?;
                        let times = usize::try_from(times).ok()?;
                        (times.saturating_mul(text.len()) <= LONGEST).then(|| text.repeat(times))?
                    }
                    "%" => {
                        let pattern = deeper(left)?;
                        let values = match right.kind() {
                            "tuple" => parts(right, 64),
                            _ => vec![right],
                        };
                        self.fill(&pattern, "%s", &values, depth)?
                    }
                    _ => return None,
                }
            }
            "subscript" => {
                let subscript = node.child_by_field_name("subscript")?;
                let value = deeper(node.child_by_field_name("value")?)?;
                let plain: String = self.text(subscript).split_whitespace().collect();
                if plain != "::-1" {
                    return None;
                }
                value.chars().rev().collect()
            }
            "call" => self.called(node, depth)?,
            _ => return None,
        };
        (text.len() <= LONGEST).then_some(text)
    }

    /// Long sums nest to the left; they are walked, not recursed into.
    fn sum(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let mut terms = Vec::new();
        let mut at = node;
        while at.kind() == "binary_operator" && terms.len() < 256 {
            if self.text(at.child_by_field_name("operator")?) != "+" {
                break;
            }
            terms.push(at.child_by_field_name("right")?);
            at = at.child_by_field_name("left")?;
        }
        terms.push(at);
        let fold = |it: Node<'_>| self.fold(it, depth + 1);
        let texts: Option<Vec<String>> = terms.into_iter().rev().map(fold).collect();
        Some(texts?.concat())
    }

    fn string(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let mut text = String::new();
        let mut raw = false;
        for part in parts(node, 256) {
            match part.kind() {
                "string_start" => raw = self.text(part).contains(['r', 'R']),
                "string_content" if raw => text.push_str(self.text(part)),
                "string_content" => text.push_str(&decode::unescape(self.text(part))),
                "interpolation" => {
                    let inner = part.child_by_field_name("expression")?;
                    text.push_str(&self.fold(inner, depth + 1)?);
                }
                _ => {}
            }
        }
        Some(text)
    }

    fn fill(&self, pattern: &str, hole: &str, values: &[Node<'_>], depth: usize) -> Option<String> {
        let mut text = pattern.to_owned();
        for value in values {
            let value = self.fold(*value, depth + 1)?;
            text = text.replacen(hole, &value, 1);
        }
        Some(text)
    }

    fn called(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let function = node.child_by_field_name("function")?;
        let arguments = self.arguments(node);
        let deeper = |node: Node<'_>| self.fold(node, depth + 1);
        let first = arguments.first().copied();
        let path = self.path(function, depth + 1);
        match path.as_deref() {
            Some("chr") => {
                let number = decode::integer(self.text(first?))?;
                return char::from_u32(number).map(String::from);
            }
            Some(
                "str" | "bytes.fromhex" | "bytearray.fromhex" | "binascii.unhexlify" | "bytes"
                | "bytearray",
            ) => {
                if let Some("list" | "tuple") = first.map(|it| it.kind()) {
                    return self.characters(first?);
                }
                let text = deeper(first?)?;
                let hexadecimal = path
                    .as_deref()
                    .is_some_and(|it| it.ends_with("hex") || it.ends_with("hexlify"));
                return if hexadecimal {
                    decode::hex(&text)
                } else {
                    Some(text)
                };
            }
            Some(
                "base64.b64decode"
                | "base64.urlsafe_b64decode"
                | "base64.standard_b64decode"
                | "base64.decodebytes"
                | "binascii.a2b_base64",
            ) => return decode::base64(&deeper(first?)?),
            Some("codecs.decode" | "codecs.encode") => {
                let text = deeper(first?)?;
                let codec = deeper(*arguments.get(1)?)?;
                return match codec.replace(['-', '_'], "").as_str() {
                    "rot13" => Some(decode::rot13(&text)),
                    "hex" | "hexcodec" => decode::hex(&text),
                    "base64" => decode::base64(&text),
                    _ => Some(text),
                };
            }
            _ => {}
        }
        if function.kind() != "attribute" {
            return None;
        }
        let object = function.child_by_field_name("object")?;
        let method = self.text(function.child_by_field_name("attribute")?);
        match method {
            "join" => {
                let separator = deeper(object)?;
                let list = first?;
                match list.kind() {
                    "list" | "tuple" | "set" => {
                        let all: Option<Vec<String>> =
                            parts(list, 256).into_iter().map(deeper).collect();
                        Some(all?.join(&separator))
                    }
                    // `map(chr, […])`
                    "call" => {
                        let inner = self.arguments(list);
                        let name = self.path(list.child_by_field_name("function")?, depth + 1)?;
                        match (name.as_str(), inner.as_slice()) {
                            ("map", [function, list]) if self.text(*function) == "chr" => {
                                self.characters(*list)
                            }
                            ("reversed", [text]) => Some(deeper(*text)?.chars().rev().collect()),
                            _ => None,
                        }
                    }
                    _ => Some(deeper(list)?),
                }
            }
            "format" => self.fill(&deeper(object)?, "{}", &arguments, depth),
            "decode" | "encode" | "strip" => {
                let text = deeper(object)?;
                let codec = first.and_then(deeper).unwrap_or_default();
                Some(match codec.replace(['-', '_'], "").as_str() {
                    "rot13" => decode::rot13(&text),
                    "hex" => decode::hex(&text)?,
                    "base64" => decode::base64(&text)?,
                    _ => text,
                })
            }
            "lower" => Some(deeper(object)?.to_lowercase()),
            "upper" => Some(deeper(object)?.to_uppercase()),
            "replace" => {
                let (from, to) = (deeper(first?)?, deeper(*arguments.get(1)?)?);
                Some(deeper(object)?.replace(&from, &to))
            }
            _ => None,
        }
    }

    fn characters(&self, list: Node<'_>) -> Option<String> {
        let character = |it: Node<'_>| char::from_u32(decode::integer(self.text(it))?);
        parts(list, 256).into_iter().map(character).collect()
    }
}

/// What a key means in one of the tables of names that Python keeps.
pub(super) fn table(object: &str, key: &str) -> Option<String> {
    match object {
        "globals()"
        | "locals()"
        | "vars()"
        | "__builtins__"
        | "builtins"
        | "sys.modules"
        | "__builtins__.__dict__"
        | "builtins.__dict__" => Some(key.to_owned()),
        _ => {
            let owner = object.strip_suffix(".__dict__")?;
            Some(format!("{owner}.{key}"))
        }
    }
}

/// Whether an expression is one of those tables.
pub(super) fn is_table(object: &str) -> bool {
    table(object, "x").is_some()
}
