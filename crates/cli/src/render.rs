//! How errors are said: what, where it stands, why, and last the way out.

use std::fmt::Write as _;
use std::io::Write;

use glovebox_model::{Error, visible};
use serde::Serialize;

use crate::human::duration;
use crate::paint::{Paint, Tone};

/// On standard error, as text or as the same JSON that the API sends.
pub(crate) fn error(error: &Error, json: bool) {
    #[derive(Serialize)]
    struct Envelope<'a> {
        error: &'a Error,
    }
    let text = if json {
        serde_json::to_string(&Envelope { error }).unwrap_or_default() + "\n"
    } else {
        sentence(error, Paint::on(&std::io::stderr()))
    };
    // Nobody is left to tell when standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The way out, after an error that somebody else has said.
pub(crate) fn hint(text: &str) {
    let _ = writeln!(std::io::stderr(), "\nhint: {text}");
}

/// A remark that is not an error. What it quotes may have several lines; none of them passes for
/// another remark.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "note: {}", text.replace('\n', "\n  | "));
}

pub(crate) fn sentence(error: &Error, paint: Paint) -> String {
    let mut text = String::new();
    let head = paint.apply(Tone::Error, &format!("error[{}]", error.code));
    let _ = writeln!(text, "{head}: {}", printable(&error.message));
    if let Some(rule) = &error.rule {
        let _ = writeln!(text, "  --> {}:{}", printable(&rule.file), rule.line);
    }
    for cause in &error.causes {
        let _ = writeln!(text, "  caused by: {}", printable(cause));
    }
    if let Some(id) = &error.request_id {
        let _ = writeln!(text, "  request: {}", one_line(&id.0));
    }
    let later = error
        .retry
        .after_ms
        .map(|ms| format!("try again in {}", duration(ms)));
    if !error.hints.is_empty() || later.is_some() {
        text.push('\n');
    }
    for hint in error.hints.iter().chain(&later) {
        let _ = writeln!(
            text,
            "{}: {}",
            paint.apply(Tone::Hint, "hint"),
            printable(command_for(hint))
        );
    }
    text
}

/// A hint of the API, for somebody at the command line: routes are commands there.
fn command_for(hint: &str) -> &str {
    const COMMANDS: [(&str, &str); 16] = [
        (
            "`GET /v1/workspaces/{project}/files`",
            "`glovebox file ls` lists what is there",
        ),
        (
            "`GET /v1/workspaces/{project}/snapshots`",
            "`glovebox snapshot ls` lists them",
        ),
        (
            "`GET /v1/workspaces`",
            "`glovebox workspace ls` lists those that are there",
        ),
        (
            "`GET /v1/sessions`",
            "`glovebox session ls` lists those that are there",
        ),
        (
            "send `text`; or start it with a terminal",
            "`glovebox session send` types text; `session start --terminal` gives a terminal",
        ),
        (
            "`GET …/output` has what it put out",
            "`glovebox session log` has what it put out",
        ),
        ("`GET /v1/execs`", "`glovebox ps --all` lists them"),
        (
            "`GET /v1/approvals`",
            "`glovebox approval ls --all` lists them",
        ),
        (
            "`GET /v1/grants`",
            "`glovebox approval grants --all` lists them",
        ),
        (
            "`GET /v1/tokens?all=true`",
            "`glovebox token ls --all` lists them",
        ),
        ("`GET /v1/secrets`", "`glovebox secret ls` lists them"),
        (
            "`GET /v1/secret-grants`",
            "`glovebox secret grants --all` lists them",
        ),
        (
            "say `recursive` to remove",
            "`--recursive` removes everything in it too",
        ),
        (
            "give more of the text around it",
            "give more of the text around it; `--all` replaces every one of them",
        ),
        (
            "`\"writes\": \"held\"`",
            "`glovebox run --hold` makes an exec's changes wait",
        ),
        (
            "wait for its end, or cancel it: `POST",
            "wait for its end, or cancel it: `glovebox cancel EXEC`",
        ),
    ];
    let known = COMMANDS.iter().find(|(route, _)| hint.starts_with(route));
    known.map_or(hint, |(_, command)| command)
}

/// Messages may quote what a stranger named: nothing of it may steer a terminal, show text in another
/// order than it is in, or go unseen.
pub(crate) fn printable(text: &str) -> String {
    visible(text)
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(text)
        .replace('\n', "\u{2424}")
        .replace('\t', "\\u{9}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{Code, RequestId, Stage};

    #[test]
    fn an_error_says_what_where_why_and_last_the_way_out() {
        let error = Error::new(Code::PolicyDenied, Stage::Resolve, "`pids` `9` is too many")
            .caused_by("the settings allow `5`")
            .at_rule("a.toml", 3)
            .hint("ask for `5` or less");
        let expected = "error[policy_denied]: `pids` `9` is too many
  --> a.toml:3
  caused by: the settings allow `5`

hint: ask for `5` or less
";
        assert_eq!(sentence(&error, Paint::Plain), expected);
        assert!(
            sentence(&error, Paint::Colour).starts_with("\x1b[1;31merror[policy_denied]\x1b[0m:")
        );
    }

    #[test]
    fn the_request_is_named_as_the_servers_log_names_it() {
        let mut error = Error::new(Code::StoreUnavailable, Stage::Open, "not now").hint("look");
        error.request_id = Some(Box::new(RequestId("r_1\x1b".to_owned())));
        let expected = "error[store_unavailable]: not now\n  request: r_1\\u{1b}\n\nhint: look\n";
        assert_eq!(sentence(&error, Paint::Plain), expected);
    }

    #[test]
    fn who_should_come_back_reads_when() {
        let mut error = Error::new(Code::RateLimited, Stage::Admit, "full").hint("wait");
        error.retry.after_ms = Some(2500);
        let expected = "error[rate_limited]: full\n\nhint: wait\nhint: try again in 2.5s\n";
        assert_eq!(sentence(&error, Paint::Plain), expected);
    }

    #[test]
    fn a_route_is_a_command_for_a_person() {
        let error = Error::new(Code::NotFound, Stage::Open, "no such file")
            .hint("`GET /v1/workspaces/{project}/files` lists those of a workspace");
        let expected =
            "error[not_found]: no such file\n\nhint: `glovebox file ls` lists what is there\n";
        assert_eq!(sentence(&error, Paint::Plain), expected);
    }

    #[test]
    fn what_a_stranger_named_cannot_steer_a_terminal() {
        let hostile = "a\x1b[2Jb\u{9b}6n\u{202e}c\u{2066}d\re\x07\nf";
        assert_eq!(
            printable(hostile),
            "a\\u{1b}[2Jb\\u{9b}6n\\u{202e}c\\u{2066}d\\u{d}e\\u{7}\nf"
        );
        assert!(!one_line(hostile).contains('\n'));
    }
}
