//! A program on a terminal of its sandbox's own, typed to and acted on while it runs.

mod ground;
mod jobs;
mod own;
mod places;
mod streams;

use crate::harness::{self, Caller, Case};

pub(crate) fn cases() -> Vec<Case> {
    let root: &[Case] = cases![
        &[Caller::Root],
        places::a_kept_sandbox_gives_each_exec_a_terminal_of_its_own,
        places::on_a_layer_it_works_as_anywhere,
        places::in_an_observed_sandbox_it_is_opened_unseen,
    ];
    let all: &[Case] = cases![
        own::it_is_the_controlling_terminal_and_the_sandboxs_own,
        own::the_program_has_no_way_to_the_other_end,
        own::its_owner_is_the_user_inside,
        own::nothing_is_typed_by_the_program_itself,
        own::without_one_there_is_none,
        own::a_terminal_that_cannot_be_opened_starts_nothing,
        jobs::an_interrupt_ends_what_is_in_the_foreground_and_the_shell_goes_on,
        jobs::a_signal_with_a_key_reaches_the_foreground_and_others_reach_all,
        jobs::without_a_terminal_every_signal_reaches_all,
        jobs::what_was_stopped_goes_on,
        jobs::a_child_that_holds_the_terminal_keeps_nothing_running,
        streams::it_has_the_size_that_was_asked_for_and_hears_of_another,
        streams::what_is_typed_at_a_password_prompt_is_not_shown,
        streams::the_end_of_what_is_typed_is_not_the_end_of_the_terminal,
        streams::ten_megabytes_arrive_whole,
        streams::a_reader_that_has_no_room_makes_the_program_wait,
        streams::more_typed_than_is_read_waits_outside,
        streams::a_terminal_that_was_let_go_of_can_be_opened_again,
    ];
    [root, all].concat()
}
