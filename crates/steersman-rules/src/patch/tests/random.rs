//! Random pods, and patches of them: sensible, odd and hostile.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// A value, or null where it may be.
fn maybe_null(value: BoxedStrategy<Value>, nulls: bool) -> BoxedStrategy<Value> {
    if nulls { prop_oneof![6 => value, 1 => Just(Value::Null)].boxed() } else { value }
}

fn text() -> BoxedStrategy<Value> {
    "[xyz]".prop_map(Value::from).boxed()
}

/// An object of some of these fields.
fn object(fields: Vec<(&'static str, f64, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let mut all = Just(Map::new()).boxed();
    for (name, chance, value) in fields.into_iter().filter(|(_, chance, _)| *chance > 0.0) {
        let value = if chance < 1.0 {
            prop::option::weighted(chance, value).boxed()
        } else {
            value.prop_map(Some).boxed()
        };
        all = (all, value)
            .prop_map(move |(mut map, value)| {
                map.extend(value.map(|value| (name.to_owned(), value)));
                map
            })
            .boxed();
    }
    all.prop_map(Value::Object).boxed()
}

/// A list of objects with different keys.
fn keyed(key: &'static str, item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let items = prop::collection::vec(item, 0..4).prop_map(move |items| {
        let mut kept: Vec<Value> = Vec::new();
        for item in items {
            if !kept.iter().any(|known| known.get(key) == item.get(key)) {
                kept.push(item);
            }
        }
        Value::Array(kept)
    });
    items.boxed()
}

fn directive() -> BoxedStrategy<Value> {
    prop_oneof![
        6 => select(&["delete", "replace"][..]).prop_map(Value::from),
        1 => Just(json!("merge")),
        1 => Just(json!("explode")),
        1 => Just(json!(1)),
    ]
    .boxed()
}

/// A pod, or a patch of one.
pub(super) fn pod(patch: bool) -> BoxedStrategy<Value> {
    let odd = if patch { 0.12 } else { 0.0 };
    let field = |value: BoxedStrategy<Value>| maybe_null(value, patch);
    let name = || "[a-d]".prop_map(Value::from).boxed();
    let names = || {
        prop::collection::vec(name(), 0..4)
            .prop_map(|names| Value::Array(names.into_iter().map(|n| json!({"name": n})).collect()))
            .boxed()
    };
    let values = || prop::collection::btree_set("[a-d]", 0..4).prop_map(|s| json!(s)).boxed();
    let port = object(vec![
        ("containerPort", 1.0, (80..83).prop_map(Value::from).boxed()),
        ("name", 0.5, field(text())),
        ("protocol", 0.3, field(text())),
        ("$patch", odd, directive()),
    ]);
    let env = object(vec![
        ("name", 1.0, name()),
        ("value", 0.7, field(text())),
        ("$patch", odd, directive()),
    ]);
    let container = object(vec![
        ("name", if patch { 0.97 } else { 1.0 }, name()),
        ("image", 0.7, field(text())),
        ("args", 0.3, field(values())),
        ("ports", 0.5, keyed("containerPort", port)),
        ("env", 0.4, keyed("name", env)),
        ("$setElementOrder/env", odd, names()),
        ("$patch", odd, directive()),
    ]);
    let volume = object(vec![
        ("name", 1.0, name()),
        ("emptyDir", 0.5, field(Just(json!({})).boxed())),
        ("hostPath", 0.5, field(Just(json!({"path": "/"})).boxed())),
        ("$retainKeys", odd, Just(json!(["name", "hostPath"])).boxed()),
        ("$patch", odd, directive()),
    ]);
    let security = object(vec![
        ("runAsUser", 0.5, field((0..3).prop_map(Value::from).boxed())),
        ("fsGroup", 0.5, field((0..3).prop_map(Value::from).boxed())),
        ("$patch", odd, directive()),
    ]);
    let labels = prop::collection::btree_map("[a-d]", field(text()), 0..3).prop_map(|m| json!(m));
    let spec = object(vec![
        ("containers", 0.8, keyed("name", container)),
        ("volumes", 0.5, keyed("name", volume)),
        (
            "tolerations",
            0.3,
            keyed("key", object(vec![("key", 1.0, text()), ("value", 0.5, field(text()))])),
        ),
        ("nodeName", 0.4, field(text())),
        ("securityContext", 0.4, field(security)),
        ("$setElementOrder/containers", odd * 3.0, names()),
        (
            "$setElementOrder/volumes",
            odd,
            if patch { prop_oneof![names(), text()].boxed() } else { names() },
        ),
        ("$retainKeys", odd / 3.0, Just(json!(["containers"])).boxed()),
        ("$patch", odd / 4.0, directive()),
    ]);
    let metadata = object(vec![
        ("labels", 0.5, field(labels.boxed())),
        ("finalizers", 0.6, field(values())),
        ("$deleteFromPrimitiveList/finalizers", odd * 2.0, values()),
        ("$setElementOrder/finalizers", odd * 2.0, values()),
    ]);
    object(vec![("metadata", 0.8, metadata), ("spec", 0.9, spec)])
}

/// Any document at all, with a patch's words in odd places.
pub(super) fn anything() -> BoxedStrategy<Value> {
    let keys = select(
        &[
            "metadata",
            "spec",
            "containers",
            "name",
            "ports",
            "finalizers",
            "volumes",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder",
            "$deleteFromPrimitiveList/finalizers",
            "$deleteFromPrimitiveList",
            "a",
        ][..],
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3).prop_map(Value::from),
        select(&["delete", "replace", "merge", "a", ""][..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            2 => prop::collection::btree_map(keys.clone(), inner, 0..4).prop_map(|map| {
                Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
    .boxed()
}

/// A JSON patch of a small document.
pub(super) fn operations() -> BoxedStrategy<Value> {
    let part = || select(&["a", "b", "0", "1", "-", "-1", "9", "x~0y", "x~1y", "", "01"][..]);
    let path = prop::collection::vec(part(), 0..4)
        .prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect::<String>());
    let path = prop_oneof![20 => path, 1 => Just("a/b".to_owned())];
    let value = small();
    let op = select(&["add", "remove", "replace", "move", "copy", "test", "test"][..]);
    let operation = (op, path.clone(), path, value).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    );
    prop::collection::vec(operation, 1..4).prop_map(Value::Array).boxed()
}

/// A small document for JSON patches and merge patches.
pub(super) fn small() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3).prop_map(Value::from),
        Just(json!("x")),
        any::<bool>().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let keys = select(&["a", "b", "0", "x/y", "x~y"][..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(keys, inner, 0..4).prop_map(|map| {
                Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
    .boxed()
}
