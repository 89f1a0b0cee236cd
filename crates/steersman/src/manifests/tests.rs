use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};

use super::*;
use crate::events::EventForm;
use crate::webhook::{AdmissionRequest, AdmissionResponse, SharedCa, Webhook};
use crate::{Context, Next, ObjectKey};

fn controller() -> Controller {
    Controller::of::<Deployment>()
        .owns::<Pod>()
        .watches(|_: &ConfigMap| None::<ObjectKey>)
        .reads::<Node>()
        .reconcile(async |_: Arc<Deployment>, _: Context<Deployment>| Ok(Next::Settled))
}

/// Every rule of an object as `group/resource: verbs`.
fn rules(object: &Value) -> Vec<String> {
    let rules = object["rules"].as_array().unwrap().iter();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let shown = |rule: &Value| {
        let group = texts(&rule["apiGroups"]).join(",");
        let verbs = texts(&rule["verbs"]).join(" ");
        format!("{group}/{}: {verbs}", texts(&rule["resources"]).join(","))
    };
    rules.map(shown).collect()
}

fn find<'a>(objects: &'a [Value], kind: &str, namespace: Option<&str>) -> &'a Value {
    let fits = |object: &&Value| {
        object["kind"] == kind && object["metadata"]["namespace"].as_str() == namespace
    };
    objects.iter().find(fits).unwrap_or_else(|| panic!("no {kind} in {objects:#?}"))
}

#[test]
fn permissions_follow_from_what_a_controller_declared() {
    let objects = Manifests::new("shop", "operators").controller(&controller()).objects();
    let expected = [
        "/nodes: get list watch",
        "/configmaps: get list watch",
        "/pods: create delete get list patch update watch",
        "apps/deployments: get list watch",
        "apps/deployments/finalizers: update",
        "apps/deployments/status: get patch update",
        "events.k8s.io/events: create patch update",
    ];
    assert_eq!(rules(find(&objects, "ClusterRole", None)), expected);
    let binding = find(&objects, "ClusterRoleBinding", None);
    assert_eq!(binding["subjects"][0]["name"], "shop");
    assert_eq!(binding["subjects"][0]["namespace"], "operators");
    assert_eq!(find(&objects, "ServiceAccount", Some("operators"))["metadata"]["name"], "shop");
}

#[test]
fn counted_events_are_those_of_the_core_group() {
    let counting = controller().event_form(EventForm::Counted);
    let manifests = Manifests::new("shop", "operators").controller(&counting);
    let role = rules(find(&manifests.objects(), "ClusterRole", None));
    assert!(role.contains(&"/events: create patch update".to_owned()), "{role:?}");
}

#[test]
fn a_program_of_some_namespaces_may_nothing_elsewhere() {
    let manifests = Manifests::new("shop", "operators").controller(&controller());
    let objects = manifests.in_namespaces(["a", "b"]).leader_election().objects();
    assert_eq!(rules(find(&objects, "ClusterRole", None)), ["/nodes: get list watch"]);
    for namespace in ["a", "b"] {
        let role = find(&objects, "Role", Some(namespace));
        assert!(rules(role).contains(&"/configmaps: get list watch".to_owned()));
        find(&objects, "RoleBinding", Some(namespace));
    }
    let leases = "coordination.k8s.io/leases: create delete get list patch update watch";
    let events = "events.k8s.io/events: create patch update";
    assert_eq!(rules(find(&objects, "Role", Some("operators"))), [leases, events]);
}

#[test]
fn what_cannot_be_inferred_can_be_said() {
    let objects = Manifests::new("shop", "operators").allow(rule(["get"], "secrets")).objects();
    let role = find(&objects, "ClusterRole", None);
    assert!(rules(role).contains(&"/secrets: get".to_owned()));
}

#[test]
fn what_is_said_holds_where_it_was_said() {
    let objects = Manifests::new("shop", "operators")
        .in_namespaces(["a"])
        .allow(rule(["get"], "secrets"))
        .allow_in("b", rule(["create"], "pods/eviction"))
        .allow_in("a", rule(["get"], "pods/log"))
        .allow_everywhere(rule(["patch"], "nodes"))
        .objects();
    assert_eq!(rules(find(&objects, "ClusterRole", None)), ["/nodes: patch"]);
    assert_eq!(rules(find(&objects, "Role", Some("b"))), ["/pods/eviction: create"]);
    let a = ["/pods/log: get", "events.k8s.io/events: create patch update", "/secrets: get"];
    assert_eq!(rules(find(&objects, "Role", Some("a"))), a);
    find(&objects, "RoleBinding", Some("b"));
}

/// Those about what is in no namespace are in `default`.
#[test]
fn events_can_be_written_where_they_belong() {
    let events = ["events.k8s.io/events: create patch update"];
    let nodes = Controller::of::<Node>()
        .reconcile(async |_: Arc<Node>, _: Context<Node>| Ok(Next::Settled));
    let manifests = Manifests::new("shop", "operators").controller(&nodes);
    let restricted = manifests.clone().in_namespaces(["a"]).objects();
    assert_eq!(rules(find(&restricted, "Role", Some("default"))), events);
    assert_eq!(rules(find(&restricted, "Role", Some("a"))), events);
    let everywhere = manifests.objects();
    assert!(everywhere.iter().all(|object| object["kind"] != "Role"), "{everywhere:#?}");
}

#[test]
fn what_is_printed_reads_back_as_the_same_objects() {
    let manifests = Manifests::new("shop", "operators").controller(&controller());
    let printed = manifests.to_string();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    assert_eq!(documents, manifests.objects(), "{printed}");
}

#[test]
fn a_shared_authority_is_allowed_what_it_takes_and_no_more() {
    async fn allow(_: AdmissionRequest) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }
    let shared = SharedCa::for_hosts(["shop.operators.svc"]);
    let server = WebhookServer::builder("shop").with(Webhook::validating("/a", [], allow));
    let server = server.shared_ca(shared).build().unwrap();
    let reached = ClientConfig::service("operators", "shop");
    let objects = Manifests::new("shop", "operators").webhooks(&server, &reached).objects();
    let names = |rule: &Value| rule["resourceNames"].clone();
    let role = find(&objects, "Role", Some("operators"));
    assert_eq!(role["metadata"]["name"], "shop-webhook-ca");
    assert_eq!(rules(role), ["/secrets: create", "/secrets: get update"]);
    assert_eq!(names(&role["rules"][1]), json!(["shop-webhook-ca"]));
    let role = find(&objects, "ClusterRole", None);
    let trusting = "admissionregistration.k8s.io/validatingwebhookconfigurations: get patch";
    assert_eq!(rules(role)[0], trusting);
    assert_eq!(names(&role["rules"][0]), json!(["shop-validating"]));
    assert_eq!(rules(role).len(), 2, "nothing else but Events: {role:#}");
}
