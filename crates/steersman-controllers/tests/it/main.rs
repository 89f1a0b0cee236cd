//! The built-in controllers on a whole cluster, on virtual time.

mod deployments;
mod garbage;
mod namespaces;
mod objects;
mod scheduling;
