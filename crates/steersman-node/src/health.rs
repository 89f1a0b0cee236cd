//! How this machine and its container runtime are: looked at again and again for the Node's
//! conditions and its list of images.

use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerImage;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::cri::wire::RuntimeCondition;
use crate::cri::wire::image::Image;
use crate::cri::{Cri, CriError};
use crate::eviction::Condition;
use crate::registration::{Finding, Health, healthy};

/// How often.
const PERIOD: Duration = Duration::from_secs(5);
/// How many images a Node names, the largest first, and how many names of each.
const IMAGES_MAX: usize = 50;
const NAMES_MAX: usize = 5;

/// How it is now, with what it is short of.
pub(crate) async fn look(cri: &Cri, pressure: &[Condition]) -> Health {
    let (conditions, images) = futures::join!(cri.conditions(), cri.images());
    let conditions = findings(conditions, pressure);
    Health { conditions, images: named(images.unwrap_or_default()) }
}

/// Looks for ever, and tells those who listen.
pub(crate) async fn run(
    cri: &Cri,
    health: &watch::Sender<Health>,
    mut pressure: watch::Receiver<Vec<Condition>>,
) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Ok(()) = pressure.changed() => {}
        }
        let short = pressure.borrow_and_update().clone();
        let found = look(cri, &short).await;
        health.send_if_modified(|known| {
            let changed = *known != found;
            *known = found;
            changed
        });
    }
}

/// What the conditions of the Node say.
fn findings(
    runtime: Result<Vec<RuntimeCondition>, CriError>,
    pressure: &[Condition],
) -> Vec<Finding> {
    let mut findings = healthy();
    for short in pressure.iter().map(|condition| short(*condition)) {
        if let Some(found) = findings.iter_mut().find(|found| found.type_ == short.type_) {
            *found = short;
        }
    }
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

/// What is said of a machine that has too little of something.
fn short(condition: Condition) -> Finding {
    let (type_, reason, message) = match condition {
        Condition::Memory => (
            "MemoryPressure",
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        ),
        Condition::Disk => ("DiskPressure", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        Condition::Pid => {
            ("PIDPressure", "KubeletHasInsufficientPID", "kubelet has insufficient PID available")
        }
    };
    Finding { type_, holds: true, reason, message: message.into() }
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
            let found = findings(conditions, &[]);
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
    fn a_node_says_what_it_is_short_of() {
        let found = findings(Ok(Vec::new()), &[Condition::Memory, Condition::Pid]);
        let of = |type_: &str| {
            let found = found.iter().find(|one| one.type_ == type_).unwrap();
            (found.holds, found.reason)
        };
        assert_eq!(of("MemoryPressure"), (true, "KubeletHasInsufficientMemory"));
        assert_eq!(of("DiskPressure"), (false, "KubeletHasNoDiskPressure"));
        assert_eq!(of("PIDPressure"), (true, "KubeletHasInsufficientPID"));
        assert_eq!(found.len(), 4);
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
