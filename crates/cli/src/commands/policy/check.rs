//! `glovebox policy check`.

use glovebox_engine::host_facts;
use glovebox_model::{Code, Correlation, Error, Result, SpaceId, Stage};
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
    /// What is well formed and does nothing.
    notes: Vec<String>,
}

/// The tools whose use is decided by rules, beside `skill.<id>`; `[tools]` knows all of them.
const RULED: [&str; 3] = ["run_command", "run_code", "retrieve"];

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
        notes: idle(&root),
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
        for note in &self.notes {
            text.push_str(&one_line(&format!("note: {note}")));
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
        for rule in rules(root) {
            match rule.get("decision").and_then(toml::Value::as_str) {
                Some("allow") => all.allow += 1,
                Some("ask") => all.ask += 1,
                Some("deny") => all.deny += 1,
                _ => {}
            }
            for key in ["match", "not_match"] {
                all.examples += listed(rule, key).len() as u64;
            }
        }
        all
    }
}

/// Those of everybody, and those of single subjects.
fn rules(root: &toml::Table) -> Vec<&toml::Value> {
    let subjects = SUBJECTS
        .iter()
        .filter_map(|name| root.get(*name)?.as_table());
    let subjects = subjects
        .flat_map(toml::Table::values)
        .filter_map(toml::Value::as_table);
    let tables = std::iter::once(root).chain(subjects);
    let rules = tables.filter_map(|it| it.get("rule")?.as_array());
    rules.flatten().collect()
}

/// One, or several.
fn listed<'r>(rule: &'r toml::Value, key: &str) -> &'r [toml::Value] {
    match rule.get(key) {
        Some(toml::Value::Array(several)) => several,
        Some(one) => std::slice::from_ref(one),
        None => &[],
    }
}

/// Rules that wait for tools which nobody asks rules about: whoever wrote one thinks that it holds.
fn idle(root: &toml::Table) -> Vec<String> {
    let tools = |rule| {
        let tools = listed(rule, "tool").iter();
        tools.filter_map(toml::Value::as_str).collect::<Vec<&str>>()
    };
    let lists = rules(root).into_iter().map(tools);
    let idle = lists.filter(|it| !it.is_empty() && !it.iter().any(|tool| is_ruled(tool)));
    let told = idle.map(|tools| {
        format!(
            "a rule for `{}` never holds: rules decide about what is run (`run_command`, `run_code`, \
             `skill.*`) and retrieved (`retrieve`); `[tools]` takes other tools away",
            tools.join("`, `")
        )
    });
    told.collect()
}

/// `[tools]` reads a name as a rule does.
fn is_ruled(tool: &str) -> bool {
    let deny = toml::Value::Array(vec![tool.into()]);
    let text = format!("[tools]\ndeny = {deny}\n");
    let Ok(config) = Config::parse(&text, "tool") else {
        return true;
    };
    let tools = config.tools_for(&Correlation::of_space(SpaceId::local()));
    tool.starts_with("skill.") || RULED.iter().any(|name| !tools.check(name).allowed)
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
            notes: idle(&root),
        };
        assert_eq!(
            summary.text(),
            "`f` is good\n[agent.idle] nothing\n[agent.x.docker] image\n[pool] min\n\
             [sandbox] keep_root\n[settings] env, memory, pids\n\
             [user.dana\\u{1b}] timeout\n"
        );
        assert!(!serde_json::to_string(&summary).unwrap().contains("s3cret"));
    }

    #[test]
    fn a_rule_for_tools_that_no_rule_is_asked_about_is_told() {
        let told = |tool: &str| {
            let text = format!("[[agent.a.rule]]\ndecision = \"deny\"\ntool = {tool}\n");
            assert!(Config::parse(&text, "f").is_ok(), "{text}");
            idle(&root(&text).unwrap())
        };
        for tool in ["\"file_*\"", "[\"file_read\", \"undo\"]", "\"group:fs\""] {
            assert_eq!(told(tool).len(), 1, "{tool}");
        }
        for tool in [
            "\"*\"",
            "\"run_*\"",
            "\"skill.pdf\"",
            "\"group:runtime\"",
            "[\"file_read\", \"retrieve\"]",
        ] {
            assert_eq!(told(tool), [""; 0], "{tool}");
        }
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
