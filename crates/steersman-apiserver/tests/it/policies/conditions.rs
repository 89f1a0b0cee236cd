//! Match conditions of policies.

use serde_json::json;

use super::{judged, why};
use crate::api::{CONFIG_MAPS, config_map};

#[tokio::test(start_paused = true)]
async fn a_policy_applies_where_all_conditions_hold() {
    let fields = json!({
        "matchConditions": [
            {"name": "mine", "expression": "object.metadata.name.startsWith('mine')"},
            {"name": "jane", "expression": "request.userInfo.username != 'jane'"},
        ],
        "validations": [{"expression": "false"}],
    });
    let api = judged(&fields, &json!({})).await;
    api.config_map("yours", &json!({})).await;
    let mine = config_map("mine", &json!({}));
    api.post(CONFIG_MAPS, &mine).await.refused(422);
    api.acting_as("jane", &["system:masters"]).post(CONFIG_MAPS, &mine).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_fails_counts_unless_another_does_not_hold() {
    let conditions = json!([
        {"name": "fails", "expression": "object.data.nothing == 'x'"},
        {"name": "fails-too", "expression": "object.data.neither == 'x'"},
        {"name": "mine", "expression": "object.metadata.name == 'mine'"},
        {"name": "no-namespace", "expression": "namespaceObject == null"},
    ]);
    let mut fields = json!({
        "matchConditions": conditions, "validations": [{"expression": "false", "message": "no"}],
    });
    let data = json!({"k": "v"});
    let api = judged(&fields, &json!({})).await;
    api.config_map("yours", &data).await;
    let refused = api.post(CONFIG_MAPS, &config_map("mine", &data)).await;
    assert_eq!(
        why(&refused),
        "[expression 'object.data.nothing == 'x'' resulted in error: no such key: nothing, \
         expression 'object.data.neither == 'x'' resulted in error: no such key: neither]"
    );
    fields["failurePolicy"] = "Ignore".into();
    let api = judged(&fields, &json!({})).await;
    api.config_map("mine", &data).await;
}
