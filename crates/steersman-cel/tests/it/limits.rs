//! Bounds: of depth, size, cost and time.

use std::cell::Cell;

use serde_json::json;
use steersman_cel::{Activation, Budget, Env, ErrorKind, List, Shape, ShapeKind, Value};

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

/// `[[1]].all(a0, [[a0, a0]].all(a1, … then))`: each has twice as many leaves as the one before, and
/// takes no more room.
fn doubled(times: usize, first: &str, both: impl Fn(&str) -> String, then: &str) -> String {
    let mut text = format!("[{first}].all(a0, ");
    for at in 1..=times {
        text += &format!("[{}].all(a{at}, ", both(&format!("a{}", at - 1)));
    }
    text + then + &")".repeat(times + 1)
}

#[test]
fn what_is_charged_for_may_be_compared() {
    let program = env().compile("[lists.range(2000)].all(a, a.all(x, a == a))").unwrap();
    let outcome = program.evaluate(&Activation::new(), Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(true));
}

#[test]
fn what_makes_much_more_of_a_value_than_it_is_charged_for_ends_at_a_limit() {
    let env = env();
    let lists = |then: &str| doubled(40, "[1]", |a| format!("[{a}, {a}]"), then);
    let long = "x".repeat(60);
    let replaced = |a: &str| format!("{a}.replace('', {a})");
    for text in [
        doubled(4, &format!("'{long}'"), replaced, "a4.size() > 0"),
        format!(
            "['{long}'.replace('', '{long}')].all(a, lists.range(9000).map(x, a).join(a) != '')"
        ),
        "lists.range(5000000).size() > 0".to_owned(),
        doubled(40, "[1, 2, 3]", |a| format!("{a} + {a}"), "a40.size() > 0"),
        lists("a40 == a40"),
        lists("a40 in [a40]"),
        lists("[a40, a40].distinct().size() > 0"),
        lists("a40.flatten(50).size() > 0"),
        lists("'%s'.format([a40]) != ''"),
    ] {
        let program = env.compile(&text).unwrap();
        let outcome = program.evaluate(&Activation::new(), Budget::default());
        let error = outcome.value.expect_err(&text);
        assert_eq!(error.kind, ErrorKind::CostLimit, "{text}: {error}");
    }
    let object = json!({"list": [1, {"a": "b"}], "text": "x".repeat(1_000_000)});
    let same = env.compile("[x, x, x] == [x, x, x]").unwrap();
    let outcome = same.evaluate(&Activation::new().json("x", &object), Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(true), "what is only long is compared");
}

#[test]
fn a_value_with_too_many_leaves_becomes_no_json() {
    let doubled = |times: usize| {
        let twice = |value: Value<'static>, _| Value::List(List::of(vec![value.clone(), value]));
        (0..times).fold(Value::Int(1), twice)
    };
    assert_eq!(doubled(2).to_json(), Some(json!([[1, 1], [1, 1]])));
    assert_eq!(doubled(40).to_json(), None);
    let object = json!({"text": "x".repeat(1_000_000)});
    let many = env().compile("lists.range(1000).map(i, x)").unwrap();
    let outcome = many.evaluate(&Activation::new().json("x", &object), Budget::default());
    assert!(outcome.value.unwrap().to_json().is_none(), "a thousand copies of a megabyte");
}

#[test]
fn types_that_double_are_not_followed_to_their_end() {
    let maps = doubled(60, "{1: 1}", |a| format!("{{{a}: {a}}}"), "true");
    assert!(env().compile(&maps).is_ok(), "whatever has such keys has no value");
    let mut unknown = "[].all(a0, ".to_owned();
    for at in 1..=40 {
        let before = format!("a{}", at - 1);
        unknown +=
            &format!("[{before}, [{{1: a{at}}}, {{1: {before}}}]].size() > 0 || [].all(a{at}, ");
    }
    unknown += &("true".to_owned() + &")".repeat(41));
    drop(env().compile(&unknown));
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
