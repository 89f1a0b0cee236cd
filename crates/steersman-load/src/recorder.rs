//! Keeps what is measured while a run goes on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::histogram::Histogram;
use crate::report::{Gauges, Operation, Phase, Point};

/// What was measured so far. The lock is never held over a wait.
#[derive(Debug)]
pub(crate) struct Recorder {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    series: BTreeMap<String, Series>,
    gauges: Vec<Gauges>,
    phases: Vec<Phase>,
    /// When points were last drawn.
    drawn: f64,
}

/// One sort of requests or effects.
#[derive(Debug, Default)]
struct Series {
    count: u64,
    errors: u64,
    first_error: Option<String>,
    times: Histogram,
    points: Vec<Point>,
    /// Since the last point.
    new: Histogram,
    new_count: u64,
    new_errors: u64,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), state: Mutex::default() }
    }

    /// Something was done, and took this long.
    pub(crate) fn done(&self, name: &str, took: Duration) {
        self.change(name, |series| {
            series.count += 1;
            series.new_count += 1;
            series.times.record(took);
            series.new.record(took);
        });
    }

    /// Something failed.
    pub(crate) fn failed(&self, name: &str, why: &str) {
        self.change(name, |series| {
            series.errors += 1;
            series.new_errors += 1;
            series.first_error.get_or_insert_with(|| why.to_owned());
        });
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Series)) {
        let mut state = self.lock();
        match state.series.get_mut(name) {
            Some(series) => change(series),
            None => change(state.series.entry(name.to_owned()).or_default()),
        }
    }

    /// Draws a point of every sort, and notes how the cluster is.
    pub(crate) fn draw(&self, gauges: Gauges) {
        let second = self.elapsed();
        let mut state = self.lock();
        let over = second - state.drawn;
        if over <= 0.0 {
            return;
        }
        state.drawn = second;
        state.gauges.push(Gauges { second, ..gauges });
        for series in state.series.values_mut() {
            let new = std::mem::take(&mut series.new);
            series.points.push(Point {
                second,
                rate: std::mem::take(&mut series.new_count) as f64 / over,
                errors: std::mem::take(&mut series.new_errors) as f64 / over,
                p50: millis(new.quantile(0.5)),
                p99: millis(new.quantile(0.99)),
            });
        }
    }

    /// A phase begins.
    pub(crate) fn begin(&self, name: &str) {
        let begin = self.elapsed();
        let outcome = String::new();
        self.lock().phases.push(Phase { name: name.to_owned(), begin, seconds: 0.0, outcome });
    }

    /// The phase that began last has ended.
    pub(crate) fn end(&self, outcome: String) {
        let now = self.elapsed();
        if let Some(phase) = self.lock().phases.last_mut() {
            phase.seconds = now - phase.begin;
            phase.outcome = outcome;
        }
    }

    /// Seconds since the run began.
    pub(crate) fn elapsed(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub(crate) fn phases(&self) -> Vec<Phase> {
        self.lock().phases.clone()
    }

    pub(crate) fn gauges(&self) -> Vec<Gauges> {
        self.lock().gauges.clone()
    }

    /// Every sort, with its points.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let state = self.lock();
        let told = |(name, series): (&String, &Series)| Operation {
            points: series.points.clone(),
            ..series.told(name)
        };
        state.series.iter().map(told).collect()
    }

    /// Every sort, with its last point alone.
    pub(crate) fn latest(&self) -> Vec<Operation> {
        let state = self.lock();
        let told = |(name, series): (&String, &Series)| Operation {
            points: series.points.last().copied().into_iter().collect(),
            ..series.told(name)
        };
        state.series.iter().map(told).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Series {
    fn told(&self, name: &str) -> Operation {
        let quantile = |part| millis(self.times.quantile(part));
        Operation {
            name: name.to_owned(),
            count: self.count,
            errors: self.errors,
            first_error: self.first_error.clone(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: millis(self.times.longest()),
            points: Vec::new(),
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
