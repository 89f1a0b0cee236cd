//! The compare-and-swap loop: read, decide, write what was decided if it is still about the
//! latest, again if someone was faster.
//!
//! The first look is at what this server has heard of, which costs nothing. A write that is
//! decided by it only happens if it is still the latest; anything else that is decided, such as a
//! refusal, counts only if it is.

use std::pin::pin;

use steersman_rules::resource::Place;
use steersman_store::Entry;

use super::Writer;
use crate::apart::LONG_BYTES;
use crate::status::{MODIFIED, Result, Status};

/// How often webhooks are asked about one write, each time because someone else was faster. A
/// webhook that itself changes what it is asked about would be asked for ever.
const ASKED_MAX: usize = 64;

/// How an attempt to replace or remove an object ended.
pub(super) enum Attempt<T> {
    /// It is written, or would be but for the dry run.
    Written(T),
    /// There is nothing to write.
    Unchanged(T),
    /// Someone else was faster.
    Conflict,
    /// The store failed, and may have written all the same: this must not be tried again.
    Failed(Status),
}

/// A way to replace or remove an object.
pub(super) trait Swap: Send {
    /// What comes of it.
    type Done: Send;

    /// Whether webhooks are asked at each attempt.
    fn is_asked(&self) -> bool;

    /// Decides by an entry, and writes what was decided if that is still the latest.
    fn attempt(
        &mut self,
        found: &Entry,
    ) -> impl Future<Output = Result<Attempt<Self::Done>>> + Send;
}

/// Replaces or removes the object at a place.
pub(super) async fn swap<S: Swap>(
    writer: &Writer<'_>,
    place: Place<'_>,
    mut way: S,
) -> Result<S::Done> {
    let key = writer.resource.key(place);
    let mut entry = first(writer, &key).await?;
    let mut attempts = 0;
    loop {
        let found = entry.ok_or_else(|| Status::not_found(writer.resource.named(place.name)))?;
        let is_long = found.value.len() > LONG_BYTES;
        let (attempt, _) = writer.server.apart.run(is_long, pin!(way.attempt(&found))).await;
        match attempt {
            Ok(Attempt::Written(done)) => return Ok(done),
            Ok(Attempt::Failed(status)) => return Err(status),
            tried => {
                entry = writer.server.get(&key).await?;
                let latest = entry.as_ref().map(|entry| entry.modified) == Some(found.modified);
                match tried {
                    Ok(Attempt::Unchanged(done)) if latest => return Ok(done),
                    Err(status) if latest => return Err(status),
                    _ => {}
                }
            }
        }
        attempts += 1;
        if way.is_asked() && attempts == ASKED_MAX {
            return Err(Status::conflict(writer.resource.named(place.name), MODIFIED));
        }
        tokio::task::yield_now().await;
    }
}

/// The entry of a key: what is known here if it will be compared with the latest before anything
/// comes of it, else the latest.
async fn first(writer: &Writer<'_>, key: &str) -> Result<Option<Entry>> {
    if !writer.dry_run
        && let known @ Some(_) = writer.server.known(key).await?
    {
        return Ok(known);
    }
    Ok(writer.server.get(key).await?)
}
