//! Annotations of nodes that mean something, all of them replaced by fields long ago.

use super::taints;
use crate::rules::at::{At, Errors};
use crate::rules::go_json::{self, Shape};

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// The mistakes in the annotations of a node.
pub(super) fn validate(node: &At<'_, '_>, errors: &mut Errors) {
    let annotations = node.at("metadata.annotations");
    let given = |key: &str| annotations.value[key].as_str().filter(|text| !text.is_empty());
    if let Some(text) = given(TAINTS) {
        match go_json::read(text, Shape::Objects("core.Taint"), "[]core.Taint") {
            Ok(list) => taints(&At::new(&list, &format!("metadata.annotations.{TAINTS}")), errors),
            Err(why) => errors.push(annotations.invalid_value(TAINTS, &why)),
        }
    }
    if let Some(text) = given(AVOIDED_PODS) {
        match go_json::read(text, Shape::Object, "v1.AvoidPods") {
            Ok(pods) => {
                let list = &pods["preferAvoidPods"];
                let path = format!("metadata.annotations.{AVOIDED_PODS}");
                At::new(list, &path).items().for_each(|entry| avoided(&entry, errors));
            }
            Err(why) => {
                errors.push(annotations.named("AvoidPods").invalid_value(AVOIDED_PODS, &why));
            }
        }
    }
}

/// Pods are told apart by what controls them.
fn avoided(entry: &At<'_, '_>, errors: &mut Errors) {
    let controller = &entry.value["podSignature"]["podController"];
    if controller.is_null() {
        errors.push(entry.named("PodSignature").required(""));
    } else if controller["controller"] != true {
        let place = entry.named("PodSignature.PodController.Controller");
        errors.push(place.invalid_value(false, "must point to a controller"));
    }
}
