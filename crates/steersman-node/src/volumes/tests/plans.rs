use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, Pod, Secret};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, from_value, json};

use super::at;
use crate::objects::Objects;
use crate::volumes::payload::File;
use crate::volumes::{Backing, Inputs, Medium, Token, TokenKey, Tokens, VolumePlan, failed, plan};

fn objects() -> Objects {
    let config: ConfigMap =
        from_value(json!({ "data": { "a": "1", "b": "2" }, "binaryData": { "raw": "/w==" } }))
            .unwrap();
    let secret: Secret = from_value(json!({ "data": { "key": "c2VzYW1l" } })).unwrap();
    let mut objects = Objects::default();
    objects.config_maps.insert("config".into(), Ok(Arc::new(config)));
    objects.secrets.insert("secret".into(), Ok(Arc::new(secret)));
    objects
}

fn tokens() -> Tokens {
    let token = |value: &str| Token {
        value: value.into(),
        expires: at(3600),
        lifetime: SignedDuration::from_hours(1),
    };
    let key = |audience: Option<&str>, expiration_seconds| TokenKey {
        audience: audience.map(str::to_owned),
        expiration_seconds,
    };
    Tokens::from([
        (key(None, 3600), Ok(token("api"))),
        (key(Some("vault"), 600), Ok(token("vault"))),
        (key(Some("broken"), 3600), Err("the server is away".into())),
    ])
}

/// Plans one volume of a Pod that has these other fields.
fn planned(volume: &Value, pod: &Value) -> Result<VolumePlan, String> {
    let mut volume = volume.clone();
    volume["name"] = json!("v");
    let mut spec = json!({ "containers": [], "volumes": [volume] });
    for (name, value) in pod.as_object().unwrap().clone() {
        spec[name] = value;
    }
    let meta = json!({ "name": "p", "namespace": "shop", "labels": { "app": "web" } });
    let pod: Pod = from_value(json!({ "metadata": meta, "spec": spec })).unwrap();
    let allocatable: BTreeMap<String, Quantity> =
        [("memory".to_owned(), Quantity("8Gi".into()))].into();
    let local = |path: &str| -> Result<PersistentVolume, String> {
        Ok(from_value(json!({ "spec": { "local": { "path": path } } })).unwrap())
    };
    let claimed = pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0]
        .persistent_volume_claim
        .as_ref()
        .map(|claim| claim.claim_name.clone());
    let found = match claimed.as_deref() {
        Some("local") => local("/mnt/disk"),
        Some("back") => local("/mnt/../etc"),
        Some("nfs") => {
            Ok(from_value(json!({ "spec": { "nfs": { "server": "s", "path": "/" } } })).unwrap())
        }
        _ => Err("persistentvolumeclaim \"none\" not found".into()),
    };
    let inputs = Inputs {
        pod: &pod,
        directory: Path::new("/pods/u"),
        objects: &objects(),
        tokens: &tokens(),
        allocatable: &allocatable,
        persistent: &HashMap::from([("v".to_owned(), found)]),
    };
    let (name, planned) = plan(&inputs).remove(0);
    assert_eq!(name, "v");
    planned.map_err(|error| error.to_string())
}

