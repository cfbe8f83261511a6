//! A whole server on a loopback socket, and clients that are not nice to it.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]
#![expect(clippy::expect_used, reason = "a test stops where it fails")]
#![expect(clippy::print_stdout, reason = "the harness reports there")]

#[macro_use]
#[path = "../../../cage/tests/spawner/harness.rs"]
mod harness;
mod audit;
mod bodies;
mod browser;
mod client;
mod desk;
mod events;
mod execs;
mod house;
mod inside;
mod matrix;
mod once;
mod sandboxes;
mod shared;
mod slow;
mod smuggling;
mod spaces;
mod tokens;
mod transport;
mod walls;

fn main() -> std::process::ExitCode {
    // Only root can keep sandboxes on the native backend.
    let of_root: &[harness::Case] = cases!(
        &[harness::Caller::Root],
        sandboxes::a_kept_sandbox_is_made_used_made_anew_and_removed,
        sandboxes::an_agent_has_its_own_sandboxes_and_no_other_agents,
        sandboxes::a_sandbox_in_use_is_not_taken_down,
        walls::a_kept_sandbox_has_the_inputs_of_its_agent,
        walls::a_session_has_a_workspace_for_each_agent,
    );
    let of_all: &[harness::Case] = cases![
        tokens::whoever_has_no_good_token_gets_one_and_the_same_answer,
        tokens::nothing_of_a_token_is_kept,
        tokens::a_revoked_token_is_refused_and_its_stream_ends,
        tokens::guessing_is_slowed_down_and_locks_nobody_out,
        tokens::the_bootstrap_token_is_private_and_kept,
        tokens::roles_do_what_they_may_and_no_more,
        tokens::only_the_operator_sees_other_spaces,
        tokens::no_token_makes_a_stronger_one,
        browser::a_foreign_host_is_refused_everywhere,
        browser::a_foreign_origin_is_refused_everywhere,
        smuggling::ambiguous_requests_end_the_connection,
        smuggling::a_request_after_a_good_one_is_looked_at_too,
        bodies::only_strict_json_is_taken,
        bodies::what_is_too_large_is_refused_before_it_is_read,
        bodies::a_large_head_is_refused,
        slow::slow_heads_and_bodies_are_cut_off_and_others_are_served,
        slow::a_client_that_does_not_read_is_dropped,
        walls::what_an_agent_sends_along_is_that_agents,
        walls::a_conversation_that_an_agent_only_names_gives_it_no_secret,
        walls::a_users_cache_is_for_who_is_bound_to_that_user,
        walls::what_people_run_for_an_agent_holds_no_secret_of_the_space,
        walls::an_agent_destroys_nothing_of_others,
        walls::what_is_stored_already_is_not_told_to_an_agent,
        walls::gates_compare_with_what_the_same_agent_did,
        walls::gates_compare_with_others_where_the_operator_opens_it,
        walls::a_name_that_several_agents_gave_leads_people_to_none,
        walls::whoever_waits_for_an_answer_needs_a_token_for_it,
        walls::only_an_agent_is_bound_to_an_agent_or_a_conversation,
        spaces::another_spaces_things_are_like_things_that_never_were,
        matrix::every_operation_needs_a_token,
        matrix::other_methods_are_refused_with_those_that_there_are,
        matrix::every_answer_is_as_described,
        execs::an_exec_is_run_and_recorded,
        execs::a_client_that_goes_away_loses_nothing,
        execs::a_wrong_shape_is_refused_as_policy,
        execs::a_backend_is_named_with_its_runtime,
        execs::bindings_of_a_token_are_kept,
        execs::a_page_is_bounded_by_its_bytes,
        execs::whoever_finds_nothing_is_told_where_to_look,
        audit::an_export_can_be_verified_elsewhere,
        audit::the_admin_verifies_all_spaces_and_a_tenant_its_own,
        sandboxes::what_does_not_name_one_sandbox_is_refused,
        sandboxes::pool_and_backends_are_for_those_who_look_after_the_server,
        once::the_same_key_is_done_once,
        once::a_key_is_for_one_request,
        events::a_stream_can_be_taken_up_again,
        events::much_output_is_told_without_loss,
        shared::what_is_shared_is_a_workspace_like_any_other,
        shared::changes_of_what_is_shared_wait_are_applied_and_taken_back,
        shared::nothing_else_of_the_machine_is_shared,
        shared::a_home_and_the_system_are_never_shared,
        shared::another_directory_in_its_place_is_not_shared,
        inside::an_agent_asks_and_the_person_at_its_host_answers,
        inside::a_person_at_a_host_is_none_of_several,
        inside::an_operator_may_not_want_answers_from_hosts,
        inside::a_person_at_a_host_answers_what_that_agent_asked,
        inside::what_waits_in_a_directory_waits_for_whoever_has_it,
        inside::tools_exist_as_the_lists_of_their_agent_say,
        inside::nobody_brings_an_identity_over_the_network,
        transport::a_unix_socket_is_for_its_owner,
        transport::a_server_closes_in_order,
        transport::files_of_tls_are_named_when_they_are_no_good,
    ];
    harness::run(&[of_root, of_all].concat())
}
