//! Many sandboxes of one process with threads, all at once.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(clippy::expect_used, reason = "a test stops where it fails")]
#![expect(clippy::print_stdout, reason = "the harness reports there")]

#[macro_use]
#[path = "../../../cage/tests/spawner/harness.rs"]
mod harness;
#[expect(dead_code, reason = "of all tests here")]
mod house;
mod together;

fn main() -> std::process::ExitCode {
    harness::run(cases![
        together::a_hundred_run_at_once_and_leave_nothing,
        together::a_name_that_is_taken_is_refused_and_left_alone,
        together::without_its_spawner_nothing_more_is_started,
    ])
}
