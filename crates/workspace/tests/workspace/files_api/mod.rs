//! The operations behind the file API: what they do, what they refuse, and the path corpus once
//! more through them.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod archives;
mod corpus;
mod listing;
mod reading;
mod search;
mod trees;
mod watching;
mod writing;
