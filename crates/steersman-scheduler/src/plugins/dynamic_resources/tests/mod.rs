//! Tables of claims and devices, and what becomes of Pods that have them.

mod binding;
mod extended;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

use super::allocator::{Allocator, Problem};
use super::pools::Slices;
use super::{DynamicResources, Handle, Timeouts};
use crate::config::Configuration;
use crate::framework::{Action, Before, ClusterEvent, Hint, Lister, Object, Plugin, Resource};
use crate::plugins::allocations::Allocations;
use crate::testing::{Objects, World, node, nowhere, object, on, pod};

const DRIVER: &str = "gpu.example.com";

fn slice(name: &str, devices: &Value, change: &Value) -> Arc<ResourceSlice> {
    let mut spec = json!({
        "driver": DRIVER, "nodeName": "n", "devices": devices,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    Arc::new(object(json!({"metadata": {"name": name}, "spec": spec})))
}

/// A device of this model on this board.
fn device(name: &str, model: &str, board: i64) -> Value {
    let attributes = json!({"model": {"string": model}, "board": {"int": board}});
    json!({"name": name, "attributes": attributes})
}

/// Four devices of two models on two boards.
fn four() -> Arc<ResourceSlice> {
    let devices = json!([
        device("a", "small", 0),
        device("b", "large", 1),
        device("c", "small", 1),
        device("d", "large", 0),
    ]);
    slice("s", &devices, &json!({}))
}

fn claim(name: &str, devices: &Value) -> Arc<ResourceClaim> {
    let metadata = json!({"namespace": "default", "name": name, "uid": name});
    Arc::new(object(json!({"metadata": metadata, "spec": {"devices": devices}})))
}

fn classes(objects: &mut Objects) {
    let model = |model: &str| {
        let expression = format!("device.attributes['{DRIVER}'].model == '{model}'");
        json!({
            "selectors": [{"cel": {"expression": expression}}],
            "config": [{"opaque": {"driver": DRIVER, "parameters": {"model": model}}}],
        })
    };
    for (name, spec) in [("any", json!({})), ("small", model("small")), ("large", model("large"))] {
        let class = object(json!({"metadata": {"name": name}, "spec": spec}));
        objects.device_classes.push(Arc::new(class));
    }
}

struct Case {
    slices: Vec<Arc<ResourceSlice>>,
    taken: &'static [&'static str],
    /// Shares of devices that others have.
    shared: Vec<Value>,
    node: Node,
    timeout: Option<Duration>,
}

impl Case {
    fn new(slices: Vec<Arc<ResourceSlice>>) -> Self {
        Self {
            slices,
            taken: &[],
            shared: Vec::new(),
            node: node("n", &json!({"metadata": {"labels": {"zone": "z"}}})),
            timeout: None,
        }
    }

    fn taken(mut self, taken: &'static [&'static str]) -> Self {
        self.taken = taken;
        self
    }

    fn allocate(&self, claims: &[Value]) -> Result<Option<Vec<AllocationResult>>, Problem> {
        let mut objects = Objects::default();
        classes(&mut objects);
        let allocations = Allocations::default();
        let whole = self.taken.iter().map(|device| json!({"device": device}));
        for (number, mut result) in whole.chain(self.shared.iter().cloned()).enumerate() {
            (result["driver"], result["pool"]) = (DRIVER.into(), "p".into());
            result["request"] = "r".into();
            let given = object(json!({"devices": {"results": [result]}}));
            allocations.begin(&claim(&number.to_string(), &json!({})), given);
        }
        let allocator = Allocator {
            slices: Slices::new(self.slices.clone()),
            taken: allocations.devices(Vec::new),
            lister: Arc::new(objects),
            selectors: Arc::default(),
            timeout: self.timeout,
        };
        let claims: Vec<_> = claims.iter().map(|devices| claim("c", devices)).collect();
        let claims: Vec<&ResourceClaim> = claims.iter().map(|claim| &**claim).collect();
        allocator.allocate(&self.node, &claims)
    }

    /// What is allocated, as `request=device`; nothing if that cannot be.
    fn devices(&self, claims: &[Value]) -> Option<String> {
        let results = self.allocate(claims).expect("nothing is wrong")?;
        let results = results.iter().flat_map(|it| it.devices.iter());
        let results = results.flat_map(|it| it.results.iter().flatten());
        let results = results.map(|it| format!("{}={}", it.request, it.device));
        Some(results.collect::<Vec<_>>().join(" "))
    }
}

