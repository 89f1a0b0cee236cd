//! Bodies as Go's encoder writes them: scalars that are not pointers are there even when zero.

use proptest::prelude::{any, prop, proptest};
use serde_json::{Value, json};

use super::super::{MAGIC, MAX_DEPTH, ProtobufError, decode};

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A number or a truth.
fn int(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value.cast_unsigned())].concat()
}

/// A text, bytes or a message that is built already.
fn bytes(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn message(number: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(number, fields.concat())
}

fn entry(number: u64, key: &str, value: &str) -> Vec<u8> {
    message(number, &[bytes(1, key), bytes(2, value)])
}

fn body(api_version: &str, kind: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let type_meta = message(1, &[bytes(1, api_version), bytes(2, kind)]);
    [MAGIC.to_vec(), type_meta, message(2, fields), bytes(3, ""), bytes(4, "")].concat()
}

fn metadata(name: &str) -> Vec<u8> {
    let empty = [2, 3, 4, 5, 6].map(|number| bytes(number, ""));
    let label = entry(11, "app", "web");
    message(
        1,
        &[vec![bytes(1, name)], empty.to_vec(), vec![int(7, 0), bytes(8, ""), label]].concat(),
    )
}

fn port(number: u64, port: i64) -> Vec<u8> {
    message(number, &[int(1, 0), int(2, port), bytes(3, "")])
}

fn container() -> Vec<u8> {
    let http_get = message(2, &[bytes(1, "/"), port(2, 80), bytes(3, ""), bytes(4, "")]);
    let zeros: Vec<_> = (2..=6).map(|number| int(number, 0)).collect();
    let probe = message(10, &[vec![message(1, &[http_get])], zeros].concat());
    let cpu = message(2, &[bytes(1, "cpu"), message(2, &[bytes(1, "500m")])]);
    let texts = [5, 13, 14, 20].map(|number| bytes(number, ""));
    let flags = [16, 17, 18].map(|number| int(number, 0));
    let set = [bytes(1, "web"), bytes(2, "nginx"), message(8, &[cpu]), probe];
    message(2, &[set.to_vec(), texts.to_vec(), flags.to_vec()].concat())
}

fn pod_spec() -> Vec<u8> {
    let volume = message(1, &[bytes(1, "tmp"), message(2, &[message(2, &[bytes(1, "")])])]);
    let texts = [3, 6, 8, 9, 10, 16, 17, 19, 24].map(|number| bytes(number, ""));
    let flags = [11, 12, 13].map(|number| int(number, 0));
    let set = [volume, container(), bytes(14, "")];
    message(2, &[set.to_vec(), texts.to_vec(), flags.to_vec()].concat())
}

fn deployment() -> Vec<u8> {
    let selector = message(2, &[entry(1, "app", "web")]);
    let template = message(3, &[metadata(""), pod_spec()]);
    let strategy = message(4, &[bytes(1, "")]);
    let spec = [int(1, 0), selector, template, strategy, int(5, 0), int(7, 0)];
    let status = message(3, &[int(1, 0), int(2, 0), int(3, 0), int(4, 0), int(5, 0)]);
    body("apps/v1", "Deployment", &[metadata("web"), message(2, &spec), status])
}

#[test]
fn a_deployment_is_the_document_that_json_would_have_given() {
    let container = json!({
        "name": "web", "image": "nginx",
        "resources": {"requests": {"cpu": "500m"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    });
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [container],
                    "securityContext": {},
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
        "status": {},
    });
    assert_eq!(decode(&deployment()).unwrap(), expected);
}

#[test]
fn a_port_with_a_name_is_text_and_a_target_port_of_zero_is_not_set() {
    let named = message(4, &[int(1, 1), int(2, 0), bytes(3, "http")]);
    let ports = [message(1, &[int(3, 80), named]), message(1, &[int(3, 81), port(4, 0)])];
    let service = decode(&body("v1", "Service", &[message(2, &ports)])).unwrap();
    assert_eq!(service["spec"]["ports"], json!([{"port": 80, "targetPort": "http"}, {"port": 81}]));
}

#[test]
fn secrets_are_base64_and_an_immutable_false_is_kept() {
    let data = [message(2, &[bytes(1, "k"), bytes(2, b"\xff")]), entry(2, "empty", "")];
    let secret = decode(&body("v1", "Secret", &[data.concat(), bytes(3, "Opaque"), int(5, 0)]));
    assert_eq!(
        secret.unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "data": {"k": "/w==", "empty": ""}, "immutable": false,
        })
    );
}

#[test]
fn options_of_deletions_are_known_in_every_group() {
    let preconditions = message(2, &[bytes(1, "u-1")]);
    let fields = [int(1, 0), preconditions, bytes(4, "Foreground"), bytes(5, "All")];
    for group in ["v1", "apps/v1", "meta.k8s.io/v1", "example.com/v1"] {
        assert_eq!(
            decode(&body(group, "DeleteOptions", &fields)).unwrap(),
            json!({
                "apiVersion": group, "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u-1"}, "propagationPolicy": "Foreground",
                "dryRun": ["All"],
            })
        );
    }
}

