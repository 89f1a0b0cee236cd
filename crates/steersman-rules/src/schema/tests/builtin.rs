//! The table of built-in types.

use serde_json::{Value, json};

use crate::schema::node::{ListKind, Merge, Node, Shape};
use crate::schema::{Relation, Root, Schema};

/// The kinds of the groups that the server must serve, by version.
const KINDS: &[(&str, &str, &[&str])] = &[
    (
        "",
        "v1",
        &[
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apps", "v1", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("batch", "v1", &["CronJob", "Job"]),
    ("autoscaling", "v1", &["HorizontalPodAutoscaler", "Scale"]),
    ("autoscaling", "v2", &["HorizontalPodAutoscaler"]),
    ("policy", "v1", &["Eviction", "PodDisruptionBudget"]),
    (
        "rbac.authorization.k8s.io",
        "v1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    ("coordination.k8s.io", "v1", &["Lease"]),
    ("discovery.k8s.io", "v1", &["EndpointSlice"]),
    ("events.k8s.io", "v1", &["Event"]),
    (
        "networking.k8s.io",
        "v1",
        &["Ingress", "IngressClass", "IPAddress", "NetworkPolicy", "ServiceCIDR"],
    ),
    (
        "storage.k8s.io",
        "v1",
        &[
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
    ("scheduling.k8s.io", "v1", &["PriorityClass"]),
    ("node.k8s.io", "v1", &["RuntimeClass"]),
    (
        "admissionregistration.k8s.io",
        "v1",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", "v1", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", "v1", &["APIService"]),
    ("certificates.k8s.io", "v1", &["CertificateSigningRequest"]),
    ("authentication.k8s.io", "v1", &["SelfSubjectReview", "TokenRequest", "TokenReview"]),
    (
        "authorization.k8s.io",
        "v1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    ("flowcontrol.apiserver.k8s.io", "v1", &["FlowSchema", "PriorityLevelConfiguration"]),
    (
        "resource.k8s.io",
        "v1",
        &["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    ),
];

fn schema(kind: &str) -> Schema {
    let found = KINDS.iter().find(|(_, _, kinds)| kinds.contains(&kind)).unwrap();
    Schema::builtin(found.0, found.1, kind).unwrap()
}

/// The node at a dotted path; `[]` steps into a list's items.
fn at<'a>(schema: &'a Schema, path: &str) -> &'a Node {
    let Root::Known(root) = schema.root() else { panic!("{path}: of a definition") };
    path.split('.').fold(root, |node, step| match step.strip_suffix("[]") {
        Some(name) => node.field(name).expect(path).node.item(),
        None => &node.field(step).expect(path).node,
    })
}

fn list(kind: &str, path: &str) -> String {
    match &at(&schema(kind), path).shape {
        Shape::List(list) => match &list.kind {
            ListKind::Atomic => "atomic".to_owned(),
            ListKind::Set => "set".to_owned(),
            ListKind::Map(keys) => keys.join(","),
        },
        other => panic!("{path} is {other:?}"),
    }
}

#[test]
fn every_kind_is_in_the_table() {
    for (group, version, kinds) in KINDS {
        for kind in *kinds {
            let schema = Schema::builtin(group, version, kind).expect(kind);
            assert!(schema.root().field("apiVersion").is_some(), "{kind}");
            assert!(schema.root().field("metadata").is_some(), "{kind}");
        }
    }
    assert!(Schema::builtin("apps", "v2", "Deployment").is_none());
}

#[test]
fn lists_merge_by_the_keys_that_kubernetes_states() {
    let cases = [
        ("Pod", "spec.containers", "name"),
        ("Pod", "spec.containers[].ports", "containerPort,protocol"),
        ("Pod", "spec.containers[].env", "name"),
        ("Pod", "spec.containers[].volumeMounts", "mountPath"),
        ("Pod", "spec.containers[].volumeDevices", "devicePath"),
        ("Pod", "spec.containers[].args", "atomic"),
        ("Pod", "spec.volumes", "name"),
        ("Pod", "spec.tolerations", "atomic"),
        ("Pod", "spec.imagePullSecrets", "name"),
        ("Pod", "spec.hostAliases", "ip"),
        ("Pod", "spec.topologySpreadConstraints", "topologyKey,whenUnsatisfiable"),
        ("Pod", "status.conditions", "type"),
        ("Pod", "status.podIPs", "ip"),
        ("Pod", "metadata.ownerReferences", "uid"),
        ("Pod", "metadata.finalizers", "set"),
        ("Service", "spec.ports", "port,protocol"),
        ("Service", "spec.clusterIPs", "atomic"),
        ("Deployment", "status.conditions", "type"),
        ("Deployment", "spec.template.spec.containers", "name"),
        ("Job", "status.conditions", "atomic"),
        ("StatefulSet", "spec.volumeClaimTemplates", "atomic"),
        ("ServiceAccount", "secrets", "name"),
        ("Node", "status.addresses", "type"),
    ];
    for (kind, path, expected) in cases {
        assert_eq!(list(kind, path), expected, "{kind} {path}");
    }
}

#[test]
fn strategic_merge_has_its_own_keys_where_they_differ() {
    let cases = [
        ("Pod", "spec.containers", "key name"),
        ("Pod", "spec.containers[].ports", "key containerPort"),
        ("Service", "spec.ports", "key port"),
        ("Job", "status.conditions", "key type"),
        ("Pod", "metadata.finalizers", "set"),
        ("EndpointSlice", "endpoints[].addresses", "replace"),
        ("Pod", "spec.tolerations", "default"),
    ];
    for (kind, path, expected) in cases {
        let schema = schema(kind);
        let found = match &at(&schema, path).patch.merge {
            Merge::Default => "default".to_owned(),
            Merge::Replace => "replace".to_owned(),
            Merge::Set => "set".to_owned(),
            Merge::Key(key) => format!("key {key}"),
        };
        assert_eq!(found, expected, "{kind} {path}");
    }
    assert!(at(&schema("Deployment"), "spec.strategy").patch.retain_keys);
    assert!(at(&schema("Pod"), "spec.volumes").patch.retain_keys);
}

#[test]
fn selectors_and_references_are_replaced_as_a_whole() {
    let cases = [
        ("Deployment", "spec.selector", false),
        ("Service", "spec.selector", false),
        ("Pod", "spec.nodeSelector", false),
        ("RoleBinding", "roleRef", false),
        ("Pod", "metadata.labels", true),
        ("Deployment", "spec.template", true),
        ("ConfigMap", "data", true),
        ("PersistentVolume", "spec.claimRef", true),
        ("PersistentVolumeClaim", "spec.dataSource", false),
    ];
    for (kind, path, granular) in cases {
        let found =
            matches!(at(&schema(kind), path).relation(&json!({"a": "b"})), Relation::Granular);
        assert_eq!(found, granular, "{kind} {path}");
    }
}

#[test]
fn a_port_without_protocol_is_tcp() {
    for (kind, path) in [("Pod", "spec.containers[].ports"), ("Service", "spec.ports")] {
        let schema = schema(kind);
        let Shape::List(list) = &at(&schema, path).shape else { panic!("{path} is a list") };
        assert_eq!(list.key_default("protocol"), Some(&json!("TCP")));
    }
}

#[test]
fn unknown_fields_are_found_by_path_and_pruned() {
    let schema = schema("Deployment");
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"anything": "goes"}, "owner": "me"},
        "spec": {"replica": 3, "template": {"spec": {"containers": [
            {"name": "a", "image": "a:1"},
            {"name": "b", "img": "b:1"},
        ]}}},
    });
    assert_eq!(
        schema.unknown_fields(&object),
        ["metadata.owner", "spec.replica", "spec.template.spec.containers[1].img"]
    );
    schema.prune(&mut object);
    assert!(schema.unknown_fields(&object).is_empty());
    assert_eq!(object["metadata"], json!({"name": "web", "labels": {"anything": "goes"}}));
    assert_eq!(object["spec"]["template"]["spec"]["containers"][1], json!({"name": "b"}));
}

#[test]
fn a_value_of_the_wrong_type_is_reported_as_the_decoder_does() {
    let container = |field: &str, value: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", field: value}]}}}});
    let quantities = "quantities must match the regular expression \
                      '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let cases = [
        (
            json!({"spec": {"replicas": "3"}}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 5_000_000_000_u64}}),
            "json: cannot unmarshal number 5000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            container("image", json!(7)),
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"spec": []}),
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": {}}}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (container("resources", json!({"limits": {"cpu": "a lot"}})), quantities),
    ];
    for (object, expected) in cases {
        assert_eq!(schema("Deployment").type_errors(&object), [expected], "{object}");
    }
}

