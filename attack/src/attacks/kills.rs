//! Kills, while the server writes to its log and while it writes a snapshot.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Ground;
use crate::caller::{Caller, Who};
use crate::field;
use crate::ledger::{Ledger, Writer};
use crate::program::{Place, Program};
use crate::seen::Seen;

/// How often it is killed.
const ROUNDS: usize = 12;

/// How long a round waits for a snapshot to be written.
const ROUND: Duration = Duration::from_secs(12);

/// Kills and looks whether everything is there that was acknowledged, again and again.
pub(super) async fn run(ground: Ground) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let place = Place::new(&ground.program, &["--history", "1", "--controllers", "none"])?;
    let ledger = Ledger::default();
    let mut in_the_act = 0;
    let rounds = if ground.short { 2 } else { ROUNDS };
    let mut program = place.start()?;
    field::prepare(program.address()).await?;
    for round in 0..rounds {
        let time = match ground.short {
            true => Duration::from_millis(400),
            // Every other round ends whenever it does, not with a snapshot.
            false if round % 2 == 0 => Duration::from_millis(300 + 331 * round as u64),
            false => ROUND,
        };
        let wait_for_snapshot = !ground.short && round % 2 == 1;
        let writing = write(&program, &ledger, Instant::now() + ROUND * 2)?;
        let caught = wait(&place.data(), Instant::now() + time, wait_for_snapshot).await;
        in_the_act += usize::from(caught);
        program.kill();
        writing.join_all().await;
        program = place.start()?;
        let caller = Caller::new(program.address(), Who::Admin)?;
        for loss in ledger.losses(&caller).await? {
            seen.fault(loss);
        }
        seen.count_as("kill");
    }
    let acknowledged = ledger.acknowledged();
    seen.note(format!("{acknowledged} writes, {in_the_act} kills while a snapshot was written"));
    seen.fault_if(acknowledged == 0, "nothing was acknowledged");
    Ok(seen)
}

/// Writes large objects at once.
fn write(program: &Program, ledger: &Ledger, until: Instant) -> Result<JoinSet<u64>, String> {
    let caller = Caller::new(program.address(), Who::Admin)?;
    let mut writing = JoinSet::new();
    for number in 0..8 {
        let rest = Duration::ZERO;
        let caller = caller.clone();
        let writer = Writer { caller, number, objects: 5, bytes: 100_000, until, rest };
        writing.spawn(ledger.clone().write(writer));
    }
    Ok(writing)
}

/// Waits until the time is over, or until a snapshot is being written; says whether one is.
async fn wait(data: &Path, until: Instant, for_snapshot: bool) -> bool {
    while Instant::now() < until {
        if for_snapshot && is_writing_a_snapshot(data) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    is_writing_a_snapshot(data)
}

fn is_writing_a_snapshot(data: &Path) -> bool {
    let entries = fs::read_dir(data).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.ends_with(".snapshot.tmp"))
}
