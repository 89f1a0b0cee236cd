//! The token cleaner: deletes bootstrap tokens that have expired. Off unless somebody asks for it, as
//! in Kubernetes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Preconditions};
use steersman::{Context, Controller, Next, ObjectKey, Reconciler, Result, clock};

use crate::bootstrap_token::{self, Life};

/// What it is called.
pub(crate) const NAME: &str = "token-cleaner-controller";

/// The token cleaner.
pub(crate) fn controller() -> Controller {
    Controller::of::<Secret>().named(NAME).only(bootstrap_token::is_token).reconcile(Cleaner)
}

struct Cleaner;

impl Reconciler<Secret> for Cleaner {
    async fn reconcile(&self, secret: Arc<Secret>, ctx: Context<Secret>) -> Result<Next> {
        match bootstrap_token::life(&secret, clock::now()) {
            Life::Endless => return Ok(Next::Settled),
            Life::Left(left) => return Ok(Next::After(left)),
            Life::Over => {}
        }
        let uid = secret.metadata.uid.clone();
        let preconditions = Preconditions { uid, resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match ctx.live().delete::<Secret>(ObjectKey::of(&*secret), &params).await {
            Ok(_) => Ok(Next::Settled),
            Err(error) if error.is_conflict() => Ok(Next::Settled),
            Err(error) => Err(error),
        }
    }
}
