//! Hostile archives: the corpus, what no writer would write, and anything at all.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod anything;
mod bounds;
mod corpus;
mod entries;
mod ground;
mod headers;
pub(crate) mod tar;
mod zip;
mod zip_anything;
mod zip_corpus;
