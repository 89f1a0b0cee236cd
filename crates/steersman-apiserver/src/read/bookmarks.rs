//! When a watch tells its revision.
//!
//! A client from afar is told every minute, as by Kubernetes: it also learns that the watch lives.
//! One with [nothing in between](crate::caller::Caller) knows that anyway, so that it is told only
//! a minute after something has changed, and a watch of an idle store costs nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::call::Call;
use crate::lookup;
use crate::state::Server;

/// How often a watch tells its revision.
const PERIOD: Duration = Duration::from_secs(60);

/// When one watch tells its revision.
pub(super) enum Bookmarks {
    /// Never.
    Unwanted,
    /// Every minute.
    Regular(Interval),
    /// When the store has moved.
    AfterChanges(watch::Receiver<()>),
}

impl Bookmarks {
    /// Those of a watch that begins.
    pub(super) fn of(call: &Call, wanted: bool) -> Self {
        if !wanted {
            return Self::Unwanted;
        }
        if call.caller.is_direct() {
            return Self::AfterChanges(call.server.moved.subscribe());
        }
        let mut every_minute = interval_at(Instant::now() + PERIOD, PERIOD);
        every_minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Regular(every_minute)
    }

    /// Waits until the next one is due. Cancel-safe.
    pub(super) async fn due(&mut self) {
        match self {
            Self::Unwanted => std::future::pending().await,
            Self::Regular(every_minute) => drop(every_minute.tick().await),
            Self::AfterChanges(moved) => {
                if moved.changed().await.is_err() {
                    std::future::pending::<()>().await; // the server ends, and so does the watch
                }
            }
        }
    }
}

/// Says, a minute after the store has moved, that it has, until the server ends.
pub(crate) fn start(server: &Arc<Server>) {
    let ended = server.ended();
    let saying = say_that_it_moved(Arc::downgrade(server));
    tokio::spawn(async move { ended.run_until_cancelled(saying).await });
}

async fn say_that_it_moved(server: Weak<Server>) {
    loop {
        let Some(running) = server.upgrade() else { return };
        let store = Arc::clone(&running.store);
        // Looked up before it is said: what is written in between is said the next time.
        let seen = lookup::revision(&*store, true).await.unwrap_or_default();
        running.moved.send_replace(());
        drop(running);
        lookup::moved_past(&*store, &[""], seen).await;
        tokio::time::sleep(PERIOD).await;
    }
}
