//! What holds for every expression, tried on many that nobody wrote.

use serde_json::{Value as Json, json};
use steersman_cel::{Activation, Budget, Env, Library, Shape};

/// How many expressions each property is tried on.
const TRIES: u64 = 3_000;

/// Numbers that a seed leads to (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    /// An expression that can be read; whether it checks is another question.
    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let mut part = || self.expression(depth - 1);
        let (a, b, c) = (part(), part(), part());
        match self.below(14) {
            0 => format!("({a} {} {b})", self.one(&["+", "-", "*", "/", "%"])),
            1 => format!("({a} {} {b})", self.one(&["==", "!=", "<", "<=", ">", ">=", "in"])),
            2 => format!("({a} {} {b})", self.one(&["&&", "||"])),
            3 => format!("({a} ? {b} : {c})"),
            4 => format!("{}({a})", self.one(&["!", "-"])),
            5 => format!("[{a}, {b}]"),
            6 => format!("{{{a}: {b}}}"),
            7 => format!(
                "{}({a})",
                self.one(&["size", "int", "string", "double", "type", "dyn", "duration"])
            ),
            8 => format!("({a})[{b}]"),
            9 => format!(
                "({a}).{}(x, {b})",
                self.one(&["all", "exists", "exists_one", "map", "filter"])
            ),
            10 => format!(
                "({a}).{}({b})",
                self.one(&[
                    "contains",
                    "startsWith",
                    "matches",
                    "split",
                    "indexOf",
                    "charAt",
                    "find"
                ])
            ),
            11 => format!(
                "({a}).{}(k, v, {b})",
                self.one(&["all", "exists", "transformList", "transformMap"])
            ),
            12 => format!(
                "({a}).{}()",
                self.one(&[
                    "size",
                    "sum",
                    "sort",
                    "trim",
                    "upperAscii",
                    "first",
                    "reverse",
                    "distinct"
                ])
            ),
            _ => format!("(({a}).?b.orValue({b}))"),
        }
    }

    fn leaf(&mut self) -> String {
        let leaves = [
            "1",
            "0",
            "-1",
            "2u",
            "1.5",
            "true",
            "false",
            "null",
            "'a'",
            "'é|b'",
            "b'x'",
            "x",
            "k",
            "v",
            "self",
            "self.spec",
            "self.spec.replicas",
            "self.spec.name",
            "self.spec.list",
            "self.spec.labels",
            "self.spec.ports",
            "self.spec.missing",
            "9223372036854775807",
            "'1h'",
            "[]",
            "{}",
            "self.spec.on",
            "self.spec.ints",
            "has(self.spec.missing)",
            "self.spec.ios",
        ];
        self.one(&leaves).to_owned()
    }
}

fn schema() -> Json {
    serde_json::from_str(include_str!("kubernetes/schema.json")).unwrap()
}

fn object() -> Json {
    serde_json::from_str(include_str!("kubernetes/object.json")).unwrap()
}

/// Calls `tried` with expressions, and names the one that it fails on.
fn many(seed: u64, mut tried: impl FnMut(&str)) {
    let mut chance = Chance(seed);
    for _ in 0..TRIES {
        let depth = u32::try_from(chance.below(4)).unwrap() + 1;
        let text = chance.expression(depth);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tried(&text)));
        assert!(caught.is_ok(), "seed {seed}, expression {text}");
    }
}

#[test]
fn what_is_printed_reads_as_the_same() {
    let env = Env::new(&Library::EXTENSIONS).unchecked();
    many(11, |text| {
        let printed = env.check(text).unwrap().unparsed();
        let again = env.check(&printed).unwrap_or_else(|issues| panic!("{printed}: {issues}"));
        assert_eq!(again.unparsed(), printed);
    });
}

#[test]
fn no_expression_panics_and_none_costs_more_than_estimated() {
    let shape = Shape::of_schema(&schema(), "self", true).unwrap();
    let env = Env::kubernetes().variable("self", shape);
    let object = object();
    let mut ran = 0;
    many(23, |text| {
        let Ok(compiled) = env.check(text) else { return };
        let Ok(program) = compiled.program() else { return };
        let activation = Activation::new().json("self", &object);
        let outcome = program.evaluate(&activation, Budget::of(u64::MAX));
        ran += 1;
        // cel-go's estimates fall short by one here and there: what is selected from something
        // computed, or a comparison of objects.
        let max = compiled.estimate().max.saturating_mul(3).saturating_add(text.len() as u64);
        assert!(outcome.cost <= max, "{} > {max}", outcome.cost);
    });
    assert!(ran > 50, "{ran}");
}

#[test]
fn unchecked_expressions_do_not_panic() {
    let libraries = [&Library::EXTENSIONS[..], &Library::KUBERNETES[1..]].concat();
    let env = Env::new(&libraries).unchecked();
    let object = object();
    let x = json!(["a", 1]);
    many(37, |text| {
        let Ok(program) = env.compile(text) else { return };
        let activation = Activation::new().json("self", &object).json("x", &x);
        let _ = program.evaluate(&activation, Budget::of(100_000)).value;
    });
}

#[test]
fn no_text_panics() {
    let env = Env::kubernetes();
    let mut chance = Chance(41);
    let pieces = [
        "a",
        ".",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        "'",
        "\"",
        "\\",
        "1",
        "0x",
        "e",
        "u",
        " ",
        "\n",
        "&&",
        "||",
        "!",
        "-",
        "in",
        "true",
        "r'",
        "b\"",
        "'''",
        "é",
        "\u{1f600}",
        "%",
        "has(",
        ".all(x,",
        "//",
        "`",
    ];
    for _ in 0..20_000 {
        let length = chance.below(12);
        let text: String = (0..length).map(|_| chance.one(&pieces)).collect();
        let _ = env.check(&text);
    }
}
