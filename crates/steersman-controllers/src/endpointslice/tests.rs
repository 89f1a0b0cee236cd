//! What becomes of Pods in slices.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use serde_json::{Value, json};
use steersman::ObjectKey;

use super::packing::{Changes, endpoints};
use super::plan::{MAX, Plan, Situation, Told};
use super::settled::{Changed, Circumstances, Look, Names, Settled};
use super::topology::Zones;

/// Objects around a Service, and slices to which plans are applied.
struct World {
    service: Service,
    pods: Vec<Arc<Pod>>,
    nodes: Vec<Arc<Node>>,
    slices: Vec<Arc<EndpointSlice>>,
    hinted: bool,
    made: usize,
    written: usize,
}

fn service(spec: &Value) -> Service {
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "s", "labels": {"app": "web"},
                     "resourceVersion": "7"},
        "spec": {"selector": {"app": "web"}, "ipFamilies": ["IPv4"], "clusterIP": "10.96.0.9",
                 "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        service["spec"][key] = value.clone();
    }
    serde_json::from_value(service).unwrap()
}

fn pod(name: &str, ip: &str, ready: bool) -> Pod {
    let status = if ready { "True" } else { "False" };
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "node-a", "containers": []},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                   "conditions": [{"type": "Ready", "status": status}]},
    }))
    .unwrap()
}

fn pods(range: std::ops::Range<usize>) -> Vec<Arc<Pod>> {
    let ip = |n: usize| format!("10.244.{}.{}", n / 200, n % 200);
    range.map(|n| Arc::new(pod(&format!("web-{n:05}"), &ip(n), true))).collect()
}

