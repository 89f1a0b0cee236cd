//! A Pod as a Job's template describes it.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::ownership;

use super::facts::{
    COMPLETION_INDEX, FAILURES, FINALIZER, IGNORED_FAILURES, failures_before, ignored_before,
};
use super::plan::Indexed;
use super::policy;

/// Which completion a container works on.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// How long the part of a generated name is that is not made up by the server.
const GENERATE_NAME_MAX: usize = 58;

/// A Pod of a Job, for an index if the Job is indexed.
pub(super) fn new_pod(
    job: &Job,
    spec: &JobSpec,
    indexed: Option<&Indexed>,
    index: Option<u32>,
) -> Pod {
    let template = spec.template.clone();
    let meta = template.metadata.unwrap_or_default();
    let job_name = job.metadata.name.as_deref().unwrap_or_default();
    let mut finalizers = meta.finalizers.unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    let mut pod = Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{job_name}-")),
            namespace: job.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: Some(finalizers),
            owner_references: ownership::controller_reference(job).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    if let Some(index) = index {
        let replaced = indexed.and_then(|indexed| indexed.delayed.get(&index));
        assign(&mut pod, job_name, index);
        if spec.backoff_limit_per_index.is_some() {
            count_failures(&mut pod, spec, replaced);
        }
    }
    pod
}

/// Tells a Pod which completion it works on.
fn assign(pod: &mut Pod, job_name: &str, index: u32) {
    let end = format!("-{index}-");
    let room = GENERATE_NAME_MAX - end.len();
    let start = job_name.get(..room).unwrap_or(job_name);
    pod.metadata.generate_name = Some(format!("{start}{end}"));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(COMPLETION_INDEX.into(), index.to_string());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(COMPLETION_INDEX.into(), index.to_string());
    let Some(spec) = &mut pod.spec else { return };
    spec.hostname = Some(format!("{job_name}-{index}"));
    let init = spec.init_containers.iter_mut().flatten();
    init.chain(&mut spec.containers).for_each(tell_index);
}

fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field_path = format!("metadata.labels['{COMPLETION_INDEX}']");
    let field = ObjectFieldSelector { field_path, ..ObjectFieldSelector::default() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    let value_from = Some(source);
    variables.push(EnvVar { name: INDEX_VARIABLE.into(), value_from, ..EnvVar::default() });
}

/// Tells a Pod how often those failed in whose place it comes.
fn count_failures(pod: &mut Pod, spec: &JobSpec, replaced: Option<&Arc<Pod>>) {
    let (mut failures, mut ignored) = (0, 0);
    if let Some(replaced) = replaced {
        failures = failures_before(replaced);
        ignored = ignored_before(replaced);
        if policy::failure(spec, replaced).counts() { failures += 1 } else { ignored += 1 }
    }
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(FAILURES.into(), failures.to_string());
    if ignored > 0 {
        annotations.insert(IGNORED_FAILURES.into(), ignored.to_string());
    }
}
