use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectFieldSelector, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{from_value, json};

use super::{Addresses, Defaults, field, metadata_field, resource};

fn pod() -> Pod {
    from_value(json!({
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "u-1",
            "labels": { "app": "web", "example.com/tier": "front" },
            "annotations": { "Note": "says \"hi\"\n\tand \u{1}é\u{200b}" },
        },
        "spec": {
            "nodeName": "node-1", "serviceAccountName": "robot",
            "initContainers": [{ "name": "init", "resources": { "requests": { "cpu": "1" } } }],
            "containers": [
                { "name": "main", "resources": {
                    "requests": { "cpu": "1500m", "memory": "64Mi", "ephemeral-storage": "1G",
                                  "hugepages-2Mi": "4Mi" },
                    "limits": { "cpu": "2", "memory": "100M", "hugepages-2Mi": "4Mi" },
                } },
                { "name": "free" },
            ],
        },
    }))
    .unwrap()
}

#[test]
fn a_variable_knows_these_fields() {
    let (ips, hosts) =
        (["10.0.0.7".to_owned(), "fd00::7".to_owned()], ["192.0.2.1".to_owned(), "fd01::1".into()]);
    let addresses = Addresses { pod: &ips, host: &hosts };
    let told = |path: &str| {
        let selector = ObjectFieldSelector { field_path: path.into(), ..Default::default() };
        field(&selector, &pod(), addresses).unwrap_or_else(|error| format!("! {error}"))
    };
    for (path, expected) in [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u-1"),
        ("metadata.labels", "app=\"web\"\nexample.com/tier=\"front\""),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['example.com/tier']", "front"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['Note']", "says \"hi\"\n\tand \u{1}é\u{200b}"),
        ("metadata.annotations", "Note=\"says \\\"hi\\\"\\n\\tand \\x01é\\u200b\""),
        ("spec.nodeName", "node-1"),
        ("spec.host", "node-1"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "10.0.0.7"),
        ("status.podIPs", "10.0.0.7,fd00::7"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1,fd01::1"),
        ("spec.restartPolicy", "! unsupported fieldPath: spec.restartPolicy"),
        ("metadata.generation", "! field label not supported: metadata.generation"),
        ("spec.tea", "! field label not supported: spec.tea"),
        ("spec.tea['x']", "! field label does not support subscript: spec.tea['x']"),
    ] {
        assert_eq!(told(path), expected, "{path}");
    }
    assert!(
        told("metadata.labels['-']")
            .starts_with("! invalid key subscript in metadata.labels['-']: name part must consist")
    );
    let other =
        ObjectFieldSelector { api_version: Some("v2".into()), field_path: "metadata.name".into() };
    let error = field(&other, &pod(), addresses).unwrap_err();
    assert_eq!(error.to_string(), "unsupported pod version: v2");
}

#[test]
fn a_volume_knows_only_metadata() {
    assert_eq!(metadata_field("metadata.labels['app']", &pod()).unwrap(), "web");
    let error = metadata_field("status.podIP", &pod()).unwrap_err();
    assert_eq!(error.to_string(), "unsupported fieldPath: status.podIP");
}

#[test]
fn resources_are_divided_and_rounded_up_and_a_missing_limit_is_what_the_node_has() {
    let allocatable: BTreeMap<String, Quantity> =
        [("cpu", "3900m"), ("memory", "7Gi"), ("ephemeral-storage", "90Gi")]
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.into())))
            .into();
    let defaults = Defaults { allocatable: &allocatable, pod_limits: true };
    let mut pod = pod();
    let told = |pod: &Pod, container: &str, name: &str, divisor: &str| {
        let selector = ResourceFieldSelector {
            container_name: Some(container.into()),
            resource: name.into(),
            divisor: Some(Quantity(divisor.into())),
        };
        let own = &pod.spec.as_ref().unwrap().containers[0];
        resource(&selector, pod, Some(own), defaults).unwrap_or_else(|error| format!("! {error}"))
    };
    for (container, name, divisor, expected) in [
        // Without a name it is the container itself.
        ("", "limits.cpu", "0", "2"),
        ("", "requests.cpu", "1", "2"),
        ("", "requests.cpu", "1m", "1500"),
        ("", "limits.memory", "1Mi", "96"),
        ("", "limits.memory", "1", "100000000"),
        ("", "requests.memory", "1Ki", "65536"),
        ("", "requests.ephemeral-storage", "1M", "1000"),
        ("", "limits.ephemeral-storage", "1Gi", "90"),
        ("", "requests.hugepages-2Mi", "1Mi", "4"),
        ("", "limits.hugepages-2Mi", "1Mi", "4"),
        ("free", "limits.cpu", "1", "4"),
        ("free", "limits.cpu", "1m", "3900"),
        ("free", "limits.memory", "1Gi", "7"),
        ("free", "limits.hugepages-2Mi", "1", "0"),
        ("free", "requests.cpu", "1", "0"),
        ("init", "requests.cpu", "1", "1"),
        ("none", "limits.cpu", "1", "! container none not found"),
        (
            "",
            "limits.example.com/gpu",
            "1",
            "! unsupported container resource : limits.example.com/gpu",
        ),
        ("", "cpu", "1", "! unsupported container resource : cpu"),
    ] {
        assert_eq!(told(&pod, container, name, divisor), expected, "{container} {name} {divisor}");
    }

    // What the Pod may use as a whole goes before what the node has.
    let shared = json!({ "limits": { "cpu": "700m", "memory": "1Gi" } });
    pod.spec.as_mut().unwrap().resources = Some(from_value(shared).unwrap());
    assert_eq!(told(&pod, "free", "limits.cpu", "1m"), "700");
    assert_eq!(told(&pod, "", "limits.cpu", "1m"), "2000");
}
