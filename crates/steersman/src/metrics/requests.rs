//! `rest_client_requests_total`: the requests of a client, by code, method and host.

use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt};
use http::{Request, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{Layer, Service};

use super::Families;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    code: String,
    method: String,
    host: String,
}

/// Counts the requests of a client: a layer for
/// [`kube::client::ClientBuilder::with_layer`]. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct RequestCounter(Family<Labels, Counter>);

impl Families for RequestCounter {
    fn register(registry: &mut Registry) -> Self {
        let counter = Self::default();
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            counter.0.clone(),
        );
        counter
    }
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
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let answer = self.inner.call(request);
        let counter = self.counter.0.clone();
        async move {
            let answer = answer.await;
            // What client-go calls a request that was not answered.
            let code =
                answer.as_ref().map_or_else(|_| "<error>".into(), |it| it.status().as_str().into());
            counter.get_or_create(&Labels { code, method, host }).inc();
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
    }
}
