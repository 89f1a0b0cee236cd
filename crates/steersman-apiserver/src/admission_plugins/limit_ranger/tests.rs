//! Tables of limit ranges and objects: what is given, what is refused.

use serde_json::{Value, json};

use super::{defaults, limits};

fn limit_range(limits: Value) -> Value {
    let mut range = json!({"metadata": {"name": "l"}});
    range["spec"]["limits"] = limits;
    range
}

/// A container from its requests and limits, each as `cpu=1,memory=1Gi`.
fn container(name: &str, requests: &str, limits: &str) -> Value {
    json!({"name": name, "resources": resources(requests, limits)})
}

fn resources(requests: &str, limits: &str) -> Value {
    let mut resources = json!({});
    for (list, amounts) in [("requests", requests), ("limits", limits)] {
        if !amounts.is_empty() {
            resources[list] = self::amounts(amounts);
        }
    }
    resources
}

fn amounts(text: &str) -> Value {
    let amounts = text.split(',').map(|amount| amount.split_once('=').unwrap());
    Value::Object(amounts.map(|(name, amount)| (name.to_owned(), amount.into())).collect())
}

fn pod(containers: &[Value]) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": containers}})
}

/// A Pod of so many containers alike.
fn alike(count: usize, requests: &str, limits: &str) -> Value {
    pod(&vec![container("c", requests, limits); count])
}

fn with_init(mut pod: Value, init: &[Value]) -> Value {
    pod["spec"]["initContainers"] = init.into();
    pod
}

fn sidecar(requests: &str, limits: &str) -> Value {
    let mut sidecar = container("s", requests, limits);
    sidecar["restartPolicy"] = "Always".into();
    sidecar
}

fn with_resources(mut pod: Value, requests: &str, limits: &str) -> Value {
    pod["spec"]["resources"] = resources(requests, limits);
    pod
}

/// A limit range with one bound of one kind, such as `Pod max cpu=2`.
fn bound(text: &str) -> Value {
    let [subject, bound, list] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    limit_range(json!([{"type": subject, bound: amounts(list)}]))
}

#[track_caller]
fn judged(rows: &[(&str, Value, &str)]) {
    for (text, pod, expected) in rows {
        let found = limits::refusal_of_pod(&bound(text), pod).unwrap_or_default();
        assert_eq!(found, *expected, "{text} {pod}");
    }
}

#[test]
fn containers_get_what_they_do_not_say() {
    let range = limit_range(json!([
        {"type": "Pod", "max": {"cpu": "2"}},
        {
            "type": "Container", "default": {"cpu": "75m", "memory": "10Mi"},
            "defaultRequest": {"cpu": "50m", "memory": "5Mi"},
        },
    ]));
    let mut object = with_init(
        pod(&[
            container("empty", "", ""),
            container("some", "memory=512Mi", ""),
            container("all", "cpu=1,memory=1Gi", "cpu=1,memory=1Gi"),
        ]),
        &[container("before", "cpu=1", "memory=1Gi")],
    );
    defaults::apply(&range, &mut object);
    let spec = &object["spec"];
    let of = |place: &str| spec.pointer(place).unwrap()["resources"].clone();
    assert_eq!(of("/containers/0"), resources("cpu=50m,memory=5Mi", "cpu=75m,memory=10Mi"));
    assert_eq!(of("/containers/1"), resources("cpu=50m,memory=512Mi", "cpu=75m,memory=10Mi"));
    assert_eq!(of("/containers/2"), resources("cpu=1,memory=1Gi", "cpu=1,memory=1Gi"));
    assert_eq!(of("/initContainers/0"), resources("cpu=1,memory=5Mi", "cpu=75m,memory=1Gi"));
    assert_eq!(
        object["metadata"]["annotations"],
        json!({"kubernetes.io/limit-ranger":
            "LimitRanger plugin set: cpu, memory request for container empty; cpu, memory limit \
             for container empty; cpu request for container some; cpu, memory limit for container \
             some; memory request for init container before; cpu limit for init container before"})
    );
}

#[test]
fn who_gets_nothing_is_not_annotated() {
    let range = limit_range(json!([{"type": "Container", "default": {"cpu": "1"}}]));
    let whole = alike(1, "", "cpu=2");
    let mut same = whole.clone();
    defaults::apply(&range, &mut same);
    assert_eq!(same, whole);
    defaults::apply(&limit_range(json!([{"type": "Pod", "max": {"cpu": "1"}}])), &mut same);
    assert_eq!(same, whole);
}

