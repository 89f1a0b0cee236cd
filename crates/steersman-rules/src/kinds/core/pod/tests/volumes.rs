//! Mistakes in volumes.

use serde_json::json;

use super::{check, complaints};

const BAD_MOUNT: &str = "spec.containers[0].volumeMounts[0].name: Not found: \"v\"";

/// A volume that is not valid cannot be mounted either.
fn check_source(cases: &[(serde_json::Value, &[&str])]) {
    for (source, expected) in cases {
        let mut volume = source.clone();
        volume["name"] = json!("v");
        let mut all = expected.to_vec();
        if !expected.is_empty() {
            all.push(BAD_MOUNT);
        }
        check(&[("volumes/0", volume, &all)]);
    }
}

#[test]
fn names_are_there_and_unique() {
    check(&[
        ("volumes/1", json!({"emptyDir": {}}), &["spec.volumes[1].name: Required value"]),
        (
            "volumes/1",
            json!({"name": "v", "emptyDir": {}}),
            &["spec.volumes[1].name: Duplicate value: \"v\""],
        ),
        (
            "volumes/1",
            json!({"name": "w", "emptyDir": {}, "secret": {"secretName": "s"}}),
            &["spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            "volumes/1",
            json!({"name": "w", "emptyDir": {}, "cephfs": {}, "downwardAPI": {}}),
            &[
                "spec.volumes[1].cephFS: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[1].downwarAPI: Forbidden: may not specify more than 1 volume type",
            ],
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn sources_require_what_they_need() {
    check_source(&[
        (json!({"hostPath": {"path": ""}}), &["spec.volumes[0].hostPath.path: Required value"]),
        (
            json!({"hostPath": {"path": "/a/../b"}}),
            &["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
        ),
        (
            json!({"hostPath": {"path": "/a", "type": "Pipe"}}),
            &["spec.volumes[0].hostPath.type: Unsupported value: \"Pipe\": supported values: \
               \"\", \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \
               \"File\", \"FileOrCreate\", \"Socket\""],
        ),
        (
            json!({"emptyDir": {"sizeLimit": "-1"}}),
            &["spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid \
               resource quantity"],
        ),
        (
            json!({"gcePersistentDisk": {"pdName": ""}}),
            &["spec.volumes[0].persistentDisk.pdName: Required value"],
        ),
        (
            json!({"awsElasticBlockStore": {"volumeID": "x", "partition": 256}}),
            &["spec.volumes[0].awsElasticBlockStore.partition: Invalid value: 256: must be \
               between 1 and 255, inclusive"],
        ),
        (
            json!({"secret": {"secretName": "", "defaultMode": 512}}),
            &[
                "spec.volumes[0].secret.secretName: Required value",
                "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 \
               and 0777 (octal), both inclusive",
            ],
        ),
        (
            json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "/abs"}]}}),
            &["spec.volumes[0].configMap.items[0].path: Invalid value: \"/abs\": must be a \
               relative path"],
        ),
        (
            json!({"configMap": {"name": "c", "items": [{"key": "", "path": "..data"}]}}),
            &[
                "spec.volumes[0].configMap.items[0].key: Required value",
                "spec.volumes[0].configMap.items[0].path: Invalid value: \"..data\": must not start \
               with '..'",
            ],
        ),
        (
            json!({"nfs": {"server": "s", "path": "rel"}}),
            &["spec.volumes[0].nfs.path: Invalid value: \"rel\": must be an absolute path"],
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": ""}}),
            &["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
        ),
        (json!({"cephfs": {}}), &["spec.volumes[0].cephfs.monitors: Required value"]),
        (
            json!({"csi": {"driver": "", "nodePublishSecretRef": {}}}),
            &[
                "spec.volumes[0].csi.driver: Required value",
                "spec.volumes[0].csi.nodePublishSecretRef.name: Required value",
            ],
        ),
        (
            json!({"ephemeral": {}}),
            &["spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"],
        ),
        (
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
            &[
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at \
               least 1 access mode is required",
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required \
               value",
            ],
        ),
        (json!({"image": {}}), &["spec.volumes[0].image.reference: Required value"]),
    ]);
}

#[test]
fn devices_and_their_networks() {
    check_source(&[
        (
            json!({"iscsi": {"targetPortal": "p", "iqn": "x", "lun": 256}}),
            &[
                "spec.volumes[0].iscsi.iqn: Invalid value: \"x\": must be valid format starting \
               with iqn, eui, or naa",
                "spec.volumes[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, \
               inclusive",
            ],
        ),
        (json!({"iscsi": {"targetPortal": "p", "iqn": "iqn.2015-02.example.com:test"}}), &[]),
        (
            json!({"fc": {"targetWWNs": ["a"]}}),
            &["spec.volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified"],
        ),
        (
            json!({"flocker": {"datasetName": "a/b"}}),
            &["spec.volumes[0].flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"],
        ),
        (
            json!({"flexVolume": {"driver": "d", "options": {"kubernetes.io/x": "y"}}}),
            &["spec.volumes[0].flexVolume.options[kubernetes.io/x]: Invalid value: \
               \"kubernetes.io/x\": kubernetes.io and k8s.io namespaces are reserved"],
        ),
        (
            json!({"quobyte": {"registry": "r", "volume": "v"}}),
            &["spec.volumes[0].quobyte.registry: Invalid value: \"r\": must be a host:port pair \
               or multiple pairs separated by commas"],
        ),
        (
            json!({"azureDisk": {"diskName": "d", "diskURI": "x", "kind": "Managed"}}),
            &["spec.volumes[0].azureDisk.diskURI: Unsupported value: \"x\": supported values: \
               \"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
               microsoft.compute/disks/{disk-id}\""],
        ),
    ]);
}

#[test]
fn projected_files() {
    check_source(&[
        (
            json!({"downwardAPI": {"items": [{"path": "x"}]}}),
            &["spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef \
               is required"],
        ),
        (
            json!({"downwardAPI": {"items": [
                {"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}},
            ]}}),
            &["spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value"],
        ),
        (
            json!({"projected": {"sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 1}},
            ]}}),
            &["spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: \
               Invalid value: 1: may not specify a duration less than 10 minutes"],
        ),
        (
            json!({"projected": {"sources": [
                {"secret": {"name": "s", "items": [{"key": "a", "path": "p"}]}},
                {"configMap": {"name": "c", "items": [{"key": "a", "path": "p"}]}},
            ]}}),
            &["spec.volumes[0].projected: Invalid value: \"c\": conflicting duplicate paths"],
        ),
        (
            json!({"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}),
            &["spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 \
               volume type per source"],
        ),
        (
            json!({"projected": {"sources": [{"clusterTrustBundle": {"path": "p"}}]}}),
            &["spec.volumes[0].projected.sources[0].clusterTrustBundle: Required value: either \
               name or signerName must be specified"],
        ),
        (
            json!({"projected": {"sources": [
                {"podCertificate": {"signerName": "a.b/c", "keyType": "DSA"}},
            ]}}),
            &[
                "spec.volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: \
               \"DSA\": supported values: \"RSA3072\", \"RSA4096\", \"ECDSAP256\", \"ECDSAP384\", \
               \"ECDSAP521\", \"ED25519\"",
                "spec.volumes[0].projected.sources[0].podCertificate: Required value: specify at \
               least one of credentialBundlePath, keyPath, and certificateChainPath",
            ],
        ),
    ]);
}

#[test]
fn what_is_made_from_a_template_can_have_its_annotations() {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}},
    });
    let template = json!({"metadata": {"annotations": {"A b": ""}}, "spec": spec});
    let volume = json!({"name": "v", "ephemeral": {"volumeClaimTemplate": template}});
    let told = complaints("volumes/0", &volume);
    let place = "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations: Invalid \
                 value: \"A b\": name part must consist of alphanumeric characters";
    assert!(told[0].starts_with(place), "{told:?}");
}

#[test]
fn a_template_says_nothing_else_of_the_metadata_of_what_is_made() {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}},
    });
    let metadata = json!({"finalizers": ["a/b"], "name": "n", "uid": "u", "labels": {"a": "b"}});
    let template = json!({"metadata": metadata, "spec": spec});
    let volume = json!({"name": "w", "ephemeral": {"volumeClaimTemplate": template}});
    let at = "spec.volumes[1].ephemeral.volumeClaimTemplate.metadata";
    assert_eq!(
        complaints("volumes/1", &volume),
        ["name", "uID", "finalizers"]
            .map(|field| format!("{at}.{field}: Forbidden: cannot be set"))
    );
}
