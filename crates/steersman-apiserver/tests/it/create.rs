//! POST.

use http::{Request, header};
use http_body_util::Full;
use serde_json::json;

use crate::api::{Api, CONFIG_MAPS, config_map, deployment, name, version};

#[tokio::test(start_paused = true)]
async fn a_created_object_has_what_the_server_gives() {
    let api = Api::start().await;
    let answer = api.post(CONFIG_MAPS, &config_map("a", &json!({"k": "v"}))).await;
    assert_eq!(answer.code, 201);
    let object = answer.ok();
    let metadata = &object["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["creationTimestamp"], "2025-01-01T00:00:00Z");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata.get("generation").is_none());
    assert!(version(&object) > 0);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.ok(), object);
}

#[tokio::test(start_paused = true)]
async fn what_only_the_server_may_say_is_ignored() {
    let api = Api::start().await;
    let mut object = config_map("a", &json!({}));
    object["metadata"]["uid"] = "mine".into();
    object["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    assert_ne!(created["metadata"]["uid"], "mine");
    assert!(created["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test(start_paused = true)]
async fn generation_starts_at_one_where_a_kind_has_it() {
    let api = Api::start().await;
    let created =
        api.post("/apis/apps/v1/namespaces/default/deployments", &deployment("web", 1)).await.ok();
    assert_eq!(created["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_gets_five_characters_behind_a_shortened_base() {
    let api = Api::start().await;
    let mut object = config_map("", &json!({}));
    object["metadata"] = json!({"generateName": "web-"});
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    let suffix = name(&created).strip_prefix("web-").unwrap();
    assert_eq!(suffix.len(), 5);
    assert!(suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)));

    object["metadata"] = json!({"generateName": "x".repeat(100)});
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    assert_eq!(name(&created).len(), 63);
}

#[tokio::test(start_paused = true)]
async fn the_same_name_twice_already_exists() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let status = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(409);
    assert_eq!(status["reason"], "AlreadyExists");
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
}

#[tokio::test(start_paused = true)]
async fn the_name_of_an_object_that_has_the_beginning_of_one_was_not_generated() {
    let api = Api::start().await;
    let mut object = config_map("web-abc", &json!({}));
    object["metadata"]["generateName"] = "web-".into();
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(CONFIG_MAPS, &object).await.ok();
    let told = "configmaps \"web-abc\" already exists, the server was not able to generate a \
                unique name for the object";
    let answer = api.post(CONFIG_MAPS, &object).await;
    assert_eq!(answer.headers[header::RETRY_AFTER], "1");
    let status = answer.refused(409);
    assert_eq!((&status["reason"], &status["message"]), (&json!("AlreadyExists"), &json!(told)));
    let details = json!({"name": "web-abc", "kind": "configmaps", "retryAfterSeconds": 1});
    assert_eq!(status["details"], details);

    api.delete(&format!("{CONFIG_MAPS}/web-abc")).await.ok();
    let status = api.post(CONFIG_MAPS, &object).await.refused(409);
    assert_eq!(status["message"], format!("object is being deleted: {told}"));
    assert_eq!(status["details"], details);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_missing_or_malformed_is_invalid() {
    let api = Api::start().await;
    let mut object = config_map("", &json!({}));
    object["metadata"] = json!({});
    let status = api.post(CONFIG_MAPS, &object).await.refused(422);
    assert_eq!(
        status["message"],
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    let status = api.post(CONFIG_MAPS, &config_map("Not_A_Name", &json!({}))).await.refused(422);
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.name");
}

#[tokio::test(start_paused = true)]
async fn the_namespace_must_match_exist_and_stay() {
    let api = Api::start().await;
    let mut object = config_map("a", &json!({}));
    object["metadata"]["namespace"] = "other".into();
    let status = api.post(CONFIG_MAPS, &object).await.refused(400);
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    let status = api.post(nowhere, &config_map("a", &json!({}))).await.refused(404);
    assert_eq!(status["message"], "namespaces \"nowhere\" not found");

    let namespace = json!({"metadata": {"name": "going"}});
    api.post("/api/v1/namespaces", &namespace).await.ok();
    api.delete("/api/v1/namespaces/going").await.ok();
    let going = "/api/v1/namespaces/going/configmaps";
    let status = api.post(going, &config_map("a", &json!({}))).await.refused(403);
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(
        status["message"],
        "configmaps \"a\" is forbidden: unable to create new content in namespace going because it is being terminated"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_does_everything_but_write() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let object = api.post(&path, &config_map("a", &json!({}))).await.ok();
    assert!(object["metadata"]["uid"].is_string());
    assert!(object["metadata"].get("resourceVersion").is_none());
    for version in ["0", "5"] {
        let mut versioned = config_map("a", &json!({}));
        versioned["metadata"]["resourceVersion"] = version.into();
        let shown = api.post(&path, &versioned).await.ok();
        assert_eq!(shown["metadata"]["resourceVersion"], version, "as whoever sent it says");
    }
    api.get(&format!("{CONFIG_MAPS}/a")).await.refused(404);
    api.config_map("a", &json!({})).await;
    api.post(&path, &config_map("a", &json!({}))).await.refused(409);
    api.post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("b", &json!({})))
        .await
        .refused(422);
}

#[tokio::test(start_paused = true)]
async fn every_write_records_its_field_manager() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?fieldManager=tester");
    let created = api.post(&path, &config_map("a", &json!({"k": "v"}))).await.ok();
    let managed = &created["metadata"]["managedFields"][0];
    assert_eq!(managed["manager"], "tester");
    assert_eq!(managed["operation"], "Update");
    assert!(managed["fieldsV1"]["f:data"]["f:k"].is_object());
}

#[tokio::test(start_paused = true)]
async fn protobuf_is_read_for_built_in_kinds() {
    let api = Api::start().await;
    // runtime.Unknown {typeMeta {v1, ConfigMap}, raw {metadata {name: "a"}, data {"k": "v"}}}
    let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v";
    let request = Request::post(CONFIG_MAPS)
        .header(header::CONTENT_TYPE, "application/vnd.kubernetes.protobuf")
        .body(Full::new(body.as_slice().into()))
        .unwrap();
    let created = api.send(request).await.ok();
    assert_eq!((name(&created), &created["data"]), ("a", &json!({"k": "v"})));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_stands_twice_stays_once() {
    let api = Api::start().await;
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u", "controller": true});
    let mut object = config_map("a", &json!({}));
    object["metadata"]["ownerReferences"] = json!([owner, owner]);
    let answer = api.post(CONFIG_MAPS, &object).await;
    assert_eq!(answer.ok()["metadata"]["ownerReferences"], json!([owner]));
    let warning = answer.headers[header::WARNING].to_str().unwrap();
    assert!(warning.contains("duplicate UID(s) observed: u"), "{warning}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_counts_no_generation_keeps_the_one_it_is_given() {
    let api = Api::start().await;
    let mut object = config_map("a", &json!({}));
    object["metadata"]["generation"] = json!(7);
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    assert_eq!(created["metadata"]["generation"], 7);
    object["metadata"]["generation"] = json!(-7);
    let status = api.post(CONFIG_MAPS, &object).await.refused(422);
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.generation");
}
