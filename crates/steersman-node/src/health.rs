//! How this machine and its container runtime are: looked at again and again for the Node's
//! conditions and its list of images.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerImage, NodeRuntimeHandler, NodeRuntimeHandlerFeatures};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::cri::wire::RuntimeCondition;
use crate::cri::wire::image::Image;
use crate::cri::{Cri, CriError, Said};
use crate::duration::go;
use crate::eviction::Condition;
use crate::registration::{Abilities, Finding, Health, healthy};

/// How often.
const PERIOD: Duration = Duration::from_secs(5);
/// How many images a Node names, the largest first, and how many names of each.
const IMAGES_MAX: usize = 50;
const NAMES_MAX: usize = 5;

/// After how long without a good answer the runtime counts as down.
const DOWN_AFTER: Duration = Duration::from_secs(30);
/// How old the last list of what runs may be.
const RELIST_MAX: Duration = Duration::from_secs(180);

/// What was seen of the runtime.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    /// When it last said that it works.
    worked: Option<Instant>,
    /// What does not work, as it said last.
    runtime: Option<String>,
    network: Option<String>,
    /// What it can do, as it said last.
    abilities: Abilities,
}

impl Sight {
    /// Takes in what the runtime says of itself. No answer says nothing.
    fn take_in(&mut self, answer: Result<Said, CriError>, now: Instant) {
        let conditions = match answer {
            Ok(said) => {
                self.abilities = abilities(&said);
                said.conditions
            }
            Err(error) => {
                tracing::debug!(%error, "the container runtime does not say how it is");
                return;
            }
        };
        self.network = network_trouble(&conditions);
        let runtime = not_ready(&conditions, "RuntimeReady");
        self.runtime = runtime.map(|why| format!("container runtime not ready: {why}"));
        if self.runtime.is_none() {
            self.worked = Some(now);
        }
    }

