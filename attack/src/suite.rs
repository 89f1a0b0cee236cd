//! Runs attacks: each on a program of its own, which is looked at before, meanwhile and after.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use crate::attacks::{Attack, Ground, Run};
use crate::caller::{Ask, Caller, Who};
use crate::etcd::Etcd;
use crate::field::{self, PREPARED};
use crate::innocent::Innocent;
use crate::machine;
use crate::program::{Place, Program};
use crate::seen::Seen;
use crate::verdict::{LEFT, Measured, RECOVERY, Row};

/// The longest that the preparation of an attack may take.
const PREPARATION: Duration = Duration::from_secs(200);
/// The longest that an attack may take.
const ATTACK: Duration = Duration::from_secs(200);

/// Megabytes at which the program is killed before it takes the machine with it; more than any goal
/// allows.
const CEILING: f64 = 4096.0;

/// How attacks are run.
pub(crate) struct Suite {
    /// The program to be attacked.
    pub(crate) program: PathBuf,
    pub(crate) short: bool,
    pub(crate) etcd: bool,
}

impl Suite {
    /// Runs one attack.
    pub(crate) async fn run(&self, attack: &'static Attack) -> Result<Row, String> {
        let Attack { name, by, .. } = *attack;
        let short = self.short;
        match attack.run {
            Run::Owns(run) => {
                let seen = run(Ground { program: self.program.clone(), short }).await?;
                Ok(Row { name, by, short, seen, measured: None })
            }
            Run::Sends(_) => {
                let (seen, measured) = self.suffer(attack).await?;
                Ok(Row { name, by, short, seen, measured: Some(measured) })
            }
        }
    }

    async fn suffer(&self, attack: &Attack) -> Result<(Seen, Measured), String> {
        let etcd = if self.etcd { Some(Etcd::start()?) } else { None };
        let mut flags = attack.flags.to_vec();
        if let Some(etcd) = &etcd {
            flags.extend(["--etcd", &etcd.url]);
        }
        let place = Place::new(&self.program, &flags)?;
        let mut program = place.start()?;
        field::prepare(program.address()).await?;
        let mut attacker = Attacker::start(attack.name, &program, self.short)?;
        attacker.prepared().await?;
        let innocent = Innocent::start(program.address())?;
        tokio::time::sleep(Duration::from_millis(if self.short { 300 } else { 2_000 })).await;
        let process = program.process();
        let idle = machine::memory(process).ok_or("the program ended at once")?.resident;
        machine::forget_peak(process);
        let guard = tokio::spawn(kill_above_ceiling(process));
        let began = Instant::now();
        let seen = attacker.attack().await;
        let ended = Instant::now();
        let mut measured = Measured { idle, ..Measured::default() };
        measured.suffering = innocent.suffering(began, ended);
        measured.recovery = self.recovery(&mut program, &innocent, ended).await;
        let calm = self.memory_left(process, idle).await;
        measured.last = calm.map_or(0.0, |memory| memory.resident);
        measured.peak = calm.map_or(0.0, |memory| memory.peak);
        guard.abort();
        measured.broken = match program.ended() {
            Some(_) if guard.await.is_ok() => {
                Some(format!("killed when it had taken {CEILING:.0} MB"))
            }
            Some(status) => Some(format!("the program ended: {status}")),
            None => program.panicked(),
        };
        let seen = seen.unwrap_or_else(|why| {
            let mut seen = Seen::default();
            seen.fault(format!("the attack did not end well: {why}"));
            seen
        });
        Ok((seen, measured))
    }

    /// How long after the end of the attack the innocent was served as before, and somebody new
    /// as well.
    async fn recovery(
        &self,
        program: &mut Program,
        innocent: &Innocent,
        ended: Instant,
    ) -> Option<Duration> {
        let soon = Duration::from_millis(if self.short { 1_000 } else { 50 });
        let new = Caller::new(program.address(), Who::Innocent).ok()?;
        let deadline = ended + RECOVERY * 3;
        while Instant::now() < deadline && program.ended().is_none() {
            if let Some(since) = innocent.is_well(ended, soon) {
                let answer = timeout(RECOVERY, new.ask(&Ask::get("/version"))).await;
                if matches!(answer, Ok(Ok(answer)) if answer.is_good()) {
                    return Some(since.duration_since(ended));
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        None
    }

    /// The memory once it is little again, or after some patience.
    async fn memory_left(&self, process: u32, idle: f64) -> Option<machine::Memory> {
        let patience = Duration::from_secs(if self.short { 8 } else { 30 });
        let deadline = Instant::now() + patience;
        loop {
            let memory = machine::memory(process)?;
            if memory.resident - idle < LEFT / 2.0 || Instant::now() > deadline {
                return Some(memory);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Waits until a process takes more memory than there should be to take, and kills it.
async fn kill_above_ceiling(process: u32) {
    let is_below = || machine::memory(process).is_none_or(|memory| memory.resident < CEILING);
    while is_below() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let _ = Command::new("kill").args(["-9", &process.to_string()]).status().await;
}

/// The attacker's process.
struct Attacker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Attacker {
    /// Starts it, at a low priority where that is known: on a real network it computes elsewhere.
    fn start(name: &str, program: &Program, short: bool) -> Result<Self, String> {
        let myself = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("nice");
        command.args(["-n", "10"]).arg(myself).args(["--as-attacker", name]);
        command.args(["--address", program.address()]);
        command.arg("--kubeconfig").arg(program.kubeconfig());
        if short {
            command.arg("--short");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("no attacker: {error}"))?;
        let output = child.stdout.take().ok_or("no output")?;
        Ok(Self { child, lines: BufReader::new(output).lines() })
    }

    async fn prepared(&mut self) -> Result<(), String> {
        let line = self.line(PREPARATION).await?;
        if line == PREPARED { Ok(()) } else { Err(line) }
    }

    /// Lets it begin, and waits until it has ended.
    async fn attack(&mut self) -> Result<Seen, String> {
        let mut input = self.child.stdin.take().ok_or("no input")?;
        input.write_all(b"\n").await.map_err(|error| error.to_string())?;
        let line = self.line(ATTACK).await;
        let _ = self.child.kill().await;
        let line = line?;
        serde_json::from_str(&line).map_err(|_| line)
    }

    async fn line(&mut self, patience: Duration) -> Result<String, String> {
        match timeout(patience, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err("the attacker ended without a word".to_owned()),
            Err(_) => Err(format!("nothing after {} s", patience.as_secs())),
        }
    }
}

/// The program that stands beside this one.
pub(crate) fn beside() -> Result<PathBuf, String> {
    let myself = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = myself.with_file_name("steersman");
    match Path::exists(&program) {
        true => Ok(program),
        false => Err(format!("{} is not built", program.display())),
    }
}
