//! The checks that gates are made of, each with what it is told.

mod anomaly;
mod bounds;
mod command;
mod deterministic;
mod diff_size;
mod exit;
mod expression;
mod hosts;
mod max_size;
mod monotonic;
mod no_secrets;
mod not_null;
mod path_scope;
mod quantity;
mod schema;
mod violations;

pub use anomaly::{Anomaly, Method};
pub use bounds::Bounds;
pub use deterministic::Deterministic;
pub use diff_size::DiffSize;
pub use exit::Exit;
pub use expression::{Expression, VARIABLES};
pub use hosts::Hosts;
pub use max_size::MaxSize;
pub use monotonic::Monotonic;
pub use no_secrets::NoSecrets;
pub use not_null::NotNull;
pub use path_scope::PathScope;
pub use quantity::Quantity;
pub use schema::Schema;

use crate::command::CommandCheck;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::kinds::Kinds;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    NotNull(NotNull),
    Schema(Schema),
    Monotonic(Monotonic),
    MaxSize(MaxSize),
    StatisticalBounds(Bounds),
    Anomaly(Anomaly),
    NoSecrets(NoSecrets),
    PathScope(PathScope),
    DiffSize(DiffSize),
    NoViolations,
    Exit(Exit),
    NoNetwork,
    Hosts(Hosts),
    Deterministic(Deterministic),
    Cel(Expression),
    Command(CommandCheck),
}

/// What a check is called in configurations and records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckName {
    NotNull,
    Schema,
    Monotonic,
    MaxSize,
    StatisticalBounds,
    Anomaly,
    NoSecrets,
    PathScope,
    DiffSize,
    NoViolations,
    Exit,
    NoNetwork,
    Hosts,
    Deterministic,
    Cel,
    Command,
}

impl CheckName {
    pub const ALL: [Self; 16] = [
        Self::NotNull,
        Self::Schema,
        Self::Monotonic,
        Self::MaxSize,
        Self::StatisticalBounds,
        Self::Anomaly,
        Self::NoSecrets,
        Self::PathScope,
        Self::DiffSize,
        Self::NoViolations,
        Self::Exit,
        Self::NoNetwork,
        Self::Hosts,
        Self::Deterministic,
        Self::Cel,
        Self::Command,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotNull => "not_null",
            Self::Schema => "schema",
            Self::Monotonic => "monotonic",
            Self::MaxSize => "max_size",
            Self::StatisticalBounds => "statistical_bounds",
            Self::Anomaly => "anomaly",
            Self::NoSecrets => "no_secrets",
            Self::PathScope => "path_scope",
            Self::DiffSize => "diff_size",
            Self::NoViolations => "no_violations",
            Self::Exit => "exit",
            Self::NoNetwork => "no_network",
            Self::Hosts => "hosts",
            Self::Deterministic => "deterministic",
            Self::Cel => "cel",
            Self::Command => "command",
        }
    }
}

impl Check {
    pub const fn name(&self) -> CheckName {
        match self {
            Self::NotNull(_) => CheckName::NotNull,
            Self::Schema(_) => CheckName::Schema,
            Self::Monotonic(_) => CheckName::Monotonic,
            Self::MaxSize(_) => CheckName::MaxSize,
            Self::StatisticalBounds(_) => CheckName::StatisticalBounds,
            Self::Anomaly(_) => CheckName::Anomaly,
            Self::NoSecrets(_) => CheckName::NoSecrets,
            Self::PathScope(_) => CheckName::PathScope,
            Self::DiffSize(_) => CheckName::DiffSize,
            Self::NoViolations => CheckName::NoViolations,
            Self::Exit(_) => CheckName::Exit,
            Self::NoNetwork => CheckName::NoNetwork,
            Self::Hosts(_) => CheckName::Hosts,
            Self::Deterministic(_) => CheckName::Deterministic,
            Self::Cel(_) => CheckName::Cel,
            Self::Command(_) => CheckName::Command,
        }
    }

    /// The effects that it has to see.
    pub fn asks(&self) -> Kinds {
        match self {
            Self::NotNull(_) | Self::Schema(_) | Self::Monotonic(_) | Self::Exit(_) => Kinds::NONE,
            Self::MaxSize(it) => it.asks(),
            Self::StatisticalBounds(it) => it.asks(),
            Self::Anomaly(it) => it.quantity.asks(),
            // Arguments of programs are looked through where they are known: they are neither kept nor
            // sent.
            Self::NoSecrets(_) | Self::Deterministic(_) => Kinds::WRITES.with(Kinds::REQUESTS),
            Self::PathScope(_) | Self::DiffSize(_) | Self::Command(_) => Kinds::WRITES,
            Self::NoNetwork | Self::Hosts(_) => Kinds::REQUESTS,
            Self::NoViolations => Kinds::ACCOUNT.with(Kinds::ATTEMPTS),
            Self::Cel(it) => it.asks(),
        }
    }

    pub(crate) fn try_on(&self, evidence: &Evidence<'_>) -> Finding {
        if let Some(missing) = evidence.unwatched(self.asks()) {
            return missing;
        }
        let found = match self {
            Self::NotNull(it) => it.try_on(evidence),
            Self::Schema(it) => it.try_on(evidence),
            Self::Monotonic(it) => it.try_on(evidence),
            Self::MaxSize(it) => it.try_on(evidence),
            Self::StatisticalBounds(it) => it.try_on(evidence),
            Self::Anomaly(it) => it.try_on(evidence),
            Self::NoSecrets(it) => it.try_on(evidence),
            Self::PathScope(it) => it.try_on(evidence),
            Self::DiffSize(it) => it.try_on(evidence),
            Self::NoViolations => violations::try_on(evidence),
            Self::Exit(it) => it.try_on(evidence),
            Self::NoNetwork => hosts::none(evidence),
            Self::Hosts(it) => it.try_on(evidence),
            Self::Deterministic(it) => it.try_on(evidence),
            Self::Cel(it) => it.try_on(evidence),
            Self::Command(it) => command::try_on(it, evidence),
        };
        // What could not be looked at is said in the same words as what was wrong.
        found.unwrap_or_else(|missing| missing)
    }
}

/// `Err` is a finding too: of something that had to be there before anything could be compared.
pub(crate) type Found = Result<Finding, Finding>;
