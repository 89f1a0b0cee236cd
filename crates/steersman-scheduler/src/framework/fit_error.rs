//! What a Pod is told that no node can run, in Kubernetes' words.

use std::collections::{BTreeMap, BTreeSet};

use super::refusal::{Code, NodeRefusals, Refusal};

/// Why no node can run a Pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct FitError {
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// Why each of them cannot.
    pub(crate) refusals: NodeRefusals,
    /// Who refused: only what concerns them can help the Pod.
    pub(crate) plugins: BTreeSet<&'static str>,
    /// Who of them waits for something outside.
    pub(crate) pending: BTreeSet<&'static str>,
    /// Why no node needed to be looked at.
    pub(crate) pre_filter: Option<String>,
    /// How it went to make room.
    pub(crate) post_filter: Option<String>,
}

impl FitError {
    /// Notes who refused the Pod.
    pub(crate) fn refused_by(&mut self, plugin: &'static str, refusal: &Refusal) {
        match refusal.code {
            Code::Pending => self.pending.insert(plugin),
            _ => self.plugins.insert(plugin),
        };
    }

    /// What the Pod is told.
    pub(crate) fn message(&self) -> String {
        let mut message = format!("0/{} nodes are available:", self.nodes);
        match &self.pre_filter {
            Some(why) => message += &format!(" {why}."),
            None => message += &self.reasons(),
        }
        if let Some(why) = &self.post_filter {
            message += &format!(" {why}");
        }
        message
    }

    /// Every reason with the number of nodes that it holds for.
    fn reasons(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut looked_at = 0;
        // Mostly thousands of nodes have the same reason.
        let mut last = ("", 0);
        for refusal in self.refusals.of_nodes() {
            looked_at += 1;
            for reason in refusal.reasons() {
                if last.0 != reason {
                    *counts.entry(last.0).or_default() += last.1;
                    last = (reason, 0);
                }
                last.1 += 1;
            }
        }
        *counts.entry(last.0).or_default() += last.1;
        counts.retain(|_, count| *count > 0);
        let absent = self.nodes.saturating_sub(looked_at);
        if absent > 0 {
            for reason in self.refusals.absent.iter().flat_map(Refusal::reasons) {
                *counts.entry(reason).or_default() += absent;
            }
        }
        let counted = counts.iter().map(|(reason, count)| format!("{count} {reason}"));
        let mut counted: Vec<String> = counted.collect();
        counted.sort();
        match counted.is_empty() {
            true => String::new(),
            false => format!(" {}.", counted.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted_as_texts() {
        let mut error = FitError { nodes: 5, ..FitError::default() };
        for place in 0..5 {
            let reason = if place < 2 { "Insufficient cpu" } else { "node(s) were unschedulable" };
            error.refusals.set(place, Refusal::unschedulable(reason));
        }
        let expected = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.";
        assert_eq!(error.message(), expected);
        error.post_filter = Some("preemption: nothing.".into());
        assert_eq!(error.message(), format!("{expected} preemption: nothing."));
    }

    #[test]
    fn what_keeps_a_pod_from_every_node_is_told_once() {
        let why = "persistentvolumeclaim \"data\" not found";
        let error = FitError { nodes: 3, pre_filter: Some(why.into()), ..FitError::default() };
        assert_eq!(error.message(), format!("0/3 nodes are available: {why}."));
    }

    #[test]
    fn nodes_that_were_not_looked_at_have_a_common_reason() {
        let mut error = FitError { nodes: 4, ..FitError::default() };
        error.refusals.set(1, Refusal::unschedulable("Too many pods"));
        error.refusals.absent = Some(Refusal::unresolvable("no"));
        assert_eq!(error.message(), "0/4 nodes are available: 1 Too many pods, 3 no.");
    }
}
