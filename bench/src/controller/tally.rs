//! The reconciler that all systems have in common: it looks at its object, says what is to be
//! done, and keeps count.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kube::ResourceExt;
use steersman_bench_server::WRITTEN;
use tokio::sync::Notify;

use super::widget::{Widget, WidgetStatus};
use super::{Order, Workload};
use crate::processes::wire::{Phase, nanoseconds};

/// What is to be done about an object.
pub(super) enum Verdict {
    /// Nothing.
    Done,
    /// It shall come again at once.
    Again,
    /// Its status shall be this.
    Write(WidgetStatus),
}

/// Counts what was reconciled.
pub(super) struct Tally {
    writes: bool,
    widgets: Vec<Seen>,
    /// How many objects are done with in this phase, of how many.
    done: AtomicUsize,
    expected: AtomicUsize,
    /// When the last of them was.
    done_at: AtomicU64,
    all_done: Notify,
    latencies: Mutex<Vec<u64>>,
    spins: AtomicU64,
    stopped: AtomicBool,
}

/// The writes of an object that were seen last, by their times.
struct Seen {
    first: AtomicU64,
    settled: AtomicU64,
}

impl Tally {
    pub(super) fn new(order: &Order) -> Self {
        let seen = || Seen { first: AtomicU64::new(u64::MAX), settled: AtomicU64::new(u64::MAX) };
        Self {
            writes: order.workload == Workload::Status,
            widgets: (0..order.objects).map(|_| seen()).collect(),
            done: AtomicUsize::new(0),
            expected: AtomicUsize::new(order.objects),
            done_at: AtomicU64::new(0),
            all_done: Notify::new(),
            latencies: Mutex::new(Vec::with_capacity(order.objects)),
            spins: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Reconciles an object.
    pub(super) fn judge(&self, widget: &Widget) -> Verdict {
        let mark = widget.annotations().get(WRITTEN).map_or("", String::as_str);
        let at = match Phase::parse(mark) {
            Some((Phase::Spin, _)) => return self.spin(),
            Some((_, at)) => at,
            None => 0,
        };
        let Some(seen) = self.widgets.get(widget.spec.size) else { return Verdict::Done };
        if seen.first.swap(at, Ordering::Relaxed) != at && at > 0 {
            let late = nanoseconds().saturating_sub(at);
            self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        }
        let written = widget.status.as_ref().map(|status| status.written.as_str());
        if self.writes && written != Some(mark) {
            return Verdict::Write(WidgetStatus { written: mark.to_owned() });
        }
        if seen.settled.swap(at, Ordering::Relaxed) != at {
            self.count();
        }
        Verdict::Done
    }

    fn spin(&self) -> Verdict {
        self.spins.fetch_add(1, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) { Verdict::Done } else { Verdict::Again }
    }

    fn count(&self) {
        let done = self.done.fetch_add(1, Ordering::SeqCst) + 1;
        if done == self.expected.load(Ordering::SeqCst) {
            self.done_at.store(nanoseconds(), Ordering::SeqCst);
            self.all_done.notify_one();
        }
    }

    /// Expects so many objects to be done with from now on.
    pub(super) fn expect(&self, objects: usize) {
        self.expected.store(objects, Ordering::SeqCst);
        self.done.store(0, Ordering::SeqCst);
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until they are; gives the time at which the last one was.
    pub(super) async fn all_done(&self) -> u64 {
        self.all_done.notified().await;
        self.done_at.load(Ordering::SeqCst)
    }

    /// How late the objects were that were expected, in order.
    pub(super) fn latencies(&self) -> Vec<u64> {
        let latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latencies = latencies.clone();
        latencies.sort_unstable();
        latencies
    }

    /// How often objects came that ask to come again.
    pub(super) fn spins(&self) -> u64 {
        self.spins.load(Ordering::Relaxed)
    }

    /// Lets them come no more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