fn exactly(name: &str, exactly: &Value) -> Value {
    json!({"name": name, "exactly": exactly})
}

fn one(request: &Value) -> Value {
    json!({"requests": [request]})
}

#[test]
fn the_first_devices_are_taken_that_are_free_and_selected() {
    let four = || Case::new(vec![four()]);
    let of = |class: &str, count: i64| {
        one(&exactly("r", &json!({"deviceClassName": class, "count": count})))
    };
    let selecting = |expression: &str| {
        let selectors = json!([{"cel": {"expression": expression}}]);
        one(&exactly("r", &json!({"deviceClassName": "any", "selectors": selectors})))
    };
    let board = format!("device.attributes['{DRIVER}'].board == 1");
    for (case, claims, expected) in [
        (four(), vec![of("any", 1)], Some("r=a")),
        (four().taken(&["a"]), vec![of("any", 1)], Some("r=b")),
        (four(), vec![of("large", 2)], Some("r=b r=d")),
        (four(), vec![of("large", 3)], None),
        (four(), vec![of("any", 5)], None),
        (four(), vec![of("small", 1), of("small", 1)], Some("r=a r=c")),
        (four(), vec![of("small", 1), of("small", 2)], None),
        (four(), vec![selecting(&board)], Some("r=b")),
        (four(), vec![selecting("device.driver == 'other'")], None),
        (Case::new(Vec::new()), vec![of("any", 1)], None),
    ] {
        assert_eq!(case.devices(&claims).as_deref(), expected, "{claims:?} {:?}", case.taken);
    }
}

/// So many devices of a model, all on one board.
fn many(model: &str, count: usize) -> Vec<Value> {
    (0..count).map(|number| device(&format!("{model}-{number}"), model, 0)).collect()
}

#[test]
fn what_plainly_cannot_be_had_is_not_looked_for_in_every_order() {
    let of = |name: &str, class: &str, count: i64| {
        exactly(name, &json!({"deviceClassName": class, "count": count}))
    };
    let either = json!({"name": "y", "firstAvailable": [
        {"name": "two", "deviceClassName": "large", "count": 3},
        {"name": "one", "deviceClassName": "large", "count": 4},
    ]});
    let devices = [many("small", 31), many("large", 2)].concat();
    let mut tainted = many("small", 40);
    let taints = json!([{"key": "broken", "effect": "NoSchedule"}]);
    tainted.iter_mut().take(9).for_each(|device| device["taints"] = taints.clone());
    for (devices, requests) in [
        (&devices, vec![of("r", "small", 32)]),
        (&devices, vec![of("x", "small", 15), of("y", "large", 3)]),
        (&devices, vec![of("x", "small", 15), either]),
        (&tainted, vec![of("r", "small", 32)]),
    ] {
        let case = Case::new(vec![slice("s", &json!(devices), &json!({}))]);
        assert_eq!(case.devices(&[json!({"requests": requests})]), None, "{requests:?}");
    }
    // What is wrong with an expression is told all the same.
    let selectors = json!([{"cel": {"expression": "1"}}]);
    let request = json!({"deviceClassName": "small", "count": 32, "selectors": selectors});
    let case = Case::new(vec![slice("s", &json!(devices), &json!({}))]);
    let why = "claim default/c: selector #0: CEL compile error: must evaluate to bool or the \
               unknown type, not int";
    let wrong = case.allocate(&[one(&exactly("r", &request))]);
    assert_eq!(wrong, Err(Problem::Everywhere(why.to_owned())));
}

