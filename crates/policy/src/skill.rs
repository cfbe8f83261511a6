//! What the operator says about skills.

use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSettings {
    /// The operator's own.
    pub dir: Option<PathBuf>,
    /// Whether those that come with Glovebox are there.
    pub shipped: bool,
    /// The only digest that the skill of an id may have.
    pub pin: BTreeMap<String, String>,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self {
            dir: None,
            shipped: true,
            pin: BTreeMap::new(),
        }
    }
}