/// Files as `path:mode=content`, or the error.
fn files(volume: &Value, pod: &Value) -> String {
    let shown = |(path, file): (&String, &File)| {
        let owner = file.owner.map(|owner| format!("@{owner}")).unwrap_or_default();
        format!("{path}:{:o}{owner}={}", file.mode, String::from_utf8_lossy(&file.data))
    };
    match planned(volume, pod) {
        Ok(VolumePlan { backing: Backing::Files { payload, .. }, read_only: true, .. }) => {
            payload.iter().map(shown).collect::<Vec<_>>().join(" ")
        }
        Ok(other) => panic!("these are no files: {other:?}"),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn objects_become_files() {
    let config = |rest: Value| {
        let mut source = json!({ "name": "config" });
        source.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({ "configMap": source })
    };
    let secret = |rest: Value| {
        let mut source = json!({ "secretName": "secret" });
        source.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({ "secret": source })
    };
    let items = |key: &str| json!({ "items": [{ "key": key, "path": "x/y", "mode": 0o400 }] });
    for (volume, expected) in [
        (config(json!({})), "a:644=1 b:644=2 raw:644=\u{fffd}"),
        (config(json!({ "defaultMode": 0o440 })), "a:440=1 b:440=2 raw:440=\u{fffd}"),
        (config(items("a")), "x/y:400=1"),
        (config(items("raw")), "x/y:400=\u{fffd}"),
        (
            config(json!({ "items": [{ "key": "a", "path": "x" }], "defaultMode": 0o600 })),
            "x:600=1",
        ),
        (config(items("c")), "! configmap references non-existent config key: c"),
        (config(json!({ "items": [{ "key": "c", "path": "x" }], "optional": true })), ""),
        (config(json!({ "name": "none" })), "! configmap \"none\" not found"),
        (config(json!({ "name": "none", "optional": true })), ""),
        (secret(json!({})), "key:644=sesame"),
        (secret(items("key")), "x/y:400=sesame"),
        (secret(items("c")), "! references non-existent secret key: c"),
        (secret(json!({ "secretName": "none" })), "! secret \"none\" not found"),
        (secret(json!({ "secretName": "none", "optional": true })), ""),
        (
            json!({ "downwardAPI": { "items": [
                { "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } },
                { "path": "name", "mode": 0o400, "fieldRef": { "fieldPath": "metadata.name" } },
                { "path": "mem", "resourceFieldRef": {
                    "containerName": "c", "resource": "limits.memory", "divisor": "1Gi" } },
            ] } }),
            "labels:644=app=\"web\" mem:644=8 name:400=p",
        ),
        (
            json!({ "downwardAPI": { "items": [
                { "path": "a", "fieldRef": { "fieldPath": "status.podIP" } },
                { "path": "b", "resourceFieldRef": {
                    "containerName": "none", "resource": "limits.cpu" } },
            ] } }),
            "! [unsupported fieldPath: status.podIP, container none not found]",
        ),
    ] {
        let pod = json!({ "containers": [{ "name": "c" }] });
        assert_eq!(files(&volume, &pod), expected, "{volume}");
    }
}

#[test]
fn a_projected_volume_has_all_its_sources_and_the_last_wins() {
    let sources =
        |sources: Value| json!({ "projected": { "sources": sources, "defaultMode": 0o640 } });
    let token = |audience: &str, seconds: i64| {
        json!([{ "serviceAccountToken": {
            "path": "token", "audience": audience, "expirationSeconds": seconds,
        } }])
    };
    for (volume, pod, expected) in [
        (
            sources(json!([
                { "configMap": { "name": "config", "items": [{ "key": "a", "path": "x" }] } },
                { "secret": { "name": "secret", "items": [{ "key": "key", "path": "x", "mode": 0o400 }] } },
                { "configMap": { "name": "none", "optional": true } },
                { "downwardAPI": { "items": [{ "path": "name", "fieldRef": { "fieldPath": "metadata.name" } }] } },
            ])),
            json!({}),
            "name:640=p x:400=sesame",
        ),
        (sources(token("", 3600)), json!({}), "token:640=api"),
        (sources(token("vault", 600)), json!({}), "token:640=vault"),
        // Whose files they are is known, so nobody else reads them.
        (sources(token("", 3600)), json!({ "securityContext": { "fsGroup": 7 } }), "token:600=api"),
        (
            sources(token("", 3600)),
            json!({
                "securityContext": { "runAsUser": 5 },
                "containers": [{ "name": "a" }, { "name": "b", "securityContext": { "runAsUser": 5 } }],
            }),
            "token:600@5=api",
        ),
        (
            sources(token("", 3600)),
            json!({ "containers": [{ "name": "a" }, { "name": "b", "securityContext": { "runAsUser": 5 } }] }),
            "token:640=api",
        ),
        (sources(token("broken", 3600)), json!({}), "! failed to fetch token: the server is away"),
        (
            sources(json!([{ "clusterTrustBundle": { "path": "x", "name": "b" } }])),
            json!({}),
            "! ClusterTrustBundle projection is not supported by this node",
        ),
        (
            sources(json!([{ "configMap": { "name": "none" } }, { "secret": { "name": "none" } }])),
            json!({}),
            "! [configmap \"none\" not found, secret \"none\" not found]",
        ),
    ] {
        assert_eq!(files(&volume, &pod), expected, "{volume}");
    }
    let error = io::Error::other("configmap \"x\" not found");
    assert_eq!(
        failed("v", &error),
        "MountVolume.SetUp failed for volume \"v\" : configmap \"x\" not found"
    );
}

fn own_volume(path: &str, backing: Backing) -> VolumePlan {
    VolumePlan { name: "v".into(), path: path.into(), backing, read_only: false }
}

#[test]
fn an_empty_volume_is_a_directory_on_its_medium() {
    let own = own_volume;
    let empty = "/pods/u/volumes/kubernetes.io~empty-dir/v";
    let memory = |size| own(empty, Backing::Empty(Medium::Memory { size: Some(size) }));
    let gib = 1 << 30;
    let limited = json!({ "containers": [
        { "name": "a", "resources": { "limits": { "memory": "1Gi" } } },
        { "name": "b", "resources": { "limits": { "memory": "1Gi" } } },
    ] });
    let huge = json!({ "containers": [{ "name": "a", "resources": { "requests": {
        "hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi" } } }] });
    let in_memory = json!({ "emptyDir": { "medium": "Memory" } });
    for (volume, pod, expected) in [
        (json!({ "emptyDir": {} }), json!({}), Ok(own(empty, Backing::Empty(Medium::Disk)))),
        (in_memory.clone(), json!({}), Ok(memory(8 * gib))),
        (in_memory.clone(), limited.clone(), Ok(memory(2 * gib))),
        (
            in_memory,
            json!({ "containers": [{ "name": "a" }], "resources": { "limits": { "memory": "3Gi" } } }),
            Ok(memory(3 * gib)),
        ),
        (
            json!({ "emptyDir": { "medium": "Memory", "sizeLimit": "64Mi" } }),
            limited,
            Ok(memory(64 << 20)),
        ),
        (
            json!({ "emptyDir": { "medium": "HugePages-2Mi" } }),
            huge.clone(),
            Ok(own(empty, Backing::Empty(Medium::HugePages { page: "2Mi".into() }))),
        ),
        (
            json!({ "emptyDir": { "medium": "HugePages" } }),
            huge,
            Err("medium: HugePages can't be used if container requests multiple huge page sizes"),
        ),
        (
            json!({ "emptyDir": { "medium": "HugePages" } }),
            json!({}),
            Err("medium HugePages: hugePages storage requested, but there is no resource request \
                 for huge pages"),
        ),
        (
            json!({ "emptyDir": { "medium": "Tea" } }),
            json!({}),
            Err("unknown storage medium \"Tea\""),
        ),
    ] {
        let found = planned(&volume, &pod);
        assert_eq!(found, expected.map_err(str::to_owned), "{volume}");
    }
}

#[test]
fn other_volumes_are_paths_of_the_node_and_images() {
    let own = own_volume;
    let claim =
        |name: &str| json!({ "persistentVolumeClaim": { "claimName": name, "readOnly": true } });
    for (volume, pod, expected) in [
        (
            json!({ "hostPath": { "path": "/var/log", "type": "Directory" } }),
            json!({}),
            Ok(own("/var/log", Backing::Host { kind: "Directory".into() })),
        ),
        (
            json!({ "hostPath": { "path": "/var/../etc" } }),
            json!({}),
            Err("invalid HostPath `/var/../etc`: must not contain '..'"),
        ),
        (
            claim("local"),
            json!({}),
            Ok(VolumePlan { read_only: true, ..own("/mnt/disk", Backing::Local) }),
        ),
        (claim("back"), json!({}), Err("invalid path: /mnt/../etc must not contain '..'")),
        (claim("none"), json!({}), Err("persistentvolumeclaim \"none\" not found")),
        (claim("nfs"), json!({}), Err("no volume plugin matched")),
        (
            json!({ "nfs": { "server": "s", "path": "/" } }),
            json!({}),
            Err("no volume plugin matched"),
        ),
        (
            json!({ "image": { "reference": "docs:1", "pullPolicy": "Always" } }),
            json!({}),
            Ok(VolumePlan {
                read_only: true,
                ..own(
                    "/pods/u/volumes/kubernetes.io~image/v",
                    Backing::Image {
                        reference: "docs:1".into(),
                        pull_policy: Some("Always".into()),
                    },
                )
            }),
        ),
    ] {
        let found = planned(&volume, &pod);
        assert_eq!(found, expected.map_err(str::to_owned), "{volume}");
    }
}

#[test]
fn a_volume_of_files_has_directories_for_what_is_mounted_inside() {
    let mounts = json!([
        { "name": "v", "mountPath": "/etc/app/" },
        { "name": "w", "mountPath": "/etc/app/conf.d" },
        { "name": "x", "mountPath": "/etc/app/conf.d/deeper" },
        { "name": "y", "mountPath": "/etc/app-else" },
    ]);
    let pod = json!({ "containers": [{ "name": "a", "volumeMounts": mounts }] });
    let found = planned(&json!({ "configMap": { "name": "config" } }), &pod).unwrap();
    let Backing::Files { nested, medium: Medium::Disk, .. } = found.backing else {
        panic!("files on disk expected")
    };
    assert_eq!(nested, [PathBuf::from("conf.d")]);
}
