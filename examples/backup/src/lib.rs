//! An operator with everything that one usually has: a kind of its own, children, a Secret by
//! reference, status and Events, something outside of the cluster that must be cleaned up,
//! webhooks, leader election, manifests. The guide's page *An operator* walks through it.
//!
//! A [`Backup`] has a Pod for each time that it is due ([`schedule`]); [`plan`] decides what that
//! means at a moment, [`reconcile`] does it. The Pods write into a bucket ([`store`]), which goes
//! when the Backup does. [`webhooks`] refuse what makes no sense, and [`operator`] is the program.

pub mod backup;
pub mod schedule;

pub mod plan;
pub mod pod;
pub mod store;

pub mod reconcile;

pub mod webhooks;

pub mod operator;

pub use backup::{Backup, BackupSpec, BackupStatus};
pub use reconcile::backups;
pub use store::{Folders, Store};
