//! Why a run could not begin.

use steersman::Error;

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The cluster does not know a kind.
    #[error("{kind} ({api_version}) is not served; is its CustomResourceDefinition installed?")]
    NotServed {
        /// Its name.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// The cluster cannot be reached, or refuses.
    #[error("the run cannot be prepared: {0}")]
    Prepare(Error),
    /// A namespace of that name is there.
    #[error(
        "namespace {namespace} is there already: another run of that name is under way, or was left; \
         delete it, or give the scenario another name"
    )]
    Occupied {
        /// Which.
        namespace: String,
    },
}
