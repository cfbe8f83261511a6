//! Images from outside: every form they come in, hostile ones, and what is kept of them.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod forms;
mod hostile;
mod kept;
mod made;
mod ordinary;
mod state;
mod tools;
