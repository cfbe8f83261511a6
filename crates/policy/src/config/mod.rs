//! The operator's configuration: TOML text to layers, with a place for every complaint. Reading
//! the file is the caller's business.

mod document;
mod section;

use std::collections::BTreeMap;

use glovebox_model::{Correlation, PartialLimits, Result, SpaceId};
use toml::de::DeTable;

use crate::field::Field;
use crate::layer::{Layer, Origin};
use crate::preset::TierPresets;
use crate::system::{HostFacts, Surface, System};
use crate::word::Word;
use document::{Document, Key, Node, entries, shown};
use section::{Own, Section, read_limits, read_profile, read_word, unknown_key};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectionName {
    Settings,
    Ceilings,
    /// A table with one layer for each name in it.
    Each(Subject),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Space,
    User,
    Agent,
}

impl Subject {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::User => "user",
            Self::Agent => "agent",
        }
    }
}

impl Word for SectionName {
    const ALL: &'static [Self] = &[
        Self::Settings,
        Self::Ceilings,
        Self::Each(Subject::Space),
        Self::Each(Subject::User),
        Self::Each(Subject::Agent),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Ceilings => "ceilings",
            Self::Each(subject) => subject.as_str(),
        }
    }
}

const TIER_PRESETS: &str = "tier_presets";

/// A configuration that was read without complaint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    settings: Option<Layer>,
    ceilings: PartialLimits,
    presets: TierPresets,
    spaces: BTreeMap<SpaceId, Layer>,
    users: BTreeMap<String, Layer>,
    agents: BTreeMap<String, Layer>,
}

impl Config {
    /// `file_name` is only for messages.
    pub fn parse(text: &str, file_name: &str) -> Result<Self> {
        let document = Document::new(text, file_name);
        let root = document.parse()?;
        let mut config = Self::default();
        for (key, node) in entries(&root) {
            config.read(&document, key, node)?;
        }
        Ok(config)
    }

    /// The layers of the file that apply to these ids, the widest first. The ids must be known to
    /// be true: a caller who may leave out its agent's name escapes that agent's layer.
    pub fn layers_for(&self, ids: &Correlation) -> Vec<Layer> {
        let space = self.spaces.get(&ids.space_id);
        let user = ids.user_id.as_ref().and_then(|id| self.users.get(id));
        let agent = ids.agent_id.as_ref().and_then(|id| self.agents.get(id));
        [self.settings.as_ref(), space, user, agent]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// The system layer with this file's ceilings and presets; refuses settings above a ceiling.
    pub fn system(&self, surface: Surface, host: HostFacts) -> Result<System> {
        let system = System::new(surface, host)
            .with_ceilings(&self.ceilings)
            .with_presets(self.presets);
        system.check(&self.settings)?;
        Ok(system)
    }

    fn read<'i>(&mut self, document: &Document<'i>, key: &Key<'i>, node: &Node<'i>) -> Result<()> {
        let Some(name) = SectionName::from_word(key.get_ref()) else {
            return Err(not_a_section(document, key, node));
        };
        let Some(table) = node.get_ref().as_table() else {
            return Err(document.expected(key, node, "a table"));
        };
        match name {
            SectionName::Settings => self.read_settings(document, table)?,
            SectionName::Ceilings => {
                self.ceilings = read_limits(document, "under `[ceilings]`", table)?;
            }
            SectionName::Each(subject) => {
                for (key, node) in entries(table) {
                    self.read_subject(document, subject, key, node)?;
                }
            }
        }
        Ok(())
    }

    fn read_settings<'i>(&mut self, document: &Document<'i>, table: &DeTable<'i>) -> Result<()> {
        let presets = &mut self.presets;
        let own = |key: &Key<'i>, node: &Node<'i>| {
            if key.get_ref() != TIER_PRESETS {
                return Ok(Own::NotMine);
            }
            *presets = read_word(document, key, node)?;
            Ok(Own::Taken)
        };
        let label = "under `[settings]`";
        let section = read_profile(document, label, table, &[TIER_PRESETS], own)?;
        check_granted(document, &section)?;
        let origin = origin(document, &section);
        self.settings = Some(Layer::settings(section.profile).read_from(origin));
        Ok(())
    }

    fn read_subject<'i>(
        &mut self,
        document: &Document<'i>,
        subject: Subject,
        key: &Key<'i>,
        node: &Node<'i>,
    ) -> Result<()> {
        let (kind, id) = (subject.as_str(), key.get_ref().as_ref());
        let name = shown(id);
        let Some(table) = node.get_ref().as_table() else {
            let message = format!("`{name}` stands under `[{kind}]` without the name of a {kind}");
            return Err(document
                .error(key.span(), message)
                .hint(format!("write it under `[{kind}.NAME]`")));
        };
        if id.is_empty() {
            let message = format!("the name of the {kind} is empty");
            return Err(document.error(key.span(), message));
        }
        let label = format!("under `[{kind}.{name}]`");
        let own = |_: &Key<'i>, _: &Node<'i>| Ok(Own::NotMine);
        let section = read_profile(document, &label, table, &[], own)?;
        let origin = origin(document, &section);
        let profile = section.profile;
        match subject {
            Subject::Space => {
                let space: SpaceId = id
                    .parse()
                    .map_err(|why| document.error(key.span(), format!("{why}")))?;
                let layer = Layer::space(&space, profile).read_from(origin);
                self.spaces.insert(space, layer);
            }
            Subject::User => {
                let layer = Layer::user(id, profile).read_from(origin);
                self.users.insert(id.to_owned(), layer);
            }
            Subject::Agent => {
                let layer = Layer::agent(id, profile).read_from(origin);
                self.agents.insert(id.to_owned(), layer);
            }
        }
        Ok(())
    }
}

fn origin(document: &Document<'_>, section: &Section) -> Origin {
    let line = |(field, span): (&Field, _)| (field.clone(), document.line(span));
    Origin {
        file: document.file.to_owned(),
        lines: section.spans.iter().map(line).collect(),
    }
}

/// A key that would be right under `[settings]` is told so.
fn not_a_section<'i>(
    document: &Document<'i>,
    key: &Key<'i>,
    node: &Node<'i>,
) -> glovebox_model::Error {
    if !node.get_ref().is_table() {
        let name = shown(key.get_ref());
        let message = format!("`{name}` stands outside any section");
        return document
            .error(key.span(), message)
            .hint("write it under `[settings]`");
    }
    unknown_key(document, "at the top", key, &SectionName::words())
}

/// In the settings a list grants nothing without its mode, and whoever wrote it thinks it does.
fn check_granted(document: &Document<'_>, section: &Section) -> Result<()> {
    match (section.lists_destinations(), section.profile.network) {
        (Some(span), None) => Err(document
            .error(span, "`allow_net` has no effect without `network`")
            .hint("set `network = \"allowlist\"` beside it")),
        (Some(_), Some(_)) | (None, _) => Ok(()),
    }
}
