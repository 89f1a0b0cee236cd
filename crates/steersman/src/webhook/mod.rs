//! Webhooks: the API server asks before it stores.
//!
//! A [`Defaulter`] sets what a user left open, a [`Validator`] refuses what makes no sense, a
//! [`Spoke`] converts between the versions of a custom resource. Each is a trait of the kind
//! itself; [`CustomDefaulter`] and [`CustomValidator`] are for built-in kinds and for what needs
//! clients or caches, [`Handler`] for everything else. A [`WebhookServer`] serves them by HTTPS
//! or, without a socket, as a function; it also says what the API server must know of them.
//!
//! ```
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! use steersman::webhook::{AdmissionRequest, CustomValidator, Denied, Operation, Warnings};
//! use steersman::webhook::WebhookServer;
//!
//! /// Nobody puts passwords into ConfigMaps.
//! struct NoPasswords;
//!
//! impl CustomValidator<ConfigMap> for NoPasswords {
//!     const OPERATIONS: &'static [Operation] = &[Operation::Create, Operation::Update];
//!
//!     async fn validate_create(
//!         &self,
//!         map: &ConfigMap,
//!         _: &AdmissionRequest,
//!     ) -> Result<Warnings, Denied> {
//!         match map.data.as_ref().is_some_and(|data| data.contains_key("password")) {
//!             true => Err(Denied::field("data[password]", "belongs into a Secret")),
//!             false => Ok(Warnings::new()),
//!         }
//!     }
//!
//!     async fn validate_update(
//!         &self,
//!         _old: &ConfigMap,
//!         new: &ConfigMap,
//!         request: &AdmissionRequest,
//!     ) -> Result<Warnings, Denied> {
//!         self.validate_create(new, request).await
//!     }
//! }
//!
//! let server = WebhookServer::builder("shop").validates_with::<ConfigMap>(NoPasswords).build()?;
//! # Ok::<(), steersman::Error>(())
//! ```
//!
//! An [`Authenticator`] says whose a token is, before anything else is asked.
//!
//! Handlers may panic, requests may make no sense: both are answered as the API server expects,
//! and nobody else is harmed.

mod authentication;
mod configuration;
mod conversion;
mod defaulter;
mod denied;
mod handler;
mod injection;
mod metrics;
mod patch;
mod registration;
mod request;
mod response;
mod review;
mod server;
mod shared_ca;
mod site;
mod succession;
#[cfg(test)]
mod tests;
mod validator;

pub use authentication::{Authentication, Authenticator};
pub use configuration::{ClientConfig, Configurations, install};
pub use conversion::{Conversion, Spoke, Versions};
pub use defaulter::{CustomDefaulter, Defaulter};
pub use denied::{Denied, FieldError};
pub use handler::Handler;
pub use registration::{FailurePolicy, Webhook};
pub use request::{AdmissionRequest, Operation};
pub use response::{AdmissionResponse, Warnings};
pub use server::{WebhookServer, WebhookServerBuilder};
pub use shared_ca::SharedCa;
pub use site::BuildError;
pub use validator::{CustomValidator, Validator};
