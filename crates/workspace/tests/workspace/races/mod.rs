//! Races on the file API: somebody renames directories and links under it as fast as the kernel
//! can. Every shape runs beside a control that does the same with plain paths, looks first and
//! acts after, and the control must escape, or the race was no race.
//!
//! `GLOVEBOX_TEST_RACE_ATTEMPTS` (or `GLOVEBOX_TEST_RACES`) sets the attempts for each shape.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod run;
mod shapes;
