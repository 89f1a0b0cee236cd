//! The three APIs that tell metrics: of Pods' resources, of objects, and from outside.
//!
//! Nobody need serve them; who does is registered with the API server. Everything is told in
//! thousandths.

use std::collections::BTreeMap;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, ObjectMeta, Time};
use serde::Deserialize;
use steersman::{Client, Error, Result};

use super::quantities::milli;
use super::request::{Call, encoded};
use super::target::Kinds;

const RESOURCE: &str = "metrics.k8s.io";
const CUSTOM: &str = "custom.metrics.k8s.io";
const EXTERNAL: &str = "external.metrics.k8s.io";

/// The versions of the API for metrics of objects that are understood.
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// Over how long something was measured that does not say it.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// What was measured of one Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodMetric {
    pub(super) timestamp: Timestamp,
    pub(super) window: SignedDuration,
    pub(super) value: i64,
}

/// What was measured of Pods, by their names.
pub(super) type PodMetrics = BTreeMap<String, PodMetric>;

/// The metrics of a namespace.
pub(super) struct MetricsApi<'a> {
    pub(super) client: &'a Client,
    pub(super) kinds: &'a Kinds,
    pub(super) namespace: &'a str,
}

/// A resource that Pods use, or one container of each.
#[derive(Clone, Copy)]
pub(super) struct Resource<'a> {
    pub(super) name: &'a str,
    pub(super) container: Option<&'a str>,
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Deserialize)]
struct MeasuredPod {
    metadata: ObjectMeta,
    timestamp: Time,
    #[serde(default)]
    window: String,
    #[serde(default)]
    containers: Vec<MeasuredContainer>,
}

#[derive(Deserialize)]
struct MeasuredContainer {
    name: String,
    #[serde(default)]
    usage: BTreeMap<String, Quantity>,
}

/// A metric of an object. What the newer version calls `windowSeconds` is `window` in the older.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetricValue {
    #[serde(default)]
    described_object: Described,
    timestamp: Time,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Quantity,
}

#[derive(Default, Deserialize)]
struct Described {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct ExternalValue {
    value: Quantity,
}

impl MetricsApi<'_> {
    /// How much the selected Pods use of a resource.
    pub(super) async fn resource(
        &self,
        resource: Resource<'_>,
        selector: &str,
    ) -> Result<PodMetrics> {
        let call = Call {
            method: Method::GET,
            path: format!("/apis/{RESOURCE}/v1beta1/namespaces/{}/pods", self.namespace),
            query: &[("labelSelector", selector)],
            resource: "pods.metrics.k8s.io",
            name: "",
        };
        let measured: List<MeasuredPod> =
            call.send(self.client, Vec::new()).await.map_err(|error| {
                Error::message(format!(
                    "unable to fetch metrics from resource metrics API: {error}"
                ))
            })?;
        if measured.items.is_empty() {
            return Err(Error::message("no metrics returned from resource metrics API"));
        }
        Ok(measured.items.iter().filter_map(|pod| of_pod(pod, resource)).collect())
    }

    /// What a metric is for each of the selected Pods.
    pub(super) async fn pods(
        &self,
        metric: &str,
        selector: &str,
        metric_selector: &str,
    ) -> Result<PodMetrics> {
        let query = [("labelSelector", selector), ("metricLabelSelector", metric_selector)];
        let values =
            self.custom("pods", "*", metric, &query).await.map_err(|error| custom_error(&error))?;
        if values.is_empty() {
            return Err(Error::message("no metrics returned from custom metrics API"));
        }
        let of_pod = |value: MetricValue| {
            let metric = PodMetric {
                timestamp: value.timestamp.0,
                window: value.window_seconds.map_or(WINDOW, SignedDuration::from_secs),
                value: milli(&value.value),
            };
            (value.described_object.name, metric)
        };
        Ok(values.into_iter().map(of_pod).collect())
    }

    /// What a metric is for an object, or for the namespace itself.
    pub(super) async fn object(
        &self,
        metric: &str,
        object: &CrossVersionObjectReference,
        metric_selector: &str,
    ) -> Result<i64> {
        let value = self.object_value(metric, object, metric_selector).await;
        value.map_err(|error| custom_error(&error))
    }

    async fn object_value(
        &self,
        metric: &str,
        object: &CrossVersionObjectReference,
        metric_selector: &str,
    ) -> Result<i64> {
        let version = object.api_version.as_deref().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let query = [("metricLabelSelector", metric_selector)];
        let values = if object.kind == "Namespace" && group.is_empty() {
            self.custom("metrics", metric, "", &query).await?
        } else {
            let served = self.kinds.find(self.client, group, &object.kind).await;
            let served = served.map_err(|error| {
                let kind = qualified(&object.kind, group);
                Error::message(format!("unable to map kind {kind} to resource: {error}"))
            })?;
            let resource = qualified(&served.api.plural, group);
            self.custom(&resource, &object.name, metric, &query).await?
        };
        match values.as_slice() {
            [value] => Ok(milli(&value.value)),
            values => Err(Error::message(format!(
                "the custom metrics API server returned {} results when we asked for exactly one",
                values.len()
            ))),
        }
    }

