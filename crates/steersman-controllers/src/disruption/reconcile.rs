//! Fills in the status of one budget.

use std::fmt::Write;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Next, Result, clock};

use super::COMPONENT;
use super::budgets::selector;
use super::plan::{self, Expected, Report};
use super::scale;

/// Counts the Pods that a budget covers, and says how many may go.
pub(super) async fn reconcile(
    budget: Arc<PodDisruptionBudget>,
    ctx: Context<PodDisruptionBudget>,
) -> Result<Next> {
    let pods = pods_of(&budget, &ctx)?;
    if pods.is_empty() {
        tell(&ctx, NewEvent::normal("NoPods").note("No matching pods found"));
    }
    let expected = match expected(&budget, &pods, &ctx).await {
        Ok(expected) => expected,
        Err(error) => {
            let note = format!("Failed to calculate the number of expected pods: {error}");
            tell(&ctx, NewEvent::warning("CalculateExpectedPodCountFailed").note(note));
            ctx.status(plan::failed(&budget, &error.to_string()));
            return Ok(Next::Settled);
        }
    };
    let Report { status, not_deleted, recheck_in } =
        plan::report(&budget, &pods, expected, clock::now());
    for pod in not_deleted {
        let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
        // Kubernetes names the namespace twice.
        let note =
            format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
        let event = NewEvent::warning("NotDeleted").action("Delete").note(note);
        ctx.recorder().reporting(COMPONENT).event(Reference::of(&*pod), event);
    }
    ctx.status(status);
    Ok(recheck_in.map_or(Next::Settled, Next::After))
}

fn pods_of(
    budget: &PodDisruptionBudget,
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Vec<Arc<Pod>>> {
    let namespace = budget.metadata.namespace.as_deref();
    Ok(match selector(budget) {
        Some(selector) => ctx.cache::<Pod>()?.by_labels(namespace, &selector),
        None => Vec::new(),
    })
}

async fn expected(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Expected> {
    if !plan::needs_scale(budget) {
        return Ok(plan::expected(budget, 0, pods.len()));
    }
    let asked = scale::asked(pods, ctx).await?;
    if asked.unmanaged > 0 {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let note = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As \
             a result, the status of the PDB cannot be calculated correctly, which may result in \
             undefined behavior. To account for these pods please set \".spec.minAvailable\" field \
             of the PDB to an integer value.",
            selector.map_or("nil".to_owned(), shown)
        );
        tell(ctx, NewEvent::warning("UnmanagedPods").note(note));
    }
    Ok(plan::expected(budget, asked.replicas, pods.len()))
}

/// Records an Event about the budget, in the name that Kubernetes gives there.
fn tell(ctx: &Context<PodDisruptionBudget>, event: NewEvent) {
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**ctx.object()), event.action("Sync"));
}

/// A selector as Kubernetes prints it.
fn shown(selector: &LabelSelector) -> String {
    let mut text = String::from("&LabelSelector{MatchLabels:map[string]string{");
    for (key, value) in selector.match_labels.iter().flatten() {
        let _ = write!(text, "{key}: {value},"); // a String takes all
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for expression in selector.match_expressions.iter().flatten() {
        let values = expression.values.as_deref().unwrap_or_default().join(" ");
        let (key, operator) = (&expression.key, &expression.operator);
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
        );
    }
    text.push_str("},}");
    text
}
