//! A server of one's own behind the one in front, without a socket.

use futures::future::BoxFuture;
use serde_json::{Value, json};
use steersman_apiserver::status::Status;
use steersman_apiserver::{ApiServer, Computed, Extension, Reading};

use super::{API_SERVICES, ORIGIN, TIDES, available, tide, tide_definition, tides};
use crate::api::{Api, clock, names};

/// The phases of the moon, which follow from the time and lie nowhere.
struct Phases;

impl Computed for Phases {
    fn list<'a>(&'a self, reading: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        let namespace = reading.namespace.to_owned();
        let user = reading.user.name.clone();
        Box::pin(async move {
            let phase = |name: &str, lit: i64| {
                json!({
                    "apiVersion": "sea.test/v1", "kind": "Phase",
                    "metadata": {"name": name, "namespace": namespace, "labels": {"asked-by": user}},
                    "lit": lit,
                })
            };
            Ok(vec![phase("full", 100), phase("new", 0)])
        })
    }
}

fn phase_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "phases.sea.test"},
        "spec": {
            "group": "sea.test", "scope": "Namespaced",
            "names": {"plural": "phases", "singular": "phase", "kind": "Phase"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [{"name": "Lit", "type": "integer", "jsonPath": ".lit"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "lit": {"type": "integer", "description": "How much of it is seen."},
                }}},
            }],
        },
    })
}

const PHASES: &str = "/apis/sea.test/v1/namespaces/default/phases";

/// A server in front, and one that extends it by tides, which are stored, and phases, which are not.
async fn extended() -> (Api, ApiServer) {
    let front = Api::start().await;
    let extension = Extension::new(clock())
        .serving(tide_definition())
        .computing(phase_definition(), Phases)
        .reviewed_by(front.server.clone());
    let extension = extension.start().await.unwrap();
    front.server.serve_extension(ORIGIN, extension.clone());
    front.post(API_SERVICES, &tides()).await.ok();
    available(&front, "v1.sea.test", "Passed").await;
    (front, extension)
}

#[tokio::test(start_paused = true)]
async fn what_is_computed_is_read_like_everything_else() {
    let (front, _extension) = extended().await;
    let list = front.get(PHASES).await.ok();
    assert_eq!((names(&list), &list["kind"]), (vec!["full", "new"], &json!("PhaseList")));
    assert_eq!(front.get(&format!("{PHASES}/full")).await.ok()["lit"], 100);
    let missing = front.get(&format!("{PHASES}/half")).await.refused(404);
    assert_eq!(missing["message"], "phases.sea.test \"half\" not found");
    let chosen = front.get(&format!("{PHASES}?fieldSelector=metadata.name%3Dnew")).await.ok();
    assert_eq!(names(&chosen), ["new"]);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = front.get_as(PHASES, table).await.ok();
    assert_eq!(table["columnDefinitions"][1]["name"], "Lit");
    assert_eq!(table["rows"][0]["cells"], json!(["full", 100]));
    front.post(PHASES, &json!({"metadata": {"name": "half"}})).await.refused(405);
    front.get(&format!("{PHASES}?watch=true")).await.refused(405);
}

#[tokio::test(start_paused = true)]
async fn an_extension_stores_without_knowing_namespaces() {
    let (front, _extension) = extended().await;
    front.post(TIDES, &tide("low", 1)).await.ok();
    assert_eq!(names(&front.get(TIDES).await.ok()), ["low"]);
    let wrong = json!({
        "apiVersion": "sea.test/v1", "kind": "Tide", "metadata": {"name": "odd"},
        "spec": {"height": "high"},
    });
    front.post(TIDES, &wrong).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn an_extension_shows_what_it_has_and_nothing_else() {
    let (front, extension) = extended().await;
    let alone = Api { server: extension, store: front.store.clone() };
    let groups = alone.get("/apis").await.ok();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1);
    alone.get("/api/v1/namespaces").await.refused(404);
    let index = alone.get("/openapi/v3").await.ok();
    assert_eq!(index["paths"].as_object().unwrap().len(), 1);
    let document = front.get("/openapi/v3/apis/sea.test/v1").await.ok();
    let phase = &document["components"]["schemas"]["test.sea.v1.Phase"];
    assert_eq!(phase["properties"]["lit"]["description"], "How much of it is seen.");
}

/// The server in front lets the user through by a role; the one behind asks it again.
#[tokio::test(start_paused = true)]
async fn the_server_behind_asks_the_one_in_front_who_may() {
    let (front, extension) = extended().await;
    let behind = Api { server: extension, store: front.store.clone() };
    behind.acting_as("jane", &[]).get(PHASES).await.refused(403);
    let role = json!({
        "metadata": {"name": "moon"},
        "rules": [{"apiGroups": ["sea.test"], "resources": ["phases"], "verbs": ["list"]}],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    front.post(&format!("{roles}/roles"), &role).await.ok();
    let binding = json!({
        "metadata": {"name": "moon"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "moon"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    front.post(&format!("{roles}/rolebindings"), &binding).await.ok();
    // What was refused is remembered for ten seconds.
    crate::api::seconds_pass(11).await;
    let list = front.acting_as("jane", &[]).get(PHASES).await.ok();
    assert_eq!(list["items"][0]["metadata"]["labels"]["asked-by"], "jane");
    let refused = behind.acting_as("jane", &[]).get(&format!("{PHASES}/full")).await.refused(403);
    assert_eq!(
        refused["message"],
        "phases.sea.test \"full\" is forbidden: User \"jane\" cannot get resource \"phases\" in \
         API group \"sea.test\" in the namespace \"default\""
    );
}
