//! When the hearts of a set of nodes beat: all the time, or only while somebody looks.
//!
//! A kubelet renews its Lease every ten seconds whether or not anybody cares, and nearly always
//! nobody does. Where whoever serves the API can tell that somebody reads, changes or watches
//! Leases or Nodes, hearts may beat [on demand](Heartbeats): before a read, as of when they would
//! have beaten last, all the time while somebody watches, and once more after somebody has written
//! what a kubelet would put right. Whoever looks sees what there would be otherwise; an hour in
//! which nobody does costs nothing.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, stream};
use steersman::events::Recorder;
use steersman::{Client, Error, Result};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::agenda::Agenda;
use crate::heartbeat::{Heartbeat, Voice, Watched};
use crate::outages::{self, Outages};
use crate::registration::Machine;

/// How long to wait before a failed registration is tried again.
const REGISTER_RETRY: Duration = Duration::from_millis(100);
/// How many hearts beat at once: more would only wait in the API server, or be turned away.
const AT_ONCE: usize = 64;
/// How long a read waits for heartbeats.
const READ_PATIENCE: Duration = Duration::from_secs(1);

/// Where heartbeats show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// In the Leases of nodes, in the namespace [`LEASE_NAMESPACE`](Heartbeats::LEASE_NAMESPACE).
    Lease,
    /// In the status of Nodes.
    Node,
}

/// The hearts of a set of nodes, which beat on demand: whoever serves the API tells of those who
/// look, by the name of the node, where the empty name is every node's.
pub struct Heartbeats {
    hearts: Vec<Mutex<Heartbeat>>,
    /// Where among them the heart of a node is.
    places: HashMap<String, usize>,
    /// Where those are that somebody stirred, and that somebody did.
    stirred: std::sync::Mutex<BTreeSet<usize>>,
    stirring: Notify,
    outages: Outages,
    watched: watch::Sender<Watched>,
    /// By which they beat, from when the nodes are registered until they are stopped.
    client: std::sync::Mutex<Option<Client>>,
    /// By which people are told what becomes of the nodes.
    voice: Voice,
}

/// Somebody watches, until this is dropped.
pub struct Watching {
    heartbeats: Arc<Heartbeats>,
    sign: Sign,
}

impl Heartbeats {
    /// Where the Leases of nodes are.
    pub const LEASE_NAMESPACE: &str = crate::heartbeat::LEASE_NAMESPACE;

    /// Hearts that beat while somebody looks.
    pub(crate) fn on_demand(machines: Vec<Machine>, outages: &Outages) -> Arc<Self> {
        let names = machines.iter().map(|machine| machine.name.clone());
        let places = names.zip(0..).collect();
        let voice = Voice::default();
        let heart = |machine| Mutex::new(Heartbeat::new(machine, outages.clone(), voice.clone()));
        Arc::new(Self {
            hearts: machines.into_iter().map(heart).collect(),
            places,
            stirred: std::sync::Mutex::default(),
            stirring: Notify::new(),
            outages: outages.clone(),
            watched: watch::Sender::default(),
            client: std::sync::Mutex::default(),
            voice,
        })
    }

    /// Lets people be told by this recorder, as by kubelets, when a node is ready or is not any more,
    /// and when it is closed for new Pods or opened again.
    pub fn tell_by(&self, recorder: &Recorder) {
        self.voice.speak_by(recorder);
    }

    /// Hearts that beat all the time, as if somebody watched for ever.
    pub(crate) fn always(machines: Vec<Machine>, outages: &Outages) -> Arc<Self> {
        let heartbeats = Self::on_demand(machines, outages);
        heartbeats.watched.send_modify(|watched| watched.leases += 1);
        heartbeats
    }

    /// Whether whoever looked at the node of this name would find that its heart beats.
    pub fn beats(&self, name: &str) -> bool {
        let active = self.client.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        active && self.places.contains_key(name) && self.outages.since(name).is_none()
    }