#[test]
fn a_search_that_takes_too_long_is_given_up() {
    let of = |name: &str| exactly(name, &json!({"deviceClassName": "small", "count": 16}));
    let claimed = json!({"requests": [of("x"), of("y")]});
    let devices = slice("s", &json!(many("small", 31)), &json!({}));
    let mut case = Case::new(vec![Arc::clone(&devices)]);
    case.timeout = Some(Duration::from_millis(10));
    assert_eq!(case.allocate(std::slice::from_ref(&claimed)), Err(Problem::TooLate));

    let mut world = World::of([node("n", &json!({}))]);
    classes(&mut world.objects);
    world.objects.resource_claims = vec![claim("c", &claimed)];
    world.objects.resource_slices = vec![devices];
    let args = json!({"filterTimeout": "10ms"});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": args}]}],
    });
    world.configuration = Configuration::parse(&document.to_string()).unwrap();
    let why =
        "running \"DynamicResources\" filter plugin: node n: timed out trying to allocate devices";
    assert_eq!(world.place(&user("c")), nowhere(why));
}

#[test]
fn who_wants_all_gets_all_or_none() {
    let all = one(&exactly("r", &json!({"deviceClassName": "small", "allocationMode": "All"})));
    assert_eq!(
        Case::new(vec![four()]).devices(std::slice::from_ref(&all)).as_deref(),
        Some("r=a r=c")
    );
    assert_eq!(Case::new(vec![four()]).taken(&["c"]).devices(std::slice::from_ref(&all)), None);
    assert_eq!(Case::new(Vec::new()).devices(std::slice::from_ref(&all)), None);
    let pool = json!({"pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}});
    let half = Case::new(vec![slice("s", &json!([device("a", "small", 0)]), &pool)]);
    let why = "claim default/c, request r: asks for all devices, but resource pool \
               gpu.example.com/p is currently being updated";
    assert_eq!(half.allocate(&[all]), Err(Problem::Everywhere(why.to_owned())));
}

#[test]
fn the_first_alternative_is_taken_that_can_be_had() {
    let request = json!({"name": "r", "firstAvailable": [
        {"name": "two", "deviceClassName": "large", "count": 2},
        {"name": "one", "deviceClassName": "small"},
    ]});
    let devices = |case: Case| case.devices(&[one(&request)]);
    assert_eq!(devices(Case::new(vec![four()])).as_deref(), Some("r/two=b r/two=d"));
    let case = Case::new(vec![four()]).taken(&["d"]);
    assert_eq!(devices(case).as_deref(), Some("r/one=a"));
    assert_eq!(devices(Case::new(vec![four()]).taken(&["a", "c", "d"])), None);
    // The claim after it needs a large one.
    let large = one(&exactly("x", &json!({"deviceClassName": "large"})));
    let found = Case::new(vec![four()]).devices(&[one(&request), large]);
    assert_eq!(found.as_deref(), Some("r/one=a x=b"));
}

#[test]
fn an_administrator_may_look_at_devices_that_others_have() {
    let admin = exactly("r", &json!({"deviceClassName": "any", "adminAccess": true}));
    let case = Case::new(vec![four()]).taken(&["a", "b", "c", "d"]);
    let found = case.allocate(&[one(&admin)]).unwrap().unwrap();
    let result = &found[0].devices.as_ref().unwrap().results.as_ref().unwrap()[0];
    assert_eq!((result.device.as_str(), result.admin_access), ("a", Some(true)));
}

#[test]
fn devices_share_an_attribute_or_differ_in_it_if_that_is_wanted() {
    let board = format!("{DRIVER}/board");
    let claim = |key: &str, requests: Value| {
        let of_each = |name: &str| exactly(name, &json!({"deviceClassName": "any"}));
        json!({"requests": [of_each("x"), of_each("y")],
               "constraints": [{key: board, "requests": requests}]})
    };
    let case = || Case::new(vec![four()]);
    for (constrained, expected) in [
        (claim("matchAttribute", json!([])), Some("x=a y=d")),
        (claim("matchAttribute", json!(["x"])), Some("x=a y=b")),
        (claim("distinctAttribute", json!([])), Some("x=a y=b")),
    ] {
        assert_eq!(
            case().devices(std::slice::from_ref(&constrained)).as_deref(),
            expected,
            "{constrained}"
        );
    }
    let taken = case().taken(&["c", "d"]);
    assert_eq!(taken.devices(&[claim("matchAttribute", json!([]))]), None);
    let mut unknown = claim("matchAttribute", json!([]));
    unknown["constraints"][0]["matchAttribute"] = "other.example.com/board".into();
    assert_eq!(case().devices(&[unknown]), None);
}

#[test]
fn a_tainted_device_is_for_who_tolerates_it() {
    let taints = |effect: &str| {
        let taints = json!([{"key": "broken", "value": "fan", "effect": effect}]);
        Case::new(vec![slice("s", &json!([{"name": "a", "taints": taints}]), &json!({}))])
    };
    let tolerating = |tolerations: Value| {
        one(&exactly("r", &json!({"deviceClassName": "any", "tolerations": tolerations})))
    };
    for (effect, tolerations, is_given) in [
        ("NoSchedule", json!([]), false),
        ("NoExecute", json!([]), false),
        ("None", json!([]), true),
        ("NoSchedule", json!([{"operator": "Exists"}]), true),
        ("NoSchedule", json!([{"key": "broken", "operator": "Equal", "value": "fan"}]), true),
        ("NoSchedule", json!([{"key": "broken", "operator": "Equal", "value": "x"}]), false),
        ("NoSchedule", json!([{"key": "other", "operator": "Exists"}]), false),
        ("NoSchedule", json!([{"operator": "Exists", "effect": "NoExecute"}]), false),
    ] {
        let found = taints(effect).devices(&[tolerating(tolerations.clone())]);
        assert_eq!(found.is_some(), is_given, "{effect} {tolerations}");
    }
}

#[test]
fn parts_of_a_card_are_given_as_long_as_there_is_enough_of_it() {
    let part = |name: &str, memory: &str| {
        let counters = json!({"memory": {"value": memory}});
        json!({"name": name, "consumesCounters": [{"counterSet": "card", "counters": counters}]})
    };
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
    let counters = json!({"memory": {"value": "40Gi"}});
    let shared = json!({"pool": pool, "sharedCounters": [{"name": "card", "counters": counters}]});
    let parts = json!([part("a", "20Gi"), part("b", "30Gi"), part("c", "20Gi")]);
    let case = || {
        let devices = slice("devices", &parts, &json!({"pool": pool}));
        Case::new(vec![devices, slice("card", &json!(null), &shared)])
    };
    let two = one(&exactly("r", &json!({"deviceClassName": "any", "count": 2})));
    assert_eq!(case().devices(std::slice::from_ref(&two)).as_deref(), Some("r=a r=c"));
    assert_eq!(case().taken(&["a"]).devices(&[two]), None);
    let single = one(&exactly("r", &json!({"deviceClassName": "any"})));
    assert_eq!(case().taken(&["b"]).devices(&[single]), None);
}

#[test]
fn a_node_reaches_what_is_for_it_and_is_up_to_date() {
    let single = one(&exactly("r", &json!({"deviceClassName": "any"})));
    let at = |name: &str, generation: i64, change: Value| {
        let mut change = change;
        change["pool"] = json!({"name": "p", "generation": generation, "resourceSliceCount": 1});
        slice(name, &json!([device(name, "small", 0)]), &change)
    };
    let zone = |zone: &str| {
        let expression = json!({"key": "zone", "operator": "In", "values": [zone]});
        let terms = json!([{"matchExpressions": [expression]}]);
        json!({"nodeName": null, "nodeSelector": {"nodeSelectorTerms": terms}})
    };
    let per_device = |node: &str| {
        let devices = json!([{"name": "a", "nodeName": "x"}, {"name": "b", "nodeName": node}]);
        json!({"nodeName": null, "perDeviceNodeSelection": true, "devices": devices})
    };
    for (slices, expected) in [
        (vec![at("a", 1, json!({"nodeName": "other"}))], None),
        (vec![at("a", 1, json!({"nodeName": null, "allNodes": true}))], Some("r=a")),
        (vec![at("a", 1, zone("z"))], Some("r=a")),
        (vec![at("a", 1, zone("y"))], None),
        (vec![at("a", 1, per_device("n"))], Some("r=b")),
        (vec![at("a", 1, per_device("y"))], None),
        (vec![at("a", 1, json!({})), at("b", 2, json!({}))], Some("r=b")),
        (vec![at("a", 1, json!({})), at("b", 2, json!({"nodeName": "other"}))], Some("r=a")),
    ] {
        assert_eq!(
            Case::new(slices.clone()).devices(std::slice::from_ref(&single)).as_deref(),
            expected,
            "{slices:?}"
        );
    }
    let twice = json!([device("a", "small", 0), device("a", "small", 0)]);
    let invalid = Case::new(vec![slice("s", &twice, &json!({}))]).allocate(&[single]);
    assert_eq!(invalid, Err(Problem::OnNode("invalid resource pools were encountered")));
}

#[test]
fn what_drivers_are_told_and_where_the_devices_are_is_written_down() {
    let config = json!([{"requests": ["r"], "opaque": {"driver": DRIVER, "parameters": {"x": 1}}}]);
    let request =
        json!({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "small"}]});
    let claim = json!({"requests": [request], "config": config});
    let found = Case::new(vec![four()]).allocate(&[claim]).unwrap().unwrap();
    let told = serde_json::to_value(&found[0]).unwrap();
    let expected = json!({
        "devices": {
            "results": [{"request": "r/s", "driver": DRIVER, "pool": "p", "device": "a"}],
            "config": [
                {"source": "FromClass", "requests": ["r/s"],
                 "opaque": {"driver": DRIVER, "parameters": {"model": "small"}}},
                {"source": "FromClaim", "requests": ["r"],
                 "opaque": {"driver": DRIVER, "parameters": {"x": 1}}},
            ],
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]},
    });
    assert_eq!(told, expected);
}

