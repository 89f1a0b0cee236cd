//! The bootstrap signer: signs the kubeconfig in the ConfigMap `cluster-info` of `kube-public` with
//! every bootstrap token that may, so that a machine which knows nothing but a token can tell
//! whether it talks to the right cluster. Off unless somebody asks for it, as in Kubernetes.

mod plan;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use steersman::{Context, Controller, Next, ObjectKey, Reconciler, Result, clock};

use crate::bootstrap_token::{self, CLUSTER_INFO, PUBLIC};

/// What it is called.
pub(crate) const NAME: &str = "bootstrap-signer-controller";

/// The bootstrap signer.
pub(crate) fn controller() -> Controller {
    Controller::of::<ConfigMap>()
        .named(NAME)
        .only(|map| ObjectKey::of(map) == key())
        .watches(|secret: &Secret| bootstrap_token::is_token(secret).then(key))
        .reconcile(Signer)
}

fn key() -> ObjectKey {
    ObjectKey::namespaced(PUBLIC, CLUSTER_INFO)
}

struct Signer;

impl Reconciler<ConfigMap> for Signer {
    async fn reconcile(&self, map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Next> {
        let secrets = ctx.cache::<Secret>()?.list_namespace("kube-system");
        let secrets = secrets.iter().filter(|secret| bootstrap_token::is_token(secret));
        let now = clock::now();
        let tokens = secrets.filter_map(|secret| bootstrap_token::signing(secret, now)).collect();
        let Some(signed) = plan::signed(&map, &tokens) else { return Ok(Next::Settled) };
        match ctx.live().update(&signed).await {
            Ok(_) => Ok(Next::Settled),
            // Somebody was faster: the cache will show it.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Settled),
            Err(error) => Err(error),
        }
    }
}
