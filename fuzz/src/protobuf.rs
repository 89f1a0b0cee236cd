//! Bodies as protobuf.

use steersman_rules::protobuf::{decode, encode};

/// The kinds of which an input can be a message.
const KINDS: &[(&str, &str)] = &[
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "Node"),
    ("v1", "Event"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "CronJob"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("networking.k8s.io/v1", "Ingress"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("meta.k8s.io/v1", "DeleteOptions"),
    ("v1", "DeleteOptions"),
];

/// A whole body, or a byte that chooses a kind and a message of it.
pub(crate) fn run(bytes: &[u8]) {
    read(bytes);
    let Some((first, message)) = bytes.split_first() else { return };
    let (api_version, kind) = KINDS[usize::from(*first) % KINDS.len()];
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    read(&[b"k8s\0".to_vec(), field(1, &types), field(2, message)].concat());
}

fn read(body: &[u8]) {
    let Ok(document) = decode(body) else { return };
    let written = encode(&document).expect("what was read can be written");
    let again = decode(&written).expect("what was written can be read");
    assert_eq!(again, document, "what is written is read as it was");
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}
