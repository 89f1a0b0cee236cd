//! Conditions: what an object's status says for people and programs to wait for.
//!
//! The rules of Kubernetes' `metav1.Condition`: one condition per type, `lastTransitionTime`
//! changes only with `status`, `observedGeneration` tells which specification was looked at.
//!
//! ```
//! use steersman::conditions::{ConditionType, Conditions};
//!
//! const READY: ConditionType = ConditionType::new("Ready");
//!
//! let mut conditions = Vec::new();
//! conditions.set_condition(READY.no("Starting", "0 of 3 replicas are up"));
//! conditions.set_condition(READY.yes("AllUp", "3 of 3 replicas are up").observed(2));
//! assert!(conditions.is_condition_true("Ready"));
//! assert_eq!(conditions.len(), 1);
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::clock;

/// The API's limits.
const REASON_MAX: usize = 1024;
const MESSAGE_MAX: usize = 32_768;

/// A type of condition, such as `Ready`, from which conditions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConditionType(&'static str);

impl ConditionType {
    /// A type of this name, in CamelCase; perhaps with a prefix as in `example.com/Ready`.
    ///
    /// # Panics
    ///
    /// If the API would not accept the name. In a constant, that is an error of the compiler.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_type_name(name), "a condition's type is a word such as Ready");
        Self(name)
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// It is so.
    pub fn yes(self, reason: impl Into<String>, message: impl Into<String>) -> NewCondition {
        self.with(Status::True, reason.into(), message.into())
    }

    /// It is not so.
    pub fn no(self, reason: impl Into<String>, message: impl Into<String>) -> NewCondition {
        self.with(Status::False, reason.into(), message.into())
    }

    /// Nobody knows.
    pub fn unknown(self, reason: impl Into<String>, message: impl Into<String>) -> NewCondition {
        self.with(Status::Unknown, reason.into(), message.into())
    }

    /// It is so, or it is not.
    pub fn is(
        self,
        so: bool,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> NewCondition {
        if so { self.yes(reason, message) } else { self.no(reason, message) }
    }

    /// A reason or a message that the API would refuse is made to fit: the whole status would
    /// be lost with it.
    fn with(self, status: Status, reason: String, mut message: String) -> NewCondition {
        message.truncate(message.floor_char_boundary(MESSAGE_MAX));
        NewCondition {
            type_: self.0,
            status,
            reason: fitting_reason(reason),
            message,
            observed_generation: None,
        }
    }
}

/// What a condition can be, by the names that the API has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What is to be said, without the time since when it is so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a condition says nothing until it is set"]
pub struct NewCondition {
    type_: &'static str,
    status: Status,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

impl NewCondition {
    /// The `metadata.generation` of the object that was looked at.
    pub fn observed(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }

    /// The same, observed at this generation unless it says otherwise.
    pub(crate) fn or_observed(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = self.observed_generation.or(generation);
        self
    }

    /// The condition, so since `since`.
    pub fn since(self, since: Time) -> Condition {
        Condition {
            type_: self.type_.to_owned(),
            status: self.status.as_str().to_owned(),
            reason: self.reason,
            message: self.message,
            observed_generation: self.observed_generation,
            last_transition_time: since,
        }
    }
}

impl From<NewCondition> for Condition {
    /// The condition, so since now.
    fn from(new: NewCondition) -> Self {
        new.since(clock::now_time())
    }
}

/// Conditions, or a status that has them.
///
/// `Vec<Condition>` has this; a status of one's own gets it by two lines:
///
/// ```
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
/// # use steersman::conditions::Conditions;
/// struct AppStatus { conditions: Vec<Condition> }
///
/// impl Conditions for AppStatus {
///     fn conditions(&self) -> &[Condition] { &self.conditions }
///     fn conditions_mut(&mut self) -> &mut Vec<Condition> { &mut self.conditions }
/// }
/// ```
pub trait Conditions {
    /// All conditions.
    fn conditions(&self) -> &[Condition];

    /// All conditions, to change them.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    /// Sets a condition; tells whether that changed anything. If its status is what it was, it
    /// stays so since when it was.
    fn set_condition(&mut self, new: impl Into<Condition>) -> bool
    where
        Self: Sized,
    {
        set(self.conditions_mut(), new.into())
    }

