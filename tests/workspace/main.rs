//! Workspaces as their users have them, by the real binary: undone, held back, kept, filled, killed.

mod aside;
mod ground;
mod held;
mod kills;
mod poison;
mod quota;
mod soak;
mod undo;
