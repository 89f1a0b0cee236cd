//! OpenAPI as clients ask for it, and custom resources in it.

use std::io::Read;

use flate2::read::GzDecoder;
use http::{Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Answer, Api};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

async fn get_with(api: &Api, path: &str, headers: &[(header::HeaderName, &str)]) -> Answer {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    api.send(request.body(Full::default()).unwrap()).await
}

/// The address of a group-version's document.
async fn address(api: &Api, name: &str) -> Option<String> {
    let index = api.get("/openapi/v3").await.ok();
    index["paths"][name]["serverRelativeURL"].as_str().map(str::to_owned)
}

fn definition(group: &str, kind: &str, versions: &Value) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions,
        },
    })
}

fn version(name: &str, storage: bool, text: &str) -> Value {
    let spec =
        json!({"type": "object", "description": text, "properties": {"size": {"type": "integer"}}});
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
        }},
    })
}

/// The definition of a custom kind in both versions of the specification; null where it is not.
async fn published(api: &Api, group_version: &str, name: &str) -> [Value; 2] {
    let v2 = api.get("/openapi/v2").await.ok()["definitions"][name].clone();
    let v3 = match address(api, &format!("apis/{group_version}")).await {
        Some(url) => api.get(&url).await.ok()["components"]["schemas"][name].clone(),
        None => Value::Null,
    };
    [v2, v3]
}

#[tokio::test(start_paused = true)]
async fn the_index_leads_to_a_document_of_every_group_version() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.ok();
    let paths = index["paths"].as_object().unwrap();
    for name in ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"] {
        assert!(paths.contains_key(name), "{name}");
    }
    for (name, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        assert!(url.starts_with(&format!("/openapi/v3/{name}?hash=")));
        assert_eq!(api.get(url).await.ok()["openapi"], "3.0.0");
    }
    for (name, id) in [
        (".well-known/openid-configuration", "getServiceAccountIssuerOpenIDConfiguration"),
        ("openid/v1/jwks", "getServiceAccountIssuerOpenIDKeyset"),
    ] {
        let document = api.get(&address(&api, name).await.unwrap()).await.ok();
        let path = format!("/{name}/");
        assert_eq!(document["paths"][&path]["get"]["operationId"], id);
        let v2 = api.get("/openapi/v2").await.ok();
        assert_eq!(v2["paths"][&path]["get"]["operationId"], id);
    }
    api.get("/openapi/v3/apis/nothing/v1").await.no_page();
    api.get("/openapi/v4").await.no_page();
}

#[tokio::test(start_paused = true)]
async fn a_document_at_its_hash_may_be_kept_and_a_wrong_hash_leads_to_the_right_one() {
    let api = Api::start().await;
    let url = address(&api, "apis/apps/v1").await.unwrap();
    let answer = api.get(&url).await;
    assert_eq!(answer.headers[header::CACHE_CONTROL], "public, immutable");
    assert_eq!(answer.headers[header::EXPIRES], "Thu, 01 Jan 2026 00:00:00 GMT");
    let tag = answer.headers[header::ETAG].to_str().unwrap();
    assert!(url.ends_with(tag.trim_matches('"')));

    let moved = api.get("/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!((moved.code, moved.headers[header::LOCATION].to_str().unwrap()), (301, &*url));

    let plain = api.get("/openapi/v3/apis/apps/v1").await;
    assert_eq!(plain.headers[header::CACHE_CONTROL], "no-cache, private");
    assert_eq!(plain.bytes, answer.bytes);
    let known = [(header::IF_NONE_MATCH, tag)];
    let unchanged = get_with(&api, &url, &known).await;
    assert_eq!((unchanged.code, unchanged.bytes.len()), (304, 0));
}

#[tokio::test(start_paused = true)]
async fn documents_come_compressed_to_those_who_take_it() {
    let api = Api::start().await;
    for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"] {
        let plain = api.get(path).await;
        assert!(!plain.headers.contains_key(header::CONTENT_ENCODING));
        let gzip = get_with(&api, path, &[(header::ACCEPT_ENCODING, "deflate, gzip")]).await;
        assert_eq!(gzip.headers[header::CONTENT_ENCODING], "gzip");
        let mut inflated = Vec::new();
        GzDecoder::new(&*gzip.bytes).read_to_end(&mut inflated).unwrap();
        assert_eq!(inflated, plain.bytes);
        let never = get_with(&api, path, &[(header::ACCEPT_ENCODING, "gzip;q=0")]).await;
        assert!(!never.headers.contains_key(header::CONTENT_ENCODING));
    }
}

