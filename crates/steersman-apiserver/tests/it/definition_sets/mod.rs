//! [Sets of definitions](sets) as large projects have them are installed, and objects of their kinds
//! created. How long that takes is measured by `cargo xtask bench definitions`.

mod sets;

use serde_json::Value;

use crate::api::Api;
use crate::crd::{DEFINITIONS, condition};

/// Installs definitions one after the other, and creates an object of each kind.
async fn install(definitions: &[Value]) {
    let api = Api::start().await;
    for definition in definitions {
        let created = api.post(DEFINITIONS, definition).await.ok();
        assert_eq!(condition(&created, "Established")["status"], "True");
        let collection = sets::collection(definition);
        api.get(&collection).await.ok();
        let created = api.post(&collection, &sets::instance(definition)).await.ok();
        assert_eq!(created["spec"]["field4"], "Always", "{collection}");
    }
}

#[tokio::test]
async fn a_set_with_long_descriptions_is_installed() {
    install(&sets::certificates()).await;
}

#[tokio::test]
async fn a_set_with_very_large_schemas_is_installed() {
    install(&sets::monitoring()).await;
}

#[tokio::test]
async fn a_set_with_hundreds_of_rules_in_several_versions_is_installed() {
    install(&sets::gateways()).await;
}

#[tokio::test]
async fn a_set_of_a_hundred_small_definitions_is_installed() {
    install(&sets::cloud(100)).await;
}

#[tokio::test]
async fn a_definition_is_served_once_its_creation_is_answered() {
    let api = Api::start().await;
    for definition in sets::small(20) {
        api.post(DEFINITIONS, &definition).await.ok();
        api.get(&sets::collection(&definition)).await.ok();
    }
}
