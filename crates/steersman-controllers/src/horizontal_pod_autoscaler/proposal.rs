//! What one metric of an autoscaler proposes, or why it cannot tell.

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricSource, ContainerResourceMetricStatus, ExternalMetricSource,
    ExternalMetricStatus, MetricIdentifier, MetricSpec, MetricStatus, MetricTarget,
    MetricValueStatus, ObjectMetricSource, ObjectMetricStatus, PodsMetricSource, PodsMetricStatus,
    ResourceMetricSource, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use steersman::{Error, Result};

use super::metrics_api::{MetricsApi, Resource};
use super::quantities::{milli, of_milli, of_resource};
use super::replicas::{Count, Situation};

/// How many replicas a metric asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// The metric, as people are told of it.
    pub(super) metric: String,
    pub(super) status: MetricStatus,
}

/// Why a metric proposes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unable {
    /// In one word, in the condition and the Event.
    pub(super) reason: &'static str,
    /// What the condition and the Event say.
    pub(super) cause: String,
    /// What is said where several metrics are summed up.
    pub(super) error: String,
}

/// Why a metric of an unknown type proposes nothing.
pub(super) const UNKNOWN_TYPE: &str = "InvalidMetricSourceType";

/// Reads a metric and compares it to its target.
pub(super) struct Proposer<'a> {
    pub(super) api: MetricsApi<'a>,
    /// Which Pods are the target's.
    pub(super) selector: String,
    pub(super) situation: Situation<'a>,
}

/// A target value of a kind that its metric cannot have.
fn no_target(what: &str, first: &str, second: &str) -> Error {
    let why =
        format!("invalid {what} metric source: neither {first} target nor {second} target was set");
    Error::message(why)
}

