//! Where containers run.
//!
//! A pod worker asks a runtime to make a Pod's containers run or stop, and is told what runs.
//! There is one runtime so far, the [`simulated`] one; the trait holds what it and the pod
//! worker need, and grows with the next.

mod simulated;

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::Result;

pub(crate) use simulated::Simulated;

/// A container that a runtime has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartedContainer {
    /// Its name in the Pod.
    pub(crate) name: String,
    /// The runtime's name for it, with the runtime's own name in front.
    pub(crate) id: String,
    /// The runtime's name for its image.
    pub(crate) image_id: String,
}

/// How far the end of a Pod's containers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    /// They have all ended.
    Done,
    /// They have been told to end, and take so long.
    Takes(Duration),
}

/// Runs containers.
pub(crate) trait ContainerRuntime: Send + Sync + 'static {
    /// Makes all containers of a Pod run, its init containers having run before. Asked again
    /// for a Pod that runs already, it tells the same.
    fn run(&self, pod: &Pod) -> impl Future<Output = Result<Vec<StartedContainer>>> + Send;

    /// Stops all containers of a Pod, within its grace period if it is being deleted. Asked
    /// again, it tells how long that still takes.
    fn stop(&self, pod: &Pod) -> impl Future<Output = Result<Stopping>> + Send;

    /// Forgets a Pod that is gone.
    fn forget(&self, uid: &str);
}
