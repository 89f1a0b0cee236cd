//! `steersman up`: how soon it is ready, and what it costs to let it run.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::program::Program;
use crate::report::{Figure, Report, median};

const ROUNDS: usize = 5;

/// Runs the benchmark.
pub(crate) fn run(report: &mut Report) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..ROUNDS {
        let program = Program::start(&[])?;
        let ready = runtime.block_on(program.ready()).map_err(|error| error.to_string())?;
        times.push(ready.as_secs_f64() * 1000.0);
        runtime.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await });
        memory.push(program.resident()?);
    }
    report.figure(&Figure {
        metric: "steersman up, from exec to /readyz ok",
        value: median(times),
        unit: "ms",
        goal: "goal: under 300",
    });
    report.figure(&Figure {
        metric: "steersman up, resident when idle",
        value: median(memory),
        unit: "MB",
        goal: "goal: under 60",
    });
    Ok(())
}