impl Proposer<'_> {
    /// What a metric proposes.
    pub(super) async fn propose(&self, spec: &MetricSpec) -> Result<Proposal, Unable> {
        if let Some(source) = &spec.resource {
            return self.resource(source).await;
        }
        if let Some(source) = &spec.container_resource {
            return self.container_resource(source).await;
        }
        if let Some(source) = &spec.pods {
            return self.pods(source).await;
        }
        if let Some(source) = &spec.object {
            return self.object(source).await;
        }
        if let Some(source) = &spec.external {
            return self.external(source).await;
        }
        let error = format!("unknown metric source type {:?}", spec.type_);
        Err(Unable { reason: UNKNOWN_TYPE, cause: error.clone(), error })
    }

    async fn resource(&self, source: &ResourceMetricSource) -> Result<Proposal, Unable> {
        let resource = Resource { name: &source.name, container: None };
        let (replicas, metric, current) =
            self.of_resource(resource, &source.target).await.map_err(|cause| Unable {
                reason: "FailedGetResourceMetric",
                error: format!("failed to get {} resource metric value: {cause}", source.name),
                cause: cause.to_string(),
            })?;
        let name = source.name.clone();
        let status = MetricStatus {
            resource: Some(ResourceMetricStatus { name, current }),
            ..of_type("Resource")
        };
        Ok(Proposal { replicas, metric, status })
    }

    async fn container_resource(
        &self,
        source: &ContainerResourceMetricSource,
    ) -> Result<Proposal, Unable> {
        let ContainerResourceMetricSource { container, name, target } = source;
        let resource = Resource { name, container: Some(container) };
        let (replicas, metric, current) =
            self.of_resource(resource, target).await.map_err(|cause| Unable {
                reason: "FailedGetContainerResourceMetric",
                error: format!("failed to get {container} container metric value: {cause}"),
                cause: cause.to_string(),
            })?;
        let (container, name) = (container.clone(), name.clone());
        let status = MetricStatus {
            container_resource: Some(ContainerResourceMetricStatus { container, current, name }),
            ..of_type("ContainerResource")
        };
        Ok(Proposal { replicas, metric, status })
    }

    async fn of_resource(
        &self,
        resource: Resource<'_>,
        target: &MetricTarget,
    ) -> Result<(i32, String, MetricValueStatus)> {
        let name = resource.name;
        let (what, metric) = match (&target.average_value, resource.container) {
            (Some(_), _) => ("usage", "resource"),
            (None, None) => ("utilization", "resource utilization (percentage of request)"),
            (None, Some(_)) => {
                ("utilization", "container resource utilization (percentage of request)")
            }
        };
        if target.average_value.is_none() && target.average_utilization.is_none() {
            return Err(no_target(
                "resource",
                "an average utilization",
                "an average value (usage)",
            ));
        }
        let count = self.count_resource(resource, target).await;
        let count = count
            .map_err(|error| Error::message(format!("failed to get {name} {what}: {error}")))?;
        let current = MetricValueStatus {
            average_value: Some(of_resource(name, count.usage)),
            average_utilization: count.utilization,
            value: None,
        };
        Ok((count.replicas, format!("{name} {metric}"), current))
    }

    async fn count_resource(&self, resource: Resource<'_>, target: &MetricTarget) -> Result<Count> {
        let metrics = self.api.resource(resource, &self.selector).await.map_err(|error| {
            let name = resource.name;
            Error::message(format!("unable to get metrics for resource {name}: {error}"))
        })?;
        match (&target.average_value, target.average_utilization) {
            (Some(value), _) => self.situation.for_average(metrics, resource.name, milli(value)),
            (None, percent) => {
                self.situation.for_utilization(metrics, resource, percent.unwrap_or_default())
            }
        }
    }

    async fn pods(&self, source: &PodsMetricSource) -> Result<Proposal, Unable> {
        let count = self.count_pods(source).await.map_err(|cause| Unable {
            reason: "FailedGetPodsMetric",
            error: format!("failed to get pods metric value: {cause}"),
            cause: cause.to_string(),
        })?;
        let metric = source.metric.clone();
        let status = MetricStatus {
            pods: Some(PodsMetricStatus { current: an_average(count.usage), metric }),
            ..of_type("Pods")
        };
        let metric = format!("pods metric {}", source.metric.name);
        Ok(Proposal { replicas: count.replicas, metric, status })
    }

    async fn count_pods(&self, source: &PodsMetricSource) -> Result<Count> {
        let name = &source.metric.name;
        let of_metric = selector_text(source.metric.selector.as_ref())?;
        let metrics = self.api.pods(name, &self.selector, &of_metric).await;
        let metrics = metrics
            .map_err(|error| Error::message(format!("unable to get metric {name}: {error}")))?;
        let target = source.target.average_value.as_ref().map_or(0, milli);
        self.situation.for_average(metrics, "", target)
    }

    async fn object(&self, source: &ObjectMetricSource) -> Result<Proposal, Unable> {
        let MetricIdentifier { name, selector } = &source.metric;
        let target = &source.target;
        let per_pod = target.type_ == "AverageValue" && target.average_value.is_some();
        let count = self.count_object(source).await.map_err(|cause| {
            let inner = if per_pod {
                format!("failed to get {name} object metric: ")
            } else {
                String::new()
            };
            Unable {
                reason: "FailedGetObjectMetric",
                error: format!("failed to get object metric value: {inner}{cause}"),
                cause: cause.to_string(),
            }
        })?;
        let current = if per_pod { an_average(count.usage) } else { a_value(count.usage) };
        let object = source.described_object.clone();
        let metric = match per_pod {
            // Kubernetes calls it so.
            true => format!("external metric {name}({})", go_text(selector.as_ref())),
            false => format!("{} metric {name}", object.kind),
        };
        let status =
            ObjectMetricStatus { current, described_object: object, metric: source.metric.clone() };
        let status = MetricStatus { object: Some(status), ..of_type("Object") };
        Ok(Proposal { replicas: count.replicas, metric, status })
    }

    async fn count_object(&self, source: &ObjectMetricSource) -> Result<Count> {
        let ObjectMetricSource { described_object, metric, target } = source;
        let of_metric = selector_text(metric.selector.as_ref())?;
        let usage = async || {
            let usage = self.api.object(&metric.name, described_object, &of_metric).await;
            usage.map_err(|error| {
                // In this order, however odd: people and programs know it so.
                let (kind, name) = (&described_object.kind, &described_object.name);
                let (metric, namespace) = (&metric.name, self.api.namespace);
                Error::message(format!(
                    "unable to get metric {metric}: {kind} on {namespace} {name}/{error}"
                ))
            })
        };
        match (target.type_.as_str(), &target.value, &target.average_value) {
            ("Value", Some(value), _) => self.situation.for_value(usage().await?, milli(value)),
            ("AverageValue", _, Some(value)) => {
                Ok(self.situation.for_value_per_pod(usage().await?, milli(value)))
            }
            _ => Err(no_target("object", "a value", "an average value")),
        }
    }

    async fn external(&self, source: &ExternalMetricSource) -> Result<Proposal, Unable> {
        let MetricIdentifier { name, selector } = &source.metric;
        let per_pod = source.target.average_value.is_some();
        let count = self.count_external(source).await.map_err(|cause| {
            let inner = match (per_pod, source.target.value.is_some()) {
                (true, _) => format!("failed to get {name} external metric: "),
                (false, true) => format!("failed to get external metric {name}: "),
                (false, false) => String::new(),
            };
            Unable {
                reason: "FailedGetExternalMetric",
                error: format!("failed to get {name} external metric value: {inner}{cause}"),
                cause: cause.to_string(),
            }
        })?;
        let current = if per_pod { an_average(count.usage) } else { a_value(count.usage) };
        let status = ExternalMetricStatus { current, metric: source.metric.clone() };
        let status = MetricStatus { external: Some(status), ..of_type("External") };
        let metric = format!("external metric {name}({})", go_text(selector.as_ref()));
        Ok(Proposal { replicas: count.replicas, metric, status })
    }

    async fn count_external(&self, source: &ExternalMetricSource) -> Result<Count> {
        let ExternalMetricSource { metric, target } = source;
        let selector = selector_text(metric.selector.as_ref())?;
        let usage = async || {
            let values = self.api.external(&metric.name, &selector).await.map_err(|error| {
                let (namespace, name) = (self.api.namespace, &metric.name);
                let selector = go_text(metric.selector.as_ref());
                Error::message(format!(
                    "unable to get external metric {namespace}/{name}/{selector}: {error}"
                ))
            })?;
            Ok::<_, Error>(values.into_iter().fold(0, i64::saturating_add))
        };
        match (&target.average_value, &target.value) {
            (Some(value), _) => Ok(self.situation.for_value_per_pod(usage().await?, milli(value))),
            (None, Some(value)) => self.situation.for_value(usage().await?, milli(value)),
            (None, None) => Err(no_target("external", "a value", "an average value")),
        }
    }
}

