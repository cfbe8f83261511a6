//! Signals of code in other languages than the shell, from its syntax tree.

mod decode;
mod javascript;
mod javascript_fold;
mod python;
mod python_files;
mod python_fold;
mod python_library;
mod python_names;
mod python_tame;

use std::cell::Cell;
use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

use crate::command::Position;
use crate::literal::named;
use crate::outline::{Origin, SOURCE_BYTES, Tongue};
use crate::signal::{BUILT_NAME, LONG_LINE, SignalKind, Signals, TOO_LARGE, UNREADABLE};

/// How deep an expression is followed.
const FOLLOWED: usize = 32;
/// Nobody writes such lines.
const LINE: usize = 4096;

/// Where signals go, and how places count.
pub(crate) struct Sink<'s> {
    signals: &'s mut Signals,
    base: Option<Position>,
    origin: Origin,
}

impl Sink<'_> {
    fn add(&mut self, kind: SignalKind, node: Node<'_>) {
        let point = node.start_position();
        let small = |it: usize| u32::try_from(it + 1).unwrap_or(u32::MAX);
        self.put(
            kind,
            Position {
                line: small(point.row),
                column: small(point.column),
            },
        );
    }

    fn put(&mut self, kind: SignalKind, at: Position) {
        self.signals.add(kind, self.base.unwrap_or(at), self.origin);
    }

    /// A text that is in the program, or that the program puts together.
    fn text(&mut self, text: &str, built: bool, node: Node<'_>) {
        for kind in named(text) {
            self.add(kind, node);
        }
        if built && DANGEROUS.contains(&text) {
            self.add(BUILT_NAME, node);
        }
    }
}

/// Names that nobody spells in pieces without a reason.
const DANGEROUS: &[&str] = &[
    "eval",
    "exec",
    "compile",
    "system",
    "popen",
    "Popen",
    "subprocess",
    "os",
    "__import__",
    "__builtins__",
    "builtins",
    "child_process",
    "Function",
    "constructor",
    "execSync",
    "spawn",
    "require",
    "process",
    "fs",
    "socket",
    "ctypes",
    "pickle",
    "importlib",
    "__globals__",
    "__subclasses__",
    "os.system",
    "node:child_process",
];

/// Looks at code. All signals are put at `base`, if there is one.
pub(crate) fn read(
    tongue: Tongue,
    code: &str,
    base: Option<Position>,
    origin: Origin,
    signals: &mut Signals,
) {
    let mut sink = Sink {
        signals,
        base,
        origin,
    };
    let start = Position { line: 1, column: 1 };
    if code.len() > SOURCE_BYTES {
        sink.put(TOO_LARGE, start);
        return;
    }
    long_lines(code, &mut sink);
    match tongue {
        Tongue::Python => {
            let grammar = tree_sitter_python::LANGUAGE.into();
            let tree = parse(code, &grammar);
            whole(
                code,
                tree,
                &grammar,
                &mut sink,
                python::walk,
                python_names::WORDS,
            );
        }
        Tongue::Javascript => {
            let grammar = tree_sitter_javascript::LANGUAGE.into();
            let typed = tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into();
            let tree = parse(code, &grammar);
            let broken = tree.as_ref().is_some_and(|it| it.root_node().has_error());
            if broken
                && let Some(tree) = parse(code, &typed).filter(|it| !it.root_node().has_error())
            {
                return javascript::walk(code, &tree, &mut sink);
            }
            whole(
                code,
                tree,
                &grammar,
                &mut sink,
                javascript::walk,
                javascript::WORDS,
            );
        }
        Tongue::Other => {}
    }
}

/// Whether Python only reads and writes files, as far as the names in it tell.
pub(crate) fn is_tame(code: &str) -> bool {
    let tree = parse(code, &tree_sitter_python::LANGUAGE.into());
    tree.is_some_and(|tree| python_tame::is_tame(code, &tree))
}

/// What code says of the files that it opens.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    pub(crate) names: Vec<String>,
    /// It may open others than these.
    pub(crate) others: bool,
}

impl FileNames {
    /// Nobody writes so many, or such long ones.
    const MOST: usize = 256;
    const LONGEST: usize = 1024;

    fn name(&mut self, text: String) {
        if text.len() > Self::LONGEST || self.names.len() >= Self::MOST {
            self.others = true;
        } else if !self.names.contains(&text) {
            self.names.push(text);
        }
    }

    /// A text that is perhaps the name of a file.
    fn literal(&mut self, text: &str) {
        let bare = text.trim_matches(['.', '/']).is_empty();
        if text.contains(['.', '/']) && !bare && !text.contains('\n') && text.len() <= Self::LONGEST
        {
            self.name(text.to_owned());
        }
    }
}

