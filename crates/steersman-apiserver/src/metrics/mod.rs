//! What the server counts, under upstream's names and with its labels and buckets.
//!
//! [`Registry`] knows all families; each part of the server makes its own when it starts
//! ([`Registry::counters`] and its like) and counts in atomic numbers ([`instrument`]). What every
//! request counts is in [`requests`], which looks a request's series up once. `/metrics` itself,
//! and what is only looked up when somebody asks, is in [`crate::scrape`].

mod access;
mod admission;
mod conversions;
mod instrument;
mod page;
mod pod_security;
mod registry;
mod requests;
mod slis;
mod storage;
mod tokens;
mod watches;

pub(crate) use access::Access;
pub(crate) use admission::{Admission, PolicyCheck, Step, Times, WebhookAnswer, WebhookOutcome};
pub(crate) use conversions::{Conversion, Conversions};
pub(crate) use instrument::{Counter, Gauge, Histogram, Instrument};
pub(crate) use page::Page;
pub(crate) use pod_security::PodSecurity;
pub(crate) use registry::{Collect, Family, Registry};
pub(crate) use requests::{Answered, Asked, Counted, Requests};
pub(crate) use slis::Slis;
pub(crate) use storage::{Listed, Storage};
pub(crate) use tokens::Tokens;
pub(crate) use watches::{Watched, Watches};

use std::sync::Arc;

/// The metrics of one server.
pub(crate) struct Metrics {
    pub(crate) registry: Registry,
    pub(crate) requests: Requests,
    pub(crate) access: Access,
    pub(crate) tokens: Tokens,
    pub(crate) admission: Admission,
    pub(crate) conversions: Conversions,
    pub(crate) pod_security: PodSecurity,
    pub(crate) watches: Watches,
    pub(crate) storage: Storage,
    /// What checks of health found.
    pub(crate) slis: Slis,
    /// How often servers elsewhere ceased to be available, and why.
    pub(crate) unavailable_api_services: Family<2, Counter>,
    /// Connections that ended in their handshake.
    pub(crate) handshake_errors: Arc<Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::default();
        Self {
            requests: Requests::registered(&registry),
            access: Access::registered(&registry),
            tokens: Tokens::registered(&registry),
            admission: Admission::registered(&registry),
            conversions: Conversions::registered(&registry),
            pod_security: PodSecurity::registered(&registry),
            watches: Watches::registered(&registry),
            storage: Storage::registered(&registry),
            slis: Slis::default(),
            unavailable_api_services: registry.counters(
                "aggregator_unavailable_apiservice_total",
                "[ALPHA] Counter of APIServices which are marked as unavailable broken down by \
                 APIService name and reason.",
                ["name", "reason"],
            ),
            handshake_errors: registry.counter(
                "apiserver_tls_handshake_errors_total",
                "[ALPHA] Number of requests dropped with 'TLS handshake error from' error",
            ),
            registry,
        }
    }
}
