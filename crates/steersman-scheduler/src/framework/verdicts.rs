//! What was found out about nodes, for Pods that ask for the same.
//!
//! Pods come by the hundred from one template, and between two decisions few nodes change. What
//! [local](super::Plugin::is_local) plug-ins say of the others, and who would have to go from them, is then
//! the same as for the Pod before: it is remembered until a node changes, or other Pods are nominated
//! for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{NodeAffinity, Toleration};

use super::class_resources::ClassResources;
use super::cycle::Cycle;
use super::plugin::Candidate;
use super::refusal::{Code, Refusal};
use super::requests::PodRequests;

/// So many kinds of Pods are remembered.
const KINDS_MAX: usize = 16;
/// Stands for a score that is not known.
const UNKNOWN: i64 = i64::MIN;

/// Whether a node can run a Pod; otherwise who refuses it, and why.
pub(super) type Verdict = Result<(), (&'static str, Refusal)>;

/// What came of looking who has to go from a node.
#[derive(Clone, Debug)]
pub(crate) enum Trial {
    /// There is room without these.
    Candidate(Arc<Candidate>),
    /// There would be none.
    Refused(Arc<Refusal>),
    /// That is plain without trying it out, and nobody has asked why.
    Hopeless,
}

/// What a Pod asks of its node, and who is asked about that.
#[derive(Debug)]
struct Wish {
    profile: Arc<str>,
    skipped_filters: u64,
    priority: i32,
    requests: PodRequests,
    class_resources: Option<ClassResources>,
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    node_affinity: Option<NodeAffinity>,
    tolerations: Option<Vec<Toleration>>,
}

impl Wish {
    fn of(cycle: &Cycle<'_>) -> Self {
        let spec = cycle.spec();
        Self {
            profile: Arc::clone(cycle.profile.name()),
            skipped_filters: cycle.skipped_filters,
            priority: cycle.info.priority,
            requests: cycle.info.requests.clone(),
            class_resources: cycle.state.get().cloned(),
            node_name: spec.node_name.clone(),
            node_selector: spec.node_selector.clone(),
            node_affinity: node_affinity(cycle).cloned(),
            tolerations: spec.tolerations.clone(),
        }
    }

    fn is_of(&self, cycle: &Cycle<'_>) -> bool {
        let spec = cycle.spec();
        self.skipped_filters == cycle.skipped_filters
            && self.priority == cycle.info.priority
            && self.requests == cycle.info.requests
            && self.class_resources.as_ref() == cycle.state.get()
            && self.profile == *cycle.profile.name()
            && self.node_name == spec.node_name
            && self.node_selector == spec.node_selector
            && self.node_affinity.as_ref() == node_affinity(cycle)
            && self.tolerations == spec.tolerations
    }
}

fn node_affinity<'a>(cycle: &Cycle<'a>) -> Option<&'a NodeAffinity> {
    cycle.spec().affinity.as_ref()?.node_affinity.as_ref()
}

/// What filters said of a node.
#[derive(Clone, Copy, Debug, Default)]
enum Said {
    #[default]
    Nothing,
    Fits,
    /// That refusal of the kind, since many nodes have the same.
    Refused(u8),
}

/// What was found out for Pods of one kind. Lists go by the places of nodes, and may be too short.
#[derive(Debug)]
struct Kind {
    wish: Wish,
    verdicts: Vec<Said>,
    refusals: Vec<(&'static str, Refusal)>,
    /// By the place of the plug-in in the profile.
    scores: BTreeMap<usize, Vec<i64>>,
    trials: Vec<Option<Trial>>,
    /// The versions of the budgets that the trials were made with.
    budgets: Vec<String>,
    /// How many nominations had changed before verdicts and trials.
    nominations: u64,
}

impl Kind {
    fn new(cycle: &Cycle<'_>) -> Self {
        let (verdicts, refusals, scores, trials, budgets) = Default::default();
        let nominations = cycle.nominator.changes();
        Self { wish: Wish::of(cycle), verdicts, refusals, scores, trials, budgets, nominations }
    }

    /// Forgets what depends on nominations that have changed.
    fn catch_up(&mut self, cycle: &Cycle<'_>) {
        match cycle.nominator.changed_since(self.nominations) {
            Some(nodes) => nodes
                .filter_map(|node| cycle.snapshot.place(node))
                .for_each(|place| self.forget_room(place)),
            None => {
                self.verdicts.clear();
                self.trials.clear();
            }
        }
        self.nominations = cycle.nominator.changes();
    }

