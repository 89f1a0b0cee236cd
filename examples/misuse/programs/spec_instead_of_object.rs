//! The kind is the object, not what it asks for.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use steersman::prelude::*;

fn main() {
    Controller::of::<DeploymentSpec>();
}
