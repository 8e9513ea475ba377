//! Each broken model is caught by the invariant that it breaks.

use steadfast_model::Invariant::{A1, A2, A3, A4, A5, A6, A8, A9, A11, A13, A14};
use steadfast_model::Mutation;

use crate::assert_caught;

#[test]
fn a2_an_epoch_that_is_used_again_after_clean_up_is_noticed() {
    assert_caught(Mutation::EpochFromRow, A2);
}

#[test]
fn a14_a_renewal_that_revives_an_expired_lease_is_noticed() {
    assert_caught(Mutation::RenewalRevives, A14);
}

#[test]
fn a3_a_release_without_a_look_at_the_epoch_is_noticed() {
    assert_caught(Mutation::ReleaseWithoutEpoch, A3);
}

#[test]
fn a11_an_idle_release_of_a_session_with_running_work_is_noticed() {
    assert_caught(Mutation::IdleWhileRunning, A11);
}

#[test]
fn a4_a_deadline_that_counts_from_the_receipt_of_an_answer_is_noticed() {
    assert_caught(Mutation::ProofFromReceipt, A4);
}

#[test]
fn a4_an_activity_that_begins_after_the_deadline_is_noticed() {
    assert_caught(Mutation::StartWithoutProof, A4);
}

#[test]
fn a1_session_work_of_a_process_that_is_not_registered_is_noticed() {
    assert_caught(Mutation::UnregisteredTakesSessions, A1);
}

#[test]
fn a13_a_call_by_an_old_start_of_a_node_that_is_served_is_noticed() {
    assert_caught(Mutation::OldStartIsServed, A13);
}

#[test]
fn a13_a_replaced_process_that_goes_on_is_noticed() {
    assert_caught(Mutation::ReplacedGoesOn, A13);
}

#[test]
fn a9_a_claim_of_a_closed_session_is_noticed() {
    assert_caught(Mutation::ClosedIsClaimable, A9);
}

#[test]
fn a9_a_claim_before_the_former_owner_of_a_reopened_session_has_detached_it_is_noticed() {
    assert_caught(Mutation::FormerOwnerIsNotWaitedFor, A9);
}

#[test]
fn a2_a_late_answer_that_enters_a_released_epoch_is_noticed() {
    assert_caught(Mutation::ReleasedIsForgotten, A2);
}

#[test]
fn a5_a_claim_of_a_session_with_a_live_lease_is_noticed() {
    assert_caught(Mutation::LiveLeaseIsTaken, A5);
}

#[test]
fn a8_a_process_that_serves_more_sessions_than_it_may_is_noticed() {
    assert_caught(Mutation::NoLimit, A8);
}

#[test]
fn a6_leases_that_add_up_are_noticed() {
    assert_caught(Mutation::LeasesAddUp, A6);
}

#[test]
fn a6_an_ended_lease_that_blocks_its_session_is_noticed() {
    assert_caught(Mutation::EndedLeaseStaysTaken, A6);
}

#[test]
fn a14_clean_up_of_a_live_lease_is_noticed() {
    assert_caught(Mutation::CleanUpOfLiveLeases, A14);
}
