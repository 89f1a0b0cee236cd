//! `/debug/api_priority_and_fairness`: levels and queues as they are this moment, for people.

use std::fmt::Write;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Fairness;
use super::configuration::Configuration;
use super::work::SeatTime;

/// A second of one seat.
const SECOND: SeatTime = 1e9;

impl Fairness {
    /// One of the tables; `None` if there is no such one.
    pub(crate) fn dump(&self, name: &str) -> Option<String> {
        let configuration = self.configuration.read().unwrap_or_else(PoisonError::into_inner);
        let rows = match name {
            "dump_priority_levels" => levels(&configuration),
            "dump_queues" => queues(&configuration),
            _ => return None,
        };
        Some(aligned(&rows))
    }
}

fn levels(configuration: &Configuration) -> Vec<Vec<String>> {
    let heads = [
        "PriorityLevelName",
        "ActiveQueues",
        "IsIdle",
        "IsQuiescing",
        "WaitingRequests",
        "ExecutingRequests",
        "DispatchedRequests",
        "RejectedRequests",
        "TimedoutRequests",
        "CancelledRequests",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (name, state) in &configuration.levels {
        let queues = state.level.queue_states();
        let active = queues.iter().filter(|queue| queue.waiting > 0).count();
        let counts = configuration.counts.iter().filter(|((level, _), _)| level == name);
        let (mut dispatched, mut rejected, mut late) = (0, 0, 0);
        let (mut waiting, mut executing) = (0, 0);
        for (_, counts) in counts {
            waiting += counts.waiting.load(Ordering::Relaxed);
            executing += counts.executing.get();
            dispatched += counts.dispatched.get();
            late += counts.time_out.load(Ordering::Relaxed);
            rejected += counts.concurrency_limit.load(Ordering::Relaxed);
            rejected += counts.queue_full.load(Ordering::Relaxed);
        }
        rows.push(vec![
            name.clone(),
            active.to_string(),
            (waiting + executing == 0).to_string(),
            state.quiescing.to_string(),
            waiting.to_string(),
            executing.to_string(),
            dispatched.to_string(),
            (rejected + late).to_string(),
            "0".to_owned(),
            late.to_string(),
        ]);
    }
    rows
}

fn queues(configuration: &Configuration) -> Vec<Vec<String>> {
    let heads = [
        "PriorityLevelName",
        "Index",
        "PendingRequests",
        "ExecutingRequests",
        "SeatsInUse",
        "NextDispatchR",
        "MaxSeatsSum",
        "TotalWorkSum",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (name, state) in &configuration.levels {
        for queue in state.level.queue_states() {
            rows.push(vec![
                name.clone(),
                queue.index.to_string(),
                queue.waiting.to_string(),
                queue.executing.to_string(),
                queue.seats.to_string(),
                seat_seconds(queue.next_start),
                queue.waiting_seats.to_string(),
                seat_seconds(queue.waiting_work),
            ]);
        }
    }
    rows
}

fn seat_seconds(time: SeatTime) -> String {
    format!("{:.8}ss", time / SECOND)
}

/// Rows with commas, their columns below each other.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == columns;
            let cell = if last { cell.clone() } else { format!("{cell},") };
            let width = if last { 0 } else { widths[column] + 2 };
            let _ = write!(out, "{cell:<width$}");
        }
        out.push('\n');
    }
    out
}
