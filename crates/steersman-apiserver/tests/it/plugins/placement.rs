//! Where pods may go: `PodNodeSelector`, `PodTolerationRestriction`,
//! `LimitPodHardAntiAffinityTopology`.

use serde_json::{Value, json};

use super::configuration::told;
use super::{NAMESPACES, PODS, pod_with, selection, why, with};
use crate::api::{Api, pod};

const SHOP: &str = "/api/v1/namespaces/shop/pods";

/// A server with a plug-in, and a namespace with an annotation.
async fn annotated(plugin: &str, annotation: &str, text: &str) -> Api {
    let api = with(&[plugin]).await;
    let annotations = json!({format!("scheduler.alpha.kubernetes.io/{annotation}"): text});
    let namespace = json!({"metadata": {"name": "shop", "annotations": annotations}});
    api.post(NAMESPACES, &namespace).await.ok();
    api
}

#[tokio::test(start_paused = true)]
async fn a_namespace_sends_its_pods_to_its_nodes() {
    let api = annotated("PodNodeSelector", "node-selector", "zone=a, disk=fast").await;
    let created = api.post(SHOP, &pod("p")).await.ok();
    assert_eq!(created["spec"]["nodeSelector"], json!({"zone": "a", "disk": "fast"}));
    let spec = json!({"nodeSelector": {"zone": "a", "gpu": "yes"}});
    let created = api.post(SHOP, &pod_with("q", &spec)).await.ok();
    let all = json!({"zone": "a", "disk": "fast", "gpu": "yes"});
    assert_eq!(created["spec"]["nodeSelector"], all);
    let spec = json!({"nodeSelector": {"zone": "b"}});
    let refused = api.post(SHOP, &pod_with("r", &spec)).await.refused(403);
    assert_eq!(
        why(&refused),
        "pods \"r\" is forbidden: pod node label selector conflicts with its namespace node label \
         selector"
    );
    let created = api.post(PODS, &pod("p")).await.ok();
    assert!(created["spec"].get("nodeSelector").is_none(), "{created}");
}

/// A server with a plug-in that was told this.
async fn configured(plugin: &str, configuration: &str) -> Api {
    let selection = selection(&[plugin], &[]).configured(told(plugin, configuration)).unwrap();
    let api = Api::with_plugins(selection).await;
    api.post(NAMESPACES, &json!({"metadata": {"name": "shop"}})).await.ok();
    api
}

#[tokio::test(start_paused = true)]
async fn a_configuration_sends_pods_to_nodes_and_keeps_them_there() {
    let api = configured(
        "PodNodeSelector",
        "    podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: zone=a, shop: 'zone=a,b=c'}",
    )
    .await;
    let created = api.post(PODS, &pod("p")).await.ok();
    assert_eq!(created["spec"]["nodeSelector"], json!({"zone": "a"}));
    let gpu = json!({"nodeSelector": {"gpu": "yes"}});
    api.post(PODS, &pod_with("q", &gpu)).await.ok();
    api.post(SHOP, &pod_with("p", &json!({"nodeSelector": {"b": "c"}}))).await.ok();
    let refused = api.post(SHOP, &pod_with("q", &gpu)).await.refused(403);
    assert_eq!(
        why(&refused),
        "pods \"q\" is forbidden: pod node label selector labels conflict with its namespace \
         whitelist"
    );
}

