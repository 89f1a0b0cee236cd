//! Where the two clusters differ, for people: each difference once, with the scenarios that have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use super::canonical::{Canonical, canonical};
use super::snapshot::{REFUSED, Snapshot};
use crate::difference::{Class, Difference};
use crate::expected::Expected;
use crate::report::short;
use crate::tree;

/// How long a text may be when it is shown.
const WIDTH: usize = 1500;

/// What was found so far.
pub(super) struct Findings {
    expected: Expected,
    scenarios: usize,
    /// How many objects and Events were compared.
    compared: usize,
    /// How many differences have a reason that is known.
    explained: BTreeMap<String, usize>,
    /// The others, with where they were seen.
    found: BTreeMap<Found, BTreeSet<String>>,
    /// What both sides refused alike, which may be the fault of a scenario.
    refused: BTreeSet<String>,
}

/// One difference.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    kind: String,
    place: String,
    theirs: String,
    ours: String,
}

type Objects = BTreeMap<(String, String), Vec<Value>>;

impl Findings {
    pub(super) fn new(expected: Expected, scenarios: usize) -> Self {
        Self {
            expected,
            scenarios,
            compared: 0,
            explained: BTreeMap::new(),
            found: BTreeMap::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Compares what a scenario has come to on both sides.
    pub(super) fn compare(&mut self, theirs: &Snapshot, ours: &Snapshot, managed_fields: bool) {
        let [mut theirs_by_name, mut ours_by_name] =
            [theirs, ours].map(|side| by_name(side, managed_fields));
        let names: BTreeSet<_> =
            theirs_by_name.keys().chain(ours_by_name.keys()).cloned().collect();
        let at = format!("{}/{}", theirs.scenario, theirs.round);
        for key in names {
            let theirs = theirs_by_name.remove(&key).unwrap_or_default();
            let ours = ours_by_name.remove(&key).unwrap_or_default();
            self.compared += theirs.len().max(ours.len());
            if key.0 == REFUSED && theirs == ours {
                let why = theirs.iter().filter_map(|refused| refused["why"].as_str());
                self.refused.extend(why.map(|why| format!("{at}: {why}")));
            }
            self.compare_alike(&at, key, &theirs, &ours);
        }
    }

    fn compare_alike(
        &mut self,
        at: &str,
        (kind, name): (String, String),
        theirs: &[Value],
        ours: &[Value],
    ) {
        let mut found = Vec::new();
        if theirs.len() == ours.len() {
            for (theirs, ours) in theirs.iter().zip(ours) {
                let leaves = tree::differences(theirs, ours, true).into_iter();
                found.extend(leaves.map(|leaf| (leaf.place, leaf.theirs, leaf.ours)));
            }
        } else {
            found.push((String::new(), told(&name, theirs, ours), told(&name, ours, theirs)));
        }
        for (place, theirs, ours) in found {
            let id = format!("{at}/{kind}/{name}");
            let class = Class::Body;
            let difference = Difference { id, class, place, theirs, ours };
            if let Some(reason) = self.expected.reason(&difference) {
                *self.explained.entry(reason.to_owned()).or_default() += 1;
                continue;
            }
            let Difference { id, place, theirs, ours, .. } = difference;
            let found = Found { kind: kind.clone(), place, theirs, ours };
            self.found.entry(found).or_default().insert(id);
        }
    }

    pub(super) fn compared(&self) -> usize {
        self.compared
    }

    /// Whether nothing differs but what is known why.
    pub(super) fn agree(&self) -> bool {
        self.found.is_empty()
    }

    /// Everything, naming so many places of each difference.
    pub(super) fn text(&self, show: usize) -> String {
        let Self { scenarios, compared, explained, found, .. } = self;
        let known: usize = explained.values().sum();
        let mut text = format!(
            "{scenarios} scenarios, {compared} objects and Events compared: {} differences of which \
             nobody knows why, {known} places that differ as expected\n",
            found.len()
        );
        for (reason, count) in explained {
            let _ = writeln!(text, "{count:>6}  {reason}");
        }
        for refused in &self.refused {
            let _ = writeln!(text, "refused by both: {}", short(refused, WIDTH));
        }
        let mut kind = "";
        for (difference, places) in found {
            if kind != difference.kind {
                kind = &difference.kind;
                let _ = writeln!(text, "\n== {kind}");
            }
            let _ = writeln!(text, "\n{}× {}", places.len(), difference.place);
            let _ = writeln!(text, "  theirs: {}", short(&difference.theirs, WIDTH));
            let _ = writeln!(text, "  ours:   {}", short(&difference.ours, WIDTH));
            let shown: Vec<&str> = places.iter().map(String::as_str).take(show).collect();
            let _ = writeln!(text, "  {}", shown.join(", "));
        }
        text
    }
}

/// How many there are, and those of which the other side has no equal.
fn told(name: &str, side: &[Value], other: &[Value]) -> String {
    let own: Vec<&Value> = side.iter().filter(|object| !other.contains(object)).collect();
    let shown: String = own.iter().map(|object| format!(" {object}")).collect();
    format!("{} of {name}{shown}", side.len())
}

/// The objects by what they are called; those of the same name in the order of what they say.
fn by_name(side: &Snapshot, managed_fields: bool) -> Objects {
    let mut objects = Objects::new();
    for object in &side.objects {
        let Some(found) = canonical(object, managed_fields) else { continue };
        let Canonical { kind, name, content } = found;
        let is_event = kind == "Event";
        let alike = objects.entry((kind, name)).or_default();
        // Equal Events are told as often as chance puts them together.
        if !is_event || !alike.contains(&content) {
            alike.push(content);
        }
    }
    objects.values_mut().for_each(|alike| alike.sort_by_key(Value::to_string));
    objects
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(objects: Value) -> Snapshot {
        let Value::Array(objects) = objects else { panic!("not a list") };
        Snapshot { scenario: "s".into(), round: 0, objects }
    }

    fn pod(name: &str, phase: &str) -> Value {
        json!({"kind": "Pod", "metadata": {"name": name}, "status": {"phase": phase}})
    }

    fn findings(expected: &str) -> Findings {
        let theirs =
            json!([pod("a-x2kbp", "Failed"), pod("a-b7qwr", "Running"), pod("b", "Running")]);
        let ours = json!([pod("a-zzzzz", "Running"), pod("a-bbbbb", "Pending")]);
        let mut findings = Findings::new(Expected::read("a.txt", expected).unwrap(), 1);
        findings.compare(&snapshot(theirs), &snapshot(ours), false);
        findings
    }

    #[test]
    fn objects_are_compared_whatever_their_generated_names() {
        let found = findings("");
        let shown: Vec<_> = found.found.keys().map(|f| [&*f.place, &*f.theirs, &*f.ours]).collect();
        let b = r#"1 of b {"kind":"Pod","metadata":{"name":"b"},"status":{"phase":"Running"}}"#;
        assert_eq!(shown, [["", b, "0 of b"], ["status.phase", "\"Failed\"", "\"Pending\""]]);
        assert!(!found.agree());
    }

    #[test]
    fn what_is_known_does_not_count() {
        let found = findings("body s/0/Pod/b * it is\nbody * status.phase so it is\n");
        assert!(found.agree(), "{}", found.text(1));
        assert!(found.text(1).contains("so it is"));
    }
}
