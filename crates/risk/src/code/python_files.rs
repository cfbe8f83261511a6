//! Files that Python opens: those whose names are written in it, and whether there may be others.

use tree_sitter::{Node, Tree};

use super::python::collect;
use super::python_fold::{Folder, Names};
use super::{Effort, FileNames, each, parts};

/// Modules that open no file by a name that is given to them.
const PURE: &[&str] = &[
    "__future__",
    "abc",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "fnmatch",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "itertools",
    "json",
    "math",
    "numbers",
    "operator",
    "os",
    "os.path",
    "pprint",
    "random",
    "re",
    "statistics",
    "string",
    "struct",
    "textwrap",
    "time",
    "typing",
    "unicodedata",
    "urllib.parse",
];

/// Functions that only work on names, and those that are told one.
const OF_NAMES: &[&str] = &[
    "os.environ.get",
    "os.fspath",
    "os.getcwd",
    "os.getenv",
    "os.path.basename",
    "os.path.dirname",
    "os.path.isabs",
    "os.path.join",
    "os.path.normpath",
    "os.path.split",
    "os.path.splitext",
];
const OF_FILES: &[&str] = &[
    "open",
    "os.lstat",
    "os.makedirs",
    "os.mkdir",
    "os.path.exists",
    "os.path.getmtime",
    "os.path.getsize",
    "os.path.isdir",
    "os.path.isfile",
    "os.stat",
];

pub(super) fn files(code: &str, tree: &Tree) -> FileNames {
    let mut folder = Folder {
        code,
        names: Names::default(),
        effort: Effort::new(),
    };
    each(tree, |node, _| collect(&mut folder, node));
    let mut found = FileNames {
        others: tree.root_node().has_error(),
        ..FileNames::default()
    };
    each(tree, |node, parent| {
        look(&folder, node, parent, &mut found);
    });
    found.others |= folder.effort.is_spent();
    found
}

fn look(folder: &Folder<'_>, node: Node<'_>, parent: Option<Node<'_>>, found: &mut FileNames) {
    match node.kind() {
        "import_statement" => {
            for name in parts(node, 256) {
                let path = name.child_by_field_name("name").unwrap_or(name);
                found.others |= !PURE.contains(&folder.text(path));
            }
        }
        "import_from_statement" => {
            let from = node.child_by_field_name("module_name");
            let from = from.map(|it| folder.text(it)).unwrap_or_default();
            // What is taken out of `os` goes by another name.
            found.others |= !PURE.contains(&from) || from.starts_with("os");
        }
        "call" => called(folder, node, found),
        "identifier" => {
            let name = folder.text(node);
            let is = |field| parent.and_then(|it| it.child_by_field_name(field)) == Some(node);
            let only_called = parent.is_some_and(|it| it.kind() == "call") && is("function");
            let only_a_name = is("attribute") || is("name");
            found.others |= !name.is_ascii() || (name == "open" && !only_called && !only_a_name);
        }
        "attribute" => {
            // A function of `os` that is not called here may be anywhere.
            let called = parent.is_some_and(|it| {
                it.kind() == "attribute"
                    || (it.kind() == "call" && it.child_by_field_name("function") == Some(node))
            });
            let path = folder.path(node, 0).unwrap_or_default();
            let plain = [
                "os.environ",
                "os.sep",
                "os.linesep",
                "os.curdir",
                "os.pardir",
            ];
            found.others |= path.starts_with("os.") && !called && !plain.contains(&path.as_str());
        }
        "string" | "concatenated_string" | "binary_operator" => {
            if let Some(text) = folder.fold(node, 0) {
                found.literal(&text);
            }
        }
        _ => {}
    }
}

fn called(folder: &Folder<'_>, node: Node<'_>, found: &mut FileNames) {
    let function = node.child_by_field_name("function");
    let Some(path) = function.and_then(|it| folder.path(it, 0)) else {
        return;
    };
    if OF_FILES.contains(&path.as_str()) {
        let given = folder.arguments(node).first().copied();
        let given = given.or_else(|| folder.keyword(node, "file"));
        match given.and_then(|it| folder.fold(it, 0)) {
            Some(text) => found.name(text),
            None => found.others = true,
        }
    } else if path.starts_with("os.") && !OF_NAMES.contains(&path.as_str()) {
        found.others = true;
    }
}
