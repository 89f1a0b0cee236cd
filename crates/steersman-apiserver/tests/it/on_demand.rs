//! Objects that somebody keeps up to date only while others look at them.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use steersman_apiserver::on_demand::{Access, Held, OnDemand, Wanted};

use crate::api::{Api, CONFIG_MAPS};

/// Writes down what is wanted, and what is watched no more.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Vec<String>>>);

/// Says when it is dropped.
struct Watched(Keeper);

impl Keeper {
    fn note(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.note("watched no more");
    }
}

impl OnDemand for Keeper {
    fn wanted<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Option<Held>> {
        let Wanted { group, resource, namespace, name, access } = wanted;
        self.note(format!("{access:?} {group}/{resource} {namespace}/{name}"));
        let held = (access == Access::Watch).then(|| Box::new(Watched(self.clone())) as Held);
        async move { held }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_objects_up_to_date_is_told_that_somebody_looks() {
    let api = Api::start().await;
    let keeper = Keeper::default();
    api.server.on_demand(Arc::new(keeper.clone()));
    api.config_map("a", &json!({})).await;
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    api.get("/apis/coordination.k8s.io/v1/leases").await.ok();
    assert_eq!(
        keeper.notes(),
        [
            "Write /configmaps default/",
            "Read /configmaps default/a",
            "Read coordination.k8s.io/leases /"
        ]
    );
    let events = api.watch("/api/v1/nodes?watch=1").await;
    assert_eq!(keeper.notes(), ["Watch /nodes /"]);
    drop(events);
    assert_eq!(keeper.notes(), ["watched no more"]);
}

#[tokio::test(start_paused = true)]
async fn parts_of_the_cluster_look_at_objects_as_they_are() {
    let Api { server, store } = Api::start().await;
    let keeper = Keeper::default();
    server.on_demand(Arc::new(keeper.clone()));
    let part = Api { server: server.for_own_parts(), store };
    part.get("/api/v1/nodes").await.ok();
    let _events = part.watch("/api/v1/nodes?watch=1").await;
    assert_eq!(keeper.notes(), [""; 0]);
}
