//! The parts of a control plane.

use std::sync::Arc;

use serde_json::json;
use steersman_store::StoreError;

use crate::api::{Api, names};
use crate::faulty::Faulty;

const COMPONENTS: &str = "/api/v1/componentstatuses";

#[tokio::test(start_paused = true)]
async fn scheduler_controllers_and_store_are_told() {
    let api = Api::start().await;
    let list = api.get(COMPONENTS).await.ok();
    assert_eq!(list["kind"], "ComponentStatusList");
    assert_eq!(list["metadata"], json!({}));
    assert_eq!(names(&list), ["scheduler", "controller-manager", "etcd-0"]);
    let healthy = json!([{"type": "Healthy", "status": "True", "message": "ok"}]);
    for name in ["scheduler", "controller-manager", "etcd-0"] {
        let one = api.get(&format!("{COMPONENTS}/{name}")).await.ok();
        assert_eq!(
            (&one["kind"], &one["metadata"]),
            (&json!("ComponentStatus"), &json!({"name": name}))
        );
        assert_eq!(one["conditions"], healthy);
    }
    let status = api.get(&format!("{COMPONENTS}/none")).await.refused(404);
    assert_eq!(status["message"], "componentstatus \"none\" not found");
    let selected = api.get(&format!("{COMPONENTS}?fieldSelector=metadata.name=etcd-0")).await.ok();
    assert_eq!(names(&selected), ["etcd-0"]);
    let table = api.get_as(COMPONENTS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    assert_eq!(table["rows"][0]["cells"], json!(["scheduler", "Healthy", "ok", ""]));
    api.delete(&format!("{COMPONENTS}/etcd-0")).await.refused(405);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_unhealthy() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    store.fail(Some(StoreError::Unavailable { reason: "no member answers".to_owned() }));
    let one = api.get(&format!("{COMPONENTS}/etcd-0")).await.ok();
    assert_eq!(one["conditions"][0]["status"], "False");
    assert!(one["conditions"][0]["message"].as_str().unwrap().contains("no member answers"));
}
