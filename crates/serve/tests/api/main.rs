//! A whole server on a loopback socket, and clients that are not nice to it.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(clippy::expect_used, reason = "a test stops where it fails")]
#![expect(clippy::print_stdout, reason = "the harness reports there")]

#[macro_use]
#[path = "../../../cage/tests/spawner/harness.rs"]
mod harness;
mod audit;
mod bodies;
mod browser;
mod client;
mod events;
mod execs;
mod house;
mod matrix;
mod once;
mod slow;
mod smuggling;
mod spaces;
mod tokens;
mod transport;

fn main() -> std::process::ExitCode {
    harness::run(cases![
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
        spaces::another_spaces_things_are_like_things_that_never_were,
        matrix::every_operation_needs_a_token,
        matrix::other_methods_are_refused_with_those_that_there_are,
        matrix::every_answer_is_as_described,
        execs::an_exec_is_run_and_recorded,
        execs::a_client_that_goes_away_loses_nothing,
        execs::a_wrong_shape_is_refused_as_policy,
        execs::bindings_of_a_token_are_kept,
        execs::a_page_is_bounded_by_its_bytes,
        execs::whoever_finds_nothing_is_told_where_to_look,
        audit::an_export_can_be_verified_elsewhere,
        once::the_same_key_is_done_once,
        once::a_key_is_for_one_request,
        events::a_stream_can_be_taken_up_again,
        events::much_output_is_told_without_loss,
        transport::a_unix_socket_is_for_its_owner,
        transport::a_server_closes_in_order,
        transport::files_of_tls_are_named_when_they_are_no_good,
    ])
}
