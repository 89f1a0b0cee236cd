//! How many claims and volumes there are, under Kubernetes' names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use steersman::ObjectKey;
use steersman::informer::Event;
use steersman::metrics::Families;
use steersman::volumes::{claim_class, volume_class};

type Labels = Vec<(&'static str, String)>;

/// How many claims and volumes there are. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Collector {
    bound_claims: Family<Labels, Gauge>,
    unbound_claims: Family<Labels, Gauge>,
    bound_volumes: Family<Labels, Gauge>,
    unbound_volumes: Family<Labels, Gauge>,
    volumes: Family<Labels, Gauge>,
    /// Where each claim, and each volume, is counted.
    counted: Arc<Mutex<HashMap<ObjectKey, Vec<Place>>>>,
}

/// Where an object is counted.
type Place = (Family<Labels, Gauge>, Labels);

impl Families for Collector {
    fn register(registry: &mut Registry) -> Self {
        let collector = Self::default();
        let registry = registry.sub_registry_with_prefix("pv_collector");
        for (name, help, family) in [
            (
                "bound_pvc_count",
                "Gauge measuring number of persistent volume claim currently bound",
                &collector.bound_claims,
            ),
            (
                "unbound_pvc_count",
                "Gauge measuring number of persistent volume claim currently unbound",
                &collector.unbound_claims,
            ),
            (
                "bound_pv_count",
                "Gauge measuring number of persistent volume currently bound",
                &collector.bound_volumes,
            ),
            (
                "unbound_pv_count",
                "Gauge measuring number of persistent volume currently unbound",
                &collector.unbound_volumes,
            ),
            (
                "total_pv_count",
                "Gauge measuring total number of persistent volumes",
                &collector.volumes,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
        collector
    }
}

impl Collector {
    /// Takes a change of a claim into account.
    pub(super) fn claim(&self, event: &Event<PersistentVolumeClaim>) {
        let claim = match event {
            Event::Deleted { .. } => None,
            _ => event.object().object(),
        };
        let places = claim.map(|claim| {
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            let family = match phase {
                Some("Bound") => &self.bound_claims,
                _ => &self.unbound_claims,
            };
            let spec = claim.spec.as_ref();
            let attributes = spec.and_then(|spec| spec.volume_attributes_class_name.clone());
            let labels = vec![
                ("namespace", claim.metadata.namespace.clone().unwrap_or_default()),
                ("storage_class", claim_class(&claim).to_owned()),
                ("volume_attributes_class", attributes.unwrap_or_default()),
            ];
            vec![(family.clone(), labels)]
        });
        self.count(event.object().key(), places.unwrap_or_default());
    }

    /// Takes a change of a volume into account.
    pub(super) fn volume(&self, event: &Event<PersistentVolume>) {
        let volume = match event {
            Event::Deleted { .. } => None,
            _ => event.object().object(),
        };
        let places = volume.map(|volume| {
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            let family = match phase {
                Some("Bound") => &self.bound_volumes,
                _ => &self.unbound_volumes,
            };
            let mode = volume.spec.as_ref().and_then(|spec| spec.volume_mode.clone());
            let kind = vec![
                ("plugin_name", plugin(&volume)),
                ("volume_mode", mode.unwrap_or_else(|| "Filesystem".into())),
            ];
            let class = vec![("storage_class", volume_class(&volume).to_owned())];
            vec![(family.clone(), class), (self.volumes.clone(), kind)]
        });
        self.count(event.object().key(), places.unwrap_or_default());
    }

    /// Counts an object here, and no longer where it was. What nobody is in is not told of.
    fn count(&self, key: &ObjectKey, places: Vec<Place>) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (family, labels) in &places {
            family.get_or_create(labels).inc();
        }
        let before = match places.is_empty() {
            true => counted.remove(key),
            false => counted.insert(key.clone(), places),
        };
        for (family, labels) in before.into_iter().flatten() {
            let left = family.get_or_create(&labels).dec() - 1;
            if left == 0 {
                family.remove(&labels);
            }
        }
    }
}

/// How Kubernetes calls the kind of a volume.
fn plugin(volume: &PersistentVolume) -> String {
    let Some(spec) = &volume.spec else { return "N/A".into() };
    if let Some(csi) = &spec.csi {
        return format!("kubernetes.io/csi:{}", csi.driver);
    }
    let kinds = [
        (spec.host_path.is_some(), "kubernetes.io/host-path"),
        (spec.nfs.is_some(), "kubernetes.io/nfs"),
        (spec.local.is_some(), "kubernetes.io/local-volume"),
        (spec.iscsi.is_some(), "kubernetes.io/iscsi"),
        (spec.fc.is_some(), "kubernetes.io/fc"),
    ];
    let found = kinds.into_iter().find(|(is_it, _)| *is_it);
    found.map_or("N/A", |(_, name)| name).to_owned()
}