/// The status of a metric of a type, of which nothing more is known.
fn of_type(type_: &str) -> MetricStatus {
    MetricStatus { type_: type_.to_owned(), ..MetricStatus::default() }
}

fn an_average(usage: i64) -> MetricValueStatus {
    MetricValueStatus { average_value: Some(of_milli(usage)), ..MetricValueStatus::default() }
}

fn a_value(usage: i64) -> MetricValueStatus {
    MetricValueStatus { value: Some(of_milli(usage)), ..MetricValueStatus::default() }
}

/// A selector of metrics as a parameter; empty if there is none.
fn selector_text(selector: Option<&LabelSelector>) -> Result<String> {
    let Some(selector) = selector else { return Ok(String::new()) };
    let selector = Selector::try_from(selector.clone())?;
    Ok(if selector.selects_all() { String::new() } else { selector.to_string() })
}

/// A selector as Go prints it, which is what stands in Events of Kubernetes.
fn go_text(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions = selector.match_expressions.iter().flatten();
    let expressions: String = expressions
        .map(|it| {
            let values = it.values.as_deref().unwrap_or_default().join(" ");
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
                it.key, it.operator
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_reads_as_in_events_of_kubernetes() {
        assert_eq!(go_text(None), "nil");
        let selector = json!({
            "matchLabels": {"queue": "mail"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}],
        });
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        assert_eq!(
            go_text(Some(&selector)),
            "&LabelSelector{MatchLabels:map[string]string{queue: mail,},\
             MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:a,Operator:In,Values:[x y],},},}"
        );
        assert_eq!(selector_text(Some(&selector)).unwrap(), "queue=mail,a in (x,y)");
    }
}
