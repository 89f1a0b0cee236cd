//! The Secrets with which the images of a Pod are pulled.

use k8s_openapi::api::core::v1::Pod;
use steersman::events::NewEvent;

/// The names of those that a Pod refers to. Empty ones are valid, and nobody is to be warned of them.
pub(crate) fn named(pod: &Pod) -> impl Iterator<Item = &str> {
    let all = pod.spec.as_ref().and_then(|spec| spec.image_pull_secrets.as_ref());
    all.into_iter().flatten().map(|it| it.name.as_str()).filter(|name| !name.is_empty())
}

/// That a Pod cannot have some of them: it is tried without.
pub(crate) fn missing<S: AsRef<str>>(names: &[S]) -> NewEvent {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let note = format!(
        "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not \
         succeed.",
        names.join(", ")
    );
    NewEvent::warning("FailedToRetrieveImagePullSecret").action("Pulling").note(note)
}
