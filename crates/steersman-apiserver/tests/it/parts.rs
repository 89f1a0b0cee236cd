//! Subresources that write a part of an object: ephemeral containers, resize, approval, finalize.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::api::{Api, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn debugger(name: &str) -> Value {
    json!({"name": name, "image": "busybox:1", "targetContainerName": "web"})
}

fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_are_added_to_a_pod_and_stay() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p/ephemeralcontainers");
    let patch = json!({"spec": {"ephemeralContainers": [debugger("debug")], "nodeName": "n9"}});
    let patched = api.patch(&path, STRATEGIC, &patch).await.ok();
    let added = &patched["spec"]["ephemeralContainers"][0];
    assert_eq!(added["name"], "debug");
    assert_eq!(added["imagePullPolicy"], "IfNotPresent");
    assert!(patched["spec"].get("nodeName").is_none());
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(api.get(&path).await.ok(), patched);

    let mut more = patched.clone();
    more["spec"]["ephemeralContainers"].as_array_mut().unwrap().push(debugger("more"));
    let both = api.put(&path, &more).await.ok();
    assert_eq!(both["spec"]["ephemeralContainers"].as_array().unwrap().len(), 2);

    let mut changed = both.clone();
    changed["spec"]["ephemeralContainers"][0]["image"] = "other".into();
    let status = api.put(&path, &changed).await.refused(422);
    assert!(
        message(&status).contains("existing ephemeral containers \"debug\" may not be changed")
    );
    let mut fewer = both.clone();
    fewer["spec"]["ephemeralContainers"].as_array_mut().unwrap().remove(0);
    let status = api.put(&path, &fewer).await.refused(422);
    assert!(
        message(&status).contains("existing ephemeral containers \"debug\" may not be removed")
    );
}

