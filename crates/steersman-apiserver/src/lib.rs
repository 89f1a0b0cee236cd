//! Kubernetes' API over a versioned store, as a tower service.
//!
//! One pipeline serves every kind. A kind is data ([`steersman_rules::resource::Resource`]) and,
//! only where it has behaviour, a few functions; built-in kinds and custom resources take the same
//! road. Objects are documents with a schema; they are encoded once, when written.
//!
//! This crate owns the API: it is the only one that knows both the store and Kubernetes'
//! rules, which are [`steersman_rules`]. It must not know any controller. Start with [`ApiServer`],
//! then follow a request through the modules below: each knows only those that stand above it, or
//! beside it without a circle.

// What everybody knows.
mod caller;
mod clock;
mod lookup;
mod metrics;
mod random;
pub mod status;
mod upgrade;
pub mod user;
mod warnings;

// Who the cluster is.
pub mod identity;
pub mod pki;
mod token;

// Who its users are.
pub mod authentication;

// What of it is encrypted where it is stored.
pub mod encryption;

// What all requests share.
mod admission_policies;
mod admission_registration;
mod apart;
pub mod audit;
mod authz;
pub mod document;
mod fairness;
pub mod registry;
mod runtime_config;
mod state;
mod webhook_client;

// A request, from bytes to a call, and its answer.
mod admit;
mod authn;
mod bodies;
mod call;
mod conversion;
mod impersonation;
pub mod listen;
mod negotiate;
mod noted;
pub mod on_demand;
mod pipeline;
mod records;
mod reply;
pub mod request;
mod serve;
mod server;
mod websocket;

// Reads.
mod component;
mod computed;
mod connect;
mod discovery;
mod health;
mod openapi;
mod openid;
mod read;
mod scrape;
mod zpages;

// Writes.
mod access_review;
mod admission;
mod admission_plugins;
mod mutate;
mod token_review;
mod write;

// What writes mean to the server.
mod aggregation;
mod allocate;
mod crd;
mod effects;

// Servers behind this one.
pub mod extension;

// What runs beside requests.
mod bootstrap;
mod flow_control;
mod follow;
mod heartbeat;
mod policy;
mod presence;
mod retention;
mod starts;

pub use admission_plugins::{
    AdmissionConfiguration, AdmissionConfigurationError, PluginSelection, SelectionError,
};
pub use authentication::Authentication;
pub use authz::{AuthorizationMode, UnknownMode};
pub use clock::Clock;
pub use extension::Extension;
pub use read::continuation::Continuation;
pub use reply::ResponseBody;
pub use runtime_config::{RuntimeConfig, UnknownApi};
pub use scrape::MetricsSource;
pub use server::{ApiServer, Config, REQUESTS_INFLIGHT_MAX};
pub use state::extended::{Computed, Reading};
pub use state::residents::Resident;
pub use state::reviews::Reviewer;
pub use state::service_ranges::{NotServiceRanges, ServiceRanges};
pub use steersman_rules::schema::{RuleCost, rule_costs};
pub use token::{SecretToken, sign_for_secret};
pub use webhook_client::{BrokenOff, WebhookHandler};
