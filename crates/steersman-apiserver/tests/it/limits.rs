//! Small requests that come to much: what they would make is bounded, the answer is Kubernetes', and
//! nothing is stored.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Answer, Api, CONFIG_MAPS, config_map, names, pod};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};
use crate::webhooks::{
    MUTATING, configure, json_handler, message, patched, serve_here, warnings, webhook_with,
};

const TOO_LARGE: &str = "etcdserver: request is too large";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn send(api: &Api, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, kind);
    api.send(request.body(Full::new(body.into())).unwrap()).await
}

/// A schema of a few kilobytes whose defaults make gigabytes: lists of lists of lists.
fn amplifying(levels: usize) -> Value {
    let inner = json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}});
    (0..levels).fold(inner, |below, _| {
        let many = vec![json!({}); 100];
        json!({"type": "object", "properties": {
            "a": {"type": "array", "items": below, "default": many},
        }})
    })
}

/// The definition of widgets with another field in their spec.
fn definition_with(field: &str, schema: &Value) -> Value {
    let mut definition = definition();
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        let properties = &mut version["schema"]["openAPIV3Schema"]["properties"];
        properties["spec"]["properties"][field] = schema.clone();
    }
    definition
}

#[tokio::test(start_paused = true)]
async fn defaults_cannot_make_more_of_an_object_than_can_be_stored() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition_with("deep", &amplifying(5))).await.ok();
    let mut bomb = widget("a", 1);
    bomb["spec"]["deep"] = json!({});
    assert_eq!(message(&api.post(WIDGETS, &bomb).await.refused(500)), TOO_LARGE);
    let dry = api.post(&format!("{WIDGETS}?dryRun=All"), &bomb).await;
    assert_eq!(message(&dry.refused(500)), TOO_LARGE);
    assert!(names(&api.get(WIDGETS).await.ok()).is_empty());

    let path = format!("{WIDGETS}/a");
    let created = api.post(WIDGETS, &widget("a", 1)).await.ok();
    let patch = json!({"spec": {"deep": {}}});
    assert_eq!(message(&api.merge(&path, &patch).await.refused(500)), TOO_LARGE);
    bomb["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    assert_eq!(message(&api.put(&path, &bomb).await.refused(500)), TOO_LARGE);
    bomb["metadata"] = json!({"name": "a"});
    let applied = api.patch(&format!("{path}?fieldManager=m&force=true"), APPLY, &bomb).await;
    assert_eq!(message(&applied.refused(500)), TOO_LARGE);
    assert_eq!(api.get(&path).await.ok(), created);
}

#[tokio::test(start_paused = true)]
async fn a_large_default_in_many_items_is_refused() {
    let api = Api::start().await;
    let large = "x".repeat(100_000);
    let item = json!({"type": "object", "properties": {"a": {"type": "string", "default": large}}});
    let list = json!({"type": "array", "items": item});
    api.post(DEFINITIONS, &definition_with("items", &list)).await.ok();
    let mut object = widget("a", 1);
    object["spec"]["items"] = vec![json!({}); 3].into();
    let created = api.post(WIDGETS, &object).await.ok();
    assert_eq!(created["spec"]["items"][2]["a"].as_str().unwrap().len(), 100_000);
    object["metadata"]["name"] = "b".into();
    object["spec"]["items"] = vec![json!({}); 40_000].into();
    assert_eq!(message(&api.post(WIDGETS, &object).await.refused(500)), TOO_LARGE);
}

