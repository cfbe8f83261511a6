//! `[agents]`, and the tables that only `[agent.NAME]` has.

use glovebox_model::{Result, RuleRef};
use toml::de::DeTable;

use super::docker::{Whose, read_docker};
use super::document::{Document, Key, Node, entries, shown};
use super::section::{read_word, unknown_key};
use super::standing::read_agent_sandbox;
use super::tools::read_tools;
use super::{Config, SANDBOX, TOOLS};
use crate::decided::Decided;
use crate::layer::{Decider, LayerName};
use crate::sight::Sight;

const KEYS: [&str; 1] = ["see"];

/// What agents see of each other, and the line that says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AgentsSection {
    pub(super) see: Sight,
    pub(super) source: Option<RuleRef>,
}

pub(super) fn read_agents(document: &Document<'_>, table: &DeTable<'_>) -> Result<AgentsSection> {
    let mut section = AgentsSection::default();
    for (key, node) in entries(table) {
        if key.get_ref() != "see" {
            let error = unknown_key(document, "under `[agents]`", key, &KEYS);
            return Err(error.hint("what holds for one agent stands under `[agent.NAME]`"));
        }
        section.see = read_word(document, key, node)?;
        section.source = Some(RuleRef {
            file: document.file.to_owned(),
            line: document.line(&key.span()),
        });
    }
    Ok(section)
}

impl Config {
    /// One of the tables that only an agent has.
    pub(super) fn read_agent<'i>(
        &mut self,
        document: &Document<'i>,
        agent: &str,
        key: &Key<'i>,
        node: &Node<'i>,
    ) -> Result<()> {
        if key.get_ref() == SANDBOX {
            let own = read_agent_sandbox(document, agent, key, node)?;
            self.agent_sandbox.insert(agent.to_owned(), own);
            return Ok(());
        }
        let Some(table) = node.get_ref().as_table() else {
            return Err(document.expected(key, node, "a table"));
        };
        if key.get_ref() == TOOLS {
            let label = format!("under `[agent.{}.tools]`", shown(agent));
            let section = read_tools(document, &label, table)?;
            self.agent_tools.insert(agent.to_owned(), section);
            return Ok(());
        }
        let section = read_docker(document, Whose::Agent(agent), table)?;
        self.agent_docker.insert(agent.to_owned(), section);
        Ok(())
    }

    /// What of a space is there for an agent beside its own.
    pub fn sight(&self) -> Sight {
        self.sight.see
    }

    /// The same with the line that says so, for `policy explain`.
    pub fn sight_explained(&self) -> Decided {
        let layer = match self.sight.source {
            Some(_) => LayerName::Settings,
            None => LayerName::System,
        };
        let change = match &self.sight.source {
            Some(at) => format!("change `see` at `{}:{}`", at.file, at.line),
            None => "set `see` under `[agents]`".to_owned(),
        };
        Decided {
            field: "agents.see".to_owned(),
            path: "agents.see".to_owned(),
            value: self.sight.see.as_str().to_owned(),
            by: Decider {
                source: self.sight.source.clone(),
                ..Decider::plain(layer)
            },
            change,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_see_their_own_unless_the_operator_says_more() {
        assert_eq!(Config::default().sight(), Sight::Own);
        for sight in Sight::ALL {
            let text = format!("[agents]\nsee = \"{}\"", sight.as_str());
            let config = Config::parse(&text, "f").unwrap();
            assert_eq!(config.sight(), sight);
            let said = config.sight_explained();
            assert_eq!(said.value, sight.as_str());
            assert_eq!(said.by.source.unwrap().line, 2);
        }
        for wrong in ["see = \"all\"", "see = true", "sees = \"own\"", "ann = {}"] {
            let error = Config::parse(&format!("[agents]\n{wrong}"), "f").unwrap_err();
            assert!(error.rule.is_some(), "{wrong}: {error}");
        }
    }
}
