//! The Pods that every system holds: about 3 KB of JSON each, managed fields included.
//!
//! They look like what a busy cluster has: replicas of a few hundred applications, which share
//! images, labels and environment but differ in names, uids, addresses, nodes and times. The
//! same seed gives the same Pods.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::mark::WRITTEN;

/// How many nodes the Pods run on.
pub const NODES: usize = 500;
/// How many namespaces the Pods are in.
pub const NAMESPACES: usize = 100;
/// How many Pods one application has on average.
const REPLICAS: usize = 50;
/// The letters of generated names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name of a node.
pub fn node_name(number: usize) -> String {
    format!("node-{number:03}")
}

/// Makes Pods, one after another.
pub struct Pods {
    random: StdRng,
    applications: Vec<Application>,
}

/// What the Pods of one ReplicaSet have in common.
struct Application {
    name: String,
    namespace: String,
    replica_set: String,
    template_hash: String,
    owner_uid: String,
    image: String,
    image_digest: String,
    port: u16,
    environment: Vec<(String, String)>,
}

/// What is a Pod's own.
struct Instance {
    suffix: String,
    uid: String,
    node: usize,
    address: String,
    container_id: String,
    started: String,
}

impl Pods {
    /// The Pods of a cluster with so many of them.
    pub fn new(seed: u64, count: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let count = (count / REPLICAS).max(1);
        let applications = (0..count).map(|number| Application::new(number, &mut random));
        Self { applications: applications.collect(), random }
    }

    /// The next Pod, as JSON.
    pub fn next_pod(&mut self) -> Value {
        let chosen = self.random.random_range(0..self.applications.len());
        let instance = Instance::new(&mut self.random);
        self.applications[chosen].pod(&instance)
    }
}

impl Application {
    fn new(number: usize, random: &mut StdRng) -> Self {
        const NAMES: [&str; 12] = [
            "checkout",
            "payments",
            "catalog",
            "search",
            "ledger",
            "gateway",
            "profile",
            "shipping",
            "mailer",
            "metrics-agent",
            "recommender",
            "session-store",
        ];
        const VARIABLES: [&str; 8] = [
            "LOG_LEVEL",
            "DATABASE_URL",
            "REGION",
            "CACHE_SIZE",
            "FEATURE_FLAGS",
            "OTLP_ENDPOINT",
            "MAX_CONNECTIONS",
            "TENANT",
        ];
        let name = format!("{}-{number}", NAMES[number % NAMES.len()]);
        let template_hash = letters(random, 10);
        let variables = 2 + random.random_range(0..4);
        let first = random.random_range(0..VARIABLES.len());
        let environment = (0..variables).map(|offset| {
            let variable = VARIABLES[(first + offset) % VARIABLES.len()];
            (variable.to_owned(), format!("{name}-{}", letters(random, 6)))
        });
        let environment = environment.collect();
        Self {
            namespace: format!("team-{}", number % NAMESPACES),
            replica_set: format!("{name}-{template_hash}"),
            template_hash,
            owner_uid: uid(random),
            image: format!("registry.example.com/shop/{name}:v1.{}.3", random.random_range(0..40)),
            image_digest: hex(random, 64),
            port: random.random_range(3000..9999),
            environment,
            name,
        }
    }