#[tokio::test(start_paused = true)]
async fn items_that_the_server_would_fill_in_are_counted_before_it_does() {
    let api = Api::start().await;
    let mut object = pod("a");
    object["spec"]["containers"] = vec![json!({}); 200_000].into();
    assert_eq!(message(&api.post(PODS, &object).await.refused(500)), TOO_LARGE);
    object["spec"]["containers"] = vec![json!({}); 10].into();
    api.post(PODS, &object).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_newer_schema_would_make_too_large_is_read_as_it_is_stored() {
    let api = Api::start().await;
    let deep = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let created = api.post(DEFINITIONS, &definition_with("deep", &deep)).await.ok();
    let mut object = widget("a", 1);
    object["spec"]["deep"] = json!({});
    api.post(WIDGETS, &object).await.ok();
    let mut newer = definition_with("deep", &amplifying(5));
    newer["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    api.put(&format!("{DEFINITIONS}/widgets.example.com"), &newer).await.ok();
    let path = format!("{WIDGETS}/a");
    assert_eq!(api.get(&path).await.ok()["spec"]["deep"], json!({}));
    assert_eq!(api.get(WIDGETS).await.ok()["items"][0]["spec"]["deep"], json!({}));
    let mut events = api.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.next().await.unwrap()["object"]["spec"]["deep"], json!({}));
    api.delete(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn neither_copies_nor_webhooks_nor_conversions_make_an_object_too_large() {
    let api = Api::start().await;
    let rule = |name: String| json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [name]});
    let role = json!({"metadata": {"name": "a"}, "rules": [rule("x".repeat(500_000))]});
    let created = api.post(ROLES, &role).await.ok();
    let path = format!("{ROLES}/a");
    let copy = |_| json!({"op": "copy", "from": "/rules/0", "path": "/rules/-"});
    let kind = "application/json-patch+json";
    let some: Value = (0..4).map(copy).collect();
    assert_eq!(message(&api.patch(&path, kind, &some).await.refused(500)), TOO_LARGE);
    let many: Value = (0..5_000).map(copy).collect();
    api.patch(&path, kind, &many).await.refused(422);
    let more: Value = (0..10_001).map(copy).collect();
    let status = api.patch(&path, kind, &more).await.refused(413);
    let why = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(message(&status), why);
    assert_eq!(api.get(&path).await.ok(), created);

    let large = rule("x".repeat(2_000_000));
    serve_here(&api, move |_| patched(&json!([{"op": "add", "path": "/rules", "value": [large]}])));
    let of_roles = json!({"rules": [{
        "apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"], "resources": ["roles"],
        "operations": ["*"],
    }]});
    configure(&api, MUTATING, "a", &[webhook_with("large", &of_roles)]).await;
    let small = json!({"metadata": {"name": "b"}, "rules": []});
    let refused = api.post(ROLES, &small).await.refused(500);
    assert_eq!(message(&refused), TOO_LARGE);
}

