use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::Cache;
use crate::framework::{NodeInfo, PodInfo, Snapshot};
use crate::testing::{asking, node};

/// Those that ask for the same are kin.
fn info(name: &str, cpu: &str) -> Arc<PodInfo> {
    let mut pod = asking(name, cpu);
    pod.metadata.labels = Some(BTreeMap::from([("cpu".to_owned(), cpu.to_owned())]));
    Arc::new(PodInfo::of(&pod))
}

fn used(cache: &mut Cache) -> (i64, usize) {
    let mut snapshot = Snapshot::default();
    cache.is_reordered = true;
    cache.update(&mut snapshot);
    let node = snapshot.get("n").unwrap();
    (node.requested.milli_cpu(), node.pods.len())
}

fn with_node() -> Cache {
    let mut cache = Cache::default();
    cache.set_node(Arc::new(node("n", &json!({}))));
    cache
}

#[test]
fn an_assumed_pod_counts_once_until_and_after_it_is_seen_bound() {
    let mut cache = with_node();
    cache.assume(info("p", "2"), &"n".into());
    assert_eq!(used(&mut cache), (2000, 1));
    assert!(cache.is_assumed("p"));
    assert_eq!(cache.set_pod(&info("p", "2"), "n"), None);
    assert_eq!(used(&mut cache), (2000, 1));
    assert!(!cache.is_assumed("p"));
}

#[test]
fn an_assumption_can_be_taken_back_but_a_binding_cannot() {
    let mut cache = with_node();
    cache.assume(info("p", "2"), &"n".into());
    assert!(cache.forget("p"));
    assert_eq!(used(&mut cache), (0, 0));
    cache.set_pod(&info("p", "2"), "n");
    assert!(!cache.forget("p"));
    assert_eq!(used(&mut cache), (2000, 1));
    assert!(cache.remove_pod("p").is_some());
    assert_eq!(used(&mut cache), (0, 0));
}

#[test]
fn pods_of_a_node_that_comes_later_count_on_it() {
    let mut cache = Cache::default();
    cache.set_pod(&info("p", "2"), "n");
    let mut snapshot = Snapshot::default();
    cache.update(&mut snapshot);
    assert!(snapshot.is_empty());
    cache.set_node(Arc::new(node("n", &json!({}))));
    assert_eq!(used(&mut cache), (2000, 1));
}

/// Numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// A snapshot that only takes over what changed must be what one made from nothing would be. The model
/// is a plain table of where each Pod is.
#[test]
fn a_snapshot_brought_up_to_date_equals_one_made_anew() {
    for seed in 0..64 {
        let mut numbers = Numbers(seed);
        let mut cache = Cache::default();
        let mut snapshot = Snapshot::default();
        let mut nodes: BTreeMap<String, Arc<k8s_openapi::api::core::v1::Node>> = BTreeMap::new();
        let mut pods: BTreeMap<String, (String, Arc<PodInfo>)> = BTreeMap::new();
        for step in 0..200 {
            let name = format!("n{}", numbers.below(6));
            let pod = format!("p{}", numbers.below(20));
            match numbers.below(8) {
                0 => {
                    let zone = format!("z{}", numbers.below(3));
                    let labels = json!({"topology.kubernetes.io/zone": zone});
                    let made = Arc::new(node(&name, &json!({"metadata": {"labels": labels}})));
                    cache.set_node(Arc::clone(&made));
                    nodes.insert(name, made);
                }
                1 => {
                    cache.remove_node(&name);
                    nodes.remove(&name);
                }
                2 | 3 => {
                    let info = info(&pod, &format!("{}", 1 + numbers.below(3)));
                    cache.assume(Arc::clone(&info), &name.as_str().into());
                    pods.insert(pod, (name, info));
                }
                4 | 5 => {
                    let info = info(&pod, &format!("{}", 1 + numbers.below(3)));
                    cache.set_pod(&info, &name);
                    pods.insert(pod, (name, info));
                }
                6 => {
                    if cache.forget(&pod) {
                        pods.remove(&pod);
                    }
                }
                _ => {
                    cache.remove_pod(&pod);
                    pods.remove(&pod);
                }
            }
            if numbers.below(3) == 0 {
                cache.update(&mut snapshot);
                compare(&snapshot, &nodes, &pods, &format!("seed {seed}, step {step}"));
            }
        }
    }
}

fn compare(
    snapshot: &Snapshot,
    nodes: &BTreeMap<String, Arc<k8s_openapi::api::core::v1::Node>>,
    pods: &BTreeMap<String, (String, Arc<PodInfo>)>,
    at: &str,
) {
    assert_eq!(snapshot.len(), nodes.len(), "{at}");
    for (name, node) in nodes {
        let found = snapshot.get(name).unwrap_or_else(|| panic!("{at}: no {name}"));
        assert_eq!(&found.node, node, "{at}");
        let mut wanted: Vec<&str> = Vec::new();
        let mut cpu = 0;
        for (pod, (_, info)) in pods.iter().filter(|(_, (on, _))| on == name) {
            wanted.push(pod);
            cpu += info.requests.asked.milli_cpu();
        }
        let mut there: Vec<&str> = found.pods.iter().map(|pod| &*pod.uid).collect();
        there.sort_unstable();
        assert_eq!(there, wanted, "{at}: {name}");
        assert_eq!(found.requested.milli_cpu(), cpu, "{at}: {name}");
    }
    let mut kin: BTreeMap<(String, String), i64> = BTreeMap::new();
    for (name, pod) in pods.values().filter(|(name, _)| nodes.contains_key(name)) {
        *kin.entry((pod.labels["cpu"].clone(), name.clone())).or_default() += 1;
    }
    let found = snapshot.kin().flat_map(|kin| {
        let of = |(node, count): (&Arc<NodeInfo>, i64)| {
            ((kin.like.labels["cpu"].clone(), node.name().to_owned()), count)
        };
        snapshot.nodes_of(kin).map(of).collect::<Vec<_>>()
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), kin.len(), "{at}: kin are together");
    assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), kin, "{at}");
}
