//! The built-in controllers on a whole cluster, on virtual time.

mod aggregation;
mod autoscaling;
mod credentials;
mod deployments;
mod events;
mod garbage;
mod namespaces;
mod objects;
mod pods;
mod quotas;
mod scheduling;
