//! `glovebox settings`.

use std::fmt::Write as _;

use glovebox_model::Result;
use serde_json::Value;

use crate::args::{Global, SettingsCommand, SettingsSetArgs, SettingsVerb};
use crate::change::Change;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::one_line;
use crate::stdout;
use crate::token_admin::{self, InForce};

pub(crate) fn run(global: &Global, command: SettingsCommand) -> Result<Exit> {
    let context = Context::new(global);
    let in_force = match command.verb {
        SettingsVerb::Show(_) => token_admin::settings(&context)?,
        SettingsVerb::Set(SettingsSetArgs { change }) => {
            let change = Change::parse(&change)?;
            token_admin::change_settings(&context, &change)?
        }
    };
    if global.json {
        stdout::json(&in_force)?;
    } else {
        stdout::text(&text(&in_force))?;
    }
    Ok(Exit::SUCCESS)
}

/// As they would be typed after `settings set`.
fn text(in_force: &InForce) -> String {
    let mut text = String::new();
    let settings = serde_json::to_value(&in_force.settings).unwrap_or_default();
    lines(&mut text, "", &settings);
    if let Some(ceiling) = in_force.ceiling {
        let _ = writeln!(text, "# this server allows no more than {ceiling} at once");
    }
    let _ = writeln!(text, "# version {}", in_force.version);
    text
}

fn lines(text: &mut String, name: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                lines(text, &name, value);
            }
        }
        Value::Null => {
            let _ = writeln!(text, "{}=none", one_line(name));
        }
        value => {
            let _ = writeln!(text, "{}={value}", one_line(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{Budget, Settings};

    #[test]
    fn settings_are_shown_as_they_are_set() {
        let mut settings = Settings::default();
        let budget = Budget {
            execs_per_hour: Some(5),
            ..Budget::default()
        };
        settings.agent_budgets.insert("ci".to_owned(), budget);
        let shown = text(&InForce {
            version: 3,
            settings: settings.clone(),
            ceiling: Some(16),
        });
        assert!(shown.contains("max_concurrent_execs=4\n"), "{shown}");
        assert!(
            shown.contains("agent_budgets.ci.execs_per_hour=5\n"),
            "{shown}"
        );
        assert!(
            shown.ends_with("no more than 16 at once\n# version 3\n"),
            "{shown}"
        );
        let words: Vec<String> = shown
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        let read = Change::parse(&words)
            .unwrap()
            .apply(&Settings::default())
            .unwrap();
        assert_eq!(read, settings);
    }
}
