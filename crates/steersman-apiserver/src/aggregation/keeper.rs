//! Looks after one server elsewhere: whether it is available, and what it tells of itself.
//!
//! It looks again when the service or its endpoints change, when the APIService does, after a while
//! anyhow, and soon if it had no answer. What others see of it changes in the APIService alone.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use steersman_store::Store;
use tokio::time::Instant;

use super::availability::{self, FAILED_DISCOVERY_CHECK};
use super::{conditions, learn};
use crate::lookup;
use crate::state::Server;
use crate::state::remotes::{Remote, Told};
use crate::status::panic_text;

/// How often it is looked whether a server is still there.
const PERIOD: Duration = Duration::from_secs(30);

/// How often it is asked what it has.
const LEARN_PERIOD: Duration = Duration::from_secs(60);

/// How soon after a change it is looked again.
const PAUSE: Duration = Duration::from_millis(50);

/// How soon one that had no answer is asked again, at first and when it goes on like that.
const BACKOFF: Duration = Duration::from_millis(5);
const BACKOFF_MAX: Duration = PERIOD;

/// Looks after a server elsewhere until its APIService is gone, or says something else.
pub(super) fn start(server: &Arc<Server>, remote: Arc<Remote>) {
    let ended = remote.ended.clone();
    let over = server.ended();
    let store = Arc::clone(&server.store);
    let keeper = Keeper { server: Arc::downgrade(server), store, remote };
    tokio::spawn(async move {
        let kept = ended.run_until_cancelled(keeper.keep());
        over.run_until_cancelled(kept).await;
    });
}

struct Keeper {
    /// Not held while nothing happens.
    server: Weak<Server>,
    store: Arc<dyn Store>,
    remote: Arc<Remote>,
}

impl Keeper {
    async fn keep(self) {
        let folders = self.folders();
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        let mut backoff = BACKOFF;
        let mut learned = None;
        loop {
            let seen = lookup::revision(&*self.store, true).await.unwrap_or_default();
            let looked = AssertUnwindSafe(self.look(&mut learned)).catch_unwind().await;
            let wait = match looked {
                Ok(None) => return,
                Ok(Some(true)) => {
                    backoff = BACKOFF;
                    PERIOD
                }
                Ok(Some(false)) => {
                    let wait = backoff;
                    backoff = (2 * backoff).min(BACKOFF_MAX);
                    wait
                }
                Err(panic) => {
                    let panic = panic_text(&*panic);
                    tracing::error!(panic, "looking after an APIService panicked");
                    PERIOD
                }
            };
            let changed = async {
                lookup::moved_past(&*self.store, &folders, seen).await;
                // Where the store cannot tell, or somebody writes all the time.
                tokio::time::sleep(PAUSE).await;
            };
            tokio::select! {
                () = changed => {}
                () = self.remote.look.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Where in the store it is that decides where the server is.
    fn folders(&self) -> Vec<String> {
        let service = self.remote.target.service.as_ref();
        service.map_or_else(Vec::new, |service| {
            vec![
                format!("/registry/services/specs/{}/{}", service.namespace, service.name),
                format!("/registry/endpointslices/{}/", service.namespace),
            ]
        })
    }

    /// Looks once, and tells. Says whether there is no need to look again soon; nothing once nobody
    /// serves any more.
    async fn look(&self, learned: &mut Option<Instant>) -> Option<bool> {
        let server = self.server.upgrade()?;
        let remote = &*self.remote;
        let found = availability::check(&server, remote).await;
        let was = remote.is_available();
        let mut settled = found.reason != FAILED_DISCOVERY_CHECK;
        if !found.is_yes() {
            *learned = None;
            remote.tell(Told::default());
        } else if !was || learned.is_none_or(|at| at.elapsed() >= LEARN_PERIOD) {
            // Before it is said that the server is there, so that whoever waits for that finds what
            // it has.
            settled &= self.learn(&server).await;
            *learned = Some(Instant::now());
        }
        remote.set_available(found.is_yes());
        if was && !found.is_yes() {
            let unavailable = &server.metrics.unavailable_api_services;
            unavailable.with([&remote.name, found.reason]).increment();
        }
        if let Err(error) = conditions::tell(&server, &remote.name, &found).await {
            tracing::warn!(%error, name = remote.name, "cannot write the condition of an APIService");
            settled = false;
        }
        if was != found.is_yes() {
            let (name, status, reason) = (&remote.name, found.status, found.reason);
            tracing::info!(name, status, reason, "availability of an APIService changed");
        }
        Some(settled)
    }

    async fn learn(&self, server: &Server) -> bool {
        match learn::ask(server, &self.remote).await {
            Ok(told) => {
                self.remote.tell(told);
                true
            }
            Err(why) => {
                let name = &self.remote.name;
                tracing::debug!(%why, name, "aggregated API server does not tell what it has");
                self.remote.tell(Told::default());
                false
            }
        }
    }
}