/// Only Python can be told to open no others; JavaScript that opens any hides what it does.
pub(crate) fn files(tongue: Tongue, code: &str) -> FileNames {
    let nothing = || FileNames {
        others: true,
        ..FileNames::default()
    };
    if code.len() > SOURCE_BYTES {
        return nothing();
    }
    match tongue {
        Tongue::Python => parse(code, &tree_sitter_python::LANGUAGE.into())
            .map_or_else(nothing, |tree| python_files::files(code, &tree)),
        Tongue::Javascript => {
            let mut found = FileNames::default();
            if let Some(tree) = parse(code, &tree_sitter_javascript::LANGUAGE.into()) {
                each(&tree, |node, _| {
                    if node.kind() == "string_fragment" {
                        found.literal(slice(code, node));
                    }
                });
            }
            found
        }
        Tongue::Other => nothing(),
    }
}

fn long_lines(code: &str, sink: &mut Sink<'_>) {
    for (line, text) in code.lines().enumerate() {
        if text.len() > LINE {
            let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
            return sink.put(LONG_LINE, Position { line, column: 1 });
        }
    }
}

type Walk = fn(&str, &Tree, &mut Sink<'_>);

fn whole(
    code: &str,
    tree: Option<Tree>,
    grammar: &Language,
    sink: &mut Sink<'_>,
    walk: Walk,
    words: Words,
) {
    let start = Position { line: 1, column: 1 };
    let Some(tree) = tree else {
        sink.put(UNREADABLE, start);
        return scan(code, words, sink);
    };
    walk(code, &tree, sink);
    if !tree.root_node().has_error() {
        return;
    }
    let row = first_error(&tree);
    let line = u32::try_from(row + 1).unwrap_or(u32::MAX);
    sink.put(UNREADABLE, Position { line, column: 1 });
    // An error makes the parser lose what stands around it: what stands before it is read on its
    // own, and all of it by its words.
    let before = code.split_inclusive('\n').take(row).map(str::len).sum();
    if let Some(sound) = code.get(..before).filter(|it| !it.is_empty())
        && let Some(tree) = parse(sound, grammar)
    {
        walk(sound, &tree, sink);
    }
    scan(code, words, sink);
}

fn parse(code: &str, grammar: &Language) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(grammar).ok()?;
    // It asks about once for a hundred bytes of a sound program; to mend what is broken may take it
    // very much longer.
    let most = (500 + code.len() / 32).min(4000);
    let mut asked = 0;
    let mut patience = |_: &tree_sitter::ParseState| {
        asked += 1;
        if asked > most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let bytes = code.as_bytes();
    let mut input = |at: usize, _: tree_sitter::Point| bytes.get(at..).unwrap_or_default();
    let options = ParseOptions::new().progress_callback(&mut patience);
    parser.parse_with_options(&mut input, None, Some(options))
}

fn first_error(tree: &Tree) -> usize {
    let mut first = usize::MAX;
    each(tree, |node, _| {
        if node.is_error() || node.is_missing() {
            first = first.min(node.start_position().row);
        }
    });
    if first == usize::MAX { 0 } else { first }
}

/// Every node after its parent, and with it: asking a node for its parent begins at the root.
fn each<'t>(tree: &'t Tree, mut visit: impl FnMut(Node<'t>, Option<Node<'t>>)) {
    let mut cursor = tree.walk();
    let mut parents: Vec<Node<'t>> = Vec::new();
    loop {
        let node = cursor.node();
        visit(node, parents.last().copied());
        if cursor.goto_first_child() {
            parents.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            parents.pop();
        }
    }
}

fn slice<'c>(code: &'c str, node: Node<'_>) -> &'c str {
    code.get(node.byte_range()).unwrap_or_default()
}

/// How much is spent on following expressions: on one, and on all of a program.
pub(crate) struct Effort {
    one: Cell<u32>,
    all: Cell<u32>,
}

impl Effort {
    fn new() -> Self {
        Self {
            one: Cell::new(0),
            all: Cell::new(1_000_000),
        }
    }

    fn step(&self, depth: usize) -> bool {
        if depth == 0 {
            self.one.set(2048);
        }
        let spend = |it: &Cell<u32>| {
            let left = it.get();
            it.set(left.saturating_sub(1));
            left > 0
        };
        spend(&self.one) && spend(&self.all)
    }

    fn is_spent(&self) -> bool {
        self.all.get() == 0
    }
}

/// Named children, only so many.
fn parts<'t>(node: Node<'t>, most: usize) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).take(most).collect()
}

type Words = &'static [(&'static str, SignalKind)];

/// By words alone, where there is no tree to trust.
fn scan(code: &str, words: Words, sink: &mut Sink<'_>) {
    for (row, line) in code.lines().enumerate() {
        let mut column = 0;
        for word in line.split(|it: char| !(it == '_' || it.is_alphanumeric())) {
            if let Some((_, kind)) = words.iter().find(|(it, _)| *it == word) {
                let small = |it: usize| u32::try_from(it + 1).unwrap_or(u32::MAX);
                let (line, column) = (small(row), small(column));
                sink.put(*kind, Position { line, column });
            }
            column += word.len() + 1;
        }
        for kind in named(line) {
            let line = u32::try_from(row + 1).unwrap_or(u32::MAX);
            sink.put(kind, Position { line, column: 1 });
        }
    }
}
