//! DELETE.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map, names, pod, seconds_pass};

const NAMESPACES: &str = "/api/v1/namespaces";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn an_object_that_nothing_holds_is_gone_at_once() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let status = api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Success");
    let details = json!({"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]});
    assert_eq!(status["details"], details);
    api.get(&format!("{CONFIG_MAPS}/a")).await.refused(404);
    api.delete(&format!("{CONFIG_MAPS}/a")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_one_is_removed() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    api.post(CONFIG_MAPS, &object).await.ok();
    let marked = api.delete(&path).await.ok();
    assert_eq!(marked["kind"], "ConfigMap");
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2025-01-01T00:00:00Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);

    let added = json!({"metadata": {"finalizers": ["example.com/one", "example.com/new"]}});
    let status = api.merge(&path, &added).await.refused(422);
    assert!(status["message"].as_str().unwrap().contains(
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/new\"}"
    ));
    let kept = json!({"metadata": {"deletionTimestamp": null, "finalizers": ["example.com/one"]}});
    let one = api.merge(&path, &kept).await.ok();
    assert_eq!(one["metadata"]["deletionTimestamp"], "2025-01-01T00:00:00Z");
    api.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_must_hold() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "other"}});
    let status = api.delete_with(&path, &wrong).await.refused(409);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("the UID in the precondition (other) does not match the UID in record")
    );
    let status = api.delete_with("/api/v1/namespaces/default", &wrong).await.refused(409);
    let why = status["message"].as_str().unwrap();
    let of_namespaces = "fulfilled on namespaces \"default\": Precondition failed: UID in \
                         precondition: other, UID in object meta: ";
    assert!(why.contains(of_namespaces), "{why}");
    let wrong = json!({"preconditions": {"resourceVersion": "1"}});
    let status = api.delete_with(&path, &wrong).await.refused(409);
    let why = status["message"].as_str().unwrap();
    assert!(why.contains("the ResourceVersion in the precondition (1) does not match"), "{why}");
    assert!(why.ends_with("The object might have been modified"), "{why}");
    let status = api.delete_with("/api/v1/namespaces/default", &wrong).await.refused(409);
    let why = status["message"].as_str().unwrap();
    let of_namespaces = "Precondition failed: ResourceVersion in precondition: 1, ResourceVersion \
                         in object meta: ";
    assert!(why.contains(of_namespaces), "{why}");
    let right = json!({"preconditions": {
        "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"],
    }});
    api.delete_with(&path, &right).await.ok();
}

