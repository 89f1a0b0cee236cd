//! Kubernetes' API over a versioned store, as a tower service.
//!
//! One pipeline serves every kind. A kind is data ([`steersman_rules::resource::Resource`]) and,
//! only where it has behaviour, a few functions; built-in kinds and custom resources take the same
//! road. Objects are documents with a schema; they are encoded once, when written.
//!
//! This crate owns the API: it is the only one that knows both the store and Kubernetes'
//! rules, which are [`steersman_rules`]. It must not know any controller. Start with [`ApiServer`], then follow a request
//! through the modules in the order below.

mod server;
mod state;

// A request, from bytes to a call.
mod authenticate;
pub mod authn;
pub mod authz;
mod call;
mod connect;
pub mod identity;
pub mod listen;
pub mod negotiate;
mod pipeline;
pub mod pki;
pub mod request;

// What is served.
mod component;
pub mod crd;
pub mod discovery;
mod health;
mod metrics;
mod openapi;
mod openid;
pub mod registry;

// Writes.
mod admission;
mod admission_registration;
mod allocate;
mod effects;
mod mutate;
mod review;
pub mod token;
mod webhook_client;
mod write;

// Reads.
mod conversion;
pub mod document;
mod read;

// The answer.
mod reply;
pub mod status;

// What runs beside requests.
mod bootstrap;
mod follow;
mod lookup;
mod presence;
mod random;
mod retention;
mod starts;

pub use read::continuation::Continuation;
pub use reply::ResponseBody;
pub use server::{ApiServer, Config};
pub use state::Clock;
pub use webhook_client::WebhookHandler;
