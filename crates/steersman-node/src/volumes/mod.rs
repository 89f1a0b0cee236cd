//! Volumes: which directories and files a Pod needs on its node, and how its containers see them.
//!
//! [`plan`](plan::plan) says what each volume of a Pod is made of, and [`mounts`](mounts::mounts) what
//! of it each container gets where (both pure); [`set_up`](set_up::set_up) makes it so on the file
//! system, again and again: what is there already is left as it is, and files that changed are
//! swapped at once. What must be mounted goes through a [`Mounter`]. The steps of who starts Pods:
//!
//! 1. read what [`References`](crate::objects::References) and [`TokenKey::of_pod`] name,
//! 2. `plan` with it, and `set_up` each volume; an error is an Event `FailedMount` with the text of
//!    [`failed`],
//! 3. `mounts` for each container, and [`resolve`] those with a part of a volume,
//! 4. repeat 1 and 2 when something changed, when a token is to be [refreshed](Token::refresh_at), and
//!    every minute,
//! 5. [`tear_down`] when the Pod's containers are gone.

mod host_path;
mod mounter;
mod mounts;
mod ownership;
mod payload;
mod plan;
mod set_up;
mod sub_path;
mod system;
#[cfg(test)]
mod tests;
mod token;
mod writer;

pub(crate) use mounter::{LinuxMounter, Mounter, NewMount};
pub(crate) use mounts::{
    ContainerMount, MountError, MountSource, Mounting, Propagation, SubPath, mounts,
};
pub(crate) use payload::{Payload, PayloadError};
pub(crate) use plan::{Backing, Inputs, Medium, VolumeError, VolumePlan, images, plan};
pub(crate) use set_up::{Ownership, SetUpError, set_up, tear_down};
pub(crate) use sub_path::{MountedPart, read_below, resolve};
pub(crate) use token::{Token, TokenKey, Tokens};

/// What is told of a volume that could not be set up.
pub(crate) fn failed(volume: &str, error: &dyn std::error::Error) -> String {
    format!("MountVolume.SetUp failed for volume {volume:?} : {error}")
}
