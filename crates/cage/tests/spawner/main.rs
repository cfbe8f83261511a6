//! Keepers from a spawner: handed over to any thread, with nothing inherited, and gone with the
//! process that they were for, however it ends.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(clippy::expect_used, reason = "a test stops where it fails")]
#![expect(clippy::print_stdout, reason = "the harness reports there")]

#[macro_use]
mod harness;
mod deaths;
mod hand_over;
mod processes;
mod sandbox;
mod secrets;
mod server;
mod terms;

use std::process::ExitCode;

fn main() -> ExitCode {
    if server::is_asked_for() {
        return server::be();
    }
    harness::run(cases![
        hand_over::many_threads_are_served_at_once,
        hand_over::status_and_usage_of_a_sandbox_arrive,
        hand_over::a_keeper_of_our_own_tells_the_same,
        hand_over::keepers_wait_ahead_and_more_of_them_after_a_rush,
        hand_over::a_keeper_that_died_waiting_is_not_handed_over,
        hand_over::a_process_with_threads_cannot_fork_one,
        deaths::a_killed_server_leaves_nothing,
        deaths::a_killed_spawner_is_an_error_and_what_runs_goes_on,
        deaths::a_dropped_spawner_goes_with_its_idle_keepers,
        deaths::signals_of_a_terminal_end_nobody,
        deaths::no_zombie_stays,
        secrets::a_keeper_has_its_own_descriptors_and_no_other,
        secrets::arguments_and_environment_are_forgotten,
        terms::a_deadline_is_kept_without_another_word,
        terms::a_lease_that_is_not_renewed_ends_every_sandbox,
        terms::what_is_guarded_is_ended_in_time_and_cleared_when_its_caller_is_gone,
    ])
}
