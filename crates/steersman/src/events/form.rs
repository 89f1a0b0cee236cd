//! In which of its two forms an event is written.

/// How the events of a recorder are written, and by whose rules; see
/// [`Recorder::form`](super::Recorder::form) and
/// [`Controller::event_form`](crate::Controller::event_form).
///
/// [`Series`](Self::Series) is the default since it is what controller-runtime gives a controller
/// (`GetEventRecorder`); its recorder of the older form (`GetEventRecorderFor`) is deprecated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventForm {
    /// `events.k8s.io/v1`, as kube-scheduler writes: with `eventTime` and `action`, and a `series`
    /// once it happens again. A series ends after some minutes of silence.
    #[default]
    Series,
    /// `v1`, as kube-controller-manager and the kubelet write: with `source`, `firstTimestamp`,
    /// `lastTimestamp` and a `count`, which goes on for as long as it is remembered. This form has
    /// no action and no related object.
    Counted,
}
