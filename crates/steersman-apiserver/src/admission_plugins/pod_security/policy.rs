//! What a namespace asks of its Pods: a level and a version for each of the three modes, read from
//! its labels.

use std::fmt::{self, Display};

use serde_json::Value;
use steersman_rules::field::FieldError;

use super::subject::text;

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";
const AUDIT: &str = "pod-security.kubernetes.io/audit";
const AUDIT_VERSION: &str = "pod-security.kubernetes.io/audit-version";
const WARN: &str = "pod-security.kubernetes.io/warn";
const WARN_VERSION: &str = "pod-security.kubernetes.io/warn-version";

pub(super) const LEVELS: &str = "must be one of privileged, baseline, restricted";
pub(super) const VERSIONS: &str = "must be \"latest\" or \"v1.x\"";

/// How much is asked of a Pod; each level asks all that the ones before ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Nothing.
    Privileged,
    /// No known way to break out of a container.
    Baseline,
    /// All that good practice asks.
    Restricted,
}

impl Level {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

/// The version of Kubernetes whose checks hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// The newest there are, also those that a later server knows.
    Latest,
    /// `v1.<minor>`
    Minor(i64),
}

impl Version {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let plain = minor.bytes().all(|byte| byte.is_ascii_digit());
        let canonical = plain && (minor.len() == 1 || !minor.starts_with('0'));
        minor.parse().ok().filter(|_| canonical).map(Self::Minor)
    }
}

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// A level as it was in a version, such as `restricted:v1.30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

impl LevelVersion {
    /// Nothing, in any version.
    const PRIVILEGED: Self = Self { level: Level::Privileged, version: Version::Latest };

    /// Whether both ask the same: nothing is the same in all versions.
    fn is_equivalent_to(self, other: Self) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

impl Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

/// What a namespace asks of its Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// A Pod that violates this is refused.
    pub(super) enforce: LevelVersion,
    /// Who writes a Pod that violates this, or a template of one, leaves a trace in the audit log.
    pub(super) audit: LevelVersion,
    /// Who writes a Pod that violates this, or a template of one, is warned.
    pub(super) warn: LevelVersion,
}

impl Policy {
    /// What is asked where nobody asks anything.
    pub(super) const PRIVILEGED: Self = Self {
        enforce: LevelVersion::PRIVILEGED,
        audit: LevelVersion::PRIVILEGED,
        warn: LevelVersion::PRIVILEGED,
    };

    /// Whether nothing is asked.
    pub(super) fn is_privileged(&self) -> bool {
        self.is_equivalent_to(&Self::PRIVILEGED)
    }

    /// What a namespace asks in vain, which is exempt: the modes that its labels set and that ask
    /// anything, such as `enforce=baseline:latest, warn=restricted:latest`.
    pub(super) fn set_in_vain(&self, labels: &Value, defaults: &Self) -> Option<String> {
        if self.is_privileged() || self.is_equivalent_to(defaults) {
            return None;
        }
        let modes = [
            ("enforce", self.enforce, [ENFORCE, ENFORCE_VERSION]),
            ("audit", self.audit, [AUDIT, AUDIT_VERSION]),
            ("warn", self.warn, [WARN, WARN_VERSION]),
        ];
        let is_set = |keys: [&str; 2]| keys.into_iter().any(|key| labels.get(key).is_some());
        let set = modes
            .into_iter()
            .filter(|(_, at, keys)| at.level != Level::Privileged && is_set(*keys));
        let set: Vec<String> = set.map(|(mode, at, _)| format!("{mode}={at}")).collect();
        Some(set.join(", "))
    }

    /// Whether both ask the same.
    fn is_equivalent_to(&self, other: &Self) -> bool {
        self.enforce.is_equivalent_to(other.enforce)
            && self.audit.is_equivalent_to(other.audit)
            && self.warn.is_equivalent_to(other.warn)
    }

    /// What the labels of a namespace ask, and what is wrong with them. A wrong level to enforce
    /// counts as the strictest, any other wrong level as none, a wrong version as the latest.
    pub(super) fn of_labels(labels: &Value, defaults: &Self) -> (Self, Vec<FieldError>) {
        let mut labels = Labels { labels, mistakes: Vec::new() };
        let mut policy = *defaults;
        let enforce = labels.level(ENFORCE);
        if let Some(level) = enforce {
            policy.enforce.level = level.unwrap_or(Level::Restricted);
        }
        labels.version(ENFORCE_VERSION, &mut policy.enforce);
        if let Some(level) = labels.level(AUDIT) {
            policy.audit.level = level.unwrap_or(Level::Privileged);
        }
        labels.version(AUDIT_VERSION, &mut policy.audit);
        let warn = labels.level(WARN);
        if let Some(level) = warn {
            policy.warn.level = level.unwrap_or(Level::Privileged);
        }
        let versioned = labels.version(WARN_VERSION, &mut policy.warn);
        // Whoever is refused Pods is warned of workloads whose Pods would be.
        let enforced = enforce.flatten().is_some() && policy.enforce.level > policy.warn.level;
        if warn.is_none() && enforced {
            policy.warn.level = policy.enforce.level;
            if !versioned {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, labels.mistakes)
    }
}

/// The labels of a namespace, and what was wrong with those that were read.
struct Labels<'a> {
    labels: &'a Value,
    mistakes: Vec<FieldError>,
}

impl Labels<'_> {
    /// The level in a label, if there is such a label and if it is one.
    fn level(&mut self, label: &'static str) -> Option<Option<Level>> {
        self.read(label, LEVELS, Level::parse)
    }

    /// Reads the version in a label, and says whether there is such a label.
    fn version(&mut self, label: &'static str, into: &mut LevelVersion) -> bool {
        let read = self.read(label, VERSIONS, Version::parse);
        if let Some(version) = read {
            into.version = version.unwrap_or(Version::Latest);
        }
        read.is_some()
    }

    fn read<T>(
        &mut self,
        label: &'static str,
        why: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> Option<Option<T>> {
        let value = text(self.labels.get(label)?);
        let parsed = parse(value);
        if parsed.is_none() {
            let field = format!("metadata.labels[{label}]");
            self.mistakes.push(FieldError::invalid(field, &value.into(), why));
        }
        Some(parsed)
    }
}
