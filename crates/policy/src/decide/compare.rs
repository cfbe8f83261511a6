//! What another policy would have decided differently.

use glovebox_model::{Permit, Ruling};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub was: Permit,
    pub becomes: Permit,
    pub looser: bool,
    /// The first reason of the new ruling.
    pub why: Option<String>,
}

/// None when both decide the same. Reasons may differ: they are for people.
pub fn compare(old: &Ruling, new: &Ruling) -> Option<Change> {
    if old.permit == new.permit && old.snapshot_before == new.snapshot_before {
        return None;
    }
    Some(Change {
        was: old.permit,
        becomes: new.permit,
        looser: new.permit < old.permit || (old.snapshot_before && !new.snapshot_before),
        why: new.reasons.first().map(|it| it.text.clone()),
    })
}
