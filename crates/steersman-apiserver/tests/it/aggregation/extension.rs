//! A server of one's own behind the one in front, without a socket.

use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// What is seen of the moon changes while somebody watches.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(&'static str, i64)>>>);

impl Computed for Seen {
    fn list<'a>(&'a self, _: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        let phase = |(name, lit): &(&str, i64)| {
            json!({
                "apiVersion": "sea.test/v1", "kind": "Phase",
                "metadata": {"name": name, "namespace": "default"}, "lit": lit,
            })
        };
        let all = self.0.lock().unwrap().iter().map(phase).collect();
        Box::pin(std::future::ready(Ok(all)))
    }

    fn watch_period(&self) -> Option<Duration> {
        Some(Duration::from_secs(10))
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_computed_is_watched_if_it_says_how_often_to_look() {
    let seen = Seen::default();
    let extension = Extension::new(clock()).computing(phase_definition(), seen.clone());
    let front = Api::start().await;
    let server = extension.start().await.unwrap();
    let api = Api { server, store: front.store.clone() };
    let verbs = api.get("/apis/sea.test/v1").await.ok()["resources"][0]["verbs"].clone();
    assert_eq!(verbs, json!(["get", "list", "watch"]));
    *seen.0.lock().unwrap() = vec![("full", 100), ("new", 0)];
    let watched = format!("{PHASES}?watch=true&fieldSelector=metadata.name!%3Dhidden");
    let mut events = api.watch(&watched).await;
    let told = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    assert_eq!(events.brief().await, told("ADDED", "full"));
    assert_eq!(events.brief().await, told("ADDED", "new"));
    *seen.0.lock().unwrap() = vec![("full", 99), ("half", 50), ("hidden", 0)];
    assert_eq!(events.brief().await, told("MODIFIED", "full"));
    assert_eq!(events.brief().await, told("ADDED", "half"));
    assert_eq!(events.brief().await, told("DELETED", "new"));
}

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
    alone.get("/api/v1/namespaces").await.no_page();
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

/// Who asks it directly shows a token of the server in front, which knows whose it is.
#[tokio::test(start_paused = true)]
async fn the_server_behind_asks_the_one_in_front_whose_a_token_is() {
    let (front, extension) = extended().await;
    let account = "/api/v1/namespaces/default/serviceaccounts";
    let made = front.post(account, &json!({"metadata": {"name": "tide-reader"}})).await.ok();
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = front.post(&format!("{account}/tide-reader/token"), &request).await.ok();
    let bearer = |token: &str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        headers
    };
    let token = token["status"]["token"].as_str().unwrap();
    let user = extension.authenticate(&bearer(token), None).await.unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:tide-reader");
    assert_eq!(user.uid, made["metadata"]["uid"].as_str().unwrap());
    assert!(user.groups.iter().any(|group| group == "system:serviceaccounts:default"));
    let refused = extension.authenticate(&bearer("made-up"), None).await.unwrap_err();
    assert_eq!(refused.code, 401);
}
