//! The small kinds, as tables: what they are filled with, and what they refuse.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::for_kind;

const RBAC: &str = "rbac.authorization.k8s.io";

fn defaulted((group, kind): (&str, &str), mut object: Value) -> Value {
    for_kind(group, kind).fill_in(&mut object);
    object
}

#[test]
fn networks_and_storage_are_filled_in_as_kubernetes_does() {
    let cases = [
        (
            ("networking.k8s.io", "NetworkPolicy"),
            json!({"spec": {"egress": [{"ports": [{"port": 53}]}]}}),
            json!({"spec": {
                "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
                "policyTypes": ["Ingress", "Egress"],
            }}),
        ),
        (
            ("storage.k8s.io", "StorageClass"),
            json!({"provisioner": "p"}),
            json!({
                "provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
            }),
        ),
        (
            ("", "PersistentVolume"),
            json!({"spec": {}}),
            json!({"spec": {
                "persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem",
            }}),
        ),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(defaulted(kind, object), expected, "{kind:?}");
    }
}

#[test]
fn small_kinds_are_filled_in_as_kubernetes_does() {
    let cases = [
        (
            ("autoscaling", "HorizontalPodAutoscaler"),
            json!({"apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 3}}),
            json!({"apiVersion": "autoscaling/v2", "spec": {
                "maxReplicas": 3, "minReplicas": 1,
                "metrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
                }}],
            }}),
        ),
        (
            ("rbac.authorization.k8s.io", "RoleBinding"),
            json!({
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "ServiceAccount", "name": "s"},
                ],
            }),
            json!({
                "roleRef": {
                    "kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io",
                },
                "subjects": [
                    {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
                    {"kind": "ServiceAccount", "name": "s"},
                ],
            }),
        ),
        (
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            json!({"kind": "MutatingWebhookConfiguration", "webhooks": [{"rules": [{}]}]}),
            json!({"kind": "MutatingWebhookConfiguration", "webhooks": [{
                "rules": [{"scope": "*"}], "failurePolicy": "Fail", "timeoutSeconds": 10,
                "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                "reinvocationPolicy": "Never",
            }]}),
        ),
        (
            ("discovery.k8s.io", "EndpointSlice"),
            json!({"ports": [{"port": 80}]}),
            json!({"ports": [{"port": 80, "name": "", "protocol": "TCP"}]}),
        ),
        (
            ("", "Node"),
            json!({"status": {"capacity": {"cpu": "4"}}}),
            json!({"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}}),
        ),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(defaulted(kind, object), expected, "{kind:?}");
    }
}

