//! Warnings for versions that are to go.

use http::header;
use serde_json::json;

use crate::api::{Answer, Api};
use crate::crd::{DEFINITIONS, definition};

fn warnings(answer: &Answer) -> Vec<&str> {
    answer.headers.get_all(header::WARNING).iter().map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn deprecated_builtin_kinds_warn_even_where_nothing_is_found() {
    let api = Api::start().await;
    let endpoints =
        "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    let path = "/api/v1/namespaces/default/endpoints";
    assert_eq!(warnings(&api.get(path).await), [endpoints]);
    let absent = api.get(&format!("{path}/absent")).await;
    absent.refused(404);
    assert_eq!(warnings(&absent), [endpoints]);
    let unread = api.patch(&format!("{path}/absent"), "text/plain", &json!({})).await;
    unread.refused(415);
    assert!(warnings(&unread).is_empty(), "nobody has looked at the kind");
    let components = api.get("/api/v1/componentstatuses").await;
    assert_eq!(warnings(&components), ["299 - \"v1 ComponentStatus is deprecated in v1.19+\""]);
    assert!(warnings(&api.get("/api/v1/pods").await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deprecated_version_of_a_definition_says_where_to_go() {
    let api = Api::start().await;
    let mut definition = definition();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    let mut more = |name: &str, served: bool, extra: serde_json::Value| {
        let mut version = versions[1].clone();
        version["name"] = name.into();
        version["served"] = served.into();
        version["deprecated"] = true.into();
        version.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        versions.push(version);
    };
    more("v1beta1", true, json!({}));
    more("v3alpha1", true, json!({"deprecationWarning": "leave"}));
    more("v4", true, json!({}));
    more("v5", false, json!({"deprecated": false}));
    api.post(DEFINITIONS, &definition).await.ok();
    for (version, expected) in [
        ("v1", None),
        ("v2", None),
        ("v1beta1", Some("example.com/v1beta1 Widget is deprecated; use example.com/v2 Widget")),
        ("v3alpha1", Some("leave")),
        ("v4", Some("example.com/v4 Widget is deprecated")),
    ] {
        let path = format!("/apis/example.com/{version}/namespaces/default/widgets/absent");
        let answer = api.get(&path).await;
        answer.refused(404);
        let expected: Vec<String> = expected.iter().map(|text| format!("299 - {text:?}")).collect();
        assert_eq!(warnings(&answer), expected, "{version}");
    }
}
