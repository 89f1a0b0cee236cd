//! Why a Pod cannot go to a node, or nowhere.

use std::borrow::Cow;

/// What a refusal means for what is tried next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Not now; removing other Pods might help.
    Unschedulable,
    /// Not now, and removing other Pods would not help.
    UnschedulableAndUnresolvable,
    /// Something outside of the scheduler has to happen first; the Pod is tried again at once then.
    Pending,
    /// Something went wrong: the Pod is tried again after a while.
    Error,
}

impl Code {
    /// What Kubernetes calls it, in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Self::Pending => "Pending",
            Self::Error => "Error",
        }
    }
}

/// Why a plug-in refuses a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What follows from it.
    pub code: Code,
    /// Most refusals have one reason, which then needs no memory of its own.
    reason: Cow<'static, str>,
    more: Vec<Cow<'static, str>>,
}

impl Refusal {
    /// Removing other Pods might help.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unschedulable, reason)
    }

    /// Removing other Pods would not help.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::UnschedulableAndUnresolvable, reason)
    }

    /// Something went wrong.
    pub fn error(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Error, reason)
    }

    /// A refusal for one reason.
    pub fn new(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, reason: reason.into(), more: Vec::new() }
    }

    /// A refusal for several reasons; none is one if there are none.
    pub fn all(code: Code, reasons: Vec<Cow<'static, str>>) -> Option<Self> {
        let mut reasons = reasons.into_iter();
        let reason = reasons.next()?;
        Some(Self { code, reason, more: reasons.collect() })
    }

    /// The same for more reasons.
    #[must_use]
    pub fn with(mut self, more: impl Iterator<Item = Cow<'static, str>>) -> Self {
        self.more.extend(more);
        self
    }

    /// Its reasons.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.reason).chain(&self.more).map(AsRef::as_ref)
    }

    /// Its reasons in one text.
    pub fn message(&self) -> String {
        self.reasons().collect::<Vec<_>>().join(", ")
    }

    /// The same with something before its text.
    #[must_use]
    pub fn prefixed(&self, prefix: &str) -> Self {
        Self::new(self.code, format!("{prefix}{}", self.message()))
    }

    /// Whether the Pod does not fit, in contrast to something having gone wrong.
    pub fn is_rejection(&self) -> bool {
        self.code != Code::Error
    }
}

/// Why each node was refused.
#[derive(Clone, Debug, Default)]
pub struct NodeRefusals {
    /// By place in the snapshot; mostly every place has one if any has.
    nodes: Vec<Option<Refusal>>,
    /// That of nodes that were not looked at.
    pub(crate) absent: Option<Refusal>,
}

impl NodeRefusals {
    /// Why the node at this place of the snapshot was refused.
    pub fn at(&self, place: usize) -> Option<&Refusal> {
        self.nodes.get(place).and_then(Option::as_ref).or(self.absent.as_ref())
    }

    /// Notes why the node at this place was refused.
    pub(crate) fn set(&mut self, place: usize, refusal: Refusal) {
        if place >= self.nodes.len() {
            self.nodes.resize(place + 1, None);
        }
        self.nodes[place] = Some(refusal);
    }

    /// Why each of the nodes was refused that were looked at.
    pub(crate) fn of_nodes(&self) -> impl Iterator<Item = &Refusal> {
        self.nodes.iter().flatten()
    }
}
