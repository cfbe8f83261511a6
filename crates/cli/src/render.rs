//! How errors are said: what, where it stands, why, and last the way out.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use glovebox_model::Error;
use serde::Serialize;

/// On standard error, as text or as the same JSON that the API sends.
pub(crate) fn error(error: &Error, json: bool) {
    #[derive(Serialize)]
    struct Envelope<'a> {
        error: &'a Error,
    }
    let text = if json {
        serde_json::to_string(&Envelope { error }).unwrap_or_default() + "\n"
    } else {
        sentence(error, colour())
    };
    // Nobody is left to tell when standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A remark that is not an error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "note: {text}");
}

fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}

fn sentence(error: &Error, colour: bool) -> String {
    let paint = |code: &str, text: &str| {
        if colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    };
    let mut text = String::new();
    let head = paint("1;31", &format!("error[{}]", error.code));
    let _ = writeln!(text, "{head}: {}", printable(&error.message));
    if let Some(rule) = &error.rule {
        let _ = writeln!(text, "  --> {}:{}", printable(&rule.file), rule.line);
    }
    for cause in &error.causes {
        let _ = writeln!(text, "  caused by: {}", printable(cause));
    }
    if !error.hints.is_empty() {
        text.push('\n');
    }
    for hint in &error.hints {
        let _ = writeln!(text, "{}: {}", paint("36", "hint"), printable(hint));
    }
    text
}

/// Messages may quote what a stranger named: control characters must not reach a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
