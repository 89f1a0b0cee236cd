//! What every store must do, run on each store there is.
//!
//! `suite` holds the specifications, `model` checks random histories against a naive
//! reference. A new store is one more `store_suite!` at the end of this file.
#![allow(clippy::unwrap_used, reason = "the lint's exception for tests misses shared steps")]

#[allow(unreachable_pub, reason = "other crates' tests include it as well")]
mod etcd_process;
mod etcd_starts;
mod model;
mod suite;

use std::sync::Arc;

use steersman_store::Store;
use steersman_store::memory::MemoryStore;

/// Makes a test of every specification, in a module named after the store. `$empty` is a
/// function that makes an empty store.
macro_rules! store_suite {
    ($store:ident, $empty:expr; $($spec:ident)*) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $spec() {
                    super::suite::$spec($empty()).await;
                }
            )*

            #[test]
            fn random_histories_match_the_model() {
                super::model::check($empty);
            }
        }
    };
    ($store:ident, $empty:expr) => {
        store_suite! { $store, $empty;
            an_empty_store_is_after_revision_zero
            every_write_has_a_revision_of_its_own
            an_entry_remembers_when_it_was_created_and_modified
            a_key_created_again_starts_over
            a_write_reports_what_it_replaced
            a_write_happens_only_if_the_key_is_as_expected
            a_conflict_leaves_the_store_unchanged
            deleting_an_absent_key_conflicts
            of_many_creators_one_wins
            contended_increments_are_never_lost
            a_range_is_ordered_by_key_and_ends_with_its_prefix
            a_range_reads_the_state_at_a_revision
            pages_of_one_revision_add_up_to_the_whole
            a_start_before_the_prefix_does_not_widen_it
            the_future_cannot_be_read_watched_or_compacted
            a_compacted_revision_cannot_be_read_or_watched
            compaction_keeps_the_state_at_its_revision
            compacting_what_is_compacted_does_nothing
            a_watch_after_the_latest_revision_sees_only_what_follows
            a_watch_resumes_where_another_stopped
            a_watch_sees_puts_and_deletes_with_what_they_replaced
            a_watch_sees_only_its_prefix
            a_waiting_watch_is_woken_by_a_write
            a_cancelled_wait_loses_nothing
            watches_see_every_write_of_many_writers_once_and_in_order
            a_watch_knows_how_far_it_has_delivered
            a_watch_that_compaction_passed_by_is_told
            a_watch_survives_compaction_of_what_it_has_seen
            a_watch_where_nothing_changes_is_never_passed_by
            a_watch_is_told_of_the_first_change_after_a_compacted_silence
        }
    };
}

fn empty_memory_store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

store_suite!(memory, super::empty_memory_store);
