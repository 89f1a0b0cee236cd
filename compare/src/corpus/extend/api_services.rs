//! APIServices: those of the server itself, and those that lead nowhere.

use serde_json::{Value, json};

use super::table::patched;
use crate::step::{Language, Role, Scenario, Step, Tidy};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    vec![own(), refused(run), remote(run)]
}

/// The server's own, and what becomes of who changes them.
fn own() -> Scenario {
    let mut scenario = Scenario::new("apiservices/own", Tidy::default());
    for name in ["v1.", "v1.apps", "v1.apiextensions.k8s.io", "v2.autoscaling", "v1.policy"] {
        scenario.add(Step::get(name, &format!("{SERVICES}/{name}")));
    }
    let local = format!("{SERVICES}?labelSelector=kube-aggregator.kubernetes.io/automanaged");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    scenario.add(Step::get("table", &local).accept(table));
    let path = format!("{SERVICES}/v1.apps");
    let merge =
        |id: &'static str, patch: Value| Step::patch(id, &path, Language::Merge, patch).dry();
    scenario.add(merge("priority", json!({"spec": {"groupPriorityMinimum": 5}})));
    let service = json!({"spec": {"service": {"name": "a", "namespace": "b"}}});
    scenario.add(merge("service", service));
    scenario.add(merge("status", json!({"status": {"conditions": []}})));
    scenario.add(Step::delete("delete", &path).dry());
    scenario
}

fn service(run: &str, name: &str) -> Value {
    let group = format!("{name}-{run}.example.com");
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}"), "labels": {"compare": run}},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 1000,
            "versionPriority": 15, "insecureSkipTLSVerify": true,
            "service": {"name": "behind", "namespace": format!("cmp-{run}-apiservices")}}})
}

/// What is no APIService.
fn refused(run: &str) -> Scenario {
    let mut scenario = Scenario::new("apiservices/refused", Tidy::default());
    for (id, patch) in [
        ("sound", json!({})),
        ("local", json!({"spec": {"service": null, "insecureSkipTLSVerify": null}})),
        ("local-insecure", json!({"spec": {"service": null}})),
        ("local-bundle", json!({"spec": {"service": null, "caBundle": "AAAA"}})),
        ("name", json!({"metadata": {"name": "v1.other.example.com"}})),
        ("name-odd", json!({"metadata": {"name": "odd"}})),
        ("no-group", json!({"spec": {"group": ""}})),
        (
            "no-group-other-version",
            json!({"metadata": {"name": "v2."}, "spec": {"group": "", "version": "v2"}}),
        ),
        ("no-version", json!({"spec": {"version": ""}})),
        ("version-odd", json!({"spec": {"version": "V_1"}})),
        ("group-odd", json!({"spec": {"group": "Odd_"}})),
        ("no-priorities", json!({"spec": {"groupPriorityMinimum": 0, "versionPriority": 0}})),
        (
            "high-priorities",
            json!({"spec": {"groupPriorityMinimum": 20001, "versionPriority": 1001}}),
        ),
        ("service-empty", json!({"spec": {"service": {"name": "", "namespace": ""}}})),
        ("service-port", json!({"spec": {"service": {"port": 70000}}})),
        ("service-port-zero", json!({"spec": {"service": {"port": 0}}})),
        ("secure", json!({"spec": {"insecureSkipTLSVerify": false}})),
        ("bundle", json!({"spec": {"insecureSkipTLSVerify": false, "caBundle": "AAAA"}})),
        ("bundle-and-insecure", json!({"spec": {"caBundle": "AAAA"}})),
        ("no-spec", json!({"spec": null})),
        ("status", json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}})),
    ] {
        let object = patched(&service(run, "refused"), &patch);
        scenario.add(Step::post(id, SERVICES, object).dry());
    }
    scenario
}

/// One whose Service is not there, then has no port, no endpoints, no addresses.
fn remote(run: &str) -> Scenario {
    let namespace = format!("cmp-{run}-apiservices");
    let tidy = Tidy {
        namespace: Some(namespace.clone()),
        collections: vec![format!("{SERVICES}?labelSelector=compare%3D{run}")],
    };
    let mut scenario = Scenario::new("apiservices/remote", tidy);
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    scenario.add(Step::post("namespace", "/api/v1/namespaces", body).role(Role::Setup));
    let object = service(run, "remote");
    let path = format!("{SERVICES}/v1.remote-{run}.example.com");
    scenario.add(Step::post("make", SERVICES, object).role(Role::Needed));
    let told = |id: &'static str, text| Step::get(id, &path).role(Role::AwaitText(text));
    scenario.add(told("no-service", "ServiceNotFound"));
    nowhere(run, &mut scenario);
    let behind = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "behind"},
        "spec": {"ports": [{"name": "odd", "port": 444}]}});
    let services = format!("/api/v1/namespaces/{namespace}/services");
    scenario.add(Step::post("service", &services, behind).role(Role::Setup));
    scenario.add(told("no-port", "ServicePortError"));
    let ports = json!({"spec": {"ports": [{"name": "https", "port": 443}]}});
    let right = Step::patch("port", &format!("{services}/behind"), Language::Merge, ports);
    scenario.add(right.role(Role::Setup));
    scenario.add(told("no-endpoints", "EndpointsNotFound"));
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "behind-1", "labels": {"kubernetes.io/service-name": "behind"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": 443}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": false}}]});
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    scenario.add(Step::post("slice", &slices, slice).role(Role::Setup));
    scenario.add(told("no-addresses", "MissingEndpoints"));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    scenario.add(Step::get("table", &path).accept(table));
    scenario.add(Step::delete("delete", &path));
    let group = format!("/apis/remote-{run}.example.com");
    scenario.add(Step::get("group-gone", &group).role(Role::AwaitGone));
    scenario.add(Step::get("version-gone", &format!("{group}/v1")).role(Role::AwaitGone));
    scenario
}

/// What the paths of one answer that leads nowhere.
fn nowhere(run: &str, scenario: &mut Scenario) {
    let group = format!("/apis/remote-{run}.example.com");
    let unavailable = Role::AwaitText("service unavailable");
    scenario.add(Step::get("version", &format!("{group}/v1")).role(unavailable));
    scenario.add(Step::get("version-slash", &format!("{group}/v1/")));
    scenario.add(Step::get("objects", &format!("{group}/v1/things")));
    scenario.add(Step::get("object", &format!("{group}/v1/namespaces/a/things/b")));
    let protobuf = "application/vnd.kubernetes.protobuf";
    scenario.add(Step::get("protobuf", &format!("{group}/v1/things")).accept(protobuf));
    scenario.add(Step::post("post", &format!("{group}/v1/things"), json!({"a": 1})));
    scenario.add(Step::get("watch", &format!("{group}/v1/things?watch=true")));
    scenario.add(Step::get("group", &group));
    scenario.add(Step::get("group-slash", &format!("{group}/")));
    scenario.add(Step::get("other-version", &format!("{group}/v2")));
    scenario.add(Step::get("openapi", &format!("/openapi/v3{group}/v1")));
}
