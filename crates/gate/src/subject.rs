//! What is judged.

use glovebox_model::{
    Artifact, ByteString, ChangeCount, Correlation, Effect, EffectCount, Mode, Status, Tier,
};

use crate::contents::Contents;
use crate::history::History;
use crate::kinds::Kinds;

/// An exec that has ended, well or not, and of which nothing is kept yet.
#[derive(Debug, Clone)]
pub struct Subject<'s> {
    pub status: Status,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<u64>,
    /// What it put out; of what is long the beginning and the end, with a marker between them.
    pub stdout: &'s [u8],
    /// How much of it is here, the marker not counted.
    pub stdout_here: u64,
    /// All of it, what is not here included.
    pub stdout_bytes: u64,
    /// What it said on the side; only `contents` has it.
    pub stderr_bytes: u64,
    /// As they are told at the end; what was provisional is left out.
    pub effects: &'s [Effect],
    /// Of all effects. When there are more than are here, checks that must see each one fail.
    pub effect_count: EffectCount,
    /// What was watched for. Of other kinds nothing is known, however few effects are here.
    pub watched: Kinds,
    pub changes: Option<ChangeCount>,
    pub artifacts: &'s [Artifact],
    pub mode: Mode,
    pub tier: Tier,
    pub tool: &'s str,
    pub ids: &'s Correlation,
    /// The program and its arguments.
    pub argv: &'s [ByteString],
    pub history: History<'s>,
    pub contents: &'s dyn Contents,
}

impl Subject<'_> {
    pub(crate) fn stdout_is_whole(&self) -> bool {
        self.stdout_here >= self.stdout_bytes
    }

    pub(crate) fn effects_are_whole(&self) -> bool {
        let here = u64::try_from(self.effects.len()).unwrap_or(u64::MAX);
        self.effect_count.dropped == 0 && here >= self.effect_count.total
    }
}