/// One row for each way in which Go's names differ from those of the schema.
#[test]
fn a_type_mistake_has_the_names_that_go_has() {
    let cases = [
        (
            "CronJob",
            json!({"spec": {"concurrencyPolicy": {}}}),
            "object into Go struct field CronJobSpec.spec.concurrencyPolicy of type v1.ConcurrencyPolicy",
        ),
        (
            "NetworkPolicy",
            json!({"spec": {"policyTypes": [1]}}),
            "number into Go struct field NetworkPolicySpec.spec.policyTypes of type v1.PolicyType",
        ),
        (
            "NetworkPolicy",
            json!({"spec": {"policyTypes": "x"}}),
            "string into Go struct field NetworkPolicySpec.spec.policyTypes of type []v1.PolicyType",
        ),
        (
            "LimitRange",
            json!({"spec": {"limits": [{"default": "x"}]}}),
            "string into Go struct field LimitRangeItem.spec.limits.default of type v1.ResourceList",
        ),
        (
            "PersistentVolumeClaim",
            json!({"status": {"allocatedResourceStatuses": {"a": []}}}),
            "array into Go struct field PersistentVolumeClaimStatus.status.allocatedResourceStatuses of type v1.ClaimResourceStatus",
        ),
        (
            "CertificateSigningRequest",
            json!({"spec": {"extra": {"a": "x"}}}),
            "string into Go struct field CertificateSigningRequestSpec.spec.extra of type v1.ExtraValue",
        ),
        (
            "CertificateSigningRequest",
            json!({"spec": {"extra": {"a": [1]}}}),
            "number into Go struct field CertificateSigningRequestSpec.spec.extra of type string",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"csi": {"readOnly": "x"}}}),
            "string into Go struct field CSIPersistentVolumeSource.spec.PersistentVolumeSource.csi.readOnly of type bool",
        ),
        (
            "ValidatingAdmissionPolicy",
            json!({"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": "x"}]}}}),
            "string into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules.RuleWithOperations.Rule.apiGroups of type []string",
        ),
        (
            "Pod",
            json!({"status": {"conditions": [{"lastProbeTime": 1}]}}),
            "number into Go struct field PodCondition.status.conditions.lastProbeTime of type string",
        ),
        (
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1.5}}),
            "number 1.5 into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32",
        ),
        (
            "ConfigMap",
            json!({"binaryData": {"a": [true]}}),
            "bool into Go struct field ConfigMap.binaryData of type uint8",
        ),
    ];
    for (kind, object, expected) in cases {
        let expected = format!("json: cannot unmarshal {expected}");
        assert_eq!(schema(kind).type_errors(&object), [expected], "{object}");
    }
}

