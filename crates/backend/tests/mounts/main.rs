//! Directories of the host's that an operator shows to sandboxes.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(clippy::expect_used, reason = "a test stops where it fails")]
#![expect(clippy::print_stdout, reason = "the harness reports there")]

#[macro_use]
#[path = "../../../cage/tests/spawner/harness.rs"]
mod harness;
#[path = "../crowd/house.rs"]
#[expect(dead_code, reason = "of all tests here")]
mod house;
mod shown;

fn main() -> std::process::ExitCode {
    let all: &[harness::Case] = cases![
        shown::what_is_granted_for_reading_is_only_read,
        shown::what_is_granted_for_writing_is_written,
        shown::links_in_it_lead_nowhere_outside,
        shown::what_is_held_stays_what_was_checked,
    ];
    harness::run(all)
}
