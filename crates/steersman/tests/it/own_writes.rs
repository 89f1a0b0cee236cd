//! A reconcile sees what the one before it wrote: what it made, what it deleted, of any kind.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::core::{DynamicObject, GroupVersionKind, PartialObjectMeta};
use steersman::controller::source::Watch;
use steersman::{Context, Controller, Error, ListOptions, Next, Result};
use steersman_testkit::Cluster;
use tokio::time::Instant;

use crate::reconcile::{config_map, of_the_test};

/// At once, before any event can come.
const AT_ONCE: Next = Next::After(Duration::ZERO);

#[steersman::test]
async fn what_was_deleted_is_not_seen_again(cluster: Cluster) -> Result<()> {
    let deleted = Arc::new(Mutex::new(HashSet::new()));
    let noted = Arc::clone(&deleted);
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let deleted = Arc::clone(&noted);
            async move {
                if deleted.lock().unwrap().len() == 10 {
                    return Ok(Next::Settled);
                }
                let Some(child) = ctx.children::<Secret>()?.pop() else {
                    let mut secret = Secret::default();
                    secret.metadata.name = Some("child".into());
                    ctx.create(secret).await?;
                    return Ok(AT_ONCE);
                };
                assert!(deleted.lock().unwrap().insert(child.uid()), "it was deleted before");
                ctx.delete(&*child).await?;
                Ok(AT_ONCE)
            }
        },
    ));
    let mut records = cluster.reconciles();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(deleted.lock().unwrap().len(), 10);
    while let Ok(record) = records.try_recv() {
        assert!(!record.outcome.is_failure(), "{}", record.outcome);
    }
    Ok(())
}

#[steersman::test]
async fn a_write_that_failed_is_not_waited_for(cluster: Cluster) -> Result<()> {
    let tries = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&tries);
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            noted.lock().unwrap().push(Instant::now());
            let second = noted.lock().unwrap().len() > 1;
            async move {
                let mut secret = Secret::default();
                secret.metadata.name = Some("Not A Name".into());
                let refused = ctx.create(secret).await.map(drop);
                if second { Ok(Next::Settled) } else { refused.map(|()| Next::Settled) }
            }
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let tries = tries.lock().unwrap().clone();
    assert_eq!(tries.len(), 2);
    assert!(tries[1] - tries[0] < Duration::from_millis(100), "{:?}", tries[1] - tries[0]);
    Ok(())
}

#[steersman::test]
async fn children_whose_metadata_alone_is_read_are_seen_too(cluster: Cluster) -> Result<()> {
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .owns_metadata::<Secret>()
        .reconcile(async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let children = ctx.children::<PartialObjectMeta<Secret>>()?;
            if children.len() > 1 {
                return Err(Error::terminal("a stale read made one too many"));
            }
            if children.is_empty() {
                let mut child = Secret::default();
                child.metadata.generate_name = Some("child-".into());
                ctx.create(child).await?;
                return Ok(AT_ONCE);
            }
            Ok(Next::Settled)
        });
    cluster.run(controller);
    for name in ["a", "b", "c"] {
        cluster.client().create(&config_map(name)).await?;
    }
    cluster.advance(Duration::from_secs(1)).await;
    let made: Vec<Secret> = cluster.client().list(&ListOptions::namespace("default")).await?;
    assert_eq!(made.len(), 3);
    Ok(())
}

#[steersman::test]
async fn what_is_written_out_of_a_restricted_cache_is_not_seen_in_it_again(
    cluster: Cluster,
) -> Result<()> {
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let controller = Controller::of::<ConfigMap>().only(of_the_test).reads::<Secret>().reconcile(
        move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let count = Arc::clone(&count);
            async move {
                let Some(secret) = ctx.get::<Secret>("new")? else { return Ok(Next::Settled) };
                *count.lock().unwrap() += 1;
                let mut done = Secret::clone(&secret);
                done.metadata.labels = None;
                ctx.update(&done).await?;
                Ok(AT_ONCE)
            }
        },
    );
    let manager = steersman::Manager::new(cluster.client().kube().clone())
        .cache::<Secret>(|cache| cache.labels("state=new"))
        .with(controller);
    let mut records = manager.reconciles();
    let mut secret = Secret::default();
    secret.metadata.name = Some("new".into());
    secret.metadata.labels = Some([("state".to_owned(), "new".to_owned())].into());
    cluster.client().create(&secret).await?;
    cluster.client().create(&config_map("a")).await?;
    let running = manager.start();
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(*seen.lock().unwrap(), 1);
    while let Ok(record) = records.try_recv() {
        assert!(!record.outcome.is_failure(), "{}", record.outcome);
    }
    running.stop().await;
    Ok(())
}

#[steersman::test]
async fn children_of_a_kind_known_at_run_time_are_seen_too(cluster: Cluster) -> Result<()> {
    let secrets = cluster.client().discover(&GroupVersionKind::gvk("", "v1", "Secret")).await?;
    let children = secrets.clone();
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .owns_with(Watch::of_kind(&secrets))
        .reconcile(move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let kind = children.clone();
            async move {
                let children = ctx.of_kind(&kind);
                if children.children()?.len() > 1 {
                    return Err(Error::terminal("a stale read made one too many"));
                }
                if children.children()?.is_empty() {
                    let mut child = DynamicObject::new("", &kind.api_resource());
                    child.metadata.name = None;
                    child.metadata.generate_name = Some("child-".into());
                    children.create(child).await?;
                    return Ok(AT_ONCE);
                }
                Ok(Next::Settled)
            }
        });
    cluster.run(controller);
    for name in ["a", "b", "c"] {
        cluster.client().create(&config_map(name)).await?;
    }
    cluster.advance(Duration::from_secs(1)).await;
    let made: Vec<Secret> = cluster.client().list(&ListOptions::namespace("default")).await?;
    assert_eq!(made.len(), 3);
    Ok(())
}