#[test]
fn values_of_the_right_types_are_no_mistakes() {
    let pod = json!({
        "metadata": {"creationTimestamp": null, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "containers": [{
                "name": "a",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": 1, "memory": "1.5Gi", "a/b": "-5e3"}},
                "livenessProbe": {"httpGet": {"port": "http"}},
                "readinessProbe": {"httpGet": {"port": 80}},
            }],
        },
    });
    assert_eq!(schema("Pod").type_errors(&pod), [""; 0]);
}

#[test]
fn parsing_the_table_is_quick_enough_to_be_unnoticed() {
    // The size stands for the time: a few thousand short lines.
    let text = include_str!("../builtin.txt");
    assert!(text.len() < 150_000, "{} bytes", text.len());
    assert!(text.lines().count() < 5_000);
}

/// The definition of a kind whose root has these parts.
fn definition(parts: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"list": parts}});
    let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
    json!({"spec": {"versions": [version]}})
}

/// Go reads what is below `items` with a decoder of its own, which drops what it does not know and
/// tells of no more of a mistake than where it was called.
#[test]
fn parts_of_schemas_are_schemas() {
    let kind = Schema::builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let below = json!({"type": "object", "const": 1, "description": "", "properties": {
        "a": {"type": "string", "maxLength": 5, "x-descriptors": ["b"]},
    }});
    let sent = definition(&json!({"type": "array", "items": below})).to_string();
    let (mut read, findings) = crate::body::json::read(sent.as_bytes(), &kind).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    kind.settle(&mut read);
    let kept = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}});
    let kept = definition(&json!({"type": "array", "items": kept}));
    let schema = |object: &Value| object["spec"]["versions"][0]["schema"].clone();
    assert_eq!(schema(&read), schema(&kept));

    let path =
        "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items of type int64";
    let wrong = json!({"items": {"properties": {"a": {"maxLength": "5"}}}});
    assert_eq!(
        kind.type_errors(&definition(&wrong)),
        [format!("json: cannot unmarshal string into Go struct field {path}")]
    );
    let deeper = json!({"items": {"additionalProperties": {"maxLength": "5"}}});
    assert_eq!(kind.type_errors(&definition(&deeper)), kind.type_errors(&definition(&wrong)));
    for fine in [json!(true), json!(false), json!({"type": "string"})] {
        assert!(kind.type_errors(&definition(&json!({"additionalProperties": fine}))).is_empty());
    }
    assert_eq!(
        kind.type_errors(&definition(&json!({"additionalProperties": 1}))),
        ["boolean or JSON schema expected"]
    );
    assert_eq!(
        kind.restore_mistake(&definition(&wrong)).as_deref(),
        Some(
            "json: cannot unmarshal string into Go struct field JSONSchemaProps.properties.maxLength of type int64"
        )
    );
}
