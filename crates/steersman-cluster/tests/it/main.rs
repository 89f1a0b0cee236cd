//! A cluster in this process, on a store that outlives it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod dual_stack;
mod encryption;
mod join;
mod node_groups;
mod simulated_pods;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Pod};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use steersman_cluster::disk::OpenError;
use steersman_cluster::{Cluster, ForkError, StartError, Storage, User};
use steersman_store::{Expected, Store, WriteRequest};
use tokio::time::{Instant, interval, timeout};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that goes with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("steersman-cluster-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn start(directory: &Path, seed: u64) -> Result<Cluster, StartError> {
    let storage = Storage::Disk { directory: directory.to_owned(), sync: true };
    let listen = ([127, 0, 0, 1], 0).into();
    Cluster::builder().storage(storage).seed(seed).listen(listen).start().await
}

/// Name and uid of the Pods, once there are so many that run.
async fn running_pods(cluster: &Cluster, count: usize) -> BTreeMap<String, String> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let mut tick = interval(Duration::from_millis(20));
    let running = async {
        loop {
            let found = pods.list(&ListParams::default()).await.unwrap().items;
            let runs = |pod: &&Pod| {
                pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
            };
            if found.iter().filter(runs).count() == count {
                let named = |pod: Pod| Some((pod.metadata.name?, pod.metadata.uid?));
                return found.into_iter().filter_map(named).collect();
            }
            tick.tick().await;
        }
    };
    timeout(PATIENCE, running).await.expect("the Pods run")
}

