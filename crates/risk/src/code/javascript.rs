//! Signals of JavaScript and TypeScript.

use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use crate::signal::*;

use super::javascript_fold::{Folder, is_global};
use super::{Effort, Sink, Words, each, parts};

pub(super) const WORDS: Words = &[
    ("eval", DYNAMIC_EVALUATION),
    ("Function", DYNAMIC_EVALUATION),
    ("child_process", PROCESS_SPAWN),
    ("execSync", PROCESS_SPAWN),
    ("spawn", PROCESS_SPAWN),
    ("spawnSync", PROCESS_SPAWN),
    ("vm", DYNAMIC_EVALUATION),
    ("constructor", SANDBOX_ESCAPE),
    ("binding", PROCESS_BINDING),
    ("fs", FILE_SYSTEM),
    ("http", NETWORK_CLIENT),
    ("https", NETWORK_CLIENT),
    ("net", NETWORK_CLIENT),
    ("fetch", NETWORK_CLIENT),
    ("require", DYNAMIC_IMPORT),
    ("import", DYNAMIC_IMPORT),
    ("axios", NETWORK_CLIENT),
];

/// Names of the language and of the runtimes.
const BARE: &[(&str, SignalKind)] = &[
    ("eval", DYNAMIC_EVALUATION),
    ("Function", DYNAMIC_EVALUATION),
    ("execScript", DYNAMIC_EVALUATION),
    ("importScripts", DYNAMIC_EVALUATION),
    ("AsyncFunction", DYNAMIC_EVALUATION),
    ("GeneratorFunction", DYNAMIC_EVALUATION),
    ("fetch", NETWORK_CLIENT),
    ("XMLHttpRequest", NETWORK_CLIENT),
    ("WebSocket", NETWORK_CLIENT),
    ("EventSource", NETWORK_CLIENT),
    ("WebAssembly", NATIVE_CODE),
    ("Worker", DYNAMIC_EVALUATION),
    ("__non_webpack_require__", DYNAMIC_IMPORT),
];

const MODULES: &[(&str, SignalKind)] = &[
    ("child_process", PROCESS_SPAWN),
    ("cluster", PROCESS_SPAWN),
    ("execa", PROCESS_SPAWN),
    ("shelljs", PROCESS_SPAWN),
    ("cross-spawn", PROCESS_SPAWN),
    ("zx", PROCESS_SPAWN),
    ("node-pty", PROCESS_SPAWN),
    ("vm", DYNAMIC_EVALUATION),
    ("vm2", DYNAMIC_EVALUATION),
    ("repl", DYNAMIC_EVALUATION),
    ("worker_threads", DYNAMIC_EVALUATION),
    ("module", DYNAMIC_IMPORT),
    ("fs", FILE_SYSTEM),
    ("fs/promises", FILE_SYSTEM),
    ("fs-extra", FILE_SYSTEM),
    ("graceful-fs", FILE_SYSTEM),
    ("rimraf", FILE_REMOVE),
    ("del", FILE_REMOVE),
    ("http", NETWORK_CLIENT),
    ("https", NETWORK_CLIENT),
    ("http2", NETWORK_CLIENT),
    ("net", NETWORK_CLIENT),
    ("tls", NETWORK_CLIENT),
    ("dgram", NETWORK_CLIENT),
    ("dns", NETWORK_CLIENT),
    ("dns/promises", NETWORK_CLIENT),
    ("axios", NETWORK_CLIENT),
    ("node-fetch", NETWORK_CLIENT),
    ("got", NETWORK_CLIENT),
    ("request", NETWORK_CLIENT),
    ("undici", NETWORK_CLIENT),
    ("ws", NETWORK_CLIENT),
    ("superagent", NETWORK_CLIENT),
    ("socket.io-client", NETWORK_CLIENT),
    ("ssh2", NETWORK_CLIENT),
    ("node-serialize", DESERIALIZATION),
    ("serialize-javascript", DESERIALIZATION),
    ("v8", DESERIALIZATION),
    ("inspector", NATIVE_CODE),
    ("ffi-napi", NATIVE_CODE),
    ("bun:ffi", NATIVE_CODE),
    ("koffi", NATIVE_CODE),
    ("process", SYSTEM_MODULE),
    ("os", SANDBOX_PROBE),
    ("dockerode", CONTAINER_SOCKET),
    ("keytar", CREDENTIAL_PATH),
    ("sudo-prompt", PRIVILEGE),
];

