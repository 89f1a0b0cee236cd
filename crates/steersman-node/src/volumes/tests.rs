use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Container, PersistentVolume, Pod, Secret};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, from_value, json};

use super::mounter::{Mounter, NewMount};
use super::mounts::SubPath;
use super::ownership::{Group, give_to};
use super::payload::{File, Payload};
use super::plan::{Backing, Medium};
use super::{
    ContainerMount, Inputs, LinuxMounter, MountSource, Mounting, Ownership, Propagation, Token,
    TokenKey, Tokens, VolumePlan, failed, host_path, mounts, plan, read_below, resolve, set_up,
    tear_down, writer,
};
use crate::environment::Environment;
use crate::objects::Objects;

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("steersman-volumes-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Also what a failed test left mounted.
        let _ = tear_down(&self.0, &LinuxMounter);
    }
}

/// Notes what would be mounted.
#[derive(Default)]
struct Noted {
    mounted: Mutex<Vec<NewMount>>,
}

impl Noted {
    fn all(&self) -> Vec<NewMount> {
        self.mounted.lock().unwrap().clone()
    }
}

fn target(mount: &NewMount) -> &Path {
    match mount {
        NewMount::Tmpfs { target, .. }
        | NewMount::HugePages { target, .. }
        | NewMount::Bind { target, .. } => target,
    }
}

impl Mounter for Noted {
    fn mount(&self, mount: &NewMount) -> io::Result<()> {
        assert!(target(mount).exists(), "there must be something to mount on: {mount:?}");
        self.mounted.lock().unwrap().push(mount.clone());
        Ok(())
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        self.mounted.lock().unwrap().retain(|mount| target(mount) != path);
        Ok(())
    }

    fn mounted_below(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let all = self.all();
        let paths = all.iter().rev().map(|mount| target(mount).to_owned());
        Ok(paths.filter(|path| path.starts_with(directory)).collect())
    }
}

