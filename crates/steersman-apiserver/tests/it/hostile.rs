//! Requests that mean no good, or come from a broken client: the right Status, nothing stored.

use std::sync::Arc;

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Answer, Api, CONFIG_MAPS, config_map, names, seconds_pass};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};
use crate::faulty::Faulty;

async fn send(api: &Api, method: &str, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap());
    let request = request.uri(path).header(header::CONTENT_TYPE, content_type);
    api.send(request.body(Full::new(body.into())).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn no_path_leads_out_of_its_folder() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}})).await.ok();
    let long = format!("{CONFIG_MAPS}/{}", "x".repeat(10_000));
    for path in [
        "/api/v1/namespaces/default/configmaps/..%2fsecrets%2fs",
        "/api/v1/namespaces/default/configmaps/../../secrets/default/s",
        "/api/v1/namespaces/default%2f..%2f/configmaps/s",
        "/api/v1/namespaces/default/configmaps/%00",
        "/api/v1/namespaces/default//configmaps",
        "/api//v1/pods",
        long.as_str(),
    ] {
        assert_eq!(api.get(path).await.refused(404)["reason"], "NotFound", "{path}");
        api.delete(path).await.refused(404);
    }
    api.get("/apis/%2e%2e/v1/pods").await.no_page();
    for (name, why) in [("%2e%2e", "be '..'"), ("%2E", "be '.'"), ("a%25b", "contain '%'")] {
        let path = format!("{CONFIG_MAPS}/{name}");
        for answer in [api.get(&path).await, api.delete(&path).await] {
            let message = answer.refused(400)["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("Name parameter invalid: "), "{message}");
            assert!(message.ends_with(&format!(": may not {why}")), "{message}");
        }
    }
    // What Kubernetes' own storage says of such a key.
    for namespace in ["%2e%2e", "%2E", ".."] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let decoded = namespace.replace("%2e", ".").replace("%2E", ".");
        let message = format!("invalid key: \"/configmaps/{decoded}\"");
        for query in ["", "?watch=1"] {
            assert_eq!(api.get(&(path.clone() + query)).await.refused(500)["message"], *message);
        }
        let message = format!("invalid key: \"/configmaps/{decoded}/a\"");
        assert_eq!(api.get(&(path.clone() + "/a")).await.refused(500)["message"], *message);
        api.delete(&path).await.refused(500);
        let created = api.post(&path, &config_map("a", &json!({}))).await;
        let message = format!("namespaces \"{decoded}\" not found");
        assert_eq!(created.refused(404)["message"], *message);
    }
    for name in ["..", ".", "a/b", "a%b", "\0", "a b", "A", &"x".repeat(254)] {
        let object = config_map(name, &json!({}));
        assert_eq!(
            api.post(CONFIG_MAPS, &object).await.refused(422)["reason"],
            "Invalid",
            "{name}"
        );
    }
    let put = api.put("/api/v1/namespaces/default/secrets/..", &config_map("..", &json!({}))).await;
    assert!(put.code >= 400);
    assert!(names(&api.get(CONFIG_MAPS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn absurd_numbers_in_the_query_are_taken_as_far_as_they_make_sense() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    for query in ["limit=-1", "limit=0", "limit=9223372036854775807", "limit=-9223372036854775808"]
    {
        assert_eq!(names(&api.get(&format!("{CONFIG_MAPS}?{query}")).await.ok()), ["a"], "{query}");
    }
    let status = api.get(&format!("{CONFIG_MAPS}?limit=9223372036854775808")).await.refused(400);
    assert_eq!(
        status["message"],
        "strconv.ParseInt: parsing \"9223372036854775808\": value out of range"
    );
    for query in [
        "limit=1.5",
        "limit=0x1",
        "timeoutSeconds=soon&watch=1",
        "resourceVersion=-1",
        "resourceVersion=1e3",
        "resourceVersion=99999999999999999999",
        "timeout=never",
    ] {
        api.get(&format!("{CONFIG_MAPS}?{query}")).await.refused(400);
    }
    let mut ended = api.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=-5")).await;
    assert_eq!(ended.brief().await.0, "ADDED");
    let end = tokio::time::timeout(std::time::Duration::from_secs(1), ended.next()).await;
    assert_eq!(end, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn long_queries_and_selectors_are_read_in_bounded_time() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let many: Vec<String> = (0..5_000).map(|n| format!("p{n}=1")).collect();
    api.get(&format!("{CONFIG_MAPS}?{}", many.join("&"))).await.ok();
    let values: Vec<String> = (0..9_000).map(|n| n.to_string()).collect();
    let selector = format!("{CONFIG_MAPS}?labelSelector=a+notin+({})", values.join(","));
    assert_eq!(names(&api.get(&selector).await.ok()), ["a"]);
    let nested = format!("{CONFIG_MAPS}?labelSelector={}", "(".repeat(50_000));
    api.get(&nested).await.refused(400);
    let negated = format!("{CONFIG_MAPS}?labelSelector={}", "!".repeat(50_000));
    api.get(&negated).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_someone_made_up_show_nothing_else() {
    use base64::Engine;
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.post("/api/v1/namespaces/kube-system/configmaps", &config_map("hidden", &json!({})))
        .await
        .ok();
    let token = |value: Value| {
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string().as_bytes())
    };
    for start in ["../kube-system/", "a/../../kube-system/x", "/", "", "./a", "a//b"] {
        let token = token(json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start}));
        let status = api.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.refused(400);
        assert!(status["message"].as_str().unwrap().contains("continue key is not valid"));
    }
    for (rv, code) in [(0, 400), (-2, 400), (i64::MAX, 504), (i64::MIN, 400)] {
        let token = token(json!({"v": "meta.k8s.io/v1", "rv": rv, "start": "a"}));
        api.get(&format!("{CONFIG_MAPS}?continue={token}")).await.refused(code);
    }
    let far = token(json!({"v": "meta.k8s.io/v1", "rv": -1, "start": "zzz", "left": u64::MAX}));
    let list = api.get(&format!("{CONFIG_MAPS}?limit=1&continue={far}")).await.ok();
    assert!(names(&list).is_empty());
    let lies = token(json!({"v": "meta.k8s.io/v1", "rv": -1, "start": "\0", "left": 0}));
    assert_eq!(names(&api.get(&format!("{CONFIG_MAPS}?continue={lies}")).await.ok()), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn methods_that_do_not_exist_are_not_allowed() {
    let api = Api::start().await;
    for method in ["OPTIONS", "TRACE", "CONNECT", "FOO", "HEAD"] {
        let answer = send(&api, method, CONFIG_MAPS, "application/json", Vec::new()).await;
        assert_eq!(answer.refused(405)["reason"], "MethodNotAllowed", "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_not_documents_say_what_came() {
    let api = Api::start().await;
    for (content_type, body, end) in [
        ("application/json", &b""[..], "(<empty>)"),
        ("application/json", b"{\"metadata\":", "({\"metadata\":)"),
        ("application/json", b"\xff\xfe", "(fffe)"),
        ("application/json", b"{\"data\":{\"a\":1e400}}", "({\"data\":{\"a\":1e400}})"),
        ("application/json", b"{\"data\":NaN}", "({\"data\":NaN})"),
        ("application/yaml", b"a: .nan\nb: [", "..."),
        ("application/json", b"{\"kind\": 5}", "({\"kind\": 5})"),
    ] {
        let answer = send(&api, "POST", CONFIG_MAPS, content_type, body.to_vec()).await;
        let status = answer.refused(400);
        let message = status["message"].as_str().unwrap();
        assert!(
            message
                .starts_with("the object provided is unrecognized (must be of type ConfigMap): "),
            "{message}"
        );
        assert!(message.ends_with(end) || end == "...", "{message}");
    }
    let mut bomb = "a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..40 {
        bomb +=
            &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", "));
    }
    send(&api, "POST", CONFIG_MAPS, "application/yaml", bomb.into_bytes()).await.refused(400);
    for open in ["[", "{\"a\":", "- ", "? "] {
        for kind in ["application/json", "application/yaml"] {
            let body = open.repeat(500_000).into_bytes();
            send(&api, "POST", CONFIG_MAPS, kind, body).await.refused(400);
        }
    }
    assert!(names(&api.get(CONFIG_MAPS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_nest_an_object_deeper_than_it_could_be_read() {
    let api = Api::start().await;
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let object = json!({"metadata": {"name": "r"}, "revision": 1, "data": {}});
    api.post(path, &object).await.ok();
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"a": deep});
    }
    let mut operations = Vec::new();
    for step in 0..100 {
        let place = format!("/data{}", "/a".repeat(60 * step));
        operations.push(json!({"op": "add", "path": place, "value": deep}));
    }
    let moves: Vec<Value> = (0..2_000)
        .flat_map(|_| {
            [
                json!({"op": "move", "from": "/data", "path": "/x"}),
                json!({"op": "add", "path": "/data", "value": {}}),
                json!({"op": "move", "from": "/x", "path": "/data/a"}),
            ]
        })
        .collect();
    for operations in [operations, moves] {
        let body = Value::from(operations).to_string().into_bytes();
        let kind = "application/json-patch+json";
        send(&api, "PATCH", &format!("{path}/r"), kind, body).await.refused(422);
    }
    assert_eq!(api.get(&format!("{path}/r")).await.ok()["data"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn long_lists_of_set_items_are_checked_in_bounded_time() {
    let api = Api::start().await;
    let mut listed = definition();
    listed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["tags"] =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    api.post(DEFINITIONS, &listed).await.ok();
    let mut object = widget("a", 1);
    object["spec"]["tags"] = (0..100_000).map(|n| n.to_string()).collect();
    assert!(api.post(WIDGETS, &object).await.code < 500);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_given_up() {
    let store = Faulty::new();
    let api = Arc::new(Api::over(Arc::new(store.clone())).await);
    let asked = "Timeout: request did not complete within the allotted timeout";
    let longest = "Timeout: request did not complete within requested timeout - context deadline \
                   exceeded";
    for (query, seconds, expected) in
        [("", 34, longest), ("?timeout=5s", 5, asked), ("?timeout=10m", 34, longest)]
    {
        store.hold("/registry/configmaps/default/slow");
        let path = format!("{CONFIG_MAPS}{query}");
        let post = {
            let (api, path) = (Arc::clone(&api), path.clone());
            tokio::spawn(async move { api.post(&path, &config_map("slow", &json!({}))).await })
        };
        store.held().await;
        seconds_pass(seconds - 1).await;
        assert!(!post.is_finished(), "{query}");
        let status = post.await.unwrap().refused(504);
        assert_eq!((&status["reason"], &status["message"]), (&json!("Timeout"), &json!(expected)));
    }
    assert!(names(&api.get(CONFIG_MAPS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_older_schema_let_be_stored_is_read_by_the_newer_one() {
    let api = Api::start().await;
    let mut created = api.post(DEFINITIONS, &definition()).await.ok();
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let mut watch = api.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(watch.brief().await.0, "ADDED");
    created = api
        .get(&format!("{DEFINITIONS}/{}", created["metadata"]["name"].as_str().unwrap()))
        .await
        .ok();
    for version in 0..2 {
        created["spec"]["versions"][version]["selectableFields"] = json!([]);
        created["spec"]["versions"][version]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "shape": {"type": "string", "default": "round"},
                "note": {"type": "string", "nullable": true, "default": null},
            },
        });
    }
    api.put(&format!("{DEFINITIONS}/widgets.example.com"), &created).await.ok();
    // A default of null is none.
    let expected = json!({"size": 1, "shape": "round"});
    let read = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(read["spec"], expected);
    assert_eq!(api.get(WIDGETS).await.ok()["items"][0]["spec"], expected);
    let second = "/apis/example.com/v2/namespaces/default/widgets/a";
    assert_eq!(api.get(second).await.ok()["spec"], expected);
    let mut events = api.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.next().await.unwrap()["object"]["spec"], expected);
}

#[tokio::test(start_paused = true)]
async fn watches_of_a_deleted_definition_end_after_its_instances() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let mut events = api.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.brief().await.0, "ADDED");
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    assert_eq!(events.brief().await.0, "DELETED");
    let end = tokio::time::timeout(std::time::Duration::from_secs(5), events.next()).await;
    assert_eq!(end, Ok(None));
    let mut others = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert!(others.is_silent().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_that_takes_long_holds_up_nobody() {
    let api = Arc::new(Api::start().await);
    let finalizers: Vec<String> = (0..40_000).map(|n| format!("example.com/f{n}")).collect();
    let heavy = json!({"metadata": {"name": "heavy", "finalizers": finalizers}});
    let other = Arc::clone(&api);
    let heavy = tokio::spawn(async move {
        other.post(&format!("{CONFIG_MAPS}?dryRun=All"), &heavy).await.ok();
    });
    tokio::task::yield_now().await;
    let light = tokio::spawn(async move { api.get(CONFIG_MAPS).await.ok() });
    light.await.unwrap();
    assert!(!heavy.is_finished(), "there is one worker, and it went on");
    heavy.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_long_work_in_a_short_time_is_told_in_time() {
    let api = Api::start().await;
    let mut slow = definition();
    let schema = &mut slow["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    for number in 0..100 {
        let pattern = format!("^[\\pL\\pN]{{1,20}}late{number}$");
        schema[format!("p{number}")] = json!({"type": "string", "pattern": pattern});
    }
    let late = api.post(&format!("{DEFINITIONS}?timeout=5ms"), &slow).await;
    let late = late.refused(504);
    assert_eq!(late["reason"], "Timeout");
    let why = "Timeout: request did not complete within the allotted timeout";
    assert_eq!(late["message"], why);
    // The work is given up: nothing comes of it, and its place is free for another.
    api.post(DEFINITIONS, &definition()).await.ok();
    let stored = api.get(&format!("{DEFINITIONS}/{}", crate::api::name(&slow))).await.ok();
    assert!(!stored.to_string().contains("late0"), "{stored}");
}
