//! A controller with everything that it needs but a manager, without the types of its kinds; and
//! how it is put together when a manager runs it.

use std::sync::Arc;
use std::time::Duration;

use super::cleanup::Cleanups;
use super::deleted::Deletions;
use super::graph::DeclaredKind;
use super::keys::{ForgetKey, KeyTable};
use super::mapping::Indexed;
use super::metrics::ControllerFamilies;
use super::source::{Attach, Held};
use super::worker::{self, ErasedReconciler, Worker};
use super::{Controller, Environment, Filter, View, sharded};
use crate::caches::{CachedKind, Caches};
use crate::client::Way;
use crate::codec::Codec;
use crate::context::{AppliedMemory, Declared, Equipment, LookedAt};
use crate::events::EventForm;
use crate::kind::ErasedKind;
use crate::object::ObjectKey;
use crate::shard::Sharding;
use crate::workqueue::{RateLimiter, WorkQueue};

/// How long caches may take to sync before somebody should know.
const SYNC_WARNING: Duration = Duration::from_secs(30);

/// What a builder was told.
pub(super) struct Assembly {
    pub(super) name: Arc<str>,
    pub(super) kind: ErasedKind,
    pub(super) cached: CachedKind,
    pub(super) codec: Codec,
    /// The source of the reconciled kind itself, and the others.
    pub(super) sources: Vec<Attach>,
    pub(super) declared: Declared,
    pub(super) indexes: Vec<Indexed>,
    pub(super) only: Option<Filter>,
    pub(super) concurrency: usize,
    pub(super) limiter: Box<dyn RateLimiter<ObjectKey>>,
    pub(super) fair: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) cleanups: Cleanups,
    pub(super) deletions: Option<Arc<Deletions>>,
    pub(super) sharding: Option<Sharding>,
    pub(super) status_way: Way,
    pub(super) reconciler: Box<dyn ErasedReconciler>,
}

impl Assembly {
    pub(super) fn into_controller(self, graph: Vec<DeclaredKind>) -> Controller {
        Controller {
            name: Arc::clone(&self.name),
            graph,
            everywhere: self.sharding.is_some(), // each member has keys of its own
            has_cleanup: !self.cleanups.is_empty(),
            event_form: EventForm::default(),
            field_manager: None,
            invalid: self.sharding.as_ref().and_then(|sharding| sharding.check(&self.name).err()),
            run: Box::new(move |env| Box::pin(self.run(env))),
        }
    }

    async fn run(self, env: Environment) {
        let name = &*self.name;
        let queue = WorkQueue::builder().name(name).metrics(&env.metrics);
        let mut queue = queue.rate_limiter(self.limiter);
        if self.fair {
            queue = queue.fair_by(|key: &ObjectKey| key.namespace.clone());
        }
        let forgets = self.deletions.clone().map(|deletions| deletions as Arc<dyn ForgetKey>);
        let namespaced = self.kind.is_namespaced();
        let keys = KeyTable::new(queue.build(), self.concurrency, namespaced, forgets);
        let keys = Arc::new(keys);
        let view = View {
            name: Arc::clone(&self.name),
            concurrency: self.concurrency,
            keys: Arc::clone(&keys),
            seat: Arc::default(),
        };
        env.queues.add(view.clone());
        let informer = env.caches.informer_untyped(&self.cached);
        for Indexed { index, .. } in self.indexes {
            informer.cache().add(index);
        }
        let _held = tokio::select! {
            held = attach(self.sources, &env.caches, &keys) => held,
            () = say_that_it_waits(name) => return,
            () = env.shutdown.cancelled() => return,
        };
        tokio::select! {
            () = env.starting.synced() => {}
            () = env.shutdown.cancelled() => return,
        }
        tracing::debug!(controller = name, "caches synced, workers start");
        let cache = informer.cache().clone();
        let gains = Arc::clone(&keys);
        let (client, member) =
            sharded::join(self.sharding, name, env.client, cache.clone(), gains, &view.seat);
        let equipment = Equipment {
            client,
            caches: env.caches,
            declared: self.declared,
            own_writes: Arc::clone(&keys.own_writes),
            recorder: env.recorder.reporting(name),
            applied: AppliedMemory::default(),
            status_way: self.status_way,
            status_fields: LookedAt::default(),
        };
        let worker = Worker {
            metrics: env.metrics.families::<ControllerFamilies>().of(name, self.concurrency),
            name: view.name,
            kind: self.kind,
            codec: self.codec,
            equipment: Arc::new(equipment),
            cache,
            only: self.only,
            keys,
            cleanups: self.cleanups,
            deletions: self.deletions,
            reconciler: self.reconciler,
            timeout: self.timeout,
            records: env.records,
            gate: member.as_ref().map(|member| Arc::clone(member.gate())),
        };
        worker::run(Arc::new(worker), self.concurrency, env.shutdown).await;
        if let Some(member) = member {
            member.leave().await;
        }
    }
}

/// Attaches all sources; ready when their caches are synced. All at once: a kind that cannot be
/// listed must not keep the others from it.
async fn attach(sources: Vec<Attach>, caches: &Caches, keys: &Arc<KeyTable>) -> Vec<Held> {
    let attached = sources.into_iter().map(|source| source(caches.clone(), Arc::clone(keys)));
    futures::future::join_all(attached).await
}

/// A controller that cannot start must not look like one that has nothing to do. Never ends.
async fn say_that_it_waits(controller: &str) {
    loop {
        tokio::time::sleep(SYNC_WARNING).await;
        tracing::warn!(
            controller,
            "caches not synced yet: still waiting for the first list of a kind that it watches"
        );
    }
}
