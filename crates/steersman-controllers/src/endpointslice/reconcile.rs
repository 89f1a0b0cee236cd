//! Brings the slices of one Service to where its Pods are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::{Selector, SelectorExt};
use steersman::cache::Cache;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, ObjectKey, Reconciler, Result};

use super::MANAGER;
use super::hints::Traffic;
use super::metrics::Meters;
use super::packing::Changes;
use super::plan::{Situation, Told};
use super::settled::{Changed, Circumstances, Look, Settled};
use super::topology::Zones;
use crate::namespace::namespace_terminating;
use crate::service::{MANAGED_BY, SERVICE_NAME, TRIGGER_TIME, TriggerTimes, names, selector};

/// Who tells of Services.
const COMPONENT: &str = "endpoint-slice-controller";

/// What is remembered between reconciles.
pub(super) struct Memory {
    pub(super) meters: Meters,
    pub(super) trigger_times: TriggerTimes,
    /// The Services that have hints by the number of processors.
    hinted: Mutex<HashSet<ObjectKey>>,
    changed: Changed,
    /// Those whose slices told of every Pod when they were last looked at.
    settled: Mutex<HashMap<ObjectKey, Settled>>,
}

/// Slices as they were written, and those that were deleted.
#[derive(Default)]
struct Written {
    slices: Vec<EndpointSlice>,
    deleted: Vec<Arc<EndpointSlice>>,
}

impl Memory {
    /// One that hears of changes here.
    pub(super) fn new(meters: Meters, changed: Changed) -> Self {
        Self {
            meters,
            trigger_times: TriggerTimes::default(),
            hinted: Mutex::default(),
            changed,
            settled: Mutex::default(),
        }
    }

    /// Forgets a Service that is gone.
    pub(super) fn forget(&self, service: &ObjectKey) {
        self.meters.forget(service);
        self.trigger_times.forget(service);
        self.hinted().remove(service);
        self.changed.take(service);
        self.settled().remove(service);
    }

    fn hinted(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.hinted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settled(&self) -> MutexGuard<'_, HashMap<ObjectKey, Settled>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sync(&self, service: &Service, ctx: &Context<Service>) -> Result<()> {
        let Some(selected) = selector(service) else { return Ok(()) };
        // What has changed is taken before caches are read, or a change in between would be lost.
        let changed = self.changed.take(ctx.key());
        let now = Circumstances::of(service, self.changed.nodes());
        let slices = slices_of(service, ctx)?;
        // It is put back when all is written: after a failure everything is looked at.
        let before = self.settled().remove(ctx.key()).unwrap_or_default();
        let look = changed.and_then(|changed| before.look(service, &now, &slices, changed));
        let cache = ctx.cache::<Pod>()?;
        let selected: Selector = selected.clone().into_iter().collect();
        let (namespace, _) = names(service);
        let (pods, time) = match &look {
            Some(look) => {
                let pods = some(&cache, namespace, look, &selected);
                let time = self.trigger_times.next_of(service, &pods, &look.pods);
                (pods, time)
            }
            None => {
                let pods = cache.by_labels(Some(namespace), &selected);
                let time = self.trigger_times.next(service, &pods);
                (pods, time)
            }
        };
        let nodes = ctx.cache::<Node>()?;
        let mut plan = Situation {
            service,
            pods: &pods,
            look: look.as_ref(),
            node: &|name| nodes.get(&ObjectKey::named(name)),
            zones: &|| Zones::of(&nodes.list()),
            slices: &slices,
            hinted: self.hinted().contains(ctx.key()),
        }
        .plan();
        self.meters.planned(ctx.key(), &plan, Traffic::of(service));
        let kept = std::mem::take(&mut plan.changes.keep);
        let written = self.write(service, plan.changes, time, ctx).await;
        match plan.hinted {
            true => self.hinted().insert(ctx.key().clone()),
            false => self.hinted().remove(ctx.key()),
        };
        plan.told.into_iter().for_each(|told| tell_of_hints(ctx, told));
        if let (Ok(Some(Written { slices, deleted })), true) = (&written, plan.skipped.is_empty()) {
            let all = kept.iter().map(|slice| &**slice).chain(slices);
            let settled = match &look {
                Some(look) => before.after(look, slices.iter(), deleted, &kept),
                None => Settled::of_all(now, all),
            };
            self.settled().insert(ctx.key().clone(), settled);
        }
        all_of(plan.skipped.into_iter().chain(written.err().map(|error| error.to_string())))
    }

