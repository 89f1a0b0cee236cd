//! What follows from a definition that goes: its instances go first, then it goes itself, and then
//! its names are free for others.
//!
//! Whoever asks for the deletion does not wait for that. The server that was asked does it, and
//! tells in the condition `Terminating` how far it is. Should it stop halfway, any other that sees
//! it undone after a while does it: every step may be done by several at once. What must not happen
//! is that a slow one takes a namesake, made anew meanwhile, for the one that goes; so each step
//! makes sure whose instances it deletes and whom it lets go.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use steersman_rules::kinds::custom_resource_definition::is_established;
use steersman_rules::metadata;
use steersman_rules::resource::Place;
use steersman_store::{Entry, RangeRequest};
use tokio::time::{Instant, sleep};

use super::status::{Termination, note_owner, prepare, set_condition};
use super::{CLEANUP, GROUP, PLURAL, folder, is_held, refresh};
use crate::state::Server;
use crate::state::effects::Turn;
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer, change};

/// How often it is looked whether instances that are deleted are gone, and for how long.
const CHECK_PERIOD: Duration = Duration::from_secs(5);
const CHECK_MAX: Duration = Duration::from_secs(60);

/// How long to wait before all of it is done again, at first and at last.
const RETRY: Duration = Duration::from_millis(5);
const RETRY_MAX: Duration = Duration::from_secs(1000);

/// Whether some definition waits for what its own server usually does at once.
pub(crate) fn needs_care(server: &Server) -> bool {
    let table = server.registry.table();
    table.held().next().is_some() || table.waiting_groups().next().is_some()
}

/// Does what others should have done: ends deletions, and gives names that have become free.
pub(crate) async fn tend(server: Arc<Server>) {
    let table = server.registry.table();
    table.held().for_each(|definition| finalize(&server, definition));
    let groups: BTreeSet<&str> = table.waiting_groups().collect();
    for group in groups {
        reconsider(Arc::clone(&server), group.to_owned()).await;
    }
}

/// Looks again at the names of a group's definitions that were not accepted: they may be free.
pub(super) async fn reconsider(server: Arc<Server>, group: String) {
    let turn: Turn = Arc::new(Arc::clone(&server.definitions).lock_owned().await);
    if let Err(error) = refresh(&server).await {
        return tracing::debug!(%error, "cannot list CustomResourceDefinitions");
    }
    let table = server.registry.table();
    let waiting = table.waiting_in_group(&group);
    let Some(definitions) = table.get(GROUP, "v1", PLURAL) else { return };
    let writer = Writer { turn: Some(turn), ..Writer::internal(&server, definitions) };
    for name in waiting {
        let place = Place { namespace: "", name: &name };
        let established = change::change(&writer, place, |old| {
            let mut new = old.clone();
            if !metadata::is_deleting(old) {
                prepare(&server, &mut new, &writer.now);
                note_owner(writer.seen(), old["status"].clone(), &mut new);
            }
            Ok(new)
        });
        if let Err(error) = established.await {
            tracing::debug!(%error, "cannot accept the names of a CustomResourceDefinition");
        }
    }
}

/// Ends the deletion of a definition, beside what goes on, unless that is being done.
pub(super) fn finalize(server: &Arc<Server>, definition: &str) {
    let Some(turn) = UnderWay::begin(server, definition) else { return };
    let ended = server.ended();
    tokio::spawn(async move { ended.run_until_cancelled(turn.run()).await });
}

/// The right to end the deletion of a definition, which one has at a time.
struct UnderWay {
    server: Weak<Server>,
    definition: String,
}

impl UnderWay {
    fn begin(server: &Arc<Server>, definition: &str) -> Option<Self> {
        let mut all = server.finalizing.lock().unwrap_or_else(PoisonError::into_inner);
        let server = Arc::downgrade(server);
        all.insert(definition.to_owned())
            .then(|| Self { server, definition: definition.to_owned() })
    }

    /// Tries until the definition is gone. The server is not held meanwhile.
    async fn run(self) {
        let mut retry = RETRY;
        loop {
            match self.attempt().await {
                Ok(()) => return self.end(),
                Err(error) => {
                    tracing::debug!(%error, definition = self.definition, "deletion goes on");
                }
            }
            sleep(retry).await;
            retry = (2 * retry).min(RETRY_MAX);
        }
    }

    /// Ends, and begins anew if a namesake goes that nobody else could care for meanwhile.
    fn end(self) {
        let server = self.server.upgrade();
        let definition = self.definition.clone();
        drop(self);
        let Some(server) = server else { return };
        if server.registry.table().custom(&definition).is_some_and(|custom| custom.held) {
            finalize(&server, &definition);
        }
    }

    /// Deletes the instances of the definition and waits until they are gone, then lets it go.
    async fn attempt(&self) -> Result<()> {
        let Some(server) = self.server.upgrade() else { return Ok(()) };
        let Some(leaving) = Leaving::find(&server, &self.definition).await? else { return Ok(()) };
        leaving.tell(&server, &Termination::InProgress).await?;
        if !leaving.established {
            return leaving.release(&server, &Termination::NeverEstablished).await;
        }
        if let Err(error) = leaving.delete_instances(&server).await {
            let why = format!("could not issue all deletes: {error}");
            leaving.tell(&server, &Termination::Failed(why)).await?;
            return Err(error);
        }
        drop(server);
        self.until_empty(&leaving).await
    }

