//! An innocent client: it asks for little, steadily, and writes down how long it has to wait.
//!
//! It has a thread of its own, so that nobody else's work delays what it measures. What it waits
//! for is counted from when a request was due, not from when the one before it let it go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use http::Method;
use steersman_bench_wire::Connection;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::caller::{Ask, Caller, Who, ask_over};
use crate::field::{INNOCENT, config_map};

/// How often it asks for something.
const PERIOD: Duration = Duration::from_millis(20);

/// How long it waits before it counts as turned away.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request.
#[derive(Clone, Debug)]
struct Sample {
    due: Instant,
    took: Duration,
    fault: Option<String>,
}

/// The client; it stops when dropped.
pub(crate) struct Innocent {
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What it suffered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suffering {
    /// In milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    /// What it was told instead of an answer, first of all.
    pub(crate) faults: Vec<String>,
}

impl Innocent {
    /// Begins to ask.
    pub(crate) fn start(address: &str) -> Result<Self, String> {
        let caller = Caller::new(address, Who::Innocent)?;
        let samples = Arc::<Mutex<Vec<Sample>>>::default();
        let stop = Arc::<AtomicBool>::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let (noted, stopped) = (Arc::clone(&samples), Arc::clone(&stop));
        let thread = std::thread::spawn(move || runtime.block_on(live(caller, noted, stopped)));
        Ok(Self { samples, stop, thread: Some(thread) })
    }

    /// What it suffered from one moment to another.
    pub(crate) fn suffering(&self, from: Instant, to: Instant) -> Suffering {
        let samples = self.samples.lock().expect("nobody panics with it");
        let within: Vec<&Sample> =
            samples.iter().filter(|sample| sample.due >= from && sample.due < to).collect();
        let mut times: Vec<f64> =
            within.iter().map(|sample| sample.took.as_secs_f64() * 1000.0).collect();
        times.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let index = (times.len() as f64 * part) as usize;
            times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        let faults = within.iter().filter_map(|sample| sample.fault.clone()).collect();
        Suffering { p50: at(0.5), p99: at(0.99), max: at(1.0), faults }
    }

    /// Since when, after this moment, it has been well: its last ten requests were all answered
    /// soon.
    pub(crate) fn is_well(&self, after: Instant, soon: Duration) -> Option<Instant> {
        let samples = self.samples.lock().expect("nobody panics with it");
        let after: Vec<&Sample> = samples.iter().filter(|sample| sample.due >= after).collect();
        let good = |sample: &&Sample| sample.fault.is_none() && sample.took < soon;
        let runs = after.windows(10).find(|ten| ten.iter().all(good));
        runs.map(|ten| ten[0].due)
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn live(caller: Caller, samples: Arc<Mutex<Vec<Sample>>>, stop: Arc<AtomicBool>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut connection = None;
    for turn in 0u64.. {
        let due = ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let outcome = timeout(PATIENCE, once(&caller, &mut connection, turn)).await;
        let fault = outcome.unwrap_or_else(|_| Err("no answer".to_owned())).err();
        if fault.is_some() {
            connection = None;
        }
        let sample = Sample { due, took: due.elapsed(), fault };
        samples.lock().expect("nobody panics with it").push(sample);
    }
}

/// Reads, or writes, its one object.
async fn once(
    caller: &Caller,
    connection: &mut Option<Connection>,
    turn: u64,
) -> Result<(), String> {
    let all = format!("/api/v1/namespaces/{INNOCENT}/configmaps");
    let one = format!("{all}/mine");
    let object = config_map("mine", &turn.to_string());
    let ask = match turn {
        0 => Ask::post(all, &object),
        _ if turn.is_multiple_of(2) => Ask::put(one, &object),
        _ => Ask::new(Method::GET, one, ""),
    };
    let mut open = match connection.take() {
        Some(open) => open,
        None => caller.connect().await?,
    };
    let answer = ask_over(&mut open, &ask).await?;
    *connection = Some(open);
    answer.good().map(drop)
}
