//! Wrong values for the fields of every kind: some fields of each type, each sent a value of
//! another JSON type, by POST and in every language of patches.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kinds::{Kind, Place};
use crate::step::{Language, Role, Scenario, Step};

/// The types of built-in kinds.
const TYPES: &str = include_str!("../../../crates/steersman-rules/src/schema/builtin.txt");
/// How deep fields are looked for.
const DEPTH: usize = 6;
/// How many fields of one type are tried in each kind.
const PER_TYPE: usize = 2;

/// The table of types, as far as it is needed here.
pub(super) struct Types {
    /// The fields of structs.
    structs: BTreeMap<&'static str, Vec<(&'static str, &'static str)>>,
    /// The types of kinds, by version and kind.
    kinds: BTreeMap<(&'static str, &'static str), &'static str>,
}

/// A field somewhere in a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// The names on the way, with the braces of lists and maps around them: `containers[]`.
    way: Vec<String>,
    ty: &'static str,
}

impl Types {
    pub(super) fn read() -> Self {
        let mut types = Self { structs: BTreeMap::new(), kinds: BTreeMap::new() };
        let mut current = "";
        for line in TYPES.lines() {
            let words: Vec<&'static str> = line.split_whitespace().collect();
            match words[..] {
                [field, ty, ..] if line.starts_with("  ") => {
                    types.structs.entry(current).or_default().push((field, ty));
                }
                ["kind", version, kind, ty] => {
                    types.kinds.insert((version, kind), ty);
                }
                ["type", name, ..] => current = name,
                _ => {}
            }
        }
        types
    }

    /// Some fields of each type in a kind: the shallowest, in the order of the table.
    fn fields(&self, version: &str, kind: &str) -> Vec<Field> {
        let Some(root) = self.kinds.get(&(version, kind)) else { return Vec::new() };
        let mut level = vec![Field { way: Vec::new(), ty: root }];
        let mut chosen: BTreeMap<&str, Vec<Field>> = BTreeMap::new();
        for _ in 0..DEPTH {
            let mut next = Vec::new();
            for field in level {
                for below in self.below(&field) {
                    let of_type = chosen.entry(class(below.ty)).or_default();
                    if of_type.len() < PER_TYPE {
                        of_type.push(below.clone());
                    }
                    next.push(below);
                }
            }
            level = next;
        }
        chosen.into_values().flatten().collect()
    }

    /// The fields of a struct, or of what a list or map holds.
    fn below(&self, field: &Field) -> Vec<Field> {
        let (inner, brackets) = match field.ty.as_bytes() {
            [b'[', .., b']'] => (&field.ty[1..field.ty.len() - 1], "[]"),
            [b'{', .., b'}'] => (&field.ty[1..field.ty.len() - 1], "{}"),
            _ => (field.ty, ""),
        };
        let mut way = field.way.clone();
        if let Some(last) = way.last_mut() {
            last.push_str(brackets);
        }
        let fields = self.structs.get(inner).into_iter().flatten();
        // Of every object alike; `verbs` has requests for it.
        let told = fields.filter(|(name, _)| !(way.is_empty() && *name == "metadata"));
        told.filter(|(name, _)| !matches!(*name, "apiVersion" | "kind") || !way.is_empty())
            .map(|&(name, ty)| {
                let mut way = way.clone();
                way.push(name.to_owned());
                Field { way, ty }
            })
            .collect()
    }
}

