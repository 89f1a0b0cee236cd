//! The soak: load, churn of definitions, watches that come and go, all at once, for long; then the
//! same while the process is killed again and again.
//!
//! Memory is looked at in the first half, in which one process lives. It is flat if the last
//! quarter of that half takes hardly more than the second. What was acknowledged is looked for
//! after every kill of the second half.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::caller::{Ask, Caller, Who};
use crate::field::{
    self, DEFINITIONS, HOSTILE, config_map, config_maps, definition, object, objects,
};
use crate::ledger::{Ledger, Writer};
use crate::machine;
use crate::program::{Place, Program};

/// How often memory is looked at, and how often it is printed.
const LOOK: Duration = Duration::from_secs(5);
const PRINTED: usize = 12;
/// How long a process lives that is killed.
const LIFE: Duration = Duration::from_secs(40);
/// By how much the later memory may exceed the earlier: a part, and some megabytes.
const GROWTH: (f64, f64) = (1.15, 16.0);

/// What to run, and for how long.
pub(crate) struct Soak {
    pub(crate) program: PathBuf,
    pub(crate) minutes: f64,
}

/// What has been done so far.
#[derive(Default)]
struct Tally {
    objects: AtomicU64,
    definitions: AtomicU64,
    watches: AtomicU64,
    events: AtomicU64,
    refused: AtomicU64,
}

impl Soak {
    /// Runs it and prints what it sees.
    pub(crate) async fn run(&self) -> Result<(), String> {
        let half = Duration::from_secs_f64(self.minutes * 30.0);
        let place = Place::new(&self.program, &["--history", "30"])?;
        let mut program = place.start()?;
        field::prepare(program.address()).await?;
        let ledger = Ledger::default();
        let tally = Arc::<Tally>::default();
        println!("   time  resident    disk  acknowledged  objects  definitions  watches   events");
        let began = Instant::now();
        let memory = self.live(&program, &place, &ledger, &tally, began, began + half).await?;
        let mut kills = 0;
        let mut losses = Vec::new();
        while began.elapsed() < half * 2 {
            let until = (Instant::now() + LIFE).min(began + half * 2);
            let living = self.live(&program, &place, &ledger, &tally, began, until + LIFE);
            tokio::select! {
                lived = living => { lived?; }
                () = sleep_until(until) => {}
            }
            program.kill();
            kills += 1;
            program = place.start()?;
            losses.extend(ledger.losses(&Caller::new(program.address(), Who::Admin)?).await?);
        }
        let refused = tally.refused.load(Ordering::Relaxed);
        let acknowledged = ledger.acknowledged();
        println!("{kills} kills, {acknowledged} writes acknowledged, {refused} requests refused");
        let panicked = program.panicked();
        judge(&memory, &losses, panicked)
    }

    /// Lets everything happen on a program until a time, and says how its memory went.
    async fn live(
        &self,
        program: &Program,
        place: &Place,
        ledger: &Ledger,
        tally: &Arc<Tally>,
        began: Instant,
        until: Instant,
    ) -> Result<Vec<f64>, String> {
        let caller = Caller::new(program.address(), Who::Admin)?;
        let mut tasks = JoinSet::new();
        for number in 0..4 {
            let rest = Duration::from_millis(5);
            let caller = caller.clone();
            let writer = Writer { caller, number, objects: 25, bytes: 2_000, until, rest };
            let ledger = ledger.clone();
            tasks.spawn(async move {
                ledger.write(writer).await;
            });
        }
        for number in 0..2 {
            tasks.spawn(churn(caller.clone(), Arc::clone(tally), number, until));
        }
        tasks.spawn(define(caller.clone(), Arc::clone(tally), until));
        tasks.spawn(deploy(caller.clone(), Arc::clone(tally), until));
        for number in 0..20 {
            tasks.spawn(watch(caller.clone(), Arc::clone(tally), number, until));
        }
        let mut memory = Vec::new();
        while Instant::now() + LOOK < until {
            sleep(LOOK).await;
            let resident = machine::memory(program.process()).ok_or("the program ended")?.resident;
            if memory.len().is_multiple_of(PRINTED) {
                print(began, resident, machine::bytes_in(&place.data()), ledger, tally);
            }
            memory.push(resident);
        }
        tasks.join_all().await;
        Ok(memory)
    }
}

fn print(began: Instant, resident: f64, disk: u64, ledger: &Ledger, tally: &Tally) {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{:>5.0} s {resident:>6.0} MB {:>4.0} MB {:>13} {:>8} {:>12} {:>8} {:>8}",
        began.elapsed().as_secs_f64(),
        disk as f64 / 1e6,
        ledger.acknowledged(),
        count(&tally.objects),
        count(&tally.definitions),
        count(&tally.watches),
        count(&tally.events),
    );
}

