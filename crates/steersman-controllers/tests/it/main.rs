//! The built-in controllers on a whole cluster, on virtual time.

mod aggregation;
mod credentials;
mod cronjobs;
mod deployments;
mod events;
mod garbage;
mod jobs;
mod lives;
mod namespaces;
mod objects;
mod pods;
mod quotas;
mod scheduling;
