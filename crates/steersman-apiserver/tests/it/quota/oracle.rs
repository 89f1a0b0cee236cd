//! However many write at once, no quota is ever exceeded, and what quotas say is used is what is
//! there: found out by adding up all that was admitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use steersman_rules::quantity::Quantity;
use steersman_store::Store;

use super::restless::Restless;
use super::{PODS, QUOTAS, pod, scoped};
use crate::api::Api;

/// How many write at once.
const WRITERS: usize = 64;

/// What the quotas of a seed limit, by their names: cpu in thousandths, the rest in units.
type Limits = BTreeMap<&'static str, BTreeMap<&'static str, i64>>;

fn limits(random: &mut StdRng) -> Limits {
    let mut below = |most: i64| random.random_range(0..most);
    BTreeMap::from([
        ("all", BTreeMap::from([("pods", below(48)), ("requests.cpu", below(30_000))])),
        ("memory", BTreeMap::from([("requests.memory", below(60)), ("count/pods", below(64))])),
        ("timed", BTreeMap::from([("pods", below(32)), ("cpu", below(16_000))])),
    ])
}

async fn make_quotas(api: &Api, limits: &Limits) {
    for (name, limits) in limits {
        let amount = |(name, limit): (&&str, &i64)| {
            let unit = if name.contains("cpu") { "m" } else { "" };
            ((*name).to_owned(), json!(format!("{limit}{unit}")))
        };
        let hard: Value = limits.iter().map(amount).collect();
        let scopes = if *name == "timed" { json!(["Terminating"]) } else { json!([]) };
        scoped(api, name, json!({"hard": hard, "scopes": scopes})).await;
    }
}

/// What one Pod asks for.
#[derive(Clone, Copy, Debug)]
struct Wish {
    cpu: i64,
    memory: i64,
    is_timed: bool,
}

impl Wish {
    fn any(random: &mut StdRng) -> Self {
        Self {
            cpu: random.random_range(1..2_000),
            memory: random.random_range(1..5),
            is_timed: random.random_range(0..2) == 0,
        }
    }

    fn pod(self, name: &str) -> Value {
        let Self { cpu, memory, is_timed } = self;
        let mut pod = pod(name);
        let requests = json!({"cpu": format!("{cpu}m"), "memory": memory.to_string()});
        pod["spec"]["containers"][0]["resources"] = json!({"requests": requests});
        if is_timed {
            pod["spec"]["activeDeadlineSeconds"] = json!(60);
        }
        pod
    }

    /// What it uses of a quota, by the plainest of arithmetic.
    fn uses(self, quota: &str, resource: &str) -> i64 {
        match (quota, resource) {
            ("timed", _) if !self.is_timed => 0,
            (_, "pods" | "count/pods") => 1,
            (_, "cpu" | "requests.cpu") => self.cpu,
            (_, "requests.memory") => self.memory,
            other => panic!("{other:?} is not limited"),
        }
    }
}

/// What all that was admitted uses.
fn total(admitted: &[Wish], quota: &str, resource: &str) -> i64 {
    admitted.iter().map(|wish| wish.uses(quota, resource)).sum()
}

/// Lets many write at once, through these servers in turn; what was admitted.
async fn flood(apis: &[Api], random: &mut StdRng) -> Vec<Wish> {
    let wishes: Vec<Wish> = (0..WRITERS).map(|_| Wish::any(random)).collect();
    let writes = wishes.iter().enumerate().map(|(n, wish)| async move {
        let answer = apis[n % apis.len()].post(PODS, &wish.pod(&format!("pod-{n}"))).await;
        match answer.code {
            201 => Some(*wish),
            403 => None,
            _ => panic!("{:?}", answer.json()),
        }
    });
    join_all(writes).await.into_iter().flatten().collect()
}

/// Compares what a quota limits and says is used with what is there.
fn compare(quota: &Value, limits: &Limits, admitted: &[Wish], seed: u64) {
    let name = quota["metadata"]["name"].as_str().unwrap();
    for (resource, limit) in &limits[name] {
        let is = total(admitted, name, resource);
        let said = Quantity::of(&quota["status"]["used"][*resource]).unwrap();
        let said = if resource.contains("cpu") { said.milli_value() } else { said.value() };
        assert!(is <= *limit, "seed {seed}: {name} has {is} of {limit} {resource}");
        assert_eq!(said, is, "seed {seed}: {name} {resource}");
    }
}

/// One seed, on so many servers over one store.
async fn run(seed: u64, servers: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    let store: Arc<dyn Store> = Arc::new(Restless::new(seed));
    let mut apis = Vec::new();
    for _ in 0..servers {
        apis.push(Api::over(Arc::clone(&store)).await);
    }
    let limits = limits(&mut random);
    make_quotas(&apis[0], &limits).await;
    let admitted = flood(&apis, &mut random).await;
    let there = apis[0].get(PODS).await.ok();
    assert_eq!(there["items"].as_array().unwrap().len(), admitted.len(), "seed {seed}");
    let quotas = apis[0].get(QUOTAS).await.ok();
    for quota in quotas["items"].as_array().unwrap() {
        compare(quota, &limits, &admitted, seed);
    }
    assert_full(&limits, &admitted, &apis[0], seed).await;
}

/// Nothing that fits is refused once nobody else writes: of the smallest Pod there is no room, or
/// it is admitted.
async fn assert_full(limits: &Limits, admitted: &[Wish], api: &Api, seed: u64) {
    let smallest = Wish { cpu: 1, memory: 1, is_timed: false };
    let fits = limits.iter().all(|(quota, limits)| {
        let left = |(resource, limit): (&&str, &i64)| {
            total(admitted, quota, resource) + smallest.uses(quota, resource) <= *limit
        };
        limits.iter().all(left)
    });
    let answer = api.post(&format!("{PODS}?dryRun=All"), &smallest.pod("small")).await;
    assert_eq!(answer.code, if fits { 201 } else { 403 }, "seed {seed}: {:?}", answer.json());
}

#[tokio::test(start_paused = true)]
async fn sixty_four_at_once_never_get_more_than_there_is() {
    for seed in 0..24 {
        run(seed, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nor_do_they_on_two_servers_over_one_store() {
    for seed in 100..124 {
        run(seed, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_on_two_processors() {
    for seed in 200..204 {
        run(seed, 2).await;
    }
}