const PATHS: &[(&str, SignalKind)] = &[
    ("process.binding", PROCESS_BINDING),
    ("process._linkedBinding", PROCESS_BINDING),
    ("process.dlopen", NATIVE_CODE),
    ("process.mainModule", DYNAMIC_IMPORT),
    ("process.kill", PROCESS_KILL),
    ("process.env", ENVIRONMENT_READ),
    ("process.getBuiltinModule", DYNAMIC_IMPORT),
    ("process.setuid", PRIVILEGE),
    ("process.setgid", PRIVILEGE),
    ("module.require", DYNAMIC_IMPORT),
    ("module.constructor", DYNAMIC_IMPORT),
    ("require.cache", DYNAMIC_IMPORT),
    ("require.main", DYNAMIC_IMPORT),
    ("require.extensions", DYNAMIC_IMPORT),
    ("Module._load", DYNAMIC_IMPORT),
    ("Deno.run", PROCESS_SPAWN),
    ("Deno.Command", PROCESS_SPAWN),
    ("Deno.dlopen", NATIVE_CODE),
    ("Deno.", FILE_SYSTEM),
    ("Bun.spawn", PROCESS_SPAWN),
    ("Bun.", FILE_SYSTEM),
    ("navigator.sendBeacon", NETWORK_CLIENT),
    ("child_process.", PROCESS_SPAWN),
    ("vm.", DYNAMIC_EVALUATION),
    ("fs.unlink", FILE_REMOVE),
    ("fs.rm", FILE_REMOVE),
    ("fs.rmdir", FILE_REMOVE),
    ("fs.promises.rm", FILE_REMOVE),
    ("fs.promises.unlink", FILE_REMOVE),
    ("fs/promises.rm", FILE_REMOVE),
    ("fs/promises.unlink", FILE_REMOVE),
    ("fs.write", FILE_WRITE),
    ("fs.append", FILE_WRITE),
    ("fs.createWriteStream", FILE_WRITE),
    ("fs.rename", FILE_RENAME),
    ("fs.chmod", PERMISSION_CHANGE),
    ("fs.chown", PERMISSION_CHANGE),
    ("fs.promises.write", FILE_WRITE),
    ("fs/promises.write", FILE_WRITE),
    ("document.cookie", CREDENTIAL_PATH),
    ("localStorage", CREDENTIAL_PATH),
    ("v8.deserialize", DESERIALIZATION),
    ("http.", NETWORK_CLIENT),
    ("https.", NETWORK_CLIENT),
    ("net.", NETWORK_CLIENT),
    ("axios.", NETWORK_CLIENT),
];

fn find(table: &[(&str, SignalKind)], name: &str) -> Option<SignalKind> {
    table
        .iter()
        .find(|(it, _)| *it == name)
        .map(|(_, kind)| *kind)
}

fn meaning(path: &str) -> Option<SignalKind> {
    if let Some(kind) = find(BARE, path) {
        return Some(kind);
    }
    if path.contains(".constructor.constructor") || path.ends_with(".__proto__.constructor") {
        return Some(SANDBOX_ESCAPE);
    }
    let fits = |it: &&(&str, SignalKind)| path.starts_with(it.0);
    let longest = PATHS.iter().filter(fits).max_by_key(|it| it.0.len());
    longest.map(|(_, kind)| *kind)
}

