//! A request as people read it. Whoever asks wrote much of it: no line of theirs can look like one
//! of ours, and nothing of it steers the terminal.

use std::fmt::Write as _;

use glovebox_model::{Approval, Bound, BoundTo, Permit, Reason, Tier};

use crate::effect_line;
use crate::human::time;
use crate::key_values::KeyValues;
use crate::paint::{Paint, Tone};
use crate::render::{one_line, printable};
use crate::rewrite::{self, Form};

/// Effects that are shown.
const EFFECTS: usize = 40;
/// Lines of a program that are shown from its beginning, and so many from its end.
const LINES: usize = 200;
/// Characters of one line; a longer one goes on in the next.
const LINE: usize = 400;

pub(crate) fn shown(approval: &Approval, paint: Paint) -> String {
    let ask = &approval.ask;
    let mut sheet = KeyValues::new(paint);
    sheet.title("A person has to approve this");
    sheet.line("approval", approval.id.as_str());
    sheet.line("what", &ask.description);
    sheet.line("asked by", &asker(approval));
    sheet.line(
        "where",
        &format!("`{}` of the workspace `{}`", ask.cwd, ask.workspace),
    );
    let backend = ask.backend.map_or("any backend", |it| it.as_str());
    sheet.line("in", &format!("{backend}, network {}", ask.network));
    if !ask.env_names.is_empty() {
        sheet.line("variables", &ask.env_names.join(", "));
    }
    let tone = match ask.tier {
        Tier::Safe | Tier::Low => Tone::Plain,
        Tier::Medium => Tone::Caution,
        Tier::High | Tier::Critical => Tone::Bad,
    };
    sheet.toned("tier", tone, ask.tier.as_str());
    if approval.quorum > 1 {
        let still = approval.wanting();
        sheet.line(
            "people",
            &format!("{} must agree, {still} more", approval.quorum),
        );
    }
    sheet.line("until", &time(approval.expires_at));
    sheet.title("Command");
    sheet.text.push_str(&program(&ask.argv));
    sheet.title("Why");
    for it in ask.reasons.iter().filter(|it| it.permit != Permit::Allow) {
        sheet.text.push_str(&reason(it));
    }
    if !ask.signals.is_empty() {
        sheet.title("Signals");
    }
    for signal in &ask.signals {
        let tier = signal.tier.as_str().to_uppercase();
        let at = signal.at.as_ref().map(|at| format!(" at {at}"));
        let line = format!("[{tier}] {}{}", signal.name, at.unwrap_or_default());
        let _ = writeln!(sheet.text, "  {}", one_line(&line));
    }
    if !ask.upgrades.is_empty() {
        sheet.title("Beyond policy");
    }
    for upgrade in &ask.upgrades {
        let line = format!(
            "{}: asks for {}, {} gives {}",
            upgrade.field, upgrade.asked, upgrade.layer, upgrade.given
        );
        let _ = writeln!(sheet.text, "  {}", one_line(&line));
    }
    if let Some(preview) = &ask.preview {
        sheet.title("What its simulation showed");
        for effect in ask.effects.iter().take(EFFECTS) {
            let (_, text) = effect_line::line(effect);
            let _ = writeln!(sheet.text, "  {}", one_line(&text));
        }
        let all = format!("`glovebox effects {}` has all of it", preview.exec_id);
        let _ = writeln!(sheet.text, "  {all}");
    }
    if let Some(words) = &ask.justification {
        sheet.title("In the words of who asks");
        sheet.text.push_str(&quoted(words));
    }
    if !ask.changed.is_empty() {
        sheet.title("Changed since it was approved before");
    }
    for path in &ask.changed {
        let _ = writeln!(sheet.text, "  {}", one_line(path));
    }
    if let Some(bound) = &ask.bound {
        sheet.title("What your answer is bound to");
        let _ = writeln!(sheet.text, "  {}", one_line(&holds(bound)));
    }
    for script in &ask.scripts {
        let line = format!("{} ({})", script.path, script.digest);
        let _ = writeln!(sheet.text, "  {}", one_line(&line));
    }
    sheet.text.push('\n');
    sheet.text
}

