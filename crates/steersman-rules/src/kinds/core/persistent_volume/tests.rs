//! The sources of persistent volumes, their updates and what is warned of.

use serde_json::{Value, json};

use super::RULES;
use crate::field::FieldError;

fn volume(source: &str, value: Value) -> Value {
    let mut volume = json!({
        "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    });
    volume["spec"][source] = value;
    RULES.fill_in(&mut volume);
    volume
}

fn complaints(source: &str, value: Value) -> Vec<String> {
    let errors = RULES.validate_create(&volume(source, value));
    errors.iter().map(FieldError::message).collect()
}

#[test]
fn sources_are_filled_in() {
    let cases = [
        ("hostPath", json!({"type": ""})),
        ("rbd", json!({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"})),
        ("iscsi", json!({"iscsiInterface": "default"})),
        (
            "azureDisk",
            json!({
                "cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared",
            }),
        ),
        ("scaleIO", json!({"storageMode": "ThinProvisioned", "fsType": "xfs"})),
    ];
    for (source, expected) in cases {
        assert_eq!(volume(source, json!({}))["spec"][source], expected, "{source}");
    }
}

#[test]
fn sources_on_the_network_are_checked() {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let cases = [
        (
            "flocker",
            json!({}),
            vec![
                "spec.flocker: Required value: one of datasetName and datasetUUID is required"
                    .to_owned(),
            ],
        ),
        (
            "storageos",
            json!({"secretRef": {}}),
            ["volumeName", "secretRef.name", "secretRef.namespace"]
                .map(|field| format!("spec.storageos.{field}: Required value"))
                .into(),
        ),
        (
            "quobyte",
            json!({"registry": "abc,a:1,a:b:c,[::1]:2", "volume": "v"}),
            vec![
                format!("spec.quobyte.registry: Invalid value: \"abc,a:1,a:b:c,[::1]:2\": {PAIRS}");
                2
            ],
        ),
        (
            "quobyte",
            json!({"volume": "v"}),
            vec![format!("spec.quobyte.registry: Required value: {PAIRS}")],
        ),
        (
            "glusterfs",
            json!({"endpoints": "e", "path": "p", "endpointsNamespace": ""}),
            vec![
                "spec.glusterfs.endpointsNamespace: Invalid value: \"\": if the \
                  endpointnamespace is set, it must be a valid namespace name"
                    .to_owned(),
            ],
        ),
        (
            "cinder",
            json!({"volumeID": "v", "secretRef": {}}),
            ["name", "namespace"]
                .map(|field| format!("spec.cinder.secretRef.{field}: Required value"))
                .into(),
        ),
    ];
    for (source, value, expected) in cases {
        assert_eq!(complaints(source, value.clone()), expected, "{source} {value}");
    }
}

#[test]
fn disks_and_drivers_are_checked() {
    let cases: [(_, _, &[&str]); 4] = [
        (
            "flexVolume",
            json!({"driver": "d", "options": {"kubernetes.io/foo": "a"}}),
            &["spec.flexVolume.options[kubernetes.io/foo]: Invalid value: \"kubernetes.io/foo\": \
               kubernetes.io and k8s.io namespaces are reserved"],
        ),
        (
            "azureDisk",
            json!({"diskName": "d", "diskURI": "blob", "kind": "Managed"}),
            &["spec.azureDisk.diskURI: Unsupported value: \"blob\": supported values: \
               \"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/\
               disks/{disk-id}\""],
        ),
        (
            "gcePersistentDisk",
            json!({"pdName": "d", "partition": 300}),
            &["spec.persistentDisk.partition: Invalid value: 300: must be between 1 and 255, \
               inclusive"],
        ),
        (
            "csi",
            json!({"driver": "a.b", "controllerPublishSecretRef": {"namespace": "n"}}),
            &[
                "spec.csi.volumeHandle: Required value",
                "spec.csi.controllerPublishSecretRef.name: Required value",
            ],
        ),
    ];
    for (source, value, expected) in cases {
        assert_eq!(complaints(source, value), expected, "{source}");
    }
}

#[test]
fn the_ends_of_iscsi_have_names_of_known_forms() {
    let portal = "p".repeat(63);
    let given = json!({"targetPortal": portal, "iqn": "iqnfoo", "initiatorName": "zzz"});
    let long = format!(
        "spec.iscsi.targetportal: Invalid value: \"{portal}\": Total length of <volume \
         name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is \
         specified."
    );
    let expected = [
        long.as_str(),
        "spec.iscsi.iqn: Invalid value: \"iqnfoo\": must be valid format",
        "spec.iscsi.initiatorname: Invalid value: \"zzz\": must be valid format",
    ];
    assert_eq!(complaints("iscsi", given), expected);
    let sound = json!({"targetPortal": "p", "iqn": "iqn.2015-02.example.com:test"});
    assert_eq!(complaints("iscsi", sound), Vec::<String>::new());
}

#[test]
fn a_path_is_the_root_however_it_is_written() {
    for (path, root) in
        [("/", true), ("//", true), ("/a/..", true), ("/a", false), ("", false), (".", false)]
    {
        assert_eq!(super::is_root(path), root, "{path}");
    }
}

#[test]
fn a_changed_source_is_shown() {
    let old = volume("hostPath", json!({"path": "/a"}));
    let new = volume("hostPath", json!({"path": "/b"}));
    let errors = RULES.validate_update(&old, &new);
    assert_eq!(errors.len(), 1);
    let shown = errors[0].message();
    assert!(shown.contains("is immutable after creation\n@@ "), "{shown}");
    assert!(shown.contains("\n-  \"Path\": \"/a\",\n+  \"Path\": \"/b\",\n"), "{shown}");
}

#[test]
fn what_was_stored_without_defaults_is_the_same_source() {
    let mut old = volume("iscsi", json!({"targetPortal": "p", "iqn": "eui.0123456789abcdef"}));
    let new = old.clone();
    old["spec"]["iscsi"].as_object_mut().unwrap().remove("iscsiInterface");
    assert_eq!(RULES.validate_update(&old, &new).len(), 0);
}

#[test]
fn labels_of_nodes_may_change_to_their_newer_names() {
    let of = |key: &str| {
        let mut volume = volume("hostPath", json!({"path": "/a"}));
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": key, "operator": "In", "values": ["z"]}]},
        ]}});
        volume
    };
    let old = of("failure-domain.beta.kubernetes.io/zone");
    assert_eq!(RULES.validate_update(&old, &of("topology.kubernetes.io/zone")).len(), 0);
    let errors = RULES.validate_update(&old, &of("topology.kubernetes.io/region"));
    let shown = errors[0].message();
    assert!(shown.starts_with("nodeAffinity: Invalid value: "), "{shown}");
    let why = "field is immutable, except for updating from beta label to GA";
    assert!(shown.ends_with(why), "{shown}");
}

#[test]
fn options_of_mounts_in_an_annotation_are_for_some_sources() {
    let with_options = |source: &str, value: Value| {
        let mut volume = volume(source, value);
        volume["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/mount-options": ""});
        volume
    };
    let path = with_options("hostPath", json!({"path": "/a"}));
    let expected = "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not \
                    specify mount options for this volume type";
    assert_eq!(RULES.validate_create(&path)[0].message(), expected);
    assert_eq!(RULES.validate_update(&path, &path)[0].message(), expected);
    assert_eq!(RULES.validate_existing(&path).len(), 0);
    let nfs = with_options("nfs", json!({"server": "s", "path": "/a"}));
    assert_eq!(RULES.validate_create(&nfs).len(), 0);
}

#[test]
fn what_is_of_old_is_warned_of() {
    let mut volume = volume("storageos", json!({"volumeName": "v"}));
    volume["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/mount-options": "ro"});
    volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Recycle");
    volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]},
    ]}});
    assert_eq!(
        RULES.warnings(&volume, None),
        [
            "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since \
             v1.31; use \"mountOptions\" attribute instead",
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning.",
            "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: \
             beta.kubernetes.io/os is deprecated since v1.14; use \"kubernetes.io/os\" instead",
            "spec.storageOS: deprecated in v1.22, non-functional in v1.25+",
        ]
    );
}