#[tokio::test(start_paused = true)]
async fn version_two_comes_as_json_or_protobuf_and_nothing_else() {
    let api = Api::start().await;
    let document = api.get("/openapi/v2").await.ok();
    assert_eq!(document["swagger"], "2.0");
    let answer = api.get_as("/openapi/v2", &format!("{PROTOBUF},application/json")).await;
    let answered = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(answer.headers[header::CONTENT_TYPE], answered);
    assert!(answer.bytes.windows(3).any(|window| window == b"2.0"));
    api.get_as("/openapi/v2", "text/html").await.refused(406);
    let v3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    api.get_as("/openapi/v3/api/v1", v3).await.refused(406);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_published_changed_and_removed_at_once() {
    let api = Api::start().await;
    let core = address(&api, "api/v1").await;
    let name = "com.example.v1.Foo";
    let stored = version("v0", true, "stored");
    let versions = json!([stored, version("v1", false, "first")]);
    let foo = definition("example.com", "Foo", &versions);
    api.post(DEFINITIONS, &foo).await.ok();
    for schema in published(&api, "example.com/v1", name).await {
        assert_eq!(schema["properties"]["spec"]["description"], "first");
        assert!(schema["properties"]["metadata"].is_object());
    }
    let document = api.get("/openapi/v3/apis/example.com/v1").await.ok();
    let base = "/apis/example.com/v1/namespaces/{namespace}/foos/{name}";
    let paths = &document["paths"];
    assert_eq!(paths[base]["patch"]["x-kubernetes-group-version-kind"]["kind"], "Foo");
    assert!(paths[format!("{base}/status")]["put"].is_object());
    assert!(paths[format!("{base}/scale")]["get"].is_object());
    let schemas = &document["components"]["schemas"];
    assert!(schemas["io.k8s.api.autoscaling.v1.Scale"].is_object());

    let path = format!("{DEFINITIONS}/foos.example.com");
    let renamed = json!({"spec": {"versions": [stored, version("v2", false, "second")]}});
    api.merge(&path, &renamed).await.ok();
    assert_eq!(published(&api, "example.com/v1", name).await, [Value::Null, Value::Null]);
    for schema in published(&api, "example.com/v2", "com.example.v2.Foo").await {
        assert_eq!(schema["properties"]["spec"]["description"], "second");
    }
    api.delete(&path).await.ok();
    let gone = published(&api, "example.com/v2", "com.example.v2.Foo").await;
    assert_eq!(gone, [Value::Null, Value::Null]);
    assert_eq!(address(&api, "api/v1").await, core, "what did not change kept its address");
}

#[tokio::test(start_paused = true)]
async fn versions_kinds_and_groups_stand_side_by_side() {
    let api = Api::start().await;
    let mut second = version("v2", false, "two");
    let versions = json!([version("v1", true, "one"), second]);
    api.post(DEFINITIONS, &definition("example.com", "Foo", &versions)).await.ok();
    let one = json!([version("v1", true, "bar")]);
    api.post(DEFINITIONS, &definition("example.com", "Bar", &one)).await.ok();
    api.post(DEFINITIONS, &definition("example.org", "Foo", &one)).await.ok();
    let document = api.get("/openapi/v3/apis/example.com/v1").await.ok();
    assert_eq!(document["info"]["title"], "Kubernetes CRD Swagger");
    // Only the group-versions of built-in kinds are told of as such.
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.keys().all(|path| path.contains("/foos") || path.contains("/bars")), "{paths:?}");
    for (group_version, name) in [
        ("example.com/v1", "com.example.v1.Foo"),
        ("example.com/v2", "com.example.v2.Foo"),
        ("example.com/v1", "com.example.v1.Bar"),
        ("example.org/v1", "org.example.v1.Foo"),
    ] {
        for schema in published(&api, group_version, name).await {
            assert!(schema["properties"]["spec"].is_object(), "{name}");
        }
    }
    second["served"] = false.into();
    let hidden = json!({"spec": {"versions": [version("v1", true, "one"), second]}});
    api.merge(&format!("{DEFINITIONS}/foos.example.com"), &hidden).await.ok();
    let gone = published(&api, "example.com/v2", "com.example.v2.Foo").await;
    assert_eq!(gone, [Value::Null, Value::Null]);
    let [v2, _] = published(&api, "example.com/v1", "com.example.v1.Foo").await;
    assert_eq!(v2["properties"]["spec"]["description"], "one");
}
