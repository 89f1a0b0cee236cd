//! Where containers run.
//!
//! A pod worker asks a runtime what runs of a Pod, and to start or stop containers. The
//! [`simulated`] one has only a clock and scripts; the [`real`] one has containerd. Which container
//! is to run when is the worker's business alone, and the same for both. Both start it only when there
//! is what it is made of.

mod image_name;
pub(crate) mod pull_secrets;
pub(crate) mod real;
mod simulated;
pub(crate) mod user;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LinuxContainerUser, Pod, ResourceRequirements};
use steersman::{Client, ObjectKey, Result};

use crate::probes::Kind;
use crate::rejection::Rejection;
pub(crate) use simulated::Simulated;

/// Why containers wait that are all started anew because one of them has ended, and how they ended.
pub(crate) const BEGINS_ANEW: &str = "RestartingAllContainers";

/// What there is of a Pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observation {
    /// The last container of each name, in the order in which they are in the Pod.
    pub(crate) containers: Vec<Container>,
    /// The names of those whose start is under way.
    pub(crate) starting: Vec<String>,
    /// What containers share.
    pub(crate) sandbox: Sandbox,
    /// Whether mounts below one that is only read can be so as well.
    pub(crate) reads_only_recursively: bool,
}

/// What the containers of a Pod share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// Nothing yet, or no more.
    #[default]
    Absent,
    /// A network with these addresses; without any, those that its machine gives it.
    Ready(Vec<String>),
}

/// A container that a runtime has started: the last one of its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Container {
    /// Its name in the Pod.
    pub(crate) name: String,
    /// The runtime's name for it, with the runtime's own name in front.
    pub(crate) id: String,
    /// Its image as people know it.
    pub(crate) image: String,
    /// The runtime's name for its image.
    pub(crate) image_id: String,
    /// The image that its Pod asked for when it was made, if that is known.
    pub(crate) asked: Option<String>,
    /// How many of its name were started before it.
    pub(crate) attempt: i32,
    /// Since when it runs, or ran.
    pub(crate) started: Timestamp,
    pub(crate) state: State,
    /// What it shared with others is no more: it counts as one that ran before.
    pub(crate) outdated: bool,
    /// Which probe says that it must be stopped, if one does.
    pub(crate) failed_probe: Option<Kind>,
    /// Who its first process is, if that is known.
    pub(crate) user: Option<LinuxContainerUser>,
    /// The one of its name before it.
    pub(crate) last: Option<Box<Container>>,
}

/// How far a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Running {
        /// Whether it has come up, so that others may follow.
        started: bool,
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
        /// What it or its runtime said last.
        message: Option<String>,
    },
}

impl Container {
    /// Whether it runs.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }
}

/// Why a container could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StartError {
    /// Its image has no name that anybody could know.
    #[error(
        "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {why}"
    )]
    ImageName {
        /// Which image.
        image: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Its image cannot be had; said as the runtime says it.
    #[error("{why}")]
    ImagePull {
        /// Which image.
        image: String,
        /// What the runtime said.
        why: String,
    },
    /// Its image is not there, and must not be pulled.
    #[error("Container image {image:?} is not present with pull policy of Never")]
    ImageNeverPull {
        /// Which image.
        image: String,
    },
    /// What it shares with others could not be made.
    #[error("Failed to create pod sandbox: {0}")]
    Sandbox(String),
    /// What is to be mounted into it could not be had.
    #[error("{0}")]
    Volumes(String),
    /// What it is told, or how, does not work.
    #[error("{0}")]
    Config(String),
    /// The runtime could not make it.
    #[error("{0}")]
    Create(String),
    /// The runtime could not start it.
    #[error("{0}")]
    Run(String),
    /// What is done right after it has started failed.
    #[error("PostStartHook failed")]
    PostStart(
        /// What the hook said, which only whoever may read the Pod is told.
        String,
    ),
}

impl StartError {
    /// An image that no registry has, as a runtime says it.
    pub(crate) fn not_found(image: &str) -> Self {
        let why = format!(
            "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to \
             resolve reference {image:?}: {image}: not found"
        );
        Self::ImagePull { image: image.to_owned(), why }
    }

    /// Why the container waits, in one word, if anything is said of it but that it is made.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        match self {
            Self::ImageName { .. } => Some("InvalidImageName"),
            Self::ImagePull { .. } => Some("ErrImagePull"),
            Self::ImageNeverPull { .. } => Some("ErrImageNeverPull"),
            Self::Sandbox(_) | Self::Volumes(_) => None,
            Self::Config(_) => Some("CreateContainerConfigError"),
            Self::Create(_) => Some("CreateContainerError"),
            Self::Run(_) => Some("RunContainerError"),
            Self::PostStart(_) => Some("PostStartHookError"),
        }
    }

    /// Why the container waits, in more words.
    pub(crate) fn details(&self) -> String {
        match self {
            Self::PostStart(said) => said.clone(),
            other => other.to_string(),
        }
    }

    /// Whether the container was made, and ended at once.
    pub(crate) fn is_failed_run(&self) -> bool {
        matches!(self, Self::Run(_) | Self::PostStart(_))
    }
}

