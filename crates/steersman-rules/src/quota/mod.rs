//! Resource quotas: how much of what an object uses, which quotas that concerns, and whether it
//! fits.
//!
//! An [`Evaluator`] knows how objects of one resource are counted. It [measures](Measure) an
//! object: the [`Amounts`] of resources that it uses, by the names that quotas have for them, and
//! what [scopes] ask about. [`charges()`] puts that beside what [quotas](Quota) have left.
//! Who charges, when a write is admitted, and who counts anew, when objects went, use the same
//! functions and need not know each other.

mod amounts;
mod charges;
mod devices;
mod evaluator;
mod limited;
mod limits;
mod measure;
mod pod_resources;
mod pods;
mod refusal;
pub mod scopes;
mod services;
#[cfg(test)]
mod tests;
mod volume_claims;

pub use amounts::Amounts;
pub use charges::{Demand, charges};
pub use evaluator::{Evaluator, Path, counted_by, is_counted};
pub use limited::{Limited, LimitedResource};
pub use limits::Quota;
pub use measure::Measure;
pub use pod_resources::requests_of_spec;
pub use refusal::Refusal;
