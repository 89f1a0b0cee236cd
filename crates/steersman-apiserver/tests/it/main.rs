//! The API as a client sees it: requests in, answers out, over a store in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod api;
mod webhooks;

mod admission;
mod apply;
mod authorization;
mod autoscalers;
mod bootstrap;
mod client;
mod components;
mod conversion;
mod crd;
mod create;
mod custom_bodies;
mod delete;
mod deprecation;
mod discovery;
mod errors;
mod eviction;
mod faulty;
mod fields;
mod fuzz;
mod hostile;
mod impersonation;
mod kinds;
mod list;
mod listen;
mod metrics;
mod namespaces;
mod negotiation;
mod on_demand;
mod openapi;
mod parts;
mod patch;
mod plugins;
mod policy;
mod protobuf;
mod quota;
mod resource_versions;
mod retention;
mod robust;
mod servers;
mod services;
mod status_metadata;
mod store_faults;
mod subresources;
mod tokens;
mod typed;
mod unset;
mod update;
mod validation;
mod versions;
mod watch;