fn at(second: i64) -> Timestamp {
    "2026-11-17T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

fn file(data: &str, mode: u32) -> File {
    File { data: data.into(), mode, owner: None }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

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
                    "",
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

/// The mounts of a container with one mount.
fn mounted(mount: &Value, recursive_read_only: bool) -> Result<ContainerMount, String> {
    let volume = |name: &str, backing, read_only| VolumePlan {
        name: name.into(),
        path: Path::new("/pods/u/volumes").join(name),
        backing,
        read_only,
    };
    let files = Backing::Files { medium: Medium::Disk, payload: Payload::new(), nested: vec![] };
    let image = Backing::Image { reference: "docs:1".into(), pull_policy: None };
    let volumes = [
        volume("empty", Backing::Empty(Medium::Disk), false),
        volume("files", files, true),
        volume("image", image, true),
    ];
    let environment =
        Environment::from([("POD".to_owned(), b"web-0".to_vec()), ("EMPTY".to_owned(), vec![])]);
    let container: Container =
        from_value(json!({ "name": "main", "volumeMounts": [mount] })).unwrap();
    let mounting = Mounting {
        container: &container,
        volumes: &volumes,
        environment: &environment,
        recursive_read_only,
    };
    mounts(&mounting).map(|mut found| found.remove(0)).map_err(|error| error.to_string())
}

#[test]
fn a_container_mounts_volumes_and_parts_of_them() {
    let plain = ContainerMount {
        name: "empty".into(),
        container_path: "/data".into(),
        source: MountSource::Path("/pods/u/volumes/empty".into()),
        read_only: false,
        recursive_read_only: false,
        propagation: Propagation::Private,
    };
    let part = |path: &str| {
        MountSource::SubPath(SubPath {
            volume: "/pods/u/volumes/empty".into(),
            path: path.into(),
            target: "volume-subpaths/empty/main/0".into(),
        })
    };
    let with = |rest: Value| {
        let mut mount = json!({ "name": "empty", "mountPath": "/data" });
        mount.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        mount
    };
    for (mount, expected) in [
        (with(json!({})), Ok(plain.clone())),
        (with(json!({ "mountPath": "data" })), Ok(plain.clone())),
        (
            with(json!({ "readOnly": true })),
            Ok(ContainerMount { read_only: true, ..plain.clone() }),
        ),
        (
            with(json!({ "name": "files" })),
            Ok(ContainerMount {
                name: "files".into(),
                source: MountSource::Path("/pods/u/volumes/files".into()),
                read_only: true,
                ..plain.clone()
            }),
        ),
        (
            with(json!({ "subPath": "a/b" })),
            Ok(ContainerMount { source: part("a/b"), ..plain.clone() }),
        ),
        (
            with(json!({ "subPathExpr": "logs/$(POD)" })),
            Ok(ContainerMount { source: part("logs/web-0"), ..plain.clone() }),
        ),
        (
            with(json!({ "subPathExpr": "$(NONE)/$(EMPTY)/$(POD)" })),
            Err("missing value for EMPTY, NONE"),
        ),
        (with(json!({ "subPath": "/a" })), Err("error SubPath `/a` must not be an absolute path")),
        (
            with(json!({ "subPath": "a/../b" })),
            Err("unable to provision SubPath `a/../b`: must not contain '..'"),
        ),
        (
            with(json!({ "name": "image", "subPath": "man" })),
            Ok(ContainerMount {
                name: "image".into(),
                source: MountSource::Image { reference: "docs:1".into(), sub_path: "man".into() },
                read_only: true,
                ..plain.clone()
            }),
        ),
        (
            with(json!({ "name": "none" })),
            Err("cannot find volume \"none\" to mount into container \"main\""),
        ),
    ] {
        let found = mounted(&mount, true);
        assert_eq!(found, expected.map_err(str::to_owned), "{mount}");
    }
}

#[test]
fn mounts_made_later_are_seen_if_the_container_wants_them() {
    for (mode, expected) in [
        ("None", Ok(Propagation::Private)),
        ("HostToContainer", Ok(Propagation::HostToContainer)),
        ("Bidirectional", Ok(Propagation::Bidirectional)),
        ("Tea", Err("invalid MountPropagation mode: \"Tea\"")),
    ] {
        let mount = json!({ "name": "empty", "mountPath": "/data", "mountPropagation": mode });
        let found = mounted(&mount, true).map(|mount| mount.propagation);
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}

#[test]
fn what_is_read_only_can_be_so_all_the_way_down() {
    let mount = |mode: &str, read_only: bool, propagation: &str| {
        json!({ "name": "empty", "mountPath": "/data", "readOnly": read_only,
                "recursiveReadOnly": mode, "mountPropagation": propagation })
    };
    let failed =
        |why: &str| format!("failed to resolve recursive read-only mode: volume \"empty\" {why}");
    for (mount, supported, expected) in [
        (mount("Disabled", true, "None"), true, Ok(false)),
        (mount("IfPossible", true, "None"), true, Ok(true)),
        (mount("IfPossible", true, "None"), false, Ok(false)),
        (mount("Enabled", true, "None"), true, Ok(true)),
        (
            mount("Enabled", true, "None"),
            false,
            Err(failed(
                "requested recursive read-only mode, but it is not supported by the runtime",
            )),
        ),
        (
            mount("Enabled", false, "None"),
            true,
            Err(failed("requested recursive read-only mode, but it is not read-only")),
        ),
        (
            mount("Enabled", true, "HostToContainer"),
            true,
            Err(failed(
                "requested recursive read-only mode, but it is not compatible with propagation \
                 \"HostToContainer\"",
            )),
        ),
    ] {
        let found = mounted(&mount, supported).map(|mount| mount.recursive_read_only);
        assert_eq!(found, expected, "{mount}");
    }
}

/// Everything in a directory: files with their content, links with where they lead.
fn tree(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    let mut found = Vec::new();
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Ok(to) = fs::read_link(&path) {
            found.push(format!("{name} -> {}", to.display()));
        } else if path.is_dir() {
            found.extend(tree(&path).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(format!("{name}={}", fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn files_are_swapped_at_once() {
    let scratch = Scratch::new();
    let write = |payload: &Payload, second| {
        writer::write(&scratch.0, payload, at(second), || Ok(())).unwrap()
    };
    let first =
        Payload::from([("a".to_owned(), file("1", 0o644)), ("d/./b".to_owned(), file("2", 0o400))]);
    assert!(write(&first, 0));
    assert_eq!(
        tree(&scratch.0),
        [
            "..2026_11_17_12_00_00.000000000/a=1",
            "..2026_11_17_12_00_00.000000000/d/b=2",
            "..data -> ..2026_11_17_12_00_00.000000000",
            "a -> ..data/a",
            "d -> ..data/d",
        ]
    );
    assert_eq!(mode(&scratch.join("a")), 0o644);
    assert_eq!(mode(&scratch.join("d/b")), 0o400);
    assert_eq!(mode(&scratch.join("..data")), 0o755);

    // What has not changed is not written; a link that somebody removed is made again.
    fs::remove_file(scratch.join("a")).unwrap();
    assert!(!write(&first, 1));
    assert_eq!(tree(&scratch.0).len(), 5);
    assert!(tree(&scratch.0).contains(&"..data -> ..2026_11_17_12_00_00.000000000".to_owned()));

    // What has changed is all new, and what is gone is not seen any more.
    let second = Payload::from([("a".to_owned(), file("3", 0o644))]);
    assert!(write(&second, 2));
    assert_eq!(
        tree(&scratch.0),
        [
            "..2026_11_17_12_00_02.000000000/a=3",
            "..data -> ..2026_11_17_12_00_02.000000000",
            "a -> ..data/a",
        ]
    );

    // The same moment again, and nothing at all.
    assert!(write(&first, 2));
    assert!(tree(&scratch.0)[0].starts_with("..2026_11_17_12_00_02.000000001/a="));
    assert!(write(&Payload::new(), 3));
    assert_eq!(tree(&scratch.0), ["..data -> ..2026_11_17_12_00_03.000000000"]);
}

#[test]
fn a_writer_clears_up_after_one_that_was_killed() {
    let scratch = Scratch::new();
    let old = Payload::from([("a".to_owned(), file("1", 0o644))]);
    let new = Payload::from([("a".to_owned(), file("2", 0o644))]);
    writer::write(&scratch.0, &old, at(0), || Ok(())).unwrap();

    // It fails after the new files are there, and before they are seen.
    let error = writer::write(&scratch.0, &new, at(1), || Err(io::Error::other("no"))).unwrap_err();
    assert!(error.to_string().ends_with(": no"), "{error}");
    assert_eq!(fs::read_to_string(scratch.join("a")).unwrap(), "1");
    assert_eq!(tree(&scratch.0).len(), 4);
    symlink("nowhere", scratch.join("..data_tmp")).unwrap();

    writer::write(&scratch.0, &new, at(2), || Ok(())).unwrap();
    assert_eq!(
        tree(&scratch.0),
        [
            "..2026_11_17_12_00_02.000000000/a=2",
            "..data -> ..2026_11_17_12_00_02.000000000",
            "a -> ..data/a",
        ]
    );

    // A link that leads nowhere counts as none.
    fs::remove_dir_all(scratch.join("..2026_11_17_12_00_02.000000000")).unwrap();
    writer::write(&scratch.0, &new, at(3), || Ok(())).unwrap();
    assert_eq!(fs::read_to_string(scratch.join("a")).unwrap(), "2");
}

#[test]
fn paths_of_files_stay_in_their_volume() {
    let scratch = Scratch::new();
    for (path, expected) in [
        ("", "invalid path: must not be empty: \"\""),
        ("/a", "invalid path: must be relative path: /a"),
        ("a/../b", "invalid path: must not contain '..': a/../b"),
        ("..", "invalid path: must not contain '..': .."),
        ("..a", "invalid path: must not start with '..': ..a"),
        (&"a".repeat(256), "invalid path: filenames must be less than or equal to 255 characters"),
        (&"a/".repeat(2049), "invalid path: must be less than or equal to 4096 characters"),
    ] {
        let payload = Payload::from([(path.to_owned(), file("", 0o644))]);
        let error = writer::write(&scratch.0, &payload, at(0), || Ok(())).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(tree(&scratch.0), [""; 0]);
    }
}

#[test]
fn a_group_gets_all_files_and_what_is_made_later() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("d")).unwrap();
    fs::write(scratch.join("d/f"), "1").unwrap();
    symlink("d/f", scratch.join("link")).unwrap();
    let private = |path: &str, mode| {
        fs::set_permissions(scratch.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    // Our own group, which everybody may give files to.
    let id = fs::metadata(&scratch.0).unwrap().gid();
    let group = Group { id, read_only: false, only_if_root_differs: true };
    let modes = || [mode(&scratch.0), mode(&scratch.join("d")), mode(&scratch.join("d/f"))];

    private("d/f", 0o600);
    private("d", 0o700);
    private(".", 0o700);
    give_to(&scratch.0, group).unwrap();
    assert_eq!(modes(), [0o2770, 0o2770, 0o660]);

    // As long as the root is right, the rest is left alone if that is the policy.
    private("d/f", 0o600);
    give_to(&scratch.0, group).unwrap();
    assert_eq!(modes(), [0o2770, 0o2770, 0o600]);
    give_to(&scratch.0, Group { only_if_root_differs: false, ..group }).unwrap();
    assert_eq!(modes(), [0o2770, 0o2770, 0o660]);

    private("d/f", 0o400);
    private("d", 0o700);
    private(".", 0o755);
    give_to(&scratch.0, Group { read_only: true, ..group }).unwrap();
    assert_eq!(modes(), [0o2755, 0o2750, 0o440]);
}

#[test]
fn paths_of_the_node_are_what_their_type_says() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), "").unwrap();
    let _socket = UnixListener::bind(scratch.join("socket")).unwrap();
    let told = |path: &str, kind: &str| {
        let path = if path.starts_with('/') { path.into() } else { scratch.join(path) };
        let told = host_path::check(&path, kind).err().map(|error| error.to_string());
        told.unwrap_or_default().replace(&format!("{}/", scratch.0.display()), "")
    };
    for (path, kind, expected) in [
        ("none", "", ""),
        (".", "Directory", ""),
        ("file", "Directory", "hostPath type check failed: file is not a directory"),
        ("none", "Directory", "hostPath type check failed: none is not a directory"),
        ("file", "File", ""),
        ("none", "File", "hostPath type check failed: none is not a file"),
        ("socket", "Socket", ""),
        ("file", "Socket", "hostPath type check failed: file is not a socket file"),
        ("/dev/null", "CharDevice", ""),
        ("file", "CharDevice", "hostPath type check failed: file is not a character device"),
        ("/dev/null", "BlockDevice", "hostPath type check failed: /dev/null is not a block device"),
        ("file", "DirectoryOrCreate", "hostPath type check failed: file is not a directory"),
        ("new/dir", "DirectoryOrCreate", ""),
        ("new/dir", "DirectoryOrCreate", ""),
        ("new/dir", "FileOrCreate", "hostPath type check failed: new/dir is not a file"),
        ("new/file", "FileOrCreate", ""),
        ("file", "Tea", "Tea is an invalid volume type"),
    ] {
        assert_eq!(told(path, kind), expected, "{path} {kind}");
    }
    assert!(scratch.join("new/dir").is_dir());
    assert!(scratch.join("new/file").is_file());
}

#[test]
fn a_part_of_a_volume_is_never_outside_of_it() {
    let scratch = Scratch::new();
    let volume = scratch.join("volume");
    fs::create_dir_all(volume.join("in/side")).unwrap();
    fs::create_dir(scratch.join("secret")).unwrap();
    fs::write(volume.join("file"), "").unwrap();
    symlink("in/side", volume.join("link")).unwrap();
    symlink("../secret", volume.join("out")).unwrap();
    symlink("/", volume.join("root")).unwrap();
    symlink("../volume/in", volume.join("roundabout")).unwrap();
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o2775)).unwrap();

    let pod = scratch.join("pod");
    for (path, made) in [
        ("in", true),
        ("in/side", true),
        ("file", true),
        ("link", true),
        ("new/deep/er", true),
        ("in/../in/side", true),
        ("link/new", true),
        ("out", false),
        ("out/new", false),
        ("root", false),
        ("root/tmp", false),
        ("roundabout", false),
        ("file/new", false),
    ] {
        let mounter = Noted::default();
        let part = SubPath {
            volume: volume.clone(),
            path: path.into(),
            target: format!("parts/{path}/0").into(),
        };
        let found = resolve(&part, "data", &pod, &mounter);
        if made {
            assert_eq!(found.unwrap(), pod.join(&part.target), "{path}");
            let [NewMount::Bind { target, .. }] = &mounter.all()[..] else { panic!("{path}") };
            assert_eq!(target.is_dir(), volume.join(path).is_dir(), "{path}");
        } else {
            let error = found.unwrap_err().to_string();
            assert_eq!(error, "failed to create subPath directory for volumeMount \"data\"");
            assert_eq!(mounter.all(), []);
        }
    }
    // What was made is like the volume, and nothing was made elsewhere.
    assert_eq!(mode(&volume.join("new")), 0o2775);
    assert_eq!(mode(&volume.join("new/deep/er")), 0o2775);
    assert!(volume.join("in/side/new").is_dir());
    assert_eq!(tree(&scratch.join("secret")), [""; 0]);
}

#[test]
fn files_of_variables_are_read_without_leaving_the_volume() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("volume")).unwrap();
    fs::write(scratch.join("volume/env"), "A='1'").unwrap();
    fs::write(scratch.join("secret"), "A='2'").unwrap();
    symlink("../secret", scratch.join("volume/out")).unwrap();
    let volume = scratch.join("volume");
    assert_eq!(read_below(&volume, "env").content.unwrap(), "A='1'");
    assert_eq!(read_below(&volume, "env").path, volume.join("env"));
    assert!(read_below(&volume, "out").content.is_err());
    assert!(read_below(&volume, "none").content.is_err());
}

#[test]
fn volumes_are_set_up_again_and_again_and_removed_with_what_is_mounted() {
    let scratch = Scratch::new();
    let mounter = Noted::default();
    let pod = scratch.join("pod");
    let ownership =
        Ownership { group: Some(fs::metadata(&scratch.0).unwrap().gid()), ..Default::default() };
    let volume = |name: &str, backing| VolumePlan {
        name: name.into(),
        path: pod.join("volumes").join(name),
        backing,
        read_only: false,
    };
    let files = |content: &str| Backing::Files {
        medium: Medium::Memory { size: Some(4096) },
        payload: Payload::from([("a".to_owned(), file(content, 0o600))]),
        nested: vec!["inner/most".into()],
    };
    let make = |volume: &VolumePlan, second| set_up(volume, ownership, &mounter, at(second));

    make(&volume("disk", Backing::Empty(Medium::Disk)), 0).unwrap();
    assert_eq!(mode(&pod.join("volumes/disk")), 0o2777);
    fs::write(pod.join("volumes/disk/kept"), "x").unwrap();
    make(&volume("disk", Backing::Empty(Medium::Disk)), 1).unwrap();
    assert_eq!(tree(&pod.join("volumes/disk")), ["kept=x"]);

    make(&volume("files", files("1")), 0).unwrap();
    make(&volume("files", files("2")), 1).unwrap();
    let directory = pod.join("volumes/files");
    let tmpfs = NewMount::Tmpfs { target: directory.clone(), size: Some(4096) };
    assert_eq!(mounter.all(), [tmpfs]);
    assert_eq!(fs::read_to_string(directory.join("a")).unwrap(), "2");
    assert_eq!(mode(&directory.join("a")), 0o640, "the group may read it");
    assert!(directory.join("inner/most").is_dir());

    let missing = VolumePlan { path: scratch.join("none"), ..volume("local", Backing::Local) };
    let error = make(&missing, 0).unwrap_err();
    assert_eq!(error.to_string(), format!("path {:?} does not exist", scratch.join("none")));

    tear_down(&pod, &mounter).unwrap();
    assert_eq!(mounter.all(), []);
    assert!(!pod.exists());
    tear_down(&pod, &mounter).unwrap();
}

#[test]
fn nothing_is_removed_while_something_is_mounted() {
    struct Stuck(PathBuf);
    impl Mounter for Stuck {
        fn mount(&self, _: &NewMount) -> io::Result<()> {
            Ok(())
        }
        fn unmount(&self, _: &Path) -> io::Result<()> {
            Ok(())
        }
        fn mounted_below(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
            Ok(vec![self.0.clone()])
        }
    }
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.join("pod/data")).unwrap();
    let stuck = Stuck(scratch.join("pod/data"));
    assert!(
        tear_down(&scratch.join("pod"), &stuck).unwrap_err().to_string().ends_with("still mounted")
    );
    assert!(scratch.join("pod/data").exists());
}

