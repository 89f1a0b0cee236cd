//! Claims for devices: who may have which, by an administrator's access and rights to parts of a
//! claim's status, and what becomes of what claims and slices say.

use serde_json::{Value, json};

use crate::api::Api;
use crate::authorization::{bind, role, rule};

const GROUP: &str = "resource.k8s.io";
const OF_DEFAULT: &str = "/apis/resource.k8s.io/v1/namespaces/default";
const UNLABELLED: &str = "admin access to devices requires the \
                          `resource.kubernetes.io/admin-access: true` label on the containing \
                          namespace";

fn spec(admin: bool) -> Value {
    let exactly = json!({"deviceClassName": "c", "adminAccess": admin});
    json!({"devices": {"requests": [
        {"name": "a", "exactly": {"deviceClassName": "c"}}, {"name": "b", "exactly": exactly},
    ]}})
}

fn claim(name: &str, admin: bool) -> Value {
    json!({"metadata": {"name": name}, "spec": spec(admin)})
}

fn allocation(admin: bool) -> Value {
    let result = json!({"request": "b", "driver": "gpu.example.com", "pool": "p", "device": "d",
                        "adminAccess": admin});
    json!({"status": {"allocation": {"devices": {"results": [result]}}}})
}

fn devices(data: &str) -> Value {
    json!({"status": {"devices": [
        {"driver": "gpu.example.com", "pool": "p", "device": "d", "data": {"is": data}},
    ]}})
}

/// Lets a user write claims as far as their paths are concerned, and what else the rules say.
async fn writer(api: &Api, name: &str, mut rules: Vec<Value>) -> Api {
    let paths = ["resourceclaims", "resourceclaims/status"];
    rules.push(rule(&["get", "update", "patch"], &[GROUP], &paths));
    role(api, "", name, &rules).await;
    bind(api, "", "ClusterRole", name, name).await;
    api.acting_as(name, &[])
}

