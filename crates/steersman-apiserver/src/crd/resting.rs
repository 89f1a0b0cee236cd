//! Lets schemas of definitions rest that nobody uses any more.
//!
//! What is made of a schema takes ten times what its text does, and most kinds are written now and
//! then. A task looks every few seconds what was not used since, and ends once nothing is left to
//! let go: an idle server has none.

use std::sync::{Arc, Weak};
use std::time::Duration;

use steersman_rules::resource::Resource;

use crate::state::Server;

/// How often is looked; what was not used between two looks rests.
const PERIOD: Duration = Duration::from_secs(20);

/// The schema of a definition may have been used.
pub(crate) fn used(server: &Arc<Server>) {
    if server.resting.begin() {
        let ended = server.ended();
        let looking = look(Arc::downgrade(server));
        tokio::spawn(async move { ended.run_until_cancelled(looking).await });
    }
}

async fn look(server: Weak<Server>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(server) = server.upgrade() else { return };
        let round = server.resting.round();
        if any(&server, |resource| resource.schema.rest(round)) {
            continue;
        }
        server.resting.end();
        // Who came meanwhile has found somebody who looks.
        if !any(&server, |resource| resource.schema.is_in_use()) || !server.resting.begin() {
            return;
        }
    }
}

/// Whether something is so of any version of any definition. All of them are asked.
fn any(server: &Server, is_so: impl Fn(&Resource) -> bool) -> bool {
    let table = server.registry.table();
    let mut any = false;
    for resource in table.defined() {
        any |= is_so(resource);
    }
    any
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::{Request, header};
    use http_body_util::{BodyExt, Full};
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use steersman_store::memory::MemoryStore;
    use tower::ServiceExt;

    use super::{PERIOD, any};
    use crate::{ApiServer, Config};

    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

    /// A definition whose schema is the same in two versions.
    fn definition() -> Value {
        let spec = json!({
            "type": "object",
            "properties": {
                "colour": {"type": "string", "default": "red"}, "size": {"type": "integer"},
            },
            "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "is too large"}],
        });
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [version("v1", true), version("v2", false)],
            },
        })
    }

    async fn post(api: &ApiServer, path: &str, body: &Value) -> Value {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let response = api.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap()
    }

    /// Creates a widget that lacks a default and has a field too many, and fails to create another.
    async fn uses(api: &ApiServer, name: &str) {
        let widget = |size: i64| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
                "spec": {"size": size, "unknown": true},
            })
        };
        let refused = post(api, WIDGETS, &widget(11)).await;
        let message = refused["message"].as_str().unwrap();
        assert!(message.ends_with("spec: Invalid value: is too large"), "{message}");
        let created = post(api, WIDGETS, &widget(9)).await;
        assert_eq!(created["spec"], json!({"size": 9, "colour": "red"}));
    }

    #[tokio::test(start_paused = true)]
    async fn a_schema_is_built_for_the_first_object_and_rests_when_nobody_writes_any_more() {
        let config = Config::new(Arc::new(MemoryStore::new()), Arc::new(|| Timestamp::UNIX_EPOCH));
        let api = ApiServer::start(config).await.unwrap();
        let is_in_use = || any(api.server(), |resource| resource.schema.is_in_use());
        post(&api, DEFINITIONS, &definition()).await;
        assert!(!is_in_use());
        for name in ["a", "b"] {
            uses(&api, name).await;
            assert!(is_in_use());
            tokio::time::advance(PERIOD).await;
            tokio::task::yield_now().await;
            assert!(is_in_use(), "it was used since the look before");
            tokio::time::timeout(3 * PERIOD, async {
                while is_in_use() {
                    tokio::task::yield_now().await;
                    tokio::time::advance(PERIOD / 10).await;
                }
            })
            .await
            .unwrap();
        }
        assert!(api.server().resting.begin(), "nobody looks any more");
    }
}
