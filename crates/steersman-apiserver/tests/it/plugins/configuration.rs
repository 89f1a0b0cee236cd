//! What plug-ins are told by an `AdmissionConfiguration`.

use std::path::Path;

use serde_json::json;
use steersman_apiserver::{AdmissionConfiguration, PluginSelection};

use super::{PODS, selection, why};
use crate::api::{Api, pod};

/// A configuration of one plug-in, which is indented by four.
pub(super) fn told(plugin: &str, configuration: &str) -> AdmissionConfiguration {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
         - name: {plugin}\n  configuration:\n{configuration}"
    );
    AdmissionConfiguration::parse(&text, Path::new("")).unwrap()
}

const LEVELS: &str = "
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest, warn: restricted}
    exemptions: {usernames: [operator], namespaces: [kube-public]}
";

#[tokio::test(start_paused = true)]
async fn pod_security_has_defaults_and_exemptions() {
    let selection = PluginSelection::without_controllers();
    let selection = selection.configured(told("PodSecurity", LEVELS)).unwrap();
    let api = Api::with_plugins(selection).await;
    let mut privileged = pod("p");
    privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let refused = api.post(PODS, &privileged).await.refused(403);
    assert!(why(&refused).contains("violates PodSecurity \"baseline:latest\""), "{refused}");
    let plain = api.post(PODS, &pod("plain")).await;
    plain.ok();
    let warning = plain.headers["warning"].to_str().unwrap();
    assert!(warning.contains("would violate PodSecurity \\\"restricted:latest\\\""), "{warning}");
    api.post("/api/v1/namespaces/kube-public/pods", &privileged).await.ok();
    let operator = api.acting_as("operator", &["system:masters"]);
    operator.post(PODS, &privileged).await.ok();
}

#[test]
fn what_a_plug_in_cannot_be_is_refused_when_it_is_told() {
    for (plugin, configuration, expected) in [
        (
            "PodSecurity",
            "    apiVersion: pod-security.admission.config.k8s.io/v1\n    \
             kind: PodSecurityConfiguration\n    defaults: {enforce: base, audit-version: v1}\n    \
             exemptions: {usernames: [''], namespaces: [a, a]}",
            "[defaults.enforce: Invalid value: \"base\": must be one of privileged, baseline, \
             restricted, defaults.audit-version: Invalid value: \"v1\": must be \"latest\" or \
             \"v1.x\", exemptions.namespaces[1]: Duplicate value: \"a\", \
             exemptions.usernames[0]: Invalid value: \"\": username must not be empty]",
        ),
        (
            "ResourceQuota",
            "    apiVersion: apiserver.config.k8s.io/v1\n    kind: ResourceQuotaConfiguration\n    \
             limitedResources: [{apiGroup: apps}]",
            "limitedResources[0].resource: Required value",
        ),
        (
            "ResourceQuota",
            "    apiVersion: apiserver.config.k8s.io/v1\n    kind: ResourceQuotaConfiguration\n    \
             limited: []",
            "strict decoding error: unknown field `limited`",
        ),
        ("ResourceQuota", "    apiVersion: v1\n    kind: Pod", "no kind \"Pod\" is known for"),
    ] {
        let told = told(plugin, configuration);
        let refused = PluginSelection::default().configured(told).unwrap_err().to_string();
        let start = "failed to initialize admission: couldn't init admission plugin";
        assert!(refused.starts_with(&format!("{start} {plugin:?}: ")), "{refused}");
        assert!(refused.contains(expected), "{refused}");
    }
    let priority = PluginSelection::default().configured(told("Priority", "    a: b"));
    let why = "admission plugin \"Priority\" takes no configuration on this server";
    assert_eq!(priority.unwrap_err().to_string(), why);
    // What is off is told nothing, and who nobody knows neither.
    for plugin in ["EventRateLimit", "Nonsense"] {
        PluginSelection::default().configured(told(plugin, "    a: b")).unwrap();
    }
    let without_limits = selection(&["EventRateLimit"], &[]).configured(Default::default());
    let why = without_limits.unwrap_err().to_string();
    assert!(why.ends_with("limits: Invalid value: null: must not be empty"), "{why}");
}

#[test]
fn a_file_may_name_the_files_of_plug_ins() {
    let folder = std::env::temp_dir().join(format!("steersman-admission-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let quota = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n";
    std::fs::write(folder.join("quota.yaml"), quota).unwrap();
    let text = |path: &str| {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
             - name: ResourceQuota\n  path: {path}\n"
        )
    };
    let file = folder.join("admission.yaml");
    std::fs::write(&file, text("quota.yaml")).unwrap();
    let read = AdmissionConfiguration::read(&file).unwrap();
    PluginSelection::default().configured(read).unwrap();
    std::fs::write(&file, text("none.yaml")).unwrap();
    let failed = AdmissionConfiguration::read(&file).unwrap_err().to_string();
    assert!(failed.starts_with("unable to read admission control configuration from"), "{failed}");
    std::fs::remove_dir_all(&folder).unwrap();
    for text in ["apiVersion: v1\nkind: AdmissionConfiguration", "a: b", "kind: [", "7"] {
        let failed = AdmissionConfiguration::parse(text, Path::new("")).unwrap_err().to_string();
        assert!(failed.starts_with("not an AdmissionConfiguration: "), "{failed}");
    }
}
