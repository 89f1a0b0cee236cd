//! Defaulting and validating.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{MUTATE, VALIDATE, ask, patched, review, shop, shops};
use crate::webhook::{
    AdmissionRequest, AdmissionResponse, CustomDefaulter, CustomValidator, Denied, Operation,
    Warnings, Webhook, WebhookServer,
};

#[tokio::test]
async fn a_defaulter_changes_only_what_it_means_to_change() {
    let sent = shop(json!({
        "unknown": {"a": [1, 2]},
        "shelves": [{"name": "a", "colour": "red"}, {"name": "b", "height": 3}],
    }));
    let answer = ask(&shops(), MUTATE, &review("CREATE", &sent, &Value::Null)).await;
    assert_eq!(answer["uid"], "0-8-15");
    assert_eq!(answer["allowed"], true);
    let wanted = shop(json!({
        "unknown": {"a": [1, 2]}, "replicas": 1, "owner": "ann",
        "shelves": [{"name": "a", "colour": "red", "height": 10}, {"name": "b", "height": 3}],
    }));
    assert_eq!(patched(&sent, &answer), wanted);
}

#[tokio::test]
async fn an_object_that_has_all_it_needs_is_not_patched() {
    let sent = shop(json!({"replicas": 1, "owner": "bob", "unknown": 1}));
    let answer = ask(&shops(), MUTATE, &review("UPDATE", &sent, &sent)).await;
    assert_eq!(answer, json!({"uid": "0-8-15", "allowed": true, "status": {"code": 200}}));
}

#[tokio::test]
async fn a_defaulter_is_not_asked_about_deletions_and_may_refuse() {
    let broken = json!({"this": "is no shop"});
    let answer = ask(&shops(), MUTATE, &review("DELETE", &Value::Null, &broken)).await;
    assert_eq!(answer["allowed"], true);
    let nobody = shop(json!({"owner": "nobody"}));
    let answer = ask(&shops(), MUTATE, &review("CREATE", &nobody, &Value::Null)).await;
    assert_eq!(answer["allowed"], false);
    assert_eq!(answer["status"]["code"], 403);
    assert_eq!(answer["status"]["reason"], "Forbidden");
    assert_eq!(answer["status"]["message"], "a shop needs somebody");
}

#[tokio::test]
async fn errors_of_fields_are_told_as_the_api_server_tells_them() {
    let sent = shop(json!({"replicas": -1}));
    let answer = ask(&shops(), VALIDATE, &review("CREATE", &sent, &Value::Null)).await;
    assert_eq!(answer["allowed"], false);
    let wanted = json!({
        "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "Shop.demo.steersman.dev \"corner\" is invalid: [spec.replicas: Invalid value: \
                    -1: must not be negative, spec.owner: Required value: somebody must answer \
                    for it]",
        "details": {
            "name": "corner", "group": "demo.steersman.dev", "kind": "Shop",
            "causes": [
                {"reason": "FieldValueInvalid", "field": "spec.replicas",
                 "message": "Invalid value: -1: must not be negative"},
                {"reason": "FieldValueRequired", "field": "spec.owner",
                 "message": "Required value: somebody must answer for it"},
            ],
        },
    });
    assert_eq!(answer["status"], wanted);
}

#[tokio::test]
async fn updates_see_the_old_object_and_warnings_come_along() {
    let server = shops();
    let ann = shop(json!({"owner": "ann"}));
    let bob = shop(json!({"owner": "bob"}));
    let answer = ask(&server, VALIDATE, &review("UPDATE", &bob, &ann)).await;
    assert_eq!(answer["status"]["details"]["causes"][0]["field"], "spec.owner");
    assert_eq!(answer["warnings"], json!(["ask the owner"]));
    let many = shop(json!({"owner": "ann", "replicas": 101}));
    let answer = ask(&server, VALIDATE, &review("UPDATE", &many, &ann)).await;
    assert_eq!((&answer["allowed"], &answer["warnings"]), (&json!(true), &json!(["that is much"])));
}

#[tokio::test]
async fn deletions_see_the_object_who_deletes_it_and_whether_it_is_meant() {
    let server = shops();
    let bobs = shop(json!({"owner": "bob"}));
    let mut review = review("DELETE", &Value::Null, &bobs);
    let answer = ask(&server, VALIDATE, &review).await;
    assert_eq!(answer["status"]["message"], "only bob may close it");
    review["request"]["dryRun"] = json!(true);
    assert_eq!(ask(&server, VALIDATE, &review).await["allowed"], true);
}

#[tokio::test]
async fn connections_are_none_of_a_typed_webhooks_business() {
    let options = json!({"apiVersion": "v1", "kind": "PodExecOptions"});
    for path in [MUTATE, VALIDATE] {
        let answer = ask(&shops(), path, &review("CONNECT", &options, &Value::Null)).await;
        assert_eq!(answer["allowed"], true, "{path}");
    }
}

