//! Notices which Pods' containers and sandboxes have changed, by listing all of them again and again,
//! as a kubelet's pod lifecycle event generator does: older runtimes tell nobody by themselves.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use steersman::{ObjectKey, clock};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::labels::{self, NODE};
use super::{Shared, locked, moments};
use crate::cri::CriError;

/// How often.
const PERIOD: Duration = Duration::from_secs(1);

/// The state of each container and sandbox.
type Fingerprint = BTreeSet<(String, i32)>;

/// What was there, by Pod.
type Listed = HashMap<ObjectKey, Fingerprint>;

/// Wakes Pods of which something has changed, for ever.
pub(super) async fn run(shared: &Shared) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before: Option<Listed> = None;
    let mut away = false;
    loop {
        ticks.tick().await;
        let begun = Instant::now();
        match list(shared).await {
            Ok(now) => {
                *locked(&shared.relisted) = begun;
                if away {
                    tracing::info!("the container runtime answers again");
                }
                away = false;
                for pod in changed(before.as_ref(), &now) {
                    shared.wake(pod).await;
                }
                before = Some(now);
            }
            Err(error) if !away => {
                away = true;
                tracing::warn!(%error, "the container runtime does not answer; retrying");
            }
            Err(_) => {}
        }
    }
}

async fn list(shared: &Shared) -> Result<Listed, CriError> {
    let own = Some((NODE, shared.ground.node.as_str()));
    let asked = clock::now();
    let (sandboxes, containers) =
        futures::try_join!(shared.cri.sandboxes(own), shared.cri.containers(own))?;
    moments::confirm(shared, &containers, asked);
    let mut listed = Listed::new();
    let sandboxes = sandboxes.into_iter().map(|one| (one.labels, one.id, one.state));
    let containers = containers.into_iter().map(|one| (one.labels, one.id, one.state));
    for (labels, id, state) in sandboxes.chain(containers) {
        let Some(pod) = labels::pod(&labels) else { continue };
        listed.entry(pod).or_default().insert((id, state));
    }
    Ok(listed)
}

/// The Pods of which something is, or is not, as it was.
fn changed(before: Option<&Listed>, now: &Listed) -> Vec<ObjectKey> {
    let nothing = Listed::new();
    let before = before.unwrap_or(&nothing);
    let differs = |pod: &&ObjectKey| before.get(*pod) != now.get(*pod);
    let mut changed: Vec<ObjectKey> =
        before.keys().chain(now.keys()).filter(differs).cloned().collect();
    changed.sort();
    changed.dedup();
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_woken_when_something_of_them_is_other_than_before() {
        let pod = |name: &str| ObjectKey::namespaced("default", name);
        let with = |parts: &[(&str, &str, i32)]| {
            let mut listed = Listed::new();
            for (name, id, state) in parts {
                listed.entry(pod(name)).or_default().insert(((*id).to_owned(), *state));
            }
            listed
        };
        let first = with(&[("a", "1", 1), ("b", "2", 1)]);
        assert_eq!(changed(None, &first), [pod("a"), pod("b")]);
        assert_eq!(changed(Some(&first), &first), []);
        let ended = with(&[("a", "1", 2), ("b", "2", 1)]);
        assert_eq!(changed(Some(&first), &ended), [pod("a")]);
        let gone = with(&[("a", "1", 1)]);
        assert_eq!(changed(Some(&first), &gone), [pod("b")]);
    }
}
