//! How a definition goes: its instances first, beside the request that asked for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use steersman_store::RangeRequest;

use crate::api::{Api, Events, seconds_pass};
use crate::crd::{DEFINITIONS, WIDGETS, condition, definition, until_gone, widget};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

async fn with_widgets() -> Api {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api
}

async fn with_a_held_widget() -> Api {
    let api = with_widgets().await;
    let mut held = widget("held", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(WIDGETS, &held).await.ok();
    api
}

/// The type of the next event, and what it says of the end.
async fn told(events: &mut Events) -> (String, String, String) {
    let event = events.next().await.expect("the watch ended");
    let terminating = condition(&event["object"], "Terminating");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&event["type"]), text(&terminating["reason"]), text(&terminating["message"]))
}

#[tokio::test(start_paused = true)]
async fn a_definition_looks_at_preconditions_on_its_own() {
    let api = with_widgets().await;
    for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wrong = json!({"preconditions": {field: "1"}});
        let status = api.delete_with(DEFINITION, &wrong).await.refused(409);
        let why = status["message"].as_str().unwrap();
        let expected = format!(
            "Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io \
             \"widgets.example.com\": Precondition failed: {what} in precondition: 1, {what} in \
             object meta: "
        );
        assert!(why.starts_with(&expected), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_definition_is_told_step_by_step() {
    let api = with_widgets().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let mut events = api.watch(&format!("{DEFINITIONS}?watch=1")).await;
    events.brief().await;
    let marked = api.delete(DEFINITION).await.ok();
    assert_eq!(marked["kind"], "CustomResourceDefinition");
    assert_eq!(marked["metadata"]["finalizers"], json!([CLEANUP]));
    assert_eq!(condition(&marked, "Terminating")["reason"], "InstanceDeletionPending");
    let expected = [
        (
            "MODIFIED",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        ("MODIFIED", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
        // As it was last stored, which is how Kubernetes tells it.
        ("DELETED", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
    ];
    for (kind, reason, message) in expected {
        let expected = (kind.to_owned(), reason.to_owned(), message.to_owned());
        assert_eq!(told(&mut events).await, expected);
    }
    api.get(WIDGETS).await.no_page();
}

#[tokio::test(start_paused = true)]
async fn an_instance_with_a_finalizer_holds_its_definition() {
    let api = with_a_held_widget().await;
    api.post(WIDGETS, &widget("free", 1)).await.ok();
    let mut events = api.watch(&format!("{DEFINITIONS}?watch=1")).await;
    events.brief().await;
    api.delete(DEFINITION).await.ok();
    assert_eq!(told(&mut events).await.1, "InstanceDeletionPending");
    assert_eq!(told(&mut events).await.1, "InstanceDeletionInProgress");
    seconds_pass(1).await;
    api.get(&format!("{WIDGETS}/free")).await.refused(404);
    let held = api.get(&format!("{WIDGETS}/held")).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    // After a minute it is told why, and everything is tried again.
    assert_eq!(
        told(&mut events).await,
        (
            "MODIFIED".to_owned(),
            "InstanceDeletionCheck".to_owned(),
            "could not confirm zero CustomResources remaining: context deadline exceeded"
                .to_owned()
        )
    );
    assert_eq!(told(&mut events).await.1, "InstanceDeletionInProgress");
    api.merge(&format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(told(&mut events).await.0, "DELETED");
    until_gone(&api, "widgets.example.com").await;
    api.get(WIDGETS).await.no_page();
}

/// As in Kubernetes, where only the first deletion is the definition's own.
#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_is_deleted_again_like_any_other_object() {
    let api = with_a_held_widget().await;
    let first = api.delete(DEFINITION).await.ok();
    assert_eq!(first["metadata"]["deletionGracePeriodSeconds"], Value::Null);
    seconds_pass(1).await;
    let second = api.delete(DEFINITION).await.ok();
    assert_eq!(second["metadata"]["deletionGracePeriodSeconds"], 0);
    for field in ["deletionTimestamp", "finalizers", "generation"] {
        assert_eq!(second["metadata"][field], first["metadata"][field], "{field}");
    }
    assert_eq!(condition(&second, "Terminating")["reason"], "InstanceDeletionInProgress");
    let third = api.delete(DEFINITION).await.ok();
    assert_eq!(third["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_created_while_a_definition_goes() {
    let api = with_a_held_widget().await;
    api.delete(DEFINITION).await.ok();
    let expected = "widgets.example.com \"b\" is forbidden: create not allowed while custom \
                    resource definition is terminating";
    let status = api.post(WIDGETS, &widget("b", 1)).await.refused(403);
    assert_eq!(status["message"], expected);
    assert_eq!(status["reason"], "Forbidden");
    let path = format!("{WIDGETS}/b?fieldManager=me");
    let apply = api.patch(&path, "application/apply-patch+yaml", &widget("b", 1)).await;
    assert_eq!(apply.refused(403)["message"], expected);
    let resources = api.get("/apis/example.com/v1").await.ok();
    let verbs = json!(["delete", "deletecollection", "get", "list", "watch"]);
    assert_eq!(resources["resources"][0]["verbs"], verbs);
    // What is there can still be changed, so that whoever holds it can let go.
    let held = format!("{WIDGETS}/held");
    api.merge(&held, &json!({"spec": {"size": 2}})).await.ok();
    api.get(WIDGETS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_was_never_served_goes_without_ado() {
    let api = with_widgets().await;
    let mut other = definition();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"]["plural"] = "gadgets".into();
    api.post(DEFINITIONS, &other).await.ok();
    let mut events = api.watch(&format!("{DEFINITIONS}?watch=1")).await;
    events.brief().await;
    events.brief().await;
    api.delete(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    told(&mut events).await;
    told(&mut events).await;
    assert_eq!(told(&mut events).await.0, "DELETED");
    // If another holds it, it says why nothing had to be deleted.
    other["metadata"]["finalizers"] = json!(["example.com/mine"]);
    api.post(DEFINITIONS, &other).await.ok();
    api.delete(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    seconds_pass(1).await;
    let held = api.get(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    let told = condition(&held, "Terminating");
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("NeverEstablished")));
    assert_eq!(told["message"], "resource was never established");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_another_holds_a_definition_whose_instances_are_gone() {
    let api = with_widgets().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let mine = json!({"metadata": {"finalizers": ["example.com/mine"]}});
    api.merge(DEFINITION, &mine).await.ok();
    api.delete(DEFINITION).await.ok();
    seconds_pass(1).await;
    let held = api.get(DEFINITION).await.ok();
    assert_eq!(held["metadata"]["finalizers"], json!(["example.com/mine"]));
    let told = condition(&held, "Terminating");
    assert_eq!(
        (&told["status"], &told["reason"]),
        (&json!("False"), &json!("InstanceDeletionCompleted"))
    );
    assert_eq!(told["message"], "removed all instances");
    api.post(WIDGETS, &widget("b", 1)).await.refused(403);
    api.merge(DEFINITION, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.get(DEFINITION).await.refused(404);
}

/// Creates, applies, changes and deletes instances until it is told to stop.
async fn write_without_end(api: Arc<Api>, writer: usize, rounds: Arc<AtomicUsize>) {
    let mut turn = 0;
    while rounds.load(Ordering::Relaxed) > 0 {
        turn += 1;
        let name = format!("w{writer}-{}", turn % 3);
        let path = format!("{WIDGETS}/{name}");
        match turn % 4 {
            0 => api.post(WIDGETS, &widget(&name, 1)).await,
            1 => {
                let path = format!("{path}?fieldManager=me&force=true");
                api.patch(&path, "application/apply-patch+yaml", &widget(&name, 2)).await
            }
            2 => api.merge(&path, &json!({"spec": {"size": turn}})).await,
            _ => api.delete(&path).await,
        };
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_races_the_end_of_its_definition_brings_nothing_back() {
    let api = Arc::new(with_widgets().await);
    let rounds = Arc::new(AtomicUsize::new(15));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            tokio::spawn(write_without_end(Arc::clone(&api), writer, Arc::clone(&rounds)))
        })
        .collect();
    let until = tokio::time::Duration::from_secs(60);
    let run = async {
        while rounds.fetch_sub(1, Ordering::Relaxed) > 1 {
            while api.get(WIDGETS).await.ok()["items"].as_array().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            api.delete(DEFINITION).await.ok();
            while api.get(DEFINITION).await.code != 404 {
                tokio::task::yield_now().await;
            }
            let prefix = "/registry/example.com/widgets/".to_owned();
            let range = RangeRequest { prefix, ..RangeRequest::default() };
            // A write that came too late is taken back before its writer hears of it.
            while !api.store.range(range.clone()).await.unwrap().entries.is_empty() {
                tokio::task::yield_now().await;
            }
            while api.get(WIDGETS).await.code != 404 {
                tokio::task::yield_now().await;
            }
            api.post(DEFINITIONS, &definition()).await.ok();
        }
    };
    tokio::time::timeout(until, run).await.expect("something was brought back, or stays");
    for writer in writers {
        writer.await.unwrap();
    }
}
