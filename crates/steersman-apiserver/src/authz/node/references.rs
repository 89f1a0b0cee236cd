//! What objects say about the node they are on, and about other objects that it needs.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use steersman_rules::metadata;

use super::object::{Kind, Reference};

/// The annotation of Pods that mirror what a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The sources of volumes that name a Secret beside them.
const WITH_SECRET_REF: [&str; 6] = ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "cinder"];

/// What decides where an object is and what it refers to. Two versions of a Pod that have it in
/// common refer to the same, for all else that counts in its spec never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) node: String,
    uid: String,
    /// How many there are: they are only ever added.
    ephemeral_containers: usize,
    /// What was claimed for it since, as it is written.
    claims: [Option<Box<str>>; 2],
}

/// A volume that is bound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) claim: Reference,
    pub(super) secrets: Vec<Reference>,
}

#[derive(Deserialize)]
struct Skimmed<'a> {
    #[serde(borrow, default)]
    metadata: SkimmedMetadata<'a>,
    #[serde(borrow, default)]
    spec: SkimmedSpec<'a>,
    #[serde(borrow)]
    status: Option<SkimmedStatus<'a>>,
}

#[derive(Deserialize, Default)]
struct SkimmedMetadata<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct SkimmedSpec<'a> {
    #[serde(borrow)]
    node_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    ephemeral_containers: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SkimmedStatus<'a> {
    #[serde(borrow)]
    resource_claim_statuses: Option<&'a RawValue>,
    #[serde(borrow)]
    extended_resource_claim_status: Option<&'a RawValue>,
}

impl Placement {
    /// Where a stored object is; `None` if it is on no node.
    pub(super) fn of(document: &[u8]) -> Option<Self> {
        let Skimmed { metadata, spec, status } = serde_json::from_slice(document).ok()?;
        let node = spec.node_name.filter(|node| !node.is_empty())?;
        let claims = status.map_or([None, None], |status| {
            [status.resource_claim_statuses, status.extended_resource_claim_status]
        });
        Some(Self {
            node: node.into_owned(),
            uid: metadata.uid.into_owned(),
            ephemeral_containers: spec.ephemeral_containers.map_or(0, |all| all.len()),
            claims: claims.map(|claim| claim.map(|claim| claim.get().into())),
        })
    }
}

/// What a Pod refers to. A Pod that a node itself has made relates it to nothing.
pub(super) fn of_pod(pod: &Value) -> Vec<Reference> {
    if !pod["metadata"]["annotations"][MIRROR].is_null() {
        return Vec::new();
    }
    let spec = &pod["spec"];
    let mut found = Found { namespace: metadata::text(pod, "namespace"), references: Vec::new() };
    found.add(Kind::ServiceAccount, &spec["serviceAccountName"]);
    for secret in items(&spec["imagePullSecrets"]) {
        found.add(Kind::Secret, &secret["name"]);
    }
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        items(&spec[field]).for_each(|container| found.environment(container));
    }
    for volume in items(&spec["volumes"]) {
        found.volume(metadata::text(pod, "name"), volume);
    }
    for claim in items(&spec["resourceClaims"]) {
        match &claim["resourceClaimName"] {
            Value::Null => {
                let is_its = |status: &&Value| status["name"] == claim["name"];
                let status = items(&pod["status"]["resourceClaimStatuses"]).find(is_its);
                found.add(Kind::ResourceClaim, status.map_or(&Value::Null, claim_name));
            }
            name => found.add(Kind::ResourceClaim, name),
        }
    }
    found.add(Kind::ResourceClaim, claim_name(&pod["status"]["extendedResourceClaimStatus"]));
    found.references
}

fn claim_name(status: &Value) -> &Value {
    &status["resourceClaimName"]
}

/// What a Pod refers to in its namespace.
struct Found<'a> {
    namespace: &'a str,
    references: Vec<Reference>,
}

