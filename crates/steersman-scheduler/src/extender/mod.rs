//! Extenders: programs elsewhere that have a say, asked by HTTP.
//!
//! Which there are, and what they are asked, stands in the configuration. After plug-ins have filtered,
//! each is given the nodes that are left; what it scores is added to what plug-ins score; it may strike
//! out whom a Pod would make go, and bind the Pod itself.

mod config;
mod search;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};
use steersman::ObjectKey;

pub(crate) use self::config::ExtenderConfiguration;
use crate::framework::{Binding, Candidate, NodeInfo, PodInfo, Snapshot};

/// Who refused a Pod, if it was an extender.
pub(crate) const NAME: &str = "Extender";
/// How much the best score of an extender is worth beside that of a plug-in.
const SCALE: i64 = 10;

/// All extenders, in their order.
#[derive(Default)]
pub(crate) struct Extenders(Vec<Extender>);

/// A program elsewhere.
struct Extender {
    configuration: ExtenderConfiguration,
    client: kube::Client,
    timeout: Duration,
}

/// What an extender said about nodes.
struct Filtered {
    nodes: Vec<Arc<NodeInfo>>,
    /// Why others cannot run the Pod, by name.
    failed: HashMap<String, String>,
    /// The same where it would not help if others went.
    unresolvable: HashMap<String, String>,
}

impl Extenders {
    /// Those of a configuration.
    pub(crate) fn start(configurations: &[ExtenderConfiguration]) -> Result<Self, kube::Error> {
        let extender = |configuration: &ExtenderConfiguration| {
            Ok(Extender {
                client: kube::Client::try_from(configuration.client())?,
                timeout: configuration.timeout(),
                configuration: configuration.clone(),
            })
        };
        configurations.iter().map(extender).collect::<Result<_, kube::Error>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets an extender bind a Pod, if one does that; otherwise it says nothing.
    pub(crate) async fn bind(&self, binding: &Binding) -> Option<Result<(), String>> {
        for extender in &self.0 {
            if extender.configuration.bind_verb.is_empty() || !extender.is_interested(&binding.pod)
            {
                continue;
            }
            match extender.bind(binding).await {
                Err(why) if extender.configuration.ignorable => extender.skipped(&why),
                bound => return Some(bound),
            }
        }
        None
    }

    /// The nodes where a Pod may make others go, and whom, after every extender was asked.
    pub(crate) async fn preempt(
        &self,
        pod: &Pod,
        mut candidates: Vec<Candidate>,
        snapshot: &Snapshot,
        read: impl Fn(&ObjectKey) -> Option<Arc<Pod>>,
    ) -> Result<Vec<Candidate>, String> {
        for extender in &self.0 {
            if extender.configuration.preempt_verb.is_empty() || !extender.is_interested(pod) {
                continue;
            }
            let left = extender.preempt(pod, &candidates, snapshot, &read).await;
            let ignorable = extender.configuration.ignorable;
            candidates = match left {
                Ok(left) => left,
                Err(why) if ignorable => {
                    extender.skipped(&why);
                    continue;
                }
                Err(why) => return Err(why),
            };
            if ignorable {
                candidates.retain(|candidate| !candidate.victims.is_empty());
            }
            if let Some(empty) = candidates.iter().find(|it| it.victims.is_empty()) {
                return Err(format!("expected at least one victim pod on node {:?}", empty.node));
            }
            if candidates.is_empty() {
                break;
            }
        }
        Ok(candidates)
    }
}

impl Extender {
    /// Whether it wants to be asked about a Pod.
    fn is_interested(&self, pod: &Pod) -> bool {
        let managed = &self.configuration.managed_resources;
        let asks = |container: &Container| {
            let resources = container.resources.as_ref();
            let names = resources.into_iter().flat_map(|it| [&it.requests, &it.limits]);
            let mut names = names.flatten().flat_map(|amounts| amounts.keys());
            names.any(|name| managed.iter().any(|resource| resource.name == *name))
        };
        let Some(spec) = &pod.spec else { return managed.is_empty() };
        let mut containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        managed.is_empty() || containers.any(asks)
    }

    fn skipped(&self, why: &str) {
        let extender = &*self.configuration.url_prefix;
        tracing::info!(extender, why, "extender failed and is ignored");
    }

