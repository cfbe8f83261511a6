//! `glovebox policy check`.

use glovebox_engine::host_facts;
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::{Config, Surface};
use serde::Serialize;

use crate::args::{CheckArgs, Global};
use crate::context::read_config;
use crate::exit::Exit;
use crate::render::one_line;
use crate::stdout;

/// What a good file says, without the values: some of them may be private.
#[derive(Debug, Serialize)]
struct Summary {
    file: String,
    sections: Vec<Section>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Section {
    name: String,
    keys: Vec<String>,
}

pub(crate) fn run(global: &Global, args: &CheckArgs) -> Result<Exit> {
    let file = args.file.display().to_string();
    let text = read_config(&args.file).map_err(|error| {
        Error::new(
            Code::InvalidConfig,
            Stage::Parse,
            format!("cannot use the configuration `{file}`"),
        )
        .caused_by(error)
    })?;
    let config = Config::parse(&text, &file)?;
    // Settings are measured against the ceilings that hold here.
    config.system(Surface::Local, host_facts())?;
    let summary = Summary {
        sections: sections(&text)?,
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

/// In a file that was read without complaint: what each table sets.
fn sections(text: &str) -> Result<Vec<Section>> {
    let root: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        Error::new(
            Code::InvalidConfig,
            Stage::Parse,
            error.message().to_owned(),
        )
    })?;
    let mut sections = Vec::new();
    for (name, value) in &root {
        let Some(table) = value.as_table() else {
            continue;
        };
        match name.as_str() {
            "space" | "user" | "agent" => {
                for (subject, value) in table {
                    if let Some(table) = value.as_table() {
                        sections.push(section(format!("{name}.{subject}"), table));
                    }
                }
            }
            _ => sections.push(section(name.clone(), table)),
        }
    }
    Ok(sections)
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
                    [user.\"dana\\u001b\"]\ntimeout = \"30s\"\n[agent.idle]\n";
        assert!(Config::parse(text, "f").is_ok());
        let summary = Summary {
            file: "f".to_owned(),
            sections: sections(text).unwrap(),
        };
        assert_eq!(
            summary.text(),
            "`f` is good\n[agent.idle] nothing\n[settings] env, memory, pids\n\
             [user.dana\u{fffd}] timeout\n"
        );
        assert!(!serde_json::to_string(&summary).unwrap().contains("s3cret"));
    }
}
