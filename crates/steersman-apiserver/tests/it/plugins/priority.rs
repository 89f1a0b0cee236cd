//! `Priority`.

use serde_json::{Value, json};

use super::{PODS, pod_with, why};
use crate::api::{Api, pod};

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

async fn class(api: &Api, name: &str, value: i64, fields: Value) -> Value {
    let mut class = fields;
    class["metadata"]["name"] = name.into();
    class["value"] = value.into();
    api.post(CLASSES, &class).await.ok()
}

fn priority(pod: &Value) -> (&Value, &Value, &Value) {
    let spec = &pod["spec"];
    (&spec["priorityClassName"], &spec["priority"], &spec["preemptionPolicy"])
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_the_priority_of_its_class_or_of_the_default() {
    let api = Api::start().await;
    let lower = &json!("PreemptLowerPriority");
    let created = api.post(PODS, &pod("a")).await.ok();
    assert_eq!(priority(&created), (&Value::Null, &json!(0), lower));
    class(&api, "high", 1000, json!({"preemptionPolicy": "Never"})).await;
    let spec = json!({"priorityClassName": "high"});
    let created = api.post(PODS, &pod_with("b", &spec)).await.ok();
    assert_eq!(priority(&created), (&json!("high"), &json!(1000), &json!("Never")));
    class(&api, "usual", 7, json!({"globalDefault": true})).await;
    let created = api.post(&format!("{PODS}?dryRun=All"), &pod("c")).await.ok();
    assert_eq!(priority(&created), (&json!("usual"), &json!(7), lower));
    let spec = json!({"priorityClassName": "system-node-critical", "priority": 2_000_001_000});
    let created = api.post(PODS, &pod_with("d", &spec)).await.ok();
    assert_eq!(created["spec"]["priority"], 2_000_001_000);
}

#[tokio::test(start_paused = true)]
async fn a_pod_does_not_choose_its_priority_itself() {
    let api = Api::start().await;
    class(&api, "never", -5, json!({"preemptionPolicy": "Never"})).await;
    for (spec, text) in [
        (json!({"priorityClassName": "none"}), "no PriorityClass with name none was found"),
        (
            json!({"priority": 3}),
            "the integer value of priority (3) must not be provided in pod spec; priority \
             admission controller computed 0 from the given PriorityClass name",
        ),
        (
            json!({"priorityClassName": "never", "preemptionPolicy": "PreemptLowerPriority"}),
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in \
             pod spec; priority admission controller computed Never from the given PriorityClass \
             name",
        ),
    ] {
        let refused = api.post(PODS, &pod_with("p", &spec)).await.refused(403);
        assert_eq!(why(&refused), format!("pods \"p\" is forbidden: {text}"));
    }
}

#[tokio::test(start_paused = true)]
async fn who_replaces_a_pod_need_not_repeat_its_priority() {
    let api = Api::start().await;
    class(&api, "high", 1000, json!({})).await;
    let spec = json!({"priorityClassName": "high"});
    let created = api.post(PODS, &pod_with("p", &spec)).await.ok();
    let mut wanted = created.clone();
    for field in ["priority", "preemptionPolicy"] {
        wanted["spec"].as_object_mut().unwrap().remove(field);
    }
    let updated = api.put(&format!("{PODS}/p"), &wanted).await.ok();
    assert_eq!(updated["spec"], created["spec"]);
    assert_eq!(updated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn there_is_one_default_class() {
    let api = Api::start().await;
    class(&api, "usual", 7, json!({"globalDefault": true})).await;
    let other = json!({"metadata": {"name": "other"}, "value": 8, "globalDefault": true});
    let text = "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is \
                already marked as default. Only one default can exist";
    assert_eq!(why(&api.post(CLASSES, &other).await.refused(403)), text);
    class(&api, "other", 8, json!({})).await;
    let mark = json!({"globalDefault": true});
    assert_eq!(why(&api.merge(&format!("{CLASSES}/other"), &mark).await.refused(403)), text);
    let described = json!({"description": "the usual one"});
    api.merge(&format!("{CLASSES}/usual"), &described).await.ok();
}