    /// Why the node is not ready, said as a kubelet says it. What runs was listed last at `relisted`.
    fn trouble(&self, relisted: Instant, now: Instant) -> Option<String> {
        let down = match self.worked {
            None => Some("container runtime status check may not have completed yet".to_owned()),
            Some(worked) if now.duration_since(worked) >= DOWN_AFTER => {
                Some("container runtime is down".to_owned())
            }
            Some(_) => None,
        };
        let silent = now.duration_since(relisted);
        let stale = (silent > RELIST_MAX).then(|| {
            let (silent, most) = (go(silent), go(RELIST_MAX));
            format!(
                "PLEG is not healthy: pleg was last seen active {silent} ago; threshold is {most}"
            )
        });
        let told = [down, stale, self.runtime.clone(), self.network.clone()];
        let told: Vec<String> = told.into_iter().flatten().collect();
        match &told[..] {
            [] => None,
            [only] => Some(only.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }
}

/// How it is now, and what was seen of it.
pub(crate) async fn first(cri: &Cri) -> (Health, Sight) {
    let mut sight = Sight::default();
    let health = look(cri, &mut sight, Instant::now(), &[]).await;
    (health, sight)
}

async fn look(cri: &Cri, sight: &mut Sight, relisted: Instant, pressure: &[Condition]) -> Health {
    let (said, images) = futures::join!(cri.status(), cri.images());
    sight.take_in(said, Instant::now());
    let conditions = findings(sight.trouble(relisted, Instant::now()), pressure);
    let (images, abilities) = (named(images.unwrap_or_default()), sight.abilities.clone());
    Health { conditions, images, abilities }
}

/// What a runtime can do, as a Node says it.
fn abilities(said: &Said) -> Abilities {
    let handlers = said.handlers.iter().map(|handler| {
        let features = handler.features.unwrap_or_default();
        NodeRuntimeHandler {
            name: Some(handler.name.clone()),
            features: Some(NodeRuntimeHandlerFeatures {
                recursive_read_only_mounts: Some(features.recursive_read_only_mounts),
                user_namespaces: Some(features.user_namespaces),
            }),
        }
    });
    let strict_groups = said.features.map(|features| features.supplemental_groups_policy);
    Abilities { handlers: handlers.collect(), strict_groups }
}

/// Looks for ever, and tells those who listen. What runs was listed last at `relisted()`.
pub(crate) async fn run(
    cri: &Cri,
    mut sight: Sight,
    relisted: impl Fn() -> Instant,
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
        let found = look(cri, &mut sight, relisted(), &short).await;
        health.send_if_modified(|known| {
            let changed = *known != found;
            *known = found;
            changed
        });
    }
}

/// What the conditions of the Node say.
fn findings(trouble: Option<String>, pressure: &[Condition]) -> Vec<Finding> {
    let mut findings = healthy();
    for short in pressure.iter().map(|condition| short(*condition)) {
        if let Some(found) = findings.iter_mut().find(|found| found.type_ == short.type_) {
            *found = short;
        }
    }
    let ready = findings.iter_mut().find(|finding| finding.type_ == "Ready");
    if let (Some(ready), Some(message)) = (ready, trouble) {
        *ready = Finding { type_: "Ready", holds: false, reason: "KubeletNotReady", message };
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

/// Why Pods can have no network of their own, by what the runtime says of itself.
pub(crate) fn network_trouble(conditions: &[RuntimeCondition]) -> Option<String> {
    let why = not_ready(conditions, "NetworkReady")?;
    Some(format!("container runtime network not ready: {why}"))
}

/// What a condition of the runtime says, unless all is well.
fn not_ready(conditions: &[RuntimeCondition], type_: &str) -> Option<String> {
    match conditions.iter().find(|condition| condition.r#type == type_) {
        Some(condition) if condition.status => None,
        Some(RuntimeCondition { reason, message, .. }) => {
            Some(format!("{type_}=false reason:{reason} message:{message}"))
        }
        None => Some("<nil>".to_owned()),
    }
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
    use serde_json::json;

    use super::*;
    use crate::cri::wire::{RuntimeFeatures, RuntimeHandler, RuntimeHandlerFeatures};

    fn condition(type_: &str, status: bool) -> RuntimeCondition {
        let text = if status { String::new() } else { "broken".to_owned() };
        RuntimeCondition { r#type: type_.into(), status, reason: text.clone(), message: text }
    }

    fn says(network: bool) -> Result<Said, CriError> {
        told(vec![condition("RuntimeReady", true), condition("NetworkReady", network)])
    }

    fn told(conditions: Vec<RuntimeCondition>) -> Result<Said, CriError> {
        Ok(Said { conditions, ..Said::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_ready_when_its_runtime_and_network_are() {
        let now = Instant::now();
        let mut sight = Sight::default();
        let yet = "container runtime status check may not have completed yet";
        assert_eq!(sight.trouble(now, now).as_deref(), Some(yet));
        sight.take_in(says(true), now);
        assert_eq!(sight.trouble(now, now), None);
        sight.take_in(says(false), now);
        let said =
            "container runtime network not ready: NetworkReady=false reason:broken message:broken";
        assert_eq!(sight.trouble(now, now).as_deref(), Some(said));
        sight.take_in(
            told(vec![condition("RuntimeReady", false), condition("NetworkReady", true)]),
            now,
        );
        let said = "container runtime not ready: RuntimeReady=false reason:broken message:broken";
        assert_eq!(sight.trouble(now, now).as_deref(), Some(said));
        let found = findings(sight.trouble(now, now), &[]);
        let ready = found.iter().find(|one| one.type_ == "Ready").unwrap();
        assert!(!ready.holds && ready.reason == "KubeletNotReady" && ready.message == said);
    }

    #[tokio::test(start_paused = true)]
    async fn a_runtime_that_does_not_answer_is_down_after_a_while_and_then_its_lists_are_too_old() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut sight = Sight::default();
        sight.take_in(says(true), start);
        let late = || Err(CriError::Deadline { method: "Status", within: PERIOD });
        sight.take_in(late(), after(29));
        assert_eq!(sight.trouble(start, after(29)), None);
        let down = "container runtime is down";
        assert_eq!(sight.trouble(start, after(30)).as_deref(), Some(down));
        assert_eq!(sight.trouble(start, after(180)).as_deref(), Some(down));
        let stale = "PLEG is not healthy: pleg was last seen active 3m1s ago; threshold is 3m0s";
        let both = format!("[{down}, {stale}]");
        assert_eq!(sight.trouble(start, after(181)), Some(both));
        sight.take_in(says(true), after(181));
        assert_eq!(sight.trouble(start, after(181)).as_deref(), Some(stale));
        assert_eq!(sight.trouble(after(181), after(181)), None);
    }

    #[test]
    fn a_node_says_what_its_runtime_can_do() {
        let features = RuntimeHandlerFeatures {
            recursive_read_only_mounts: true,
            ..RuntimeHandlerFeatures::default()
        };
        let handler = |name: &str, features| RuntimeHandler { name: name.into(), features };
        let handlers = vec![handler("", Some(features)), handler("kata", None)];
        let features = Some(RuntimeFeatures { supplemental_groups_policy: true });
        let said = Said { conditions: Vec::new(), handlers, features };
        assert!(said.reads_only_recursively(""));
        assert!(!said.reads_only_recursively("kata") && !said.reads_only_recursively("other"));
        let Abilities { handlers, strict_groups } = abilities(&said);
        let expected = json!([
            {"name": "", "features": {"recursiveReadOnlyMounts": true, "userNamespaces": false}},
            {"name": "kata", "features": {"recursiveReadOnlyMounts": false, "userNamespaces": false}},
        ]);
        assert_eq!(serde_json::to_value(handlers).unwrap(), expected);
        assert_eq!(strict_groups, Some(true));
        assert_eq!(abilities(&Said::default()), Abilities::default(), "an older one says nothing");
    }

    #[test]
    fn a_node_says_what_it_is_short_of() {
        let found = findings(None, &[Condition::Memory, Condition::Pid]);
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
