//! `[agents]`.

use glovebox_model::{Result, RuleRef};
use toml::de::DeTable;

use super::document::{Document, entries};
use super::section::{read_word, unknown_key};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

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
