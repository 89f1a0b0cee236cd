//! The root CA publisher: every active namespace has a ConfigMap `kube-root-ca.crt` with the
//! certificates by which a Pod knows the API server.
//!
//! If somebody deletes or changes it, it comes back. No client shows which certificates those
//! are, so the controller is told when it is built.

mod metrics;
mod plan;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use steersman::{Context, Controller, Manager, Metrics, Next, ObjectKey, Reconciler, Result};
use tokio::time::Instant;

use crate::namespace::refuses_content;
use metrics::PublisherMetrics;
use plan::NAME;

/// The root CA publisher, with these certificates in PEM.
pub(crate) fn controller(certificates: &str, metrics: &Metrics) -> Controller {
    Controller::of::<Namespace>()
        .named("root-ca-certificate-publisher-controller")
        .only(|namespace| namespace.metadata.deletion_timestamp.is_none())
        .watches(namespace_of)
        .concurrency(4)
        .reconcile(Publisher { certificates: certificates.into(), metrics: metrics.families() })
}

/// Keeps all ConfigMaps but these out of the cache.
pub(crate) fn restrict_cache(manager: Manager) -> Manager {
    manager.cache::<ConfigMap>(|cache| cache.fields(format!("metadata.name={NAME}")))
}

/// The namespace whose ConfigMap this is.
fn namespace_of(map: &ConfigMap) -> Option<ObjectKey> {
    let meta = &map.metadata;
    let namespace = meta.namespace.as_deref()?;
    (meta.name.as_deref() == Some(NAME)).then(|| ObjectKey::named(namespace))
}

struct Publisher {
    certificates: Arc<str>,
    metrics: PublisherMetrics,
}

impl Reconciler<Namespace> for Publisher {
    async fn reconcile(&self, namespace: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Next> {
        let started = Instant::now();
        let published = self.publish(&namespace, &ctx).await;
        self.metrics.synced(&published, started.elapsed());
        match published {
            // Somebody was faster: the cache will show it.
            Err(error) if error.is_already_exists() || error.is_conflict() => Ok(Next::Settled),
            published => published.map(|()| Next::Settled),
        }
    }
}

impl Publisher {
    async fn publish(&self, namespace: &Namespace, ctx: &Context<Namespace>) -> Result<()> {
        let name = namespace.metadata.name.as_deref().unwrap_or_default();
        let key = ObjectKey::namespaced(name, NAME);
        // The namespace contains it but does not own it, so it is written past the context.
        let written = match ctx.cache::<ConfigMap>()?.get(&key) {
            None => ctx.live().create(&plan::published(name, &self.certificates)).await,
            Some(map) => match plan::corrected(&map, &self.certificates) {
                Some(map) => ctx.live().update(&map).await,
                None => return Ok(()),
            },
        };
        match written {
            Err(error) if refuses_content(&error) => Ok(()),
            written => written.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_map_of_certificates_wakes_its_namespace() {
        let mut map = ConfigMap::default();
        map.metadata.namespace = Some("team".into());
        map.metadata.name = Some(NAME.into());
        assert_eq!(namespace_of(&map), Some(ObjectKey::named("team")));
        map.metadata.name = Some("settings".into());
        assert_eq!(namespace_of(&map), None);
    }
}