fn module(name: &str) -> Option<SignalKind> {
    let name = name.strip_prefix("node:").unwrap_or(name);
    if name.ends_with(".node") {
        return Some(NATIVE_CODE);
    }
    // `fs` and `fs/promises` are listed, subpaths of packages are not.
    find(MODULES, name).or_else(|| find(MODULES, name.split('/').next()?))
}

/// Modules of the runtime that do nothing of their own by being imported.
const LIBRARY: &[&str] = &[
    "assert",
    "async_hooks",
    "buffer",
    "console",
    "constants",
    "crypto",
    "diagnostics_channel",
    "events",
    "os",
    "path",
    "perf_hooks",
    "punycode",
    "querystring",
    "readline",
    "stream",
    "string_decoder",
    "timers",
    "tty",
    "url",
    "util",
    "zlib",
];

/// What importing it says. A module that nobody knows is code that is not in the request.
fn imported(name: &str) -> Option<SignalKind> {
    let plain = name.strip_prefix("node:").unwrap_or(name);
    let first = plain.split('/').next().unwrap_or(plain);
    module(name).or_else(|| (!LIBRARY.contains(&first)).then_some(SCRIPT_FILE))
}

pub(super) fn walk(code: &str, tree: &Tree, sink: &mut Sink<'_>) {
    let mut folder = Folder {
        code,
        paths: HashMap::new(),
        texts: HashMap::new(),
        effort: Effort::new(),
    };
    each(tree, |node, _| collect(&mut folder, node));
    each(tree, |node, parent| look(&folder, node, parent, sink));
    if folder.effort.is_spent() {
        sink.add(TOO_LARGE, tree.root_node());
    }
}

fn collect(folder: &mut Folder<'_>, node: Node<'_>) {
    let pair = |left: &str, right: &str| {
        Some((
            node.child_by_field_name(left)?,
            node.child_by_field_name(right)?,
        ))
    };
    match node.kind() {
        "variable_declarator" => {
            if let Some((name, value)) = pair("name", "value") {
                assign(folder, name, value);
            }
        }
        "assignment_expression" => {
            if let Some((left, right)) = pair("left", "right") {
                assign(folder, left, right);
            }
        }
        "import_statement" => {
            let Some(source) = node.child_by_field_name("source") else {
                return;
            };
            let Some(from) = folder.fold(source, 0) else {
                return;
            };
            let from = from.strip_prefix("node:").unwrap_or(&from).to_owned();
            for clause in parts(node, 8)
                .into_iter()
                .filter(|it| it.kind() == "import_clause")
            {
                for part in parts(clause, 8) {
                    bind_import(folder, part, &from);
                }
            }
        }
        _ => {}
    }
}

fn bind_import(folder: &mut Folder<'_>, part: Node<'_>, from: &str) {
    match part.kind() {
        "identifier" => {
            let name = folder.name(part);
            folder.paths.insert(name, from.to_owned());
        }
        "namespace_import" => {
            if let Some(name) = part.named_child(0) {
                let name = folder.name(name);
                folder.paths.insert(name, from.to_owned());
            }
        }
        "named_imports" => {
            for one in parts(part, 64) {
                let Some(name) = one.child_by_field_name("name") else {
                    continue;
                };
                let alias = one.child_by_field_name("alias").unwrap_or(name);
                let (name, alias) = (folder.name(name), folder.name(alias));
                folder.paths.insert(alias, format!("{from}.{name}"));
            }
        }
        _ => {}
    }
}

