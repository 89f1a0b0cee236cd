//! How time is taken.

use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a turn lasts.
pub(crate) const TURN: Duration = Duration::from_millis(60);

/// Something that evaluates expressions.
pub(crate) trait System {
    /// What it is called in reports.
    fn name(&self) -> &'static str;

    /// Makes a rule ready and runs it over an object, for a turn each. The rule must hold.
    fn measure(&mut self, rule: &str, object: &Value) -> Result<Times, String>;
}

/// What one took on average, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// From text to something that runs.
    pub(crate) ready: f64,
    /// One evaluation.
    pub(crate) run: f64,
}

/// How long something takes on average, in microseconds, when it is done for a turn.
pub(crate) fn timed(mut work: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let begin = Instant::now();
    let mut times = 0_u32;
    loop {
        work()?;
        times += 1;
        let passed = begin.elapsed();
        if passed >= TURN {
            return Ok(passed.as_secs_f64() * 1e6 / f64::from(times));
        }
    }
}

/// The median of each.
pub(crate) fn median(times: &[Times]) -> Times {
    let middle = |of: fn(&Times) -> f64| {
        let mut values: Vec<f64> = times.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Times { ready: middle(|times| times.ready), run: middle(|times| times.run) }
}
