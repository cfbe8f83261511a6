//! Programs that run into a limit, for any caller.

pub mod cpu;
pub mod disk;
pub mod memory;
pub mod output;
pub mod processes;
pub mod time;

use std::time::Instant;

use support::{Caller, Neighbour, Trial};

/// One test for each case, by this caller.
macro_rules! every_case {
    ($caller:expr) => {
        every_case!($caller;
            cpu::one_process_that_burns,
            cpu::many_short_processes_that_burn,
            cpu::two_processes_that_burn_together,
            disk::one_file_in_the_workspace,
            disk::one_file_by_a_program_that_sees_the_error,
            disk::many_files_in_the_workspace,
            disk::files_without_a_name_in_the_workspace,
            disk::files_in_a_directory_that_is_closed_to_us,
            disk::many_artifacts,
            disk::an_exit_code_that_looks_like_a_limit_is_none,
            disk::one_file_in_temporary_space,
            disk::many_files_in_temporary_space,
            disk::a_scratch_workspace,
            disk::too_many_files_in_the_workspace,
            disk::too_many_files_in_a_scratch_workspace,
            disk::too_many_open_files,
            memory::one_process_that_grows,
            memory::many_processes_that_grow,
            memory::a_memory_file_that_nobody_maps,
            memory::memory_files_fill_up_before_memory_does,
            output::a_flood_on_stdout,
            output::a_flood_on_stderr,
            output::a_flood_on_both_without_a_newline,
            output::a_flood_without_end,
            processes::a_fork_bomb_that_gives_up,
            processes::a_fork_bomb_that_goes_on,
            processes::a_daemon_stops_with_its_exec,
            processes::a_sleeping_orphan_holds_nobody_up,
            processes::a_background_child_that_keeps_stdout_open,
            processes::children_that_nobody_waits_for,
            time::a_timeout_is_kept,
            time::a_program_that_ignores_the_signal,
            time::a_reader_that_does_not_read,
            time::a_program_that_stopped_itself,
            time::an_end_at_the_very_moment_of_the_timeout,
        );
    };
    ($caller:expr; $($module:ident::$name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            cases::$module::$name($caller);
        })*
    };
}

/// A process that is not dumpable closes what `/proc` has of it to an ordinary user.
const UNDUMPABLE: &str = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n";

/// Runs the body in a trial while a neighbour works, and says how long it took.
fn beside_a_neighbour(caller: Caller, body: impl FnOnce(&Trial)) {
    let Some(trial) = Trial::new(caller) else {
        return;
    };
    let neighbour = Neighbour::start();
    let started = Instant::now();
    body(&trial);
    println!("took {:?}", started.elapsed());
    trial.assert_nothing_is_left();
    neighbour.assert_undisturbed();
}