fn node(name: &str, zone: &str, cpu: u32) -> Arc<Node> {
    let node = json!({
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": cpu.to_string()},
                   "conditions": [{"type": "Ready", "status": "True"}]},
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

impl World {
    fn new(spec: &Value, pods: Vec<Arc<Pod>>) -> Self {
        let nodes = vec![node("node-a", "a", 4), node("node-b", "b", 4)];
        let service = service(spec);
        Self { service, pods, nodes, slices: vec![], hinted: false, made: 0, written: 0 }
    }

    fn plan(&self) -> Plan {
        self.plan_with(None)
    }

    /// What is planned when only some Pods are looked at.
    fn plan_with(&self, look: Option<&Look>) -> Plan {
        let is_looked_at = |pod: &&Arc<Pod>| {
            look.is_none_or(|look| look.pods.contains(pod.metadata.name.as_deref().unwrap()))
        };
        let pods: Vec<Arc<Pod>> = self.pods.iter().filter(is_looked_at).cloned().collect();
        let named = |name: &str| {
            let is = |node: &&Arc<Node>| node.metadata.name.as_deref() == Some(name);
            self.nodes.iter().find(is).cloned()
        };
        Situation {
            service: &self.service,
            pods: &pods,
            look,
            node: &named,
            zones: &|| Zones::of(&self.nodes),
            slices: &self.slices,
            hinted: self.hinted,
        }
        .plan()
    }

    /// Does what is planned; gives the plan.
    fn sync(&mut self) -> Plan {
        let plan = self.plan();
        self.apply(&plan);
        plan
    }

    /// Does this; gives the slices that were written.
    fn apply(&mut self, plan: &Plan) -> Vec<Arc<EndpointSlice>> {
        let Changes { create, update, delete, .. } = &plan.changes;
        let changed = update.iter().map(name).chain(delete.iter().map(|it| name(it)));
        let changed: HashSet<String> = changed.collect();
        self.slices.retain(|slice| !changed.contains(&name(slice)));
        let mut written = update.clone();
        for mut slice in create.clone() {
            self.made += 1;
            slice.metadata.name = Some(format!("web-{:03}", self.made));
            slice.metadata.owner_references = Some(vec![
                serde_json::from_value(
                    json!({"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s"}),
                )
                .unwrap(),
            ]);
            written.push(slice);
        }
        for slice in &mut written {
            self.written += 1;
            slice.metadata.resource_version = Some(self.written.to_string());
        }
        let written: Vec<_> = written.into_iter().map(Arc::new).collect();
        self.slices.extend_from_slice(&written);
        self.slices.sort_by_key(|slice| name(slice));
        self.hinted = plan.hinted;
        written
    }

    /// How many endpoints each slice has.
    fn sizes(&self) -> Vec<usize> {
        self.slices.iter().map(|slice| endpoints(slice).len()).collect()
    }

    fn endpoints(&self) -> Vec<&Endpoint> {
        self.slices.iter().flat_map(|slice| endpoints(slice)).collect()
    }

    fn zones(&self) -> Vec<String> {
        let zone = |endpoint: &&Endpoint| {
            let hints = endpoint.hints.clone().unwrap_or_default();
            let zones = hints.for_zones.unwrap_or_default().into_iter().map(|zone| zone.name);
            let nodes = hints.for_nodes.unwrap_or_default().into_iter().map(|node| node.name);
            zones.chain(nodes).collect::<Vec<_>>().join("+")
        };
        self.endpoints().iter().map(zone).collect()
    }
}

fn name(slice: &EndpointSlice) -> String {
    slice.metadata.name.clone().unwrap_or_default()
}

/// How many slices are created, updated and deleted.
fn writes(plan: &Plan) -> [usize; 3] {
    [plan.changes.create.len(), plan.changes.update.len(), plan.changes.delete.len()]
}

#[test]
fn conditions_tell_whether_a_pod_serves_and_whether_it_goes() {
    for (ready, leaves, publishes, expected) in [
        (true, false, false, [true, true, false]),
        (false, false, false, [false, false, false]),
        (true, true, false, [false, true, true]),
        (false, true, true, [true, false, true]),
        (false, false, true, [true, false, false]),
    ] {
        let mut pod = pod("web-1", "10.244.0.1", ready);
        pod.metadata.deletion_timestamp =
            leaves.then(|| serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        let spec = json!({"publishNotReadyAddresses": publishes});
        let mut world = World::new(&spec, vec![Arc::new(pod)]);
        world.sync();
        let conditions = world.endpoints()[0].conditions.clone().unwrap();
        let found = [conditions.ready, conditions.serving, conditions.terminating];
        assert_eq!(found, expected.map(Some), "{ready} {leaves} {publishes}");
    }
}

#[test]
fn a_slice_tells_whose_it_is_and_where_its_pods_are() {
    let mut named = pod("web-0", "10.244.0.7", true);
    let spec = named.spec.as_mut().unwrap();
    (spec.hostname, spec.subdomain) = (Some("zero".into()), Some("web".into()));
    let mut world = World::new(&json!({"clusterIP": "None"}), vec![Arc::new(named)]);
    world.sync();
    assert_eq!(
        serde_json::to_value(&*world.slices[0]).unwrap(),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "web-001", "generateName": "web-", "namespace": "default",
                "resourceVersion": "1",
                "labels": {
                    "app": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    "kubernetes.io/service-name": "web",
                    "service.kubernetes.io/headless": "",
                },
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s"}],
            },
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": ["10.244.0.7"], "hostname": "zero", "nodeName": "node-a", "zone": "a",
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-0", "uid": "web-0"},
            }],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        })
    );
}

#[test]
fn a_service_without_pods_has_an_empty_slice_that_becomes_its_first() {
    let mut world = World::new(&json!({}), vec![]);
    assert_eq!(writes(&world.sync()), [1, 0, 0]);
    assert_eq!(writes(&world.sync()), [0, 0, 0]);
    world.pods = pods(0..3);
    assert_eq!(writes(&world.sync()), [0, 1, 0]);
    world.pods = vec![];
    assert_eq!(writes(&world.sync()), [0, 1, 0]);
    assert_eq!((world.sizes(), &*name(&world.slices[0])), (vec![0], "web-001"));
    world.service.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    world.slices.clear();
    assert_eq!(writes(&world.sync()), [0, 0, 0], "the garbage collector deletes them");
}

