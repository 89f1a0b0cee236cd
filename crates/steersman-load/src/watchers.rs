//! Watches beside our own, which read and forget: what many clients cost a server.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::Resource;
use kube::api::WatchParams;
use kube::client::Body;
use kube::core::{DynamicObject, Request};
use steersman::{Client, Result};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::population::Population;

/// How long to wait before a watch that ended or failed begins anew.
const PAUSE: Duration = Duration::from_secs(1);

/// So many watches, each of one sort in one namespace; they end when this is dropped.
pub(crate) fn start(client: &Client, population: &Population, count: u32) -> JoinSet<()> {
    let mut watchers = JoinSet::new();
    for _ in 0..count {
        let (place, namespace) = population.somewhere();
        let kind = &population.sorts[place].kind;
        let namespace = kind.is_namespaced().then(|| population.namespace(namespace));
        let path = DynamicObject::url_path(kind.dynamic_type(), namespace.as_deref());
        let client = client.clone();
        watchers.spawn(async move {
            loop {
                let _ = watch(&client, &path).await; // it begins anew in any case
                sleep(PAUSE).await;
            }
        });
    }
    watchers
}

/// Reads one watch until it ends.
async fn watch(client: &Client, path: &str) -> Result<()> {
    let request = Request::new(path).watch(&WatchParams::default(), "0")?;
    let answer = client.kube().send(request.map(Body::from)).await?;
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}
