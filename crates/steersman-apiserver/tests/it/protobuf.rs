//! Protobuf through the whole server: what Go clients send and read.

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, header};
use http_body_util::{BodyDataStream, Full};
use serde_json::{Value, json};
use steersman_apiserver::ResponseBody;
use steersman_rules::body::yaml;
use steersman_rules::kinds;
use steersman_rules::protobuf;
use steersman_rules::resource::{Resource, Verb};
use tower::ServiceExt;

use crate::api::{
    Answer, Api, CONFIG_MAPS, config_map, deployment, name, names, pod, seconds_pass, version,
};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PODS: &str = "/api/v1/namespaces/default/pods";

impl Api {
    /// Sends a document, and wants an answer, in protobuf.
    async fn protobuf(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let body = body.map(|body| protobuf::encode(body).unwrap()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header(header::ACCEPT, PROTOBUF);
        let request = request.header(header::CONTENT_TYPE, PROTOBUF);
        self.send(request.body(Full::new(body)).unwrap()).await
    }

    /// Watches in protobuf.
    async fn watch_protobuf(&self, path: &str, accept: &str) -> Frames {
        let request = Request::builder().uri(path).header(header::ACCEPT, accept);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = self.server.clone().oneshot(request).await.unwrap();
        let stream_type = "application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(response.headers()[header::CONTENT_TYPE], stream_type);
        Frames { stream: BodyDataStream::new(response.into_body()), buffer: Vec::new() }
    }

    /// Creates the custom resource definition of widgets, and one widget.
    async fn widget(&self) -> Value {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
            .await
            .ok();
        let widget = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1},
            "metadata": {"name": "w", "labels": {"a": "b"}},
        });
        self.post(WIDGETS, &widget).await.ok()
    }
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

impl Answer {
    /// The body, which must be protobuf.
    #[track_caller]
    fn message(&self, code: u16) -> Value {
        assert_eq!(self.headers[header::CONTENT_TYPE], PROTOBUF, "{:?}", self.bytes);
        let message = protobuf::decode(&self.bytes).unwrap();
        assert_eq!(self.code, code, "{message}");
        message
    }
}

/// The events of a watch in protobuf.
struct Frames {
    stream: BodyDataStream<ResponseBody>,
    buffer: Vec<u8>,
}

impl Frames {
    /// The next event, as its type and object; `None` when the watch has ended.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((head, rest)) = self.buffer.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*head) as usize;
                if rest.len() >= length {
                    let event = event(&rest[..length]);
                    self.buffer.drain(..length + 4);
                    return Some(event);
                }
            }
            self.buffer.extend_from_slice(&self.stream.next().await?.unwrap());
        }
    }
}

/// `WatchEvent { type = 1, object = 2 { raw = 1 } }`
fn event(bytes: &[u8]) -> (String, Value) {
    let (1, kind, rest) = field(bytes) else { panic!("no type") };
    let (2, object, []) = field(rest) else { panic!("no object") };
    let (1, raw, []) = field(object) else { panic!("no raw") };
    (String::from_utf8(kind.to_vec()).unwrap(), protobuf::decode(raw).unwrap())
}

