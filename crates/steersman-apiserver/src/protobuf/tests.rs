use proptest::prelude::{any, proptest};
use serde_json::json;

use super::{MAGIC, decode};

/// A length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80);
    [&[number << 3 | 2, length], content].concat()
}

fn varint(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &type_meta), field(2, object)].concat()
}

#[test]
fn a_deployment_reads_as_its_json() {
    let metadata = [
        field(1, b"web"),
        field(3, b""),
        field(8, b""),
        field(11, &[field(1, b"a"), field(2, b"b")].concat()),
    ]
    .concat();
    let selector = field(1, &[field(1, b"app"), field(2, b"web")].concat());
    let strategy = field(2, &field(1, &[varint(1, 1), field(3, b"25%")].concat()));
    let spec = [varint(1, 0), field(2, &selector), field(4, &strategy), varint(5, 0)].concat();
    let object = [field(1, &metadata), field(2, &spec), field(3, b"")].concat();
    let document = decode(&body("apps/v1", "Deployment", &object)).unwrap().unwrap();
    assert_eq!(
        document,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"a": "b"}},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"rollingUpdate": {"maxUnavailable": "25%"}},
            },
            "status": {},
        })
    );
}

#[test]
fn the_source_of_a_volume_stands_in_the_volume() {
    let volume = [field(1, b"v"), field(2, &field(2, &field(1, b"")))].concat();
    let object = field(2, &field(1, &volume));
    let document = decode(&body("v1", "Pod", &object)).unwrap().unwrap();
    assert_eq!(document["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
}

#[test]
fn secrets_are_base64_and_times_are_text() {
    let times = field(8, &varint(1, 10));
    let data = [field(1, b"k"), field(2, b"\xff")].concat();
    let object = [field(1, &times), field(2, &data)].concat();
    let document = decode(&body("v1", "Secret", &object)).unwrap().unwrap();
    assert_eq!(document["data"], json!({"k": "/w=="}));
    assert_eq!(document["metadata"]["creationTimestamp"], "1970-01-01T00:00:10Z");
}

#[test]
fn options_are_known_in_every_group_and_custom_kinds_in_none() {
    let options = decode(&body("policy/v1", "DeleteOptions", &varint(1, 5))).unwrap().unwrap();
    assert_eq!(options["gracePeriodSeconds"], 5);
    assert_eq!(decode(&body("example.com/v1", "Widget", b"")).unwrap(), None);
}

#[test]
fn what_breaks_off_or_lies_is_a_bad_request() {
    let good = body("v1", "Pod", &field(1, &field(1, b"name")));
    for end in 0..good.len() {
        if let Err(status) = decode(&good[..end]) {
            assert_eq!(status.code, 400);
        }
    }
    for bad in
        [&b""[..], b"json", b"k8s\0\x0b", b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
    {
        assert_eq!(decode(bad).unwrap_err().code, 400, "{bad:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, kind in "(Pod|Secret|Deployment)", cut in any::<u8>()) {
        let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        let object: Vec<u8> = bytes.into_iter().take(100).collect();
        let body = body(api_version, &kind, &object);
        let _ = decode(&body);
        let _ = decode(&body[..body.len().min(usize::from(cut))]);
    }
}
