//! The comparison does not rot: our server compared with itself.
#![allow(clippy::unwrap_used, reason = "the lint's exception for tests misses shared steps")]

use steersman_compare::{compare_with_itself, controlling};

/// What is compared here: one kind of each sort, with everything there is for it.
const PARTS: [&str; 6] = [
    "errors/*",
    "configmaps/*",
    "services/list/*",
    "poddisruptionbudgets.policy/*",
    "widgets.custom/rules/*",
    "discovery/*",
];

#[tokio::test(flavor = "multi_thread")]
async fn our_server_differs_in_nothing_from_itself() {
    for part in PARTS {
        let (requests, differences) = compare_with_itself(part).await.unwrap();
        assert!(requests > 10, "{part}: only {requests} requests");
        assert!(differences.is_empty(), "{part}: {differences:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_controllers_differ_in_nothing_from_themselves() {
    let (compared, differences) = controlling::compare_with_itself("account-*").await.unwrap();
    assert!(compared > 5, "only {compared} objects");
    assert_eq!(differences, None);
}