#[test]
fn the_kernel_mounts_for_root_and_for_nobody_else() {
    let scratch = Scratch::new();
    let (memory, bound) = (scratch.join("memory"), scratch.join("bound"));
    fs::create_dir(&memory).unwrap();
    fs::create_dir(&bound).unwrap();
    let tmpfs = NewMount::Tmpfs { target: memory.clone(), size: Some(65536) };
    let bind = NewMount::Bind { source: memory.clone(), target: bound.clone() };
    if let Err(error) = LinuxMounter.mount(&tmpfs) {
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(!LinuxMounter.is_mounted(&memory).unwrap());
        return;
    }
    LinuxMounter.mount(&bind).unwrap();
    let too_much = fs::write(memory.join("much"), vec![0; 100_000]).unwrap_err();
    assert_eq!(too_much.kind(), io::ErrorKind::StorageFull);
    fs::remove_file(memory.join("much")).unwrap();
    fs::write(memory.join("little"), "x").unwrap();
    assert_eq!(fs::read_to_string(bound.join("little")).unwrap(), "x");
    assert_eq!(LinuxMounter.mounted_below(&scratch.0).unwrap(), [bound, memory]);
    tear_down(&scratch.0, &LinuxMounter).unwrap();
    assert!(!scratch.0.exists());
}
