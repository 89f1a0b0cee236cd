//! Who has to go from a node for a Pod that the system needs, as a kubelet chooses.
//!
//! Of those who may have to go, as few as possible do and the best treated last: first it is found who
//! of the Guaranteed would have to go if all others did, then who of the Burstable beside those, then
//! who of the rest. In each class the next one is who leaves least to be wished for.

use k8s_openapi::api::core::v1::Pod;
use steersman_scheduler::framework::{PodRequests, Resources};

use crate::eviction::is_critical;

/// The name of what each Pod has one of.
pub(crate) const PODS: &str = "pods";

/// How much of a resource a node has too little of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) resource: String,
    pub(crate) amount: i64,
}

/// There is nobody who could make enough room.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Unexpected error while attempting to recover from admission failure: preemption: error finding a \
     set of pods to preempt: no set of running pods found to reclaim resources: {0}"
)]
pub(crate) struct NobodyHelps(String);

/// A Pod that may have to go.
struct Candidate<'a> {
    pod: &'a Pod,
    asked: Resources,
}

impl Candidate<'_> {
    fn has(&self, resource: &str) -> i64 {
        if resource == PODS { 1 } else { self.asked.get(resource) }
    }

    /// How much memory it asks for, and if that is the same how many cpus.
    fn size(&self) -> (i64, i64) {
        (self.asked.memory(), self.asked.milli_cpu())
    }
}

/// The Pods that have to go so that there is what another lacks.
pub(crate) fn victims<'a>(
    preemptor: &Pod,
    pods: &'a [Pod],
    lacks: &[Lack],
) -> Result<Vec<&'a Pod>, NobodyHelps> {
    let candidates = |class: &str| -> Vec<Candidate<'a>> {
        let of_class = pods.iter().filter(|pod| {
            let status = pod.status.as_ref();
            status.and_then(|status| status.qos_class.as_deref()) == Some(class)
        });
        let weaker = of_class.filter(|pod| may_go(preemptor, pod));
        weaker.map(|pod| Candidate { pod, asked: PodRequests::of(pod).asked }).collect()
    };
    let [best_effort, burstable, guaranteed] =
        ["BestEffort", "Burstable", "Guaranteed"].map(candidates);
    let left = without(lacks, &best_effort.iter().chain(&burstable).chain(&guaranteed));
    if !left.is_empty() {
        return Err(NobodyHelps(told(&left)));
    }
    let rest = without(lacks, &best_effort.iter().chain(&burstable));
    let guaranteed = nearest(guaranteed, rest)?;
    let burstable = nearest(burstable, without(lacks, &best_effort.iter().chain(&guaranteed)))?;
    let best_effort = nearest(best_effort, without(lacks, &burstable.iter().chain(&guaranteed)))?;
    let all = best_effort.iter().chain(&burstable).chain(&guaranteed);
    Ok(all.map(|candidate| candidate.pod).collect())
}

/// Whether a Pod may have to go for another.
fn may_go(preemptor: &Pod, pod: &Pod) -> bool {
    let priority = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.priority);
    let is_higher =
        priority(preemptor).zip(priority(pod)).is_some_and(|(higher, lower)| higher > lower);
    is_critical(preemptor) && !is_critical(pod) || is_higher
}

/// What is still lacking when these have gone.
fn without<'c>(
    lacks: &[Lack],
    gone: &(impl Iterator<Item = &'c Candidate<'c>> + Clone),
) -> Vec<Lack> {
    let left = lacks.iter().map(|Lack { resource, amount }| {
        let freed = gone.clone().map(|one| one.has(resource)).fold(0, i64::saturating_add);
        Lack { resource: resource.clone(), amount: amount.saturating_sub(freed) }
    });
    left.filter(|lack| lack.amount > 0).collect()
}

