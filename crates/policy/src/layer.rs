//! The layers, from the widest to the nearest, and what each says.

use std::collections::BTreeMap;
use std::fmt;

use glovebox_model::{PartialProfile, RuleRef, SpaceId};
use serde::{Deserialize, Serialize};

use crate::field::Field;

/// In the order in which they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerName {
    System,
    Settings,
    Space,
    User,
    Agent,
    Conversation,
    Skill,
    Request,
    /// The preset of the declared tier: known last, and like every other layer only able to narrow.
    Tier,
    /// What whoever approved it left of it.
    Approval,
}

impl LayerName {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Settings => "settings",
            Self::Space => "space",
            Self::User => "user",
            Self::Agent => "agent",
            Self::Conversation => "conversation",
            Self::Skill => "skill",
            Self::Request => "request",
            Self::Tier => "tier",
            Self::Approval => "approval",
        }
    }

    /// Layers that only the operator writes. A conversation, a skill or a request cannot declare
    /// that a credential may pass.
    pub(crate) const fn is_operator(self) -> bool {
        match self {
            Self::System | Self::Settings | Self::Space | Self::User | Self::Agent => true,
            Self::Conversation | Self::Skill | Self::Request | Self::Tier | Self::Approval => false,
        }
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The file a layer was read from, and the line of each of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub file: String,
    pub lines: BTreeMap<Field, u32>,
}

/// One layer between the system defaults and the request. Made only through the constructors
/// below, so that nothing can pose as the defaults or as the request itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    name: LayerName,
    subject: Option<String>,
    origin: Option<Origin>,
    profile: PartialProfile,
}

impl Layer {
    fn new(name: LayerName, subject: Option<String>, profile: PartialProfile) -> Self {
        Self {
            name,
            subject,
            origin: None,
            profile,
        }
    }

    pub fn settings(profile: PartialProfile) -> Self {
        Self::new(LayerName::Settings, None, profile)
    }

    pub fn space(space: &SpaceId, profile: PartialProfile) -> Self {
        Self::new(LayerName::Space, Some(space.to_string()), profile)
    }

    pub fn user(user: impl Into<String>, profile: PartialProfile) -> Self {
        Self::new(LayerName::User, Some(user.into()), profile)
    }

    pub fn agent(agent: impl Into<String>, profile: PartialProfile) -> Self {
        Self::new(LayerName::Agent, Some(agent.into()), profile)
    }

    pub fn conversation(conversation: impl Into<String>, profile: PartialProfile) -> Self {
        Self::new(LayerName::Conversation, Some(conversation.into()), profile)
    }

    pub fn skill(skill: impl Into<String>, profile: PartialProfile) -> Self {
        Self::new(LayerName::Skill, Some(skill.into()), profile)
    }

    #[must_use]
    pub fn read_from(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    pub fn name(&self) -> LayerName {
        self.name
    }

    pub fn profile(&self) -> &PartialProfile {
        &self.profile
    }

    pub(crate) fn into_origin(self) -> Option<Origin> {
        self.origin
    }

    pub(crate) fn decider(&self, field: &Field) -> Decider {
        let source = self.origin.as_ref().and_then(|origin| {
            origin.lines.get(field).map(|line| RuleRef {
                file: origin.file.clone(),
                line: *line,
            })
        });
        Decider {
            layer: self.name,
            subject: self.subject.clone(),
            source,
        }
    }
}

/// Who decided a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    pub layer: LayerName,
    /// Which space, user, agent, conversation, skill or tier.
    pub subject: Option<String>,
    /// Not told by a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<RuleRef>,
}

impl Decider {
    pub(crate) fn plain(layer: LayerName) -> Self {
        Self {
            layer,
            subject: None,
            source: None,
        }
    }

    pub(crate) fn tier(tier: glovebox_model::Tier) -> Self {
        Self {
            subject: Some(tier.to_string()),
            ..Self::plain(LayerName::Tier)
        }
    }
}

impl Decider {
    /// The layers named in the plural take the plural of a verb.
    pub(crate) fn verb(&self, singular: &'static str, plural: &'static str) -> &'static str {
        match self.layer {
            LayerName::System | LayerName::Settings => plural,
            LayerName::Space
            | LayerName::User
            | LayerName::Agent
            | LayerName::Conversation
            | LayerName::Skill
            | LayerName::Request
            | LayerName::Tier
            | LayerName::Approval => singular,
        }
    }
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = match self.layer {
            LayerName::System => "the system defaults",
            LayerName::Settings => "the settings",
            LayerName::Space => "space",
            LayerName::User => "user",
            LayerName::Agent => "agent",
            LayerName::Conversation => "conversation",
            LayerName::Skill => "skill",
            LayerName::Request => "the request",
            LayerName::Tier => "the preset of tier",
            LayerName::Approval => "the approval",
        };
        f.write_str(noun)?;
        match &self.subject {
            Some(subject) => {
                let shown: String = subject
                    .chars()
                    .take(80)
                    .flat_map(char::escape_debug)
                    .collect();
                write!(f, " `{shown}`")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_ordered_from_the_widest_to_the_nearest() {
        let order = [
            LayerName::System,
            LayerName::Settings,
            LayerName::Space,
            LayerName::User,
            LayerName::Agent,
            LayerName::Conversation,
            LayerName::Skill,
            LayerName::Request,
            LayerName::Tier,
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn names_from_outside_are_shown_escaped() {
        let layer = Layer::user("a\nb\u{1b}[31m", PartialProfile::default());
        let shown = layer.decider(&Field::Network).to_string();
        assert_eq!(shown, "user `a\\nb\\u{1b}[31m`");
    }
}
