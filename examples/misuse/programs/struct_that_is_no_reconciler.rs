//! A struct must implement the trait.

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::prelude::*;

struct Reconciles;

fn main() {
    Controller::of::<ConfigMap>().reconcile(Reconciles);
}
