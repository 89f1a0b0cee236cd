//! The plug-ins: each knows one reason for or against a node, or does one thing for a Pod.
//!
//! To add one, write its file and name it in [`DEFAULTS`], where the order and the weights are those of
//! Kubernetes, and where the configuration makes plug-ins by name.

mod allocations;
mod chosen_volumes;
mod consumed;
mod default_binder;
mod default_preemption;
mod device_selectors;
mod dynamic_resources;
mod handle;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources;
mod node_unschedulable;
mod normalize;
mod pod;
mod pod_topology_spread;
mod priority_sort;
mod scheduling_gates;
mod taint_toleration;
#[cfg(test)]
mod tests;
mod under_way;
mod volumes;

pub(crate) use default_binder::DefaultBinder;
pub(crate) use default_preemption::{DefaultPreemption, best};
pub(crate) use dynamic_resources::{DynamicResources, Timeouts};
pub(crate) use handle::Handle;
pub(crate) use image_locality::ImageLocality;
pub(crate) use inter_pod_affinity::InterPodAffinity;
pub(crate) use node_affinity::NodeAffinity;
pub(crate) use node_declared_features::NodeDeclaredFeatures;
pub(crate) use node_name::NodeName;
pub(crate) use node_ports::NodePorts;
pub(crate) use node_resources::{BalancedAllocation, Fit, ShapePoint, Strategy, Weighted};
pub(crate) use node_unschedulable::NodeUnschedulable;
pub(crate) use pod_topology_spread::PodTopologySpread;
pub(crate) use priority_sort::PrioritySort;
pub(crate) use scheduling_gates::SchedulingGates;
pub(crate) use taint_toleration::TaintToleration;
pub(crate) use volumes::{NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone};

/// The plug-ins of a profile that chooses none, with the weights of their scores.
pub(crate) const DEFAULTS: [(&str, i64); 20] = [
    ("SchedulingGates", 1),
    ("PrioritySort", 1),
    ("NodeUnschedulable", 1),
    ("NodeName", 1),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 1),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 1),
    ("NodeVolumeLimits", 1),
    ("VolumeBinding", 1),
    ("VolumeZone", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 1),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 1),
    ("NodeDeclaredFeatures", 1),
];
