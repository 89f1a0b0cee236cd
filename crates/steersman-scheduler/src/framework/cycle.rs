//! One attempt to schedule a Pod: what plug-ins are given, and what they remember meanwhile.

use std::any::{Any, TypeId};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::lister::Lister;
use super::node_info::NodeInfo;
use super::nominator::Nominator;
use super::pod_info::PodInfo;
use super::profile::Profile;
use super::snapshot::Snapshot;

/// What a plug-in remembers between extension points. It is cloned where something is tried out.
trait Remembered: Any + Send + Sync {
    fn cloned(&self) -> Box<dyn Remembered>;
}

impl<T: Any + Clone + Send + Sync> Remembered for T {
    fn cloned(&self) -> Box<dyn Remembered> {
        Box::new(self.clone())
    }
}

/// What plug-ins remember during one attempt, by type: each has types of its own.
#[derive(Default)]
pub struct CycleState(Vec<(TypeId, Box<dyn Remembered>)>);

impl CycleState {
    /// Remembers a value, in place of another of its type.
    pub fn insert<T: Any + Clone + Send + Sync>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        self.0.retain(|(found, _)| *found != id);
        self.0.push((id, Box::new(value)));
    }

    /// What is remembered of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        let (_, value) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        let value: &dyn Any = &**value;
        value.downcast_ref()
    }

    /// The same, to be changed.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        let (_, value) = self.0.iter_mut().find(|(id, _)| *id == TypeId::of::<T>())?;
        let value: &mut dyn Any = &mut **value;
        value.downcast_mut()
    }
}

impl Clone for CycleState {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(id, value)| (*id, (**value).cloned())).collect())
    }
}

/// It is measured how long each plug-in takes in this attempt. That is not for nothing, so it is for
/// few of them.
#[derive(Clone)]
pub(crate) struct Timed;

/// The places in the snapshot of the nodes that are compared, in their order.
#[derive(Clone)]
pub(super) struct Compared(pub(super) Arc<[usize]>);

/// One attempt to schedule a Pod.
pub struct Cycle<'a> {
    /// The Pod.
    pub pod: &'a Arc<Pod>,
    /// What is remembered of it.
    pub info: &'a Arc<PodInfo>,
    /// The nodes.
    pub snapshot: &'a Snapshot,
    /// Other objects.
    pub lister: &'a Arc<dyn Lister>,
    /// For which Pods room is being made.
    pub nominator: &'a Nominator,
    /// What plug-ins remember.
    pub state: CycleState,
    /// The plug-ins that take part.
    pub(crate) profile: &'a Profile,
    /// Which of them need not be asked about nodes, by their place in the profile.
    pub(crate) skipped_filters: u64,
    /// Which of them need not be asked for scores.
    pub(crate) skipped_scores: u64,
}

impl<'a> Cycle<'a> {
    /// The same attempt, in which something is tried out.
    pub fn trial(&self) -> Self {
        Self { state: self.state.clone(), ..*self }
    }

    /// Where in the snapshot these nodes are that are compared.
    pub(crate) fn places_of(&self, nodes: &[Arc<NodeInfo>]) -> Arc<[usize]> {
        match self.state.get::<Compared>() {
            Some(Compared(places)) if places.len() == nodes.len() => Arc::clone(places),
            _ => nodes.iter().filter_map(|node| self.snapshot.place(node.name())).collect(),
        }
    }

    /// What the Pod asks for.
    pub fn spec(&self) -> &'a PodSpec {
        static NONE: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
        self.pod.spec.as_ref().unwrap_or(&NONE)
    }
}