impl Found<'_> {
    fn add(&mut self, kind: Kind, name: &Value) {
        let name = name.as_str().unwrap_or_default();
        let is_known = |known: &Reference| known.kind == kind && known.name == name;
        if !name.is_empty() && !self.references.iter().any(is_known) {
            let namespace = self.namespace.to_owned();
            let name = name.to_owned();
            self.references.push(Reference { kind, namespace, name });
        }
    }

    fn environment(&mut self, container: &Value) {
        for source in items(&container["envFrom"]) {
            self.add(Kind::Secret, &source["secretRef"]["name"]);
            self.add(Kind::ConfigMap, &source["configMapRef"]["name"]);
        }
        for variable in items(&container["env"]) {
            self.add(Kind::Secret, &variable["valueFrom"]["secretKeyRef"]["name"]);
            self.add(Kind::ConfigMap, &variable["valueFrom"]["configMapKeyRef"]["name"]);
        }
    }

    fn volume(&mut self, pod: &str, volume: &Value) {
        for source in WITH_SECRET_REF.into_iter().chain(["storageos"]) {
            self.add(Kind::Secret, &volume[source]["secretRef"]["name"]);
        }
        self.add(Kind::Secret, &volume["azureFile"]["secretName"]);
        self.add(Kind::Secret, &volume["secret"]["secretName"]);
        self.add(Kind::Secret, &volume["csi"]["nodePublishSecretRef"]["name"]);
        self.add(Kind::ConfigMap, &volume["configMap"]["name"]);
        for source in items(&volume["projected"]["sources"]) {
            self.add(Kind::Secret, &source["secret"]["name"]);
            self.add(Kind::ConfigMap, &source["configMap"]["name"]);
        }
        match &volume["persistentVolumeClaim"] {
            Value::Null if volume["ephemeral"].is_object() => {
                let volume = volume["name"].as_str().unwrap_or_default();
                self.add(Kind::Claim, &format!("{pod}-{volume}").into());
            }
            claim => self.add(Kind::Claim, &claim["claimName"]),
        }
    }
}

