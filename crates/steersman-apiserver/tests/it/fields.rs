//! Field validation and dry runs: what strict clients are told, and what is not stored.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Answer, Api, CONFIG_MAPS, config_map, deployment, name, names, pod};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// A Deployment with two unknown fields, two that stand twice, and one that is both.
const MESSY: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},
    "spec":{"unknown1":"x","unknownDupe":"a","unknownDupe":"b","paused":true,"paused":false,
    "selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web",
    "image":"nginx","unknownNested":"x","imagePullPolicy":"Never","imagePullPolicy":"Always"}]}}}}"#;

const MESS: [&str; 5] = [
    r#"unknown field "spec.unknown1""#,
    r#"unknown field "spec.unknownDupe""#,
    r#"duplicate field "spec.paused""#,
    r#"unknown field "spec.template.spec.containers[0].unknownNested""#,
    r#"duplicate field "spec.template.spec.containers[0].imagePullPolicy""#,
];

async fn send(api: &Api, method: Method, path: &str, content_type: &str, body: &str) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, content_type);
    api.send(request.body(Full::new(body.to_owned().into())).unwrap()).await
}

async fn post(api: &Api, path: &str, body: &str) -> Answer {
    send(api, Method::POST, path, "application/json", body).await
}

fn warnings(answer: &Answer) -> Vec<String> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

