//! Whether two decisions are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::scores::{self, Scores};
use super::trial::Decision;

/// In what two decisions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// One finds a node and the other none.
    Fits,
    /// Which nodes can run the Pod.
    Feasible,
    /// How good a node is.
    Score,
    /// Which node is taken, although others are better by the scores of the other.
    Choice,
    /// What the condition says.
    Condition,
    /// What the Event says.
    Event,
    /// Who has to go.
    Victims,
}

/// A difference.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) part: Part,
    pub(super) text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: {}", self.part, self.text)
    }
}

/// Where our decision differs from kube-scheduler's.
pub(super) fn differences(
    theirs: &Decision,
    ours: &Decision,
    running: &[Value],
) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |part, text| found.push(Difference { part, text });
    if theirs.node.is_some() != ours.node.is_some() {
        note(Part::Fits, format!("{} | {}", outcome(theirs), outcome(ours)));
        return found;
    }
    match (&theirs.node, &ours.node) {
        (Some(theirs_on), Some(ours_on)) => {
            let (there, here) = (scores::nodes(&theirs.scores), scores::nodes(&ours.scores));
            if there != here {
                let only = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
                    a.difference(b).copied().collect::<Vec<_>>().join(" ")
                };
                let text = format!("[{}] | [{}]", only(&there, &here), only(&here, &there));
                note(Part::Feasible, text);
            }
            for text in score_differences(&theirs.scores, &ours.scores) {
                note(Part::Score, text);
            }
            let is_good = if there.is_empty() {
                theirs_on == ours_on
            } else {
                scores::best(&theirs.scores).contains(ours_on.as_str())
            };
            if !is_good {
                note(Part::Choice, format!("{theirs_on} | {ours_on}"));
            }
        }
        _ => {
            if theirs.condition != ours.condition {
                note(Part::Condition, format!("{:?} | {:?}", theirs.condition, ours.condition));
            }
            if theirs.note != ours.note {
                note(Part::Event, format!("{:?} | {:?}", theirs.note, ours.note));
            }
            let (there, here) = (Loss::of(theirs, running), Loss::of(ours, running));
            if there != here {
                let text = format!("{} {there:?} | {} {here:?}", outcome(theirs), outcome(ours));
                note(Part::Victims, text);
            }
        }
    }
    found
}

fn outcome(decision: &Decision) -> String {
    match (&decision.node, &decision.nominated, &decision.condition) {
        (Some(node), ..) => node.clone(),
        (None, Some(node), _) => format!("room on {node} without {:?}", decision.victims),
        (None, None, Some([_, message])) => message.clone(),
        (None, None, None) => String::new(),
    }
}

fn score_differences(theirs: &Scores, ours: &Scores) -> Vec<String> {
    let plugins: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let none = BTreeMap::new();
    let mut found = Vec::new();
    for plugin in plugins {
        let there = theirs.get(plugin).unwrap_or(&none);
        let here = ours.get(plugin).unwrap_or(&none);
        if there != here {
            let shown = |scores: &BTreeMap<String, i64>| {
                let all = scores.values().map(ToString::to_string);
                all.collect::<Vec<_>>().join(" ")
            };
            found.push(format!("{plugin}: {} | {}", shown(there), shown(here)));
        }
    }
    found
}

/// What is lost with some Pods, as far as it decides where room is made. Of nodes where that is the
/// same either may be taken: kube-scheduler takes any.
#[derive(Debug, Default, PartialEq, Eq)]
struct Loss {
    highest: Option<i64>,
    sum: i64,
    count: usize,
    /// When the first of the highest priority began.
    since: Option<String>,
}

impl Loss {
    fn of(decision: &Decision, running: &[Value]) -> Self {
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let victims: Vec<&Value> =
            running.iter().filter(|pod| decision.victims.contains(&name(pod))).collect();
        let priority = |pod: &Value| match pod["spec"]["priorityClassName"].as_str() {
            Some("low") => -5,
            Some("middle") => 100,
            Some("high" | "polite") => 1000,
            _ => 0,
        };
        let highest = victims.iter().map(|pod| priority(pod)).max();
        let of_highest = victims.iter().filter(|pod| Some(priority(pod)) == highest);
        Self {
            highest,
            sum: victims.iter().map(|pod| priority(pod)).sum(),
            count: victims.len(),
            since: of_highest
                .filter_map(|pod| pod["status"]["startTime"].as_str().map(str::to_owned))
                .min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bound(node: &str, scores: &[(&str, &str, i64)]) -> Decision {
        let mut decision = Decision { node: Some(node.to_owned()), ..Decision::default() };
        for (plugin, node, score) in scores {
            let nodes = decision.scores.entry((*plugin).to_owned()).or_default();
            nodes.insert((*node).to_owned(), *score);
        }
        decision
    }

    fn parts(theirs: &Decision, ours: &Decision) -> Vec<Part> {
        differences(theirs, ours, &[]).iter().map(|difference| difference.part).collect()
    }

    #[test]
    fn of_the_best_nodes_any_may_be_taken() {
        let scores = [("A", "n-1", 5), ("A", "n-2", 3), ("B", "n-2", 2), ("A", "n-3", 4)];
        let theirs = bound("n-1", &scores);
        assert_eq!(parts(&theirs, &bound("n-2", &scores)), []);
        assert_eq!(parts(&theirs, &bound("n-3", &scores)), [Part::Choice]);
        let other = [("A", "n-1", 5), ("A", "n-2", 3), ("B", "n-2", 2), ("A", "n-3", 3)];
        assert_eq!(parts(&theirs, &bound("n-1", &other)), [Part::Score]);
        assert_eq!(parts(&bound("n-1", &[]), &bound("n-2", &[])), [Part::Choice]);
        assert_eq!(parts(&theirs, &Decision::default()), [Part::Fits]);
    }

    #[test]
    fn what_is_lost_is_compared_and_not_who() {
        let pod = |name: &str, class: &str| json!({"metadata": {"name": name}, "spec": {"priorityClassName": class}});
        let running = [pod("a", "low"), pod("b", "low"), pod("c", "middle")];
        let of = |name: &str| Decision { victims: [name.to_owned()].into(), ..Decision::default() };
        let compare = |ours: &str| differences(&of("a"), &of(ours), &running).len();
        assert_eq!([compare("b"), compare("c")], [0, 1]);
    }
}
