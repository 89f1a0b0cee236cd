//! A reconciler says when it wants to be called again.

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::prelude::*;

async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<()> {
    Ok(())
}

fn main() {
    Controller::of::<ConfigMap>().reconcile(reconcile);
}