fn as_warnings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("299 - {text:?}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_strict_create_names_every_unknown_and_double_field() {
    let api = Api::start().await;
    let status = post(&api, &format!("{DEPLOYMENTS}?fieldValidation=Strict"), MESSY).await;
    assert_eq!(
        status.refused(400)["message"],
        format!(
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: {}",
            MESS.join(", ")
        )
    );
    assert!(names(&api.get(DEPLOYMENTS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_wish_the_client_is_warned_and_the_last_value_counts() {
    let api = Api::start().await;
    for query in ["", "?fieldValidation=", "?fieldValidation=Warn"] {
        let answer = post(&api, &format!("{DEPLOYMENTS}{query}"), MESSY).await;
        assert_eq!(warnings(&answer), as_warnings(&MESS));
        let created = answer.ok();
        assert_eq!(
            created["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"],
            "Always"
        );
        assert!(created["spec"].get("unknownDupe").is_none());
        api.delete(&format!("{DEPLOYMENTS}/web")).await.ok();
    }
    let silent = post(&api, &format!("{DEPLOYMENTS}?fieldValidation=Ignore"), MESSY).await;
    assert!(warnings(&silent).is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_is_warned_nevertheless() {
    let api = Api::start().await;
    let body = r#"{"metadata": {"name": "Not_A_Name"}, "unknown": 1}"#;
    let refused = post(&api, "/api/v1/namespaces/default/configmaps", body).await;
    assert_eq!(warnings(&refused), as_warnings(&[r#"unknown field "unknown""#]));
    refused.refused(422);
}

#[tokio::test(start_paused = true)]
async fn an_update_is_looked_at_like_a_create() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let warned = send(&api, Method::PUT, &path, "application/json", MESSY).await;
    assert_eq!(warnings(&warned), as_warnings(&MESS));
    let strict = format!("{path}?fieldValidation=Strict");
    send(&api, Method::PUT, &strict, "application/json", MESSY).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn a_strict_patch_with_unknown_or_double_fields_is_unprocessable() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let merge = r#"{"spec":{"foo":1,"paused":true,"paused":false}}"#;
    let operations = r#"[{"op":"add","path":"/spec/foo","value":{"a":1,"a":2},"foo":1,"foo":2}]"#;
    for (kind, body, texts) in [
        (
            "application/merge-patch+json",
            merge,
            [r#"duplicate field "spec.paused""#, r#"unknown field "spec.foo""#].as_slice(),
        ),
        (
            "application/strategic-merge-patch+json",
            merge,
            &[r#"duplicate field "spec.paused""#, r#"unknown field "spec.foo""#],
        ),
        (
            "application/json-patch+json",
            operations,
            &[r#"json patch unknown field "[0].foo""#, r#"unknown field "spec.foo""#],
        ),
    ] {
        let strict = format!("{path}?fieldValidation=Strict");
        let status = send(&api, Method::PATCH, &strict, kind, body).await.refused(422);
        let message = status["message"].as_str().unwrap();
        // Kubernetes shows a strategic merge patch itself, of the others what they lead to.
        let shown = if kind.contains("strategic") { "map[" } else { "{" };
        let head = format!(" \"\" is invalid: patch: Invalid value: \"{shown}");
        assert!(message.starts_with(&head), "{message}");
        assert!(message.ends_with(&format!("strict decoding error: {}", texts.join(", "))));
        let warned = send(&api, Method::PATCH, &path, kind, body).await;
        assert_eq!(warnings(&warned), as_warnings(texts), "{kind}");
        let ignored = format!("{path}?fieldValidation=Ignore");
        assert!(warnings(&send(&api, Method::PATCH, &ignored, kind, body).await).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn yaml_tells_the_line_of_a_key_that_stands_twice() {
    let api = Api::start().await;
    let body = "metadata:\n  name: a\ndata:\n  k: v\n  k: w\nbogus: 1\n";
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let status = send(&api, Method::POST, &strict, "application/yaml", body).await.refused(400);
    assert!(status["message"].as_str().unwrap().ends_with(
        "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"k\" already set in map, unknown field \"bogus\""
    ));
    let answer = send(&api, Method::POST, CONFIG_MAPS, "application/yaml", body).await;
    let texts = [r#"line 5: key "k" already set in map"#, r#"unknown field "bogus""#];
    assert_eq!(warnings(&answer), as_warnings(&texts));
    assert_eq!(answer.ok()["data"]["k"], "w");

    let applied = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  k: v\n  k: x\n";
    let path = format!("{CONFIG_MAPS}/b?fieldManager=me");
    let kind = "application/apply-patch+yaml";
    let strict = format!("{path}&fieldValidation=Strict");
    let refused = send(&api, Method::PATCH, &strict, kind, applied).await;
    assert_eq!(
        refused.refused(400)["message"],
        "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"k\" already set in map"
    );
    let answer = send(&api, Method::PATCH, &path, kind, applied).await;
    assert_eq!(warnings(&answer), as_warnings(&[r#"line 6: key "k" already set in map"#]));
    assert_eq!(answer.ok()["data"]["k"], "x");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_tell_unknown_metadata_and_fields() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let body = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","odd":1},
        "spec":{"size":1,"size":2,"unknown":1,"unknown":2}}"#;
    let answer = post(&api, WIDGETS, body).await;
    let texts = [
        r#"duplicate field "spec.size""#,
        r#"duplicate field "spec.unknown""#,
        r#"unknown field "metadata.odd""#,
        r#"unknown field "spec.unknown""#,
    ];
    assert_eq!(warnings(&answer), as_warnings(&texts));
    let created = answer.ok();
    assert_eq!((&created["spec"]["size"], created["metadata"].get("odd")), (&json!(2), None));
    post(&api, &format!("{WIDGETS}?fieldValidation=Strict"), body).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn warnings_are_bounded_in_number_and_size() {
    let api = Api::start().await;
    let fields: Vec<String> = (0..500).map(|n| format!("\"{n}{}\":1", "x".repeat(300))).collect();
    let body = format!(r#"{{"metadata":{{"name":"a"}},{}}}"#, fields.join(","));
    let all = warnings(&post(&api, CONFIG_MAPS, &body).await);
    assert!((10..=17).contains(&all.len()), "{}", all.len());
    assert!(all.iter().all(|text| text.len() < 300));
    let odd = r#"{"metadata":{"name":"b"},"über\u0000\n\"":1}"#;
    let all = warnings(&post(&api, CONFIG_MAPS, odd).await);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].contains("über"), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn fields_of_the_wrong_type_are_named_as_a_decoder_names_them() {
    let api = Api::start().await;
    for (field, value, text) in [
        (
            "/spec/replicas",
            json!("x"),
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "/spec/replicas",
            json!(1.5),
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "/spec/replicas",
            json!(3_000_000_000_i64),
            "number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "/spec/paused",
            json!(1),
            "number into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            "/spec/selector",
            json!([]),
            "array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
        ),
        (
            "/metadata/labels",
            json!({"a": 1}),
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "/metadata/name",
            json!(5),
            "number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            "/metadata",
            json!(5),
            "number into Go struct field Deployment.metadata of type v1.ObjectMeta",
        ),
    ] {
        let mut object = deployment("web", 1);
        if object.pointer(field).is_none() {
            object["metadata"]["labels"] = Value::Null;
            object["spec"]["paused"] = Value::Null;
        }
        *object.pointer_mut(field).unwrap() = value;
        let status = api.post(DEPLOYMENTS, &object).await.refused(400);
        assert_eq!(
            status["message"],
            format!(
                "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal {text}"
            )
        );
    }
    let zero = MESSY.replace("\"unknown1\":\"x\"", "\"replicas\":-0");
    assert_eq!(post(&api, DEPLOYMENTS, &zero).await.ok()["spec"]["replicas"], 0);
}

#[tokio::test(start_paused = true)]
async fn options_that_do_not_exist_are_invalid() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let object = config_map("a", &json!({}));
    let validation = "fieldValidation=Loose";
    let unknown_validation = "fieldValidation: Unsupported value: \"Loose\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
    let dry = "dryRun=Some&dryRun=All";
    let unknown_dry = "dryRun: Unsupported value: [\"Some\",\"All\"]: supported values: \"All\"";
    for (answer, kind, text) in [
        (
            api.post(&format!("{CONFIG_MAPS}?{validation}"), &object).await,
            "Create",
            unknown_validation,
        ),
        (api.put(&format!("{path}?{validation}"), &object).await, "Update", unknown_validation),
        (api.merge(&format!("{path}?{validation}"), &json!({})).await, "Patch", unknown_validation),
        (api.post(&format!("{CONFIG_MAPS}?{dry}"), &object).await, "Create", unknown_dry),
        (api.put(&format!("{path}?{dry}"), &object).await, "Update", unknown_dry),
        (api.merge(&format!("{path}?{dry}"), &json!({})).await, "Patch", unknown_dry),
        (api.delete(&format!("{path}?{dry}")).await, "Delete", unknown_dry),
        (api.delete(&format!("{CONFIG_MAPS}?{dry}")).await, "Delete", unknown_dry),
        (api.delete_with(&path, &json!({"dryRun": ["Some", "All"]})).await, "Delete", unknown_dry),
    ] {
        let expected = format!("{kind}Options.meta.k8s.io \"\" is invalid: {text}");
        assert_eq!(answer.refused(422)["message"], expected);
    }
    assert_eq!(names(&api.get(CONFIG_MAPS).await.ok()), ["a"]);
}

/// The store's revision, which every write moves.
async fn revision(api: &Api) -> Value {
    api.get("/api/v1/nodes").await.ok()["metadata"]["resourceVersion"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_like_the_real_thing_and_stores_nothing() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let api = Api::start().await;
    api.config_map("a", &json!({"k": "v"})).await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    api.post(PODS, &pod("p")).await.ok();
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(WIDGETS, &widget("w", 1)).await.ok();
    let before = revision(&api).await;

    let created =
        api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("b", &json!({}))).await;
    assert_eq!(created.code, 201);
    assert!(created.ok()["metadata"].get("resourceVersion").is_none());
    let generated = json!({"metadata": {"generateName": "x-"}});
    let generated = api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &generated).await.ok();
    assert!(name(&generated).starts_with("x-"));
    api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a", &json!({}))).await.refused(409);
    api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("A!", &json!({})))
        .await
        .refused(422);

    let path = format!("{CONFIG_MAPS}/a?dryRun=All");
    let put = api.put(&path, &config_map("a", &json!({"k": "w"}))).await.ok();
    assert_eq!(put["data"]["k"], "w");
    assert_eq!(api.merge(&path, &json!({"data": {"k": "x"}})).await.ok()["data"]["k"], "x");
    let applied = format!("{CONFIG_MAPS}/c?dryRun=All&fieldManager=me");
    let configuration = config_map("c", &json!({"k": "v"}));
    let applied = api.patch(&applied, "application/apply-patch+yaml", &configuration).await;
    assert_eq!(applied.code, 201);
    api.delete(&path).await.ok();
    api.delete_with(&format!("{CONFIG_MAPS}/a"), &json!({"dryRun": ["All"]})).await.ok();
    api.delete(&format!("{CONFIG_MAPS}?dryRun=All")).await.ok();

    let scale = json!({"spec": {"replicas": 9}});
    let scaled = api.merge(&format!("{DEPLOYMENTS}/web/scale?dryRun=All"), &scale).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 9);
    let status = json!({"status": {"replicas": 3}});
    api.merge(&format!("{DEPLOYMENTS}/web/status?dryRun=All"), &status).await.ok();
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    api.post(&format!("{PODS}/p/binding?dryRun=All"), &binding).await.ok();
    let eviction = json!({"metadata": {"name": "p"}});
    api.post(&format!("{PODS}/p/eviction?dryRun=All"), &eviction).await.ok();

    let mut other = definition();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    api.post(&format!("{DEFINITIONS}?dryRun=All"), &other).await.ok();
    api.get("/apis/example.com/v1/gadgets").await.no_page();
    api.delete(&format!("{DEFINITIONS}/widgets.example.com?dryRun=All")).await.ok();
    api.get(&format!("{WIDGETS}/w")).await.ok();
    assert_eq!(revision(&api).await, before);
}