fn assign(folder: &mut Folder<'_>, name: Node<'_>, value: Node<'_>) {
    let path = folder.path(value, 0);
    if name.kind() == "object_pattern" {
        let Some(from) = path else { return };
        for part in parts(name, 64) {
            let (key, alias) = match part.kind() {
                "pair_pattern" => match (
                    part.child_by_field_name("key"),
                    part.child_by_field_name("value"),
                ) {
                    (Some(key), Some(value)) => (key, value),
                    _ => continue,
                },
                _ => (part, part),
            };
            let (key, alias) = (folder.name(key), folder.name(alias));
            let key = key.trim_matches(['\'', '"']).to_owned();
            let path = if is_global(&from) {
                key
            } else {
                format!("{from}.{key}")
            };
            folder.paths.insert(alias, path);
        }
        return;
    }
    if name.kind() != "identifier" {
        return;
    }
    let name = folder.name(name);
    let text = folder.fold(value, 0);
    match folder.texts.get(&name) {
        Some(Some(before)) if Some(before) != text.as_ref() => {
            folder.texts.insert(name.clone(), None);
        }
        Some(_) => {}
        None if text.is_some() => {
            folder.texts.insert(name.clone(), text);
        }
        None => {}
    }
    let matters = |it: &str| {
        meaning(it).is_some()
            || module(it).is_some()
            || is_global(it)
            || matches!(it, "require" | "process" | "module")
    };
    if let Some(path) = path
        && matters(&path)
        && path != name
    {
        folder.paths.insert(name, path);
    }
}

fn look(folder: &Folder<'_>, node: Node<'_>, parent: Option<Node<'_>>, sink: &mut Sink<'_>) {
    match node.kind() {
        "import_statement" | "export_statement" => {
            let source = node
                .child_by_field_name("source")
                .and_then(|it| folder.fold(it, 0));
            if let Some(kind) = source.as_deref().and_then(imported) {
                sink.add(kind, node);
            }
        }
        "identifier" | "shorthand_property_identifier" => identifier(folder, node, parent, sink),
        "member_expression" => {
            let path = folder.path(node, 0);
            if let Some(kind) = path.as_deref().and_then(meaning) {
                sink.add(kind, node);
            }
        }
        "subscript_expression" => subscript(folder, node, sink),
        "call_expression" | "new_expression" => called(folder, node, sink),
        "string" => {
            let text = folder.fold(node, 0);
            let raw = folder.text(node);
            let built = raw.contains('\\');
            sink.text(text.as_deref().unwrap_or(raw), built, node);
        }
        "template_string" => {
            let text = folder.fold(node, 0);
            let built = node.named_child_count() > 1;
            sink.text(text.as_deref().unwrap_or(folder.text(node)), built, node);
        }
        "binary_expression" => {
            let inner = parent.is_some_and(|it| it.kind() == "binary_expression");
            if !inner && let Some(text) = folder.fold(node, 0) {
                sink.text(&text, true, node);
            }
        }
        _ => {}
    }
}

fn identifier(folder: &Folder<'_>, node: Node<'_>, parent: Option<Node<'_>>, sink: &mut Sink<'_>) {
    let name = folder.name(node);
    let escaped = folder.text(node).contains('\\');
    let path = folder.paths.get(&name).unwrap_or(&name);
    let kind = find(BARE, path).or_else(|| {
        let aliased = folder.paths.contains_key(&name);
        aliased.then(|| meaning(path))?
    });
    if let Some(kind) = kind {
        sink.add(kind, node);
    }
    if escaped && (kind.is_some() || matches!(name.as_str(), "require" | "process")) {
        sink.add(BUILT_NAME, node);
    }
    // `require` that is not simply called may be called by another name.
    if name == "require" {
        let called = parent.is_some_and(|it| {
            matches!(it.kind(), "call_expression" | "member_expression")
                && (it.child_by_field_name("function") == Some(node)
                    || it.child_by_field_name("object") == Some(node))
        });
        if !called {
            sink.add(DYNAMIC_IMPORT, node);
        }
    }
}

