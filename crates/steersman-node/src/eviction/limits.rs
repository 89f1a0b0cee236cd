//! Pods that have more on the node's disks than they may.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use steersman_values::Quantity;

use super::admission::is_critical;
use super::choice::{AT_ONCE, Eviction};
use super::requests::{amount, limit};
use super::signal::Disks;
use super::usage::{PodUsage, Usages};

const STORAGE: &str = "ephemeral-storage";

/// The Pods that go because of it, at once.
pub(crate) fn over_their_limits<'a>(
    pods: &[&'a Pod],
    usages: &Usages,
    disks: Disks,
) -> Vec<Eviction<'a>> {
    let eviction = |pod: &&'a Pod| {
        let usage = usages.get(pod.metadata.uid.as_ref()?)?;
        let message = volume(pod, usage)
            .or_else(|| whole(pod, usage))
            .or_else(|| container(pod, usage, disks))?;
        let (grace_seconds, annotations) = (AT_ONCE, BTreeMap::new());
        let evicted = Eviction { pod, grace_seconds, message, annotations, disrupted: false };
        (!is_critical(pod)).then_some(evicted)
    };
    pods.iter().filter_map(eviction).collect()
}

/// An empty volume that has grown beyond its limit.
fn volume(pod: &Pod, usage: &PodUsage) -> Option<String> {
    pod.spec.as_ref()?.volumes.iter().flatten().find_map(|volume| {
        let limit = volume.empty_dir.as_ref()?.size_limit.as_ref()?;
        let limit = Quantity::parse(&limit.0).ok().filter(|limit| limit.is_positive())?;
        let (name, used) = (&volume.name, usage.volumes.get(&volume.name)?.bytes);
        let text = limit.to_string();
        exceeds(used, limit)
            .then(|| format!("Usage of EmptyDir volume {name:?} exceeds the limit {text:?}. "))
    })
}

/// All that the Pod has together.
fn whole(pod: &Pod, usage: &PodUsage) -> Option<String> {
    let limit = limit(pod, STORAGE)?;
    exceeds(usage.ephemeral_storage, limit).then(|| {
        format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")
    })
}

/// What a container has by itself.
fn container(pod: &Pod, usage: &PodUsage, disks: Disks) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    usage.containers.iter().find_map(|used| {
        let container = spec.containers.iter().find(|container| container.name == used.name)?;
        let limits = container.resources.as_ref()?.limits.as_ref();
        let limit = amount(limits, STORAGE).filter(|limit| *limit != Quantity::ZERO)?;
        // What it wrote on the disk of images does not count here.
        let root = used.root.filter(|_| disks == Disks::One).unwrap_or_default();
        let bytes = used.logs.unwrap_or_default().bytes.saturating_add(root.bytes);
        let (name, text) = (&used.name, limit.to_string());
        exceeds(bytes, limit).then(|| {
            format!("Container {name} exceeded its local ephemeral storage limit {text:?}. ")
        })
    })
}

fn exceeds(used: i64, limit: Quantity) -> bool {
    Quantity::parse(&used.to_string()).is_ok_and(|used| used > limit)
}