#[tokio::test(start_paused = true)]
async fn namespaces_and_definitions_say_in_their_own_words_that_they_have_changed() {
    let api = Api::start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    api.post(definitions, &definition).await.ok();
    for (path, what) in [
        ("/api/v1/namespaces/default", r#"namespaces "default""#),
        (
            &*format!("{definitions}/widgets.example.com"),
            r#"customresourcedefinitions.apiextensions.k8s.io "widgets.example.com""#,
        ),
    ] {
        for (condition, name) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let wrong = json!({"preconditions": {condition: "0815"}});
            let status = api.delete_with(path, &wrong).await.refused(409);
            let expected = format!(
                "Operation cannot be fulfilled on {what}: Precondition failed: {name} in \
                 precondition: 0815, {name} in object meta: "
            );
            assert!(status["message"].as_str().unwrap().starts_with(&expected), "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn propagation_policies_become_finalizers() {
    let api = Api::start().await;
    for (name, policy, finalizer) in
        [("a", "Orphan", "orphan"), ("b", "Foreground", "foregroundDeletion")]
    {
        api.config_map(name, &json!({})).await;
        let options = json!({"propagationPolicy": policy});
        let marked = api.delete_with(&format!("{CONFIG_MAPS}/{name}"), &options).await.ok();
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]));
    }
    api.config_map("c", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/c?propagationPolicy=Background");
    assert_eq!(api.delete(&path).await.ok()["kind"], "Status");
    api.config_map("d", &json!({})).await;
    let status =
        api.delete(&format!("{CONFIG_MAPS}/d?propagationPolicy=Sometime")).await.refused(422);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("DeleteOptions.meta.k8s.io \"\" is invalid")
    );
    api.delete(&format!("{CONFIG_MAPS}/d?propagationPolicy=Orphan&orphanDependents=true"))
        .await
        .refused(422);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_deletion_deletes_nothing() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.delete(&format!("{CONFIG_MAPS}/a?dryRun=All")).await.ok();
    api.delete_with(&format!("{CONFIG_MAPS}/a"), &json!({"dryRun": ["All"]})).await.ok();
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_pod_ends_gracefully_and_its_grace_only_gets_shorter() {
    let api = Api::start().await;
    let mut object = pod("p");
    object["spec"]["nodeName"] = "node-1".into();
    api.post(PODS, &object).await.ok();
    let marked = api.delete(&format!("{PODS}/p")).await.ok();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2025-01-01T00:00:30Z");
    assert_eq!(marked["metadata"]["generation"], 2);

    let longer = json!({"gracePeriodSeconds": 60});
    let again = api.delete_with(&format!("{PODS}/p"), &longer).await.ok();
    assert_eq!(again, marked);
    let shorter = json!({"gracePeriodSeconds": 10});
    let again = api.delete_with(&format!("{PODS}/p"), &shorter).await.ok();
    assert_eq!(again["metadata"]["deletionTimestamp"], "2025-01-01T00:00:10Z");
    let now = json!({"gracePeriodSeconds": 0});
    let last = api.delete_with(&format!("{PODS}/p"), &now).await.ok();
    assert_eq!(
        (&last["kind"], &last["metadata"]["uid"]),
        (&json!("Pod"), &marked["metadata"]["uid"])
    );
    api.get(&format!("{PODS}/p")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn an_unscheduled_pod_is_gone_at_once() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    api.delete(&format!("{PODS}/p")).await.ok();
    api.get(&format!("{PODS}/p")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_its_selectors() {
    let api = Api::start().await;
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut object = config_map(name, &json!({}));
        object["metadata"]["labels"] = json!({"app": app});
        api.post(CONFIG_MAPS, &object).await.ok();
    }
    let deleted = api.delete(&format!("{CONFIG_MAPS}?labelSelector=app%3Dx")).await.ok();
    assert_eq!(deleted["kind"], "ConfigMapList");
    assert_eq!(names(&deleted), ["a", "b"]);
    assert_eq!(names(&api.get(CONFIG_MAPS).await.ok()), ["c"]);
}

fn scheduled(name: &str) -> Value {
    let mut object = pod(name);
    object["spec"]["nodeName"] = "node-1".into();
    object
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_is_gone_at_once_and_a_negative_grace_is_one_second() {
    let api = Api::start().await;
    for phase in ["Succeeded", "Failed"] {
        api.post(PODS, &scheduled("p")).await.ok();
        let status = json!({"status": {"phase": phase}});
        api.merge(&format!("{PODS}/p/status"), &status).await.ok();
        api.delete(&format!("{PODS}/p")).await.ok();
        api.get(&format!("{PODS}/p")).await.refused(404);
    }
    api.post(PODS, &scheduled("p")).await.ok();
    let marked = api.delete(&format!("{PODS}/p?gracePeriodSeconds=-7")).await.ok();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_would_have_ended_in_the_past_ends_now() {
    let api = Api::start().await;
    api.post(PODS, &scheduled("p")).await.ok();
    api.delete(&format!("{PODS}/p")).await.ok();
    seconds_pass(20).await;
    let marked = api.delete(&format!("{PODS}/p?gracePeriodSeconds=5")).await.ok();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2025-01-01T00:00:20Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 1);
    assert_eq!(marked["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_deletion_changes_nothing_while_the_grace_period_runs() {
    let api = Api::start().await;
    api.post(PODS, &scheduled("p")).await.ok();
    let marked = api.delete(&format!("{PODS}/p")).await.ok();
    api.merge(&format!("{PODS}/p/status"), &json!({"status": {"phase": "Failed"}})).await.ok();
    let again = api.delete(&format!("{PODS}/p?propagationPolicy=Orphan")).await.ok();
    assert_eq!(again["metadata"].get("finalizers"), None);
    assert_eq!(again["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_finalizer_outlives_its_grace_until_the_finalizer_goes() {
    let api = Api::start().await;
    let mut object = scheduled("p");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(PODS, &object).await.ok();
    api.delete(&format!("{PODS}/p")).await.ok();
    let held = api.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await.ok();
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    api.merge(&format!("{PODS}/p"), &json!({"metadata": {"finalizers": null}})).await.ok();
    api.get(&format!("{PODS}/p")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_wish_beats_the_finalizer_that_is_there_which_beats_the_kind() {
    let api = Api::start().await;
    let mut object = config_map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    api.post(CONFIG_MAPS, &object).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    let marked = api.delete(&path).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let marked = api.delete(&format!("{path}?propagationPolicy=Orphan")).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]));
    api.delete(&format!("{path}?propagationPolicy=Background")).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn jobs_and_replication_controllers_leave_their_pods_behind_unless_told_otherwise() {
    let api = Api::start().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    api.post(jobs, &job).await.ok();
    let marked = api.delete(&format!("{jobs}/j")).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]));
    api.delete(&format!("{jobs}/j?propagationPolicy=Background")).await.ok();
    api.get(&format!("{jobs}/j")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn the_old_option_for_orphans_still_works_and_its_refusal_is_acknowledged() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let marked = api.delete_with(&path, &json!({"orphanDependents": true})).await;
    assert_eq!((marked.code, &marked.ok()["metadata"]["finalizers"]), (200, &json!(["orphan"])));
    let mut held = config_map("b", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(CONFIG_MAPS, &held).await.ok();
    let marked = api.delete(&format!("{CONFIG_MAPS}/b?orphanDependents=false")).await;
    assert_eq!(marked.code, 202);
    assert_eq!(marked.ok()["metadata"]["finalizers"], json!(["example.com/hold"]));
    api.post(NAMESPACES, &json!({"metadata": {"name": "c"}})).await.ok();
    let marked = api.delete(&format!("{NAMESPACES}/c?orphanDependents=false")).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
}

#[tokio::test(start_paused = true)]
async fn options_come_as_yaml_too_and_another_kind_is_refused() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let request = http::Request::builder().method("DELETE").uri(format!("{CONFIG_MAPS}/a"));
    let request = request.header("content-type", "application/yaml");
    let body = "kind: DeleteOptions\napiVersion: v1\npropagationPolicy: Orphan\n";
    let marked = api.send(request.body(bytes::Bytes::from(body).into()).unwrap()).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]));
    let other = json!({"kind": "Pod", "apiVersion": "v1"});
    api.delete_with(&format!("{CONFIG_MAPS}/a"), &other).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn options_that_contradict_each_other_are_refused() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    for (options, expected) in [
        (
            json!({"propagationPolicy": "Sometime"}),
            "Unsupported value: \"Sometime\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        ),
        (json!({"dryRun": ["Some"]}), "dryRun: Unsupported value"),
    ] {
        let status = api.delete_with(&path, &options).await.refused(422);
        assert!(status["message"].as_str().unwrap().contains(expected), "{status}");
    }
    api.get(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn the_option_to_delete_what_cannot_be_read_is_passed_over() {
    let option = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let api = Api::start().await;
    for (name, query, options) in [
        ("a", "", json!({option: true, "gracePeriodSeconds": 1, "preconditions": {}})),
        ("b", "", json!({option: true, "propagationPolicy": "Background"})),
        ("c", "&orphanDependents=false&gracePeriodSeconds=1", json!(null)),
    ] {
        api.config_map(name, &json!({})).await;
        let path = format!("{CONFIG_MAPS}/{name}");
        let deleted = match options.is_null() {
            true => api.delete(&format!("{path}?{option}=true{query}")).await,
            false => api.delete_with(&path, &options).await,
        };
        deleted.ok();
        api.get(&path).await.refused(404);
    }
    api.config_map("d", &json!({})).await;
    let all = json!({option: true, "gracePeriodSeconds": 1});
    api.delete_with(CONFIG_MAPS, &all).await.ok();
    api.get(&format!("{CONFIG_MAPS}/d")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_removal_is_answered_with_a_status_that_names_it_or_for_some_kinds_with_the_object() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let gone = api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(gone["status"], "Success");
    let details = json!({"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]});
    assert_eq!(gone["details"], details);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let created = api.post(accounts, &json!({"metadata": {"name": "robot"}})).await.ok();
    let gone = api.delete(&format!("{accounts}/robot")).await.ok();
    assert_eq!(
        (&gone["kind"], &gone["metadata"]["uid"]),
        (&json!("ServiceAccount"), &created["metadata"]["uid"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_deletes_no_collection() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let listed = api.delete(&format!("{CONFIG_MAPS}?dryRun=All")).await.ok();
    assert_eq!(names(&listed), ["a"]);
    assert_eq!(names(&api.get(CONFIG_MAPS).await.ok()), ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_deletes_a_pod_succeeds_also_if_its_node_removes_it_first() {
    let api = Arc::new(Api::start().await);
    let now = json!({"gracePeriodSeconds": 0});
    let mut events = api.watch(&format!("{PODS}?watch=1")).await;
    let (node, at_once) = (Arc::clone(&api), now.clone());
    let node = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let metadata = &event["object"]["metadata"];
            if event["type"] == "MODIFIED" && metadata["deletionTimestamp"].is_string() {
                let path = format!("{PODS}/{}", metadata["name"].as_str().unwrap());
                node.delete_with(&path, &at_once).await;
            }
        }
    });
    for number in 0..200 {
        let name = format!("p{number}");
        let mut object = pod(&name);
        object["spec"]["nodeName"] = "n".into();
        api.post(PODS, &object).await.ok();
        api.delete_with(&format!("{PODS}/{name}"), &now).await.ok();
        api.get(&format!("{PODS}/{name}")).await.refused(404);
    }
    node.abort();
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_seen_to_end_before_it_is_gone_however_short_its_grace() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (name, node, grace) in [("waits", "", None), ("forced", "n", Some(0))] {
        let mut object = pod(name);
        if !node.is_empty() {
            object["spec"]["nodeName"] = node.into();
        }
        let created = api.post(pods, &object).await.ok();
        let from = &created["metadata"]["resourceVersion"];
        let from = from.as_str().unwrap();
        let mut events = api.watch(&format!("{pods}?watch=1&resourceVersion={from}")).await;
        api.delete_with(&format!("{pods}/{name}"), &json!({"gracePeriodSeconds": grace}))
            .await
            .ok();
        for expected in ["MODIFIED", "DELETED"] {
            let event = events.next().await.unwrap();
            assert_eq!(event["type"], expected, "{name}");
            let metadata = &event["object"]["metadata"];
            assert!(metadata["deletionTimestamp"].is_string(), "{name} {expected}");
            assert_eq!(metadata["deletionGracePeriodSeconds"], 0, "{name} {expected}");
            assert_eq!(metadata["generation"], 2, "{name} {expected}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ends_in_grace_is_seen_to_lose_the_rest_of_it() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut object = pod("p");
    object["spec"]["nodeName"] = "n".into();
    api.post(pods, &object).await.ok();
    let path = format!("{pods}/p");
    let marked = api.delete(&path).await.ok();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    let from = marked["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = api.watch(&format!("{pods}?watch=1&resourceVersion={from}")).await;
    api.delete_with(&path, &json!({"gracePeriodSeconds": 0})).await.ok();
    let seen = [events.brief().await.0, events.brief().await.0];
    assert_eq!(seen, ["MODIFIED", "DELETED"]);
    assert!(events.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn who_deletes_a_job_hears_what_becomes_of_its_pods() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    let api = Api::start().await;
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}],
    }}}});
    api.post(JOBS, &job).await.ok();
    let warns = |answer: &crate::api::Answer| answer.headers.contains_key("warning");
    for path in [format!("{JOBS}/a?dryRun=All"), format!("{JOBS}?dryRun=All")] {
        assert!(warns(&api.delete(&path).await), "{path}");
        assert!(!warns(&api.delete(&format!("{path}&propagationPolicy=Orphan")).await), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_sends_options_is_not_heard_in_the_query() {
    let api = Api::start().await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    api.config_map("a", &json!({})).await;
    api.delete_with(&format!("{CONFIG_MAPS}/a?dryRun=All"), &options).await.ok();
    api.get(&format!("{CONFIG_MAPS}/a")).await.refused(404);
    api.config_map("b", &json!({})).await;
    api.delete_with(CONFIG_MAPS, &json!({"dryRun": ["All"]})).await.ok();
    api.get(&format!("{CONFIG_MAPS}/b")).await.ok();
}