/// Adds a sidecar to Pods.
struct Sidecar(&'static str);

impl CustomDefaulter<Pod> for Sidecar {
    async fn set_defaults(&self, pod: &mut Pod, _: &AdmissionRequest) -> Result<(), Denied> {
        tokio::task::yield_now().await; // it may wait
        let containers = &mut pod.spec.get_or_insert_default().containers;
        let mut sidecar = containers[0].clone();
        (sidecar.name, sidecar.image) = (self.0.to_owned(), Some(self.0.to_owned()));
        containers.insert(0, sidecar);
        Ok(())
    }
}

impl CustomValidator<Pod> for Sidecar {
    const OPERATIONS: &'static [Operation] = &[Operation::Create];

    async fn validate_create(&self, pod: &Pod, _: &AdmissionRequest) -> Result<Warnings, Denied> {
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice());
        match containers.unwrap_or_default().iter().any(|container| container.name == self.0) {
            true => Ok(vec![format!("{} is there", self.0)]),
            false => Err(Denied::because(format_args!("{} is missing", self.0))),
        }
    }

    async fn validate_update(
        &self,
        _: &Pod,
        _: &Pod,
        _: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        Err(std::io::Error::other("the registry is down"))?
    }
}

fn pod_review(operation: &str, containers: &Value) -> (Value, Value) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": containers}});
    let mut review = review(operation, &pod, &pod);
    review["request"]["kind"] = json!({"group": "", "version": "v1", "kind": "Pod"});
    (pod, review)
}

#[tokio::test]
async fn built_in_kinds_have_webhooks_too() {
    let server =
        WebhookServer::builder("shop").in_process().defaults_with::<Pod>(Sidecar("mesh")).build();
    let containers = json!([{"name": "web", "image": "web", "fromTheFuture": {"a": 1}}]);
    let (pod, review) = pod_review("CREATE", &containers);
    let answer = ask(&server.unwrap(), "/mutate--v1-pod", &review).await;
    let wanted = json!([
        {"name": "mesh", "image": "mesh"},
        {"name": "web", "image": "web", "fromTheFuture": {"a": 1}},
    ]);
    assert_eq!(patched(&pod, &answer)["spec"]["containers"], wanted);
}

#[tokio::test]
async fn webhooks_of_one_path_follow_each_other() {
    let at = |webhook: Webhook| webhook.path("/pods");
    let server = WebhookServer::builder("shop")
        .in_process()
        .with(at(Webhook::defaults_with::<Pod>(Sidecar("mesh"))))
        .with(at(Webhook::defaults_with::<Pod>(Sidecar("log"))))
        .handle("/pods", async |request: AdmissionRequest| {
            let mut object = request.object.clone().unwrap();
            let count = object["spec"]["containers"].as_array().unwrap().len();
            object["metadata"]["labels"] = json!({"containers": count.to_string()});
            AdmissionResponse::patched(&request, &object).with_warning("counted")
        })
        .build()
        .unwrap();
    let (pod, review) = pod_review("CREATE", &json!([{"name": "web", "image": "web"}]));
    let answer = ask(&server, "/pods", &review).await;
    let patched = patched(&pod, &answer);
    assert_eq!(patched["metadata"]["labels"]["containers"], "3");
    assert_eq!(patched["spec"]["containers"][0]["name"], "log");
    assert_eq!(patched["spec"]["containers"][1]["name"], "mesh");
    assert_eq!(answer["warnings"], json!(["counted"]));
}

#[tokio::test]
async fn the_first_that_refuses_ends_the_sequence() {
    let at = |name| Webhook::validates_with::<Pod>(Sidecar(name)).path("/pods");
    let server = WebhookServer::builder("shop").in_process();
    let server = server.with(at("web")).with(at("mesh")).with(at("log")).build().unwrap();
    let (_, review) = pod_review("CREATE", &json!([{"name": "web", "image": "web"}]));
    let answer = ask(&server, "/pods", &review).await;
    assert_eq!(answer["status"]["message"], "mesh is missing");
    assert_eq!(answer["warnings"], json!(["web is there"]));
}

#[tokio::test]
async fn a_validator_that_fails_says_nothing_against_the_object() {
    let server = WebhookServer::builder("shop").in_process();
    let server = server.validates_with::<Pod>(Sidecar("mesh")).build().unwrap();
    let (_, review) = pod_review("UPDATE", &json!([{"name": "web"}]));
    let answer = ask(&server, "/validate--v1-pod", &review).await;
    assert_eq!(answer["status"]["code"], 500);
    assert_eq!(answer["status"]["message"], "the registry is down");
}

#[tokio::test]
async fn a_raw_handler_answers_whatever_it_likes() {
    let server = WebhookServer::builder("shop")
        .in_process()
        .handle("/audit", async |request: AdmissionRequest| {
            let key = request.key().to_string();
            AdmissionResponse::allowed().with_audit_annotation("about", key)
        })
        .build()
        .unwrap();
    let answer = ask(&server, "/audit", &review("CREATE", &json!({}), &Value::Null)).await;
    assert_eq!(answer["auditAnnotations"], json!({"about": "default/corner"}));
}