fn user(claim: &str) -> Pod {
    pod("p", &json!({"spec": {"resourceClaims": [{"name": "x", "resourceClaimName": claim}]}}))
}

#[test]
fn a_pod_goes_where_its_devices_are() {
    let mut world = World::of(["m", "n"].map(|name| node(name, &json!({}))));
    let wanted = one(&exactly("r", &json!({"deviceClassName": "small"})));
    let missing = "0/2 nodes are available: could not find ResourceClaim \"default/c\".";
    assert_eq!(world.place(&user("c")), nowhere(missing));
    world.objects.resource_claims = vec![claim("c", &wanted)];
    let missing = "0/2 nodes are available: request r: device class small does not exist.";
    assert_eq!(world.place(&user("c")), nowhere(missing));
    classes(&mut world.objects);
    let missing = "0/2 nodes are available: 2 cannot allocate all claims.";
    assert_eq!(world.place(&user("c")), nowhere(missing));
    world.objects.resource_slices = vec![four()];
    assert_eq!(world.place(&user("c")), on("n"));
    // One that has its devices already says where they are.
    let mut given = ResourceClaim::clone(&world.objects.resource_claims[0]);
    let fields = json!([{"key": "metadata.name", "operator": "In", "values": ["m"]}]);
    let selector = json!({"nodeSelectorTerms": [{"matchFields": fields}]});
    given.status = Some(object(json!({"allocation": {"nodeSelector": selector}})));
    world.objects.resource_claims = vec![Arc::new(given.clone())];
    assert_eq!(world.place(&user("c")), on("m"));
    world.nodes.remove(0);
    let away = "0/1 nodes are available: 1 resourceclaim not available on the node.";
    assert_eq!(world.place(&user("c")), nowhere(away));
    given.metadata.deletion_timestamp = Some(object(json!("2030-01-01T00:00:00Z")));
    world.objects.resource_claims = vec![Arc::new(given)];
    let going = "0/1 nodes are available: resourceclaim \"c\" is being deleted.";
    assert_eq!(world.place(&user("c")), nowhere(going));
}

