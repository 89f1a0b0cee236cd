//! Reconciles move between threads.

use std::rc::Rc;

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::prelude::*;

async fn reconcile(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Next> {
    let count = Rc::new(1);
    ctx.update(&*map).await?;
    drop(count);
    Ok(Next::Settled)
}

fn main() {
    Controller::of::<ConfigMap>().reconcile(reconcile);
}
