//! What metrics-server does in other clusters: `metrics.k8s.io/v1beta1`, which tells what Pods and
//! nodes use, for `kubectl top` and autoscalers.
//!
//! It is a server behind the API server, as there, and a [resident](Resident) of its process: until
//! somebody asks it for the first time, it costs one APIService. Whoever installs a metrics-server
//! writes that APIService anew, and is asked instead.

mod definitions;
mod role;

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::Value;
use steersman::clock;
use steersman_apiserver::status::{Details, Named, Result, Status};
use steersman_apiserver::{ApiServer, Computed, Extension, Reading, Resident, ResponseBody};
use steersman_node::{ResourceMetrics, Scripts};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use definitions::{GROUP, definitions};
pub(crate) use role::grant;

/// The server. The cluster holds it; who passes requests on to it does not, for it needs that one
/// itself.
pub(crate) struct MetricsServer {
    scripts: Scripts,
    shutdown: CancellationToken,
    /// Who is asked about Pods and nodes.
    api: OnceLock<ApiServer>,
    /// Started when first asked.
    server: OnceCell<ApiServer>,
}

impl MetricsServer {
    /// A server of what Pods use that do what scripts say.
    pub(crate) fn new(scripts: Scripts, shutdown: CancellationToken) -> Arc<Self> {
        let (api, server) = (OnceLock::new(), OnceCell::new());
        Arc::new(Self { scripts, shutdown, api, server })
    }

    /// The same for the API server that passes requests on to it.
    pub(crate) fn resident(self: &Arc<Self>) -> Resident {
        let server = Arc::downgrade(self);
        Resident::new("metrics", definitions(), move |request| answer(server.clone(), request))
    }

    /// Reads of Pods and nodes from an API server.
    pub(crate) fn read_from(&self, api: &ApiServer) {
        let _ = self.api.set(api.for_own_parts());
    }

    async fn start(&self) -> Result<ApiServer> {
        let api = self.api.get().ok_or_else(|| Status::unavailable("the cluster starts"))?;
        let client = kube::Client::new(api.clone(), "default");
        let metrics = ResourceMetrics::new(client, self.scripts.clone());
        let [pods, nodes] = definitions();
        Extension::new(Arc::new(clock::now))
            .computing(pods.clone(), Pods(metrics.clone()))
            .computing(nodes.clone(), Nodes(metrics))
            .allowing_all()
            .ending_with(self.shutdown.clone())
            .start()
            .await
    }
}

/// Answers a request, for which the server is started if it is the first.
fn answer(
    server: Weak<MetricsServer>,
    request: Request<Bytes>,
) -> BoxFuture<'static, Response<ResponseBody>> {
    Box::pin(async move {
        let Some(server) = server.upgrade() else { return failed("the cluster has stopped") };
        match server.server.get_or_try_init(|| server.start()).await {
            Ok(api) => {
                let answer = api.clone().oneshot(request.map(Full::new)).await;
                answer.unwrap_or_else(|never| match never {})
            }
            Err(status) => failed(&status.message),
        }
    })
}

fn failed(why: &str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(why.as_bytes().to_vec()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// PodMetrics.
struct Pods(ResourceMetrics);

impl Computed for Pods {
    fn list<'a>(&'a self, reading: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>>> {
        Box::pin(async move {
            let found = self.0.pods(reading.namespace, reading.label_selector).await;
            found.map_err(refused)
        })
    }

    fn get<'a>(
        &'a self,
        reading: Reading<'a>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>>> {
        Box::pin(async move {
            let found = self.0.pod(reading.namespace, name).await.map_err(refused)?;
            let name = format!("{}/{name}", reading.namespace);
            found.ok_or_else(|| unmeasured("podmetrics", &name)).map(Some)
        })
    }

    fn in_table(&self, object: Value) -> Value {
        ResourceMetrics::in_table(object)
    }
}

/// NodeMetrics.
struct Nodes(ResourceMetrics);

impl Computed for Nodes {
    fn list<'a>(&'a self, reading: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>>> {
        Box::pin(async move { self.0.nodes(reading.label_selector).await.map_err(refused) })
    }

    fn get<'a>(&'a self, _: Reading<'a>, name: &'a str) -> BoxFuture<'a, Result<Option<Value>>> {
        Box::pin(async move {
            let found = self.0.node(name).await.map_err(refused)?;
            found.ok_or_else(|| unmeasured("nodemetrics", name)).map(Some)
        })
    }
}

/// There is such an object, and nothing is known of what it uses: in metrics-server's words.
fn unmeasured(resource: &str, name: &str) -> Status {
    Status::not_found(Named { group: GROUP, resource, name })
}

/// What the API server answered, or why it did not.
fn refused(error: kube::Error) -> Status {
    let kube::Error::Api(answer) = error else { return Status::internal(&error.to_string()) };
    let details = answer.details.map(|told| {
        Box::new(Details {
            name: told.name,
            group: told.group,
            kind: told.kind,
            ..Details::default()
        })
    });
    Status {
        code: answer.code,
        reason: answer.reason.into(),
        message: answer.message,
        details,
        continue_token: None,
    }
}