#[test]
fn small_kinds_refuse_what_kubernetes_refuses() {
    let cases = [
        (
            ("", "PersistentVolumeClaim"),
            json!({"spec": {}}),
            vec![
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
        (
            ("autoscaling", "HorizontalPodAutoscaler"),
            json!({"spec": {
                "minReplicas": 4, "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"},
            }}),
            vec![
                "spec.maxReplicas: Invalid value: 3: must be greater than or equal to \
                 `minReplicas`",
                "spec.scaleTargetRef.name: Required value",
            ],
        ),
        (
            ("policy", "PodDisruptionBudget"),
            json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
            vec![
                "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\
                 \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both \
                 set",
            ],
        ),
        (
            ("networking.k8s.io", "Ingress"),
            json!({"spec": {"rules": [{"http": {"paths": [{"backend": {"service": {}}}]}}]}}),
            vec![
                "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            ],
        ),
        (
            ("coordination.k8s.io", "Lease"),
            json!({"spec": {"leaseDurationSeconds": 0}}),
            vec!["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            ("scheduling.k8s.io", "PriorityClass"),
            json!({"metadata": {"name": "a"}, "value": 2_000_000_000}),
            vec![
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            ],
        ),
        (
            ("storage.k8s.io", "StorageClass"),
            json!({"volumeBindingMode": "Immediate"}),
            vec!["provisioner: Required value"],
        ),
    ];
    for ((group, kind), object, expected) in cases {
        let errors = for_kind(group, kind).validate_create(&object);
        let messages: Vec<_> = errors.iter().map(FieldError::message).collect();
        assert_eq!(messages, expected, "{kind}");
    }
}

#[test]
fn some_fields_of_small_kinds_may_not_change() {
    let cases = [
        (
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            json!({"roleRef": {"name": "a", "kind": "ClusterRole", "apiGroup": RBAC}}),
            json!({"roleRef": {"name": "b", "kind": "ClusterRole", "apiGroup": RBAC}}),
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\
             \"Kind\":\"ClusterRole\",\"Name\":\"b\"}: cannot change roleRef",
        ),
        (
            ("storage.k8s.io", "StorageClass"),
            json!({"provisioner": "a", "volumeBindingMode": "Immediate"}),
            json!({"provisioner": "b", "volumeBindingMode": "Immediate"}),
            "provisioner: Invalid value: \"b\": field is immutable",
        ),
        (
            ("scheduling.k8s.io", "PriorityClass"),
            json!({"value": 1}),
            json!({"value": 2}),
            "value: Forbidden: may not be changed in an update.",
        ),
    ];
    for ((group, kind), old, new, expected) in cases {
        let errors = for_kind(group, kind).validate_update(&old, &new);
        assert_eq!(errors.iter().map(FieldError::message).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn old_labels_of_nodes_are_warned_of() {
    let key = "failure-domain.beta.kubernetes.io/zone";
    let why = "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead";
    let cases = [
        (
            ("storage.k8s.io", "StorageClass"),
            json!({"allowedTopologies": [{"matchLabelExpressions": [{"key": key}]}]}),
            format!("allowedTopologies[0].matchLabelExpressions[0].key: {why}"),
        ),
        (
            ("storage.k8s.io", "CSIStorageCapacity"),
            json!({"nodeTopology": {"matchLabels": {key: "z"}}}),
            format!("nodeTopology.matchLabels.{key}: {why}"),
        ),
        (
            ("storage.k8s.io", "CSIStorageCapacity"),
            json!({"nodeTopology": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}),
            format!("nodeTopology.matchExpressions[0].key: {key} is {why}"),
        ),
        (
            ("node.k8s.io", "RuntimeClass"),
            json!({"scheduling": {"nodeSelector": {key: "z"}}}),
            format!("scheduling.nodeSelector: {why}"),
        ),
    ];
    for ((group, kind), object, expected) in cases {
        assert_eq!(for_kind(group, kind).warnings(&object, None), [expected], "{kind}");
    }
}

#[test]
fn a_client_cannot_bring_a_status_except_for_a_node() {
    for (group, kind, expected) in [
        ("apps", "Deployment", json!({})),
        ("apps", "ReplicaSet", json!({"replicas": 0})),
        ("", "ResourceQuota", json!({})),
        ("", "PersistentVolumeClaim", json!({"phase": "Pending"})),
        ("", "Node", json!({"mine": true})),
    ] {
        assert_eq!(for_kind(group, kind).keeps_status(), kind == "Node");
        let mut object = json!({"status": {"mine": true}});
        for_kind(group, kind).prepare_create(&mut object);
        assert_eq!(object["status"], expected, "{kind}");
    }
}

#[test]
fn no_strategy_minds_a_document_of_the_wrong_shape() {
    let odd = [
        json!({}),
        json!({"metadata": 1, "spec": [], "status": "x", "webhooks": {}, "subsets": 3}),
        json!({"spec": {"template": 1, "containers": 2, "ports": "x", "selector": 4}}),
        json!({"spec": {"containers": [1, null, "a"], "template": {"spec": {"volumes": [2]}}}}),
    ];
    for resource in crate::kinds::all() {
        for object in &odd {
            let mut object: Value = object.clone();
            resource.rules.fill_in(&mut object);
            resource.rules.prepare_create(&mut object);
            let old = object.clone();
            resource.rules.prepare_update(&old, &mut object);
            resource.rules.validate_create(&object);
            resource.rules.validate_update(&old, &object);
            resource.rules.grace_period(&object, None);
        }
    }
}
