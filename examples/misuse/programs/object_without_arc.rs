//! The object is shared with the cache, so it comes in an `Arc`.

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::prelude::*;

async fn reconcile(_: ConfigMap, _: Context<ConfigMap>) -> Result<Next> {
    Ok(Next::Settled)
}

fn main() {
    Controller::of::<ConfigMap>().reconcile(reconcile);
}
