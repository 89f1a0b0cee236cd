//! Whatever comes in: no panic, bounded work, and the laws that parsers have.
//!
//! Each target takes many random cases, as many as `PROPTEST_CASES` says (256 without), made of
//! fragments that the parser under test knows, mixed with characters that it does not.

mod bodies;
mod merges;
mod requests;
mod schemas;

use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

/// Runs a target; a failure prints the smallest case that fails.
pub(crate) fn run<T: std::fmt::Debug>(cases: impl Strategy<Value = T>, target: impl Fn(T)) {
    let config = Config { failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&cases, |case| {
        target(case);
        Ok(())
    });
    outcome.unwrap();
}

/// Text of these fragments, with other characters in between.
pub(crate) fn text(fragments: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => select(fragments).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Any JSON value whose keys are among these.
pub(crate) fn json(keys: &'static [&'static str]) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|n| Value::from(f64::from(n) / 2.0)),
        select(keys).prop_map(Value::from),
        text(&["a", "1", "Mi", "m", "-", ".", "e", "2024-01-01T00:00:00Z", "=="])
            .prop_map(Value::from),
    ];
    let nested = leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(select(keys).prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    nested.boxed()
}

/// An object with these keys.
pub(crate) fn object(keys: &'static [&'static str]) -> BoxedStrategy<Value> {
    btree_map(select(keys).prop_map(str::to_owned), json(keys), 0..6)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
        .boxed()
}

/// The names of fields that workloads have, and some that they have not.
pub(crate) const FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "uid",
    "spec",
    "status",
    "replicas",
    "selector",
    "matchLabels",
    "matchExpressions",
    "template",
    "containers",
    "image",
    "ports",
    "containerPort",
    "protocol",
    "env",
    "value",
    "valueFrom",
    "resources",
    "limits",
    "cpu",
    "volumes",
    "conditions",
    "type",
    "strategy",
    "rollingUpdate",
    "maxSurge",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "replace",
    "delete",
    "merge",
    "data",
    "odd",
    "",
];