#[tokio::test(start_paused = true)]
async fn what_a_conversion_makes_too_large_is_not_stored() {
    let api = Api::start().await;
    let mut converted = definition();
    converted["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://convert.test/convert"},
        },
    });
    api.post(DEFINITIONS, &converted).await.ok();
    let large = "x".repeat(2_000_000);
    let handler = json_handler(move |review| {
        let request = &review["request"];
        let mut object = request["objects"][0].clone();
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        object["spec"]["color"] = large.clone().into();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {
                "uid": request["uid"], "result": {"status": "Success"},
                "convertedObjects": [object],
            },
        })
    });
    api.server.serve_webhooks("https://convert.test", handler);
    let mut object = widget("a", 1);
    object["apiVersion"] = "example.com/v2".into();
    let second = "/apis/example.com/v2/namespaces/default/widgets";
    assert_eq!(message(&api.post(second, &object).await.refused(500)), TOO_LARGE);
    assert!(names(&api.get(WIDGETS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn patterns_that_cannot_be_compiled_or_are_too_many_are_refused_with_their_definition() {
    let api = Api::start().await;
    let broken = json!({"type": "string", "pattern": "a(b"});
    let status = api.post(DEFINITIONS, &definition_with("odd", &broken)).await.refused(422);
    let expected = "pattern: Invalid value: \"a(b\": must be a valid regular expression, but \
                    isn't: error parsing regexp: missing closing ): `a(b`";
    assert!(message(&status).contains(expected), "{}", message(&status));
    let field = |n: usize| {
        let pattern = format!("^{n}.{{1,900}}$");
        (format!("f{n}"), json!({"type": "string", "pattern": pattern}))
    };
    let many: serde_json::Map<String, Value> = (0..3_000).map(field).collect();
    let many = json!({"type": "object", "properties": many});
    let status = api.post(DEFINITIONS, &definition_with("many", &many)).await.refused(422);
    let expected = "Forbidden: contributed to patterns of the definition that take more than \
                    33554432 bytes when compiled";
    assert!(message(&status).contains(expected), "{}", message(&status));
    // Equal ones count once.
    let same = |n: usize| (format!("f{n}"), field(0).1);
    let many: serde_json::Map<String, Value> = (0..3_000).map(same).collect();
    let many = json!({"type": "object", "properties": many});
    api.post(DEFINITIONS, &definition_with("many", &many)).await.ok();
    let mut object = widget("a", 1);
    object["spec"]["many"] = json!({"f7": "0 and more", "f8": "1"});
    let status = api.post(WIDGETS, &object).await.refused(422);
    let expected = "spec.many.f8 in body should match '^0.{1,900}$'";
    assert!(message(&status).contains(expected), "{}", message(&status));
}

#[tokio::test(start_paused = true)]
async fn aliases_of_aliases_are_refused_in_the_words_of_go() {
    let api = Api::start().await;
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..6 {
        let below = vec![format!("*a{}", level - 1); 8].join(",");
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(bomb.len() < 600);
    let why = "yaml: document contains excessive aliasing";
    let body = bomb.into_bytes();
    let posted = send(&api, Method::POST, CONFIG_MAPS, "application/yaml", body.clone()).await;
    assert!(message(&posted.refused(400)).contains(why));
    let path = format!("{CONFIG_MAPS}/a?fieldManager=m");
    let applied = send(&api, Method::PATCH, &path, APPLY, body.clone()).await;
    let expected = format!("error decoding YAML: error converting YAML to JSON: {why}");
    assert_eq!(message(&applied.refused(400)), expected);
    let options = send(&api, Method::DELETE, CONFIG_MAPS, "application/yaml", body).await;
    assert!(message(&options.refused(400)).contains(why));
}

#[tokio::test(start_paused = true)]
async fn managers_that_are_too_many_are_not_taken_from_a_client() {
    let api = Api::start().await;
    let manager = |n: usize| {
        json!({
            "manager": format!("m{n}"), "operation": "Update", "apiVersion": "v1",
            "time": "2025-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:k{n}"): {}}},
        })
    };
    let mut object = config_map("a", &json!({"k": "v"}));
    object["metadata"]["managedFields"] = (0..10_000).map(manager).collect();
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    let managers = created["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "only whoever created it");
    // As many as anybody has are taken, and the oldest become one.
    object["metadata"]["name"] = "b".into();
    object["metadata"]["managedFields"] = (0..500).map(manager).collect();
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    let managers = created["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 10);
    let ancient = managers.iter().find(|m| m["manager"] == "ancient-changes").unwrap();
    assert_eq!(ancient["fieldsV1"]["f:data"].as_object().unwrap().len(), 492);
}

#[tokio::test(start_paused = true)]
async fn many_mistakes_and_warnings_are_told_in_part() {
    let api = Api::start().await;
    let mut object = pod("a");
    let same = |_| json!({"name": "SAME", "value": "x"});
    object["spec"]["containers"][0]["env"] = (0..3_000).map(same).collect();
    let answer = api.post(PODS, &object).await;
    answer.ok();
    let told = warnings(&answer);
    assert!(!told.is_empty() && told.len() < 100, "{}", told.len());
    let odd = |n: usize| json!({"name": format!("a={n}")});
    object["spec"]["containers"][0]["env"] = (0..3_000).map(odd).collect();
    let status = api.post(PODS, &object).await.refused(422);
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 1000);
    // Each of these shows all of them.
    let scopes: Vec<String> = (0..20_000).map(|n| format!("scope-{n}")).collect();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"scopes": scopes}});
    let answer = api.post("/api/v1/namespaces/default/resourcequotas", &quota).await;
    answer.refused(422);
    assert!(answer.bytes.len() < 8 << 20, "{}", answer.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_may_not_change_is_told_in_bounded_length() {
    let api = Api::start().await;
    let mut object = pod("a");
    let variable = |n: usize| json!({"name": format!("V{n}"), "value": format!("{}", n % 90)});
    object["spec"]["containers"][0]["env"] = (0..4_000).map(variable).collect();
    api.post(PODS, &object).await.ok();
    let env: Value = (3_000..7_000).map(variable).collect();
    let patch = json!({"spec": {"containers": [{"name": "web", "env": env}]}});
    let kind = "application/strategic-merge-patch+json";
    let answer = api.patch(&format!("{PODS}/a"), kind, &patch).await;
    let status = answer.refused(422);
    assert!(message(&status).contains("pod updates may not change fields other than"));
    assert!(answer.bytes.len() < 512 * 1024, "{}", answer.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn a_compressed_body_is_not_inflated() {
    let api = Api::start().await;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(br#"{"metadata":{"name":"a"},"data":{"k":""#).unwrap();
    gzip.write_all(&vec![b' '; 100 << 20]).unwrap();
    let body = gzip.finish().unwrap();
    let request = Request::builder().method(Method::POST).uri(CONFIG_MAPS);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let request = request.header(header::CONTENT_ENCODING, "gzip");
    let answer = api.send(request.body(Full::new(body.into())).unwrap()).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    assert!(names(&api.get(CONFIG_MAPS).await.ok()).is_empty());
}

/// A protobuf field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

/// A body in protobuf, of a kind.
fn sealed(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let kind = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, raw)].concat()
}

#[tokio::test(start_paused = true)]
async fn messages_that_mean_no_good_are_refused() {
    let api = Api::start().await;
    let metadata = field(1, &field(1, b"a"));
    // An envelope in an envelope in an envelope.
    let nested = (0..2_000).fold(metadata.clone(), |raw, _| sealed("v1", "ConfigMap", &raw));
    let answer = send(&api, Method::POST, CONFIG_MAPS, PROTOBUF, nested).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    // A length that no body has.
    let mut long = sealed("v1", "ConfigMap", &[]);
    long.extend([0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    send(&api, Method::POST, CONFIG_MAPS, PROTOBUF, long).await.refused(400);
    // Schemas in schemas: `not` of JSONSchemaProps.
    let schema = (0..5_000).fold(Vec::new(), |below, _| {
        // Its number takes two bytes.
        [vec![0xe2, 0x01], field(1, &below)[1..].to_vec()].concat()
    });
    let version = [field(1, b"v1"), field(4, &field(1, &schema))].concat();
    let definition = [metadata.clone(), field(2, &field(7, &version))].concat();
    let body = sealed("apiextensions.k8s.io/v1", "CustomResourceDefinition", &definition);
    let answer = send(&api, Method::POST, DEFINITIONS, PROTOBUF, body).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    // Two bytes for each of many variables.
    let env: Vec<u8> = field(7, &[]).repeat(200_000);
    let container = [field(1, b"c"), field(2, b"i"), env].concat();
    let body = sealed("v1", "Pod", &[metadata, field(2, &field(2, &container))].concat());
    let answer = send(&api, Method::POST, PODS, PROTOBUF, body).await;
    assert!(answer.code >= 400, "{}", answer.code);
    assert!(answer.bytes.len() < 4 << 20, "{}", answer.bytes.len());
    assert!(names(&api.get(CONFIG_MAPS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nesting_is_bounded_wherever_a_document_is_read() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let deep = |open: &str, close: &str| {
        format!("{}1{}", open.repeat(100_000), close.repeat(100_000)).into_bytes()
    };
    let objects = deep("{\"a\":", "}");
    let lists = deep("[", "]");
    let options = format!("{path}?fieldManager=m");
    for body in [objects, lists] {
        for kind in [
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/json-patch+json",
            APPLY,
        ] {
            let answer = send(&api, Method::PATCH, &options, kind, body.clone()).await;
            assert_eq!(answer.refused(400)["reason"], "BadRequest", "{kind}");
        }
        for (method, path) in [(Method::PUT, &path), (Method::DELETE, &path)] {
            for kind in ["application/json", "application/yaml"] {
                send(&api, method.clone(), path, kind, body.clone()).await.refused(400);
            }
        }
    }
    let selector = format!("{CONFIG_MAPS}?labelSelector=a+in+{}", "(".repeat(20_000));
    api.get(&selector).await.refused(400);
    let fields = format!("{CONFIG_MAPS}?fieldSelector={}", "a=b,".repeat(5_000));
    assert!(api.get(&fields).await.code < 500);
    api.get(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_many_versions_is_published_and_listed() {
    let store = crate::faulty::Faulty::new();
    let api = Api::over(std::sync::Arc::new(store.clone())).await;
    let mut many = definition();
    let version = |n: usize| {
        let mut version = definition()["spec"]["versions"][1].clone();
        version["name"] = format!("v{n}").into();
        version["storage"] = (n == 1).into();
        version
    };
    many["spec"]["versions"] = (1..=200).map(version).collect();
    api.post(DEFINITIONS, &many).await.ok();
    store.counts();
    let document = api.get("/openapi/v2").await.ok();
    let [read, stale, _] = store.counts();
    let read = read + stale;
    assert!(document["definitions"]["com.example.v200.Widget"].is_object());
    assert!(read < 100, "the definition is read once for all versions, not {read} times");
    let index = api.get("/openapi/v3").await.ok();
    assert!(index["paths"]["apis/example.com/v7"].is_object());
    let v7 = api.get("/openapi/v3/apis/example.com/v7").await.ok();
    let path = "/apis/example.com/v7/namespaces/{namespace}/widgets";
    assert!(v7["paths"][path].is_object());
    let group = api.get("/apis/example.com").await.ok();
    assert_eq!(group["versions"].as_array().unwrap().len(), 200);
    assert_eq!(group["preferredVersion"]["version"], "v200");
}