    /// The names of nodes whose hearts stop, or begin to beat again.
    pub fn changes(&self) -> impl Stream<Item = String> + Send + 'static {
        let changes = self.outages.changes();
        let before = changes.borrow().clone();
        let changed = stream::unfold((changes, before), |(mut changes, before)| async move {
            changes.changed().await.ok()?;
            let after = changes.borrow_and_update().clone();
            Some((stream::iter(outages::differing(&before, &after)), (changes, after)))
        });
        changed.flatten()
    }

    /// Somebody is about to read. What cannot be written soon is left out: a store that takes no
    /// writes may still be read.
    pub async fn read(&self, name: &str) {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(client) = client else { return };
        let client = &client;
        let caught_up = each(self.places_of(name), |place| async move {
            report(caught(self.hearts[place].lock().await.catch_up(client)).await);
        });
        let _ = timeout(READ_PATIENCE, caught_up).await;
    }

    /// Somebody is about to write: hearts beat once more afterwards, as a kubelet would that finds
    /// its Node changed.
    pub async fn write(&self, name: &str) {
        self.read(name).await;
        for place in self.places_of(name) {
            self.hearts[place].lock().await.stir();
            self.stirred().insert(place);
        }
        self.stirring.notify_one();
    }

    /// Where the heart of that node is; the empty name is every node's.
    fn places_of(&self, name: &str) -> Range<usize> {
        match self.places.get(name) {
            Some(place) => *place..place + 1,
            None if name.is_empty() => 0..self.hearts.len(),
            None => 0..0,
        }
    }

    fn stirred(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.stirred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody begins to watch.
    pub async fn watch(self: &Arc<Self>, sign: Sign, name: &str) -> Watching {
        self.read(name).await;
        self.watched.send_modify(|watched| *watched.of(sign) += 1);
        Watching { heartbeats: Arc::clone(self), sign }
    }

    /// Registers all nodes, then lets their hearts beat for ever.
    pub(crate) async fn run(&self, client: Client) {
        let all = 0..self.hearts.len();
        each(all.clone(), |place| register(&self.hearts[place], &client)).await;
        let _active = Active::new(self, client.clone());
        let mut news = self.watched.subscribe();
        let mut outages = self.outages.changes();
        let mut agenda = Agenda::of(self.hearts.len());
        self.turn(&client).await;
        self.look_at(&mut agenda, all.clone()).await;
        loop {
            tokio::select! {
                _ = news.changed() => self.look_at(&mut agenda, all.clone()).await,
                Ok(()) = outages.changed() => {
                    self.turn(&client).await;
                    self.look_at(&mut agenda, all.clone()).await;
                }
                () = self.stirring.notified() => {
                    let stirred = std::mem::take(&mut *self.stirred());
                    self.look_at(&mut agenda, stirred).await;
                }
                () = until(agenda.next()) => {
                    let due = agenda.take_due(Instant::now());
                    self.beat(&due, &client).await;
                    self.look_at(&mut agenda, due).await;
                }
            }
        }
    }

    /// Lets those know of it whose machine is lost or back.
    async fn turn(&self, client: &Client) {
        each(0..self.hearts.len(), |place| async move {
            report(caught(self.hearts[place].lock().await.turn(client)).await);
        })
        .await;
    }

    /// Notes when these are due from now on.
    async fn look_at(&self, agenda: &mut Agenda, places: impl IntoIterator<Item = usize>) {
        let watched = *self.watched.borrow();
        for place in places {
            let due = self.hearts[place].lock().await.due(watched);
            agenda.set(place, due);
        }
    }

    /// Lets those beat that are due: of these, whoever has not been asked to since.
    async fn beat(&self, places: &[usize], client: &Client) {
        let now = Instant::now();
        let watched = *self.watched.borrow();
        each(places.iter().copied(), |place| async move {
            let mut heart = self.hearts[place].lock().await;
            if heart.due(watched).is_some_and(|due| due <= now) {
                report(caught(heart.catch_up(client)).await);
            }
        })
        .await;
    }
}

/// Does something for each of these, some at once.
async fn each<F: Future<Output = ()>>(
    places: impl Iterator<Item = usize>,
    job: impl FnMut(usize) -> F,
) {
    stream::iter(places).for_each_concurrent(AT_ONCE, job).await;
}

impl Watched {
    fn of(&mut self, sign: Sign) -> &mut usize {
        match sign {
            Sign::Lease => &mut self.leases,
            Sign::Node => &mut self.nodes,
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.heartbeats.watched.send_modify(|watched| *watched.of(self.sign) -= 1);
    }
}

/// As long as it lives, hearts beat for those who look.
struct Active<'a>(&'a Heartbeats);

impl<'a> Active<'a> {
    fn new(heartbeats: &'a Heartbeats, client: Client) -> Self {
        let active = Self(heartbeats);
        active.set(Some(client));
        active
    }

    fn set(&self, client: Option<Client>) {
        *self.0.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.set(None);
    }
}

/// Sleeps until then, or for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Tries until it succeeds: without its Node an agent can do nothing.
async fn register(heart: &Mutex<Heartbeat>, client: &Client) {
    let mut heart = heart.lock().await;
    while let Err(error) = caught(heart.register(client)).await {
        tracing::warn!(%error, "node registration failed; retrying");
        sleep(REGISTER_RETRY).await;
    }
}

/// A panic is an error like others, so that one node's heart does not stop all the others.
async fn caught(beat: impl Future<Output = Result<()>>) -> Result<()> {
    let caught = AssertUnwindSafe(beat).catch_unwind().await;
    caught.unwrap_or_else(|_| Err(Error::message("the heartbeat panicked")))
}

fn report(beat: Result<()>) {
    if let Err(error) = beat {
        tracing::warn!(%error, "node heartbeat failed; retrying");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_heartbeat_that_panics_has_only_failed() {
        async fn broken() -> Result<()> {
            panic!("as a broken heartbeat does")
        }
        assert!(caught(broken()).await.is_err());
        assert!(caught(async { Ok(()) }).await.is_ok());
    }
}
