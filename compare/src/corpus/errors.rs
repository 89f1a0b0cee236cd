//! What is asked in the wrong way, and what is no resource at all: paths, methods, parameters,
//! headers, health.

use serde_json::json;

use crate::step::{Scenario, Step, Tidy};

const PATHS: [&str; 34] = [
    "/",
    "/odd",
    "/api/",
    "/api/v2",
    "/api/v1/",
    "/api/v1/odds",
    "/api/v1/odds/x",
    "/api/v1/namespaces/default/odds",
    "/api/v1/namespaces/default/nodes",
    "/api/v1/namespaces//pods",
    "/api/v1//pods",
    "//api/v1/pods",
    "/api/v1/pods/x",
    "/api/v1/watch/pods/x/y/z",
    "/api/v1/proxy/pods/x",
    "/apis/",
    "/apis/odd",
    "/apis/odd/v1",
    "/apis/apps/",
    "/apis/apps/v2",
    "/apis/apps/v2/deployments",
    "/apis/apps/v1/odds",
    "/apis/apps/v1beta1/deployments",
    "/apis/extensions/v1beta1/ingresses",
    "/version/",
    "/version/odd",
    "/healthz/",
    "/healthz/odd",
    "/livez/odd",
    "/readyz/odd",
    "/metrics/odd",
    "/openapi",
    "/openapi/v4",
    "/.well-known/odd",
];

const HEALTH: [&str; 22] = [
    "/healthz",
    "/healthz?verbose",
    "/healthz?verbose=true",
    "/healthz?exclude=ping&verbose",
    "/healthz?exclude=odd&verbose",
    "/healthz/ping",
    "/healthz/ping?verbose",
    "/healthz/log",
    "/healthz/etcd",
    "/livez",
    "/livez?verbose",
    "/livez?exclude=etcd&verbose",
    "/livez?exclude=odd",
    "/livez/ping",
    "/livez/etcd",
    "/readyz",
    "/readyz?verbose",
    "/readyz?exclude=etcd&verbose",
    "/readyz/ping",
    "/readyz/etcd",
    "/readyz/shutdown",
    "/readyz/informer-sync",
];

pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    vec![paths(), methods(), parameters(), headers(run), health()]
}

fn scenario(name: &str) -> Scenario {
    Scenario::new(format!("errors/{name}"), Tidy::default())
}

fn paths() -> Scenario {
    let mut scenario = scenario("paths");
    for path in PATHS {
        scenario.add(Step::get(format!("get {path}"), path));
    }
    for path in ["/odd", "/apis/odd/v1", "/api/v1/odds", "/apis/apps/v1/odds/x"] {
        scenario.add(Step::post(format!("post {path}"), path, json!({})));
        scenario.add(Step::delete(format!("delete {path}"), path));
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        scenario.add(Step::get(format!("table {path}"), path).accept(table));
        scenario.add(Step::get(format!("html {path}"), path).accept("text/html"));
        let protobuf = "application/vnd.kubernetes.protobuf";
        scenario.add(Step::get(format!("protobuf {path}"), path).accept(protobuf));
        scenario.add(Step::get(format!("yaml {path}"), path).accept("application/yaml"));
    }
    scenario
}

fn methods() -> Scenario {
    let mut scenario = scenario("methods");
    let paths = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/version",
        "/healthz",
        "/openapi/v2",
        "/api/v1/pods",
    ];
    for method in ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "ODD"] {
        for path in paths {
            if (method, path) == ("DELETE", "/api/v1/pods") {
                continue; // That would be everybody's.
            }
            scenario.add(Step::new(method, format!("{method} {path}"), path));
        }
    }
    scenario
}

fn parameters() -> Scenario {
    let mut scenario = scenario("parameters");
    let list = "/api/v1/namespaces/default/configmaps";
    let one = "/api/v1/namespaces/default/configmaps/none";
    let queries = [
        "timeout=invalid",
        "timeout=-1s",
        "timeout=0",
        "timeout=1",
        "timeout=99h",
        "timeout=5s",
        "pretty=true",
        "pretty=x",
        "labelSelector=a%3D%3D%3Db",
        "fieldSelector=a%3D%3D%3Db",
        "limit=x",
        "limit=9999999999999999999999",
        "resourceVersion=x",
        "continue=x",
        "odd=1",
        "%zz=1",
        "a;b=1",
        "resourceVersion=99999999999999999999",
    ];
    for query in queries {
        for (name, path) in
            [("list", list), ("get", one), ("version", "/version"), ("api", "/api/v1")]
        {
            scenario.add(Step::get(format!("{name} {query}"), &format!("{path}?{query}")));
        }
    }
    scenario
}

fn headers(run: &str) -> Scenario {
    let mut scenario = scenario("headers");
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let ask = |id: &str| Step::post(id, review, &body);
    scenario.add(ask("plain"));
    let user = "impersonate-user";
    scenario.add(ask("as-user").header(user, "jane"));
    scenario.add(ask("as-nobody").header(user, ""));
    scenario.add(ask("as-anonymous").header(user, "system:anonymous"));
    scenario.add(ask("as-account").header(user, "system:serviceaccount:ab:sa1"));
    scenario.add(ask("as-odd-account").header(user, "system:serviceaccount:ab"));
    scenario.add(ask("as-node").header(user, "system:node:n1"));
    let jane = |id: &str| ask(id).header(user, "jane");
    scenario.add(jane("as-group").header("impersonate-group", "dev"));
    let two = jane("as-groups").header("impersonate-group", "dev");
    scenario.add(two.header("impersonate-group", "ops"));
    scenario.add(jane("as-known").header("impersonate-group", "system:authenticated"));
    scenario.add(jane("as-unknown").header("impersonate-group", "system:unauthenticated"));
    scenario.add(jane("as-uid").header("impersonate-uid", "u-1"));
    scenario.add(jane("as-extra").header("impersonate-extra-scopes", "a"));
    scenario.add(jane("as-extra-escaped").header("impersonate-extra-a%2fb", "a"));
    scenario.add(ask("group-alone").header("impersonate-group", "dev"));
    scenario.add(ask("uid-alone").header("impersonate-uid", "u-1"));
    scenario.add(ask("extra-alone").header("impersonate-extra-scopes", "a"));
    scenario.add(ask("odd-token").header("authorization", format!("Bearer {run}")));
    scenario.add(ask("basic").header("authorization", "Basic YTpi"));
    scenario.add(ask("odd-authorization").header("authorization", "odd"));
    scenario.add(ask("browser").header("origin", "https://example.com"));
    for agent in ["curl/8", "Wget/1", "Mozilla/5.0 x", "kubectl/v1"] {
        let id = format!("agent {agent}");
        let namespace = "/api/v1/namespaces/default/configmaps/none";
        scenario.add(Step::get(id, namespace).header("user-agent", agent));
    }
    for path in ["/api", "/api/v1", "/version", "/openapi/v2"] {
        for (id, accept) in [("html", "text/html"), ("yaml", "application/yaml"), ("odd", "odd")] {
            scenario.add(Step::get(format!("{id} {path}"), path).accept(accept));
        }
    }
    scenario
}

fn health() -> Scenario {
    let mut scenario = scenario("health");
    for path in HEALTH {
        scenario.add(Step::get(path, path));
    }
    scenario.add(Step::get("/version", "/version"));
    scenario
}
