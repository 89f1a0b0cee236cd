use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, from_value, json};

use super::{
    Amount, Choice, Condition, ContainerUsage, Disks, FsUsage, Observation, Observations, PodUsage,
    Pressure, Reclaim, Settings, Signal, Threshold, Usages, admits, choose, is_critical,
    over_their_limits, parse, rank, satisfied,
};

const MIB: i64 = 1 << 20;

fn at(second: i64) -> Timestamp {
    "2026-11-17T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

fn settings(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn hard(signal: Signal, value: Amount) -> Threshold {
    Threshold { signal, value, grace: SignedDuration::ZERO, min_reclaim: None }
}

#[test]
fn thresholds_are_as_usual_unless_somebody_says_otherwise() {
    let memory = Amount::Units(100 * MIB);
    assert_eq!(
        parse(&Settings::usual()).unwrap(),
        [
            hard(Signal::ImageFsAvailable, Amount::Part(0.15)),
            hard(Signal::ImageFsInodesFree, Amount::Part(0.05)),
            hard(Signal::MemoryAvailable, memory),
            hard(Signal::NodeFsAvailable, Amount::Part(0.1)),
            hard(Signal::NodeFsInodesFree, Amount::Part(0.05)),
            hard(Signal::AllocatableMemoryAvailable, memory),
        ]
    );
    let own = Settings {
        hard: settings(&[("pid.available", "0%"), ("nodefs.available", "1Gi")]),
        soft: settings(&[("nodefs.available", "20%")]),
        soft_grace: settings(&[("nodefs.available", "1m30s")]),
        minimum_reclaim: settings(&[("nodefs.available", "500Mi")]),
    };
    let nodefs = hard(Signal::NodeFsAvailable, Amount::Units(1024 * MIB));
    let nodefs = Threshold { min_reclaim: Some(Amount::Units(500 * MIB)), ..nodefs };
    let grace = SignedDuration::from_secs(90);
    let soft = Threshold { value: Amount::Part(0.2), grace, ..nodefs };
    assert_eq!(parse(&own).unwrap(), [nodefs, soft]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let with_hard =
        |signal, value| Settings { hard: settings(&[(signal, value)]), ..Settings::default() };
    let with_soft = |grace: &[(&str, &str)]| Settings {
        soft: settings(&[("memory.available", "1Gi")]),
        soft_grace: settings(grace),
        ..Settings::default()
    };
    let with_reclaim = |value| Settings {
        minimum_reclaim: settings(&[("memory.available", value)]),
        ..Settings::default()
    };
    for (settings, expected) in [
        (with_hard("tea.available", "1"), "unsupported eviction signal tea.available"),
        (
            with_hard("memory.available", "-1"),
            "eviction threshold memory.available must be positive: -1",
        ),
        (
            with_hard("memory.available", "-1%"),
            "eviction percentage threshold memory.available must be >= 0%: -1%",
        ),
        (
            with_hard("memory.available", "101%"),
            "eviction percentage threshold memory.available must be <= 100%: 101%",
        ),
        (with_hard("memory.available", "x%"), "strconv.ParseFloat: parsing \"x\": invalid syntax"),
        (
            with_soft(&[]),
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (with_soft(&[("memory.available", "1x")]), "time: invalid duration \"1x\""),
        (with_soft(&[("memory.available", "")]), "time: invalid duration \"\""),
        (
            with_soft(&[("memory.available", "-1s")]),
            "invalid eviction grace period specified: -1s, must be a positive value",
        ),
        (
            with_reclaim("0%"),
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
        ),
        (with_reclaim("-1Mi"), "negative eviction minimum reclaim specified for memory.available"),
    ] {
        assert_eq!(parse(&settings).unwrap_err().to_string(), expected);
    }
}

#[test]
fn every_signal_has_a_condition_and_a_resource_and_disks_are_cleaned_before_pods_go() {
    let both = [Reclaim::Containers, Reclaim::Images].as_slice();
    for (signal, condition, resource, one_disk, images_apart) in [
        (Signal::MemoryAvailable, "MemoryPressure", "memory", [].as_slice(), [].as_slice()),
        (Signal::AllocatableMemoryAvailable, "MemoryPressure", "memory", &[], &[]),
        (Signal::NodeFsAvailable, "DiskPressure", "ephemeral-storage", both, &[]),
        (Signal::NodeFsInodesFree, "DiskPressure", "inodes", both, &[]),
        (Signal::ImageFsAvailable, "DiskPressure", "ephemeral-storage", both, both),
        (Signal::ImageFsInodesFree, "DiskPressure", "inodes", both, both),
        (Signal::PidAvailable, "PIDPressure", "pids", &[], &[]),
    ] {
        assert_eq!(signal.condition().to_string(), condition);
        assert_eq!(signal.resource(), resource);
        assert_eq!(signal.reclaim(Disks::One), one_disk, "{signal}");
        assert_eq!(signal.reclaim(Disks::ImagesApart), images_apart, "{signal}");
    }
    let (reason, message) = Signal::MemoryAvailable.attempt();
    assert_eq!(
        (reason, message.as_str()),
        ("EvictionThresholdMet", "Attempting to reclaim memory")
    );
}

/// So much memory of 1000, at a second.
fn memory(available: i64, second: i64) -> Observations {
    let observation = Observation { available, capacity: 1000, time: at(second) };
    Observations::from([(Signal::MemoryAvailable, observation)])
}

/// What a node with these thresholds has and is starved of, as time goes by.
fn story(threshold: Threshold, steps: &[(i64, i64, &str)]) {
    let mut pressure = Pressure::new(vec![threshold], Pressure::TRANSITION);
    for (second, available, expected) in steps {
        let found = pressure.observe(&memory(*available, *second), at(*second));
        let told = match (&found.conditions[..], found.starved.is_empty()) {
            ([], true) => "fine",
            ([Condition::Memory], true) => "pressed",
            ([Condition::Memory], false) => "starved",
            other => panic!("{other:?}"),
        };
        assert_eq!(told, *expected, "after {second} seconds");
    }
}

#[test]
fn a_condition_stays_for_five_minutes() {
    story(
        hard(Signal::MemoryAvailable, Amount::Units(100)),
        &[
            (0, 100, "fine"),
            (10, 99, "starved"),
            (20, 50, "starved"),
            (30, 100, "pressed"),
            (319, 100, "pressed"),
            (320, 100, "fine"),
            (330, 99, "starved"),
        ],
    );
}

#[test]
fn a_soft_threshold_gives_time() {
    let grace = SignedDuration::from_secs(60);
    let soft = Threshold { grace, ..hard(Signal::MemoryAvailable, Amount::Part(0.1)) };
    story(
        soft,
        &[
            (0, 99, "pressed"),
            (30, 99, "pressed"),
            (40, 100, "pressed"),
            (50, 99, "pressed"),
            (100, 99, "pressed"),
            (110, 99, "starved"),
        ],
    );
}

#[test]
fn all_is_well_only_when_enough_was_reclaimed() {
    let memory_low = hard(Signal::MemoryAvailable, Amount::Units(100));
    let threshold = Threshold { min_reclaim: Some(Amount::Part(0.05)), ..memory_low };
    story(
        threshold,
        &[
            (0, 120, "fine"),
            (10, 99, "starved"),
            (20, 120, "starved"),
            (30, 149, "starved"),
            (40, 150, "pressed"),
            (50, 120, "pressed"),
        ],
    );
    assert!(!satisfied(&[threshold], &memory(149, 0)));
    assert!(satisfied(&[threshold], &memory(150, 0)));
}

#[test]
fn nothing_is_done_twice_because_of_one_look() {
    let mut pressure = Pressure::new(
        vec![hard(Signal::MemoryAvailable, Amount::Units(100))],
        Pressure::TRANSITION,
    );
    assert_eq!(pressure.observe(&memory(50, 0), at(0)).starved.len(), 1);
    assert_eq!(pressure.observe(&memory(50, 0), at(10)).starved, []);
    assert_eq!(pressure.observe(&memory(50, 15), at(20)).starved.len(), 1);
    assert_eq!(pressure.observe(&Observations::new(), at(30)).starved, []);
}

#[test]
fn memory_is_the_most_urgent() {
    let thresholds = vec![
        hard(Signal::PidAvailable, Amount::Units(100)),
        hard(Signal::NodeFsAvailable, Amount::Units(100)),
        hard(Signal::MemoryAvailable, Amount::Units(100)),
    ];
    let mut pressure = Pressure::new(thresholds, Pressure::TRANSITION);
    let low = Observation { available: 1, capacity: 1000, time: at(0) };
    let signals = [Signal::PidAvailable, Signal::NodeFsAvailable, Signal::MemoryAvailable];
    let found = pressure.observe(&signals.map(|signal| (signal, low)).into(), at(0));
    let order: Vec<Signal> = found.starved.iter().map(|threshold| threshold.signal).collect();
    assert_eq!(order, [Signal::MemoryAvailable, Signal::PidAvailable, Signal::NodeFsAvailable]);
    assert_eq!(found.conditions, [Condition::Memory, Condition::Disk, Condition::Pid]);
}

fn pod(name: &str, spec: Value) -> Pod {
    let mut whole = json!({ "containers": [] });
    let Value::Object(spec) = spec else { panic!("a spec is an object") };
    whole.as_object_mut().unwrap().extend(spec);
    from_value(json!({ "metadata": { "name": name, "uid": name }, "spec": whole })).unwrap()
}

/// A Pod with a priority, of which the only container asks for so much.
fn asking(name: &str, priority: i32, resource: &str, amount: &str) -> Pod {
    let resources = json!({ "requests": { resource: amount } });
    pod(
        name,
        json!({
            "priority": priority,
            "containers": [{ "name": "main", "resources": resources }],
        }),
    )
}

fn order(pods: &[Pod], usages: &Usages, signal: Signal, disks: Disks) -> String {
    let mut pods: Vec<&Pod> = pods.iter().collect();
    rank(&mut pods, usages, signal, disks);
    let names: Vec<&str> = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    names.join(" ")
}

#[test]
fn those_go_first_that_use_more_than_they_asked_for_then_the_least_important_then_the_largest() {
    let pods = [
        asking("modest-low", 0, "memory", "100Mi"),
        asking("modest-high", 9, "memory", "500Mi"),
        asking("greedy-high", 9, "memory", "100Mi"),
        asking("greedy-low", 0, "memory", "100Mi"),
        asking("greedier-low", 0, "memory", "50Mi"),
        asking("unknown", 9, "memory", "100Mi"),
    ];
    let used = |mib: i64| PodUsage { memory: mib * MIB, ..PodUsage::default() };
    let usages: Usages = [
        ("modest-low", used(100)),
        ("modest-high", used(400)),
        ("greedy-high", used(900)),
        ("greedy-low", used(101)),
        ("greedier-low", used(101)),
    ]
    .map(|(name, usage)| (name.to_owned(), usage))
    .into();
    let expected = "unknown greedier-low greedy-low greedy-high modest-low modest-high";
    assert_eq!(order(&pods, &usages, Signal::MemoryAvailable, Disks::One), expected);
}

#[test]
fn what_was_asked_for_counts_with_companions_and_overhead() {
    let spec = json!({
        "overhead": { "memory": "10Mi" },
        "initContainers": [
            { "name": "sidecar", "restartPolicy": "Always",
              "resources": { "requests": { "memory": "20Mi" } } },
            { "name": "init", "resources": { "requests": { "memory": "60Mi" } } },
        ],
        "containers": [{ "name": "main", "resources": { "requests": { "memory": "30Mi" } } }],
    });
    let usages = |mib: i64| {
        let usage = PodUsage { memory: mib * MIB, ..PodUsage::default() };
        Usages::from([("a".to_owned(), usage), ("b".to_owned(), PodUsage::default())])
    };
    // The init container and the sidecar before it: 80, and the overhead: 90.
    let pods = [pod("b", json!({ "priority": -1 })), pod("a", spec)];
    let ranked = |mib| order(&pods, &usages(mib), Signal::MemoryAvailable, Disks::One);
    assert_eq!(ranked(90), "b a");
    assert_eq!(ranked(91), "a b");
}

#[test]
fn disks_count_what_is_on_them_and_processes_only_priorities() {
    let volumes = json!([
        { "name": "scratch", "emptyDir": {} },
        { "name": "memory", "emptyDir": { "medium": "Memory" } },
    ]);
    let pods =
        ["logs", "root", "volume", "ram"].map(|name| pod(name, json!({ "volumes": volumes })));
    let fs = |bytes| FsUsage { bytes, inodes: 100 - bytes };
    let container = |root, logs| ContainerUsage {
        name: "main".into(),
        memory: None,
        root: Some(fs(root)),
        logs: Some(fs(logs)),
    };
    let volume = |name: &str, bytes| HashMap::from([(name.to_owned(), fs(bytes))]);
    let usages: Usages = [
        (
            "logs",
            PodUsage { containers: vec![container(1, 30)], processes: 1, ..Default::default() },
        ),
        (
            "root",
            PodUsage { containers: vec![container(40, 2)], processes: 2, ..Default::default() },
        ),
        ("volume", PodUsage { volumes: volume("scratch", 20), processes: 3, ..Default::default() }),
        ("ram", PodUsage { volumes: volume("memory", 90), processes: 4, ..Default::default() }),
    ]
    .map(|(name, usage)| (name.to_owned(), usage))
    .into();
    for (signal, disks, expected) in [
        (Signal::NodeFsAvailable, Disks::One, "root logs volume ram"),
        (Signal::NodeFsAvailable, Disks::ImagesApart, "logs volume root ram"),
        (Signal::ImageFsAvailable, Disks::ImagesApart, "root logs volume ram"),
        (Signal::NodeFsInodesFree, Disks::ImagesApart, "root volume logs ram"),
        (Signal::PidAvailable, Disks::One, "ram volume root logs"),
    ] {
        assert_eq!(order(&pods, &usages, signal, disks), expected, "{signal} {disks:?}");
    }
}

#[test]
fn the_first_that_is_not_critical_goes_and_hears_why() {
    let critical = asking("critical", 2_000_000_000, "memory", "1Mi");
    let mut web = asking("web", 0, "memory", "50Mi");
    web.spec.as_mut().unwrap().termination_grace_period_seconds = Some(30);
    let container = |name: &str, memory| ContainerUsage {
        name: name.into(),
        memory: Some(memory),
        ..ContainerUsage::default()
    };
    let containers = vec![container("main", 98_304 << 10), container("other", 1)];
    let usage = PodUsage { memory: 96 * MIB, containers, ..PodUsage::default() };
    let usages = Usages::from([("web".to_owned(), usage)]);
    let observation = Observation { available: 90 * MIB + 1024, capacity: 1024 * MIB, time: at(0) };
    let observations = Observations::from([(Signal::MemoryAvailable, observation)]);
    let threshold = hard(Signal::MemoryAvailable, Amount::Units(100 * MIB));
    let chosen = |threshold: Threshold| {
        let choice = Choice {
            starved: &[threshold],
            observations: &observations,
            usages: &usages,
            grace_max_seconds: 10,
        };
        choose(&[&critical, &web], &choice).unwrap()
    };
    let evicted = chosen(threshold);
    assert_eq!(evicted.pod.metadata.name.as_deref(), Some("web"));
    assert_eq!(
        evicted.message,
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 92161Ki. \
         Container main was using 96Mi, request is 50Mi, has larger consumption of memory. "
    );
    let annotations: Vec<String> =
        evicted.annotations.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        annotations,
        ["offending_containers=main", "offending_containers_usage=96Mi", "starved_resource=memory"]
    );
    assert!(evicted.disrupted);
    assert_eq!(evicted.grace_seconds, 1, "a hard threshold leaves no time");
    let grace = SignedDuration::from_secs(60);
    assert_eq!(chosen(Threshold { grace, ..threshold }).grace_seconds, 10);

    let choice = Choice {
        starved: &[threshold],
        observations: &observations,
        usages: &usages,
        grace_max_seconds: 0,
    };
    assert_eq!(choose(&[&critical], &choice), None);
}

#[test]
fn other_resources_are_told_without_containers() {
    let web = pod("web", json!({}));
    let observation = Observation { available: 12_000, capacity: 1_000_000, time: at(0) };
    let observations = Observations::from([(Signal::PidAvailable, observation)]);
    let choice = Choice {
        starved: &[hard(Signal::PidAvailable, Amount::Part(0.5))],
        observations: &observations,
        usages: &Usages::new(),
        grace_max_seconds: 0,
    };
    let message = choose(&[&web], &choice).unwrap().message;
    let expected =
        "The node was low on resource: pids. Threshold quantity: 500000, available: 12k. ";
    assert_eq!(message, expected);
}

#[test]
fn pods_that_fill_disks_beyond_their_limits_go_at_once() {
    let limited = |storage: &str| {
        let limits = json!({ "limits": { "ephemeral-storage": storage } });
        json!({ "containers": [{ "name": "main", "resources": limits }] })
    };
    let scratch = |limit: Value| json!({ "volumes": [{ "name": "scratch", "emptyDir": limit }] });
    let volume = |mib: i64| PodUsage {
        volumes: HashMap::from([("scratch".to_owned(), FsUsage { bytes: mib * MIB, inodes: 1 })]),
        ..PodUsage::default()
    };
    let container = |root: i64, logs: i64| PodUsage {
        containers: vec![ContainerUsage {
            name: "main".into(),
            root: Some(FsUsage { bytes: root * MIB, inodes: 1 }),
            logs: Some(FsUsage { bytes: logs * MIB, inodes: 1 }),
            memory: None,
        }],
        ..PodUsage::default()
    };
    let whole = |mib: i64| PodUsage { ephemeral_storage: mib * MIB, ..PodUsage::default() };
    let volume_full = "Usage of EmptyDir volume \"scratch\" exceeds the limit \"10Mi\". ";
    let container_full = "Container main exceeded its local ephemeral storage limit \"10Mi\". ";
    let pod_full = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ";
    for (spec, usage, disks, expected) in [
        (scratch(json!({ "sizeLimit": "10Mi" })), volume(10), Disks::One, ""),
        (scratch(json!({ "sizeLimit": "10Mi" })), volume(11), Disks::One, volume_full),
        (scratch(json!({ "sizeLimit": "0" })), volume(11), Disks::One, ""),
        (scratch(json!({})), volume(11), Disks::One, ""),
        (limited("10Mi"), whole(11), Disks::One, pod_full),
        (limited("10Mi"), whole(10), Disks::One, ""),
        (limited("10Mi"), container(6, 5), Disks::One, container_full),
        // What it writes itself is on the other disk.
        (limited("10Mi"), container(6, 5), Disks::ImagesApart, ""),
        (limited("10Mi"), container(0, 11), Disks::ImagesApart, container_full),
    ] {
        let full = pod("a", spec);
        let usages = Usages::from([("a".to_owned(), usage)]);
        let found = over_their_limits(&[&full], &usages, disks);
        let told = found.first().map_or("", |evicted| evicted.message.as_str());
        assert_eq!(told, expected);
        assert!(found.iter().all(|evicted| evicted.grace_seconds == 1 && !evicted.disrupted));
        assert!(over_their_limits(&[&full], &Usages::new(), disks).is_empty());
    }
}

#[test]
fn a_node_under_pressure_takes_only_some_pods() {
    let of_class = |class: &str, rest: Value| {
        let mut pod = pod("a", rest);
        pod.status = Some(from_value(json!({ "qosClass": class })).unwrap());
        pod
    };
    let tolerating = json!({ "tolerations": [
        { "key": "node.kubernetes.io/memory-pressure", "operator": "Exists" },
    ] });
    let (memory, disk) = (Condition::Memory, Condition::Disk);
    let best = of_class("BestEffort", json!({}));
    let burstable = of_class("Burstable", json!({}));
    let tolerant = of_class("BestEffort", tolerating);
    let critical = of_class("BestEffort", json!({ "priority": 2_000_000_000 }));
    let one = Err("The node had condition: [MemoryPressure]. ".to_owned());
    let two = Err("The node had condition: [MemoryPressure DiskPressure]. ".to_owned());
    for (pod, conditions, expected) in [
        (&best, [].as_slice(), Ok(())),
        (&best, &[memory], one),
        (&burstable, &[memory], Ok(())),
        (&tolerant, &[memory], Ok(())),
        (&burstable, &[memory, disk], two.clone()),
        (&tolerant, &[memory, disk], two),
        (&critical, &[memory, disk], Ok(())),
    ] {
        assert_eq!(admits(pod, conditions), expected, "{conditions:?}");
    }
}

#[test]
fn the_system_needs_static_pods_and_those_of_the_highest_priorities() {
    let annotated = |name: &str, value: &str| {
        let mut pod = pod("a", json!({}));
        pod.metadata.annotations = Some([(name.to_owned(), value.to_owned())].into());
        pod
    };
    for (pod, expected) in [
        (pod("a", json!({ "priority": 1_999_999_999 })), false),
        (pod("a", json!({ "priority": 2_000_000_000 })), true),
        (annotated("kubernetes.io/config.source", "api"), false),
        (annotated("kubernetes.io/config.source", "file"), true),
        (annotated("kubernetes.io/config.mirror", "x"), true),
    ] {
        assert_eq!(is_critical(&pod), expected);
    }
}
