//! Which plug-ins there are, and how they are switched.

use serde_json::json;
use steersman_apiserver::PluginSelection;

use super::{PODS, pod_with, why, with};
use crate::api::{Api, CONFIG_MAPS, config_map, pod};

/// As in Kubernetes 1.36 (`pkg/kubeapiserver/options/plugins.go`); a minus is before those that are
/// off by default. `NodeRestriction` is on as kubeadm has it.
const UPSTREAM: &str = "
    -AlwaysAdmit -NamespaceAutoProvision NamespaceLifecycle -NamespaceExists
    -LimitPodHardAntiAffinityTopology LimitRanger ServiceAccount NodeRestriction
    TaintNodesByCondition -AlwaysPullImages -ImagePolicyWebhook PodSecurity -PodNodeSelector
    Priority DefaultTolerationSeconds -PodTolerationRestriction -EventRateLimit
    -ExtendedResourceToleration DefaultStorageClass StorageObjectInUseProtection
    PodGroupProtection -OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize
    RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest
    CertificateSubjectRestriction DefaultIngressClass -DenyServiceExternalIPs PodTopologyLabels
    PodGroupWorkloadExists NodeDeclaredFeatureValidator JobValidation PodResizeValidator
    MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy
    ValidatingAdmissionWebhook ResourceQuota -AlwaysDeny
";

#[test]
fn names_order_and_defaults_are_those_of_kubernetes() {
    let names: Vec<&str> = PluginSelection::names().collect();
    let upstream = UPSTREAM.split_whitespace();
    let all: Vec<&str> = upstream.clone().map(|name| name.trim_start_matches('-')).collect();
    assert_eq!(names, all);
    let on: Vec<&str> = upstream.filter(|name| !name.starts_with('-')).collect();
    assert_eq!(PluginSelection::default().on().collect::<Vec<_>>(), on);
    let bare = PluginSelection::without_controllers();
    let on: Vec<&str> = on.into_iter().filter(|name| *name != "ServiceAccount").collect();
    assert_eq!(bare.on().collect::<Vec<_>>(), on);
}

#[test]
fn what_is_unknown_or_switched_twice_is_refused() {
    let none: [&str; 0] = [];
    for (on, off, why) in [
        (&["Nonsense"][..], &none[..], "enable-admission-plugins plugin \"Nonsense\" is unknown"),
        (&none, &["priority"], "disable-admission-plugins plugin \"priority\" is unknown"),
        (
            &["RuntimeClass", "Priority"],
            &["Priority", "RuntimeClass"],
            "[Priority RuntimeClass] in enable-admission-plugins and disable-admission-plugins \
             overlapped",
        ),
    ] {
        let refused = PluginSelection::new(on.iter().copied(), off.iter().copied());
        assert_eq!(refused.unwrap_err().to_string(), *why);
    }
}

#[test]
fn a_default_counts_only_for_what_was_not_switched() {
    let has = |selection: &PluginSelection, name: &str| selection.on().any(|on| on == name);
    let chosen = PluginSelection::new(["ServiceAccount"], ["Priority"]).unwrap();
    let chosen = chosen.by_default("ServiceAccount", false).by_default("Priority", true);
    assert!(has(&chosen, "ServiceAccount") && !has(&chosen, "Priority"));
    let plain = PluginSelection::default().by_default("AlwaysDeny", true);
    assert!(has(&plain, "AlwaysDeny"));
}

#[tokio::test(start_paused = true)]
async fn a_plug_in_that_is_off_is_off() {
    let all = ["Priority", "DefaultTolerationSeconds", "RuntimeClass", "PodTopologyLabels"];
    let api = super::without(&all).await;
    let spec = json!({"overhead": {"cpu": "1"}, "priority": 7, "runtimeClassName": "none"});
    let created = api.post(PODS, &pod_with("p", &spec)).await.ok();
    let spec = &created["spec"];
    assert_eq!(spec["priority"], 7);
    for absent in ["tolerations", "preemptionPolicy", "serviceAccountName", "serviceAccount"] {
        assert!(spec.get(absent).is_none(), "{absent}: {spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_by_itself_asks_for_no_account() {
    let api = Api::start().await;
    let created = api.post(PODS, &pod("p")).await.ok();
    assert!(created["spec"].get("serviceAccountName").is_none(), "{created}");
    assert!(created["spec"].get("volumes").is_none(), "{created}");
    assert_eq!(created["spec"]["priority"], 0);
    assert_eq!(created["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    assert_eq!(created["spec"]["tolerations"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_denies_always_denies_every_write_and_no_read() {
    let api = with(&["AlwaysDeny"]).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(403);
    let text = "is forbidden: admission control is denying all modifications";
    assert_eq!(why(&refused), format!("configmaps \"a\" {text}"));
    let refused = api.delete("/api/v1/namespaces/kube-node-lease").await.refused(403);
    assert_eq!(why(&refused), format!("namespaces \"kube-node-lease\" {text}"));
    api.get(CONFIG_MAPS).await.ok();
}
