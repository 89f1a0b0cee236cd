//! Writes the Endpoints of one Service.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::core::Selector;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Next, ObjectKey, Reconciler, Result};

use super::pauses::Pauses;
use super::plan::plan;
use crate::namespace::namespace_terminating;
use crate::service::{TriggerTimes, names, selector};

/// Who tells of Endpoints.
const COMPONENT: &str = "endpoint-controller";

/// What is remembered between reconciles.
#[derive(Default)]
pub(super) struct Memory {
    trigger_times: TriggerTimes,
    pauses: Pauses,
}

impl Memory {
    /// Forgets a Service that is gone.
    pub(super) fn forget(&self, service: &ObjectKey) {
        self.trigger_times.forget(service);
        self.pauses.forget(service);
    }
}

impl Reconciler<Service> for Memory {
    async fn reconcile(&self, service: Arc<Service>, ctx: Context<Service>) -> Result<Next> {
        let Some(selected) = selector(&service) else { return Ok(Next::Settled) };
        let (namespace, name) = names(&service);
        let current = ctx.get::<Endpoints>(name)?;
        if let Some(rest) = self.pauses.rest(&service).filter(|_| current.is_some()) {
            return Ok(Next::After(rest));
        }
        let selected: Selector = selected.clone().into_iter().collect();
        let pods = ctx.cache::<Pod>()?.by_labels(Some(namespace), &selected);
        let time = self.trigger_times.next(&service, &pods);
        let Some(wanted) = plan(&service, &pods, current.as_deref(), time) else {
            self.pauses.looked(&service, pods.len());
            return Ok(Next::Settled);
        };
        let (written, reason, what) = match current {
            // They have no owner, so they are created past the context.
            None => {
                let created = ctx.live().create(&wanted).await;
                (created, "FailedToCreateEndpoint", "create endpoint for service")
            }
            Some(_) => (ctx.update(&wanted).await, "FailedToUpdateEndpoint", "update endpoint"),
        };
        match written {
            Ok(_) => {
                // What failed does not pause: it is tried again ever later.
                self.pauses.looked(&service, pods.len());
                Ok(Next::Settled)
            }
            Err(error) if namespace_terminating(&error) => Ok(Next::Settled),
            Err(error) => {
                let note = format!("Failed to {what} {namespace}/{name}: {error}");
                let event = NewEvent::warning(reason).action("Sync").note(note);
                ctx.recorder().reporting(COMPONENT).event(Reference::of(&wanted), event);
                Err(error)
            }
        }
    }
}
