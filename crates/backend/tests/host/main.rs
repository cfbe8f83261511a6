//! Programs on the host itself: what they inherit, and what is left of them.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod bench;
mod ends;
mod refused;
mod starts;
