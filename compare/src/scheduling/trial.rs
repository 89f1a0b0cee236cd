//! One Pod, given to one of the schedulers, and what became of it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::scores::Scores;
use crate::api::{Api, path};

/// How often it is looked whether a scheduler has decided.
const LOOK: Duration = Duration::from_millis(4);
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// After this time without another victim there comes none.
const QUIET: Duration = Duration::from_millis(250);
/// How long kube-scheduler holds on to a Pod that is gone while it waits for a volume of it.
const LETS_GO: Duration = Duration::from_millis(1500);
/// By this annotation a claim tells for which node its volume is to be made.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// What became of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) node: Option<String>,
    /// Reason and message of its condition, if it has no node.
    pub(super) condition: Option<[String; 2]>,
    /// What the Event says.
    pub(super) note: Option<String>,
    /// Where room is made for it, and who has to go.
    pub(super) nominated: Option<String>,
    pub(super) victims: BTreeSet<String>,
    pub(super) scores: Scores,
}

/// A Pod of a cluster.
pub(super) struct Trial<'a> {
    pub(super) api: &'a Api,
    pub(super) pod: &'a Value,
    /// The claim whose volume is made when it has a node, if it has one.
    pub(super) claim: Option<&'a Value>,
    /// The Pods that run.
    pub(super) running: &'a [Value],
}

impl Trial<'_> {
    /// Lets a scheduler decide. The Pod is left as it is then.
    pub(super) async fn decided_by(&self, scheduler: &str) -> Result<Decision, String> {
        let mut pod = self.pod.clone();
        pod["spec"]["schedulerName"] = json!(scheduler);
        let uid = self.api.create(&pod).await?["metadata"]["uid"].clone();
        let began = Instant::now();
        let mut decision = loop {
            if let Some(decision) = self.look(&uid).await? {
                break decision;
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("{scheduler} does not decide about {}", path(&pod)));
            }
            sleep(LOOK).await;
        };
        if decision.node.is_none() {
            decision.note = Some(self.note(&uid).await?);
        }
        if decision.nominated.is_some() {
            decision.victims = self.victims().await?;
        }
        Ok(decision)
    }

    /// What can be seen of a decision.
    async fn look(&self, uid: &Value) -> Result<Option<Decision>, String> {
        let found = self.api.get(&path(self.pod)).await?.unwrap_or_default();
        if found["metadata"]["uid"] != *uid {
            return Err(format!("{} is gone", path(self.pod)));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if let Some(node) = text(&found["spec"]["nodeName"]) {
            return Ok(Some(Decision { node: Some(node), ..Decision::default() }));
        }
        if let Some(claim) = self.claim {
            let claim = self.api.get(&path(claim)).await?.unwrap_or_default();
            if let Some(node) = text(&claim["metadata"]["annotations"][SELECTED_NODE]) {
                return Ok(Some(Decision { node: Some(node), ..Decision::default() }));
            }
        }
        let conditions = found["status"]["conditions"].as_array().into_iter().flatten();
        let refused = |it: &&Value| it["type"] == "PodScheduled" && it["status"] == "False";
        Ok(conditions.clone().find(refused).map(|condition| Decision {
            condition: Some(
                [&condition["reason"], &condition["message"]]
                    .map(|it| it.as_str().unwrap_or_default().to_owned()),
            ),
            nominated: text(&found["status"]["nominatedNodeName"]),
            ..Decision::default()
        }))
    }

    /// What an Event says about why the Pod has no node.
    async fn note(&self, uid: &Value) -> Result<String, String> {
        let namespace = self.pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let events = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let of_pod =
                |it: &&Value| it["regarding"]["uid"] == *uid && it["reason"] == "FailedScheduling";
            if let Some(event) = self.api.list(&events).await?.iter().find(of_pod) {
                self.api.remove(&with_kind(event)).await?;
                return Ok(event["note"].as_str().unwrap_or_default().to_owned());
            }
            sleep(LOOK).await;
        }
        Err(format!("nobody is told why {} has no node", path(self.pod)))
    }

    /// Who has to go, once no others do.
    async fn victims(&self) -> Result<BTreeSet<String>, String> {
        let mut victims = BTreeSet::new();
        loop {
            sleep(QUIET).await;
            let mut more = BTreeSet::new();
            for pod in self.running {
                let found = self.api.get(&path(pod)).await?.unwrap_or_default();
                if !found["metadata"]["deletionTimestamp"].is_null() || found.is_null() {
                    more.insert(pod["metadata"]["name"].as_str().unwrap_or_default().to_owned());
                }
            }
            if more == victims {
                return Ok(victims);
            }
            victims = more;
        }
    }

    /// Makes the cluster as it was before.
    pub(super) async fn undo(&self, decision: &Decision) -> Result<(), String> {
        self.api.remove(self.pod).await?;
        for pod in self.running {
            let is_victim =
                pod["metadata"]["name"].as_str().is_some_and(|it| decision.victims.contains(it));
            if is_victim {
                self.api.remove(pod).await?;
                self.api.create(pod).await?;
            }
        }
        if let Some(claim) = self.claim {
            self.api.remove(claim).await?;
            sleep(LETS_GO).await;
            self.api.create(claim).await?;
            sleep(QUIET).await;
        }
        Ok(())
    }
}

/// An object of a list, which does not name its kind.
fn with_kind(event: &Value) -> Value {
    let mut event = event.clone();
    event["apiVersion"] = json!("events.k8s.io/v1");
    event["kind"] = json!("Event");
    event
}