#[test]
fn of_several_limit_ranges_the_last_that_gives_is_told() {
    let gives = |name: &str| limit_range(json!([{"type": "Container", "default": {name: "1"}}]));
    let mut object = alike(1, "", "");
    object["metadata"]["annotations"] = json!({"mine": "stays"});
    for name in ["cpu", "memory", "cpu"] {
        defaults::apply(&gives(name), &mut object);
    }
    assert_eq!(object["spec"]["containers"][0]["resources"], resources("", "cpu=1,memory=1"));
    assert_eq!(
        object["metadata"]["annotations"],
        json!({
            "mine": "stays",
            "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory limit for container c",
        })
    );
}

#[test]
fn containers_need_at_least_the_minimum() {
    judged(&[
        ("Container min cpu=50m", alike(1, "cpu=50m", ""), ""),
        ("Container min cpu=50m", alike(1, "cpu=100m", "cpu=200m"), ""),
        ("Container min memory=50Mi", alike(1, "memory=60Mi", "memory=100Mi"), ""),
        (
            "Container min cpu=50m",
            alike(1, "", "cpu=200m"),
            "minimum cpu usage per Container is 50m.  No request is specified",
        ),
        (
            "Container min cpu=50m",
            alike(1, "cpu=40m", "cpu=200m"),
            "minimum cpu usage per Container is 50m, but request is 40m",
        ),
        (
            "Container min cpu=1",
            alike(1, "cpu=1", "cpu=0.5"),
            "minimum cpu usage per Container is 1, but limit is 500m",
        ),
        (
            "Container min ephemeral-storage=50Mi,memory=1Gi",
            pod(&[container("a", "memory=1Gi", ""), container("b", "memory=1023Mi", "")]),
            "[minimum ephemeral-storage usage per Container is 50Mi.  No request is specified, \
             minimum memory usage per Container is 1Gi, but request is 1023Mi]",
        ),
    ]);
}

