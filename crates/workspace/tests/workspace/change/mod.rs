//! Layers over a workspace, made by the kernel's own overlay: read, kept, refused, interrupted.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod anything;
mod conflicts;
mod ground;
mod hostile;
mod kills;
mod kinds;
