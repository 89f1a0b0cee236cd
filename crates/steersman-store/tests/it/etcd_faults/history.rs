//! History that is gone: compacted by somebody, or with the cluster that it belonged to.

use super::proxy::Proxy;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_compaction_has_passed_by_reads_everything_anew() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.endpoints()[0]).await;
    let mut options = options(&etcd);
    options.endpoints = vec![proxy.endpoint.clone()];
    let store = EtcdStore::connect(options).await.unwrap();
    put(&store, "/registry/changed", "1").await;
    put(&store, "/registry/deleted", "1").await;
    let mut replay = Replay::new(&store).await;
    proxy.cut();
    let direct = connect(&etcd).await;
    put(&direct, "/registry/changed", "2").await;
    etcd.ctl(&["del", "/registry/deleted"]);
    let last = put(&direct, "/registry/new", "1").await;
    direct.compact(last).await.unwrap();
    proxy.mend();

    assert_equals_etcd(&store, &etcd).await;
    let passed_by = replay.until(last).await.unwrap_err();
    assert!(matches!(passed_by, StoreError::Compacted { .. }), "{passed_by}");
    let mut replay = Replay::new(&store).await;
    put(&direct, "/registry/after", "1").await;
    replay.assert_complete(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_has_much_to_tell_slowly_is_not_given_up() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.endpoints()[0]).await;
    let options = Options {
        endpoints: vec![proxy.endpoint.clone()],
        request_timeout: LONG,
        ..options(&etcd)
    };
    let store = EtcdStore::connect(options).await.unwrap();
    put(&store, "/registry/a", "1").await;
    proxy.cut();
    let direct = connect(&etcd).await;
    let large = "x".repeat(100_000);
    for n in 0..100 {
        put(&direct, &format!("/registry/large/{n}"), &large).await;
    }
    // Five seconds' worth, of which nothing is seen before the end: readers lose patience earlier.
    proxy.slow();
    assert_eq!(list(&store).await, list(&direct).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_cut_off_resumes_without_a_gap() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.endpoints()[0]).await;
    let mut options = options(&etcd);
    options.endpoints = vec![proxy.endpoint.clone()];
    let store = EtcdStore::connect(options).await.unwrap();
    let direct = connect(&etcd).await;
    let mut replay = Replay::new(&store).await;
    for round in 0..5 {
        proxy.cut();
        for n in 0..50 {
            put(&direct, &format!("/registry/{n}"), &format!("{round}-{n}")).await;
        }
        proxy.mend();
        replay.assert_complete(&store).await;
    }
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_told_whole_though_its_response_comes_in_pieces() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.endpoints()[0]).await;
    let options = Options { endpoints: vec![proxy.endpoint.clone()], ..options(&etcd) };
    let store = EtcdStore::connect(options).await.unwrap();
    let mut replay = Replay::new(&store).await;
    proxy.cut();
    // Less than a request may have, and together several times what a piece may have.
    let large = "x".repeat(90 * 1024);
    for n in 0..8 {
        let puts: String = (0..10).map(|key| format!("put /registry/{key} {n}{large}\n")).collect();
        etcd.ctl_with_input(&["txn"], &format!("\n{puts}\n\n"));
    }
    proxy.mend();
    replay.assert_complete(&store).await;
    assert_eq!(replay.told.len(), 80);
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_replaced_is_read_anew_though_its_revisions_went_back() {
    let mut etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    for n in 0..20 {
        put(&store, &format!("/registry/old/{n}"), "1").await;
    }
    let mut replay = Replay::new(&store).await;
    etcd.replace().await;
    etcd.ctl(&["put", "/registry/new", "1"]);
    let (entries, revision) = list(&store).await;
    assert_eq!((entries.len(), revision), (1, Revision(2)));
    let passed_by = replay.until(Revision(100)).await.unwrap_err();
    assert!(matches!(passed_by, StoreError::Compacted { .. }), "{passed_by}");
    put(&store, "/registry/new", "2").await;
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_put_back_is_noticed_though_its_revisions_have_gone_on() {
    let mut etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.endpoints()[0]).await;
    etcd.ctl(&["put", "/registry/kept", "1"]);
    etcd.stop(0);
    let saved = etcd.save(0);
    etcd.restart(0).await;
    let options = Options { endpoints: vec![proxy.endpoint.clone()], ..options(&etcd) };
    let store = EtcdStore::connect(options).await.unwrap();
    put(&store, "/registry/lost", "1").await;
    let mut replay = Replay::new(&store).await;
    proxy.cut();
    etcd.stop(0);
    etcd.put_back(0, &saved);
    etcd.restart(0).await;
    for n in 0..10 {
        etcd.ctl(&["put", "/registry/kept", &n.to_string()]);
    }
    proxy.mend();
    assert_equals_etcd(&store, &etcd).await;
    let passed_by = replay.until(Revision(100)).await.unwrap_err();
    assert!(matches!(passed_by, StoreError::Compacted { .. }), "{passed_by}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_resumes_from_what_etcd_has_kept() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let mut revisions = Vec::new();
    for n in 0..10 {
        revisions.push(put(&store, "/registry/a", &n.to_string()).await);
    }
    store.compact(revisions[4]).await.unwrap();
    let again = connect(&etcd).await;
    assert_eq!(again.stats().oldest, revisions[4]);
    assert_eq!(watch(&again, revisions[4]).await.next().await.unwrap().len(), 5);
    let short = EtcdStore::connect(Options { history: 2, ..options(&etcd) }).await.unwrap();
    assert_eq!(short.stats().oldest, revisions[7]);
    put(&short, "/registry/a", "10").await;
    let kept = store.stats().history;
    assert!(kept >= 5, "another's short memory is its own: {kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_compactors_one_compacts_and_the_other_takes_over() {
    const INTERVAL: Duration = Duration::from_millis(400);
    let etcd = Etcd::start().await;
    let compacting = || async {
        let options = Options { compaction: Some(INTERVAL), ..options(&etcd) };
        EtcdStore::connect(options).await.unwrap()
    };
    let begun = tokio::time::Instant::now();
    let (first, second) = (compacting().await, compacting().await);
    wait_for_elections(&etcd, &first, 5).await;
    assert!(begun.elapsed() >= 5 * INTERVAL, "more than one won: {:?}", begun.elapsed());
    let compacted = first.stats().oldest;
    assert!(compacted > Revision(1), "its own history goes, too");
    drop(first);
    wait_for_elections(&etcd, &second, 7).await;
    list(&second).await;
    assert!(second.stats().oldest > compacted, "what another compacts is forgotten as well");
    assert_equals_etcd(&second, &etcd).await;
}

/// Writes until there were this many elections.
async fn wait_for_elections(etcd: &Etcd, store: &EtcdStore, versions: u64) {
    let elected = tokio::time::timeout(LONG, async {
        loop {
            put(store, "/registry/a", "1").await;
            if elections(etcd) >= versions {
                return;
            }
        }
    });
    elected.await.expect("somebody is elected");
}

/// How many elections there were.
fn elections(etcd: &Etcd) -> u64 {
    let fields = etcd.ctl(&["get", "compact_rev_key", "--write-out=fields"]);
    let version = fields.lines().find_map(|line| line.strip_prefix("\"Version\" : "));
    version.map_or(0, |version| version.parse().unwrap())
}
