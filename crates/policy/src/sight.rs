//! `[agents] see`: what of a space is there for an agent beside its own.

use serde::{Deserialize, Serialize};

use crate::word::Word;

/// Each adds to what is an agent's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    #[default]
    Own,
    /// What was done in the conversation that the agent's token is bound to.
    Conversation,
    /// What was done for the user that the agent's token is bound to.
    User,
    /// Everything of the space.
    Space,
}

impl Sight {
    pub const ALL: [Self; 4] = [Self::Own, Self::Conversation, Self::User, Self::Space];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Conversation => "conversation",
            Self::User => "user",
            Self::Space => "space",
        }
    }
}

impl Word for Sight {
    const ALL: &'static [Self] = &Sight::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}
