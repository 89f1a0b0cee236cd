//! Tables for every plug-in, written from reading those of Kubernetes.

mod affinity;
mod nodes;
mod preemption;
mod resources;
mod spread;
mod verdicts;
mod volumes;
