//! A sandbox that is kept: files stay, processes and what belonged to one exec do not.

mod apart;
mod image;
mod limits;
pub(crate) mod stays;

use crate::harness::{self, Caller, Case};

pub(crate) fn cases() -> Vec<Case> {
    let root: &[Case] = cases![
        &[Caller::Root],
        stays::files_of_its_own_stay_and_those_of_an_exec_do_not,
        stays::no_process_outlives_its_exec,
        stays::a_fork_bomb_is_swept_and_leaves_it_usable,
        stays::out_of_time_it_stays_usable,
        stays::canceled_it_stays_usable,
        stays::a_refused_command_leaves_it_usable,
        stays::one_that_died_is_noticed,
        apart::an_earlier_execs_directories_are_out_of_reach,
        apart::its_places_cannot_be_exchanged_between_two_execs,
        limits::each_exec_pays_for_itself,
        limits::out_of_memory_is_the_execs_that_was,
    ];
    let all: &[Case] = cases![
        image::programs_come_from_the_image_and_nothing_else_does,
        image::a_hostile_image_reaches_nothing,
        image::a_home_that_outlives_it_is_written,
    ];
    [root, all].concat()
}
