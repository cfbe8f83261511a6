//! What is judged.

use glovebox_model::{
    Artifact, ByteString, ChangeCount, Correlation, Effect, EffectCount, Mode, Status, Tier,
};

use crate::history::History;

/// An exec that has ended, well or not, and of which nothing is kept yet.
#[derive(Debug, Clone)]
pub struct Subject<'s> {
    pub status: Status,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<u64>,
    /// The beginning of what it put out.
    pub stdout: &'s [u8],
    /// All of it, what is not here included.
    pub stdout_bytes: u64,
    /// As they are told at the end; what was provisional is left out.
    pub effects: &'s [Effect],
    /// Of all effects. When there are more than are here, checks that must see each one fail.
    pub effect_count: EffectCount,
    pub changes: Option<ChangeCount>,
    pub artifacts: &'s [Artifact],
    pub mode: Mode,
    pub tier: Tier,
    pub tool: &'s str,
    pub ids: &'s Correlation,
    /// The program and its arguments.
    pub argv: &'s [ByteString],
    pub history: History<'s>,
}

impl Subject<'_> {
    pub(crate) fn stdout_is_whole(&self) -> bool {
        u64::try_from(self.stdout.len()).is_ok_and(|here| here >= self.stdout_bytes)
    }

    pub(crate) fn effects_are_whole(&self) -> bool {
        let here = u64::try_from(self.effects.len()).unwrap_or(u64::MAX);
        self.effect_count.dropped == 0 && here >= self.effect_count.total
    }
}
