//! Hostile files: the path corpus, races, trees made to be hard, and what an exec leaves behind.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod artifacts;
mod layout;
mod paths;
pub(crate) mod place;
mod races;
pub(crate) mod read;
mod resolver;
mod trees;