#[test]
fn slices_that_are_written_anyway_are_filled_first() {
    let mut world = World::new(&json!({}), pods(0..250));
    assert_eq!(writes(&world.sync()), [3, 0, 0]);
    assert_eq!(world.sizes(), [100, 100, 50]);
    world.pods = pods(10..260); // ten go from the first slice, ten come
    assert_eq!(writes(&world.sync()), [0, 1, 0]);
    assert_eq!(world.sizes(), [100, 100, 50]);
    world.pods = pods(10..265);
    assert_eq!(writes(&world.sync()), [0, 1, 0], "there is one with room");
    assert_eq!(world.sizes(), [100, 100, 55]);
    world.pods = pods(10..360);
    assert_eq!(writes(&world.sync()), [1, 0, 0], "ninety-five fit into none");
    assert_eq!(world.sizes(), [100, 100, 55, 95]);
    world.pods = pods(260..360);
    assert_eq!(writes(&world.sync()), [0, 1, 2], "what is empty goes");
    assert_eq!(world.sizes(), [5, 95]);
    world.service.metadata.labels = Some(BTreeMap::from([("app".into(), "shop".into())]));
    assert_eq!(writes(&world.sync()), [0, 2, 0], "labels follow");
    assert_eq!(writes(&world.sync()), [0, 0, 0]);
}