#[tokio::test(start_paused = true)]
async fn a_configuration_gives_and_allows_tolerations_where_a_namespace_does_not_say() {
    let api = configured(
        "PodTolerationRestriction",
        "    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\n    \
         kind: Configuration\n    default: [{key: shop, operator: Exists}]\n    whitelist:\n    \
         - {key: shop, operator: Exists}\n    - {operator: Exists, effect: NoExecute}",
    )
    .await;
    let created = api.post(SHOP, &pod("p")).await.ok();
    assert_eq!(keys(&created).last(), Some(&"shop"));
    let spec = json!({"tolerations": [{"key": "other", "operator": "Exists"}]});
    let failed = api.post(SHOP, &pod_with("q", &spec)).await.refused(500);
    assert_eq!(
        why(&failed),
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its \
         cluster whitelist"
    );
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_cannot_be_read_lets_no_pod_in() {
    for (selector, start) in [
        ("zone", "invalid selector: [zone]"),
        ("a b=c", "<nil>: Invalid value: \"a b\": "),
        ("zone=a b", "[zone]: Invalid value: \"a b\": "),
    ] {
        let api = annotated("PodNodeSelector", "node-selector", selector).await;
        let failed = api.post(SHOP, &pod("p")).await.refused(500);
        assert!(why(&failed).starts_with(start), "{selector}: {failed}");
    }
}

fn keys(pod: &Value) -> Vec<&str> {
    let all = pod["spec"]["tolerations"].as_array().unwrap().iter();
    all.map(|one| one["key"].as_str().unwrap()).collect()
}

const LOST: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

#[tokio::test(start_paused = true)]
async fn a_namespace_gives_its_pods_tolerations() {
    let text = r#"[{"key": "shop", "operator": "Exists"}]"#;
    let api = annotated("PodTolerationRestriction", "defaultTolerations", text).await;
    let created = api.post(SHOP, &pod("p")).await.ok();
    assert_eq!(keys(&created), [&LOST[..], &["shop"]].concat());
    let resources = json!({"requests": {"memory": "1Gi"}});
    let container = json!([{"name": "c", "image": "a", "resources": resources}]);
    let created = api.post(SHOP, &pod_with("q", &json!({"containers": container}))).await.ok();
    let pressure = "node.kubernetes.io/memory-pressure";
    assert_eq!(keys(&created), [&LOST[..], &["shop", pressure]].concat());
    let created = api.post(PODS, &pod("p")).await.ok();
    assert_eq!(keys(&created), LOST);
}

#[tokio::test(start_paused = true)]
async fn tolerations_of_a_namespace_are_read_as_what_they_are() {
    let text = r#"[{"key": "shop", "operator": null, "value": "a", "more": {"of": "it"}}]"#;
    let api = annotated("PodTolerationRestriction", "defaultTolerations", text).await;
    let created = api.post(SHOP, &pod("p")).await.ok();
    let last = created["spec"]["tolerations"].as_array().unwrap().last().unwrap();
    assert_eq!(*last, json!({"key": "shop", "value": "a"}));
    for text in [r#"[{"key": 7}]"#, r#"[{"tolerationSeconds": "7"}]"#, r#"{"key": "a"}"#, "[7]"] {
        let api = annotated("PodTolerationRestriction", "defaultTolerations", text).await;
        api.post(SHOP, &pod("p")).await.refused(500);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_allows_only_some_tolerations() {
    let text = r#"[{"key": "shop", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]"#;
    let api = annotated("PodTolerationRestriction", "tolerationsWhitelist", text).await;
    let spec = json!({"tolerations": [{"key": "shop", "operator": "Equal", "value": "a"}]});
    api.post(SHOP, &pod_with("p", &spec)).await.ok();
    let spec = json!({"tolerations": [{"key": "other", "operator": "Exists"}]});
    let failed = api.post(SHOP, &pod_with("q", &spec)).await.refused(500);
    assert_eq!(
        why(&failed),
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its \
         namespace whitelist"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_keeps_others_off_its_node_only() {
    let api = with(&["LimitPodHardAntiAffinityTopology"]).await;
    let apart = |key: &str| {
        let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"a": "b"}}});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        json!({"affinity": {"podAntiAffinity": required}})
    };
    api.post(PODS, &pod_with("p", &apart("kubernetes.io/hostname"))).await.ok();
    let spec = apart("topology.kubernetes.io/zone");
    let refused = api.post(PODS, &pod_with("q", &spec)).await.refused(403);
    assert_eq!(
        why(&refused),
        "pods \"q\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has \
         TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed"
    );
}
