//! The Container Runtime Interface: what a kubelet asks of containerd, over a unix socket.
//!
//! [`wire`] has the messages, [`client`] the calls with a deadline each, [`error`] what can go wrong.
//! It knows nothing of Pods: who asks what and when is decided in `runtime`.

mod client;
mod error;
pub(crate) mod wire;

pub(crate) use client::{Cri, Said};
pub(crate) use error::CriError;
