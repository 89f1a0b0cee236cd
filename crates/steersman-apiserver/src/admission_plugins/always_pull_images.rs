//! `AlwaysPullImages` lets no pod run an image just because it is on the node already: whoever may
//! not pull it must not have it either.

use futures::future::{self, BoxFuture};
use serde_json::Value;
use steersman_rules::field::FieldError;

use super::fields::{items, set};
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

const ALWAYS: &str = "Always";

/// The containers of a pod, in the order in which mistakes in them are told.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Pulls images whenever a container starts.
pub(super) struct AlwaysPullImages;

impl Plugin for AlwaysPullImages {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        let changed = !has_only_old_images(&write, new, old) && pull_always(&mut new["spec"]);
        Box::pin(future::ready(Ok(changed)))
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let Some(pod) = new.filter(|new| !has_only_old_images(&write, new, old)) else {
            return Box::pin(future::ready(Ok(())));
        };
        let mistakes = mistakes(&pod["spec"]);
        let texts = mistakes.iter().map(|error| write.forbidden(pod, &error.message()));
        Box::pin(future::ready(all(texts.collect())))
    }
}

fn pull_always(spec: &mut Value) -> bool {
    let mut changed = false;
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            changed |= set(container, "imagePullPolicy", ALWAYS);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(image @ Value::Object(_)) = volume.get_mut("image") {
            changed |= set(image, "pullPolicy", ALWAYS);
        }
    }
    changed
}

fn mistakes(spec: &Value) -> Vec<FieldError> {
    let mut mistakes = Vec::new();
    let mut look = |path: String, policy: &Value| {
        if policy != ALWAYS {
            mistakes.push(FieldError::not_supported(path, policy, &[ALWAYS]));
        }
    };
    for list in CONTAINERS {
        for (n, container) in items(&spec[list]).iter().enumerate() {
            look(format!("spec.{list}[{n}].imagePullPolicy"), &container["imagePullPolicy"]);
        }
    }
    for (n, volume) in items(&spec["volumes"]).iter().enumerate() {
        if volume["image"].is_object() {
            look(format!("spec.volumes[{n}].image.pullPolicy"), &volume["image"]["pullPolicy"]);
        }
    }
    mistakes
}

/// Several refusals as one, in the way in which Kubernetes puts errors together: what comes of it
/// is not a refusal any more.
fn all(refusals: Vec<Status>) -> Result<()> {
    let texts: Vec<String> = refusals.into_iter().map(|status| status.message).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::failure(one)),
        many => Err(Status::failure(format!("[{}]", many.join(", ")))),
    }
}

/// Whether a pod is changed without an image that it has not had before.
fn has_only_old_images(write: &Attributes<'_>, new: &Value, old: Option<&Value>) -> bool {
    let images = |pod: &'_ Value| -> Vec<Value> {
        let lists = CONTAINERS.iter().flat_map(|list| items(&pod["spec"][*list]));
        lists.map(|container| container["image"].clone()).collect()
    };
    let before = old.filter(|_| write.operation == Operation::Update).map(images);
    before.is_some_and(|before| images(new).iter().all(|image| before.contains(image)))
}