/// The first field of a message, which must be bytes, and what follows.
fn field(bytes: &[u8]) -> (u8, &[u8], &[u8]) {
    assert_eq!(bytes[0] & 7, 2);
    let width = bytes[1..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
    let digits = bytes[1..=width].iter().rev();
    let length = digits.fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    let (content, rest) = bytes[width + 1..].split_at(length);
    (bytes[0] >> 3, content, rest)
}

fn samples() -> Vec<Value> {
    let documents = include_str!("samples.yaml").split("\n---\n");
    documents.map(|text| yaml::read(text.as_bytes()).unwrap()).collect()
}

fn collection(resource: &Resource) -> String {
    let group = if resource.group.is_empty() {
        "/api/v1".to_owned()
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
    format!("{group}{namespace}/{}", resource.plural)
}

/// Every resource that is stored, with an object of it.
fn stored() -> Vec<(Resource, Value)> {
    let samples = samples();
    let all = kinds::all().into_iter();
    let stored = all.filter(|resource| {
        resource.verbs.contains(&Verb::Create) && resource.verbs.contains(&Verb::Get)
    });
    // A request to sign needs a real one, which is more than a sample.
    let stored = stored.filter(|resource| resource.kind != "CertificateSigningRequest");
    let with_sample = stored.map(|resource| {
        let is_it = |sample: &&Value| {
            sample["kind"] == *resource.kind && sample["apiVersion"] == resource.api_version()
        };
        let sample = samples.iter().find(is_it).cloned();
        let sample = sample.unwrap_or_else(|| panic!("no sample of {}", resource.qualified()));
        (resource, sample)
    });
    with_sample.collect()
}

/// What protobuf does not tell apart from nothing: zeros of optional fields, empty lists, nulls,
/// and what a kind calls itself inside of another.
fn told(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let told = fields.iter().map(|(key, value)| (key.clone(), told(value)));
            Value::Object(told.filter(|(_, value)| !is_nothing(value)).collect())
        }
        Value::Array(items) => items.iter().map(told).collect(),
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_is_created_read_listed_and_watched_alike_in_protobuf_and_json() {
    let api = Api::start().await;
    for (resource, sample) in stored() {
        let path = collection(&resource);
        let what = resource.qualified();
        let mut created = api.protobuf(Method::POST, &path, Some(&sample)).await.message(201);
        let own = format!("{path}/{}", name(&sample));
        // The server says a moment later whether it is available.
        if resource.kind == "APIService" {
            seconds_pass(1).await;
            created = api.protobuf(Method::GET, &own, None).await.message(200);
        }
        let json = api.get(&own).await.ok();
        assert_eq!(told(&created), told(&json), "{what}");
        assert_eq!(api.protobuf(Method::GET, &own, None).await.message(200), created, "{what}");

        let selector = format!("fieldSelector=metadata.name%3D{}", name(&sample));
        let list =
            api.protobuf(Method::GET, &format!("{path}?{selector}"), None).await.message(200);
        assert_eq!(list["kind"], *resource.list_kind);
        let mut item = list["items"][0].clone();
        item["apiVersion"] = created["apiVersion"].clone();
        item["kind"] = created["kind"].clone();
        assert_eq!(item, created, "{what}");

        let watch = format!("{path}?watch=1&{selector}");
        let mut events = api.watch_protobuf(&watch, PROTOBUF).await;
        assert_eq!(events.next().await.unwrap(), ("ADDED".to_owned(), created), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_json_creates_is_the_same_as_what_protobuf_creates() {
    let (one, other) = (Api::start().await, Api::start().await);
    for (resource, sample) in stored() {
        let path = collection(&resource);
        let own = format!("{path}/{}", name(&sample));
        one.protobuf(Method::POST, &path, Some(&sample)).await.message(201);
        other.post(&path, &sample).await.ok();
        let (mut one, mut other) = (one.get(&own).await.ok(), other.get(&own).await.ok());
        for object in [&mut one, &mut other] {
            // Chance and order decide these.
            for field in ["uid", "managedFields", "resourceVersion"] {
                object["metadata"][field] = Value::Null;
            }
            object["spec"]["clusterIP"] = Value::Null;
            object["spec"]["clusterIPs"] = Value::Null;
        }
        assert_eq!(told(&one), told(&other), "{}", resource.qualified());
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_in_protobuf_changes_what_it_says() {
    let api = Api::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let created = api.protobuf(Method::POST, deployments, Some(&deployment("web", 1))).await;
    let mut object = created.message(201);
    object["spec"]["replicas"] = json!(0);
    let path = format!("{deployments}/web");
    let updated = api.protobuf(Method::PUT, &path, Some(&object)).await.message(200);
    assert_eq!(updated["spec"]["replicas"], 0);
    assert_eq!(updated["metadata"]["generation"], 2);
    let again = api.protobuf(Method::PUT, &path, Some(&updated)).await.message(200);
    assert_eq!(version(&again), version(&updated), "nothing changed, nothing is written");
}

#[tokio::test(start_paused = true)]
async fn subresources_and_reviews_speak_protobuf() {
    let api = Api::start().await;
    api.post("/apis/apps/v1/namespaces/default/deployments", &deployment("web", 1)).await.ok();
    let path = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    let mut scale = api.protobuf(Method::GET, path, None).await.message(200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    scale["spec"]["replicas"] = json!(3);
    let scaled = api.protobuf(Method::PUT, path, Some(&scale)).await.message(200);
    assert_eq!(scaled["spec"]["replicas"], 3);

    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = api.protobuf(Method::POST, path, Some(&review)).await.message(201);
    assert_eq!(review["status"]["allowed"], true);

    api.post(PODS, &pod("a")).await.ok();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n"},
    });
    let path = format!("{PODS}/a/binding");
    let bound = api.protobuf(Method::POST, &path, Some(&binding)).await.message(201);
    assert_eq!((&bound["kind"], &bound["status"]), (&json!("Status"), &json!("Success")));

    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"},
        "deleteOptions": {"gracePeriodSeconds": 0},
    });
    let path = format!("{PODS}/a/eviction");
    let evicted = api.protobuf(Method::POST, &path, Some(&eviction)).await.message(201);
    assert_eq!(evicted["status"], "Success");
}

#[tokio::test(start_paused = true)]
async fn options_of_a_deletion_are_read_and_its_answer_is_written() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let options = |uid: &Value| json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
    let wrong = api.protobuf(Method::DELETE, &path, Some(&options(&json!("other")))).await;
    assert_eq!(wrong.message(409)["reason"], "Conflict");
    let right = options(&created["metadata"]["uid"]);
    let deleted = api.protobuf(Method::DELETE, &path, Some(&right)).await.message(200);
    assert_eq!(deleted["status"], "Success");
    assert_eq!(deleted["details"]["uid"], created["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_in_the_encoding_that_was_asked_for() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/absent");
    let json = api.get(&path).await.refused(404);
    let status = api.protobuf(Method::GET, &path, None).await.message(404);
    assert_eq!(told(&status), told(&json));
    let yaml = api.get_as(&path, "application/yaml").await;
    assert_eq!(yaml.headers[header::CONTENT_TYPE], "application/yaml");
    assert_eq!(yaml::read(&yaml.bytes).unwrap(), json);
    // What cannot be written is told in JSON.
    let html = api.get_as(&path, "text/html").await;
    assert_eq!(html.refused(406)["reason"], "NotAcceptable");
    let mut invalid = config_map("Not A Name", &json!({}));
    invalid["data"] = json!({"bad key": "v"});
    let refused = api.protobuf(Method::POST, CONFIG_MAPS, Some(&invalid)).await.message(422);
    assert!(refused["details"]["causes"].as_array().unwrap().len() >= 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_protobuf_tells_changes_bookmarks_and_errors() {
    let api = Api::start().await;
    let first = api.config_map("a", &json!({"k": "1"})).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let mut events = api.watch_protobuf(&path, &format!("{PROTOBUF};stream=watch, */*")).await;
    assert_eq!(events.next().await.unwrap(), ("ADDED".to_owned(), first));
    let (kind, bookmark) = events.next().await.unwrap();
    assert_eq!((kind.as_str(), &bookmark["kind"]), ("BOOKMARK", &json!("ConfigMap")));
    let annotations = &bookmark["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    let changed = api.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"k": "2"}})).await.ok();
    assert_eq!(events.next().await.unwrap(), ("MODIFIED".to_owned(), changed));
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(events.next().await.unwrap().0, "DELETED");
    let (kind, bookmark) = events.next().await.unwrap();
    assert_eq!((kind.as_str(), version(&bookmark) > 0), ("BOOKMARK", true));

    let future = format!("{CONFIG_MAPS}?watch=1&resourceVersion=99999");
    let mut events = api.watch_protobuf(&future, PROTOBUF).await;
    let (kind, status) = events.next().await.unwrap();
    assert_eq!((kind.as_str(), &status["code"]), ("ERROR", &json!(410)));
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn many_watches_in_many_forms_see_the_same_event() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut protobuf = Vec::new();
    let mut json = Vec::new();
    for _ in 0..20 {
        protobuf.push(api.watch_protobuf(&path, PROTOBUF).await);
        json.push(api.watch(&path).await);
    }
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut tables = api.watch_as(&path, table).await;
    let mut metadata = api.watch_protobuf(&path, METADATA).await;
    let created = api.config_map("a", &json!({"k": "v"})).await;
    for watch in &mut protobuf {
        assert_eq!(watch.next().await.unwrap(), ("ADDED".to_owned(), created.clone()));
    }
    for watch in &mut json {
        assert_eq!(watch.next().await.unwrap()["object"], created);
    }
    assert_eq!(tables.next().await.unwrap()["object"]["kind"], "Table");
    let (_, partial) = metadata.next().await.unwrap();
    assert_eq!(partial["kind"], "PartialObjectMetadata");
    assert_eq!(partial["metadata"], created["metadata"]);
}

#[tokio::test(start_paused = true)]
async fn two_versions_of_one_kind_are_told_apart_in_a_shared_event() {
    let api = Api::start().await;
    let mut core = api.watch_protobuf("/api/v1/events?watch=1", PROTOBUF).await;
    let mut new = api.watch_protobuf("/apis/events.k8s.io/v1/events?watch=1", PROTOBUF).await;
    let sample = samples().into_iter().find(|sample| sample["kind"] == "Event").unwrap();
    api.post("/api/v1/namespaces/default/events", &sample).await.ok();
    let (_, seen) = core.next().await.unwrap();
    assert_eq!((&seen["apiVersion"], &seen["message"]), (&json!("v1"), &sample["message"]));
    let (_, seen) = new.next().await.unwrap();
    let expected = (&json!("events.k8s.io/v1"), &sample["message"]);
    assert_eq!((&seen["apiVersion"], &seen["note"]), expected);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_no_protobuf_but_their_metadata_has() {
    let api = Api::start().await;
    let widget = api.widget().await;
    let path = format!("{WIDGETS}/w");
    let refused = api.protobuf(Method::GET, &path, None).await.message(406);
    assert_eq!(refused["reason"], "NotAcceptable");
    let both = format!("{PROTOBUF}, application/json");
    assert_eq!(api.get_as(&path, &both).await.ok(), widget);

    let partial = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": widget["metadata"],
    });
    assert_eq!(api.get_as(&path, METADATA).await.message(200), partial);
    let list = METADATA.replace("Metadata;", "MetadataList;");
    let list = api.get_as(WIDGETS, &list).await.message(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"], widget["metadata"]);
    let mut events = api.watch_protobuf(&format!("{WIDGETS}?watch=1"), METADATA).await;
    assert_eq!(events.next().await.unwrap(), ("ADDED".to_owned(), partial.clone()));
    let json = METADATA.replace(PROTOBUF, "application/json");
    assert_eq!(api.get_as(&path, &json).await.ok(), partial);
}

#[tokio::test(start_paused = true)]
async fn tables_are_never_protobuf() {
    let api = Api::start().await;
    let table = "as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(api.get_as(PODS, &format!("{PROTOBUF};{table}")).await.refused(406)["code"], 406);
    let both = format!("{PROTOBUF};{table}, application/json;{table}");
    assert_eq!(api.get_as(PODS, &both).await.ok()["kind"], "Table");
}

#[tokio::test(start_paused = true)]
async fn lists_and_objects_come_as_yaml() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "v: \"x\"\n- y", "empty": ""})).await;
    let yaml = api.get_as(&format!("{CONFIG_MAPS}/a"), "application/yaml").await;
    assert_eq!(yaml::read(&yaml.bytes).unwrap(), created);
    let list = api.get_as(CONFIG_MAPS, "application/yaml").await;
    assert_eq!(names(&yaml::read(&list.bytes).unwrap()), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_compressed_for_those_who_ask() {
    let api = Api::start().await;
    for index in 0..4 {
        api.config_map(&format!("c{index}"), &json!({"k": "v".repeat(50_000)})).await;
    }
    let get = async |path: &str, accept: &str, coding: &str| {
        let request = Request::builder().uri(path).header(header::ACCEPT, accept);
        let request = request.header(header::ACCEPT_ENCODING, coding);
        api.send(request.body(Full::default()).unwrap()).await
    };
    for accept in ["application/json", PROTOBUF] {
        let plain = get(CONFIG_MAPS, accept, "identity").await;
        assert!(!plain.headers.contains_key(header::CONTENT_ENCODING));
        let small = get(CONFIG_MAPS, accept, "deflate, gzip;q=1.0").await;
        assert_eq!(small.headers[header::CONTENT_ENCODING], "gzip");
        assert_eq!(small.headers[header::VARY], "Accept-Encoding");
        assert_eq!(small.headers[header::CONTENT_TYPE], accept);
        assert!(small.bytes.len() < plain.bytes.len() / 10);
        assert_eq!(inflate(&small.bytes), plain.bytes);
    }
    let object = get(&format!("{CONFIG_MAPS}/c0"), "application/json", "gzip").await;
    assert!(!object.headers.contains_key(header::CONTENT_ENCODING), "it is not large");
    let none = get(CONFIG_MAPS, "application/json", "gzip;q=0").await;
    assert!(!none.headers.contains_key(header::CONTENT_ENCODING));
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    std::io::Read::read_to_end(&mut decoder, &mut out).unwrap();
    out
}