/// The claim that a volume is bound to, and the Secrets that a node needs to mount it; `None` if it
/// is bound to none.
pub(super) fn of_volume(volume: &Value) -> Option<Volume> {
    let spec = &volume["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let claim = spec.get("claimRef").filter(|claim| claim.is_object())?;
    let claim = Reference {
        kind: Kind::Claim,
        namespace: text(&claim["namespace"]),
        name: text(&claim["name"]),
    };
    let mut secrets = Vec::new();
    let mut add = |name: &Value, namespace: &Value, default: &str| {
        let name = text(name);
        let mut namespace = text(namespace);
        if namespace.is_empty() {
            default.clone_into(&mut namespace);
        }
        if !name.is_empty() {
            secrets.push(Reference { kind: Kind::Secret, namespace, name });
        }
    };
    let azure = &spec["azureFile"];
    add(&azure["secretName"], &azure["secretNamespace"], &claim.namespace);
    for source in WITH_SECRET_REF.into_iter().chain(["storageos"]) {
        let secret = &spec[source]["secretRef"];
        // Those two have always had to say it.
        let is_explicit = matches!(source, "cinder" | "storageos");
        let default = if is_explicit { "" } else { &claim.namespace };
        add(&secret["name"], &secret["namespace"], default);
    }
    for field in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        let secret = &spec["csi"][field];
        add(&secret["name"], &secret["namespace"], "");
    }
    Some(Volume { claim, secrets })
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Reference, of_pod, of_volume};

    fn told(references: &[Reference]) -> Vec<String> {
        let told = |r: &Reference| format!("{:?} {}/{}", r.kind, r.namespace, r.name);
        references.iter().map(told).collect()
    }

    #[test]
    fn a_pod_refers_to_what_its_containers_and_volumes_name() {
        let by = |name: &str| json!({"secretRef": {"name": name}});
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "a"},
            "spec": {
                "nodeName": "n",
                "serviceAccountName": "account",
                "imagePullSecrets": [{"name": "pull"}, {}],
                "containers": [{
                    "envFrom": [by("from"), {"configMapRef": {"name": "map-from"}}],
                    "env": [{"name": "A", "value": "secret"}],
                }],
                "initContainers": [{
                    "env": [{"valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}],
                }],
                "ephemeralContainers": [{
                    "env": [{"valueFrom": {"configMapKeyRef": {"name": "map-key", "key": "k"}}}],
                }],
                "volumes": [
                    {"secret": {"secretName": "mounted"}}, {"configMap": {"name": "map"}},
                    {"projected": {"sources": [
                        {"secret": {"name": "projected"}}, {"configMap": {"name": "map"}},
                    ]}},
                    {"azureFile": {"secretName": "azure"}}, {"cephfs": by("ceph")},
                    {"cinder": by("cinder")}, {"flexVolume": by("flex")}, {"rbd": by("rbd")},
                    {"scaleIO": by("scale")}, {"iscsi": by("iscsi")}, {"storageos": by("os")},
                    {"csi": {"nodePublishSecretRef": {"name": "csi"}}},
                    {"persistentVolumeClaim": {"claimName": "claim"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                ],
                "resourceClaims": [
                    {"name": "one", "resourceClaimName": "named"},
                    {"name": "two", "resourceClaimTemplateName": "template"},
                    {"name": "three", "resourceClaimTemplateName": "template"},
                ],
            },
            "status": {
                "resourceClaimStatuses": [{"name": "two", "resourceClaimName": "made"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
            },
        });
        let mut found = told(&of_pod(&pod));
        found.sort();
        let expected = [
            "Claim a/claim",
            "Claim a/p-scratch",
            "ConfigMap a/map",
            "ConfigMap a/map-from",
            "ConfigMap a/map-key",
            "ResourceClaim a/extended",
            "ResourceClaim a/made",
            "ResourceClaim a/named",
            "Secret a/azure",
            "Secret a/ceph",
            "Secret a/cinder",
            "Secret a/csi",
            "Secret a/flex",
            "Secret a/from",
            "Secret a/iscsi",
            "Secret a/key",
            "Secret a/mounted",
            "Secret a/os",
            "Secret a/projected",
            "Secret a/pull",
            "Secret a/rbd",
            "Secret a/scale",
            "ServiceAccount a/account",
        ];
        assert_eq!(found, expected);
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": ""});
        assert!(of_pod(&pod).is_empty());
    }

    #[test]
    fn a_bound_volume_refers_to_the_secrets_that_a_node_needs() {
        let secret = |namespace: Value| json!({"secretRef": {"name": "s", "namespace": namespace}});
        let node = json!({"name": "s", "namespace": "b"});
        let named = ["Secret b/s"].as_slice();
        for (source, expected) in [
            (json!({"azureFile": {"secretName": "s"}}), &["Secret a/s"][..]),
            (json!({"azureFile": {"secretName": "s", "secretNamespace": "b"}}), named),
            (json!({"rbd": secret(Value::Null)}), &["Secret a/s"]),
            (json!({"iscsi": secret("b".into())}), named),
            (json!({"cinder": secret("b".into())}), named),
            (json!({"csi": {"nodePublishSecretRef": node}}), named),
            (json!({"csi": {"nodeExpandSecretRef": node}}), named),
            (json!({"csi": {"controllerPublishSecretRef": node}}), &[]),
            (json!({"hostPath": {"path": "/"}}), &[]),
        ] {
            let mut volume = json!({"spec": source});
            assert_eq!(of_volume(&volume), None);
            volume["spec"]["claimRef"] = json!({"namespace": "a", "name": "c"});
            let found = of_volume(&volume).unwrap();
            assert_eq!(told(&[found.claim]), ["Claim a/c"]);
            assert_eq!(told(&found.secrets), expected, "{volume}");
        }
    }
}
