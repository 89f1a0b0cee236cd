//! Every verb on every built-in kind; one file per verb, each a scenario of its own.

mod create;
mod delete;
mod list;
mod parts;
mod patch;
mod read;
mod update;

use steersman_rules::resource::Verb;

use super::kinds::{Kind, Place};
use crate::step::{Role, Scenario, Step};

/// Answers as tables, of metadata only, and in other writings.
const FORMS: [(&str, &str); 9] = [
    ("yaml", "application/yaml"),
    ("protobuf", "application/vnd.kubernetes.protobuf"),
    ("table", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("table-v1beta1", "application/json;as=Table;v=v1beta1;g=meta.k8s.io"),
    ("html", "text/html"),
    ("any", "*/*"),
    ("fallback", "text/html,application/json;as=Table;v=v7;g=meta.k8s.io,application/json"),
    ("pretty", "application/json;pretty=1"),
    ("metadata", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
];

/// A verb: its name and its scenario.
pub(super) type Part = (&'static str, fn(&Kind, &Place, &mut Scenario));

pub(super) const STORED: [Part; 7] = [
    ("create", create::steps),
    ("read", read::steps),
    ("list", list::steps),
    ("update", update::steps),
    ("patch", patch::steps),
    ("delete", delete::steps),
    ("parts", parts::steps),
];

pub(super) fn scenarios(kinds: &[Kind], run: &str) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for kind in kinds {
        let parts: &[Part] = if kind.is_stored() {
            &STORED
        } else if kind.can(Verb::Create) {
            &[("create", create::review)]
        } else {
            &[("read", read::missing), ("list", list::steps)]
        };
        for (name, steps) in parts {
            let (mut scenario, place) = kind.scenario(run, name);
            steps(kind, &place, &mut scenario);
            scenarios.push(scenario);
        }
    }
    scenarios
}

/// The object that the steps of a scenario are about, kept as `object`.
fn make(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let object = kind.object(place, "x");
    scenario.add(Step::post("make", &place.collection, object).role(Role::Needed).keep("object"));
}
