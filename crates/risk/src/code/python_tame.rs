//! Python that only reads and writes files. `os` is the way to the workspace's files and to other
//! programs: whoever names nothing of it but paths starts none.

use tree_sitter::{Node, Tree};

use super::{each, parts, slice};

/// Modules that start no program and load no code that is named to them.
const MODULES: &[&str] = &[
    "base64",
    "bisect",
    "collections",
    "copy",
    "csv",
    "datetime",
    "decimal",
    "difflib",
    "fnmatch",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "itertools",
    "json",
    "math",
    "os",
    "os.path",
    "random",
    "re",
    "sqlite3",
    "statistics",
    "string",
    "struct",
    "textwrap",
    "time",
    "unicodedata",
    "urllib.parse",
];

const OF_OS: &[&str] = &[
    "curdir", "environ", "fspath", "getcwd", "getenv", "linesep", "listdir", "lstat", "makedirs",
    "mkdir", "pardir", "path", "scandir", "sep", "stat", "walk",
];

/// Attributes that lead from one module into another, or to code of the host.
const LEADING: &[&str] = &[
    "os",
    "posix",
    "sys",
    "subprocess",
    "builtins",
    "importlib",
    "modules",
    "request",
    "load_extension",
    "enable_load_extension",
    // Modules keep what they import under its own name, and some under another.
    "abc",
    "ast",
    "bltns",
    "code",
    "codecs",
    "contextlib",
    "copyreg",
    "ctypes",
    "dis",
    "enum",
    "eval",
    "exec",
    "inspect",
    "io",
    "linecache",
    "logging",
    "multiprocessing",
    "pickle",
    "platform",
    "popen",
    "runpy",
    "shutil",
    "system",
    "tempfile",
    "threading",
    "tokenize",
    "types",
    "warnings",
    "weakref",
];

/// By these a name is reached that is not written.
const REACHING: &[&str] = &[
    "getattr",
    "setattr",
    "delattr",
    "vars",
    "globals",
    "locals",
    "breakpoint",
    "help",
    "eval",
    "exec",
];

/// Whether nothing is named in it that could start a program. Other signals are looked at apart.
pub(super) fn is_tame(code: &str, tree: &Tree) -> bool {
    let mut tame = !tree.root_node().has_error();
    each(tree, |node, parent| {
        tame &= is_tame_node(code, node, parent)
    });
    tame
}

fn is_tame_node(code: &str, node: Node<'_>, parent: Option<Node<'_>>) -> bool {
    match node.kind() {
        "import_statement" => {
            let plain =
                |it: &Node<'_>| it.kind() == "dotted_name" && MODULES.contains(&slice(code, *it));
            let names = parts(node, 256);
            names.len() == node.named_child_count() && names.iter().all(plain)
        }
        "import_from_statement" | "future_import_statement" => false,
        "attribute" => {
            let last = node.child_by_field_name("attribute");
            let last = last.map(|it| slice(code, it)).unwrap_or_default();
            !last.starts_with('_') && !LEADING.contains(&last)
        }
        "identifier" => {
            let name = slice(code, node);
            if name != "os" {
                // Letters of other alphabets may stand for plain ones.
                return name.is_ascii() && !REACHING.contains(&name);
            }
            parent.is_some_and(|parent| match parent.kind() {
                "dotted_name" => true,
                "attribute" if parent.child_by_field_name("object") == Some(node) => {
                    let used = parent.child_by_field_name("attribute");
                    used.is_some_and(|it| OF_OS.contains(&slice(code, it)))
                }
                _ => false,
            })
        }
        _ => true,
    }
}
