//! `rest_client_requests_total` and `rest_client_request_duration_seconds`: the requests of a client,
//! by code, method and host, and how long they took.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt};
use http::{Request, Response, Uri};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::Families;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Durations {
    verb: String,
    host: String,
}

/// Where the buckets of durations end, in seconds: client-go's.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

/// Counts the requests of a client: a layer for
/// [`kube::client::ClientBuilder::with_layer`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RequestCounter {
    requests: Family<Labels, Counter>,
    durations: Family<Durations, Histogram>,
    /// Of requests that name none: a client names it only below the layers that are put around it.
    host: Arc<str>,
}

impl Default for RequestCounter {
    fn default() -> Self {
        let durations = Family::new_with_constructor(histogram as fn() -> Histogram);
        Self { requests: Family::default(), durations, host: Arc::default() }
    }
}

impl RequestCounter {
    /// For a client of the server at this address: `.to(&config.cluster_url)`.
    #[must_use]
    pub fn to(self, server: &Uri) -> Self {
        Self { host: host(server).unwrap_or_default().into(), ..self }
    }
}

impl Families for RequestCounter {
    fn register(registry: &mut Registry) -> Self {
        let counter = Self::default();
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            counter.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host",
            counter.durations.clone(),
        );
        counter
    }
}

/// Host and port, as client-go writes them: without whoever logs in there.
fn host(uri: &Uri) -> Option<&str> {
    let authority = uri.authority()?.as_str();
    Some(authority.rsplit_once('@').map_or(authority, |(_, host)| host))
}

impl<S> Layer<S> for RequestCounter {
    type Service = CountRequests<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CountRequests { inner, counter: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct CountRequests<S> {
    inner: S,
    counter: RequestCounter,
}

impl<S, B, R> Service<Request<B>> for CountRequests<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let method = request.method().to_string();
        let host = host(request.uri()).unwrap_or(&self.counter.host).to_owned();
        let began = Instant::now();
        let answer = self.inner.call(request);
        let RequestCounter { requests, durations, .. } = self.counter.clone();
        async move {
            let answer = answer.await;
            let took = began.elapsed().as_secs_f64();
            let sort = Durations { verb: method.clone(), host: host.clone() };
            durations.get_or_create(&sort).observe(took);
            // What client-go calls a request that was not answered.
            let code =
                answer.as_ref().map_or_else(|_| "<error>".into(), |it| it.status().as_str().into());
            requests.get_or_create(&Labels { code, method, host }).inc();
            answer
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::ServiceExt;

    use crate::metrics::Metrics;

    use super::*;

    #[tokio::test]
    async fn requests_are_counted_by_code_method_and_host() {
        let metrics = Metrics::default();
        let refused = tower::service_fn(async |_: Request<()>| {
            Ok::<_, Infallible>(Response::builder().status(403).body(()).unwrap())
        });
        let mut service = metrics.request_layer().layer(refused);
        for _ in 0..2 {
            let request = Request::post("https://api.test:6443/api/v1/pods").body(()).unwrap();
            service.ready().await.unwrap().call(request).await.unwrap();
        }
        let text = metrics.render_text();
        let wanted =
            "rest_client_requests_total{code=\"403\",method=\"POST\",host=\"api.test:6443\"} 2";
        assert!(text.contains(wanted), "{text}");
        let wanted =
            "rest_client_request_duration_seconds_count{verb=\"POST\",host=\"api.test:6443\"} 2";
        assert!(text.contains(wanted), "{text}");
    }

    #[tokio::test]
    async fn a_client_counts_for_the_host_that_it_was_made_for() {
        // Nobody listens at this port.
        let config = kube::Config::new(Uri::from_static("http://user@127.0.0.1:1"));
        let manager = crate::Manager::from_config(config).unwrap();
        manager.client().kube().apiserver_version().await.unwrap_err();
        let text = manager.metrics().render_text();
        let wanted = "{code=\"<error>\",method=\"GET\",host=\"127.0.0.1:1\"} 1";
        assert!(text.contains(wanted), "{text}");
    }
}
