//! Four replicas share ten thousand objects while members die, come and go.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use steersman_testkit::{Cluster, Condition, Link, Settings, run_with};

use super::shards::Job;
use crate::reconcile::config_map;

const OBJECTS: usize = 10_000;
/// How soon each object is reconciled again by whoever has it.
const PERIOD: Duration = Duration::from_secs(60);
/// How long keys of a member that died are nobody's, at most.
const TAKEOVER: Duration = Duration::from_secs(25);

async fn create_objects(cluster: &Cluster) {
    let maps = (0..OBJECTS).map(|number| config_map(&format!("object-{number}")));
    let created = futures::stream::iter(maps)
        .map(|map| async move { cluster.client().create(&map).await.map(drop) })
        .buffer_unordered(64);
    created.for_each(|created| async move { created.unwrap() }).await;
}

/// Every object was reconciled lately, and these replicas all have a fair part of them.
async fn all_reconciled(cluster: &Cluster, job: &Job, replicas: &[&str]) {
    cluster.advance(TAKEOVER + PERIOD).await;
    let reconciled = job.oracle.reconciled_within(TAKEOVER + PERIOD);
    assert_eq!(reconciled, OBJECTS, "with {replicas:?}");
    let shares: Vec<usize> =
        replicas.iter().map(|name| job.oracle.objects_of(name).len()).collect();
    assert_eq!(shares.iter().sum::<usize>(), OBJECTS, "{replicas:?} have {shares:?}");
    let fair = OBJECTS / replicas.len();
    assert!(shares.iter().all(|share| *share > fair / 2), "{replicas:?} have {shares:?}");
}

#[test]
fn ten_thousand_objects_keep_being_reconciled_and_none_by_two_at_once() {
    run_with(Settings::bare(1), |cluster| async move {
        let job = Job {
            oracle: Arc::default(),
            takes: Duration::from_millis(50),
            period: PERIOD,
            concurrency: 16,
        };
        create_objects(&cluster).await;
        let links: Vec<Link> = (0..5).map(Link::seeded).collect();
        let start = |name: &str, link: usize| job.start(&cluster, name, &links[link]);
        let (a, b) = (start("a", 0), start("b", 1));
        let (_c, _d) = (start("c", 2), start("d", 3));
        all_reconciled(&cluster, &job, &["a", "b", "c", "d"]).await;

        drop(a); // killed: its Lease runs out
        all_reconciled(&cluster, &job, &["b", "c", "d"]).await;

        links[3].set(Condition::HELD); // partitioned: d must stop by itself
        all_reconciled(&cluster, &job, &["b", "c"]).await;

        let _e = start("e", 4); // joins
        links[3].set(Condition::GOOD); // and d comes back
        all_reconciled(&cluster, &job, &["b", "c", "d", "e"]).await;

        b.stop().await; // leaves in order
        all_reconciled(&cluster, &job, &["c", "d", "e"]).await;
    });
}