    fn pod(&self, instance: &Instance) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self.metadata(instance),
            "spec": self.spec(instance),
            "status": self.status(instance),
        })
    }

    fn metadata(&self, instance: &Instance) -> Value {
        json!({
            "name": format!("{}-{}", self.replica_set, instance.suffix),
            "generateName": format!("{}-", self.replica_set),
            "namespace": self.namespace,
            "uid": instance.uid,
            "creationTimestamp": instance.started,
            "labels": {
                "app.kubernetes.io/name": self.name,
                "pod-template-hash": self.template_hash,
            },
            "annotations": { WRITTEN: "0" },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.replica_set,
                "uid": self.owner_uid, "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": self.managed_fields(instance),
        })
    }

    fn spec(&self, instance: &Instance) -> Value {
        let environment = self.environment.iter();
        let environment: Vec<Value> =
            environment.map(|(name, value)| json!({ "name": name, "value": value })).collect();
        json!({
            "containers": [{
                "name": "main",
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "ports": [{ "containerPort": self.port, "protocol": "TCP" }],
                "env": environment,
                "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "nodeName": node_name(instance.node),
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "enableServiceLinks": true,
        })
    }

    fn status(&self, instance: &Instance) -> Value {
        let condition = |kind: &str| {
            json!({ "type": kind, "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": instance.started })
        };
        let conditions = ["Initialized", "Ready", "PodScheduled"].map(condition);
        json!({
            "phase": "Running",
            "conditions": conditions,
            "hostIP": format!("10.1.{}.{}", instance.node / 250, instance.node % 250),
            "podIP": instance.address,
            "podIPs": [{ "ip": instance.address }],
            "startTime": instance.started,
            "qosClass": "Burstable",
            "containerStatuses": [{
                "name": "main", "ready": true, "started": true, "restartCount": 0,
                "image": self.image,
                "imageID": format!("{}@sha256:{}", self.image, self.image_digest),
                "containerID": format!("containerd://{}", instance.container_id),
                "state": { "running": { "startedAt": instance.started } },
            }],
        })
    }

    /// Who wrote which field, as the controller manager and the kubelet leave it.
    fn managed_fields(&self, instance: &Instance) -> Value {
        let environment = self.environment.iter();
        let environment: serde_json::Map<String, Value> = environment
            .map(|(name, _)| {
                let fields = json!({ ".": {}, "f:name": {}, "f:value": {} });
                (format!("k:{{\"name\":\"{name}\"}}"), fields)
            })
            .collect();
        json!([
            {
                "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                "time": instance.started, "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {
                        "f:generateName": {},
                        "f:labels": { ".": {}, "f:app.kubernetes.io/name": {},
                                      "f:pod-template-hash": {} },
                        "f:ownerReferences": {
                            ".": {}, format!("k:{{\"uid\":\"{}\"}}", self.owner_uid): {} },
                    },
                    "f:spec": {
                        "f:containers": { "k:{\"name\":\"main\"}": {
                            ".": {}, "f:env": environment, "f:image": {}, "f:name": {},
                            "f:resources": { ".": {}, "f:requests": {} } } },
                        "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {},
                    },
                },
            },
            {
                "manager": "kubelet", "operation": "Update", "apiVersion": "v1",
                "time": instance.started, "fieldsType": "FieldsV1", "subresource": "status",
                "fieldsV1": { "f:status": {
                    "f:conditions": {
                        "k:{\"type\":\"Ready\"}": { ".": {}, "f:status": {}, "f:type": {},
                                                    "f:lastTransitionTime": {} } },
                    "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {},
                    "f:startTime": {},
                } },
            },
        ])
    }
}

impl Instance {
    fn new(random: &mut StdRng) -> Self {
        let address = [(); 2].map(|()| random.random_range(1..255));
        let [day, hour, minute, second] = [28, 24, 60, 60].map(|end| random.random_range(0..end));
        Self {
            suffix: letters(random, 7),
            uid: uid(random),
            node: random.random_range(0..NODES),
            address: format!("10.{}.{}.{}", 64 + second, address[0], address[1]),
            container_id: hex(random, 64),
            started: format!("2026-05-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1),
        }
    }
}

fn letters(random: &mut StdRng, count: usize) -> String {
    let letter = |_| char::from(LETTERS[random.random_range(0..LETTERS.len())]);
    (0..count).map(letter).collect()
}

fn hex(random: &mut StdRng, count: usize) -> String {
    let digit = |_| char::from(b"0123456789abcdef"[random.random_range(0..16)]);
    (0..count).map(digit).collect()
}

fn uid(random: &mut StdRng) -> String {
    [8, 4, 4, 4, 12].map(|count| hex(random, count)).join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    const COUNT: usize = 1000;

    fn some(seed: u64) -> Vec<Value> {
        let mut pods = Pods::new(seed, COUNT);
        (0..COUNT).map(|_| pods.next_pod()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_pods() {
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
    }

    #[test]
    fn pods_are_about_three_kilobytes_and_none_is_like_another() {
        let pods = some(1);
        let size: usize = pods.iter().map(|pod| pod.to_string().len()).sum();
        assert!((3000..3600).contains(&(size / COUNT)), "{} bytes each", size / COUNT);
        for field in ["name", "uid"] {
            let values = pods.iter().map(|pod| pod["metadata"][field].to_string());
            assert_eq!(values.collect::<HashSet<_>>().len(), COUNT, "{field}");
        }
    }

    #[test]
    fn a_pod_is_one_that_kubernetes_knows_in_every_field() {
        let mut value = some(1).remove(0);
        let pod: Pod = serde_json::from_value(value.clone()).unwrap();
        // The type leaves out what is null.
        for condition in value["status"]["conditions"].as_array_mut().unwrap() {
            condition.as_object_mut().unwrap().remove("lastProbeTime");
        }
        assert_eq!(serde_json::to_value(pod).unwrap(), value);
    }
}
