//! A controller without a reconciler is not one yet.

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::prelude::*;

fn manage(manager: Manager) -> Manager {
    manager.with(Controller::of::<ConfigMap>())
}

fn main() {}
