//! Signals of Python.

use tree_sitter::{Node, Tree};

use crate::signal::*;

use super::python_fold::{Folder, Names, is_table};
use super::python_names::{self as names, PATHS, meaning, module};
use super::{Effort, Sink, each, parts};

pub(super) fn walk(code: &str, tree: &Tree, sink: &mut Sink<'_>) {
    let mut folder = Folder {
        code,
        names: Names::default(),
        effort: Effort::new(),
    };
    each(tree, |node, _| collect(&mut folder, node));
    each(tree, |node, parent| look(&folder, node, parent, sink));
    if folder.effort.is_spent() {
        sink.add(TOO_LARGE, tree.root_node());
    }
}

/// First what names stand for.
pub(super) fn collect(folder: &mut Folder<'_>, node: Node<'_>) {
    match node.kind() {
        "import_statement" => {
            for name in parts(node, 256) {
                if let (Some(path), Some(alias)) = (
                    name.child_by_field_name("name"),
                    name.child_by_field_name("alias"),
                ) {
                    let (path, alias) =
                        (folder.text(path).to_owned(), folder.text(alias).to_owned());
                    folder.names.paths.insert(alias, path);
                }
            }
        }
        "import_from_statement" => {
            let Some(from) = node.child_by_field_name("module_name") else {
                return;
            };
            let from = folder.text(from).to_owned();
            for name in parts(node, 256).into_iter().skip(1) {
                match name.kind() {
                    "aliased_import" => {
                        let (Some(path), Some(alias)) = (
                            name.child_by_field_name("name"),
                            name.child_by_field_name("alias"),
                        ) else {
                            continue;
                        };
                        let (path, alias) = (folder.text(path), folder.text(alias).to_owned());
                        folder.names.paths.insert(alias, format!("{from}.{path}"));
                    }
                    "dotted_name" => {
                        let name = folder.text(name).to_owned();
                        folder
                            .names
                            .paths
                            .insert(name.clone(), format!("{from}.{name}"));
                    }
                    "wildcard_import" => folder.names.wild.push(from.clone()),
                    _ => {}
                }
            }
        }
        "assignment" => {
            let (Some(left), Some(right)) = (
                node.child_by_field_name("left"),
                node.child_by_field_name("right"),
            ) else {
                return;
            };
            match (left.kind(), right.kind()) {
                ("pattern_list" | "tuple_pattern", "expression_list" | "tuple") => {
                    for (name, value) in parts(left, 64).into_iter().zip(parts(right, 64)) {
                        assign(folder, name, value);
                    }
                }
                _ => assign(folder, left, last_value(right)),
            }
        }
        "named_expression" => {
            if let (Some(name), Some(value)) = (
                node.child_by_field_name("name"),
                node.child_by_field_name("value"),
            ) {
                assign(folder, name, value);
            }
        }
        _ => {}
    }
}

