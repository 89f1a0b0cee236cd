//! Custom resources against their schemas.

use serde_json::{Value, json};

use super::{Group, table, with_spec};
use crate::step::{Role, Scenario, Step};

const TABLE: &str = include_str!("objects.txt");

/// A field of a spec: its name, its schema, and the lines of the table about it.
struct Field {
    name: &'static str,
    schema: Value,
    lines: Vec<(&'static str, &'static str)>,
}

/// One scenario for each definition of the table.
pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    let mut definitions: Vec<Vec<Field>> = vec![Vec::new()];
    for (word, rest) in table::lines(TABLE) {
        let Some(fields) = definitions.last_mut() else { continue };
        match word {
            "---" => definitions.push(Vec::new()),
            "schema" => {
                let (name, documents) = table::named(rest);
                let schema = documents.into_iter().next().unwrap_or_default();
                fields.push(Field { name, schema, lines: Vec::new() });
            }
            _ => fields.iter_mut().last().into_iter().for_each(|f| f.lines.push((word, rest))),
        }
    }
    let numbered = definitions.iter().enumerate();
    numbered.map(|(index, fields)| scenario(run, index + 1, fields)).collect()
}

fn scenario(run: &str, number: usize, fields: &[Field]) -> Scenario {
    let group = Group::new(run, &format!("objects{number}"));
    let mut scenario = group.scenario(format!("objects/{number}"));
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema.clone())).collect();
    let spec = json!({"type": "object", "properties": properties});
    group.define(&with_spec(&spec), &mut scenario);
    for field in fields {
        for (index, (word, rest)) in field.lines.iter().enumerate() {
            let values = table::documents(rest);
            let id = format!("{} {}", field.name, index + 1);
            match (*word, &values[..]) {
                ("object", [value]) => create(&group, field, &id, value, &mut scenario),
                ("change", [old, new]) => change(&group, field, &id, [old, new], &mut scenario),
                _ => {}
            }
        }
    }
    scenario
}

fn create(group: &Group, field: &Field, id: &str, value: &Value, scenario: &mut Scenario) {
    let thing = group.thing("x", &json!({field.name: value}));
    scenario.add(Step::post(id, &group.things(), thing).dry());
}

fn change(group: &Group, field: &Field, id: &str, values: [&Value; 2], scenario: &mut Scenario) {
    let name = id.replace(' ', "-");
    let [old, mut new] = values.map(|value| group.thing(&name, &json!({field.name: value})));
    let made = Step::post(format!("{id} made"), &group.things(), old);
    scenario.add(made.keep("old").role(Role::Compared));
    new["metadata"]["resourceVersion"] = "${old:/metadata/resourceVersion}".into();
    scenario.add(Step::put(id, &format!("{}/{name}", group.things()), new).dry());
}