#[tokio::test(start_paused = true)]
async fn odd_addresses_in_a_status_are_told() {
    let api = Api::start().await;
    let services = "/api/v1/namespaces/default/services";
    let balanced = json!({
        "metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}});
    api.post(services, &balanced).await.ok();
    api.post(ingresses, &ingress).await.ok();
    api.post(PODS, &pod("p")).await.ok();
    let status = |path: &str, ip: &str| match path.starts_with(PODS) {
        true => json!({"status": {"podIP": ip, "podIPs": [{"ip": ip}]}}),
        false => json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}),
    };
    for (path, place) in [
        (format!("{services}/s"), "loadBalancer.ingress[0]"),
        (format!("{ingresses}/i"), "loadBalancer.ingress[0]"),
        (format!("{PODS}/p"), "podIPs[0].ip"),
    ] {
        let path = format!("{path}/status");
        let answer = api.merge(&path, &status(&path, "2001:db8::1")).await;
        answer.ok();
        assert_eq!(answer.headers.get("warning"), None, "{path}");
        let answer = api.merge(&path, &status(&path, "2001:DB8::1")).await;
        answer.ok();
        let told = answer.headers["warning"].to_str().unwrap();
        assert_eq!(
            told,
            format!(
                "299 - \"status.{place}: IPv6 address \\\"2001:DB8::1\\\" should be in RFC 5952 \
                 canonical format (\\\"2001:db8::1\\\")\""
            )
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_is_no_part_of_the_workload() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p/ephemeralcontainers");
    for (field, value, expected) in [
        (
            "ports",
            json!([{"containerPort": 80}]),
            "ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
        ),
        (
            "resources",
            json!({"limits": {"cpu": "1"}}),
            "ephemeralContainers[0].resources: Forbidden",
        ),
        (
            "lifecycle",
            json!({"preStop": {"exec": {"command": ["x"]}}}),
            "ephemeralContainers[0].lifecycle: Forbidden",
        ),
        ("name", json!("web"), "ephemeralContainers[0].name: Duplicate value: \"web\""),
        ("targetContainerName", json!("nobody"), "targetContainerName: Not found: \"nobody\""),
    ] {
        let mut container = debugger("debug");
        container[field] = value;
        let patch = json!({"spec": {"ephemeralContainers": [container]}});
        let status = api.patch(&path, STRATEGIC, &patch).await.refused(422);
        assert!(message(&status).contains(expected), "{status}");
    }
}

fn sized(cpu: &str) -> Value {
    let mut object = pod("p");
    object["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": "128Mi"}});
    object
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_cpu_and_memory_and_nothing_else() {
    let api = Api::start().await;
    api.post(PODS, &sized("100m")).await.ok();
    let path = format!("{PODS}/p/resize");
    let mut wanted = api.get(&path).await.ok();
    wanted["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m".into();
    wanted["spec"]["containers"][0]["image"] = "other".into();
    wanted["metadata"]["labels"] = json!({"a": "b"});
    let resized = api.put(&path, &wanted).await.ok();
    assert_eq!(resized["spec"]["containers"][0]["resources"]["requests"]["cpu"], "200m");
    assert_eq!(resized["spec"]["containers"][0]["image"], "nginx");
    assert!(resized["metadata"].get("labels").is_none());
    assert_eq!(resized["metadata"]["generation"], 2);
    let patch = json!({"spec": {"containers": [
        {"name": "web", "resources": {"requests": {"cpu": "300m"}}},
    ]}});
    let patched = api.patch(&path, STRATEGIC, &patch).await.ok();
    assert_eq!(patched["spec"]["containers"][0]["resources"]["requests"]["cpu"], "300m");
}

#[tokio::test(start_paused = true)]
async fn a_resize_keeps_the_class_the_containers_and_what_was_asked_for() {
    let api = Api::start().await;
    let pod = api.post(PODS, &sized("100m")).await.ok();
    let path = format!("{PODS}/p/resize");
    let resources = |value: Value| {
        let mut pod = pod.clone();
        pod["spec"]["containers"][0]["resources"] = value;
        pod
    };
    let guaranteed =
        json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
    let status = api.put(&path, &resources(guaranteed)).await.refused(422);
    assert!(message(&status).contains("Pod QOS Class may not change as a result of resizing"));
    let fewer = json!({"requests": {"cpu": "1", "memory": "64Mi"}});
    let status = api.put(&path, &resources(fewer)).await.refused(422);
    assert!(
        message(&status).contains("resources.limits: Forbidden: resource limits cannot be removed")
    );
    let other = json!({
        "requests": {"cpu": "1", "memory": "64Mi", "ephemeral-storage": "1Gi"},
        "limits": {"memory": "128Mi"},
    });
    let status = api.put(&path, &resources(other)).await.refused(422);
    assert!(message(&status).contains("only cpu and memory resources are mutable"));
    let mut two = pod.clone();
    two["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "b", "image": "c"}));
    let status = api.put(&path, &two).await.refused(422);
    assert!(
        message(&status).contains(
            "spec.containers: Forbidden: containers may not be added or removed on resize"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_resized_pod_is_told_before_what_a_resize_may_not_change() {
    let api = Api::start().await;
    let mut pod = api.post(PODS, &sized("100m")).await.ok();
    pod["spec"]["containers"][0]["resources"]["requests"] = json!({"memory": "256Mi"});
    let status = api.put(&format!("{PODS}/p/resize"), &pod).await.refused(422);
    let at = "spec.containers[0].resources.requests";
    let both = format!(
        "[{at}: Invalid value: \"256Mi\": must be less than or equal to memory limit of 128Mi, \
         {at}: Forbidden: resource requests cannot be removed]"
    );
    assert!(message(&status).ends_with(&both), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_no_policy_and_takes_no_resources_from_a_pod_as_a_whole() {
    let api = Api::start().await;
    let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
    let mut wanted = sized("100m");
    wanted["spec"]["resources"] = resources.clone();
    wanted["spec"]["initContainers"] = json!([
        {"name": "i", "image": "b", "resources": resources},
    ]);
    let pod = api.post(PODS, &wanted).await.ok();
    let path = format!("{PODS}/p/resize");
    let refused = async |change: &dyn Fn(&mut Value)| {
        let mut wanted = pod.clone();
        change(&mut wanted["spec"]);
        message(&api.put(&path, &wanted).await.refused(422)).to_owned()
    };
    let policy = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    for (change, why) in [
        (
            &(|spec: &mut Value| spec["containers"][0]["resizePolicy"] = policy.clone())
                as &dyn Fn(&mut Value),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            &|spec| drop(spec.as_object_mut().unwrap().remove("resources")),
            "spec.resources: Forbidden: pod-level resources cannot be removed",
        ),
        (
            &|spec| spec["resources"]["limits"]["hugepages-2Mi"] = "2Mi".into(),
            "spec: Forbidden: only cpu and memory resources are mutable at pod-level",
        ),
        (
            &|spec| {
                spec["initContainers"][0]["resources"]["limits"]["ephemeral-storage"] = "1".into();
            },
            "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar \
             containers are mutable",
        ),
    ] {
        let message = refused(change).await;
        assert!(message.contains(why), "{why}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_that_has_claims_is_not_resized_and_another_may_get_some() {
    let api = Api::start().await;
    let claims = json!([{"name": "c"}]);
    let mut wanted = sized("100m");
    wanted["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": "gpu"}]);
    let without = api.post(PODS, &wanted).await.ok();
    wanted["metadata"]["name"] = "q".into();
    wanted["spec"]["containers"][0]["resources"]["claims"] = claims.clone();
    let with = api.post(PODS, &wanted).await.ok();
    for cpu in ["100m", "200m"] {
        let mut resized = with.clone();
        resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu.into();
        let status = api.put(&format!("{PODS}/q/resize"), &resized).await.refused(422);
        let why =
            "Pod \"q\" is invalid: spec: Forbidden: only cpu and memory resources are mutable";
        assert_eq!(message(&status), why);
    }
    let mut resized = without.clone();
    resized["spec"]["containers"][0]["resources"]["claims"] = claims.clone();
    let resized = api.put(&format!("{PODS}/p/resize"), &resized).await.ok();
    assert_eq!(resized["spec"]["containers"][0]["resources"]["claims"], claims);
}

#[tokio::test(start_paused = true)]
async fn the_plain_path_neither_resizes_nor_adds_ephemeral_containers() {
    let api = Api::start().await;
    let pod = api.post(PODS, &sized("100m")).await.ok();
    let mut wanted = pod.clone();
    wanted["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m".into();
    api.put(&format!("{PODS}/p"), &wanted).await.refused(422);
    let mut wanted = pod.clone();
    wanted["spec"]["ephemeralContainers"] = json!([debugger("debug")]);
    api.put(&format!("{PODS}/p"), &wanted).await.refused(422);
}

/// A request for the certificate of a user, with a key that nobody has.
pub(crate) const REQUEST: &str = "\
    LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTk1Bc0dBMVVF\
    QXd3RWFtRnVaVEVNTUFvR0ExVUVDZ3dEWkdWMk1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFj\
    RFFnQUV0MEJvc1dlV0dYL2ZYNnJtVEw1ME1WbUZYWUhMaE9LUnZZcjlDZXp6ClowR1NKcEdCQXN5RkdY\
    MkJ6YUZqUVpCdEN1MXpYUHBvUCtHZDVNdTFOYktIYktBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJ\
    RHR0OG44RWZOMXZSb3JiRUNwK2dvb2ErRUx6OVlLWE5NNzdQRHF0TFM5WEFpRUEvdXhicDgxYQpqSTdt\
    ZlNjdGdqMVBnVUFEbTdnaHZLdDdtNWN0b0hMbVlBUT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVT\
    VC0tLS0tCg==";

async fn signing_request(api: &Api) -> Value {
    let request = json!({
        "metadata": {"name": "r"},
        "spec": {"request": REQUEST, "signerName": "example.com/s", "usages": ["client auth"], "username": "forged"},
    });
    api.post(REQUESTS, &request).await.ok()
}

#[tokio::test(start_paused = true)]
async fn who_approves_a_signing_request_does_not_sign_it() {
    let api = Api::start().await;
    let mut request = signing_request(&api).await;
    request["status"] = json!({
        "conditions": [{"type": "Approved", "status": "True", "reason": "Nice"}],
        "certificate": "Q0VSVA==",
    });
    let approved = api.put(&format!("{REQUESTS}/r/approval"), &request).await.ok();
    assert!(approved["status"].get("certificate").is_none());
    let condition = &approved["status"]["conditions"][0];
    assert_eq!(condition["lastUpdateTime"], "2025-01-01T00:00:00Z");
    assert_eq!(condition["lastTransitionTime"], "2025-01-01T00:00:00Z");

    let mut denied = approved.clone();
    denied["status"]["conditions"] = json!([{"type": "Denied", "status": "True"}]);
    let status = api.put(&format!("{REQUESTS}/r/approval"), &denied).await.refused(422);
    assert!(message(&status).contains("updates may not remove a condition of type \"Approved\""));
    let mut maybe = approved.clone();
    maybe["status"]["conditions"][0]["status"] = "False".into();
    api.put(&format!("{REQUESTS}/r/approval"), &maybe).await.refused(422);
}

/// A certificate as a signer writes it.
fn certificate() -> String {
    let signed = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    base64::engine::general_purpose::STANDARD.encode(signed.cert.pem())
}

#[tokio::test(start_paused = true)]
async fn who_signs_a_request_does_not_approve_it() {
    let api = Api::start().await;
    let mut request = signing_request(&api).await;
    let path = format!("{REQUESTS}/r/status");
    request["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    let status = api.put(&path, &request).await.refused(422);
    assert!(message(&status).contains("updates may not add a condition of type \"Approved\""));
    let [first, second] = [certificate(), certificate()];
    request["status"] = json!({"certificate": first});
    let signed = api.put(&path, &request).await.ok();
    assert_eq!(signed["status"]["certificate"], first);
    let mut again = signed.clone();
    again["status"]["certificate"] = second.into();
    let status = api.put(&path, &again).await.refused(422);
    assert!(message(&status).contains("updates may not modify existing certificate content"));
}

#[tokio::test(start_paused = true)]
async fn a_signing_request_says_who_made_it() {
    let api = Api::start().await;
    let request = signing_request(&api).await;
    assert_eq!(request["spec"]["username"], "system:admin");
    assert_eq!(request["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
}

#[tokio::test(start_paused = true)]
async fn the_phase_of_a_namespace_follows_its_deletion_and_its_finalizers_have_names() {
    let api = Api::start().await;
    let mut shop =
        api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    shop["status"]["phase"] = "Terminating".into();
    let status = api.put("/api/v1/namespaces/shop/status", &shop).await.refused(422);
    assert!(message(&status).contains("may only be 'Active' if `deletionTimestamp` is empty"));
    shop["spec"]["finalizers"] = json!(["kubernetes", "mine"]);
    let status = api.put("/api/v1/namespaces/shop/finalize", &shop).await.refused(422);
    assert!(message(&status).contains("spec.finalizers[1]"));
    shop["spec"]["finalizers"] = json!(["kubernetes", "example.com/mine"]);
    api.put("/api/v1/namespaces/shop/finalize", &shop).await.ok();
}
