use std::path::Path;

use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, from_value, json};

use crate::environment::Environment;
use crate::volumes::{
    Backing, ContainerMount, Medium, MountSource, Mounting, Payload, Propagation, SubPath,
    VolumePlan, mounts,
};

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

/// A part of a volume, mounted first.
fn part(volume: &str, path: &str) -> MountSource {
    MountSource::SubPath(SubPath {
        volume: Path::new("/pods/u/volumes").join(volume),
        path: path.into(),
        target: Path::new("volume-subpaths").join(volume).join("main/0"),
    })
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
            Ok(ContainerMount { source: part("empty", "a/b"), ..plain.clone() }),
        ),
        (
            with(json!({ "subPathExpr": "logs/$(POD)" })),
            Ok(ContainerMount { source: part("empty", "logs/web-0"), ..plain.clone() }),
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
                source: part("image", "man"),
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
