//! Several servers on one store: controllers run on one of them.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use steersman::{Client, ListOptions};
use steersman_cluster::{MemoryStore, Storage};
use steersman_testkit::{Cluster, Settings, run_with};
use tokio::time::Instant;

const LEASE_DURATION: Duration = Duration::from_secs(15);

/// The second server has one node more than the first.
async fn server(store: &MemoryStore, number: usize) -> steersman_cluster::Cluster {
    let builder = steersman_cluster::Cluster::builder().seed(7).nodes(number);
    let builder = builder.storage(Storage::Existing(store.clone())).lease_duration(LEASE_DURATION);
    builder.start().await.unwrap()
}

/// Runs a test on virtual time, which another cluster keeps.
fn on_one_store(test: impl AsyncFnOnce(MemoryStore, Cluster)) {
    run_with(Settings::bare(1), async |clock| test(MemoryStore::new(), clock).await);
}

/// How long it takes until a controller has put what every namespace has into a new one.
async fn until_namespaces_are_served(server: &steersman_cluster::Cluster, name: &str) -> Duration {
    let client = Client::new(server.client(), "test");
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    client.create(&namespace).await.unwrap();
    let start = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let within = ListOptions { namespace: Some(name.into()), ..ListOptions::default() };
    while client.list::<ServiceAccount>(&within).await.unwrap().is_empty() {
        tick.tick().await;
        assert!(start.elapsed() < Duration::from_secs(120), "nobody acts");
    }
    start.elapsed()
}

async fn nodes(server: &steersman_cluster::Cluster) -> usize {
    let client = Client::new(server.client(), "test");
    client.list::<Node>(&ListOptions::default()).await.unwrap().len()
}

async fn holder(server: &steersman_cluster::Cluster) -> Option<String> {
    let client = Client::new(server.client(), "test");
    let lease = client.get::<Lease>("kube-system/steersman");
    lease.await.unwrap().and_then(|lease| lease.spec?.holder_identity)
}

#[test]
fn one_of_two_servers_runs_the_controllers() {
    on_one_store(async |store, clock| {
        let a = server(&store, 1).await;
        until_namespaces_are_served(&a, "one").await;
        let b = server(&store, 2).await;
        clock.advance(Duration::from_secs(60)).await;
        assert_eq!((a.leads(), b.leads()), (true, false));
        let (mut by_a, mut by_b) = (a.reconciles(), b.reconciles());
        until_namespaces_are_served(&b, "two").await;
        clock.advance(Duration::from_secs(1)).await;
        assert!(by_a.try_recv().is_ok(), "the leader is told of what others write");
        assert!(by_b.try_recv().is_err(), "the other one does nothing");
        assert_eq!(nodes(&b).await, 1, "nor do its nodes");
        drop(a);
        until_namespaces_are_served(&b, "three").await;
        assert_eq!(nodes(&b).await, 2);
    });
}

#[test]
fn a_server_that_dies_is_replaced_when_its_lease_runs_out() {
    on_one_store(async |store, clock| {
        let a = server(&store, 1).await;
        until_namespaces_are_served(&a, "one").await;
        let b = server(&store, 2).await;
        clock.advance(Duration::from_secs(60)).await;
        drop(a);
        let took = until_namespaces_are_served(&b, "two").await;
        assert!(took > LEASE_DURATION / 2, "{took:?}: the lease was not over");
        assert!(took < LEASE_DURATION * 2, "{took:?}");
        assert!(b.leads());
    });
}

#[test]
fn a_server_that_stops_hands_over_at_once() {
    on_one_store(async |store, clock| {
        let a = server(&store, 1).await;
        until_namespaces_are_served(&a, "one").await;
        let b = server(&store, 2).await;
        clock.advance(Duration::from_secs(60)).await;
        a.stop().await;
        let took = until_namespaces_are_served(&b, "two").await;
        assert!(took < LEASE_DURATION / 3, "{took:?}");
    });
}

#[test]
fn a_server_that_loses_its_lease_goes_on_serving_and_stands_again() {
    on_one_store(async |store, clock| {
        let a = server(&store, 1).await;
        until_namespaces_are_served(&a, "one").await;
        let first = holder(&a).await.unwrap();
        let client = Client::new(a.client(), "test");
        let mut stolen = client.get::<Lease>("kube-system/steersman").await.unwrap().unwrap();
        stolen.spec.as_mut().unwrap().holder_identity = Some("thief".into());
        client.update(&stolen).await.unwrap();
        clock.advance(Duration::from_secs(5)).await;
        assert!(!a.leads());
        assert_eq!(holder(&a).await.as_deref(), Some("thief"), "the API is served");
        let took = until_namespaces_are_served(&a, "two").await;
        assert!(took < LEASE_DURATION * 2, "{took:?}");
        assert!(a.leads());
        let second = holder(&a).await.unwrap();
        assert!(second != first && second != "thief", "{second}");
    });
}