/// Whether memory stayed flat and nothing was lost.
fn judge(memory: &[f64], losses: &[String], panicked: Option<String>) -> Result<(), String> {
    let quarter = memory.len() / 4;
    let median = |part: &[f64]| {
        let mut part = part.to_vec();
        part.sort_by(f64::total_cmp);
        part.get(part.len() / 2).copied().unwrap_or_default()
    };
    let early = median(&memory[quarter..quarter * 2]);
    let late = median(&memory[memory.len() - quarter..]);
    let flat = late <= early * GROWTH.0 + GROWTH.1;
    let verdict = if flat { "flat" } else { "NOT FLAT" };
    println!("memory: {early:.0} MB in the second quarter, {late:.0} MB in the last: {verdict}");
    for loss in losses {
        println!("LOST: {loss}");
    }
    if let Some(panicked) = panicked {
        return Err(panicked);
    }
    match (flat, losses.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err("memory grows".to_owned()),
        (true, false) => Err(format!("{} writes are lost", losses.len())),
    }
}

/// Asks, and notes what was not done. None if the server is gone.
async fn ask(caller: &Caller, tally: &Tally, ask: &Ask) -> Option<()> {
    let answer = caller.ask(ask).await.ok()?;
    if !answer.is_good() && answer.status != 404 && answer.status != 409 {
        tally.refused.fetch_add(1, Ordering::Relaxed);
    }
    Some(())
}

/// Objects that come, change and go.
async fn churn(caller: Caller, tally: Arc<Tally>, number: usize, until: Instant) {
    for turn in 0.. {
        if Instant::now() > until {
            return;
        }
        let name = format!("churn-{number}-{}", turn % 50);
        let one = format!("{}/{name}", config_maps());
        let value = "x".repeat(1_000 + turn % 9_000);
        let _ = ask(&caller, &tally, &Ask::post(config_maps(), &config_map(&name, &value))).await;
        let _ = ask(&caller, &tally, &Ask::put(one.clone(), &config_map(&name, "y"))).await;
        let _ = ask(&caller, &tally, &Ask::delete(one)).await;
        tally.objects.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_millis(20)).await;
    }
}

/// Definitions that come with objects and go with them.
async fn define(caller: Caller, tally: Arc<Tally>, until: Instant) {
    for turn in 0.. {
        if Instant::now() > until {
            return;
        }
        let plural = format!("churns{}", turn % 5);
        let text = json!({"type": "string", "default": "d", "pattern": "^[a-z]*$"});
        let spec = json!({"type": "object", "properties": {"text": text}});
        let _ = ask(&caller, &tally, &Ask::post(DEFINITIONS, &definition(&plural, spec))).await;
        sleep(Duration::from_millis(500)).await;
        for number in 0..5 {
            let one = object(&plural, &format!("o{number}"), json!({}));
            let _ = ask(&caller, &tally, &Ask::post(objects(&plural), &one)).await;
        }
        let _ = ask(&caller, &tally, &Ask::get("/openapi/v2")).await;
        sleep(Duration::from_millis(500)).await;
        let gone = Ask::delete(format!("{DEFINITIONS}/{plural}.hostile.test"));
        let _ = ask(&caller, &tally, &gone).await;
        tally.definitions.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_secs(1)).await;
    }
}

/// A Deployment that comes with its Pods and goes with them.
async fn deploy(caller: Caller, tally: Arc<Tally>, until: Instant) {
    let all = format!("/apis/apps/v1/namespaces/{HOSTILE}/deployments");
    let labels = json!({"app": "soak"});
    let container = json!({"name": "c", "image": "x"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "soak"},
        "spec": {
            "replicas": 5, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    while Instant::now() < until {
        let _ = ask(&caller, &tally, &Ask::post(all.clone(), &deployment)).await;
        sleep(Duration::from_secs(3)).await;
        let _ = ask(&caller, &tally, &Ask::delete(format!("{all}/soak"))).await;
        sleep(Duration::from_secs(2)).await;
    }
}

/// Watches that begin, last a while, and are dropped.
async fn watch(caller: Caller, tally: Arc<Tally>, number: u64, until: Instant) {
    let paths = ["/api/v1/configmaps", "/api/v1/pods", "/apis/apps/v1/deployments", DEFINITIONS];
    for turn in 0u64.. {
        if Instant::now() > until {
            return;
        }
        let path = format!("{}?watch=1", paths[(number + turn) as usize % paths.len()]);
        let end = Instant::now() + Duration::from_millis(500 + (number * 7 + turn * 13) % 40 * 250);
        tally.watches.fetch_add(1, Ordering::Relaxed);
        let watched = timeout_at(end, follow(&caller, &tally, &path)).await;
        if !matches!(watched, Err(_) | Ok(Some(()))) {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Counts what a watch says until it ends.
async fn follow(caller: &Caller, tally: &Tally, path: &str) -> Option<()> {
    let mut connection = caller.connect().await.ok()?;
    let request = http::Request::get(path).body(bytes::Bytes::new()).ok()?;
    let mut body = connection.send(request).await.ok()?.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            let lines = data.iter().filter(|byte| **byte == b'\n').count();
            tally.events.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
    Some(())
}
