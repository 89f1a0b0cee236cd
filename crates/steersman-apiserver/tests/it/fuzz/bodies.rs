//! Bodies: JSON, YAML and protobuf, and whole requests.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};
use steersman_rules::body::{json as json_body, yaml};
use steersman_rules::protobuf;
use steersman_rules::schema::Schema;

use super::{FIELDS, json, object, run, text};
use crate::api::{Api, pod};

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"a\"",
    "\"spec\"",
    "\"metadata\"",
    "1",
    "-0",
    "1e400",
    "1.5",
    "null",
    "true",
    "\\u0000",
    "\"",
    "99999999999999999999",
];
const YAML: &[&str] = &[
    "a", "b", ":", ": ", "\n", "  ", "- ", "&a ", "*a", "[", "]", "{", "}", ",", "|", ">", "'",
    "\"", "#", "---\n", "!!str ", "? ", "<<: *a", ".nan", "0x1", "~",
];

#[test]
fn any_bytes_are_json_or_not() {
    let schema = Schema::builtin("apps", "v1", "Deployment").unwrap();
    let bytes = prop_oneof![vec(any::<u8>(), 0..200), text(JSON).prop_map(String::into_bytes)];
    run(bytes, |bytes| {
        let _ = json_body::read(&bytes, &schema);
        let _ = (json_body::plain(&bytes), json_body::operations(&bytes));
        let _ = yaml::read(&bytes);
    });
}

#[test]
fn any_text_is_yaml_or_not() {
    run(text(YAML), |body| {
        let _ = yaml::read(body.as_bytes());
        let _ = yaml::repeated(body.as_bytes());
    });
}

#[test]
fn a_document_reads_back_from_json_and_from_yaml() {
    let schema = Schema::untyped();
    run(json(FIELDS), |value| {
        let body = value.to_string();
        let (read, found) = json_body::read(body.as_bytes(), &schema).unwrap();
        assert_eq!((&read, found.len()), (&value, 0));
        assert!(yaml::repeated(body.as_bytes()).is_empty(), "{body}");
    });
}

#[test]
fn reading_with_a_schema_leaves_what_pruning_leaves() {
    let schema = Schema::builtin("apps", "v1", "Deployment").unwrap();
    run(object(FIELDS), |value| {
        let (read, found) = json_body::read(value.to_string().as_bytes(), &schema).unwrap();
        let mut pruned = value.clone();
        schema.prune(&mut pruned);
        assert_eq!(read, pruned);
        assert_eq!(found.len(), schema.unknown_fields(&value).len().min(100));
        assert!(schema.unknown_fields(&read).is_empty());
        let _ = schema.type_errors(&read);
    });
}

#[test]
fn any_bytes_are_protobuf_or_not() {
    const PIECES: &[&[u8]] = &[
        b"\x0a\x02v1",
        b"\x12\x03Pod",
        b"\x12\x09ConfigMap",
        b"\x0a\x05\x0a\x03\x0a\x01a",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0b\x0c",
    ];
    let piece = prop_oneof![vec(any::<u8>(), 0..12), select(PIECES).prop_map(<[u8]>::to_vec)];
    run(vec(piece, 0..12), |pieces| {
        let mut body = b"k8s\0".to_vec();
        body.extend(pieces.concat());
        let _ = protobuf::decode(&body);
        let mut typed = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12".to_vec();
        let raw = pieces.concat();
        typed.push(u8::try_from(raw.len() & 0x7f).unwrap());
        typed.extend(raw);
        let _ = protobuf::decode(&typed);
    });
}

/// A request as a client that means no good sends it.
#[derive(Clone, Debug)]
struct Attack {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
}

fn attack() -> impl Strategy<Value = Attack> {
    let method =
        select(vec![Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE]);
    let path = select(
        &[
            "/api/v1/namespaces/default/configmaps",
            "/api/v1/namespaces/default/configmaps/a",
            "/apis/apps/v1/namespaces/default/deployments",
            "/apis/apps/v1/namespaces/default/deployments/a",
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
            "/api/v1/namespaces/default/pods",
            "/api/v1/namespaces/default/pods/a/binding",
            "/api/v1/namespaces/default/pods/a/eviction",
            "/api/v1/namespaces/default/services",
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/batch/v1/namespaces/default/jobs",
        ][..],
    );
    let query = select(
        &[
            "",
            "?limit=-1",
            "?dryRun=All",
            "?fieldValidation=Strict",
            "?force=true",
            "?fieldManager=x&force=true",
            "?labelSelector=a",
            "?timeout=1s",
        ][..],
    );
    let content_type = select(
        &[
            "application/json",
            "application/yaml",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/json-patch+json",
            "application/apply-patch+yaml",
            "application/vnd.kubernetes.protobuf",
            "text/plain",
        ][..],
    );
    let body = prop_oneof![
        object(FIELDS).prop_map(|value| with_name(value).to_string().into_bytes()),
        json(FIELDS).prop_map(|value| value.to_string().into_bytes()),
        text(JSON).prop_map(String::into_bytes),
        vec(any::<u8>(), 0..64),
    ];
    (method, path, query, content_type, body).prop_map(
        |(method, path, query, content_type, body)| Attack {
            method,
            path: format!("{path}{query}"),
            content_type,
            body,
        },
    )
}

fn with_name(mut value: Value) -> Value {
    if value["metadata"].is_object() {
        value["metadata"]["name"] = "a".into();
    }
    value
}

#[test]
fn no_request_makes_the_server_fail() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let api = runtime.block_on(Api::start());
    run(vec(attack(), 1..6), |attacks| {
        for attack in attacks {
            let request = Request::builder()
                .method(attack.method.clone())
                .uri(&attack.path)
                .header(header::CONTENT_TYPE, attack.content_type)
                .body(Full::new(Bytes::from(attack.body.clone())))
                .unwrap();
            let answer = runtime.block_on(api.send(request));
            assert!(answer.code < 500, "{attack:?}: {}", String::from_utf8_lossy(&answer.bytes));
            if answer.code >= 400 {
                answer.refused(answer.code);
            }
        }
    });
}

#[test]
fn any_quantity_is_read_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let api = runtime.block_on(Api::start());
    const PARTS: &[&str] = &[
        "0",
        "1",
        "9",
        "99999999999",
        ".",
        "-",
        "+",
        "e",
        "E",
        "m",
        "Ki",
        "Mi",
        "Ei",
        "n",
        "u",
        "k",
        "P",
    ];
    run(text(PARTS), |quantity| {
        let mut object = pod("q");
        object["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": quantity}, "limits": {"cpu": quantity}});
        let path = "/api/v1/namespaces/default/pods?dryRun=All";
        let answer = runtime.block_on(api.post(path, &object));
        assert!(matches!(answer.code, 201 | 400 | 422), "{quantity:?} {}", answer.code);
    });
}
