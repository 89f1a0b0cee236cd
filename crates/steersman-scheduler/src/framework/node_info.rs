//! A node, and what is taken on it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::{ContainerImage, Node, Taint};

use super::host_ports::HostPort;
use super::pod_info::PodInfo;
use super::resources::Resources;
use super::selector::Labels;

static NO_LABELS: LazyLock<Labels> = LazyLock::new(Labels::new);

/// A node, and what is taken on it by Pods that are bound to it or will be.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeInfo {
    /// The node.
    pub node: Arc<Node>,
    /// What it offers.
    pub allocatable: Arc<Resources>,
    /// How many Pods it takes.
    pub pods_max: i64,
    /// The images that it has, with their sizes.
    pub images: Arc<HashMap<String, i64>>,
    /// The Pods on it.
    pub pods: Vec<Arc<PodInfo>>,
    /// One of those of them that are [kin](PodInfo::is_kin_of), and how many they are.
    pub(crate) kin: Vec<(Arc<PodInfo>, u32)>,
    /// Those of them that want to be near to or far from others.
    pub with_affinity: Vec<Arc<PodInfo>>,
    /// Those of them that must not be near to others.
    pub with_required_anti_affinity: Vec<Arc<PodInfo>>,
    /// What its Pods ask for.
    pub requested: Resources,
    /// The same with an assumption for those that do not say.
    pub assumed: Resources,
    /// Which of its ports they have.
    pub ports: Vec<HostPort>,
}

impl NodeInfo {
    /// A node without Pods.
    pub fn new(node: Arc<Node>) -> Self {
        let mut info = Self {
            node: Arc::default(),
            allocatable: Arc::default(),
            pods_max: 0,
            images: Arc::default(),
            pods: Vec::new(),
            kin: Vec::new(),
            with_affinity: Vec::new(),
            with_required_anti_affinity: Vec::new(),
            requested: Resources::default(),
            assumed: Resources::default(),
            ports: Vec::new(),
        };
        info.set_node(node);
        info
    }

    /// Takes over what has changed of the node itself.
    pub fn set_node(&mut self, node: Arc<Node>) {
        let status = node.status.as_ref();
        let offered = Resources::of(status.and_then(|status| status.allocatable.as_ref()));
        let images = status.and_then(|status| status.images.as_ref());
        self.pods_max = offered.get("pods");
        self.allocatable = Arc::new(offered);
        self.images = Arc::new(images.into_iter().flatten().flat_map(named).collect());
        self.node = node;
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its labels.
    pub fn labels(&self) -> &Labels {
        self.node.metadata.labels.as_ref().unwrap_or(&NO_LABELS)
    }

    /// Its taints.
    pub fn taints(&self) -> &[Taint] {
        let spec = self.node.spec.as_ref();
        spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    /// Counts a Pod on the node.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        self.requested.add(&pod.requests.asked);
        self.assumed.add(&pod.requests.assumed);
        self.ports.extend(pod.requests.ports.iter().cloned());
        if pod.affinity.is_some() {
            self.with_affinity.push(Arc::clone(&pod));
        }
        if !pod.required_anti_affinity().is_empty() {
            self.with_required_anti_affinity.push(Arc::clone(&pod));
        }
        match self.kin.iter_mut().find(|(one, _)| one.is_kin_of(&pod)) {
            Some((_, count)) => *count += 1,
            None => self.kin.push((Arc::clone(&pod), 1)),
        }
        self.pods.push(pod);
    }

    /// Counts a Pod no more. Whether it was there.
    pub fn remove_pod(&mut self, uid: &str) -> bool {
        let Some(pod) = remove(&mut self.pods, uid) else { return false };
        self.requested.subtract(&pod.requests.asked);
        self.assumed.subtract(&pod.requests.assumed);
        for port in &pod.requests.ports {
            if let Some(index) = self.ports.iter().position(|used| used == port) {
                self.ports.swap_remove(index);
            }
        }
        if let Some(at) = self.kin.iter().position(|(one, _)| one.is_kin_of(&pod)) {
            self.kin[at].1 -= 1;
            if self.kin[at].1 == 0 {
                self.kin.swap_remove(at);
            }
        }
        if pod.affinity.is_some() {
            remove(&mut self.with_affinity, uid);
            remove(&mut self.with_required_anti_affinity, uid);
        }
        true
    }
}

fn remove(pods: &mut Vec<Arc<PodInfo>>, uid: &str) -> Option<Arc<PodInfo>> {
    let index = pods.iter().position(|pod| &*pod.uid == uid)?;
    Some(pods.swap_remove(index))
}

/// An image has several names, and the same size under each.
fn named(image: &ContainerImage) -> impl Iterator<Item = (String, i64)> {
    let size = image.size_bytes.unwrap_or_default();
    image.names.iter().flatten().map(move |name| (name.clone(), size))
}
