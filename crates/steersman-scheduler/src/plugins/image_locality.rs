//! Better are nodes that have the images already, large ones above all; but an image that few nodes
//! have is worth less, so that not all Pods go there.

use std::sync::Arc;

use crate::framework::{Cycle, Interest, NodeInfo, Plugin, Points, PreScore, Refusal, SCORE_MAX};

const MIB: i64 = 1 << 20;
/// Less than this is not worth anything.
const THRESHOLD_MIN: i64 = 23 * MIB;
/// More than this for each container is not worth more.
const THRESHOLD_MAX: i64 = 1000 * MIB;

/// Looks at the images that nodes have.
pub(crate) struct ImageLocality;

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn points(&self) -> Points {
        Points::PRE_SCORE | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        &[]
    }

    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Arc<NodeInfo>]) -> Result<PreScore, Refusal> {
        Ok(match cycle.snapshot.knows_images() {
            true => PreScore::Score,
            false => PreScore::Skip, // all nodes would get the same
        })
    }

    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let spec = cycle.spec();
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        let volumes = spec.volumes.iter().flatten().filter_map(|it| it.image.as_ref());
        let of_volumes = volumes.filter_map(|image| image.reference.as_deref());
        let images = containers.clone().filter_map(|it| it.image.as_deref()).chain(of_volumes);
        let sum: i64 = images.map(|image| worth(&with_tag(image), cycle, node)).sum();
        let count = i64::try_from(containers.count()).unwrap_or(i64::MAX);
        let max = THRESHOLD_MAX.saturating_mul(count);
        SCORE_MAX * (sum.clamp(THRESHOLD_MIN, max.max(THRESHOLD_MIN)) - THRESHOLD_MIN)
            / (max - THRESHOLD_MIN).max(1)
    }
}

/// The size of an image that a node has, times the share of nodes that have it.
fn worth(image: &str, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
    let Some(size) = node.images.get(image) else { return 0 };
    let share = cycle.snapshot.nodes_with_image(image) as f64 / cycle.snapshot.len() as f64;
    (*size as f64 * share) as i64
}

/// An image's name with a tag, as nodes tell it.
fn with_tag(image: &str) -> String {
    match image.rfind(':') <= image.rfind('/') {
        true => format!("{image}:latest"),
        false => image.to_owned(),
    }
}