#[tokio::test(start_paused = true)]
async fn the_access_of_an_administrator_needs_a_label_of_the_namespace() {
    let api = Api::start().await;
    let claims = format!("{OF_DEFAULT}/resourceclaims");
    let templates = format!("{OF_DEFAULT}/resourceclaimtemplates");
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": spec(true)}});
    for (path, kind, object) in [
        (&claims, "ResourceClaim.resource.k8s.io \"c\"", claim("c", true)),
        (&templates, "ResourceClaimTemplate.resource.k8s.io \"t\"", template.clone()),
    ] {
        let refused = api.post(path, &object).await.refused(422);
        let at = "spec.devices.requests[1].adminAccess";
        let expected = format!("{kind} is invalid: {at}: Forbidden: {UNLABELLED}");
        assert_eq!(refused["message"], expected);
    }
    api.post(&claims, &claim("c", false)).await.ok();
    let status = format!("{claims}/c/status");
    let refused = api.merge(&status, &allocation(true)).await.refused(422);
    let expected = format!(
        "ResourceClaim.resource.k8s.io \"c\" is invalid: \
         status.allocation.devices.results[0].adminAccess: Forbidden: {UNLABELLED}"
    );
    assert_eq!(refused["message"], expected);

    let labels = json!({"resource.kubernetes.io/admin-access": "true"});
    let labelled = json!({"metadata": {"labels": labels}});
    api.merge("/api/v1/namespaces/default", &labelled).await.ok();
    api.post(&claims, &claim("d", true)).await.ok();
    api.post(&templates, &template).await.ok();
    api.merge(&status, &allocation(true)).await.ok();
    // What was granted stays when the label goes.
    let unlabelled = json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": null}}});
    api.merge("/api/v1/namespaces/default", &unlabelled).await.ok();
    api.merge(&status, &devices("fine")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn who_says_which_devices_a_claim_has_needs_the_right_to_bind() {
    let api = Api::start().await;
    let claims = format!("{OF_DEFAULT}/resourceclaims");
    api.post(&claims, &claim("c", false)).await.ok();
    let status = format!("{claims}/c/status");
    let bob = writer(&api, "bob", vec![]).await;
    let refused = bob.merge(&status, &allocation(false)).await.refused(422);
    assert_eq!(
        refused["message"],
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status.allocation: Forbidden: changing \
         status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
         verb=\"patch\" permission: resourceclaims.resource.k8s.io is forbidden: User \"bob\" \
         cannot patch resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the \
         cluster scope"
    );
    // Who changes nothing of it needs no such right.
    bob.merge(&status, &json!({"status": {"reservedFor": []}})).await.ok();

    let binds = rule(&["patch"], &[GROUP], &["resourceclaims/binding"]);
    let jane = writer(&api, "jane", vec![binds]).await;
    jane.merge(&status, &allocation(false)).await.ok();
    let user = json!({"resource": "pods", "name": "p", "uid": "u"});
    let reserved = json!({"status": {"reservedFor": [user]}});
    bob.merge(&status, &reserved).await.refused(422);
    jane.merge(&status, &reserved).await.ok();
    // The right is to patch, not to update.
    let mut found = jane.get(&format!("{claims}/c")).await.ok();
    found["status"]["reservedFor"] = Value::Null;
    let refused = jane.put(&status, &found).await.refused(422);
    assert!(refused["message"].as_str().unwrap().contains("verb=\"update\""));
}

#[tokio::test(start_paused = true)]
async fn who_says_how_devices_are_needs_the_right_of_their_driver() {
    let api = Api::start().await;
    let claims = format!("{OF_DEFAULT}/resourceclaims");
    api.post(&claims, &claim("c", false)).await.ok();
    let status = format!("{claims}/c/status");
    api.merge(&status, &allocation(false)).await.ok();
    let driver = |name: &str| {
        let mut rule = rule(&["arbitrary-node:patch"], &[GROUP], &["resourceclaims/driver"]);
        rule["resourceNames"] = json!([name]);
        vec![rule]
    };
    let other = writer(&api, "other", driver("other.example.com")).await;
    let refused = other.merge(&status, &devices("fine")).await.refused(422);
    assert_eq!(
        refused["message"],
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status.devices: Forbidden: changing \
         status.devices requires resource=\"resourceclaims/driver\", \
         verb=\"[arbitrary-node:patch]\" permission: resourceclaims.resource.k8s.io \
         \"gpu.example.com\" is forbidden: User \"other\" cannot arbitrary-node:patch resource \
         \"resourceclaims/driver\" in API group \"resource.k8s.io\" in the namespace \"default\""
    );
    let gpu = writer(&api, "gpu", driver("gpu.example.com")).await;
    gpu.merge(&status, &devices("fine")).await.ok();
    gpu.merge(&status, &devices("broken")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn scheduler_and_controller_may_bind_and_take_back() {
    let api = Api::start().await;
    let claims = format!("{OF_DEFAULT}/resourceclaims");
    for (name, user) in [
        ("a", "system:kube-scheduler"),
        ("b", "system:serviceaccount:kube-system:resource-claim-controller"),
    ] {
        let user = api.acting_as(user, &[]);
        api.post(&claims, &claim(name, false)).await.ok();
        let status = format!("{claims}/{name}/status");
        user.merge(&status, &allocation(false)).await.ok();
        api.merge(&status, &devices("fine")).await.ok();
        let taken = user.merge(&status, &json!({"status": {"allocation": null}})).await.ok();
        assert!(taken["status"]["devices"].is_null(), "{taken}");
    }
}

#[tokio::test(start_paused = true)]
async fn tolerations_of_devices_say_how_they_compare() {
    let api = Api::start().await;
    let claims = format!("{OF_DEFAULT}/resourceclaims");
    let tolerations = json!([{"key": "broken"}]);
    let mut tolerant = claim("c", false);
    tolerant["spec"]["devices"]["requests"][1]["exactly"]["tolerations"] = tolerations.clone();
    let created = api.post(&claims, &tolerant).await.ok();
    let operator = "/spec/devices/requests/1/exactly/tolerations/0/operator";
    assert_eq!(created.pointer(operator), Some(&json!("Equal")));
    let mut given = allocation(false);
    given["status"]["allocation"]["devices"]["results"][0]["tolerations"] = tolerations;
    let written = api.merge(&format!("{claims}/c/status"), &given).await.ok();
    let operator = "/status/allocation/devices/results/0/tolerations/0/operator";
    assert_eq!(written.pointer(operator), Some(&json!("Equal")));
}

#[tokio::test(start_paused = true)]
async fn only_of_the_devices_of_a_claim_something_is_said() {
    let api = Api::start().await;
    let claims = format!("{OF_DEFAULT}/resourceclaims");
    api.post(&claims, &claim("c", false)).await.ok();
    let status = format!("{claims}/c/status");
    let refused = api.merge(&status, &devices("fine")).await.refused(422);
    assert_eq!(
        refused["message"],
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status.devices[0]: Invalid value: \
         {\"Driver\":\"gpu.example.com\",\"Pool\":\"p\",\"Device\":\"d\",\"ShareID\":\"\"}: must be \
         an allocated device in the claim"
    );
    api.merge(&status, &allocation(false)).await.ok();
    api.merge(&status, &devices("fine")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn slices_lack_what_is_off_and_who_shouts_is_told() {
    const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
    let api = Api::start().await;
    let offer = |attribute: Value| json!([{"name": "d", "attributes": {"model": attribute}}]);
    let slice = |name: &str, attribute: Value| {
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
        json!({"metadata": {"name": name}, "spec": {
            "driver": "GPU.example.com", "nodeName": "n", "pool": pool,
            "devices": offer(attribute),
        }})
    };
    let answer = api.post(SLICES, &slice("s", json!({"string": "x1", "strings": ["x1"]}))).await;
    assert_eq!(answer.ok()["spec"]["devices"], offer(json!({"string": "x1"})));
    let warning = answer.headers["warning"].to_str().unwrap();
    assert!(warning.contains("spec.driver: driver names should be lowercase"), "{warning}");
    let more = json!({"spec": {"devices": offer(json!({"string": "x2", "ints": [1]}))}});
    let updated = api.merge(&format!("{SLICES}/s"), &more).await.ok();
    assert_eq!(updated["spec"]["devices"], offer(json!({"string": "x2"})));
    let refused = api.post(SLICES, &slice("t", json!({"strings": ["x1"]}))).await.refused(422);
    assert_eq!(
        refused["message"],
        "ResourceSlice.resource.k8s.io \"t\" is invalid: spec.devices[0].attributes[model]: \
         Invalid value: \"\": exactly one value must be specified"
    );
}
