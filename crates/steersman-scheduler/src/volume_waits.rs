//! The Pods that wait because of their claims, and those whose volumes are being bound for a node.

use std::collections::BTreeMap;

use steersman::ObjectKey;
use tokio::time::Instant;

/// Who waits, and for what.
#[derive(Debug, Default)]
pub(crate) struct VolumeWaits {
    pods: BTreeMap<ObjectKey, Wait>,
}

#[derive(Debug)]
struct Wait {
    claims: Vec<ObjectKey>,
    node: Option<Chosen>,
}

/// The node for which the volumes of a Pod are being bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Its name.
    pub(crate) node: String,
    /// How long they may take.
    pub(crate) until: Instant,
}

impl VolumeWaits {
    /// Notes that a Pod with these claims waits, for the volumes that are bound for a node if one is
    /// chosen.
    pub(crate) fn add(&mut self, pod: &ObjectKey, claims: Vec<ObjectKey>, node: Option<Chosen>) {
        if !claims.is_empty() {
            self.pods.insert(pod.clone(), Wait { claims, node });
        }
    }

    /// Notes that a Pod waits no more.
    pub(crate) fn remove(&mut self, pod: &ObjectKey) {
        self.pods.remove(pod);
    }

    /// The node for which the volumes of a Pod are being bound.
    pub(crate) fn chosen(&self, pod: &ObjectKey) -> Option<Chosen> {
        self.pods.get(pod)?.node.clone()
    }

    /// Who waits for a claim.
    pub(crate) fn of_claim(&self, claim: &ObjectKey) -> Vec<ObjectKey> {
        let waiting = self.pods.iter().filter(|(_, wait)| wait.claims.contains(claim));
        waiting.map(|(pod, _)| pod.clone()).collect()
    }

    /// All who wait.
    pub(crate) fn all(&self) -> Vec<ObjectKey> {
        self.pods.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_claim_names_the_pods_that_wait_for_it() {
        let mut waits = VolumeWaits::default();
        let (web, db) = (ObjectKey::from("default/web"), ObjectKey::from("default/db"));
        let (data, log) = (ObjectKey::from("default/data"), ObjectKey::from("default/log"));
        let chosen = Chosen { node: "n".into(), until: Instant::now() + Duration::from_secs(1) };
        waits.add(&web, vec![data.clone(), log.clone()], None);
        waits.add(&db, vec![data.clone()], Some(chosen.clone()));
        waits.add(&ObjectKey::from("default/plain"), Vec::new(), None);
        assert_eq!(waits.of_claim(&data), [db.clone(), web.clone()]);
        assert_eq!(waits.of_claim(&log), std::slice::from_ref(&web));
        assert_eq!((waits.chosen(&web), waits.chosen(&db)), (None, Some(chosen)));
        waits.remove(&web);
        assert_eq!(waits.all(), [db]);
    }
}
