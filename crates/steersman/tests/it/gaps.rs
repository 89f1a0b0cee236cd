//! Watches that break: what happened meanwhile must not be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DeleteParams;
use kube::client::Body;
use steersman::{Context, Controller, Manager, Next, Result};
use steersman_store::{RangeRequest, Store};
use steersman_testkit::Cluster;
use tower::{BoxError, ServiceExt};

use crate::reconcile::{config_map, of_the_test};

/// A client whose requests fail, and whose watches end, while the switch is on.
fn unreliable(cluster: &Cluster, broken: Arc<AtomicBool>) -> kube::Client {
    unreliable_for(cluster, broken, |_| true)
}

/// The same, only for the requests that `concerns` chooses by their path and query.
fn unreliable_for(
    cluster: &Cluster,
    broken: Arc<AtomicBool>,
    concerns: impl Fn(&str) -> bool + Clone + Send + 'static,
) -> kube::Client {
    let api = cluster.inner().api().clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (api, mut broken) = (api.clone(), Arc::clone(&broken));
        if !concerns(&request.uri().to_string()) {
            broken = Arc::default();
        }
        async move {
            if broken.load(Ordering::Relaxed) {
                return Err(BoxError::from("the network is down"));
            }
            let response = api.oneshot(request).await.map_err(BoxError::from)?;
            Ok(response.map(|body| Breakable { body, broken }))
        }
    });
    kube::Client::new(service, "default")
}

/// A body that ends as soon as the network is down and something would come.
struct Breakable<B> {
    body: B,
    broken: Arc<AtomicBool>,
}

impl<B: http_body::Body + Unpin> http_body::Body for Breakable<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<std::result::Result<http_body::Frame<B::Data>, B::Error>>> {
        let frame = std::pin::Pin::new(&mut self.body).poll_frame(cx);
        if self.broken.load(Ordering::Relaxed) && frame.is_ready() {
            return std::task::Poll::Ready(None);
        }
        frame
    }
}

async fn forget_history(cluster: &Cluster) {
    let store = cluster.inner().store();
    let now = store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap();
    store.compact(now.revision).await.unwrap();
}

#[steersman::test]
async fn a_child_deleted_while_nobody_watched_is_noticed(cluster: Cluster) -> Result<()> {
    let broken = Arc::new(AtomicBool::new(false));
    let controller = Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            let mut secret = Secret::default();
            secret.metadata.name.clone_from(&map.metadata.name);
            ctx.apply(secret).await?;
            Ok(Next::Settled)
        },
    );
    let _running = Manager::new(unreliable(&cluster, Arc::clone(&broken))).with(controller).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |_: &Secret| true).await?;
    cluster.advance(Duration::from_secs(1)).await;

    broken.store(true, Ordering::Relaxed);
    cluster.client().delete::<Secret>("a", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(60)).await;
    forget_history(&cluster).await; // the watches cannot be resumed: 410
    assert!(cluster.client().get::<Secret>("a").await?.is_none());

    broken.store(false, Ordering::Relaxed);
    cluster.eventually("a", |_: &Secret| true).await
}

#[steersman::test]
async fn work_goes_on_when_the_network_comes_back(cluster: Cluster) -> Result<()> {
    let broken = Arc::new(AtomicBool::new(true));
    let manager = Manager::new(unreliable(&cluster, Arc::clone(&broken)));
    let mut records = manager.reconciles();
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled));
    let _running = manager.with(controller).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(300)).await;
    assert!(records.try_recv().is_err());
    broken.store(false, Ordering::Relaxed);
    assert_eq!(records.recv().await?.key.to_string(), "default/a");
    Ok(())
}

/// Creates a Secret under a new name whenever it sees none; leaves "quiet" alone.
fn one_child_each() -> Controller {
    Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            if map.metadata.name.as_deref() == Some("quiet") {
                return Ok(Next::Settled);
            }
            if ctx.children::<Secret>()?.is_empty() {
                let mut secret = Secret::default();
                secret.metadata.generate_name = Some("child-".into());
                ctx.create(secret).await?;
            }
            Ok(Next::After(Duration::from_secs(1)))
        },
    )
}

#[steersman::test]
async fn a_cache_that_is_behind_postpones_its_key_and_no_other(cluster: Cluster) -> Result<()> {
    let broken = Arc::new(AtomicBool::new(false));
    let reads_of_secrets =
        |path: &str| path.contains("/secrets?") && !path.contains("fieldManager");
    let client = unreliable_for(&cluster, Arc::clone(&broken), reads_of_secrets);
    let manager = Manager::new(client);
    let mut records = manager.reconciles();
    let _running = manager.with(one_child_each()).start();
    cluster.advance(Duration::from_secs(1)).await;
    broken.store(true, Ordering::Relaxed);

    cluster.client().create(&config_map("writes")).await?;
    let mut quiet = cluster.client().create(&config_map("quiet")).await?;
    for number in 0..50 {
        quiet.data = Some([("n".to_owned(), number.to_string())].into());
        quiet = cluster.client().update(&quiet).await?;
        cluster.advance(Duration::from_millis(200)).await;
    }
    let mut of_quiet = 0;
    while let Ok(record) = records.try_recv() {
        of_quiet += u32::from(record.key.name.as_ref() == "quiet");
    }
    assert!(of_quiet > 40, "a key that wrote nothing was reconciled {of_quiet} times");

    cluster.advance(Duration::from_secs(60)).await;
    broken.store(false, Ordering::Relaxed);
    cluster.advance(Duration::from_secs(120)).await;
    let secrets: Vec<Secret> =
        cluster.client().list(&steersman::ListOptions::namespace("default")).await?;
    assert_eq!(secrets.len(), 1, "a stale read created another child");
    Ok(())
}
