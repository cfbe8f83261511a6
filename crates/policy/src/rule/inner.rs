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
const RUNS: [&str; 22] = [
    "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "python", "pypy", "ipython", "node",
    "nodejs", "deno", "bun", "tsx", "ts-node", "perl", "ruby", "php", "lua", "Rscript",
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