#[test]
fn a_claim_that_many_use_is_for_no_other() {
    let users = |first: &str, count: usize| -> Vec<Value> {
        let name = |number| if number == 0 { first.to_owned() } else { format!("u{number}") };
        let user = |number| json!({"resource": "pods", "name": name(number), "uid": name(number)});
        (0..count).map(user).collect()
    };
    let place = |users: Vec<Value>| {
        let mut world = World::of([node("n", &json!({}))]);
        let mut used = ResourceClaim::clone(&claim("c", &one(&json!({"deviceClassName": "any"}))));
        used.status = Some(object(json!({"allocation": {}, "reservedFor": users})));
        world.objects.resource_claims.push(Arc::new(used));
        world.place(&user("c"))
    };
    assert_eq!(place(users("other", 255)), on("n"));
    let full = "0/1 nodes are available: resourceclaim in use.";
    assert_eq!(place(users("other", 256)), nowhere(full));
    let its_own = user("c").metadata.uid.unwrap();
    assert_eq!(place(users(&its_own, 256)), on("n"), "it is one of them");
}

#[test]
fn a_node_with_an_earlier_alternative_is_better() {
    let mut world = World::of(["m", "n"].map(|name| node(name, &json!({}))));
    classes(&mut world.objects);
    let request = json!({"name": "r", "firstAvailable": [
        {"name": "l", "deviceClassName": "large"}, {"name": "s", "deviceClassName": "small"}]});
    world.objects.resource_claims = vec![claim("c", &one(&request))];
    let of = |node: &str, model: &str| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let change = json!({"nodeName": node, "pool": pool});
        slice(node, &json!([device("a", model, 0)]), &change)
    };
    world.objects.resource_slices = vec![of("m", "small"), of("n", "large")];
    assert_eq!(world.place(&user("c")), on("n"));
    world.objects.resource_slices = vec![of("m", "large"), of("n", "small")];
    assert_eq!(world.place(&user("c")), on("m"));
}