    /// Forgets whether there is room at a place.
    fn forget_room(&mut self, place: usize) {
        if let Some(said) = self.verdicts.get_mut(place) {
            *said = Said::Nothing;
        }
        if let Some(trial) = self.trials.get_mut(place) {
            *trial = None;
        }
    }
}

/// What was found out about nodes. It follows from them, so it makes no difference between two snapshots.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<Vec<Kind>>);

impl Verdicts {
    /// What was found out for Pods like this one.
    pub(super) fn of(&self, cycle: &Cycle<'_>) -> Remembered<'_> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kinds.iter().position(|kind| kind.wish.is_of(cycle)) {
            Some(at) => {
                kinds[..=at].rotate_right(1);
                kinds[0].catch_up(cycle);
            }
            None => {
                kinds.truncate(KINDS_MAX - 1);
                kinds.insert(0, Kind::new(cycle));
            }
        }
        let nominated = cycle.nominator.node_of(&cycle.info.uid);
        let own = nominated.and_then(|node| cycle.snapshot.place(node));
        Remembered { kinds, own }
    }

    /// The node at this place has changed.
    pub(super) fn forget(&mut self, place: usize) {
        for kind in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            kind.forget_room(place);
            for score in kind.scores.values_mut().filter_map(|scores| scores.get_mut(place)) {
                *score = UNKNOWN;
            }
        }
    }
}

impl Clone for Verdicts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Verdicts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What was found out for Pods of one kind.
pub(crate) struct Remembered<'a> {
    /// All kinds; the one is the first.
    kinds: MutexGuard<'a, Vec<Kind>>,
    /// Where room is being made for the Pod itself: others of its kind expect it there, so that
    /// nothing is known about that place.
    own: Option<usize>,
}

impl Remembered<'_> {
    /// What filters said of the node at a place.
    pub(super) fn verdict(&self, place: usize) -> Option<Verdict> {
        let kind = &self.kinds[0];
        match kind.verdicts.get(place)? {
            _ if self.own == Some(place) => None,
            Said::Nothing => None,
            Said::Fits => Some(Ok(())),
            Said::Refused(at) => Some(Err(kind.refusals[usize::from(*at)].clone())),
        }
    }

    /// Remembers what filters said.
    pub(super) fn judged(&mut self, place: usize, verdict: &Verdict) {
        if self.own == Some(place) {
            return;
        }
        let kind = &mut self.kinds[0];
        let said = match verdict {
            Ok(()) => Said::Fits,
            Err((_, refusal)) if refusal.code == Code::Error => return,
            Err(refused) => {
                let known = kind.refusals.iter().position(|it| it == refused);
                let at = known.unwrap_or(kind.refusals.len());
                let Ok(said) = u8::try_from(at).map(Said::Refused) else { return };
                if known.is_none() {
                    kind.refusals.push(refused.clone());
                }
                said
            }
        };
        note(&mut kind.verdicts, place, said);
    }

    /// The scores that a plug-in gives the nodes at these places; it is asked for what is not known.
    pub(super) fn scores(
        &mut self,
        plugin: usize,
        places: &[usize],
        score: impl Fn(usize) -> i64,
    ) -> impl Iterator<Item = i64> {
        let known = self.kinds[0].scores.entry(plugin).or_default();
        places.iter().map(move |place| {
            if *place >= known.len() {
                known.resize(*place + 1, UNKNOWN);
            }
            let known = &mut known[*place];
            if *known == UNKNOWN {
                *known = score(*place);
            }
            *known
        })
    }

    /// Forgets who would have to go if budgets are not of these versions any more.
    pub(crate) fn with_budgets(&mut self, versions: Vec<String>) {
        let kind = &mut self.kinds[0];
        if kind.budgets != versions {
            kind.budgets = versions;
            kind.trials.clear();
        }
    }

    /// Who would have to go from the node at a place.
    pub(crate) fn trial(&self, place: usize) -> Option<&Trial> {
        let trial = self.kinds[0].trials.get(place)?.as_ref();
        trial.filter(|_| self.own != Some(place))
    }

    /// Remembers who would.
    pub(crate) fn tried(&mut self, place: usize, trial: &Trial) {
        if self.own != Some(place) {
            note(&mut self.kinds[0].trials, place, Some(trial.clone()));
        }
    }
}

fn note<T: Clone + Default>(list: &mut Vec<T>, place: usize, what: T) {
    if place >= list.len() {
        list.resize(place + 1, T::default());
    }
    list[place] = what;
}
