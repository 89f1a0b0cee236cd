//! How this machine and its container runtime are: looked at again and again for the Node's
//! conditions and its list of images.

use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerImage;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::cri::wire::RuntimeCondition;
use crate::cri::wire::image::Image;
use crate::cri::{Cri, CriError};
use crate::registration::{Finding, Health, healthy};

/// How often.
const PERIOD: Duration = Duration::from_secs(5);
/// How many images a Node names, the largest first, and how many names of each.
const IMAGES_MAX: usize = 50;
const NAMES_MAX: usize = 5;

/// How it is now.
pub(crate) async fn look(cri: &Cri) -> Health {
    let (conditions, images) = futures::join!(cri.conditions(), cri.images());
    Health { conditions: findings(conditions), images: named(images.unwrap_or_default()) }
}

/// Looks for ever, and tells those who listen.
pub(crate) async fn run(cri: &Cri, health: &watch::Sender<Health>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found = look(cri).await;
        health.send_if_modified(|known| {
            let changed = *known != found;
            *known = found;
            changed
        });
    }
}

/// What the conditions of the Node say.
fn findings(runtime: Result<Vec<RuntimeCondition>, CriError>) -> Vec<Finding> {
    let mut findings = healthy();
    let why = match runtime {
        Err(error) => Some(format!("container runtime is down: {error}")),
        Ok(conditions) => not_ready(&conditions),
    };
    let ready = findings.iter_mut().find(|finding| finding.type_ == "Ready");
    if let (Some(ready), Some(why)) = (ready, why) {
        *ready = Finding { type_: "Ready", holds: false, reason: "KubeletNotReady", message: why };
    }
    findings
}

/// What of the runtime does not work, said as a kubelet says it.
fn not_ready(conditions: &[RuntimeCondition]) -> Option<String> {
    let told = [
        ("RuntimeReady", "container runtime not ready"),
        ("NetworkReady", "container runtime network not ready"),
    ];
    let parts: Vec<String> = told
        .iter()
        .filter_map(|(type_, text)| {
            let found = conditions.iter().find(|condition| condition.r#type == *type_);
            match found {
                Some(condition) if condition.status => None,
                Some(RuntimeCondition { reason, message, .. }) => {
                    Some(format!("{text}: {type_}=false reason:{reason} message:{message}"))
                }
                None => Some(format!("{text}: {type_} is not said")),
            }
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The images as a Node names them.
fn named(mut images: Vec<Image>) -> Vec<ContainerImage> {
    images.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.id.cmp(&b.id)));
    let listed = images.into_iter().take(IMAGES_MAX).map(|image| {
        let names = image.repo_digests.into_iter().chain(image.repo_tags).take(NAMES_MAX);
        ContainerImage { names: Some(names.collect()), size_bytes: i64::try_from(image.size).ok() }
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(type_: &str, status: bool) -> RuntimeCondition {
        let text = if status { String::new() } else { "broken".to_owned() };
        RuntimeCondition { r#type: type_.into(), status, reason: text.clone(), message: text }
    }

    #[test]
    fn a_node_is_ready_when_its_runtime_and_network_are() {
        let ready = |conditions| {
            let found = findings(conditions);
            let ready = found.into_iter().find(|one| one.type_ == "Ready").unwrap();
            (ready.holds, ready.message)
        };
        let all =
            |network| Ok(vec![condition("RuntimeReady", true), condition("NetworkReady", network)]);
        assert!(ready(all(true)).0);
        let (holds, message) = ready(all(false));
        assert!(!holds);
        let said =
            "container runtime network not ready: NetworkReady=false reason:broken message:broken";
        assert_eq!(message, said);
        let late = CriError::Deadline { method: "Status", within: PERIOD };
        assert!(!ready(Err(late)).0);
    }

    #[test]
    fn a_node_names_its_largest_images() {
        let image = |n: u64| Image {
            id: n.to_string(),
            repo_tags: vec![format!("a:{n}")],
            repo_digests: vec![format!("a@{n}")],
            size: n,
            ..Image::default()
        };
        let listed = named((0..60).map(image).collect());
        assert_eq!((listed.len(), listed[0].size_bytes), (50, Some(59)));
        assert_eq!(listed[0].names.as_ref().unwrap(), &["a@59", "a:59"]);
    }
}