    /// Asks something.
    async fn send(&self, verb: &str, question: &Value) -> Result<Value, String> {
        let request = http::Request::post(format!("/{verb}"));
        let request = request.header("Content-Type", "application/json");
        let request = request.body(question.to_string().into_bytes());
        let request = request.map_err(|error| error.to_string())?;
        let url = format!("{}/{verb}", self.configuration.url_prefix.trim_end_matches('/'));
        let failed = |why: &str| format!("Post {url:?}: {why}");
        let answer = async {
            let answer = self.client.send(request.map(kube::client::Body::from)).await;
            let answer = answer.map_err(|error| failed(&error.to_string()))?;
            let code = answer.status().as_u16();
            if answer.status() != http::StatusCode::OK {
                return Err(format!("failed {verb} with extender at URL {url}, code {code}"));
            }
            let body = answer.into_body().collect().await;
            body.map(http_body_util::Collected::to_bytes)
                .map_err(|error| failed(&error.to_string()))
        };
        let answer = tokio::time::timeout(self.timeout, answer).await.map_err(|_| {
            failed("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
        })?;
        serde_json::from_slice(&answer?).map_err(|error| error.to_string())
    }

    /// A Pod and nodes, as they are told.
    fn question(&self, pod: &Pod, nodes: &[Arc<NodeInfo>]) -> Value {
        match self.configuration.node_cache_capable {
            true => {
                let names: Vec<&str> = nodes.iter().map(|node| node.name()).collect();
                json!({"Pod": pod, "Nodes": null, "NodeNames": names})
            }
            false => {
                let items: Vec<_> = nodes.iter().map(|node| &*node.node).collect();
                let nodes = json!({"metadata": {}, "items": items});
                json!({"Pod": pod, "Nodes": nodes, "NodeNames": null})
            }
        }
    }

    /// Which nodes can run a Pod.
    async fn filter(&self, pod: &Pod, nodes: &[Arc<NodeInfo>]) -> Result<Filtered, String> {
        let question = self.question(pod, nodes);
        let answer = self.send(&self.configuration.filter_verb, &question).await?;
        if let Some(error) = field(&answer, "Error").as_str().filter(|error| !error.is_empty()) {
            return Err(error.to_owned());
        }
        let names: Vec<&str> = match field(&answer, "NodeNames").as_array() {
            Some(names) if self.configuration.node_cache_capable => {
                names.iter().filter_map(Value::as_str).collect()
            }
            _ => {
                let items = field(field(&answer, "Nodes"), "items").as_array();
                let names = items.into_iter().flatten().map(|node| &node["metadata"]["name"]);
                names.filter_map(Value::as_str).collect()
            }
        };
        let mut left = Vec::new();
        for name in names {
            let node = nodes.iter().find(|node| node.name() == name).ok_or_else(|| {
                let url = &self.configuration.url_prefix;
                format!(
                    "extender {url:?} claims a filtered node {name:?} which is not found in the \
                     input node list"
                )
            })?;
            left.push(Arc::clone(node));
        }
        let reasons =
            |name: &str| serde_json::from_value(field(&answer, name).clone()).unwrap_or_default();
        let failed = reasons("FailedNodes");
        let unresolvable = reasons("FailedAndUnresolvableNodes");
        Ok(Filtered { nodes: left, failed, unresolvable })
    }

    /// What is to be added to the scores of nodes, by name.
    async fn prioritize(
        &self,
        pod: &Pod,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<HashMap<String, i64>, String> {
        let question = self.question(pod, nodes);
        let answer = self.send(&self.configuration.prioritize_verb, &question).await?;
        let scores = answer.as_array().into_iter().flatten().filter_map(|one| {
            let score = field(one, "Score").as_i64()?;
            let worth = score.saturating_mul(self.configuration.weight).saturating_mul(SCALE);
            Some((field(one, "Host").as_str()?.to_owned(), worth))
        });
        Ok(scores.collect())
    }

    async fn bind(&self, binding: &Binding) -> Result<(), String> {
        let question = json!({
            "PodName": *binding.info.key.name,
            "PodNamespace": binding.info.namespace(),
            "PodUID": *binding.info.uid,
            "Node": *binding.node,
        });
        let answer = self.send(&self.configuration.bind_verb, &question).await?;
        match field(&answer, "Error").as_str() {
            Some(error) if !error.is_empty() => Err(error.to_owned()),
            _ => Ok(()),
        }
    }

    async fn preempt(
        &self,
        pod: &Pod,
        candidates: &[Candidate],
        snapshot: &Snapshot,
        read: &impl Fn(&ObjectKey) -> Option<Arc<Pod>>,
    ) -> Result<Vec<Candidate>, String> {
        let knows_nodes = self.configuration.node_cache_capable;
        let victim = |victim: &Arc<PodInfo>| match knows_nodes {
            true => Some(json!({"UID": *victim.uid})),
            false => read(&victim.key).map(|pod| json!(*pod)),
        };
        let victims = candidates.iter().map(|candidate| {
            let pods: Vec<Value> = candidate.victims.iter().filter_map(victim).collect();
            let told = json!({"Pods": pods, "NumPDBViolations": candidate.violations});
            (candidate.node.to_string(), told)
        });
        let victims: serde_json::Map<String, Value> = victims.collect();
        let question = match knows_nodes {
            true => {
                json!({"Pod": pod, "NodeNameToVictims": null, "NodeNameToMetaVictims": victims})
            }
            false => {
                json!({"Pod": pod, "NodeNameToVictims": victims, "NodeNameToMetaVictims": null})
            }
        };
        let answer = self.send(&self.configuration.preempt_verb, &question).await?;
        let told = field(&answer, "NodeNameToMetaVictims").as_object();
        told.into_iter()
            .flatten()
            .map(|(node, told)| self.candidate(node, told, snapshot))
            .collect()
    }

    /// A node, and who has to go from there, as an extender names them.
    fn candidate(
        &self,
        name: &str,
        told: &Value,
        snapshot: &Snapshot,
    ) -> Result<Candidate, String> {
        let node = snapshot
            .get(name)
            .ok_or_else(|| format!("nodeinfo not found for node name {name:?}"))?;
        let victim = |told: &Value| {
            let uid = field(told, "UID").as_str().unwrap_or_default();
            let pod = node.pods.iter().find(|pod| &*pod.uid == uid).cloned();
            pod.ok_or_else(|| {
                let url = &self.configuration.url_prefix;
                format!(
                    "extender: {url} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, but the \
                     pod is not found on that node"
                )
            })
        };
        let pods = field(told, "Pods").as_array().into_iter().flatten();
        let violations = field(told, "NumPDBViolations").as_u64().unwrap_or_default();
        Ok(Candidate {
            node: name.into(),
            victims: pods.map(victim).collect::<Result<_, String>>()?,
            violations: usize::try_from(violations).unwrap_or(usize::MAX),
        })
    }
}

/// A field, whose name Go reads in whatever case it is written.
fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    let found = value.get(name).or_else(|| {
        let fields = value.as_object()?.iter();
        fields.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    });
    found.unwrap_or(&Value::Null)
}
