//! Where containers run.
//!
//! A pod worker asks a runtime what runs of a Pod, and to start or stop containers. There is one
//! runtime so far, the [`simulated`] one; the trait holds what it and the pod worker need, and grows
//! with the next. Which container is to run when is the worker's business alone.

mod simulated;

use std::future::Future;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use steersman::Result;

pub(crate) use simulated::Simulated;

/// A container that a runtime has started: the last one of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    /// Its name in the Pod.
    pub(crate) name: String,
    /// The runtime's name for it, with the runtime's own name in front.
    pub(crate) id: String,
    /// The runtime's name for its image.
    pub(crate) image_id: String,
    /// How many of its name were started before it.
    pub(crate) attempt: i32,
    /// Since when it runs, or ran.
    pub(crate) started: Timestamp,
    pub(crate) state: State,
    /// The one of its name before it.
    pub(crate) last: Option<Box<Container>>,
}

/// How far a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Running {
        /// Whether it is ready for use.
        ready: bool,
        /// Whether it has been told to stop.
        stopping: bool,
        /// When this changes by itself, if it is known.
        until: Option<Timestamp>,
    },
    /// It has ended.
    Exited {
        /// When.
        finished: Timestamp,
        /// With which code.
        code: i32,
        /// Why, in one word.
        reason: String,
    },
}

impl Container {
    /// Whether it runs.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }
}

/// Why a container could not be started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StartError {
    /// Its image cannot be had; said as a runtime says it.
    #[error(
        "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to \
         resolve reference {image:?}: {image}: not found"
    )]
    ImagePull {
        /// Which image.
        image: String,
    },
}

/// A container to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its name in the Pod.
    pub(crate) name: String,
    /// How many of its name were started before it.
    pub(crate) attempt: i32,
}

/// Runs containers.
pub(crate) trait ContainerRuntime: Send + Sync + 'static {
    /// What runs, or ran, of a Pod at this moment, in the order in which it is in the Pod.
    fn observe(
        &self,
        pod: &Pod,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Container>>> + Send;

    /// Starts a container.
    fn start(
        &self,
        pod: &Pod,
        start: &Start,
        now: Timestamp,
    ) -> impl Future<Output = Result<Result<(), StartError>>> + Send;

    /// Tells containers of a Pod to stop, within the Pod's grace period. Told again, they may have
    /// less time.
    fn stop(
        &self,
        pod: &Pod,
        names: &[String],
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Forgets a Pod that is gone.
    fn forget(&self, uid: &str);
}