/// Takes one after the other until nothing is lacking.
fn nearest<'a>(
    mut candidates: Vec<Candidate<'a>>,
    mut lacks: Vec<Lack>,
) -> Result<Vec<Candidate<'a>>, NobodyHelps> {
    let mut taken: Vec<Candidate<'a>> = Vec::new();
    while !lacks.is_empty() {
        let best = candidates.iter().enumerate().min_by(|(_, one), (_, other)| {
            let distances = distance(one, &lacks).total_cmp(&distance(other, &lacks));
            distances.then_with(|| one.size().cmp(&other.size()))
        });
        let Some((best, _)) = best else { return Err(NobodyHelps(told(&lacks))) };
        let best = candidates.swap_remove(best);
        lacks = without(&lacks, &std::iter::once(&best));
        taken.push(best);
    }
    Ok(taken)
}

/// How much a Pod leaves to be wished for, each resource counting the same.
#[expect(clippy::cast_precision_loss, reason = "amounts are compared, not counted")]
fn distance(candidate: &Candidate<'_>, lacks: &[Lack]) -> f64 {
    let left = |lack: &Lack| {
        let left = lack.amount.saturating_sub(candidate.has(&lack.resource)).max(0);
        (left as f64 / lack.amount as f64).powi(2)
    };
    lacks.iter().map(left).sum()
}

fn told(lacks: &[Lack]) -> String {
    let each = lacks.iter().map(|it| format!("(res: {}, q: {}), ", it.resource, it.amount));
    format!("[{}]", each.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, class: &str, cpu: &str, memory: &str) -> Pod {
        let resources = json!({"requests": {"cpu": cpu, "memory": memory}});
        let containers = json!([{"name": "c", "resources": resources}]);
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"priority": 0, "containers": containers},
            "status": {"qosClass": class},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn critical() -> Pod {
        let mut pod = pod("critical", "Burstable", "1", "1Mi");
        pod.spec.as_mut().unwrap().priority = Some(2_000_000_000);
        pod
    }

    fn lack(resource: &str, amount: i64) -> Lack {
        Lack { resource: resource.into(), amount }
    }

    fn chosen(pods: &[Pod], lacks: &[Lack]) -> Vec<String> {
        let victims = victims(&critical(), pods, lacks).unwrap();
        victims.into_iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn the_best_treated_go_last_and_as_few_as_possible() {
        let pods = [
            pod("guaranteed", "Guaranteed", "2", "1Gi"),
            pod("large", "Burstable", "2", "1Gi"),
            pod("small", "Burstable", "1", "1Gi"),
            pod("none", "BestEffort", "0", "0"),
        ];
        assert_eq!(chosen(&pods, &[lack("cpu", 500)]), ["small"]);
        assert_eq!(chosen(&pods, &[lack("cpu", 1500)]), ["large"]);
        assert_eq!(chosen(&pods, &[lack("cpu", 3000)]), ["large", "small"]);
        assert_eq!(chosen(&pods, &[lack("cpu", 4000)]), ["large", "guaranteed"]);
        assert_eq!(chosen(&pods, &[lack(PODS, 1)]), ["none"]);
    }

    #[test]
    fn of_two_that_are_as_good_the_smaller_goes() {
        let pods = [pod("more", "Burstable", "1", "2Gi"), pod("less", "Burstable", "1", "1Gi")];
        assert_eq!(chosen(&pods, &[lack("cpu", 1000)]), ["less"]);
    }

    #[test]
    fn who_is_as_important_stays_and_then_nobody_helps() {
        let pods = [critical(), pod("web", "Burstable", "1", "1Gi")];
        let error = victims(&critical(), &pods, &[lack("cpu", 1500)]).unwrap_err();
        assert!(
            error.to_string().ends_with("reclaim resources: [(res: cpu, q: 500), ]"),
            "{error}"
        );
        let mut higher = critical();
        higher.spec.as_mut().unwrap().priority = Some(2_000_001_000);
        let lacks = [lack("cpu", 1500)];
        let names = victims(&higher, &pods, &lacks).unwrap().len();
        assert_eq!(names, 2, "there is somebody more important");
    }
}
