//! What every store must do, run on each store there is.
//!
//! `suite` holds the specifications, `model` checks random histories against a naive
//! reference, `linearizability` looks for one order of what concurrent clients saw, `crash` kills
//! processes that write, and `damage` changes what they left. A new store is one more [`Ground`](stores::Ground) and one more
//! `store_suite!`.
#![allow(clippy::unwrap_used, reason = "the lint's exception for tests misses shared steps")]

mod crash;
mod damage;
mod directory;
mod encryption;
mod etcd_faults;
#[allow(unreachable_pub, reason = "other crates' tests include it as well")]
mod etcd_process;
mod etcd_starts;
mod linearizability;
mod model;
mod seed;
mod stores;
mod suite;

/// How long a specification may take.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(90);

/// Makes a test of every specification, in a module named after the store. `$shared` gives the
/// ground for a store that others may stand beside, `$own` one where its history is its own: who
/// compacts it disturbs nobody.
macro_rules! store_suite {
    ($store:ident, $shared:expr, $own:expr; $($spec:ident)*; $($compacting:ident)*) => {
        mod $store {
            use crate::stores::Ground;

            $(store_suite! { $spec, $shared })*
            $(store_suite! { $compacting, $own })*

            #[test]
            fn random_histories_match_the_model() {
                super::model::check($own);
            }
        }
    };
    ($spec:ident, $ground:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $spec() {
            let store = $ground.await.store().await;
            let spec = crate::suite::$spec(store);
            tokio::time::timeout(crate::TIMEOUT, spec).await.expect("it ends in time");
        }
    };
    ($store:ident, $shared:expr, $own:expr) => {
        store_suite! { $store, $shared, $own;
            an_empty_store_is_after_revision_zero
            every_write_has_a_revision_of_its_own
            an_entry_remembers_when_it_was_created_and_modified
            a_key_created_again_starts_over
            a_write_reports_what_it_replaced
            a_write_happens_only_if_the_key_is_as_expected
            a_conflict_leaves_the_store_unchanged
            deleting_an_absent_key_conflicts
            of_many_creators_one_wins
            of_many_deleters_one_wins
            contended_increments_are_never_lost
            a_key_that_is_created_and_deleted_is_a_lock
            a_range_is_ordered_by_key_and_ends_with_its_prefix
            a_range_reads_the_state_at_a_revision
            one_key_is_read_as_it_was_or_as_far_as_was_heard
            a_range_is_one_moment_however_often_it_is_read
            pages_of_one_revision_add_up_to_the_whole
            pages_are_of_one_moment_while_writers_go_on
            a_start_before_the_prefix_does_not_widen_it
            keys_come_without_values_if_nothing_else_is_wanted
            a_stale_range_shows_at_least_what_was_heard
            keys_are_ordered_by_their_bytes_whatever_they_spell
            many_keys_are_read_whole_and_by_pages
            a_value_may_be_a_megabyte
            the_future_cannot_be_read_watched_or_compacted
            a_watch_after_the_latest_revision_sees_only_what_follows
            a_watch_resumes_where_another_stopped
            a_watch_resumes_at_any_moment_without_gap_or_duplicate
            a_watch_sees_puts_and_deletes_with_what_they_replaced
            a_watch_sees_only_its_prefix
            a_waiting_watch_is_woken_by_a_write
            a_cancelled_wait_loses_nothing
            a_watch_knows_how_far_it_has_delivered
            watches_see_every_write_of_many_writers_once_and_in_order
            each_of_many_watches_hears_exactly_its_prefix
            all_who_read_a_value_share_its_memory
            a_key_goes_no_earlier_than_its_ttl_and_soon_after
            a_later_write_decides_whether_a_key_goes
            a_key_that_is_written_again_in_time_stays
            many_keys_go_each_at_its_time;

            a_compacted_revision_cannot_be_read_or_watched
            compaction_keeps_the_state_at_its_revision
            compacting_what_is_compacted_does_nothing
            a_watch_that_compaction_passed_by_is_told
            a_watch_survives_compaction_of_what_it_has_seen
            a_watch_where_nothing_changes_is_never_passed_by
            a_watch_is_told_of_the_first_change_after_a_compacted_silence
            a_slow_watch_is_cut_off_and_disturbs_nobody
            history_is_compacted_under_readers_and_writers
        }
    };
}

store_suite!(memory, std::future::ready(Ground::Memory), std::future::ready(Ground::Memory));
store_suite!(
    encrypted,
    std::future::ready(Ground::Encrypted),
    std::future::ready(Ground::Encrypted)
);
store_suite!(disk, std::future::ready(Ground::Disk), std::future::ready(Ground::Disk));
store_suite!(etcd, Ground::of_shared_etcd(), Ground::of_own_etcd());
