//! What is answered about an exec's network.

use glovebox_model::Attempt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of the log.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NetworkPage {
    pub attempts: Vec<Attempt>,
    /// The place after these.
    pub next: u64,
    /// The exec has ended, and nothing comes after these.
    pub complete: bool,
}