    /// Asks the API for metrics of objects, in the version that its server prefers.
    async fn custom(
        &self,
        resource: &str,
        name: &str,
        metric: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<MetricValue>> {
        let version = self.custom_version().await?;
        let parts = [resource, name, metric];
        let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| encoded(part));
        let path = parts.collect::<Vec<_>>().join("/");
        let call = Call {
            method: Method::GET,
            path: format!("/apis/{CUSTOM}/{version}/namespaces/{}/{path}", self.namespace),
            query,
            resource: &qualified(resource, CUSTOM),
            name,
        };
        let values: List<MetricValue> = call.send(self.client, Vec::new()).await?;
        Ok(values.items)
    }

    async fn custom_version(&self) -> Result<&'static str> {
        let path = format!("/apis/{CUSTOM}");
        let call = Call { method: Method::GET, path, query: &[], resource: CUSTOM, name: "" };
        let group: Result<APIGroup> = call.send(self.client, Vec::new()).await;
        let group = group
            .map_err(|_| Error::message(format!("no custom metrics API ({CUSTOM}) registered")))?;
        let preferred = group.preferred_version.iter();
        let served = preferred.chain(&group.versions).map(|version| version.version.as_str());
        let known = |version: &str| CUSTOM_VERSIONS.into_iter().find(|known| *known == version);
        let mut known = served.filter_map(known);
        known.next().ok_or_else(|| Error::message("no known available metric versions found"))
    }

    /// All values of a metric from outside the cluster.
    pub(super) async fn external(&self, metric: &str, selector: &str) -> Result<Vec<i64>> {
        let call = Call {
            method: Method::GET,
            path: format!(
                "/apis/{EXTERNAL}/v1beta1/namespaces/{}/{}",
                self.namespace,
                encoded(metric)
            ),
            query: &[("labelSelector", selector)],
            resource: &qualified(metric, EXTERNAL),
            name: "",
        };
        let values: List<ExternalValue> =
            call.send(self.client, Vec::new()).await.map_err(|error| {
                Error::message(format!(
                    "unable to fetch metrics from external metrics API: {error}"
                ))
            })?;
        if values.items.is_empty() {
            return Err(Error::message("no metrics returned from external metrics API"));
        }
        Ok(values.items.iter().map(|item| milli(&item.value)).collect())
    }
}

fn custom_error(error: &Error) -> Error {
    Error::message(format!("unable to fetch metrics from custom metrics API: {error}"))
}

/// A name with its group, if that is not the core group.
fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// What a Pod uses of a resource, if that is known of all containers it is asked of.
fn of_pod(pod: &MeasuredPod, resource: Resource<'_>) -> Option<(String, PodMetric)> {
    let usage = |container: &MeasuredContainer| container.usage.get(resource.name).map(milli);
    let value = match resource.container {
        Some(name) => usage(pod.containers.iter().find(|container| container.name == name)?)?,
        None if pod.containers.is_empty() => return None,
        None => pod.containers.iter().map(usage).sum::<Option<i64>>()?,
    };
    let window = pod.window.parse().unwrap_or(SignedDuration::ZERO);
    let metric = PodMetric { timestamp: pod.timestamp.0, window, value };
    Some((pod.metadata.name.clone()?, metric))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &serde_json::Value) -> MeasuredPod {
        serde_json::from_value(json!({
            "metadata": {"name": "web"}, "timestamp": "2026-01-01T00:00:00Z", "window": "1m30s",
            "containers": containers,
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_uses_what_all_of_its_containers_use() {
        let cpu = |n: &str, usage: &str| json!({"name": n, "usage": {"cpu": usage}});
        let bare = json!({"name": "bare", "usage": {}});
        let all = Resource { name: "cpu", container: None };
        let one = |container| Resource { name: "cpu", container: Some(container) };
        for (containers, resource, expected) in [
            (json!([cpu("a", "250m"), cpu("b", "1")]), all, Some(1250)),
            (json!([cpu("a", "123456789n")]), all, Some(124)),
            (json!([cpu("a", "250m"), bare]), all, None),
            (json!([]), all, None),
            (json!([cpu("a", "250m"), bare]), one("a"), Some(250)),
            (json!([cpu("a", "250m"), bare]), one("bare"), None),
            (json!([cpu("a", "250m")]), one("c"), None),
        ] {
            let metric = of_pod(&pod(&containers), resource).map(|(_, metric)| metric);
            assert_eq!(metric.as_ref().map(|metric| metric.value), expected, "{containers}");
            let window = SignedDuration::from_secs(90);
            assert!(metric.is_none_or(|metric| metric.window == window));
        }
    }
}