#[test]
fn containers_need_at_most_the_maximum() {
    judged(&[
        ("Container max cpu=2", alike(1, "", "cpu=2"), ""),
        ("Container max memory=1Gi", alike(1, "memory=250Mi", "memory=500Mi"), ""),
        (
            "Container max cpu=2",
            alike(2, "cpu=1", ""),
            "maximum cpu usage per Container is 2.  No limit is specified",
        ),
        (
            "Container max cpu=2",
            alike(1, "", "cpu=2500m"),
            "maximum cpu usage per Container is 2, but limit is 2500m",
        ),
        (
            "Container max cpu=2",
            alike(1, "cpu=3", "cpu=1"),
            "maximum cpu usage per Container is 2, but request is 3",
        ),
        (
            "Container max memory=1Gi",
            with_init(alike(1, "", "memory=1Gi"), &[container("i", "", "memory=2048Mi")]),
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
    ]);
}

#[test]
fn limits_are_at_most_so_many_times_the_requests() {
    let ratio = "Container maxLimitRequestRatio cpu=1.5";
    judged(&[
        (ratio, alike(1, "cpu=500m", "cpu=750m"), ""),
        (
            ratio,
            alike(1, "cpu=500m", "cpu=1"),
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
        ),
        (
            ratio,
            alike(1, "cpu=3", "cpu=5"),
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.666667",
        ),
        (
            ratio,
            alike(1, "cpu=0", "cpu=1"),
            "cpu max limit to request ratio per Container is 1500m, but no request is specified or \
             request is 0",
        ),
        (
            ratio,
            alike(1, "cpu=1", ""),
            "cpu max limit to request ratio per Container is 1500m, but no limit is specified or \
             limit is 0",
        ),
        ("Pod maxLimitRequestRatio memory=2", alike(3, "memory=250Mi", "memory=500Mi"), ""),
    ]);
}

#[test]
fn amounts_beyond_thousandths_are_compared_in_whole_units() {
    judged(&[
        ("Container max memory=9E", alike(1, "", "memory=9000000000000000000"), ""),
        (
            "Container max memory=8E",
            alike(1, "", "memory=8000000000000000001"),
            "maximum memory usage per Container is 8E, but limit is 8000000000000000001",
        ),
        (
            "Container max cpu=1m",
            alike(1, "", "cpu=1100u"),
            "maximum cpu usage per Container is 1m, but limit is 1100u",
        ),
    ]);
}

#[test]
fn a_pod_is_limited_by_the_sum_of_its_containers() {
    judged(&[
        ("Pod min cpu=100m", alike(2, "cpu=75m", ""), ""),
        (
            "Pod min cpu=100m",
            alike(1, "cpu=75m", "cpu=200m"),
            "minimum cpu usage per Pod is 100m, but request is 75m",
        ),
        ("Pod max cpu=2", alike(2, "cpu=500m", "cpu=1"), ""),
        (
            "Pod max cpu=2",
            alike(3, "cpu=500m", "cpu=1"),
            "maximum cpu usage per Pod is 2, but limit is 3",
        ),
        (
            "Pod max memory=1Gi",
            alike(3, "memory=250Mi", "memory=500Mi"),
            "maximum memory usage per Pod is 1Gi, but limit is 1500Mi",
        ),
        (
            "Pod min ephemeral-storage=1",
            alike(1, "", ""),
            "minimum ephemeral-storage usage per Pod is 1.  No request is specified",
        ),
    ]);
}

#[test]
fn init_containers_count_when_one_needs_more_than_all_containers() {
    let init = |limits: &[&str]| {
        let init: Vec<Value> = limits.iter().map(|limits| container("i", "", limits)).collect();
        with_init(alike(2, "", "cpu=1"), &init)
    };
    let beside = |own: &str, init: &[Value]| with_init(alike(1, "", own), init);
    judged(&[
        ("Pod max cpu=2", init(&["cpu=2", "cpu=2"]), ""),
        (
            "Pod max cpu=2",
            init(&["cpu=1", "cpu=2500m"]),
            "maximum cpu usage per Pod is 2, but limit is 2500m",
        ),
        (
            "Pod max cpu=2",
            beside("cpu=1500m", &[sidecar("", "cpu=1500m")]),
            "maximum cpu usage per Pod is 2, but limit is 3",
        ),
        (
            "Pod max cpu=2",
            beside("cpu=100m", &[sidecar("", "cpu=1"), container("i", "", "cpu=1100m")]),
            "maximum cpu usage per Pod is 2, but limit is 2100m",
        ),
        (
            "Pod max cpu=2",
            beside("cpu=100m", &[container("i", "", "cpu=1100m"), sidecar("", "cpu=1")]),
            "",
        ),
    ]);
}

#[test]
fn what_the_pod_itself_says_comes_first() {
    judged(&[
        ("Pod max cpu=400m", with_resources(alike(3, "", "cpu=200m"), "cpu=200m", "cpu=300m"), ""),
        (
            "Pod max cpu=400m,memory=200Mi",
            with_resources(
                alike(3, "", "cpu=200m,memory=100Mi"),
                "cpu=200m",
                "cpu=500m,memory=280Mi",
            ),
            "[maximum cpu usage per Pod is 400m, but limit is 500m, maximum memory usage per Pod \
             is 200Mi, but limit is 280Mi]",
        ),
        (
            "Pod max hugepages-2Mi=4Mi",
            with_resources(alike(1, "", "hugepages-2Mi=4Mi"), "", "hugepages-2Mi=8Mi"),
            "",
        ),
    ]);
}

#[test]
fn claims_are_limited_by_what_they_request() {
    let claim =
        |requests: &str, limits: &str| json!({"spec": {"resources": resources(requests, limits)}});
    let subject = "PersistentVolumeClaim";
    for (bounds, claim, expected) in [
        ("min storage=1Gi", claim("storage=1Gi", "storage=1"), ""),
        ("max storage=1Gi", claim("storage=1Gi", "storage=5Gi"), ""),
        (
            "min storage=1Gi",
            claim("storage=500Mi", ""),
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi",
        ),
        (
            "max storage=1Gi",
            claim("storage=2Gi", ""),
            "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi",
        ),
        (
            "min storage=1Gi",
            claim("", ""),
            "minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
        ),
        (
            "max storage=1Gi",
            claim("", ""),
            "maximum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
        ),
    ] {
        let range = bound(&format!("{subject} {bounds}"));
        let found = limits::refusal_of_claim(&range, &claim).unwrap_or_default();
        assert_eq!(found, expected, "{bounds} {claim}");
    }
    let of_pods = bound("Pod min storage=1Gi");
    assert_eq!(limits::refusal_of_claim(&of_pods, &claim("storage=1", "")), None);
}
