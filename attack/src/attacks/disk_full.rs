//! A disk without room: what is acknowledged stays, the server says that it is not ready, and goes
//! on once there is room again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::time::Instant;

use super::Ground;
use crate::caller::{Ask, Caller, Who};
use crate::field::{self, config_map, config_maps};
use crate::program::Place;
use crate::seen::Seen;

/// How long the server may take to notice.
const PATIENCE: Duration = Duration::from_secs(15);

/// A small file system in memory; gone when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(directory: PathBuf) -> Option<Self> {
        fs::create_dir_all(&directory).ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=40m", "tmpfs"]).arg(&directory);
        let mounted = mount.stderr(std::process::Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(directory))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Fills the disk, looks, makes room, and looks again.
pub(super) async fn run(ground: Ground) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let place = Place::new(&ground.program, &["--controllers", "none"])?;
    let Some(disk) = Disk::mount(place.beside("disk")) else {
        seen.note("SKIPPED: only root can mount a small file system here");
        return Ok(seen);
    };
    let ballast = disk.0.join("ballast");
    let data = disk.0.join("data");
    fs::write(&ballast, vec![0; 12 << 20]).map_err(|error| error.to_string())?;
    let mut program = place.start_on(&data)?;
    field::prepare(program.address()).await?;
    let caller = Caller::new(program.address(), Who::Admin)?;
    let written = fill(&caller, &mut seen).await?;
    seen.note(format!("{written} objects until it was full"));
    let ready = until(&caller, false).await?;
    seen.fault_if(ready, "/readyz is 200 on a full disk");
    fs::remove_file(&ballast).map_err(|error| error.to_string())?;
    let again = write_until(&caller).await?;
    seen.fault_if(!again, "nothing can be written although there is room again");
    seen.fault_if(!until(&caller, true).await?, "/readyz stays although there is room again");
    program.kill();
    check(&place, &data, written, &mut seen).await?;
    Ok(seen)
}

/// Writes until the server refuses; says how many it took.
async fn fill(caller: &Caller, seen: &mut Seen) -> Result<usize, String> {
    let value = "x".repeat(200_000);
    for number in 0..400 {
        let began = Instant::now();
        let object = config_map(&format!("full-{number}"), &value);
        let answer = caller.ask(&Ask::post(config_maps(), &object)).await;
        seen.count(&answer, began.elapsed());
        if !answer?.is_good() {
            return Ok(number);
        }
    }
    Err("the disk does not get full".to_owned())
}

/// Whether `/readyz` is good, once it is as wanted or the patience is over.
async fn until(caller: &Caller, wanted: bool) -> Result<bool, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ready = caller.ask(&Ask::get("/readyz")).await?.is_good();
        if ready == wanted || Instant::now() > deadline {
            return Ok(ready);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn write_until(caller: &Caller) -> Result<bool, String> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let object = config_map("room-again", "x");
        let answer = caller.ask(&Ask::post(config_maps(), &object)).await?;
        if answer.is_good() || answer.status == 409 {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(false)
}

/// Whether everything is there that was acknowledged.
async fn check(place: &Place, data: &Path, written: usize, seen: &mut Seen) -> Result<(), String> {
    let program = place.start_on(data)?;
    let caller = Caller::new(program.address(), Who::Admin)?;
    for number in 0..written {
        let ask = Ask::get(format!("{}/full-{number}", config_maps()));
        let lost = !caller.ask(&ask).await?.is_good();
        seen.fault_if(lost, format!("full-{number} is lost"));
    }
    Ok(())
}