#[test]
fn a_pod_waits_for_its_claims_and_hears_of_them() {
    let handle = Arc::new(Handle::default());
    let plugin = DynamicResources::new(Timeouts::default(), Arc::clone(&handle));
    let wanted = one(&exactly("r", &json!({"deviceClassName": "small"})));
    let known = claim("c", &wanted);
    let objects = Objects { resource_claims: vec![Arc::clone(&known)], ..Objects::default() };
    handle.begin(Arc::new(objects) as Arc<dyn Lister>, None);
    assert!(plugin.pre_enqueue(&user("c")).is_ok());
    let refused = |pod: &Pod| plugin.pre_enqueue(pod).unwrap_err().message();
    assert_eq!(refused(&user("d")), "could not find ResourceClaim \"default/d\"");
    let entry = json!([{"name": "x", "resourceClaimTemplateName": "t"}]);
    let mut made = pod("p", &json!({"spec": {"resourceClaims": entry}}));
    assert_eq!(refused(&made), "pod \"default/p\": ResourceClaim not created yet");
    let statuses = json!({"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "c"}]});
    made.status = Some(object(statuses));
    let why = "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)";
    assert_eq!(refused(&made), why);

    let mut given = ResourceClaim::clone(&known);
    given.status = Some(object(json!({"allocation": {}})));
    let given = Arc::new(given);
    let hint = |pod: &Pod, old: Option<&Arc<ResourceClaim>>, new: &Arc<ResourceClaim>| {
        let change = Before { old: old.cloned(), new: Some(Arc::clone(new)) };
        let (resource, action) = (Resource::ResourceClaim, Action::OTHER_UPDATE);
        let event = ClusterEvent { resource, action, object: Object::ResourceClaim(change) };
        plugin.hint(pod, &event)
    };
    let other = claim("other", &wanted);
    assert_eq!(hint(&user("c"), None, &known), Hint::Queue);
    assert_eq!(hint(&user("c"), None, &other), Hint::Skip);
    assert_eq!(hint(&user("d"), None, &other), Hint::Skip);
    assert_eq!(hint(&user("c"), Some(&known), &known), Hint::Skip);
    assert_eq!(hint(&user("c"), Some(&known), &given), Hint::Queue);
    assert_eq!(hint(&pod("p", &json!({})), Some(&given), &known), Hint::Queue);
    assert_eq!(hint(&pod("p", &json!({})), Some(&known), &given), Hint::Skip);
}
