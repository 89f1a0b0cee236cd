//! Kubernetes' small values: names, quantities, label selectors, families of addresses and texts
//! in quotes, read, compared and written as it does.
//!
//! Server and framework both need them and must not know each other, so they stand below both.
//! Nothing here knows an object.

pub mod ip_family;
pub mod label_selector;
pub mod names;
pub mod quantity;
pub mod quoted;

pub use ip_family::IpFamily;
pub use label_selector::LabelSelector;
pub use quantity::Quantity;
pub use quoted::{html_escaped, quoted};
