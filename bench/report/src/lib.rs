//! Results, as tables for people or as JSON lines for programs.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::Duration;

use serde_json::json;

/// Collects and prints the results of one benchmark as they come.
pub struct Report {
    bench: &'static str,
    json: bool,
}

/// One measured figure of our own.
pub struct Figure<'a> {
    /// What was measured.
    pub metric: &'a str,
    /// How much it was.
    pub value: f64,
    /// In which unit.
    pub unit: &'a str,
    /// What it should be, if there is a goal.
    pub goal: &'a str,
}

/// One metric of several systems.
pub struct Row<'a> {
    /// What was measured.
    pub metric: &'a str,
    /// In which unit.
    pub unit: &'a str,
    /// Whether less is better.
    pub lower_is_better: bool,
    /// How much it was for each system, where it was measured.
    pub values: Vec<Option<f64>>,
    /// By which factor the first system should be better than another.
    pub goals: &'a [(&'a str, f64)],
}

/// Something that is measured.
pub struct Metric {
    /// Its name in reports.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Whether less is better.
    pub lower_is_better: bool,
    /// By which factor Steersman wants to be better than whom.
    pub goals: &'static [(&'static str, f64)],
}

impl Report {
    /// A report of the benchmark of this name.
    pub fn new(bench: &'static str, json: bool) -> Self {
        if !json {
            println!("\n{bench}");
        }
        Self { bench, json }
    }

    /// Says something that is no figure; programs do not need it.
    pub fn note(&mut self, text: &str) {
        if !self.json {
            println!("  {text}");
        }
    }

    /// Prints a figure of our own.
    pub fn figure(&mut self, figure: &Figure<'_>) {
        let Figure { metric, value, unit, goal } = figure;
        if self.json {
            self.line("steersman", metric, *value, unit);
        } else {
            println!("  {metric:<52} {value:>10.1} {unit:<5} {goal}");
        }
    }

    /// Prints the figures of several systems side by side; the first is compared with the rest.
    pub fn comparison(&mut self, systems: &[&str], rows: &[Row<'_>]) {
        if self.json {
            for row in rows {
                for (system, value) in systems.iter().zip(&row.values) {
                    value.iter().for_each(|value| self.line(system, row.metric, *value, row.unit));
                }
            }
            return;
        }
        let heads: String = systems.iter().map(|system| format!(" {system:>16}")).collect();
        let width = rows.iter().map(|row| row.metric.len()).max().unwrap_or(0).max(23) + 1;
        println!("  {:<width$}{:<3}{heads}   {} is better by", "", "", systems[0]);
        for row in rows.iter().filter(|row| row.values.iter().any(Option::is_some)) {
            let values: String = row.values.iter().map(|value| cell(*value)).collect();
            println!("  {:<width$}{:<3}{values}   {}", row.metric, row.unit, row.factors(systems));
        }
    }

    fn line(&self, system: &str, metric: &str, value: f64, unit: &str) {
        let bench = self.bench;
        let line = json!({"bench": bench, "system": system, "metric": metric,
                          "value": value, "unit": unit});
        println!("{line}");
    }
}

impl Row<'_> {
    /// By how much the first system is better than each of the rest, and whether that will do.
    fn factors(&self, systems: &[&str]) -> String {
        let others = systems.iter().zip(&self.values).skip(1);
        let factors = others.filter_map(|(system, value)| {
            let first = self.values[0]?;
            let other = (*value)?;
            let factor = if self.lower_is_better { other / first } else { first / other };
            let goal = self.goals.iter().find(|(name, _)| name == system);
            let verdict = goal.map_or_else(String::new, |(_, goal)| {
                let verdict = if factor >= *goal { "met" } else { "MISSED" };
                format!(" (goal {goal:.1}: {verdict})")
            });
            Some(format!("{factor:.2}x {system}{verdict}"))
        });
        factors.collect::<Vec<_>>().join(", ")
    }
}

/// A value with as many digits as matter.
fn cell(value: Option<f64>) -> String {
    let text = match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1000.0 => thousands(value),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    };
    format!(" {text:>16}")
}

/// A whole number in groups of three digits.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A metric of which less is better.
pub const fn lower(
    name: &'static str,
    unit: &'static str,
    goals: &'static [(&'static str, f64)],
) -> Metric {
    Metric { name, unit, lower_is_better: true, goals }
}

/// A metric of which more is better.
pub const fn higher(
    name: &'static str,
    unit: &'static str,
    goals: &'static [(&'static str, f64)],
) -> Metric {
    Metric { name, unit, lower_is_better: false, goals }
}

/// The value below which this share of sorted nanoseconds lies, in milliseconds.
pub fn percentile(sorted: &[u64], share: f64) -> f64 {
    at_share(sorted, share).map_or(f64::NAN, |nanoseconds| *nanoseconds as f64 / 1e6)
}

/// The same of times, which it sorts.
pub fn percentile_of(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    at_share(times, share).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

fn at_share<T>(sorted: &[T], share: f64) -> Option<&T> {
    let at = (sorted.len().saturating_sub(1)) as f64 * share;
    sorted.get(at.round() as usize)
}

/// The middle one of several measurements.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_grouped_and_small_ones_keep_their_digits() {
        assert_eq!(cell(Some(1_234_567.4)).trim(), "1,234,567");
        assert_eq!(cell(Some(-4096.0)).trim(), "-4,096");
        assert_eq!(cell(Some(12.34)).trim(), "12.3");
        assert_eq!(cell(Some(0.5)).trim(), "0.500");
        assert_eq!(cell(None).trim(), "-");
    }

    #[test]
    fn the_first_system_is_compared_with_each_that_was_measured() {
        let systems = ["ours", "theirs", "absent"];
        let mut row = Row {
            metric: "time",
            unit: "s",
            lower_is_better: true,
            values: vec![Some(2.0), Some(5.0), None],
            goals: &[("theirs", 3.0)],
        };
        assert_eq!(row.factors(&systems), "2.50x theirs (goal 3.0: MISSED)");
        row.values[1] = Some(6.0);
        assert_eq!(row.factors(&systems), "3.00x theirs (goal 3.0: met)");
        row.lower_is_better = false;
        assert_eq!(row.factors(&systems), "0.33x theirs (goal 3.0: MISSED)");
    }

    #[test]
    fn percentiles_are_taken_from_the_sorted_values() {
        let sorted: Vec<u64> = (0..=100).map(|value| value * 1_000_000).collect();
        assert_eq!(percentile(&sorted, 0.5), 50.0);
        assert_eq!(percentile(&sorted, 0.99), 99.0);
        assert!(percentile(&[], 0.5).is_nan());
        let mut times: Vec<Duration> = (0..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile_of(&mut times, 0.99), 99.0);
    }
}