#[test]
fn times_are_text_and_only_an_empty_one_is_not_set() {
    let second = message(1, &[message(8, &[int(1, 0), int(2, 0)])]);
    let pod = decode(&body("v1", "Pod", &[second])).unwrap();
    assert_eq!(pod["metadata"], json!({"creationTimestamp": "1970-01-01T00:00:00Z"}));
    let micro = message(2, &[message(4, &[int(1, 10), int(2, 1_500_000)]), bytes(3, "")]);
    let lease = decode(&body("coordination.k8s.io/v1", "Lease", &[micro])).unwrap();
    assert_eq!(lease["spec"], json!({"renewTime": "1970-01-01T00:00:10.001500Z"}));
    let never = message(1, &[message(8, &[int(1, i64::MAX)])]);
    assert!(decode(&body("v1", "Pod", &[never])).is_err());
}

#[test]
fn lists_of_numbers_may_be_packed_and_numbers_negative() {
    let groups = |list: Vec<u8>| {
        let pod = body("v1", "Pod", &[message(2, &[message(14, &[list])])]);
        decode(&pod).unwrap()["spec"]["securityContext"]["supplementalGroups"].clone()
    };
    assert_eq!(groups([int(4, 1), int(4, -2)].concat()), json!([1, -2]));
    assert_eq!(groups(message(4, &[varint(1), varint(300)])), json!([1, 300]));
    let class = decode(&body("scheduling.k8s.io/v1", "PriorityClass", &[int(2, -5)])).unwrap();
    assert_eq!(class["value"], -5);
}

/// A CustomResourceDefinition with one version of this schema.
fn definition(schema: &[Vec<u8>]) -> Result<Value, ProtobufError> {
    let version = message(7, &[message(4, &[message(1, schema)])]);
    let body =
        body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &[message(2, &[version])]);
    Ok(decode(&body)?["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take())
}

#[test]
fn schemas_hold_json_and_what_may_be_a_schema_or_something_else() {
    let object = [bytes(5, "object")];
    let double =
        |number: u64, value: f64| [varint(number << 3 | 1), value.to_le_bytes().to_vec()].concat();
    let schema = definition(&[
        message(8, &[bytes(1, br#"{"a":[1]}"#)]),
        double(9, 5.0),
        double(11, 0.5),
        message(20, &[bytes(1, "null")]),
        message(24, &[message(1, &object)]),
        message(30, &[int(1, 0)]),
        message(33, &[int(1, 0), message(2, &object)]),
        message(32, &[bytes(1, "d"), message(2, &[bytes(2, "x"), bytes(2, "y")])]),
    ]);
    assert_eq!(
        schema.unwrap(),
        json!({
            "default": {"a": [1]}, "maximum": 5, "minimum": 0.5, "enum": [null],
            "items": {"type": "object"}, "additionalProperties": false,
            "additionalItems": {"type": "object"}, "dependencies": {"d": ["x", "y"]},
        })
    );
}

#[test]
fn nesting_without_end_is_refused() {
    let nested = |levels| (0..levels).fold(Vec::new(), |inner, _| message(28, &[inner]));
    assert!(definition(&[nested(MAX_DEPTH - 10)]).is_ok());
    assert_eq!(definition(&[nested(MAX_DEPTH)]), Err(ProtobufError::Depth));
    assert_eq!(definition(&[nested(10_000)]), Err(ProtobufError::Depth));
}

#[test]
fn fields_that_are_not_known_are_skipped_and_wrong_ones_named() {
    let pod = decode(&body("v1", "Pod", &[metadata("a"), int(900, 1), bytes(901, "x")])).unwrap();
    assert_eq!(pod["metadata"]["name"], "a");
    let wrong = decode(&body("v1", "Pod", &[int(1, 1)])).unwrap_err();
    let text = "field \"metadata\" of the protobuf message is not a sequence of bytes";
    assert_eq!(wrong.to_string(), text);
    let name = decode(&body("v1", "Pod", &[message(1, &[bytes(1, b"\xff")])])).unwrap_err();
    assert_eq!(name, ProtobufError::Invalid { field: "name", expected: "valid UTF-8" });
}

#[test]
fn a_body_of_another_kind_or_encoding_is_refused() {
    let unknown = ProtobufError::UnknownKind {
        api_version: "example.com/v1".to_owned(),
        kind: "Widget".to_owned(),
    };
    assert_eq!(decode(&body("example.com/v1", "Widget", &[])), Err(unknown));
    assert_eq!(decode(b"{}"), Err(ProtobufError::Prefix));
    assert!(matches!(decode(MAGIC), Err(ProtobufError::UnknownKind { .. })));
    let zipped = [body("v1", "Pod", &[]), bytes(3, "gzip")].concat();
    assert_eq!(decode(&zipped), Err(ProtobufError::ContentEncoding("gzip".to_owned())));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(junk: Vec<u8>, kind in "(Pod|Secret|Event|DeleteOptions)") {
        let _ = decode(&junk);
        let _ = decode(&body("v1", &kind, std::slice::from_ref(&junk)));
        let _ = decode(&body("v1", &kind, &[bytes(1, &junk), bytes(2, &junk)]));
        let _ = definition(&[junk]);
    }

    #[test]
    fn no_broken_deployment_makes_it_panic(cut: prop::sample::Index, at: prop::sample::Index, byte in any::<u8>()) {
        let mut body = deployment();
        let _ = decode(&body[..cut.index(body.len())]);
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body);
    }
}
