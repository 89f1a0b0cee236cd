//! Files that are not what was written: bits that flip, ends that are missing, other files' bytes.
//!
//! The program either serves what was acknowledged or says that it does not, in words and with an
//! exit code; it does not panic, and it does not take the lengths of a damaged file at their word.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

use super::Ground;
use crate::caller::{Caller, Who};
use crate::field;
use crate::ledger::{Ledger, Writer};
use crate::machine;
use crate::program::Place;
use crate::seen::Seen;

/// Damages of each file.
const DAMAGES: usize = 40;

/// The most memory that a damaged directory may take, in megabytes.
const MEMORY: f64 = 1024.0;

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Zeros,
    Cut,
    Ones,
}

/// Damages a directory and a backup of it in many ways, and starts the program on each.
pub(super) async fn run(ground: Ground) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let place = Place::new(&ground.program, &["--history", "1", "--controllers", "none"])?;
    let ledger = fill(&place, ground.short).await?;
    let mut files = files(&place.data());
    files.sort();
    let snapshots = files.iter().filter(|name| name.ends_with(".snapshot")).count();
    seen.note(format!("{} files, {snapshots} snapshots", files.len()));
    let mut random = StdRng::seed_from_u64(17);
    let times = if ground.short { 2 } else { DAMAGES };
    for name in files.iter().filter(|name| name.ends_with(".log") || name.ends_with(".snapshot")) {
        for turn in 0..times.div_ceil(files.len().div_ceil(4)) {
            let damage = [Damage::Flip, Damage::Zeros, Damage::Cut, Damage::Ones][turn % 4];
            directory(&place, name, damage, &mut random, &ledger, &mut seen).await?;
        }
    }
    backup(&place, times, &mut random, &mut seen)?;
    Ok(seen)
}

/// Writes until there is a snapshot, or for a moment; ends as a crash does.
async fn fill(place: &Place, short: bool) -> Result<Ledger, String> {
    let mut program = place.start()?;
    field::prepare(program.address()).await?;
    let ledger = Ledger::default();
    let caller = Caller::new(program.address(), Who::Admin)?;
    let deadline = Instant::now() + Duration::from_millis(if short { 300 } else { 30_000 });
    let (bytes, objects) = if short { (2_000, 5) } else { (100_000, 40) };
    let has_snapshot = || files(&place.data()).iter().any(|name| name.ends_with(".snapshot"));
    while Instant::now() < deadline && !has_snapshot() {
        let until = Instant::now() + Duration::from_millis(if short { 300 } else { 1_000 });
        let rest = Duration::ZERO;
        let writer = Writer { caller: caller.clone(), number: 0, objects, bytes, until, rest };
        ledger.clone().write(writer).await;
    }
    let mut save = place.command();
    save.args(["snapshot", "save"]).arg(place.beside("backup"));
    let saved = save.arg("--data-dir").arg(place.data()).output();
    let saved = saved.map_err(|error| error.to_string())?;
    if !saved.status.success() {
        return Err(format!("no backup: {}", String::from_utf8_lossy(&saved.stderr)));
    }
    program.kill();
    Ok(ledger)
}

/// Starts the program on a directory with one damaged file.
async fn directory(
    place: &Place,
    name: &str,
    damage: Damage,
    random: &mut StdRng,
    ledger: &Ledger,
    seen: &mut Seen,
) -> Result<(), String> {
    let copy = place.beside("damaged");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).map_err(|error| error.to_string())?;
    for file in files(&place.data()) {
        fs::copy(place.data().join(&file), copy.join(&file)).map_err(|error| error.to_string())?;
    }
    let early = spoil(&copy.join(name), damage, random)?;
    // A log that is damaged near its end, or ends early, looks like one that a crash tore: what
    // nobody wrote a second time cannot be missed.
    let last = files(&place.data()).into_iter().filter(|file| file.ends_with(".log")).max();
    let is_last = last.as_deref() == Some(name);
    let may_lose = is_last && (!early || matches!(damage, Damage::Cut));
    match place.start_on(&copy) {
        Ok(mut program) => {
            seen.count_as("serves");
            let memory = machine::memory(program.process()).unwrap_or_default();
            let much = memory.peak > MEMORY;
            seen.fault_if(much, format!("{damage:?} of {name} takes {:.0} MB", memory.peak));
            let caller = Caller::new(program.address(), Who::Admin)?;
            let lost = ledger.losses(&caller).await?;
            let one = lost.first().cloned().unwrap_or_default();
            let fault = format!("{damage:?} of {name} loses {}: {one}", lost.len());
            seen.fault_if(!may_lose && !lost.is_empty(), fault);
            program.kill();
        }
        Err(why) => {
            seen.count_as("refused");
            let broken = why.contains("signal") || why.contains("panicked");
            seen.fault_if(broken, format!("{damage:?} of {name}: {why}"));
        }
    }
    Ok(())
}

/// Looks into a damaged backup and restores it.
fn backup(place: &Place, times: usize, random: &mut StdRng, seen: &mut Seen) -> Result<(), String> {
    let damaged = place.beside("damaged-backup");
    for turn in 0..times {
        fs::copy(place.beside("backup"), &damaged).map_err(|error| error.to_string())?;
        let damage = [Damage::Flip, Damage::Zeros, Damage::Cut, Damage::Ones][turn % 4];
        spoil(&damaged, damage, random)?;
        let restored = place.beside("restored");
        let mut restore = place.command();
        restore.args(["snapshot", "restore"]).arg(&damaged).arg("--data-dir").arg(&restored);
        let output = restore.output().map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let broken = output.status.code().is_none() || errors.contains("panicked");
        seen.fault_if(broken, format!("{damage:?} of a backup: {errors}"));
        seen.fault_if(output.status.success(), format!("{damage:?} of a backup is restored"));
        seen.count_as(if output.status.success() { "restored" } else { "refused" });
        let _ = fs::remove_dir_all(&restored);
    }
    Ok(())
}

/// Damages a file; says whether in its first half.
fn spoil(path: &Path, damage: Damage, random: &mut StdRng) -> Result<bool, String> {
    let mut bytes = fs::read(path).map_err(|error| error.to_string())?;
    if bytes.is_empty() {
        return Ok(false);
    }
    let half = bytes.len() / 2;
    let at = random.random_range(0..bytes.len());
    let end = (at + 16).min(bytes.len());
    let before = bytes.clone();
    match damage {
        Damage::Flip => bytes[at] ^= 1 << random.random_range(0..8),
        Damage::Zeros => bytes[at..end].fill(0),
        Damage::Ones => bytes[at..end].fill(0xff),
        Damage::Cut => bytes.truncate(at),
    }
    if bytes == before {
        bytes[at] ^= 1;
    }
    fs::write(path, &bytes).map_err(|error| error.to_string())?;
    Ok(at < half)
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|p| p.is_file()).collect();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths.iter().filter_map(name).collect()
}
