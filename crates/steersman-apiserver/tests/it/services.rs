//! What services get from the server: cluster addresses and node ports.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_store::memory::MemoryStore;

use crate::api::{Api, names, seconds_pass};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn service(name: &str, spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let Value::Object(fields) = spec else { panic!("a spec is an object") };
    for (field, value) in fields {
        object["spec"][field] = value;
    }
    object
}

async fn create(api: &Api, name: &str, spec: Value) -> Value {
    api.post(SERVICES, &service(name, spec)).await.ok()
}

fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap()
}

async fn addresses(api: &Api) -> Vec<String> {
    let all = api.get(ADDRESSES).await.ok();
    names(&all).into_iter().filter(|name| *name != "10.96.0.1").map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_an_address_and_the_address_an_object() {
    let api = Api::start().await;
    let created = create(&api, "web", json!({})).await;
    let address = created["spec"]["clusterIP"].as_str().unwrap();
    assert!(address.starts_with("10."), "{address}");
    assert_eq!(created["spec"]["clusterIPs"], json!([address]));
    assert_eq!(created["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(created["spec"]["ipFamilyPolicy"], "SingleStack");
    let object = api.get(&format!("{ADDRESSES}/{address}")).await.ok();
    let parent = json!({"resource": "services", "namespace": "default", "name": "web"});
    assert_eq!(object["spec"]["parentRef"], parent);
    assert_eq!(object["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"], "IPv4");
    api.delete(&format!("{SERVICES}/web")).await.ok();
    assert!(addresses(&api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_gone_has_taken_its_endpoints_along() {
    const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
    let api = Api::start().await;
    let mut held = service("web", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(SERVICES, &held).await.ok();
    for name in ["web", "other"] {
        api.post(ENDPOINTS, &json!({"metadata": {"name": name}})).await.ok();
    }
    let (web, endpoints) = (format!("{SERVICES}/web"), format!("{ENDPOINTS}/web"));
    api.delete(&format!("{web}?dryRun=All")).await.ok();
    api.delete(&web).await.ok();
    api.get(&endpoints).await.ok();
    api.merge(&web, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.get(&endpoints).await.refused(404);
    api.get(&format!("{ENDPOINTS}/other")).await.ok();
    create(&api, "bare", json!({})).await;
    api.delete(&format!("{SERVICES}/bare")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_named_is_had_by_one_service() {
    let api = Api::start().await;
    create(&api, "a", json!({"clusterIP": "10.96.0.10"})).await;
    for (ip, expected) in [
        (
            "10.96.0.10",
            "spec.clusterIPs: Invalid value: [\"10.96.0.10\"]: failed to allocate IP 10.96.0.10: provided IP is already allocated",
        ),
        ("10.96.0.1", "provided IP is already allocated"),
        ("192.168.0.1", "the provided network does not match the current range"),
        ("10.96.0.0", "the provided network does not match the current range"),
    ] {
        let status = api.post(SERVICES, &service("b", json!({"clusterIP": ip}))).await.refused(422);
        assert!(message(&status).contains(expected), "{status}");
    }
    api.delete(&format!("{SERVICES}/a")).await.ok();
    create(&api, "b", json!({"clusterIP": "10.96.0.10"})).await;
    assert_eq!(addresses(&api).await, ["10.96.0.10"]);
}

#[tokio::test(start_paused = true)]
async fn headless_and_external_services_have_no_address() {
    let api = Api::start().await;
    let selector = json!({"app": "web"});
    let headless = create(&api, "a", json!({"clusterIP": "None", "selector": selector})).await;
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    let external = create(&api, "b", external).await;
    assert!(external["spec"].get("clusterIP").is_none_or(|ip| ip == ""));
    assert!(addresses(&api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_cluster_of_one_family_cannot_give_is_refused() {
    let api = Api::start().await;
    let dual = service("a", json!({"ipFamilyPolicy": "RequireDualStack"}));
    let status = api.post(SERVICES, &dual).await.refused(422);
    assert!(message(&status).contains("this cluster is not configured for dual-stack services"));
    let v6 = service("a", json!({"ipFamilies": ["IPv6"]}));
    let status = api.post(SERVICES, &v6).await.refused(422);
    assert!(
        message(&status).contains(
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"
        )
    );
    let prefers = create(&api, "a", json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    assert_eq!(prefers["spec"]["ipFamilies"], json!(["IPv4"]));
}

#[tokio::test(start_paused = true)]
async fn node_ports_are_handed_out_once() {
    let api = Api::start().await;
    let first = create(&api, "a", json!({"type": "NodePort"})).await;
    let port = first["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    assert!((30086..=32767).contains(&port));
    let taken =
        service("b", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}));
    let status = api.post(SERVICES, &taken).await.refused(422);
    assert!(message(&status).contains(&format!(
        "spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated"
    )));
    assert_eq!(addresses(&api).await.len(), 1, "the failed create gave its address back");
    let low = service("b", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}));
    let status = api.post(SERVICES, &low).await.refused(422);
    assert!(message(&status).contains(
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    ));
    api.delete(&format!("{SERVICES}/a")).await.ok();
    api.post(SERVICES, &taken).await.ok();
}

#[tokio::test(start_paused = true)]
async fn two_protocols_on_one_port_share_a_node_port() {
    let api = Api::start().await;
    let ports = json!([
        {"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"},
        {"name": "other", "port": 80},
    ]);
    let dns = create(&api, "dns", json!({"type": "NodePort", "ports": ports})).await;
    let port = |i: usize| dns["spec"]["ports"][i]["nodePort"].as_i64().unwrap();
    assert_eq!(port(0), port(1));
    assert_ne!(port(0), port(2));
}

#[tokio::test(start_paused = true)]
async fn a_node_port_that_is_named_is_shared_by_the_ports_of_one_number() {
    let api = Api::start().await;
    let spec = |other: i64, node_port: i64| {
        json!({"type": "NodePort", "ports": [
            {"name": "t", "port": 53, "protocol": "TCP", "nodePort": 30010},
            {"name": "u", "port": other, "protocol": "UDP", "nodePort": node_port},
            {"name": "s", "port": 53, "protocol": "SCTP"},
        ]})
    };
    let refused = "nodePort: Invalid value: 30010: provided port is already allocated";
    let status = api.post(SERVICES, &service("a", spec(54, 30010))).await.refused(422);
    assert!(message(&status).contains(&format!("spec.ports[1].{refused}")), "{status}");
    let mut made = create(&api, "a", spec(53, 30011)).await;
    assert_eq!(made["spec"]["ports"][2]["nodePort"], 30010);
    // The first port of the number gets what the last names.
    let ports = json!([
        {"name": "t", "port": 53, "protocol": "TCP"},
        {"name": "u", "port": 53, "protocol": "UDP", "nodePort": 30010},
    ]);
    let late = service("b", json!({"type": "NodePort", "ports": ports}));
    let status = api.post(SERVICES, &late).await.refused(422);
    assert!(message(&status).contains(&format!("spec.ports[0].{refused}")), "{status}");
    // What is there may go on to share.
    made["spec"]["ports"] = spec(54, 30010)["ports"].clone();
    api.put(&format!("{SERVICES}/a"), &made).await.ok();
}

#[tokio::test(start_paused = true)]
async fn health_checks_do_not_share_the_port_of_their_service() {
    let api = Api::start().await;
    let local = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30020,
        "ports": [{"port": 80, "nodePort": 30020}],
    });
    let status = api.post(SERVICES, &service("a", local)).await.refused(500);
    assert_eq!(
        message(&status),
        "Internal error occurred: failed to allocate requested HealthCheck NodePort 30020: \
         provided port is already allocated"
    );
    create(&api, "a", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30020}]}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_local_traffic_has_a_port_for_health_checks() {
    let api = Api::start().await;
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let balancer = create(&api, "lb", local).await;
    let health = balancer["spec"]["healthCheckNodePort"].as_i64().unwrap();
    assert_ne!(balancer["spec"]["ports"][0]["nodePort"], health);
    let none = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let without = create(&api, "none", none).await;
    assert!(without["spec"]["ports"][0].get("nodePort").is_none());
    let mut cluster = balancer.clone();
    cluster["spec"]["externalTrafficPolicy"] = "Cluster".into();
    let changed = api.put(&format!("{SERVICES}/lb"), &cluster).await.ok();
    assert!(changed["spec"].get("healthCheckNodePort").is_none());
    let again = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": health}]});
    create(&api, "again", again).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_its_type_gives_back_what_it_does_not_need() {
    let api = Api::start().await;
    let mut object = create(&api, "web", json!({"type": "NodePort"})).await;
    let port = object["spec"]["ports"][0]["nodePort"].clone();
    object["spec"]["type"] = "ClusterIP".into();
    let mut inside = api.put(&format!("{SERVICES}/web"), &object).await.ok();
    assert!(inside["spec"]["ports"][0].get("nodePort").is_none());
    assert_eq!(inside["spec"]["clusterIP"], object["spec"]["clusterIP"]);
    let taken = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    create(&api, "other", taken).await;

    inside["spec"]["type"] = "ExternalName".into();
    inside["spec"]["externalName"] = "example.com".into();
    let mut outside = api.put(&format!("{SERVICES}/web"), &inside).await.ok();
    assert!(outside["spec"].get("clusterIP").is_none());
    assert_eq!(addresses(&api).await.len(), 1);

    outside["spec"]["type"] = "ClusterIP".into();
    outside["spec"].as_object_mut().unwrap().remove("externalName");
    let back = api.put(&format!("{SERVICES}/web"), &outside).await.ok();
    assert!(back["spec"]["clusterIP"].as_str().unwrap().starts_with("10."));
    assert_eq!(addresses(&api).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_update_keeps_what_was_handed_out() {
    let api = Api::start().await;
    let created = create(&api, "web", json!({"type": "NodePort"})).await;
    let bare = service("web", json!({"type": "NodePort"}));
    let updated = api.put(&format!("{SERVICES}/web"), &bare).await.ok();
    assert_eq!(updated["spec"], created["spec"]);
    let more = json!({"spec": {"ports": [
        {"name": "a", "port": 80, "nodePort": created["spec"]["ports"][0]["nodePort"]},
        {"name": "b", "port": 81},
    ]}});
    let more = api.merge(&format!("{SERVICES}/web"), &more).await.ok();
    assert!(more["spec"]["ports"][1]["nodePort"].as_i64().unwrap() >= 30000);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_hands_nothing_out() {
    let api = Api::start().await;
    let path = format!("{SERVICES}?dryRun=All");
    let object = service(
        "web",
        json!({"type": "NodePort", "clusterIP": "10.96.0.9", "ports": [{"port": 80, "nodePort": 30009}]}),
    );
    for _ in 0..2 {
        let tried = api.post(&path, &object).await.ok();
        assert_eq!(tried["spec"]["clusterIP"], "10.96.0.9");
    }
    let tried = api.post(&path, &service("web", json!({"type": "NodePort"}))).await.ok();
    assert!(tried["spec"]["ports"][0]["nodePort"].is_number());
    assert!(addresses(&api).await.is_empty());
    api.post(SERVICES, &object).await.ok();
    let status =
        api.post(&path, &service("b", json!({"clusterIP": "10.96.0.9"}))).await.refused(422);
    assert!(message(&status).contains("already allocated"));
}

#[tokio::test(start_paused = true)]
async fn a_new_server_over_the_same_store_knows_what_is_taken() {
    let api = Api::start().await;
    let created = create(&api, "web", json!({"type": "NodePort"})).await;
    let stray = json!({
        "metadata": {"name": "10.96.0.77", "labels": {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "gone"}},
    });
    api.post(ADDRESSES, &stray).await.ok();
    let again = Api::over(api.store.clone()).await;
    let port = &created["spec"]["ports"][0]["nodePort"];
    let taken =
        service("b", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}));
    again.post(SERVICES, &taken).await.refused(422);
    let ip = &created["spec"]["clusterIP"];
    again.post(SERVICES, &service("b", json!({"clusterIP": ip}))).await.refused(422);
    let ip = ip.as_str().unwrap();
    assert!(addresses(&again).await.contains(&"10.96.0.77".to_owned()), "it may be in use soon");
    seconds_pass(200).await;
    assert_eq!(addresses(&again).await, [ip], "the stray address is free again");
}

#[tokio::test(start_paused = true)]
async fn of_two_services_that_name_the_same_address_at_once_one_wins() {
    let api = Api::start().await;
    let object = |name: String| {
        service(
            &name,
            json!({"clusterIP": "10.96.0.50", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30050}]}),
        )
    };
    let objects: Vec<Value> = (0..8).map(|n| object(format!("s{n}"))).collect();
    let answers = objects.iter().map(|object| api.post(SERVICES, object));
    let answers = futures::future::join_all(answers).await;
    assert_eq!(answers.iter().filter(|answer| answer.code == 201).count(), 1);
    assert_eq!(addresses(&api).await, ["10.96.0.50"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_many_creates_and_deletes_nothing_is_handed_out_twice_and_nothing_is_lost() {
    let api = Arc::new(Api::start().await);
    let workers = (0..8).map(|worker| {
        let api = Arc::clone(&api);
        tokio::spawn(async move {
            for round in 0..30 {
                let name = format!("s{worker}-{round}");
                // Everybody also wants the same few, and mostly does not get them.
                let port = 30000 + (round % 4);
                let greedy = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
                api.post(SERVICES, &service(&format!("{name}-g"), greedy)).await;
                create(&api, &name, json!({"type": "NodePort"})).await;
                if round % 3 != 0 {
                    api.delete(&format!("{SERVICES}/{name}")).await.ok();
                }
                api.delete(&format!("{SERVICES}/{name}-g")).await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let all = api.get(SERVICES).await.ok();
    let kept: Vec<&Value> = all["items"].as_array().unwrap().iter().collect();
    let ips: HashSet<&str> =
        kept.iter().map(|s| s["spec"]["clusterIP"].as_str().unwrap()).collect();
    assert_eq!((kept.len(), ips.len()), (81, 81));
    let ports: HashSet<i64> =
        kept.iter().filter_map(|s| s["spec"]["ports"][0]["nodePort"].as_i64()).collect();
    assert_eq!(ports.len(), 80);
    let listed = api.get(ADDRESSES).await.ok();
    assert_eq!(names(&listed).into_iter().collect::<HashSet<_>>(), ips);
    for port in 30000..30004 {
        let named = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
        create(&api, &format!("last-{port}"), named).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_missing_is_made_by_its_status_too() {
    let api = Api::start().await;
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    let made = api.put("/api/v1/namespaces/default/services/a/status", &service).await;
    assert_eq!(made.code, 201);
    api.get("/api/v1/namespaces/default/services/a").await.ok();
}

/// A server with ranges of both families, first IPv4.
async fn dual_stack() -> Api {
    let ranges = "10.96.0.0/16,fd00:10:96::/112".parse().unwrap();
    Api::with(Arc::new(MemoryStore::new()), |config| config.service_ranges = ranges).await
}

#[tokio::test(start_paused = true)]
async fn a_family_without_an_address_is_shown_with_the_address_that_cannot_be_had() {
    let api = dual_stack().await;
    create(&api, "a", json!({"clusterIP": "10.96.0.9"})).await;
    let both = json!({"clusterIP": "10.96.0.9", "ipFamilyPolicy": "RequireDualStack"});
    let status = api.post(SERVICES, &service("b", both)).await.refused(422);
    let expected = "spec.clusterIPs: Invalid value: [\"10.96.0.9\",\"\"]: failed to allocate IP \
                    10.96.0.9: provided IP is already allocated";
    assert!(message(&status).contains(expected), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_service_has_an_address_of_each_family_that_it_wants() {
    let api = dual_stack().await;
    let cidr = api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await.ok();
    assert_eq!(cidr["spec"]["cidrs"], json!(["10.96.0.0/16", "fd00:10:96::/112"]));
    let single = create(&api, "single", json!({})).await;
    assert_eq!(single["spec"]["ipFamilies"], json!(["IPv4"]));
    let sixth = create(&api, "sixth", json!({"ipFamilies": ["IPv6"]})).await;
    assert!(sixth["spec"]["clusterIP"].as_str().unwrap().starts_with("fd00:10:96::"), "{sixth}");
    for (policy, families) in [
        (json!({"ipFamilyPolicy": "PreferDualStack"}), ["IPv4", "IPv6"]),
        (json!({"ipFamilyPolicy": "RequireDualStack"}), ["IPv4", "IPv6"]),
        (json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]}), ["IPv6", "IPv4"]),
        (
            json!({"ipFamilyPolicy": "PreferDualStack", "clusterIP": "fd00:10:96::7"}),
            ["IPv6", "IPv4"],
        ),
    ] {
        let both = create(&api, "both", policy.clone()).await;
        assert_eq!(both["spec"]["ipFamilies"], json!(families), "{policy}");
        let ips = both["spec"]["clusterIPs"].as_array().unwrap();
        assert_eq!((ips.len(), &ips[0]), (2, &both["spec"]["clusterIP"]), "{policy}");
        for (ip, family) in ips.iter().zip(families) {
            let object = api.get(&format!("{ADDRESSES}/{}", ip.as_str().unwrap())).await.ok();
            let label = &object["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"];
            assert_eq!(label, family, "{policy}");
        }
        api.delete(&format!("{SERVICES}/both")).await.ok();
        assert_eq!(addresses(&api).await.len(), 2, "only the others have one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_gains_and_loses_its_second_family_only_if_it_says_so() {
    let api = dual_stack().await;
    let path = format!("{SERVICES}/web");
    let created = create(&api, "web", json!({})).await;
    let first = created["spec"]["clusterIP"].clone();
    let policy = |policy: &str| json!({"spec": {"ipFamilyPolicy": policy}});
    let both = api.merge(&path, &policy("RequireDualStack")).await.ok();
    assert_eq!(both["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(both["spec"]["clusterIPs"][0], first);
    let second = both["spec"]["clusterIPs"][1].as_str().unwrap().to_owned();
    assert!(addresses(&api).await.contains(&second));
    let fewer = json!({"spec": {"clusterIPs": [first], "ipFamilies": ["IPv4"]}});
    let refused = api.merge(&path, &fewer).await.refused(422);
    assert!(message(&refused).contains("spec.ipFamilyPolicy: Invalid value"), "{refused}");
    let single = api.merge(&path, &policy("SingleStack")).await.ok();
    assert_eq!(single["spec"]["clusterIPs"], json!([first]));
    assert_eq!(single["spec"]["ipFamilies"], json!(["IPv4"]));
    assert!(!addresses(&api).await.contains(&second), "it is free again");
    let headless = json!({"clusterIP": "None", "ipFamilyPolicy": "PreferDualStack",
                          "selector": {"app": "web"}});
    let headless = create(&api, "headless", headless).await;
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
}

#[tokio::test(start_paused = true)]
async fn a_service_keeps_what_it_had_when_the_cluster_has_another_family_since() {
    let store = Arc::new(MemoryStore::new());
    let before = Api::over(store.clone()).await;
    let prefers = create(&before, "web", json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    assert_eq!(prefers["spec"]["ipFamilies"], json!(["IPv4"]));
    let ranges = "10.96.0.0/12,fd00:10:96::/112".parse().unwrap();
    let api = Api::with(store, |config| config.service_ranges = ranges).await;
    let path = format!("{SERVICES}/web");
    let labelled = api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["spec"]["clusterIPs"], prefers["spec"]["clusterIPs"]);
    let more = json!({"spec": {"ipFamilies": ["IPv4", "IPv6"]}});
    let both = api.merge(&path, &more).await.ok();
    assert_eq!(both["spec"]["clusterIPs"].as_array().unwrap().len(), 2, "{both}");
}
