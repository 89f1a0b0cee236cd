//! The built-in controllers on a whole cluster, on virtual time.

mod aggregation;
mod credentials;
mod daemonsets;
mod deployments;
mod disruptions;
mod events;
mod garbage;
mod namespaces;
mod objects;
mod pods;
mod quotas;
mod replicationcontrollers;
mod restarts;
mod scheduling;
mod statefulsets;
