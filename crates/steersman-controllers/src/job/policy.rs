//! What a Job's policies say: what a failed Pod means, and when enough has succeeded.

use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicyOnExitCodesRequirement};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::facts::completions;
use super::indexes::Indexes;

/// What a failed Pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It counts towards the limit.
    Counts,
    /// It does not count.
    Ignored,
    /// Its index has failed.
    FailsIndex,
    /// The Job has failed, for this reason.
    FailsJob(String),
}

impl Failure {
    /// Whether it counts towards the limit.
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignored
    }
}

/// The action of the first rule that a failed Pod matches, and why it does.
pub(super) fn matched<'a>(spec: &'a JobSpec, pod: &Pod) -> Option<(&'a str, String)> {
    let rules = spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules);
    for (n, rule) in rules.enumerate() {
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        let (namespace, name) = (text(namespace), text(name));
        let action = rule.action.as_str();
        let why = if let Some(codes) = &rule.on_exit_codes {
            matching_container(pod, codes).map(|(container, code)| {
                format!(
                    "Container {container} for pod {namespace}/{name} failed with exit code {code} \
                     matching {action} rule at index {n}"
                )
            })
        } else {
            let patterns = rule.on_pod_conditions.iter().flatten();
            let patterns: Vec<_> = patterns
                .map(|it| (it.type_.as_str(), it.status.as_deref().unwrap_or("True")))
                .collect();
            matching_condition(pod, &patterns).map(|condition| {
                let type_ = &condition.type_;
                format!(
                    "Pod {namespace}/{name} has condition {type_} matching {action} rule at index {n}"
                )
            })
        };
        if let Some(why) = why.filter(|_| ACTIONS.contains(&action)) {
            return Some((action, why));
        }
    }
    None
}

/// What rules can ask for. Others are left to those who know them.
const ACTIONS: [&str; 4] = ["Ignore", "FailIndex", "FailJob", "Count"];

/// What a failed Pod means.
pub(super) fn failure(spec: &JobSpec, pod: &Pod) -> Failure {
    match matched(spec, pod) {
        Some(("Ignore", _)) => Failure::Ignored,
        Some(("FailIndex", _)) => Failure::FailsIndex,
        Some(("FailJob", why)) => Failure::FailsJob(why),
        _ => Failure::Counts,
    }
}

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// A container that failed with a code that the rule means, and the code.
fn matching_container<'a>(
    pod: &'a Pod,
    rule: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a str, i32)> {
    let status = pod.status.as_ref()?;
    let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
    let meant = |status: &'a ContainerStatus| {
        let code = status.state.as_ref()?.terminated.as_ref()?.exit_code;
        let named = rule.container_name.as_ref().is_none_or(|name| *name == status.name);
        let listed = rule.values.contains(&code);
        let matches = match rule.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        (named && code != 0 && matches).then_some((status.name.as_str(), code))
    };
    statuses.flatten().find_map(meant)
}

fn matching_condition<'a>(pod: &'a Pod, patterns: &[(&str, &str)]) -> Option<&'a PodCondition> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|found| {
        patterns.iter().any(|(type_, status)| found.type_ == *type_ && found.status == *status)
    })
}

/// Which rule says that enough of an indexed Job has succeeded, if any does.
pub(super) fn success(spec: &JobSpec, succeeded: &Indexes) -> Option<String> {
    let policy = spec.success_policy.as_ref().filter(|_| !succeeded.is_empty())?;
    let met = policy.rules.iter().position(|rule| {
        let enough = |count: u32| {
            let wanted = rule.succeeded_count.and_then(|wanted| u32::try_from(wanted).ok());
            wanted.is_some_and(|wanted| count >= wanted)
        };
        match &rule.succeeded_indexes {
            Some(indexes) => {
                let wanted = Indexes::parse(indexes, completions(spec));
                let done = wanted.overlap(succeeded);
                !wanted.is_empty() && (done == wanted.total() || enough(done))
            }
            None => enough(succeeded.total()),
        }
    });
    met.map(|n| format!("Matched rules at index {n}"))
}