    /// Removes the condition of a type; tells whether there was one.
    fn remove_condition(&mut self, type_: &str) -> bool {
        let before = self.conditions().len();
        self.conditions_mut().retain(|condition| condition.type_ != type_);
        self.conditions().len() < before
    }

    /// The condition of a type.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions().iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of a type is there and true.
    fn is_condition_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == "True")
    }

    /// Whether the condition of a type is there and false.
    fn is_condition_false(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == "False")
    }
}

impl Conditions for Vec<Condition> {
    fn conditions(&self) -> &[Condition] {
        self
    }

    fn conditions_mut(&mut self) -> &mut Self {
        self
    }
}

fn set(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != new;
    *old = new;
    changed
}

/// A word as `metav1.Condition` demands it: letters, digits, `_`, `,` and `:`, beginning with a
/// letter and ending with a letter, a digit or `_`.
fn fitting_reason(reason: String) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || ['_', ',', ':'].contains(&c);
    let ends = |c: char| [',', ':'].contains(&c);
    let begins = |c: char| !c.is_ascii_alphabetic();
    let ok = !reason.is_empty()
        && reason.len() <= REASON_MAX
        && reason.chars().all(fits)
        && !reason.starts_with(begins)
        && !reason.ends_with(ends);
    if ok {
        return reason;
    }
    let fitting: String = reason.chars().filter(|c| fits(*c)).take(REASON_MAX).collect();
    let fitting = fitting.trim_start_matches(begins).trim_end_matches(ends);
    tracing::debug!(reason, "condition reason is not one word; made to fit");
    if fitting.is_empty() { "Unspecified".to_owned() } else { fitting.to_owned() }
}

/// Whether this is a word, perhaps with a prefix.
const fn is_type_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > 316 {
        return false;
    }
    let mut at = 0;
    while at < bytes.len() {
        let inner = at > 0 && at + 1 < bytes.len();
        let fits = match bytes[at] {
            byte if byte.is_ascii_alphanumeric() => true,
            b'-' | b'_' | b'.' | b'/' => inner,
            _ => false,
        };
        if !fits {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: ConditionType = ConditionType::new("Ready");

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn the_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(conditions.set_condition(READY.no("Starting", "0 of 2").since(at(1))));
        assert!(conditions.set_condition(READY.no("Starting", "1 of 2").since(at(2))));
        assert_eq!(conditions[0].last_transition_time, at(1));
        assert_eq!(conditions[0].message, "1 of 2");
        assert!(conditions.set_condition(READY.yes("AllUp", "2 of 2").since(at(3))));
        assert_eq!(conditions[0].last_transition_time, at(3));
        assert!(!conditions.set_condition(READY.yes("AllUp", "2 of 2").since(at(4))));
        assert!(conditions.set_condition(READY.yes("AllUp", "2 of 2").observed(7).since(at(4))));
        assert_eq!(conditions[0].last_transition_time, at(3), "another generation, same status");
    }

    #[test]
    fn others_are_left_alone() {
        let mut conditions = Vec::new();
        let other = ConditionType::new("example.com/Other");
        conditions.set_condition(other.unknown("New", ""));
        conditions.set_condition(READY.is(false, "New", ""));
        assert!(conditions.is_condition_false("Ready") && !conditions.is_condition_true("Ready"));
        assert!(!conditions.is_condition_false("example.com/Other"));
        assert!(conditions.remove_condition("Ready") && !conditions.remove_condition("Ready"));
        assert_eq!(conditions.condition("Ready"), None);
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn reasons_are_made_to_fit_the_api() {
        for (given, fitting) in [
            ("AllUp", "AllUp"),
            ("A_b,c:d", "A_b,c:d"),
            ("all replicas up", "allreplicasup"),
            ("3Up:", "Up"),
            ("_x", "x"),
            ("", "Unspecified"),
            ("…", "Unspecified"),
        ] {
            assert_eq!(fitting_reason(given.into()), fitting, "{given}");
        }
        assert_eq!(fitting_reason("x".repeat(2000)).len(), 1024);
    }

    #[test]
    fn types_are_words() {
        assert!(is_type_name("example.com/Ready") && is_type_name("Ready"));
        for wrong in ["", "-Ready", "Ready-", "is ready", "é"] {
            assert!(!is_type_name(wrong), "{wrong}");
        }
    }
}