/// `a = b = value`
fn last_value(mut node: Node<'_>) -> Node<'_> {
    for _ in 0..16 {
        match node.child_by_field_name("right") {
            Some(right) if node.kind() == "assignment" => node = right,
            _ => break,
        }
    }
    node
}

fn assign(folder: &mut Folder<'_>, name: Node<'_>, value: Node<'_>) {
    if name.kind() != "identifier" {
        return;
    }
    let name = folder.text(name).to_owned();
    let text = folder.fold(value, 0);
    match folder.names.texts.get(&name) {
        Some(Some(before)) if Some(before) != text.as_ref() => {
            folder.names.texts.insert(name.clone(), None);
        }
        Some(_) => {}
        None => {
            if text.is_some() {
                folder.names.texts.insert(name.clone(), text);
            }
        }
    }
    // A name that once stood for something dangerous keeps standing for it.
    let dangerous =
        |it: &str| meaning(it).is_some() || module(it).is_some() || is_table(it) || it == "getattr";
    if let Some(path) = folder.path(value, 0)
        && dangerous(&path)
        && path != name
    {
        folder.names.paths.insert(name, path);
    }
}

fn look(folder: &Folder<'_>, node: Node<'_>, parent: Option<Node<'_>>, sink: &mut Sink<'_>) {
    match node.kind() {
        "import_statement" => {
            for name in parts(node, 256) {
                let path = name.child_by_field_name("name").unwrap_or(name);
                if let Some(kind) = names::imported(folder.text(path)) {
                    sink.add(kind, name);
                }
            }
        }
        "import_from_statement" => imported(folder, node, sink),
        "identifier" => identifier(folder, node, parent, sink),
        "attribute" => {
            let path = folder.path(node, 0).or_else(|| {
                let last = node.child_by_field_name("attribute")?;
                Some(format!("?.{}", folder.text(last)))
            });
            if let Some(kind) = path.as_deref().and_then(meaning) {
                sink.add(kind, node);
            }
        }
        "call" => called(folder, node, sink),
        "subscript" => subscript(folder, node, sink),
        "string" => {
            let text = folder.fold(node, 0);
            let built = parts(node, 8)
                .iter()
                .any(|it| it.kind() == "interpolation" || it.named_child_count() > 0);
            let raw = folder.text(node);
            sink.text(text.as_deref().unwrap_or(raw), built, node);
        }
        "concatenated_string" => {
            if let Some(text) = folder.fold(node, 0) {
                sink.text(&text, true, node);
            }
        }
        "binary_operator" => {
            let inner = parent.is_some_and(|it| it.kind() == "binary_operator");
            if !inner && let Some(text) = folder.fold(node, 0) {
                sink.text(&text, true, node);
            }
        }
        "exec_statement" => sink.add(DYNAMIC_EVALUATION, node),
        _ => {}
    }
}

fn imported(folder: &Folder<'_>, node: Node<'_>, sink: &mut Sink<'_>) {
    let Some(from) = node.child_by_field_name("module_name") else {
        return;
    };
    let from = folder.text(from);
    if let Some(kind) = names::imported(from) {
        sink.add(kind, node);
    }
    for name in parts(node, 256).into_iter().skip(1) {
        let path = name.child_by_field_name("name").unwrap_or(name);
        if let Some(kind) = meaning(&format!("{from}.{}", folder.text(path))) {
            sink.add(kind, name);
        }
    }
}

fn identifier(folder: &Folder<'_>, node: Node<'_>, parent: Option<Node<'_>>, sink: &mut Sink<'_>) {
    let Some(parent) = parent else { return };
    let is = |field: &str| parent.child_by_field_name(field) == Some(node);
    let only_a_name = match parent.kind() {
        "attribute" => is("attribute"),
        "keyword_argument" | "function_definition" | "class_definition" => is("name"),
        "dotted_name" | "aliased_import" | "parameters" => true,
        _ => false,
    };
    if only_a_name {
        return;
    }
    let name = folder.text(node);
    // Letters of other alphabets that Python takes for the same.
    let folded: String = name.chars().map(plain_letter).collect();
    let path = folder
        .names
        .paths
        .get(name)
        .map_or(folded.as_str(), String::as_str);
    if let Some(kind) = meaning(path) {
        sink.add(kind, node);
        if folded != name {
            sink.add(BUILT_NAME, node);
        }
    }
    for from in &folder.names.wild {
        if let Some(kind) = meaning(&format!("{from}.{name}"))
            && PATHS.iter().any(|it| it.0.ends_with(name))
        {
            sink.add(kind, node);
        }
    }
}

/// Mathematical and full-width letters count as plain ones in names.
fn plain_letter(letter: char) -> char {
    let code = u32::from(letter);
    let plain = match code {
        0xff21..=0xff3a => code - 0xff21 + 0x41,
        0xff41..=0xff5a => code - 0xff41 + 0x61,
        0x1d400..=0x1d6a3 => {
            let at = (code - 0x1d400) % 52;
            if at < 26 { 0x41 + at } else { 0x61 + at - 26 }
        }
        0xff3f => 0x5f,
        _ => return letter,
    };
    char::from_u32(plain).unwrap_or(letter)
}

fn called(folder: &Folder<'_>, node: Node<'_>, sink: &mut Sink<'_>) {
    let Some(function) = node.child_by_field_name("function") else {
        return;
    };
    let arguments = folder.arguments(node);
    let path = folder.path(function, 0);
    match path.as_deref() {
        Some("getattr" | "setattr" | "delattr" | "builtins.getattr") => {
            let name = arguments.get(1);
            match name.and_then(|it| folder.fold(*it, 0)) {
                None => sink.add(DYNAMIC_ATTRIBUTE, node),
                Some(text) => {
                    if text.starts_with("__") {
                        sink.add(DYNAMIC_ATTRIBUTE, node);
                    }
                    if let Some(kind) = folder.path(node, 0).as_deref().and_then(meaning) {
                        sink.add(kind, node);
                        sink.add(BUILT_NAME, node);
                    }
                }
            }
        }
        Some("open" | "io.open" | "codecs.open" | "gzip.open" | "builtins.open") => {
            opened(folder, node, arguments.get(1).copied(), sink);
        }
        Some("importlib.import_module" | "__import__") => {
            let name = arguments.first().and_then(|it| folder.fold(*it, 0));
            if let Some(kind) = name.as_deref().and_then(names::imported) {
                sink.add(kind, node);
            }
        }
        Some("shutil.rmtree") => {
            let target = arguments.first().and_then(|it| folder.fold(*it, 0));
            if target.as_deref().is_some_and(|it| {
                matches!(
                    it.trim_end_matches('/'),
                    "" | "~" | "/home" | "/etc" | "/usr" | "/var"
                )
            }) {
                sink.add(DESTROYS_ROOT, node);
            }
        }
        Some(path) if path.ends_with(".open") => {
            opened(folder, node, arguments.first().copied(), sink)
        }
        _ => {}
    }
    if let Some("eval" | "exec" | "compile") = path.as_deref() {
        let list = node
            .child_by_field_name("arguments")
            .map(|it| folder.text(it))
            .unwrap_or_default();
        let list = list.get(..list.floor_char_boundary(4096)).unwrap_or(list);
        let hidden = [
            "b64decode",
            "decompress",
            "fromhex",
            "rot13",
            "rot_13",
            "unhexlify",
            "marshal",
            "b85decode",
            "b32decode",
            "chr(",
            "[::-1]",
        ];
        if hidden.iter().any(|it| list.contains(it)) {
            sink.add(ENCODED_PROGRAM, node);
        }
    }
    // A call of something that was itself computed: `table[…](…)`, `getattr(…)(…)`.
    let kind = path.as_deref().and_then(meaning);
    if let Some(kind) = kind
        && !matches!(function.kind(), "identifier" | "attribute")
    {
        sink.add(kind, node);
    }
    if let Some(text) = folder.fold(node, 0) {
        sink.text(&text, true, node);
    }
}

fn opened(folder: &Folder<'_>, node: Node<'_>, mode: Option<Node<'_>>, sink: &mut Sink<'_>) {
    let mode = folder.keyword(node, "mode").or(mode);
    let writes = match mode.map(|it| folder.fold(it, 0)) {
        None => false,
        Some(None) => true,
        Some(Some(mode)) => mode.contains(['w', 'a', 'x', '+']),
    };
    sink.add(if writes { FILE_WRITE } else { FILE_READ }, node);
}

fn subscript(folder: &Folder<'_>, node: Node<'_>, sink: &mut Sink<'_>) {
    let value = node.child_by_field_name("value");
    let Some(object) = value.and_then(|it| folder.path(it, 0)) else {
        return;
    };
    if !is_table(&object) {
        return;
    }
    match folder.path(node, 0) {
        None => sink.add(DYNAMIC_ATTRIBUTE, node),
        Some(path) => {
            if let Some(kind) = meaning(&path).or_else(|| module(&path)) {
                sink.add(kind, node);
                sink.add(BUILT_NAME, node);
            }
        }
    }
}
