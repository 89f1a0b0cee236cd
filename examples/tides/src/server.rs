//! The server, and what the cluster has to know of it.

use std::time::Duration;

use futures::FutureExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, CustomResourceExt};
use serde_json::{Value, json};
use steersman_apiserver::authentication::{Authentication, FrontProxy};
use steersman_apiserver::pki::Pki;
use steersman_apiserver::status::Status;
use steersman_apiserver::{ApiServer, Clock, Extension, Reviewer, listen};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::tide::{Tide, Tides};

/// The server, not yet told how its users are known.
pub fn extension(clock: Clock) -> Extension {
    let definition = serde_json::to_value(Tide::crd()).expect("a definition is a document");
    Extension::new(clock.clone()).computing(definition, Tides::by(clock))
}

/// The server in the process of the cluster, which says directly who asks.
pub async fn in_process(cluster: ApiServer, clock: Clock) -> Result<ApiServer, Status> {
    extension(clock).reviewed_by(cluster).start().await
}

/// Lets a cluster answer who may do what, and whom tokens stand for.
pub fn reviews(client: Client) -> impl Reviewer {
    move |review: Value| {
        let client = client.clone();
        async move {
            let path = match review["kind"].as_str() {
                Some("TokenReview") => "/apis/authentication.k8s.io/v1/tokenreviews",
                _ => "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            };
            let request = Request::post(path).header("content-type", "application/json");
            let request = request.body(review.to_string().into_bytes());
            let request = request.map_err(|error| error.to_string())?;
            client.request(request).await.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// Serves tides on HTTPS until told to end. The cluster in front is known by what it says of itself
/// in the ConfigMap `extension-apiserver-authentication`.
pub async fn serve(
    client: Client,
    clock: Clock,
    (listener, pki): (TcpListener, Pki),
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let map = serde_json::to_value(maps.get("extension-apiserver-authentication").await?)?;
    let front_proxy = Some(FrontProxy::from_config_map(&map)?);
    let server = extension(clock)
        .authenticating(Authentication { front_proxy, ..Authentication::default() })
        .reviewed_by(reviews(client))
        .ending_with(shutdown.clone())
        .start()
        .await?;
    listen::serve(server, listener, pki.server_tls()?, shutdown, Duration::from_secs(1)).await;
    Ok(())
}

/// Tells a cluster on this machine that tides are served at a port of it, by a service without
/// endpoints of its own; in a cluster with a network, a Deployment and a Service do that.
pub async fn register(client: &Client, port: u16, authority: &str) -> kube::Result<()> {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "tides"},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
    });
    let api_service = api_service("default", "tides", port, Some(authority));
    for (path, object) in [
        ("/api/v1/namespaces/default/services/tides", service),
        ("/apis/apiregistration.k8s.io/v1/apiservices/v1.sea.steersman.dev", api_service),
    ] {
        let path = format!("{path}?fieldManager=tides&force=true");
        let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
        let request = request.body(object.to_string().into_bytes());
        client.request::<Value>(request.map_err(kube::Error::HttpError)?).await?;
    }
    Ok(())
}

/// The APIService that leads to a service of the cluster, whose certificate this authority vouches
/// for; in the process of the cluster there is none.
pub fn api_service(namespace: &str, service: &str, port: u16, authority: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.sea.steersman.dev"},
        "spec": {
            "group": "sea.steersman.dev", "version": "v1",
            "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"namespace": namespace, "name": service, "port": port},
        },
    });
    match authority {
        None => object["spec"]["insecureSkipTLSVerify"] = true.into(),
        Some(pem) => {
            let bundle = k8s_openapi::ByteString(pem.as_bytes().to_vec());
            object["spec"]["caBundle"] = json!(bundle);
        }
    }
    object
}
