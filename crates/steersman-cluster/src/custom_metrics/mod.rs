//! Metrics that somebody makes up: `custom.metrics.k8s.io`, which tells metrics of objects, and
//! `external.metrics.k8s.io`, which tells those from outside the cluster, for autoscalers.
//!
//! Where they come from in other clusters, an adapter of a monitoring system serves them; here they
//! are [measurements] of a test, or annotations of the objects. Nothing of it is to be seen before
//! there is an APIService that leads to [`SERVICE`]: whoever measures something makes them, and
//! whoever installs an adapter has it asked instead. [`question`] says what is asked, [`answer`] what
//! is told.

mod answer;
mod measurements;
mod question;

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use steersman_apiserver::request::{Query, segments};
use steersman_apiserver::status::{Result, Status};
use steersman_apiserver::{ApiServer, Resident, ResponseBody};

use crate::missing::create_missing;
use answer::Answering;
pub(crate) use measurements::Measurements;
pub use measurements::{Measured, Metrics};
use question::Question;

/// The Service, in `kube-system`, that APIServices lead to. There need not be any.
pub(crate) const SERVICE: &str = "scripted-metrics";

const CUSTOM: &str = "custom.metrics.k8s.io";
const EXTERNAL: &str = "external.metrics.k8s.io";

/// What is served, each version with its priority, as adapters' manifests have them.
const VERSIONS: [(&str, &str, i64); 3] =
    [(CUSTOM, "v1beta1", 100), (CUSTOM, "v1beta2", 200), (EXTERNAL, "v1beta1", 100)];

/// The server. The cluster holds it; who passes requests on to it does not, for it needs that one
/// itself.
pub(crate) struct CustomMetrics {
    measurements: Measurements,
    /// Who is asked about objects.
    api: OnceLock<ApiServer>,
}

impl CustomMetrics {
    /// A server of what is measured.
    pub(crate) fn new(measurements: Measurements) -> Arc<Self> {
        Arc::new(Self { measurements, api: OnceLock::new() })
    }

    /// The same for the API server that passes requests on to it.
    pub(crate) fn resident(self: &Arc<Self>) -> Resident {
        let server = Arc::downgrade(self);
        Resident::on_demand(SERVICE, move |request| serve(server.clone(), request))
    }

    /// Reads objects from an API server.
    pub(crate) fn read_from(&self, api: &ApiServer) {
        let _ = self.api.set(api.for_own_parts());
    }

    async fn answer(&self, request: &Request<Bytes>) -> Result<Value> {
        if request.method() != Method::GET {
            return Err(Status::method_not_allowed());
        }
        let api = self.api.get().ok_or_else(|| Status::unavailable("the cluster starts"))?;
        let path = segments(request.uri().path())?;
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let question = Question::of(&path, &query)?;
        let client = kube::Client::new(api.clone(), "default");
        Answering { client, measurements: &self.measurements }.answer(&question).await
    }
}

fn serve(
    server: Weak<CustomMetrics>,
    request: Request<Bytes>,
) -> BoxFuture<'static, Response<ResponseBody>> {
    Box::pin(async move {
        let answer = match server.upgrade() {
            Some(server) => server.answer(&request).await,
            None => Err(Status::unavailable("the cluster has stopped")),
        };
        let (code, document) = match answer {
            Ok(document) => (200, document),
            Err(status) => (status.code, status.to_value()),
        };
        let mut response = Response::new(ResponseBody::from(document.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    })
}

/// Has the measurements served from now on, unless somebody else serves such metrics.
async fn install(client: &kube::Client) -> kube::Result<()> {
    for (group, version, priority) in VERSIONS {
        let object = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group, "version": version, "insecureSkipTLSVerify": true,
                "groupPriorityMinimum": 100, "versionPriority": priority,
                "service": {"name": SERVICE, "namespace": "kube-system"},
            },
        });
        create_missing(client, "/apis/apiregistration.k8s.io/v1/apiservices", &object).await?;
    }
    Ok(())
}
