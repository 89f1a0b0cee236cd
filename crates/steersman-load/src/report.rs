//! What was measured, as data.

use serde::{Deserialize, Serialize};

use crate::scenario::Scenario;

/// A run of a scenario, as its client saw it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was asked for.
    pub scenario: Scenario,
    /// The version that the server says it has.
    pub server: String,
    /// What was done, in order.
    pub phases: Vec<Phase>,
    /// How each sort of request fared, and how soon their effects were seen.
    pub operations: Vec<Operation>,
    /// How the cluster was, over time.
    pub gauges: Vec<Gauges>,
    /// Requests of the load that were due and could not be sent before its end.
    pub unsent: u64,
    /// Requests of the load for which there was no object that nothing else was done to.
    pub without_object: u64,
}

/// A part of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// What is done in it.
    pub name: String,
    /// When it began, in seconds since the run began.
    pub begin: f64,
    /// How long it took.
    pub seconds: f64,
    /// What it came to.
    pub outcome: String,
}

/// One sort of requests, such as `create deployments`, or of their effects: `deployments seen` is
/// from a write to its event in a watch, `deployments ready` from a write until its object is ready.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Which.
    pub name: String,
    /// How many there were, without those that failed.
    pub count: u64,
    /// How many failed.
    pub errors: u64,
    /// What the first that failed was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// The time that half of them did not exceed, in milliseconds, as all the times here.
    pub p50: f64,
    /// That nine of ten did not exceed.
    pub p90: f64,
    /// That 99 of 100 did not exceed.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// The same over time.
    pub points: Vec<Point>,
}

/// What happened between this moment and the one before it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// The moment, in seconds since the run began.
    pub second: f64,
    /// How many a second.
    pub rate: f64,
    /// How many failed, a second.
    pub errors: f64,
    /// The time that half of them did not exceed, in milliseconds.
    pub p50: f64,
    /// That 99 of 100 did not exceed.
    pub p99: f64,
}

/// How the cluster was at a moment.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gauges {
    /// The moment, in seconds since the run began.
    pub second: f64,
    /// How many objects of the run there were.
    pub objects: u64,
    /// How many of them were ready.
    pub ready: u64,
    /// Memory of the API server's process, if it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// Processor time of the API server's process so far, if it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
}

impl Report {
    /// What was measured of one sort.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// How many requests failed.
    pub fn errors(&self) -> u64 {
        self.operations.iter().map(|operation| operation.errors).sum()
    }
}
