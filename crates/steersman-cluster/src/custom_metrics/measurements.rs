//! What is measured, as whoever runs the cluster says, such as a test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steersman_values::{LabelSelector, Quantity};

use super::install;

/// Labels by their keys.
pub(super) type Labels = BTreeMap<String, String>;

/// What is measured. Clones share it, and it can change at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measurements(Arc<Mutex<Vec<Measurement>>>);

/// The value of a metric.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) metric: String,
    pub(super) of: Subject,
    pub(super) value: Quantity,
}

/// What something is measured of. What is not said, may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    /// With its group, such as `ingresses.networking.k8s.io`; nothing is outside the cluster.
    pub(super) resource: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    /// What labels the objects have.
    labels: Labels,
    /// The labels of the metric itself.
    pub(super) series: Labels,
}

/// An object whose metric is wanted.
pub(super) struct Wanted<'a> {
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) labels: &'a Labels,
}

impl Measurements {
    /// The same, which from here on change without these.
    pub(crate) fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// The value of a metric of an object, by what was said last.
    pub(super) fn of_object(
        &self,
        metric: &str,
        object: &Wanted<'_>,
        series: &LabelSelector,
    ) -> Option<Quantity> {
        let all = self.lock();
        let mut fitting = all.iter().rev().filter(|found| {
            found.metric == metric && found.of.fits(object) && selects(series, &found.of.series)
        });
        fitting.next().map(|found| found.value)
    }

    /// The values of a metric from outside the cluster that a namespace sees, with their labels.
    pub(super) fn external(
        &self,
        metric: &str,
        namespace: &str,
        series: &LabelSelector,
    ) -> Vec<(Labels, Quantity)> {
        let all = self.lock();
        let fitting = all.iter().filter(|found| {
            let visible = found.of.namespace.as_deref().is_none_or(|wanted| wanted == namespace);
            let ours = found.of.resource.is_none() && found.metric == metric && visible;
            ours && selects(series, &found.of.series)
        });
        fitting.map(|found| (found.of.series.clone(), found.value)).collect()
    }

    /// Everything that is measured.
    pub(super) fn all(&self) -> Vec<Measurement> {
        self.lock().clone()
    }

    fn set(&self, metric: &str, of: Subject, value: Option<Quantity>) {
        let mut all = self.lock();
        all.retain(|found| found.metric != metric || found.of != of);
        all.extend(value.map(|value| Measurement { metric: metric.to_owned(), of, value }));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Measurement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a selector fits labels.
pub(super) fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    selector.matches(|key| labels.get(key).map(String::as_str))
}

impl Subject {
    fn fits(&self, object: &Wanted<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        self.resource.as_deref() == Some(object.resource)
            && is(&self.namespace, object.namespace)
            && is(&self.name, object.name)
            && self.labels.iter().all(|(key, value)| object.labels.get(key) == Some(value))
    }
}

/// What can be measured; see [`Cluster::metrics`](crate::Cluster::metrics).
#[must_use = "nothing is measured before a value is set"]
pub struct Metrics {
    pub(crate) measurements: Measurements,
    pub(crate) client: kube::Client,
}

impl Metrics {
    /// Something of Pods: all, unless more is said.
    pub fn pods(self) -> Measured {
        self.of(Subject { resource: Some("pods".into()), ..Subject::default() })
    }

    /// Something of an object of this resource, such as `services` or `ingresses.networking.k8s.io`.
    /// What is measured of a namespace itself is of `namespaces`.
    pub fn object(self, resource: &str, name: &str) -> Measured {
        let (resource, name) = (Some(resource.to_owned()), Some(name.to_owned()));
        self.of(Subject { resource, name, ..Subject::default() })
    }

    /// Something from outside the cluster.
    pub fn external(self) -> Measured {
        self.of(Subject::default())
    }

    fn of(self, subject: Subject) -> Measured {
        Measured { metrics: self, subject }
    }
}

/// What something is measured of.
#[must_use = "nothing is measured before a value is set"]
pub struct Measured {
    metrics: Metrics,
    subject: Subject,
}

impl Measured {
    /// In this namespace; otherwise in any.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.subject.namespace = Some(namespace.to_owned());
        self
    }

    /// The object of this name.
    pub fn named(mut self, name: &str) -> Self {
        self.subject.name = Some(name.to_owned());
        self
    }

    /// Objects with this label.
    pub fn labelled(mut self, key: &str, value: &str) -> Self {
        self.subject.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The metric itself has this label, by which autoscalers may select it.
    pub fn series(mut self, key: &str, value: &str) -> Self {
        self.subject.series.insert(key.to_owned(), value.to_owned());
        self
    }

    /// From now on a metric has this value, such as `30` or `500m`.
    ///
    /// # Panics
    ///
    /// If it is no quantity.
    pub async fn set(self, metric: &str, value: &str) -> kube::Result<()> {
        let value = match Quantity::parse(value) {
            Ok(value) => value,
            Err(error) => panic!("{value:?}: {error}"),
        };
        let Metrics { measurements, client } = self.metrics;
        measurements.set(metric, self.subject, Some(value));
        install(&client).await
    }

    /// From now on a metric that was [set](Self::set) in the same words has no value.
    pub fn unset(self, metric: &str) {
        self.metrics.measurements.set(metric, self.subject, None);
    }
}