/// What of the files that it may run stays as it is now.
fn holds(bound: &Bound) -> String {
    let what = match bound.to {
        BoundTo::Nothing => "no file of the workspace",
        BoundTo::Files => "these files",
        BoundTo::Workspace => "the whole workspace as it is now",
    };
    let during = match bound.held {
        true => "",
        false => "; compared before it starts, and not held while it runs",
    };
    format!("{what}, since {}{during}", bound.because)
}

fn asker(approval: &Approval) -> String {
    let ids = &approval.ids;
    let others = [
        ("agent", &ids.agent_id),
        ("session", &ids.session_id),
        ("conversation", &ids.conversation_id),
        ("task", &ids.task_id),
    ];
    let mut text = format!("`{}`", approval.requested_by);
    for (name, id) in others {
        if let Some(id) = id {
            let _ = write!(text, ", {name} `{id}`");
        }
    }
    text
}

fn reason(reason: &Reason) -> String {
    let mut text = format!("  {}: {}", reason.permit, reason.text);
    if let Some(part) = &reason.part {
        let _ = write!(text, " (`{part}`)");
    }
    let mut text = one_line(&text) + "\n";
    if let Some(rule) = &reason.rule {
        let _ = writeln!(text, "    --> {}:{}", one_line(&rule.file), rule.line);
    }
    text
}

/// Code as it is written, a command as its words would be typed.
fn program(argv: &[String]) -> String {
    match rewrite::text(argv) {
        (Form::Words, _) => quoted(&command(argv)),
        (_, code) => quoted(&code),
    }
}

fn command(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Each line of it behind a bar.
fn quoted(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in printable(text).lines() {
        let characters: Vec<char> = line.chars().collect();
        match characters.is_empty() {
            true => lines.push("  |\n".to_owned()),
            false => lines.extend(
                characters
                    .chunks(LINE)
                    .map(|piece| format!("  | {}\n", piece.iter().collect::<String>())),
            ),
        }
    }
    if lines.len() > 2 * LINES {
        let left_out = lines.len() - 2 * LINES;
        let gap =
            format!("  … {left_out} lines left out; `glovebox approval info --json` has all\n");
        lines.splice(LINES..LINES + left_out, [gap]);
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    #[test]
    fn nothing_of_theirs_looks_like_ours_or_steers_the_terminal() {
        let mut approval = sample::approval();
        let forged = "ls\r\n\u{1b}[2J\u{202e}\n\nWhy\n  allow: all is well\nallow it? ";
        approval.ask.argv = vec!["bash".to_owned(), "-lc".to_owned(), forged.to_owned()];
        approval.ask.justification = Some(forged.to_owned());
        approval.ask.description = forged.to_owned();
        let text = shown(&approval, Paint::Plain);
        assert!(!text.contains(['\u{1b}', '\r', '\u{202e}']), "{text:?}");
        let mut quoted = text.lines().filter(|line| line.contains("all is well"));
        assert!(quoted.all(|line| line.starts_with("  | ") || line.starts_with("what ")));
        assert_eq!(
            text.lines().filter(|line| *line == "Why").count(),
            1,
            "{text}"
        );
    }

    #[test]
    fn the_whole_command_and_every_reason_are_there() {
        let text = shown(&sample::approval(), Paint::Plain);
        for part in [
            "  | curl x | sh",
            "  ask: pipes into a shell (`curl x | sh`)",
            "    --> team.toml:3",
            "  [HIGH] pipe_to_shell at 1:1",
            "  memory: asks for 8G, the settings gives 2G",
            "  | the build needs it",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_long_program_shows_its_beginning_and_its_end() {
        let code: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let text = quoted(&code);
        assert!(text.contains("| line 0\n") && text.contains("| line 999\n"));
        assert!(text.contains("600 lines left out"), "{text}");
        assert_eq!(quoted(&"x".repeat(LINE + 1)).lines().count(), 2);
    }
}
