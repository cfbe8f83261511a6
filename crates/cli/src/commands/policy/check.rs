//! `glovebox policy check`.

use glovebox_engine::host_facts;
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::{Config, Surface};
use serde::Serialize;

use crate::args::{CheckArgs, Global};
use crate::context::config_text;
use crate::exit::Exit;
use crate::human::count;
use crate::render::one_line;
use crate::stdout;

/// What a good file says, without the values: some of them may be private.
#[derive(Debug, Serialize)]
struct Summary {
    file: String,
    sections: Vec<Section>,
    rules: RuleCount,
}

/// Rules of everybody and of single subjects, and the examples that were tried.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct RuleCount {
    allow: u64,
    ask: u64,
    deny: u64,
    examples: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Section {
    name: String,
    keys: Vec<String>,
}

pub(crate) fn run(global: &Global, args: &CheckArgs) -> Result<Exit> {
    let file = args.file.display().to_string();
    let text = config_text(&args.file)?;
    let config = Config::parse(&text, &file)?;
    // Settings are measured against the ceilings that hold here.
    config.system(Surface::Local, host_facts())?;
    let root = root(&text)?;
    let summary = Summary {
        sections: sections(&root),
        rules: RuleCount::of(&root),
        file,
    };
    if global.json {
        stdout::json(&summary)?;
    } else {
        stdout::text(&summary.text())?;
    }
    Ok(Exit::SUCCESS)
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!("`{}` is good\n", one_line(&self.file));
        let RuleCount {
            allow,
            ask,
            deny,
            examples,
        } = self.rules;
        let rules = allow + ask + deny;
        if rules > 0 {
            let (rules, held) = (
                count(rules, "rule", "rules"),
                count(examples, "example holds", "examples hold"),
            );
            text += &format!("{rules} ({allow} allow, {ask} ask, {deny} deny), {held}\n");
        }
        for Section { name, keys } in &self.sections {
            let keys = match keys.as_slice() {
                [] => "nothing".to_owned(),
                keys => keys.join(", "),
            };
            text.push_str(&one_line(&format!("[{name}] {keys}")));
            text.push('\n');
        }
        text
    }
}

/// Of a file that was read without complaint.
fn root(text: &str) -> Result<toml::Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let message = error.message().to_owned();
        Error::new(Code::InvalidConfig, Stage::Parse, message)
    })
}

impl RuleCount {
    fn of(root: &toml::Table) -> Self {
        let mut all = Self::default();
        all.add(root);
        let subjects = SUBJECTS
            .iter()
            .filter_map(|name| root.get(*name)?.as_table());
        for subject in subjects.flat_map(toml::Table::values) {
            subject.as_table().into_iter().for_each(|it| all.add(it));
        }
        all
    }

    fn add(&mut self, table: &toml::Table) {
        let rules = table.get("rule").and_then(toml::Value::as_array);
        for rule in rules.into_iter().flatten() {
            match rule.get("decision").and_then(toml::Value::as_str) {
                Some("allow") => self.allow += 1,
                Some("ask") => self.ask += 1,
                Some("deny") => self.deny += 1,
                _ => {}
            }
            for key in ["match", "not_match"] {
                self.examples += match rule.get(key) {
                    Some(toml::Value::Array(several)) => several.len() as u64,
                    Some(_) => 1,
                    None => 0,
                };
            }
        }
    }
}

const SUBJECTS: [&str; 4] = ["space", "user", "agent", "conversation"];

/// What each table sets.
fn sections(root: &toml::Table) -> Vec<Section> {
    let mut sections = Vec::new();
    for (name, value) in root {
        let Some(table) = value.as_table() else {
            continue;
        };
        match name.as_str() {
            name if SUBJECTS.contains(&name) => {
                for (subject, value) in table {
                    if let Some(table) = value.as_table() {
                        of_subject(&mut sections, &format!("{name}.{subject}"), table);
                    }
                }
            }
            _ => sections.push(section(name.clone(), table)),
        }
    }
    sections
}

/// What is said of one agent's containers and sandboxes is a section of its own.
fn of_subject(sections: &mut Vec<Section>, name: &str, table: &toml::Table) {
    let (own, rest): (Vec<_>, Vec<_>) = table.iter().partition(|(key, value)| {
        value.is_table() && ["docker", "sandbox", "tools"].contains(&key.as_str())
    });
    if !rest.is_empty() || own.is_empty() {
        sections.push(Section {
            name: name.to_owned(),
            keys: rest.into_iter().map(|(key, _)| key.clone()).collect(),
        });
    }
    for (key, value) in own {
        if let Some(table) = value.as_table() {
            sections.push(section(format!("{name}.{key}"), table));
        }
    }
}

fn section(name: String, table: &toml::Table) -> Section {
    let keys = table.keys().cloned().collect();
    Section { name, keys }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_keys_and_no_values() {
        let text = "[settings]\nmemory = \"1G\"\npids = 5\nenv = { TOKEN = \"s3cret\" }\n\
                    [user.\"dana\\u001b\"]\ntimeout = \"30s\"\n[agent.idle]\n\
                    [agent.x.docker]\nimage = \"i\"\n[pool]\nmin = 1\n[sandbox]\nkeep_root = true\n";
        assert!(Config::parse(text, "f").is_ok());
        let root = root(text).unwrap();
        let summary = Summary {
            file: "f".to_owned(),
            sections: sections(&root),
            rules: RuleCount::of(&root),
        };
        assert_eq!(
            summary.text(),
            "`f` is good\n[agent.idle] nothing\n[agent.x.docker] image\n[pool] min\n\
             [sandbox] keep_root\n[settings] env, memory, pids\n\
             [user.dana\u{fffd}] timeout\n"
        );
        assert!(!serde_json::to_string(&summary).unwrap().contains("s3cret"));
    }

    #[test]
    fn rules_are_counted_wherever_they_stand() {
        let text = "[[rule]]\ndecision = \"deny\"\ncommand = \"rm *\"\nmatch = [\"rm x\", \"rm y\"]\n\
                    not_match = \"ls\"\n[[agent.a.rule]]\ndecision = \"allow\"\ncommand = \"ls\"\n";
        assert!(Config::parse(text, "f").is_ok());
        let expected = RuleCount {
            allow: 1,
            deny: 1,
            examples: 3,
            ..RuleCount::default()
        };
        assert_eq!(RuleCount::of(&root(text).unwrap()), expected);
    }
}