    /// Lets the definition go when it has no instances any more. Those with finalizers hold it.
    async fn until_empty(&self, leaving: &Leaving) -> Result<()> {
        let until = Instant::now() + CHECK_MAX;
        loop {
            let Some(server) = self.server.upgrade() else { return Ok(()) };
            if leaving.is_gone(&server).await? {
                return Ok(());
            }
            if leaving.has_no_instances(&server).await? {
                return leaving.release(&server, &Termination::Completed).await;
            }
            if Instant::now() >= until {
                const WHY: &str =
                    "could not confirm zero CustomResources remaining: context deadline exceeded";
                leaving.tell(&server, &Termination::Check(WHY.to_owned())).await?;
                return Err(Status::internal(WHY));
            }
            drop(server);
            sleep(CHECK_PERIOD).await;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            let mut all = server.finalizing.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(&self.definition);
        }
    }
}

/// Removes the finalizer of a definition that is being deleted and has no instances, and so the
/// definition: who deletes the last instance need not wait until that is found out.
pub(super) async fn release_if_empty(server: &Arc<Server>, definition: &str) {
    let released = async {
        let Some(leaving) = Leaving::find(server, definition).await? else { return Ok(()) };
        if leaving.has_no_instances(server).await? {
            leaving.release(server, &Termination::Completed).await?;
        }
        Ok::<_, Status>(())
    };
    if let Err(error) = released.await {
        tracing::debug!(%error, "cannot remove the finalizer of a CustomResourceDefinition");
    }
}

/// A definition that is being deleted and held for its instances.
struct Leaving {
    name: String,
    uid: String,
    established: bool,
}

impl Leaving {
    /// The definition of a name, if it is there, being deleted and held.
    async fn find(server: &Server, name: &str) -> Result<Option<Self>> {
        let Some(entry) = server.get(&(folder() + name)).await? else { return Ok(None) };
        let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
        Ok(is_held(&object).then(|| Self {
            name: name.to_owned(),
            uid: metadata::text(&object, "uid").to_owned(),
            established: is_established(&object),
        }))
    }

    /// Whether somebody else has let it go.
    async fn is_gone(&self, server: &Server) -> Result<bool> {
        let found = Self::find(server, &self.name).await?;
        Ok(found.is_none_or(|found| found.uid != self.uid))
    }

    async fn has_no_instances(&self, server: &Server) -> Result<bool> {
        let table = server.registry.table();
        let Some(custom) = table.custom(&self.name) else { return Ok(true) };
        let prefix = custom.storage.prefix("");
        let request = RangeRequest { prefix, limit: 1, ..RangeRequest::default() };
        Ok(server.store.range(request).await?.entries.is_empty())
    }

    /// Deletes all instances; those with finalizers are only marked.
    async fn delete_instances(&self, server: &Arc<Server>) -> Result<()> {
        let table = server.registry.table();
        let Some(custom) = table.custom(&self.name) else { return Ok(()) };
        let writer = Writer::internal(server, &custom.storage);
        let prefix = custom.storage.prefix("");
        let request = RangeRequest { prefix, ..RangeRequest::default() };
        let instances = server.store.range(request).await?;
        // Asked after the instances were read: so they are those of the one that goes.
        if self.is_gone(server).await? {
            return Ok(());
        }
        let mut failed = None;
        for entry in &instances.entries {
            let place = custom.storage.place(&entry.key);
            let options = DeleteOptions { uid: Some(uid(entry)), ..DeleteOptions::default() };
            match delete_object(&writer, place, &options).await {
                // Somebody else deletes them, too.
                Err(error) if [404, 409].contains(&error.code) => {}
                Err(error) => failed = Some(error),
                Ok(_) => {}
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Tells how far its end is.
    async fn tell(&self, server: &Arc<Server>, how_far: &Termination) -> Result<()> {
        self.change(server, how_far, |_| {}).await
    }

    /// Lets it go.
    async fn release(&self, server: &Arc<Server>, how_far: &Termination) -> Result<()> {
        let released = self.change(server, how_far, |new| {
            let mut finalizers = metadata::finalizers(new);
            finalizers.retain(|finalizer| finalizer != CLEANUP);
            metadata::set_finalizers(new, finalizers);
        });
        released.await
    }

    async fn change(
        &self,
        server: &Arc<Server>,
        how_far: &Termination,
        also: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<()> {
        let table = server.registry.table();
        let Some(definitions) = table.get(GROUP, "v1", PLURAL) else { return Ok(()) };
        let writer = Writer::internal(server, definitions);
        let place = Place { namespace: "", name: &self.name };
        let changed = change::change(&writer, place, |old| {
            let mut new = old.clone();
            if metadata::text(old, "uid") == self.uid && is_held(old) {
                set_condition(&mut new, how_far.condition(), &writer.now);
                also(&mut new);
            }
            Ok(new)
        });
        match changed.await {
            Err(error) if error.code != 404 => Err(error),
            _ => Ok(()),
        }
    }
}

fn uid(entry: &Entry) -> String {
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    metadata::text(&object, "uid").to_owned()
}
