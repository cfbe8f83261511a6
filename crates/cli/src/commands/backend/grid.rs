//! Guarantees down, backends across.

use std::fmt::Write as _;

use glovebox_engine::BackendView;
use glovebox_model::{Grade, Guarantee};

use super::title;
use crate::paint::{Paint, Tone};
use crate::render::one_line;

pub(super) fn text(views: &[BackendView], paint: Paint) -> String {
    let titles: Vec<String> = views.iter().map(|view| one_line(&title(view))).collect();
    let widths: Vec<usize> = titles
        .iter()
        .map(|title| title.chars().count().max("supervised".len()) + 2)
        .collect();
    let first = Guarantee::ALL.iter().map(|it| it.as_str().len()).max();
    let first = first.unwrap_or_default() + 2;
    let mut text = paint.apply(Tone::Heading, &format!("{:<first$}", "GUARANTEE"));
    for (title, width) in titles.iter().zip(&widths) {
        text.push_str(&paint.apply(Tone::Heading, &format!("{title:<width$}")));
    }
    end_line(&mut text);
    for guarantee in Guarantee::ALL {
        let _ = write!(text, "{:<first$}", guarantee.as_str());
        for (view, width) in views.iter().zip(&widths) {
            let (tone, word) = grade(view, guarantee);
            text.push_str(&paint.apply(tone, &format!("{word:<width$}")));
        }
        end_line(&mut text);
    }
    let _ = write!(text, "{:<first$}", "usable");
    for (view, width) in views.iter().zip(&widths) {
        let (tone, word) = match view.usable {
            true => (Tone::Good, "yes"),
            false => (Tone::Bad, "no"),
        };
        text.push_str(&paint.apply(tone, &format!("{word:<width$}")));
    }
    end_line(&mut text);
    for (view, title) in views.iter().zip(&titles) {
        if let Some(error) = &view.error {
            let why = one_line(&error.to_string());
            let _ = writeln!(text, "\n{title}: {why}");
            for hint in &error.hints {
                let _ = writeln!(
                    text,
                    "{}: {}",
                    paint.apply(Tone::Hint, "hint"),
                    one_line(hint)
                );
            }
        }
    }
    text
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

fn grade(view: &BackendView, guarantee: Guarantee) -> (Tone, &'static str) {
    let seen = view.guarantees.iter();
    // Of two findings on one guarantee the worse counts.
    let seen = seen
        .filter(|it| it.guarantee == guarantee)
        .map(|it| it.grade)
        .min();
    match seen {
        Some(Grade::Kernel) => (Tone::Good, "kernel"),
        Some(Grade::Supervised) => (Tone::Caution, "supervised"),
        Some(Grade::Unavailable) | None => (Tone::Bad, "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{BackendName, Code, Error, Evidence, Stage};

    fn evidence(guarantee: Guarantee, grade: Grade) -> Evidence {
        Evidence {
            guarantee,
            grade,
            evidence: "seen".to_owned(),
            fix: None,
        }
    }

    #[test]
    fn every_guarantee_is_a_line_and_every_backend_a_column() {
        let native = BackendView {
            name: BackendName::Native,
            runtime: None,
            usable: true,
            error: None,
            guarantees: vec![
                evidence(Guarantee::OwnPids, Grade::Kernel),
                evidence(Guarantee::DiskLimit, Grade::Supervised),
                evidence(Guarantee::DiskLimit, Grade::Kernel),
            ],
        };
        let error = Error::new(Code::BackendUnavailable, Stage::Open, "no engine").hint("start it");
        let docker = BackendView {
            name: BackendName::Docker,
            runtime: Some("runsc".to_owned()),
            usable: false,
            error: Some(error),
            guarantees: Vec::new(),
        };
        let shown = text(&[native, docker], Paint::Plain);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "GUARANTEE          native      docker/runsc");
        assert_eq!(lines.len(), 1 + Guarantee::ALL.len() + 1 + 3, "{shown}");
        assert!(
            lines.contains(&"own_pids           kernel      -"),
            "{shown}"
        );
        assert!(
            lines.contains(&"disk_limit         supervised  -"),
            "{shown}"
        );
        assert!(
            lines.contains(&"usable             yes         no"),
            "{shown}"
        );
        assert!(
            shown.ends_with("\ndocker/runsc: no engine\nhint: start it\n"),
            "{shown}"
        );
    }
}
