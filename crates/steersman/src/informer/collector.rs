//! The metrics of informers, read off them when somebody asks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, EncodeMetric, LabelSetEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::status::{InformerStatus, Observed};
use crate::metrics::{Families, Metrics};

/// The informers that are counted, as long as they live. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Informers {
    all: Arc<Mutex<Vec<Counted>>>,
}

struct Counted {
    /// The cluster that it watches; the manager's own has no name.
    cluster: Arc<str>,
    informer: Weak<Observed>,
}

/// What is said of each kind: name, help, whether it only grows, and the value of one informer.
/// Several informers of a kind are summed, since a series must not come twice.
type Row = (&'static str, &'static str, MetricType, fn(&InformerStatus) -> u64);

/// Not summed: the one that is furthest behind counts.
const VERSION: (&str, &str) = (
    "informer_store_resource_version",
    "Everything up to this version is visible in the caches of the kind",
);

const ROWS: &[Row] = &[
    ("informer_objects", "Objects in the cache", MetricType::Gauge, |s| s.objects as u64),
    (
        "informer_bytes",
        "Bytes of the objects in the cache: compressed, or as JSON if they are held typed",
        MetricType::Gauge,
        |s| s.bytes,
    ),
    (
        "informer_queued_items",
        "Deltas that wait to be put into the cache",
        MetricType::Gauge,
        |s| s.queued as u64,
    ),
    (
        "informer_handler_queued_items",
        "Events that wait for the slowest handler",
        MetricType::Gauge,
        |s| s.handlers.iter().map(|handler| handler.queued as u64).max().unwrap_or(0),
    ),
    (
        "informer_handler_merged_events",
        "Events merged into others because a handler was slow",
        MetricType::Counter,
        |s| s.merged,
    ),
    (
        "informer_undecodable_objects",
        "Objects that could not be decoded and were skipped",
        MetricType::Counter,
        |s| s.undecodable,
    ),
    ("reflector_lists", "Lists begun", MetricType::Counter, |s| s.counts.lists + s.counts.streams),
    ("reflector_watches", "Watches begun", MetricType::Counter, |s| s.counts.watches),
    (
        "reflector_stalled",
        "Whether the watch has been silent for too long",
        MetricType::Gauge,
        |s| u64::from(s.stalled),
    ),
];

impl Families for Informers {
    fn register(registry: &mut Registry) -> Self {
        let informers = Self::default();
        registry.register_collector(Box::new(informers.clone()));
        informers
    }
}

impl Metrics {
    /// How every informer is doing that reports here.
    pub fn informers(&self) -> Vec<InformerStatus> {
        self.families::<Informers>().statuses()
    }
}

impl Informers {
    /// Counts an informer of a cluster for as long as it lives.
    pub(super) fn add(&self, cluster: &Arc<str>, informer: Weak<Observed>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.informer.strong_count() > 0);
        all.push(Counted { cluster: Arc::clone(cluster), informer });
    }

    /// How every informer is doing.
    fn statuses(&self) -> Vec<InformerStatus> {
        let informers: Vec<(Arc<str>, Arc<Observed>)> = {
            let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            let living = |it: &Counted| Some((Arc::clone(&it.cluster), it.informer.upgrade()?));
            all.iter().filter_map(living).collect()
        };
        let status = |(cluster, informer): (Arc<str>, Arc<Observed>)| InformerStatus {
            cluster: cluster.to_string(),
            ..informer.status()
        };
        informers.into_iter().map(status).collect()
    }
}

/// What tells the series of a family apart.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    cluster: String,
    group: String,
    name: String,
}

impl Labels {
    fn of(status: &InformerStatus) -> Self {
        Self {
            cluster: status.cluster.clone(),
            group: status.group.clone(),
            name: status.kind.clone(),
        }
    }
}

impl EncodeLabelSet for Labels {
    /// Who has one cluster does not see the label.
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        let labels = [("name", &self.name), ("group", &self.group), ("cluster", &self.cluster)];
        let shown = labels.iter().filter(|(label, value)| *label != "cluster" || !value.is_empty());
        for (label, value) in shown {
            (*label, value.as_str()).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Informers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Informers")
    }
}

impl Collector for Informers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut kinds: BTreeMap<Labels, Vec<InformerStatus>> = BTreeMap::new();
        for status in self.statuses() {
            kinds.entry(Labels::of(&status)).or_default().push(status);
        }
        for (name, help, kind, value) in ROWS {
            let mut metric = encoder.encode_descriptor(name, help, None, *kind)?;
            for (labels, statuses) in &kinds {
                let family = metric.encode_family(labels)?;
                let sum = statuses.iter().map(value).sum();
                match kind {
                    MetricType::Counter => ConstCounter::<u64>::new(sum).encode(family)?,
                    _ => ConstGauge::<u64>::new(sum).encode(family)?,
                }
            }
        }
        let mut metric =
            encoder.encode_descriptor(VERSION.0, VERSION.1, None, MetricType::Gauge)?;
        for (labels, statuses) in &kinds {
            let last = statuses.iter().map(|status| status.version).min().unwrap_or(0);
            ConstGauge::<u64>::new(last).encode(metric.encode_family(labels)?)?;
        }
        Ok(())
    }
}
