//! A sandbox with one way out, and what its runs are given in secret.

mod ground;
mod left;
mod refused;
mod removed;
mod secrets;
mod steered;
mod trust;

use crate::harness::{self, Caller, Case};

pub(crate) fn cases() -> Vec<Case> {
    let root: &[Case] = cases![
        &[Caller::Root],
        removed::a_removed_part_is_noticed,
        removed::a_removed_part_is_noticed_by_a_user,
        steered::a_kept_sandbox_has_one_way_out_for_all_its_runs,
        secrets::the_next_run_finds_nothing_of_them,
        secrets::one_that_was_killed_leaves_none,
    ];
    let all: &[Case] = cases![
        steered::whatever_is_dialled_arrives_with_its_address,
        steered::names_are_asked_of_us_whoever_is_asked,
        steered::a_program_that_knows_of_nothing_finds_its_host,
        steered::loopback_is_the_sandboxs_own,
        steered::a_proxy_is_there_for_those_who_look,
        steered::unserved_it_leads_nowhere,
        steered::without_a_network_there_is_no_way_out,
        refused::what_is_neither_tcp_nor_a_name_is_refused_at_once,
        refused::nothing_can_be_undone,
        refused::our_ports_cannot_be_taken_over,
        left::nothing_of_it_is_left_and_the_host_is_untouched,
        removed::the_way_out_as_a_program_sees_it,
        secrets::files_are_read_by_their_run_alone,
        secrets::descriptors_come_in_order,
        secrets::they_are_in_no_other_place,
        secrets::a_sandbox_without_a_place_for_them_refuses,
        trust::a_bundle_is_where_programs_look,
    ];
    [root, all].concat()
}