/// Whether the cluster says that it is ready.
async fn is_ready(client: &kube::Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    client.request_text(request).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_stops_says_so_first_and_goes_on_for_as_long_as_it_should() {
    let delay = Duration::from_secs(10);
    let cluster = Cluster::builder().shutdown_delay(delay).start().await.unwrap();
    let client = cluster.client();
    assert!(is_ready(&client).await);
    let began = Instant::now();
    let stopped = tokio::spawn(cluster.stop());
    assert!(timeout(delay / 2, std::future::pending::<()>()).await.is_err());
    assert!(!is_ready(&client).await);
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("late".into());
    maps.create(&PostParams::default(), &map).await.expect("everything else goes on");
    stopped.await.unwrap();
    assert!((delay..delay * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
}

/// Creates a ConfigMap with a generated name and returns its uid.
async fn created(cluster: &Cluster) -> String {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let mut map = ConfigMap::default();
    map.metadata.generate_name = Some("a-".into());
    maps.create(&PostParams::default(), &map).await.unwrap().metadata.uid.unwrap()
}

/// Creates a Deployment of three replicas.
async fn deploy(cluster: &Cluster) {
    let labels = json!({"app": "web"});
    let web = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }},
    });
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let web = serde_json::from_value(web).unwrap();
    deployments.create(&PostParams::default(), &web).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_stops_and_starts_again_as_it_was() {
    let scratch = Scratch::new();
    let cluster = start(&scratch.0, 1).await.unwrap();
    deploy(&cluster).await;
    let before = running_pods(&cluster, 3).await;
    let mut uids = vec![created(&cluster).await];
    let authority = |cluster: &Cluster| {
        let kubeconfig = &cluster.endpoint().unwrap().kubeconfig;
        let line = kubeconfig.lines().find(|line| line.contains("certificate-authority-data"));
        line.unwrap().to_owned()
    };
    let trusted = authority(&cluster);
    cluster.stop().await;

    for _ in 0..3 {
        let cluster = start(&scratch.0, 1).await.expect("the directory is free at once");
        assert!(cluster.opened().unwrap().changes > 0);
        assert_eq!(authority(&cluster), trusted);
        assert_eq!(running_pods(&cluster, 3).await, before);
        uids.push(created(&cluster).await);
        cluster.stop().await;
    }
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), 4, "the same seed gave a uid a second time: {uids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_belongs_to_one_cluster_which_cannot_be_forked() {
    let scratch = Scratch::new();
    let cluster = start(&scratch.0, 1).await.unwrap();
    let second = start(&scratch.0, 2).await.err().expect("it is in use");
    assert!(matches!(second, StartError::Disk(OpenError::Locked { .. })), "{second:?}");
    let fork = cluster.fork().await.err().expect("it is on disk");
    assert!(matches!(fork, ForkError::Storage { .. }), "{fork:?}");
    assert!(fork.to_string().contains("on disk") && fork.to_string().contains("snapshot"));
    created(&cluster).await; // it goes on
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_leaves_the_directory_free() {
    let scratch = Scratch::new();
    start(&scratch.0, 1).await.unwrap().stop().await;
    // What the store holds as the cluster's identity is none.
    let (store, _) =
        steersman_cluster::disk::DiskStore::open(&scratch.0, Default::default()).await.unwrap();
    let key = "/registry/steersman.dev/identity";
    store.write(WriteRequest::put(key, "nobody", Expected::Any)).await.unwrap();
    store.close().await;
    let failed = start(&scratch.0, 1).await.err().expect("nobody knows who it is");
    assert!(matches!(failed, StartError::Identity(_)), "{failed:?}");
    let again = start(&scratch.0, 1).await.err().expect("it is as before");
    assert!(matches!(again, StartError::Identity(_)), "the directory is in use: {again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_dropped_frees_its_directory_soon() {
    let scratch = Scratch::new();
    drop(start(&scratch.0, 1).await.unwrap());
    let mut tick = interval(Duration::from_millis(20));
    let free = async {
        loop {
            match start(&scratch.0, 1).await {
                Err(StartError::Disk(OpenError::Locked { .. })) => tick.tick().await,
                started => return started.unwrap(),
            };
        }
    };
    timeout(PATIENCE / 2, free).await.expect("nobody holds the directory").stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_where_it_says_not_where_it_listens() {
    let builder = Cluster::builder().nodes(0).controllers(false);
    let builder = builder.listen(([127, 0, 0, 1], 0).into()).advertise([127, 0, 0, 2].into());
    let cluster = builder.start().await.unwrap();
    let endpoint = cluster.endpoint().unwrap();
    let port = endpoint.address.port();
    assert_eq!(endpoint.url, format!("https://127.0.0.2:{port}"));
    assert!(endpoint.kubeconfig.contains(&endpoint.url));
    let endpoints: Api<Endpoints> = Api::default_namespaced(cluster.client());
    let mut tick = interval(Duration::from_millis(20));
    let found = async {
        loop {
            if let Some(found) = endpoints.get_opt("kubernetes").await.unwrap() {
                return found.subsets.unwrap().remove(0);
            }
            tick.tick().await;
        }
    };
    let found = timeout(PATIENCE, found).await.expect("the server says where it is");
    assert_eq!(found.addresses.unwrap()[0].ip, "127.0.0.2");
    assert_eq!(found.ports.unwrap()[0].port, i32::from(port));
    cluster.stop().await;
}

#[tokio::test]
async fn a_controller_does_only_what_its_role_allows() {
    let cluster = Cluster::builder().start().await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    let name = "system:controller:replicaset-controller";
    bindings.delete(name, &Default::default()).await.unwrap();
    let refused = cluster.api().part_refused();
    deploy(&cluster).await;
    let refused = timeout(PATIENCE, refused).await.unwrap();
    let who = "User \"system:serviceaccount:kube-system:replicaset-controller\" cannot ";
    assert!(refused.contains(who), "{refused}");
}

#[tokio::test]
async fn a_client_of_a_user_may_do_what_roles_allow_that_user() {
    let cluster = Cluster::builder().nodes(0).controllers(false).start().await.unwrap();
    let client = cluster.client_as(User::service_account("shops", "shop"));
    assert_eq!(client.default_namespace(), "shops");
    let maps: Api<ConfigMap> = Api::all(client);
    let refused = maps.list(&ListParams::default()).await.unwrap_err().to_string();
    let user = "User \"system:serviceaccount:shops:shop\" cannot list resource \"configmaps\"";
    assert!(refused.contains(user), "{refused}");
    let binding = json!({
        "metadata": {"name": "shops"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "system:serviceaccounts:shops"}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    maps.list(&ListParams::default()).await.unwrap();
    let someone = cluster.client_as(User::known("jane", &[]));
    assert_eq!(someone.default_namespace(), "default");
}

/// The API is served by one runtime, and what runs beside it by another.
#[test]
fn controllers_have_a_runtime_of_their_own_where_one_is_given() {
    let runtime = |threads| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads).enable_all().build().unwrap()
    };
    let (serving, controllers) = (runtime(1), runtime(1));
    let elsewhere = controllers.handle().clone();
    serving.block_on(async {
        let cluster = Cluster::builder().controllers_on(elsewhere.clone()).start().await.unwrap();
        assert!(elsewhere.metrics().num_alive_tasks() > 0);
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        });
        let deployment: Deployment = serde_json::from_value(deployment).unwrap();
        let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
        deployments.create(&PostParams::default(), &deployment).await.unwrap();
        assert_eq!(running_pods(&cluster, 1).await.len(), 1);
        cluster.stop().await;
    });
}
