//! What the configuration of `ResourceQuota` limits may be used only where a quota does.

use std::path::Path;

use serde_json::json;
use steersman_apiserver::{AdmissionConfiguration, PluginSelection};

use super::{PODS, message, quota, scoped};
use crate::api::{Api, pod};

const CONFIGURATION: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: configmaps
      matchContains: [count/]
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}
";

async fn start() -> Api {
    let configuration = AdmissionConfiguration::parse(CONFIGURATION, Path::new("")).unwrap();
    let plugins = PluginSelection::without_controllers().configured(configuration).unwrap();
    Api::with_plugins(plugins).await
}

#[tokio::test(start_paused = true)]
async fn what_no_quota_counts_is_refused_in_the_words_of_kubernetes() {
    let api = start().await;
    let map = json!({"metadata": {"name": "a"}});
    let path = "/api/v1/namespaces/default/configmaps";
    let status = api.post(path, &map).await.refused(403);
    let why = "configmaps \"a\" is forbidden: insufficient quota to consume: count/configmaps";
    assert_eq!((message(&status), &status["reason"]), (why, &json!("Forbidden")));
    api.post("/api/v1/namespaces/default/secrets", &map).await.ok();
    quota(&api, "q", json!({"count/configmaps": "1"})).await;
    api.post(path, &map).await.ok();
    api.merge(&format!("{path}/a"), &json!({"data": {"a": "b"}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_is_in_a_limited_scope_needs_a_quota_of_that_scope() {
    let api = start().await;
    api.post(PODS, &pod("modest")).await.ok();
    let mut critical = pod("critical");
    critical["spec"]["priorityClassName"] = json!("system-cluster-critical");
    let status = api.post(PODS, &critical).await.refused(500);
    let scope = "{PriorityClass In [system-cluster-critical]}";
    let why = format!("insufficient quota to match these scopes: [{scope}]");
    assert_eq!(message(&status), why);
    let expression = json!({
        "scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"],
    });
    let spec = json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [expression]}});
    scoped(&api, "q", spec).await;
    api.post(PODS, &critical).await.ok();
}
