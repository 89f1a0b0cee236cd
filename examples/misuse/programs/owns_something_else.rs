//! Only objects can be owned.

use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};
use steersman::prelude::*;

fn main() {
    let _ = Controller::of::<ConfigMap>().owns::<PodSpec>();
}
