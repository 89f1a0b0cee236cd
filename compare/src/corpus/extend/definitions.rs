//! Definitions that are taken or refused.

use serde_json::{Value, json};

use super::table::{self, patched};
use super::{DEFINITIONS, Group, with_spec};
use crate::step::{Scenario, Step};

const TABLE: &str = include_str!("definitions.txt");

/// One scenario for each word of the table; each definition is a dry run.
pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    ["schema", "spec", "definition"].map(|word| of(run, word)).into()
}

fn of(run: &str, wanted: &'static str) -> Scenario {
    let group = Group::new(run, wanted);
    let mut scenario = group.scenario(format!("definitions/{wanted}"));
    for (word, rest) in table::lines(TABLE).filter(|(word, _)| *word == wanted) {
        let (id, documents) = table::named(rest);
        let nothing = Value::Null;
        let given = documents.first().unwrap_or(&nothing);
        let definition = match word {
            "schema" => {
                let spec = json!({"type": "object", "properties": {"x": given}});
                group.definition(&with_spec(&spec))
            }
            "spec" => group.definition(&with_spec(given)),
            _ => patched(&group.definition(&json!({"type": "object"})), given),
        };
        scenario.add(Step::post(id, DEFINITIONS, definition).dry());
    }
    scenario
}
