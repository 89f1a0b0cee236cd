//! Bounds: of depth, size, cost and time.

use std::cell::Cell;

use serde_json::json;
use steersman_cel::{Activation, Budget, Env, ErrorKind, Shape, ShapeKind};

fn env() -> Env {
    Env::kubernetes().variable("x", Shape::new(ShapeKind::Dyn))
}

#[test]
fn what_nests_too_deep_is_refused() {
    let env = env();
    for (text, message) in [
        ("(".repeat(300) + "1" + &")".repeat(300), "expression recursion limit exceeded: 250"),
        ("[".repeat(300) + &"]".repeat(300), "expression recursion limit exceeded: 250"),
        ("1".to_owned() + &"+1".repeat(300), "max recursion depth exceeded"),
        ("x".to_owned() + &".x".repeat(300), "max recursion depth exceeded"),
        ("x ? ".repeat(300), "Syntax error"),
    ] {
        let issues = env.compile(&text).unwrap_err();
        assert!(issues.to_string().contains(message), "{issues}");
    }
    let chain = "true".to_owned() + &" && true".repeat(5_000);
    assert!(env.compile(&chain).is_ok());
}

#[test]
fn what_nests_as_deep_as_it_may_runs() {
    let env = env();
    let deep = "[".repeat(240) + &"]".repeat(240);
    let sum = "1".to_owned() + &"+1".repeat(240);
    for text in [deep, sum] {
        let program = env.compile(&text).unwrap();
        assert!(program.evaluate(&Activation::new(), Budget::default()).value.is_ok());
    }
}

#[test]
fn a_long_expression_is_refused() {
    let issues = env().compile(&" ".repeat(100_001)).unwrap_err();
    let expected = "expression code point size exceeds limit: size: 100001, limit 100000";
    assert_eq!(issues.issues[0].message, expected);
}

#[test]
fn macros_that_copy_what_they_stand_behind_do_not_double_it_without_end() {
    let env = env();
    let chain = |links: usize| {
        let links = ".optMap(y, y + 1)".repeat(links);
        format!("optional.of(1){links}.hasValue() && optional.of(1){links}.value() > 0")
    };
    let program = env.compile(&chain(6)).unwrap();
    let outcome = program.evaluate(&Activation::new(), Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(true));
    for links in [25, 200] {
        let issues = env.compile(&chain(links)).unwrap_err();
        let message = &issues.issues[0].message;
        assert!(message.starts_with("expression expansion limit exceeded: "), "{message}");
    }
    let items = vec!["1"; 20_000].join(", ");
    let long = format!("optional.of([{items}]).optMap(y, y.size()).value() == 20000");
    assert!(env.compile(&long).is_ok(), "what is long is not copied without end");
}

#[test]
fn the_cost_limit_ends_an_evaluation() {
    let list = json!((0..1_000).collect::<Vec<_>>());
    let program = env().compile("x.all(a, x.all(b, x.all(c, a + b + c >= 0)))").unwrap();
    let outcome = program.evaluate(&Activation::new().json("x", &list), Budget::default());
    let error = outcome.value.unwrap_err();
    assert_eq!(error.kind, ErrorKind::CostLimit);
    assert_eq!(error.to_string(), "operation cancelled: actual cost limit exceeded");
    assert!(outcome.cost <= steersman_cel::PER_CALL_LIMIT + 10);
}

#[test]
fn a_cost_limit_is_not_absorbed() {
    let list = json!((0..1_000).collect::<Vec<_>>());
    let program = env().compile("x.all(a, x.exists(b, a == b && b < 0)) || true").unwrap();
    let outcome = program.evaluate(&Activation::new().json("x", &list), Budget::of(500));
    assert_eq!(outcome.value.unwrap_err().kind, ErrorKind::CostLimit);
}

#[test]
fn an_evaluation_can_be_cancelled() {
    let list = json!((0..1_000).collect::<Vec<_>>());
    let program = env().compile("x.all(a, x.all(b, a != b || true))").unwrap();
    let asked = Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let budget = Budget { cost: u64::MAX, cancelled: Some(&cancelled) };
    let outcome = program.evaluate(&Activation::new().json("x", &list), budget);
    assert_eq!(outcome.value.unwrap_err().kind, ErrorKind::Cancelled);
}

#[test]
fn patterns_are_linear_and_bounded() {
    let text = json!("a".repeat(50_000));
    let program = env().compile("x.matches('^(a+)+b$')").unwrap();
    let outcome = program.evaluate(&Activation::new().json("x", &text), Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(false));
    let issues = env().compile("'a'.matches('((a{900}){900}){900}')").unwrap_err();
    assert!(issues.to_string().contains("invalid matches argument"), "{issues}");
}
