//! Scripts that a program runs by name, and what somebody has read in them.

use glovebox_risk::Reading;

use super::facts::{Segment, Value};

/// What is in the scripts that a program names. Only rules that deny or ask look into them.
#[derive(Debug, Clone, Copy)]
pub struct Scripts<'a> {
    pub readings: &'a [Reading],
    /// One that is named was not read: it is too large, cannot be opened or is not in the workspace.
    pub unread: bool,
}

/// Programs that run a file that they are given.
const RUNS: [&str; 36] = [
    "sh", "bash", "dash", "ash", "ksh", "mksh", "rbash", "hush", "zsh", "fish", "csh", "tcsh",
    "pwsh", "nu", "xonsh", "python", "pypy", "ipython", "node", "nodejs", "deno", "bun", "tsx",
    "ts-node", "perl", "ruby", "php", "lua", "luajit", "julia", "tclsh", "wish", "expect", "guile",
    "groovy", "Rscript",
];

/// Programs that do what a file of the workspace says which nobody names: a `Makefile`, the tests.
const BUILDS: [&str; 8] = [
    "make", "gmake", "bmake", "just", "ninja", "rake", "scons", "prove",
];
/// They run scripts of the `package.json`, by a verb or by the script's own name.
const PACKAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
/// What they do without that.
const PACKAGER_VERBS: [&str; 18] = [
    "audit", "bin", "cache", "config", "doctor", "fund", "help", "info", "licenses", "list", "ls",
    "outdated", "ping", "root", "search", "view", "whoami", "why",
];
/// Modules of Python's library that run nothing but themselves.
const MODULES: [&str; 16] = [
    "ast",
    "base64",
    "calendar",
    "compileall",
    "ensurepip",
    "gzip",
    "http.server",
    "json.tool",
    "pip",
    "platform",
    "py_compile",
    "sysconfig",
    "tarfile",
    "tokenize",
    "venv",
    "zipfile",
];

const RUNNERS: [&str; 9] = [
    "uv", "uvx", "poetry", "pipenv", "pdm", "npx", "bunx", "pnpm", "yarn",
];
const FILES: [&str; 5] = [".py", ".js", ".mjs", ".cjs", ".ts"];

/// They change no file, unless the shell opens one for them.
const READS: [&str; 16] = [
    "cd", "pwd", "ls", "cat", "echo", "printf", "test", "[", "true", "false", ":", "set", "export",
    "which", "date", "sleep",
];

/// The segment whose program is in a file that nobody has read, or that may be another by then.
pub(crate) fn unread<'s>(
    segments: &'s [Segment],
    inner: &[Segment],
    scripts: Scripts<'_>,
) -> Option<&'s Segment> {
    let mut named = segments.iter().filter(|it| runs_file(it));
    let first = named.next()?;
    let changes = |it: &Segment| {
        let reads = matches!(&it.program, Value::Known(name) if READS.contains(&name.as_str()));
        it.touches_files || !(reads || runs_file(it))
    };
    // One script may write the next, or run it.
    let unsure = scripts.unread
        || scripts.readings.is_empty()
        || named.next().is_some()
        || inner.iter().any(runs_file)
        || segments.iter().any(changes);
    unsure.then_some(first)
}

/// The segment that runs something of the workspace which it does not name.
pub(crate) fn unnamed(segments: &[Segment]) -> Option<&Segment> {
    segments.iter().find(|it| runs_unnamed(it))
}

fn runs_unnamed(segment: &Segment) -> bool {
    let Value::Known(name) = &segment.program else {
        return false;
    };
    let name = super::command::base(name);
    let words = || {
        segment.args.iter().map(|it| match it {
            Value::Known(text) => text.as_str(),
            Value::Unknown => "?",
        })
    };
    if words().any(|it| matches!(it, "--version" | "--help")) {
        return false;
    }
    if BUILDS.contains(&name) {
        return true;
    }
    if PACKAGERS.contains(&name) {
        let verb = words().find(|it| !it.starts_with('-'));
        return verb.is_some_and(|it| !PACKAGER_VERBS.contains(&it));
    }
    let version = |it: char| it.is_ascii_digit() || it == '.';
    matches!(
        name.trim_end_matches(version),
        "python" | "pypy" | "ipython"
    ) && module(words()).is_some_and(|it| !MODULES.contains(&it))
}

/// What Python is told to run by the name of a module: `-m NAME`, `-mNAME`, `-Im NAME`.
fn module<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let letters = match letters {
            Some(letters) => letters,
            None if word.starts_with("--") => continue,
            None => return None,
        };
        let Some(at) = letters.find(['c', 'm', 'W', 'X']) else {
            continue;
        };
        let rest = letters.get(at + 1..).unwrap_or_default();
        match (letters.get(at..=at), rest) {
            (Some("m"), "") => return words.next(),
            (Some("m"), rest) => return Some(rest),
            (Some("c"), _) => return None,
            (_, "") => {
                words.next();
            }
            (_, _) => {}
        }
    }
    None
}

fn runs_file(segment: &Segment) -> bool {
    let Value::Known(name) = &segment.program else {
        return false;
    };
    if name.contains('/') {
        return true;
    }
    // What runs commands is off by now, unless it runs a file itself: `uv run a.py`.
    let script = |it: &Value| {
        let ends = |text: &str| FILES.iter().any(|it| text.ends_with(it));
        matches!(it, Value::Known(text) if ends(text))
    };
    if RUNNERS.contains(&name.as_str()) && segment.args.iter().any(script) {
        return true;
    }
    let version = |it: char| it.is_ascii_digit() || it == '.' || it == '-';
    let stem = name.trim_end_matches(version);
    if !RUNS.contains(&name.as_str()) && !RUNS.contains(&stem) {
        return false;
    }
    // Code in a word, and modules by name, are no files.
    let elsewhere = ["-c", "-e", "-p", "-r", "-m", "--eval", "--print"];
    for argument in &segment.args {
        match argument {
            Value::Known(text) if elsewhere.contains(&text.as_str()) => return false,
            Value::Known(text) if text.starts_with('-') => {}
            Value::Known(_) | Value::Unknown => return true,
        }
    }
    false
}
