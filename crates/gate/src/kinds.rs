//! Kinds of effects: those that a check asks about, and those that were watched for in a run.

use std::fmt;

use glovebox_model::EffectKind;

/// A set of those that can be watched from outside. What tools say of themselves is no part of it:
/// nothing makes a tool say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kinds(u8);

impl Kinds {
    pub const NONE: Self = Self(0);
    pub const WRITES: Self = Self(1);
    pub const REQUESTS: Self = Self(2);
    pub const PROCESSES: Self = Self(4);
    pub const READS: Self = Self(8);
    /// What is tried and refused, such as a write outside the workspace.
    pub const ATTEMPTS: Self = Self(16);
    /// What only a supervisor inside sees.
    pub const INSIDE: Self = Self(4 | 8 | 16);
    /// What any account of effects has to hold; reads are watched only when somebody asks for them.
    pub const ACCOUNT: Self = Self(1 | 2 | 4);
    pub const ALL: Self = Self(1 | 2 | 4 | 8 | 16);

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn contains(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What tools say of themselves needs nobody who watches.
    pub(crate) const fn of(kind: EffectKind) -> Self {
        match kind {
            EffectKind::FilesystemWrite => Self::WRITES,
            EffectKind::FilesystemRead => Self::READS,
            EffectKind::NetworkRequest => Self::REQUESTS,
            EffectKind::ProcessSpawn => Self::PROCESSES,
            EffectKind::StateMutation | EffectKind::ExternalApiCall => Self::NONE,
        }
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (Self::WRITES, "what it writes"),
            (Self::REQUESTS, "its requests"),
            (Self::PROCESSES, "the programs that it starts"),
            (Self::READS, "what it reads"),
            (Self::ATTEMPTS, "what it tries and is refused"),
        ];
        let names: Vec<&str> = named
            .into_iter()
            .filter(|(kind, _)| self.contains(*kind))
            .map(|(_, name)| name)
            .collect();
        f.write_str(&names.join(", "))
    }
}
