//! Results, as a table for people or as JSON lines for programs.

use serde_json::json;

/// Collects and prints the results of one benchmark as they come.
pub(crate) struct Report {
    bench: &'static str,
    json: bool,
}

/// One measured figure.
pub(crate) struct Figure<'a> {
    /// What was measured.
    pub(crate) metric: &'a str,
    /// How much it was.
    pub(crate) value: f64,
    /// In which unit.
    pub(crate) unit: &'a str,
    /// What it should be, if there is a goal.
    pub(crate) goal: &'a str,
}

impl Report {
    /// A report of the benchmark of this name.
    pub(crate) fn new(bench: &'static str, json: bool) -> Self {
        if !json {
            println!("\n{bench}");
        }
        Self { bench, json }
    }

    /// Prints a figure of our own.
    pub(crate) fn figure(&mut self, figure: &Figure<'_>) {
        let Figure { metric, value, unit, goal } = figure;
        if self.json {
            let line = json!({"bench": self.bench, "system": "steersman", "metric": metric,
                              "value": value, "unit": unit});
            println!("{line}");
        } else {
            println!("  {metric:<52} {value:>10.1} {unit:<5} {goal}");
        }
    }
}

/// The middle one of several measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
