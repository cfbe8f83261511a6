//! Sandboxes that are observed: what is told of their programs, and that nobody inside gains by it.

mod effects;
mod execs;
mod flood;
pub(crate) mod ground;
mod odd;
mod reach;
mod refused;
mod writes;

use crate::harness::{self, Caller, Case};

pub(crate) fn cases() -> Vec<Case> {
    let root: &[Case] = cases![
        &[Caller::Root],
        refused::none_is_made_ahead_or_kept,
        refused::elsewhere_it_is_refused,
    ];
    let all: &[Case] = cases![
        execs::programs_are_told_as_strace_tells_them,
        execs::a_search_of_the_path_tells_one_program,
        execs::what_cannot_be_executed_is_no_program,
        execs::a_thousand_short_programs_are_all_told,
        execs::the_same_program_again_is_another,
        execs::numbers_are_those_of_the_sandbox,
        execs::long_arguments_are_cut,
        execs::the_first_program_is_told_whatever_it_is,
        odd::programs_are_told_however_they_are_started,
        odd::a_thread_that_becomes_a_program_is_told_once,
        odd::one_that_dies_at_once_is_told,
        odd::one_that_failed_and_was_killed_is_none,
        odd::names_that_are_no_text_hide_nobody,
        reach::whoever_is_addressed_is_told,
        reach::who_is_inside_is_not,
        reach::there_is_a_way_out_whatever_the_profile_says,
        writes::every_change_is_told_with_its_paths,
        writes::what_is_refused_is_told_too,
        writes::reads_are_told_when_asked_for,
        effects::programs_tell_of_themselves,
        effects::nobody_inside_has_what_observes_it,
        effects::it_is_handed_out_once,
        effects::unobserved_there_is_nothing_of_it,
        effects::one_that_never_runs_leaves_nothing,
        flood::what_is_too_much_is_counted,
        flood::one_whose_observer_is_killed_ends,
        flood::time_is_kept_however_much_is_asked,
    ];
    [root, all].concat()
}
