//! The built-in controllers on a whole cluster, on virtual time.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod aggregation;
mod autoscaling;
mod credentials;
mod cronjobs;
mod daemonsets;
mod deployments;
mod device_conditions;
mod device_rules;
mod device_shares;
mod devices;
mod disruptions;
mod events;
mod garbage;
mod identities;
mod jobs;
mod lives;
mod migrations;
mod namespaces;
mod nodes;
mod objects;
mod order;
mod owner_trees;
mod placement;
mod pods;
mod policies;
mod quotas;
mod replicationcontrollers;
mod resizes;
mod restarts;
mod scheduling;
mod services;
mod statefulsets;
mod storage;
mod storage_versions;
mod trials;
