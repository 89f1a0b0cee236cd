//! A cleanup has the signature of a reconciler, but need not return `Next`.

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::prelude::*;

async fn clean_up(_: Arc<ConfigMap>) -> Result<()> {
    Ok(())
}

fn main() {
    let _ = Controller::of::<ConfigMap>().cleanup("example.com/bucket", clean_up);
}