fn called(folder: &Folder<'_>, node: Node<'_>, sink: &mut Sink<'_>) {
    let function = node
        .child_by_field_name("function")
        .or_else(|| node.child_by_field_name("constructor"));
    let Some(function) = function else { return };
    let arguments = folder.arguments(node);
    let first = arguments.first().copied();
    let path = folder.path(function, 0);
    match path.as_deref() {
        Some(
            "require"
            | "import"
            | "module.require"
            | "process.getBuiltinModule"
            | "process.mainModule.require",
        ) => {
            let constant = first.is_some_and(|it| it.kind() == "string");
            match first.and_then(|it| folder.fold(it, 0)) {
                None => sink.add(DYNAMIC_IMPORT, node),
                Some(name) => {
                    if let Some(kind) = imported(&name) {
                        sink.add(kind, node);
                        if !constant && kind != SCRIPT_FILE {
                            sink.add(BUILT_NAME, node);
                        }
                    }
                    if ["data:", "http:", "https:"]
                        .iter()
                        .any(|it| name.starts_with(it))
                    {
                        sink.add(DYNAMIC_EVALUATION, node);
                    }
                }
            }
            // A module is usually imported where everybody sees it.
            if path.as_deref() == Some("import") && !constant {
                sink.add(DYNAMIC_IMPORT, node);
            }
        }
        Some("setTimeout" | "setInterval" | "setImmediate") => {
            let text = first.is_some_and(|it| {
                matches!(
                    it.kind(),
                    "string" | "template_string" | "binary_expression"
                )
            });
            if text {
                sink.add(DYNAMIC_EVALUATION, node);
            }
        }
        Some(
            "Reflect.get"
            | "Reflect.apply"
            | "Reflect.construct"
            | "Object.getOwnPropertyDescriptor",
        ) => {
            let target = first.and_then(|it| folder.path(it, 0));
            let key = arguments.get(1).and_then(|it| folder.fold(*it, 0));
            match (target, key) {
                (Some(target), Some(key)) => {
                    let path = if is_global(&target) {
                        key
                    } else {
                        format!("{target}.{key}")
                    };
                    if let Some(kind) = meaning(&path) {
                        sink.add(kind, node);
                    }
                }
                (Some(target), None) if is_global(&target) || target == "process" => {
                    sink.add(DYNAMIC_ATTRIBUTE, node);
                }
                _ => {}
            }
        }
        Some(path) if path.ends_with(".constructor") => sink.add(SANDBOX_ESCAPE, node),
        Some("atob" | "unescape") => sink.add(DECODES, node),
        _ => {}
    }
    if let Some("eval" | "Function") = path.as_deref() {
        let list = node
            .child_by_field_name("arguments")
            .map(|it| folder.text(it))
            .unwrap_or_default();
        let list = list.get(..list.floor_char_boundary(4096)).unwrap_or(list);
        let hidden = [
            "atob",
            "base64",
            "'hex'",
            "fromCharCode",
            "unescape",
            "reverse()",
            "decodeURI",
        ];
        if hidden.iter().any(|it| list.contains(it)) {
            sink.add(ENCODED_PROGRAM, node);
        }
    }
    if !matches!(function.kind(), "identifier" | "member_expression")
        && let Some(kind) = path.as_deref().and_then(meaning)
    {
        sink.add(kind, node);
    }
    if let Some(text) = folder.fold(node, 0) {
        sink.text(&text, true, node);
    }
}

fn subscript(folder: &Folder<'_>, node: Node<'_>, sink: &mut Sink<'_>) {
    let (Some(object), Some(index)) = (
        node.child_by_field_name("object"),
        node.child_by_field_name("index"),
    ) else {
        return;
    };
    let owner = folder.path(object, 0);
    match folder.fold(index, 0) {
        Some(key) => {
            if let Some(kind) = folder.path(node, 0).as_deref().and_then(meaning) {
                sink.add(kind, node);
                if index.kind() != "number" {
                    sink.add(BUILT_NAME, node);
                }
            }
            if key == "constructor" || key == "__proto__" {
                sink.add(SANDBOX_ESCAPE, node);
            }
        }
        None => {
            let reaches = |it: &str| {
                is_global(it)
                    || matches!(it, "process" | "module" | "require")
                    || module(it).is_some()
            };
            if owner.as_deref().is_some_and(reaches) {
                sink.add(DYNAMIC_ATTRIBUTE, node);
            }
        }
    }
}