    /// Writes what is planned; gives nothing if the namespace is about to go.
    async fn write(
        &self,
        service: &Service,
        changes: Changes,
        time: Option<Timestamp>,
        ctx: &Context<Service>,
    ) -> Result<Option<Written>> {
        let (namespace, service) = names(service);
        let failed = |what: &str, error: Error| {
            Error::message(format!(
                "failed to {what}EndpointSlice for Service {namespace}/{service}: {error}"
            ))
        };
        let mut slices = Vec::new();
        for slice in changes.create {
            match ctx.create(with_time(slice, time)).await {
                Ok(created) => slices.push(created),
                Err(error) if namespace_terminating(&error) => return Ok(None),
                Err(error) => return Err(failed("create ", error)),
            }
            self.meters.wrote("create");
        }
        for slice in changes.update {
            let name = slice.metadata.name.clone().unwrap_or_default();
            let updated = ctx.update(&with_time(slice, time)).await;
            slices.push(updated.map_err(|error| failed(&format!("update {name} "), error))?);
            self.meters.wrote("update");
        }
        for slice in &changes.delete {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            let deleted = ctx.delete(slice).await;
            deleted.map_err(|error| failed(&format!("delete {name} "), error))?;
            self.meters.wrote("delete");
        }
        Ok(Some(Written { slices, deleted: changes.delete }))
    }
}

impl Reconciler<Service> for Memory {
    async fn reconcile(&self, service: Arc<Service>, ctx: Context<Service>) -> Result<Next> {
        let synced = self.sync(&service, &ctx).await;
        self.meters.synced(synced.is_ok());
        if let Err(error) = &synced {
            let (namespace, name) = names(&service);
            let note =
                format!("Error updating Endpoint Slices for Service {namespace}/{name}: {error}");
            tell(&ctx, NewEvent::warning("FailedToUpdateEndpointSlices").note(note));
        }
        synced.map(|()| Next::Settled)
    }
}

/// The slices of a Service that are this controller's, in order, and that are not being deleted.
fn slices_of(service: &Service, ctx: &Context<Service>) -> Result<Vec<Arc<EndpointSlice>>> {
    let (namespace, name) = names(service);
    let ours = [(SERVICE_NAME, name), (MANAGED_BY, MANAGER)];
    let ours: Selector =
        ours.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let mut slices = ctx.cache::<EndpointSlice>()?.by_labels(Some(namespace), &ours);
    slices.retain(|slice| slice.metadata.deletion_timestamp.is_none());
    slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(slices)
}

/// The Pods that are looked at, as far as they are there and selected.
fn some(cache: &Cache<Pod>, namespace: &str, look: &Look, selected: &Selector) -> Vec<Arc<Pod>> {
    let found = look
        .pods
        .iter()
        .filter_map(|name| cache.get(&ObjectKey::namespaced(namespace, Arc::clone(name))));
    let is_selected = |pod: &Arc<Pod>| match &pod.metadata.labels {
        Some(labels) => selected.matches(labels),
        None => selected.matches(&BTreeMap::new()),
    };
    found.filter(is_selected).collect()
}

/// A slice that says when that happened because of which it is written, if that is known.
fn with_time(mut slice: EndpointSlice, time: Option<Timestamp>) -> EndpointSlice {
    let annotations = slice.metadata.annotations.get_or_insert_default();
    match time {
        Some(time) => drop(annotations.insert(TRIGGER_TIME.to_owned(), time.to_string())),
        None => drop(annotations.remove(TRIGGER_TIME)),
    }
    if annotations.is_empty() {
        slice.metadata.annotations = None;
    }
    slice
}

/// All that went wrong as one error, as Kubernetes prints several.
fn all_of(errors: impl Iterator<Item = String>) -> Result<()> {
    let mut errors: Vec<String> = errors.collect();
    errors.dedup();
    match &errors[..] {
        [] => Ok(()),
        [only] => Err(Error::message(only.clone())),
        several => Err(Error::message(format!("[{}]", several.join(", ")))),
    }
}

fn tell_of_hints(ctx: &Context<Service>, told: Told) {
    tell(
        ctx,
        match told {
            Told::HintsEnabled(note) => NewEvent::normal("TopologyAwareHintsEnabled").note(note),
            Told::HintsDisabled(note) => NewEvent::warning("TopologyAwareHintsDisabled").note(note),
        },
    );
}

/// Records an Event about the Service, in the name that Kubernetes gives there.
fn tell(ctx: &Context<Service>, event: NewEvent) {
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**ctx.object()), event.action("Sync"));
}