/// What a type is to a decoder.
fn class(ty: &'static str) -> &'static str {
    match ty.as_bytes().first() {
        Some(b'[') if ty.contains('.') => "list of structs",
        Some(b'[') => "list",
        Some(b'{') => "map",
        _ if ty.contains('.') => "struct",
        _ => ty,
    }
}

/// Values that do not fit a type, one for each request.
fn wrong(ty: &'static str) -> Vec<(&'static str, Value)> {
    let text = ("text", json!("x y"));
    let number = ("number", json!(1));
    let object = ("object", json!({"a": "b"}));
    let list = ("list", json!(["a"]));
    match class(ty) {
        "string" => vec![number, object, ("bool", json!(true))],
        "int32" => vec![text, ("fraction", json!(1.5)), ("big", json!(3_000_000_000_i64))],
        "int64" => vec![text, ("fraction", json!(1.5)), list],
        "number" => vec![text, object],
        "bool" => vec![text, number],
        "bytes" => vec![("no-base64", json!("%")), number],
        "time" | "microtime" => vec![text, number, ("date", json!("2025-01-01"))],
        "quantity" => vec![text, object, ("bool", json!(true))],
        "intorstring" => vec![("bool", json!(true)), object, ("fraction", json!(1.5))],
        "list" | "list of structs" => vec![text, object, ("items", json!([1]))],
        "map" => vec![text, list, ("values", json!({"a": [true]}))],
        "struct" => vec![text, list],
        _ => vec![text],
    }
}

pub(super) fn scenarios(kinds: &[Kind], run: &str) -> Vec<Scenario> {
    let types = Types::read();
    let mut scenarios = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.is_stored()) {
        let (mut scenario, place) = kind.scenario(run, "fields");
        let object = kind.object(&place, "x");
        scenario.add(Step::post("make", &place.collection, object).role(Role::Needed));
        let version = kind.resource.api_version();
        for field in types.fields(&version, &kind.resource.kind) {
            steps(kind, &place, &field, &mut scenario);
        }
        scenarios.push(scenario);
    }
    scenarios
}

fn steps(kind: &Kind, place: &Place, field: &Field, scenario: &mut Scenario) {
    let path = kind.path(place, "x");
    let way = field.way.join(".");
    for (id, value) in wrong(field.ty) {
        let id = |verb: &str| format!("{way} {id} {verb}");
        let mut object = kind.object(place, "y");
        set(&mut object, &field.way, &value);
        scenario.add(Step::post(id("post"), &place.collection, object).dry());
        let mut patch = json!({});
        set(&mut patch, &field.way, &value);
        for language in [Language::Merge, Language::Strategic] {
            scenario.add(Step::patch(id(language.name()), &path, language, &patch).dry());
        }
        let mut applied = kind.object(place, "x");
        set(&mut applied, &field.way, &value);
        let apply = Step::patch(id("apply"), &path, Language::Apply, applied);
        scenario.add(apply.query("fieldManager=fields&force=true").dry());
    }
}

/// Puts a value somewhere, into the first item of lists and under one key of maps.
fn set(object: &mut Value, way: &[String], value: &Value) {
    let Some((name, rest)) = way.split_first() else {
        *object = value.clone();
        return;
    };
    let name_alone = name.trim_end_matches("[]").trim_end_matches("{}");
    if !object.is_object() {
        *object = json!({});
    }
    let field = &mut object[name_alone];
    let field = if name.ends_with("[]") {
        if field.as_array().is_none_or(Vec::is_empty) {
            *field = json!([{}]);
        }
        &mut field[0]
    } else if name.ends_with("{}") {
        if !field.is_object() {
            *field = json!({});
        }
        &mut field["k"]
    } else {
        field
    };
    set(field, rest, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_type_are_found_in_a_kind() {
        let fields = Types::read().fields("apps/v1", "Deployment");
        let find = |way: &str| fields.iter().find(|field| field.way.join(".") == way);
        assert_eq!(find("spec.minReadySeconds").map(|field| field.ty), Some("int32"));
        for wanted in ["string", "int32", "int64", "bool", "list", "map", "struct", "time"] {
            assert!(fields.iter().any(|field| class(field.ty) == wanted), "{wanted}");
        }
    }

    #[test]
    fn a_value_is_put_where_the_way_leads() {
        let mut object = json!({"spec": {"items": [{"a": 1, "b": 2}]}});
        let way = ["spec", "items[]", "a"].map(String::from);
        set(&mut object, &way, &json!("x"));
        assert_eq!(object, json!({"spec": {"items": [{"a": "x", "b": 2}]}}));
        let mut nothing = json!({});
        set(&mut nothing, &["m{}", "l[]"].map(String::from), &json!(1));
        assert_eq!(nothing, json!({"m": {"k": {"l": [1]}}}));
    }
}