/// A container to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its name in the Pod.
    pub(crate) name: String,
    /// How many of its name were started before it.
    pub(crate) attempt: i32,
}

/// What became of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It runs.
    Started {
        /// How its image was had, unless it was there.
        pulled: Option<Pulled>,
    },
    /// Its image is being pulled, and the Pod is looked at again when that is over.
    Pulling,
    /// The same for what it mounts, or for a network.
    Waiting,
    /// It does not run.
    Failed {
        why: StartError,
        /// How its image was had, if it came to that and it was not there.
        pulled: Option<Pulled>,
    },
    /// The same, after its image was tried to be pulled at once.
    NotPulled(StartError),
}

/// An image that was pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pulled {
    pub(crate) took: Duration,
    /// How long others were pulled before it.
    pub(crate) waited: Duration,
    pub(crate) bytes: u64,
}

/// A resource that running containers can get more or less of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resizable {
    Memory,
    Cpu,
}

impl Resizable {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }
}

/// Another amount of a resource for a running container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// The container's name in the Pod.
    pub(crate) name: String,
    pub(crate) resource: Resizable,
    /// All that it has from then on.
    pub(crate) resources: ResourceRequirements,
    /// Its limit before and from then on, of cpus in thousandths, of memory in bytes; zero is none.
    pub(crate) limit: (i64, i64),
}

/// What became of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resized {
    /// How many were made, of the first.
    pub(crate) done: usize,
    /// Why the others were not.
    pub(crate) error: Option<String>,
}

/// Why a Pod had to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) message: String,
    /// Whether it is said that somebody else disrupted it.
    pub(crate) disrupted: bool,
}

/// A Pod as a kubelet names it to people.
pub(crate) fn described(pod: &Pod) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let of = &pod.metadata;
    format!("{}_{}({})", text(&of.name), text(&of.namespace), text(&of.uid))
}

/// Keeps something about each Pod where the next agent of its machine finds it.
pub(crate) trait Ledger: fmt::Debug + Send + Sync {
    fn read(&self, uid: &str) -> Option<String>;

    fn write(&self, uid: &str, text: &str);

    fn erase(&self, uid: &str);
}

/// Runs containers.
pub(crate) trait ContainerRuntime: Send + Sync + 'static {
    /// What its machine remembers of Pods, if its containers go on without an agent.
    fn ledger(&self) -> Option<Arc<dyn Ledger>>;

    /// Why it does not take a Pod, if so.
    fn refuses(&self, pod: &Pod) -> Option<Rejection>;

    /// Why a Pod that runs has to end, if its machine needs what it has.
    fn evicted(&self, pod: &Pod) -> Option<Evicted>;

    /// What runs, or ran, of a Pod at this moment.
    fn observe(
        &self,
        pod: &Pod,
        now: Timestamp,
    ) -> impl Future<Output = Result<Observation>> + Send;

    /// Whether a start may take so long that people are told before what it is about.
    fn takes_time(&self) -> bool;

    /// Starts a container. What else is needed for it is read by the client.
    fn start(
        &self,
        pod: &Pod,
        start: &Start,
        client: &Client,
        now: Timestamp,
    ) -> impl Future<Output = Result<Outcome>> + Send;

    /// Takes in that a Pod is to end: what is done right after a start is not waited for any more.
    fn ends(&self, uid: &str);

    /// The Secrets that a Pod names to pull its images with and cannot have, unless people are told of
    /// them while they are used.
    fn missing_secrets(
        &self,
        pod: &Pod,
        client: &Client,
    ) -> impl Future<Output = Vec<String>> + Send;

    /// Tells containers of a Pod to stop, in their [order](crate::termination_order) and within the
    /// Pod's grace period. Told again, they may have less time.
    fn stop(
        &self,
        pod: &Pod,
        names: &[String],
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Changes what running containers have, one after the other, and what their Pod as a whole has,
    /// whose spec says what it is to have.
    fn resize(&self, pod: &Pod, changes: &[Change])
    -> impl Future<Output = Result<Resized>> + Send;

    /// Gives back what a Pod that has ended had of its machine, and tells whether that is done; what
    /// its containers left behind stays until it is forgotten. Whatever still runs, because somebody
    /// else has said that it has ended, is stopped first. Done again, it changes nothing.
    fn wind_down(&self, pod: &Pod) -> impl Future<Output = Result<bool>> + Send;

    /// Forgets a Pod that is gone.
    fn forget(&self, uid: &str);

    /// The Pods whose containers have changed by themselves.
    fn changes(&self) -> impl Stream<Item = ObjectKey> + Send + 'static;
}