#[test]
fn pods_that_have_a_port_elsewhere_have_slices_of_their_own() {
    let with_port = |name: &str, ip: &str, number: Option<i32>| {
        let mut pod = pod(name, ip, true);
        let ports = number.map(|port| json!([{"name": "web", "containerPort": port}]));
        let container = json!({"name": "c", "ports": ports});
        pod.spec.as_mut().unwrap().containers = vec![serde_json::from_value(container).unwrap()];
        Arc::new(pod)
    };
    let ports = json!([{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]);
    let all = vec![
        with_port("a", "10.244.0.1", Some(8080)),
        with_port("b", "10.244.0.2", Some(9090)),
        with_port("c", "10.244.0.3", None),
    ];
    let mut world = World::new(&json!({"ports": ports}), all);
    assert_eq!(writes(&world.sync()), [3, 0, 0]);
    let number =
        |slice: &Arc<EndpointSlice>| slice.ports.as_ref().unwrap().first().map(|it| it.port);
    let mut numbers: Vec<_> = world.slices.iter().map(number).collect();
    numbers.sort();
    assert_eq!(numbers, [None, Some(Some(8080)), Some(Some(9090))]);
}

#[test]
fn each_family_has_its_slices() {
    let mut both = pod("web-1", "10.244.0.1", true);
    both.status.as_mut().unwrap().pod_ips =
        Some(serde_json::from_value(json!([{"ip": "010.244.0.1"}, {"ip": "FD00:0::1"}])).unwrap());
    let mut world = World::new(&json!({"ipFamilies": ["IPv4", "IPv6"]}), vec![Arc::new(both)]);
    assert_eq!(writes(&world.sync()), [2, 0, 0]);
    let found: Vec<_> = world
        .slices
        .iter()
        .map(|it| (&*it.address_type, &*endpoints(it)[0].addresses[0]))
        .collect();
    assert_eq!(found, [("IPv4", "10.244.0.1"), ("IPv6", "fd00::1")]);
    world.service.spec.as_mut().unwrap().ip_families = Some(vec!["IPv6".into()]);
    assert_eq!(writes(&world.sync()), [0, 0, 1]);
}

#[test]
fn pods_of_nodes_that_do_not_exist_are_left_out_and_told_of() {
    let mut world = World::new(&json!({}), pods(0..2));
    world.nodes.clear();
    let why = "skipping Pod web-00000 for Service default/web: Node node-a Not Found";
    assert_eq!(world.sync().skipped[0], why);
    assert_eq!(world.sizes(), [0]);
    world.service.spec.as_mut().unwrap().publish_not_ready_addresses = Some(true);
    assert!(world.sync().skipped.is_empty());
    assert_eq!(world.sizes(), [2]);
}

#[test]
fn slices_of_a_service_that_had_the_name_before_are_deleted() {
    let mut world = World::new(&json!({}), pods(0..2));
    world.sync();
    world.service.metadata.uid = Some("another".into());
    assert_eq!(writes(&world.plan()), [1, 0, 1]);
}

#[test]
fn hints_follow_the_traffic_distribution() {
    let mut world = World::new(&json!({"trafficDistribution": "PreferClose"}), pods(0..2));
    world.sync();
    assert_eq!(world.zones(), ["a", "a"]);
    for (distribution, hints) in
        [(Some("PreferSameNode"), "a+node-a"), (Some("PreferSameZone"), "a"), (None, "")]
    {
        let spec = world.service.spec.as_mut().unwrap();
        spec.traffic_distribution = distribution.map(str::to_owned);
        assert_eq!(writes(&world.sync()), [0, 1, 0], "{distribution:?}");
        assert_eq!(world.zones(), [hints, hints], "{distribution:?}");
        assert_eq!(writes(&world.sync()), [0, 0, 0], "{distribution:?}");
    }
}

#[test]
fn hints_follow_the_processors_of_zones_where_that_can_be() {
    let mut world = World::new(&json!({}), pods(0..4));
    let mode = ("service.kubernetes.io/topology-mode".to_owned(), "Auto".to_owned());
    world.service.metadata.annotations = Some(BTreeMap::from([mode]));
    let told = world.sync().told;
    let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
    assert_eq!(told, [Told::HintsEnabled(enabled.into())]);
    let mut zones = world.zones();
    zones.sort();
    assert_eq!(zones, ["a", "a", "b", "b"], "all run in zone a, and half of them serve zone b");
    assert!(world.sync().told.is_empty());
    world.pods = pods(0..1);
    let too_few = "Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4";
    assert_eq!(world.sync().told, [Told::HintsDisabled(too_few.into())]);
    assert_eq!(world.zones(), [""]);
    world.nodes = vec![node("node-a", "a", 4)];
    let one_zone = "Insufficient Node information: allocatable CPU or zone not specified on one or \
                    more nodes, addressType: IPv4";
    assert_eq!(world.sync().told, [Told::HintsDisabled(one_zone.into())]);
}

/// The fewest writes by which slices can come to tell of these Pods: each that has something to change
/// is written, and what is new and fits into none of them needs others.
fn fewest(world: &World) -> usize {
    let target = |endpoint: &Endpoint| endpoint.target_ref.clone().unwrap().name.unwrap();
    let ready = |pod: &Pod| (crate::pod::is_ready(pod), pod.metadata.deletion_timestamp.is_some());
    let mut wanted: HashMap<String, (bool, bool)> =
        world.pods.iter().map(|pod| (pod.metadata.name.clone().unwrap(), ready(pod))).collect();
    let (mut written, mut room) = (0, 0);
    for slice in &world.slices {
        let (mut stay, mut changed) = (0, false);
        for endpoint in endpoints(slice) {
            let conditions = endpoint.conditions.clone().unwrap();
            let told = (conditions.serving.unwrap(), conditions.terminating.unwrap());
            match wanted.remove(&target(endpoint)) {
                None => changed = true,
                Some(is) => {
                    changed |= is != told;
                    stay += 1;
                }
            }
        }
        if changed {
            written += 1;
            room += MAX - stay;
        }
    }
    written + wanted.len().saturating_sub(room).div_ceil(MAX)
}

#[test]
fn five_thousand_pods_are_replaced_with_nearly_the_fewest_writes_that_can_be() {
    const PODS: usize = 5000;
    const STEP: usize = 1000;
    let mut world = World::new(&json!({}), pods(0..PODS));
    world.sync();
    assert_eq!(world.sizes(), [MAX; PODS / MAX]);
    // The old ones go in no order.
    let mut old: Vec<usize> = (0..PODS).collect();
    old.sort_by_key(|n| n.wrapping_mul(0x9e37_79b9) % 65_537);
    let (mut done, mut least) = (0, 0);
    for step in 0..PODS / STEP {
        let come = PODS + step * STEP..PODS + (step + 1) * STEP;
        let go: HashSet<String> =
            old[step * STEP..(step + 1) * STEP].iter().map(|n| format!("web-{n:05}")).collect();
        let goes = |pod: &Pod| go.contains(pod.metadata.name.as_ref().unwrap());
        let mut sync = |world: &mut World| {
            least += fewest(world);
            done += world.sync().changes.writes();
        };
        // They come, are not ready at first, and then replace others, which take a while to go.
        for number in come.clone() {
            let ip = format!("10.244.{}.{}", number / 200, number % 200);
            world.pods.push(Arc::new(pod(&format!("web-{number:05}"), &ip, false)));
        }
        sync(&mut world);
        let from = world.pods.len() - STEP;
        world.pods.splice(from.., pods(come));
        for pod in world.pods.iter_mut().filter(|pod| goes(pod)) {
            Arc::make_mut(pod).metadata.deletion_timestamp =
                Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        }
        sync(&mut world);
        world.pods.retain(|pod| !goes(pod));
        sync(&mut world);
    }
    assert_eq!(world.endpoints().len(), PODS);
    assert!(done * 10 <= least * 11, "{done} writes where {least} would do");
    assert!(world.slices.len() * 10 <= PODS / MAX * 11 + 20, "{:?}", world.sizes());
}

#[test]
fn whatever_changes_of_an_endpoint_is_written_and_nothing_else_is() {
    type Change = fn(&mut Pod);
    let changes: [(&str, Change); 7] = [
        ("ready", |pod| pod.status.as_mut().unwrap().conditions = None),
        ("address", |pod| {
            let status = pod.status.as_mut().unwrap();
            status.pod_ips.as_mut().unwrap()[0].ip = "10.244.9.9".into();
        }),
        ("uid", |pod| pod.metadata.uid = Some("other".into())),
        ("node", |pod| pod.spec.as_mut().unwrap().node_name = Some("node-b".into())),
        ("zone", |pod| pod.spec.as_mut().unwrap().node_name = Some("node-c".into())),
        ("leaves", |pod| {
            let time = serde_json::from_value(json!("2026-01-01T00:00:00Z"));
            pod.metadata.deletion_timestamp = time.unwrap();
        }),
        ("hostname", |pod| {
            let spec = pod.spec.as_mut().unwrap();
            (spec.hostname, spec.subdomain) = (Some("one".into()), Some("web".into()));
        }),
    ];
    for (what, change) in changes {
        let mut world = World::new(&json!({}), pods(0..150));
        world.nodes = ["node-a", "node-b", "node-c"]
            .map(|name| node(name, if name == "node-c" { "z2" } else { "z1" }, 1))
            .to_vec();
        world.sync();
        let before: Vec<Endpoint> = world.endpoints().into_iter().cloned().collect();
        assert_eq!(writes(&world.sync()), [0, 0, 0], "{what}: nothing has changed");
        change(Arc::make_mut(&mut world.pods[120]));
        assert_eq!(writes(&world.sync()), [0, 1, 0], "{what}");
        let after = world.endpoints();
        let same = before.iter().filter(|endpoint| after.contains(endpoint)).count();
        assert_eq!((after.len(), same), (150, 149), "{what}");
    }
}

/// Numbers that are the same for a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Changes some Pods, and gives their names.
fn disturb(pods: &mut Vec<Arc<Pod>>, dice: &mut Dice, next: &mut usize) -> Names {
    let mut changed = Names::new();
    for _ in 0..dice.roll(12) {
        let what = dice.roll(5);
        if what == 0 || pods.is_empty() {
            *next += 1;
            let ip = format!("10.244.{}.{}", *next / 200, *next % 200);
            let mut new = pod(&format!("web-{next:05}"), &ip, dice.roll(2) == 0);
            let port = json!([{"name": "web", "containerPort": 8000 + dice.roll(2)}]);
            let container = serde_json::from_value(json!({"name": "c", "ports": port})).unwrap();
            new.spec.as_mut().unwrap().containers = vec![container];
            changed.insert(new.metadata.name.as_deref().unwrap().into());
            pods.push(Arc::new(new));
            continue;
        }
        let index = dice.roll(pods.len());
        let pod = Arc::make_mut(&mut pods[index]);
        changed.insert(pod.metadata.name.as_deref().unwrap().into());
        match what {
            1 => pod.status.as_mut().unwrap().conditions = None,
            2 => {
                pod.metadata.deletion_timestamp =
                    Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
            }
            3 => pod.spec.as_mut().unwrap().node_name = Some("node-b".into()),
            _ => drop(pods.remove(index)),
        }
    }
    changed
}

#[test]
fn a_look_at_the_pods_that_have_changed_leads_to_what_a_look_at_all_does() {
    let named = json!([{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]);
    let specs = [
        json!({}),
        json!({"ports": named}),
        json!({"ipFamilies": ["IPv4", "IPv6"], "trafficDistribution": "PreferClose"}),
    ];
    for (seed, spec) in (1..).zip(specs.iter().cycle().take(30)) {
        let mut dice = Dice(seed);
        let mut next = 1000;
        let mut whole = World::new(spec, pods(0..dice.roll(350)));
        let mut part = World::new(spec, whole.pods.clone());
        let mut settled = Settled::default();
        for round in 0..25 {
            let changed = disturb(&mut whole.pods, &mut dice, &mut next);
            part.pods.clone_from(&whole.pods);
            whole.sync();
            let now = Circumstances::of(&part.service, 0);
            let look = settled.look(&part.service, &now, &part.slices, changed.clone());
            let looked_at = look.as_ref().map(|look| look.pods.len());
            assert_eq!(
                looked_at,
                (round > 0).then_some(changed.len()),
                "no more than have changed"
            );
            let plan = part.plan_with(look.as_ref());
            let written = part.apply(&plan);
            let written = written.iter().map(|slice| &**slice);
            settled = match look {
                Some(look) => {
                    settled.after(&look, written, &plan.changes.delete, &plan.changes.keep)
                }
                None => Settled::of_all(now, part.slices.iter().map(|slice| &**slice)),
            };
            assert_eq!(part.slices, whole.slices, "seed {seed}, round {round}");
        }
    }
}

#[test]
fn all_pods_are_looked_at_when_more_than_pods_has_changed() {
    let mut world = World::new(&json!({}), pods(0..150));
    world.sync();
    let now = Circumstances::of(&world.service, 3);
    let settled = Settled::of_all(now.clone(), world.slices.iter().map(|slice| &**slice));
    let looks = |world: &World, now: &Circumstances| {
        settled.look(&world.service, now, &world.slices, Names::new()).is_some()
    };
    assert!(looks(&world, &now));
    assert!(!looks(&world, &Circumstances::of(&world.service, 4)), "a node came");
    let mode = ("service.kubernetes.io/topology-mode".to_owned(), "Auto".to_owned());
    world.service.metadata.annotations = Some(BTreeMap::from([mode]));
    assert!(!looks(&world, &now), "hints depend on all");
    world.service.metadata.annotations = None;
    world.service.metadata.resource_version = Some("8".into());
    assert!(!looks(&world, &Circumstances::of(&world.service, 3)), "the Service has changed");
    let gone = world.slices.pop().unwrap();
    assert!(!looks(&world, &now), "somebody has deleted a slice");
    let mut other = EndpointSlice::clone(&gone);
    other.metadata.resource_version = Some("99".into());
    world.slices.push(Arc::new(other));
    assert!(!looks(&world, &now), "somebody has written one");
}

#[test]
fn all_pods_are_looked_at_once_it_is_heard_that_the_service_has_changed() {
    let changed = Changed::default();
    let service = ObjectKey::namespaced("default", "web");
    let pod = ObjectKey::namespaced("default", "web-1");
    changed.note(&service, &pod);
    assert_eq!(changed.take(&service), Some(Names::from(["web-1".into()])));
    changed.note_service(&service);
    changed.note(&service, &pod);
    assert_eq!(changed.take(&service), None);
    assert_eq!(changed.take(&service), Some(Names::new()), "nothing since");
}
