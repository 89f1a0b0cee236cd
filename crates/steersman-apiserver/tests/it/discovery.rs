//! Discovery, version and health.

use http::{Request, header};
use http_body_util::Full;
use serde_json::Value;

use crate::api::Api;
use crate::crd::{DEFINITIONS, definition};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

#[tokio::test(start_paused = true)]
async fn old_clients_walk_from_group_to_resource() {
    let api = Api::start().await;
    assert_eq!(api.get("/api").await.ok()["versions"], serde_json::json!(["v1"]));
    let groups = api.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    let find = |name: &str| {
        let all = groups["groups"].as_array().unwrap();
        all.iter().find(|group| group["name"] == name).unwrap().clone()
    };
    assert_eq!(find("apps")["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(find("autoscaling")["preferredVersion"]["version"], "v2");
    let core = api.get("/api/v1").await.ok();
    let resources = core["resources"].as_array().unwrap();
    let by_name = |name: &str| resources.iter().find(|r| r["name"] == name).unwrap();
    assert_eq!(by_name("pods")["shortNames"][0], "po");
    assert_eq!(by_name("pods/status")["kind"], "Pod");
    assert_eq!(by_name("replicationcontrollers/scale")["group"], "autoscaling");
    assert_eq!(by_name("nodes")["namespaced"], false);
    api.get("/apis/nothing.example.com/v1").await.no_page();
}

#[tokio::test(start_paused = true)]
async fn new_clients_ask_once_and_come_back_with_the_etag() {
    let api = Api::start().await;
    let answer = api.get_as("/apis", AGGREGATED).await;
    assert_eq!(
        answer.headers[header::CONTENT_TYPE],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let list = answer.ok();
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    let groups: Vec<&Value> = list["items"].as_array().unwrap().iter().collect();
    let apps = groups.iter().find(|group| group["metadata"]["name"] == "apps").unwrap();
    let deployments = apps["versions"][0]["resources"].as_array().unwrap();
    let deployments = deployments.iter().find(|r| r["resource"] == "deployments").unwrap();
    assert_eq!(deployments["responseKind"]["kind"], "Deployment");
    assert_eq!(deployments["scope"], "Namespaced");
    assert!(
        deployments["subresources"].as_array().unwrap().iter().any(|s| s["subresource"] == "scale")
    );

    let request = Request::builder()
        .uri("/apis")
        .header(header::ACCEPT, AGGREGATED)
        .header(header::IF_NONE_MATCH, &answer.headers[header::ETAG]);
    let unchanged = api.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(unchanged.code, 304);
    assert!(unchanged.bytes.is_empty());

    let core = api.get_as("/api", AGGREGATED).await.ok();
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");

    let form = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let yaml = api.get_as("/api", form).await;
    assert_eq!(yaml.headers[header::CONTENT_TYPE], form);
    let lines = text(&yaml);
    assert!(lines.lines().any(|line| line == "kind: APIGroupDiscoveryList"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn how_instances_are_stored_is_told_where_that_version_is_served() {
    let api = Api::start().await;
    let mut definition = definition();
    api.post(DEFINITIONS, &definition).await.ok();
    let hash = async |path: &str| {
        let list = api.get(path).await.ok();
        list["resources"][0].get("storageVersionHash").cloned()
    };
    let stored = hash("/apis/example.com/v1").await;
    assert!(stored.is_some());
    assert_eq!(hash("/apis/example.com/v2").await, stored);
    definition["metadata"]["name"] = "widgets.other.com".into();
    definition["spec"]["group"] = "other.com".into();
    definition["spec"]["versions"][0]["served"] = false.into();
    api.post(DEFINITIONS, &definition).await.ok();
    assert_eq!(hash("/apis/other.com/v2").await, None);
}

#[tokio::test(start_paused = true)]
async fn version_and_health_are_told() {
    let api = Api::start().await;
    let version = api.get("/version").await.ok();
    assert_eq!((&version["major"], &version["minor"]), (&"1".into(), &"36".into()));
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        let answer = api.get(path).await;
        assert_eq!(answer.bytes, "ok");
        assert_eq!(answer.headers["cache-control"], "no-cache, private");
        let sniffed = answer.headers.get("x-content-type-options").is_none();
        assert_eq!(sniffed, path == "/readyz/ping", "{path}");
    }
    let verbose = api.get("/readyz?verbose").await;
    let lines = text(&verbose);
    assert!(lines.starts_with("[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n"));
    assert!(lines.ends_with("[+]shutdown ok\nreadyz check passed\n"), "{lines}");
    for check in lines.lines().filter_map(|line| line.strip_prefix("[+]")) {
        let check = check.strip_suffix(" ok").unwrap();
        assert_eq!(api.get(&format!("/readyz/{check}")).await.bytes, "ok", "{check}");
    }
    let hooks = "[+]poststarthook/priority-and-fairness-config-consumer ok\n\
                 [+]poststarthook/priority-and-fairness-filter ok\n\
                 [+]poststarthook/storage-object-count-tracker-hook ok\n\
                 [+]poststarthook/start-apiextensions-informers ok\n\
                 [+]poststarthook/start-apiextensions-controllers ok\n";
    assert!(lines.contains(hooks), "{lines}");
    let alive = api.get("/livez?verbose").await;
    let first = "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd ok\n";
    assert!(text(&alive).starts_with(first), "{}", text(&alive));
    let certificate = "/readyz/loopback-serving-certificate";
    for absent in [certificate, "/readyz/poststarthook", "/livez/shutdown", "/readyz/nothing"] {
        api.get(absent).await.no_page();
    }
    let paths = api.get("/").await.ok();
    assert!(paths["paths"].as_array().unwrap().contains(&"/apis/apps/v1".into()));
    // Whoever asks for them, however they ask.
    assert_eq!(api.post("/", &serde_json::json!({})).await.ok(), paths);
    assert_eq!(api.delete("/").await.ok(), paths);
}

#[tokio::test(start_paused = true)]
async fn people_are_told_what_the_server_is_and_machines_if_they_ask() {
    let api = Api::start().await;
    for accept in ["", "*/*", "text/plain", "application/json, */*", "text/html;q=0.9,*/*;q=0.8"] {
        let status = api.get_as("/statusz", accept).await;
        assert_eq!(status.headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        let lines = text(&status);
        assert!(lines.starts_with("\napiserver statusz\nWarning: This endpoint"), "{lines}");
        let last = lines.lines().last().unwrap();
        let listed = "/flagz /healthz /livez /metrics /readyz /statusz /version";
        assert!(last.starts_with("Paths") && last.ends_with(listed), "{lines}");
        assert!(lines.contains("\nBinary version") && lines.contains("\nStarted"), "{lines}");
        let flags = text(&api.get_as("/flagz", accept).await);
        assert!(flags.starts_with("\napiserver flagz\nWarning: This endpoint"), "{flags}");
        assert!(flags.lines().any(|line| line.starts_with("authorization-mode")), "{flags}");
    }
    let structured = |version: &str, kind: &str| {
        format!("application/json;g=config.k8s.io;v={version};as={kind}")
    };
    let answer = api.get_as("/statusz", &structured("v1beta1", "Statusz")).await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], structured("v1beta1", "Statusz"));
    assert!(!answer.headers.contains_key(header::WARNING));
    assert!(text(&answer).starts_with(
        r#"{"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},"startTime":""#
    ));
    let status = answer.ok();
    assert_eq!(status["emulationVersion"], "1.36");
    assert_eq!(status["paths"][0], "/flagz");
    let answer = api.get_as("/flagz", &structured("v1alpha1", "Flagz")).await;
    assert_eq!(
        answer.headers[header::WARNING],
        "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\""
    );
    assert_eq!(answer.ok()["flags"]["authorization-mode"], "[Node,RBAC]");
    for accept in ["application/json", &structured("v1", "Statusz"), "application/cbor"] {
        let refused = api.get_as("/statusz", accept).await.refused(406);
        assert_eq!(
            refused["message"],
            "only the following media types are accepted: application/json, application/yaml, \
             text/plain"
        );
    }
    for absent in ["/statusz/", "/flagz/x"] {
        api.get(absent).await.no_page();
    }
    let nobody = api.acting_as("nobody", &[]);
    nobody.get("/statusz").await.refused(403);
    nobody.get("/flagz").await.refused(403);
}

fn text(answer: &crate::api::Answer) -> String {
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn documents_have_their_fields_in_the_order_of_kubernetes() {
    let api = Api::start().await;
    api.server.advertise("192.0.2.7:6443".parse().unwrap());
    assert_eq!(
        text(&api.get("/api").await),
        r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.7:6443"}]}"#
    );
    assert_eq!(
        text(&api.get("/apis/apps").await),
        r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#
    );
    let core = text(&api.get("/api/v1").await);
    for part in [
        r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},"#,
        r#"{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["po"],"categories":["all"],"storageVersionHash":"xPOwRZ+Yhw8="}"#,
        r#"{"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]}"#,
    ] {
        assert!(core.contains(part), "{part}");
    }
    let apps = text(&api.get("/apis/apps/v1").await);
    assert!(apps.starts_with(
        r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"controllerrevisions","#
    ));
    let aggregated = text(&api.get_as("/api", AGGREGATED).await);
    assert!(aggregated.starts_with(
        r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"bindings","responseKind":{"group":"","version":"","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},"#
    ));
    assert!(aggregated.contains(
        r#"{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]}"#
    ));
    let version = text(&api.get("/version").await);
    assert!(
        version.starts_with("{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\"")
    );
}

#[tokio::test(start_paused = true)]
async fn groups_of_definitions_follow_the_others_by_the_name_of_their_service() {
    let api = Api::start().await;
    // The definitions' names are in another order than the groups'.
    for (plural, group, version) in
        [("as", "test.com", "v1"), ("zs", "bar.com", "v1"), ("ms", "aaa.com", "v2")]
    {
        let mut definition = definition();
        definition["metadata"]["name"] = format!("{plural}.{group}").into();
        definition["spec"]["group"] = group.into();
        definition["spec"]["names"] = serde_json::json!({"plural": plural, "kind": "Widget"});
        let versions = definition["spec"]["versions"].as_array_mut().unwrap();
        versions.truncate(1);
        versions[0]["name"] = version.into();
        api.post(DEFINITIONS, &definition).await.ok();
    }
    let names = |items: &Value, name: &str| -> Vec<String> {
        let names = items.as_array().unwrap().iter().map(|item| item.pointer(name).unwrap());
        let names: Vec<String> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
        names[names.len() - 4..].to_vec()
    };
    let plain = names(&api.get("/apis").await.ok()["groups"], "/name");
    assert_eq!(plain, ["flowcontrol.apiserver.k8s.io", "bar.com", "test.com", "aaa.com"]);
    let list = api.get_as("/apis", AGGREGATED).await.ok();
    let aggregated = names(&list["items"], "/metadata/name");
    assert_eq!(aggregated, ["flowcontrol.apiserver.k8s.io", "aaa.com", "bar.com", "test.com"]);
    let widget = &list["items"].as_array().unwrap().last().unwrap()["versions"][0]["resources"][0];
    assert_eq!(
        widget["responseKind"],
        serde_json::json!({"group": "test.com", "version": "v1", "kind": "Widget"})
    );
}
