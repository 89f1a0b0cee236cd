//! The servers behind the API server that belong to the cluster.

use std::sync::Arc;

use steersman_apiserver::{ApiServer, Resident};
use tokio_util::sync::CancellationToken;

use crate::builder::Builder;
use crate::custom_metrics::CustomMetrics;
use crate::metrics_server::{self, MetricsServer};

/// Held by the cluster, for those who pass requests on to them do not.
pub(crate) struct Residents {
    metrics_server: Option<Arc<MetricsServer>>,
    custom_metrics: Arc<CustomMetrics>,
}

impl Residents {
    /// Those of a cluster.
    pub(crate) fn new(settings: &Builder, shutdown: &CancellationToken) -> Self {
        let measures = settings.controllers.measure();
        let metrics_server =
            measures.then(|| MetricsServer::new(settings.scripts.clone(), shutdown.clone()));
        let custom_metrics = CustomMetrics::new(settings.measurements.clone());
        Self { metrics_server, custom_metrics }
    }

    /// The same for the API server that passes requests on to them.
    pub(crate) fn all(&self) -> Vec<Resident> {
        let measured = self.metrics_server.iter().map(MetricsServer::resident);
        measured.chain([self.custom_metrics.resident()]).collect()
    }

    /// Lets them read from an API server.
    pub(crate) fn read_from(&self, api: &ApiServer) {
        if let Some(metrics_server) = &self.metrics_server {
            metrics_server.read_from(api);
        }
        self.custom_metrics.read_from(api);
    }

    /// Lets users read what they tell, as far as others would have them do.
    pub(crate) async fn grant(&self, client: &kube::Client) {
        if self.metrics_server.is_some() {
            metrics_server::grant(client).await;
        }
    }
}
