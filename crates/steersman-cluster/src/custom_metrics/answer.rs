//! What is told of a metric: lists as adapters answer with, in the words of the library on which all
//! of them are built.
//!
//! What a [measurement](super::measurements) says counts more than the annotation
//! `steersman.dev/metric.NAME` of an object. Metrics from outside the cluster can be annotations
//! `steersman.dev/external-metric.NAME` of a namespace, which then sees them.

use std::collections::{BTreeMap, BTreeSet};

use http::Request;
use serde_json::{Value, json};
use steersman::clock;
use steersman_apiserver::status::{Result, Status};
use steersman_values::{LabelSelector, Quantity};

use super::measurements::{Labels, Measurements, Wanted, selects};
use super::question::{Objects, Question, Which};
use super::{CUSTOM, EXTERNAL};

const ANNOTATION: &str = "steersman.dev/metric.";
const EXTERNAL_ANNOTATION: &str = "steersman.dev/external-metric.";

/// Answers questions.
pub(super) struct Answering<'a> {
    pub(super) client: kube::Client,
    pub(super) measurements: &'a Measurements,
}

impl Answering<'_> {
    pub(super) async fn answer(&self, question: &Question) -> Result<Value> {
        match question {
            Question::Discovery { group, version } => Ok(self.discovery(group, version)),
            Question::Objects(asked) => self.objects(asked).await,
            Question::External { namespace, metric, series } => {
                self.external(namespace, metric, series).await
            }
        }
    }

    /// The metrics that were set. What annotations say is not looked for.
    fn discovery(&self, group: &str, version: &str) -> Value {
        let external = group == EXTERNAL;
        let kind = if external { "ExternalMetricValueList" } else { "MetricValueList" };
        let known = self.measurements.all().into_iter();
        let known = known.filter(|measured| measured.of.resource.is_none() == external);
        let names: BTreeSet<String> = known
            .map(|measured| match measured.of.resource {
                Some(resource) => format!("{resource}/{}", measured.metric),
                None => measured.metric,
            })
            .collect();
        let resource = |name: String| {
            let namespaced = !name.starts_with("namespaces/") && !name.starts_with("nodes/");
            json!({
                "name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
                "verbs": ["get"],
            })
        };
        json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": format!("{group}/{version}"),
            "resources": names.into_iter().map(resource).collect::<Vec<_>>(),
        })
    }

    async fn objects(&self, asked: &Objects) -> Result<Value> {
        let found = self.read(asked).await?;
        let items: Vec<Value> =
            found.iter().filter_map(|object| self.of_object(asked, object)).collect();
        if let (Which::Named(name), []) = (&asked.which, &items[..]) {
            let Objects { resource, metric, .. } = asked;
            return Err(not_found(format!(
                "the server could not find the metric {metric} for {resource} {name}"
            )));
        }
        Ok(list(&format!("{CUSTOM}/{}", asked.version), "MetricValueList", &items))
    }

    /// The metric of an object, if it has it.
    fn of_object(&self, asked: &Objects, object: &Value) -> Option<Value> {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let labels = strings(&metadata["labels"]);
        let wanted = Wanted {
            resource: &asked.resource,
            namespace: text("namespace"),
            name: text("name"),
            labels: &labels,
        };
        let measured = self.measurements.of_object(&asked.metric, &wanted, &asked.series);
        let value = measured.or_else(|| {
            let annotation = metadata["annotations"].get(format!("{ANNOTATION}{}", asked.metric));
            annotation.filter(|_| asked.series.is_empty()).and_then(quantity)
        })?;
        Some(metric_value(asked, object, value))
    }

    /// The objects that a metric is asked of.
    async fn read(&self, asked: &Objects) -> Result<Vec<Value>> {
        let (plural, group) = asked.resource.split_once('.').unwrap_or((&asked.resource, ""));
        let Some(base) = self.base(group).await? else { return Ok(Vec::new()) };
        let folder = match asked.namespace.as_str() {
            "" => format!("{base}/{plural}"),
            namespace => format!("{base}/namespaces/{namespace}/{plural}"),
        };
        match &asked.which {
            Which::Named(name) => {
                Ok(self.get(&format!("{folder}/{name}")).await?.into_iter().collect())
            }
            Which::Labelled(selector) => {
                let selector = LabelSelector::parse(selector)
                    .map_err(|error| Status::bad_request(error.to_string()))?;
                let Some(mut list) = self.get(&folder).await? else { return Ok(Vec::new()) };
                let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
                let type_ = json!({"kind": kind, "apiVersion": list["apiVersion"]});
                let Value::Array(items) = list["items"].take() else { return Ok(Vec::new()) };
                let selected = items
                    .into_iter()
                    .filter(|item| selects(&selector, &strings(&item["metadata"]["labels"])));
                // Items of a list do not say what they are.
                let typed = selected.map(|mut item| {
                    item["kind"] = type_["kind"].clone();
                    item["apiVersion"] = type_["apiVersion"].clone();
                    item
                });
                Ok(typed.collect())
            }
        }
    }

    /// Where the preferred version of a group is served.
    async fn base(&self, group: &str) -> Result<Option<String>> {
        if group.is_empty() {
            return Ok(Some("/api/v1".to_owned()));
        }
        let found = self.get(&format!("/apis/{group}")).await?;
        let preferred = found.map(|mut found| found["preferredVersion"]["groupVersion"].take());
        Ok(preferred.and_then(|version| Some(format!("/apis/{}", version.as_str()?))))
    }

    async fn get(&self, path: &str) -> Result<Option<Value>> {
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| Status::bad_request(error.to_string()))?;
        match self.client.request::<Value>(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Status::internal(&error.to_string())),
        }
    }

    async fn external(
        &self,
        namespace: &str,
        metric: &str,
        series: &LabelSelector,
    ) -> Result<Value> {
        let mut values = self.measurements.external(metric, namespace, series);
        if values.is_empty() && series.is_empty() {
            let found = self.get(&format!("/api/v1/namespaces/{namespace}")).await?;
            let key = format!("{EXTERNAL_ANNOTATION}{metric}");
            let annotated =
                found.and_then(|found| quantity(&found["metadata"]["annotations"][key]));
            values.extend(annotated.map(|value| (Labels::new(), value)));
        }
        let item = |(labels, value): (Labels, Quantity)| {
            json!({
                "metricName": metric, "metricLabels": labels, "timestamp": clock::now_time(),
                "value": value.to_string(),
            })
        };
        let items: Vec<Value> = values.into_iter().map(item).collect();
        Ok(list(&format!("{EXTERNAL}/v1beta1"), "ExternalMetricValueList", &items))
    }
}

/// The metric of an object in the form of the version.
fn metric_value(asked: &Objects, object: &Value, value: Quantity) -> Value {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    // The library puts group and version together so, whether or not there is a group.
    let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
    let mut described = json!({"kind": object["kind"], "name": object["metadata"]["name"]});
    if let Some(namespace) = object["metadata"]["namespace"].as_str() {
        described["namespace"] = namespace.into();
    }
    described["apiVersion"] = version.into();
    let mut item = json!({
        "describedObject": described, "timestamp": clock::now_time(), "value": value.to_string(),
    });
    if asked.version == "v1beta1" {
        item["metricName"] = asked.metric.as_str().into();
        item["selector"] = Value::Null;
    } else {
        item["metric"] = json!({"name": asked.metric, "selector": null});
    }
    item
}

fn list(api_version: &str, kind: &str, items: &[Value]) -> Value {
    json!({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items})
}

fn quantity(text: &Value) -> Option<Quantity> {
    Quantity::parse(text.as_str()?.trim()).ok()
}

fn strings(labels: &Value) -> Labels {
    let pairs = labels.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect::<BTreeMap<_, _>>()
}

fn not_found(message: String) -> Status {
    Status { code: 404, reason: "NotFound".into(), message, details: None, continue_token: None }
}
