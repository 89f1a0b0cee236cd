//! The manifests for kubectl say the same as the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use steersman_examples::app_service::AppService;

#[test]
fn the_definition_for_kubectl_is_the_one_that_the_type_derives() {
    let text = include_str!("../../manifests/app-service-crd.yaml");
    let written: CustomResourceDefinition = serde_saphyr::from_str(text).unwrap();
    assert_eq!(written, AppService::crd(), "write it anew with the derived one");
}
