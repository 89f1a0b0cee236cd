//! Write Kubernetes controllers.
//!
//! A controller watches what is, compares it with what is wanted, and acts until they meet.
//! This crate does everything around that comparison, for any Kubernetes cluster. Start with the
//! [`guide`], or with [`Controller`], [`Context`] and [`Manager`]; the parts beneath them are public and usable
//! alone, in the order in which a change passes through them:
//!
//! [`reflector`] lists and watches → a delta queue holds what it learned → the
//! [`informer`] keeps the [`cache`] and notifies of changes → [`predicate`]s choose, [`handler`]s
//! name whom they concern → the [`workqueue`] holds keys, each with its [`cause`]s → the [`controller`] calls the reconciler
//! → the [`context`] reads the cache and writes to the server.
//!
//! It knows nothing of API servers and stores: a [`kube::Client`] is all it sees of a cluster.

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod object;

mod codec;

pub mod kind;
mod owner;

pub mod clock;
pub mod metrics;
pub mod random;

pub mod client;
pub mod error;

pub mod conditions;
pub mod events;

pub mod reflector;

mod delta_queue;

pub mod cache;
pub mod informer;

pub mod caches;
mod remote;

pub mod predicate;
pub mod selector;

pub mod handler;

pub mod workqueue;

pub mod cause;
mod hot_loop;
mod own_writes;

pub mod context;
mod merge_diff;

pub mod ownership;
pub mod placement;
pub mod volumes;
pub mod world;

pub mod controller;

pub mod election;
pub mod fence;
pub mod shard;

pub mod serve;
pub mod webhook;

mod debug;
pub mod health;
pub mod manager;

pub mod manifests;

pub mod guide;

pub use client::{Client, Deleted, Impersonation, ListOptions};
pub use context::Context;
pub use controller::{Controller, Next, Reconciler, source};
pub use error::{Error, Result};
pub use kind::Kind;
pub use manager::{Manager, shutdown_signal};
pub use metrics::Metrics;
pub use object::{Object, ObjectKey};
pub use steersman_macros::test;

/// What a controller's source file usually needs.
pub mod prelude {
    pub use std::sync::Arc;

    pub use crate::{
        Client, Context, Controller, Error, Kind, Manager, Next, Object, ObjectKey, Reconciler,
        Result, shutdown_signal,
    };
}
