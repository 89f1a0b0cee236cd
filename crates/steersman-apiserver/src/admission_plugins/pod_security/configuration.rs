//! What is asked where no label says anything, and who is not asked.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::names;

use super::policy::{LEVELS, Level, LevelVersion, Policy, VERSIONS, Version};
use crate::admission_plugins::configuration;

const KINDS: &[(&str, &str)] = &[
    ("pod-security.admission.config.k8s.io/v1", "PodSecurityConfiguration"),
    ("pod-security.admission.config.k8s.io/v1beta1", "PodSecurityConfiguration"),
    ("pod-security.admission.config.k8s.io/v1alpha1", "PodSecurityConfiguration"),
];

/// How the plug-in is set up; by default nothing is asked, and nobody is exempt.
#[derive(Debug)]
pub(super) struct Configuration {
    /// What is asked where no label says anything.
    pub(super) defaults: Policy,
    /// The namespaces in which nobody is asked.
    pub(super) exempt_namespaces: Vec<String>,
    /// The users who are not asked.
    pub(super) exempt_users: Vec<String>,
    /// The runtime classes of Pods that are not looked at.
    pub(super) exempt_runtime_classes: Vec<String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            defaults: Policy::PRIVILEGED,
            exempt_namespaces: Vec::new(),
            exempt_users: Vec::new(),
            exempt_runtime_classes: Vec::new(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    defaults: Defaults,
    exemptions: Exemptions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Defaults {
    enforce: String,
    enforce_version: String,
    audit: String,
    audit_version: String,
    warn: String,
    warn_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Exemptions {
    usernames: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl Configuration {
    /// What a document says.
    pub(super) fn read(document: &Value) -> Result<Self, String> {
        let Document { defaults, exemptions } = configuration::read(document, KINDS)?;
        let mut mistakes = Vec::new();
        let mut read = |mode: &str, level: &str, version: &str| {
            level_version(&format!("defaults.{mode}"), level, version, &mut mistakes)
        };
        let enforce = read("enforce", &defaults.enforce, &defaults.enforce_version);
        let warn = read("warn", &defaults.warn, &defaults.warn_version);
        let audit = read("audit", &defaults.audit, &defaults.audit_version);
        let Exemptions { usernames, namespaces, runtime_classes } = exemptions;
        check("namespaces", &namespaces, names::dns1123_label, &mut mistakes);
        check("runtimeClasses", &runtime_classes, names::dns1123_subdomain, &mut mistakes);
        check("usernames", &usernames, some_name, &mut mistakes);
        configuration::sound(&mistakes)?;
        Ok(Self {
            defaults: Policy { enforce, audit, warn },
            exempt_namespaces: namespaces,
            exempt_users: usernames,
            exempt_runtime_classes: runtime_classes,
        })
    }

    pub(super) fn exempts_namespace(&self, name: &str) -> bool {
        contains(&self.exempt_namespaces, name)
    }

    pub(super) fn exempts_user(&self, name: &str) -> bool {
        contains(&self.exempt_users, name)
    }

    pub(super) fn exempts_runtime_class(&self, name: &str) -> bool {
        contains(&self.exempt_runtime_classes, name)
    }
}

fn contains(names: &[String], name: &str) -> bool {
    !name.is_empty() && names.iter().any(|exempt| exempt == name)
}

/// The level and version of a mode; where nothing is said, nothing is asked.
fn level_version(
    field: &str,
    level: &str,
    version: &str,
    mistakes: &mut Vec<FieldError>,
) -> LevelVersion {
    let mut read = LevelVersion { level: Level::Privileged, version: Version::Latest };
    match Level::parse(level) {
        Some(level) => read.level = level,
        None if level.is_empty() => {}
        None => mistakes.push(FieldError::invalid(field, &level.into(), LEVELS)),
    }
    match Version::parse(version) {
        Some(version) => read.version = version,
        None if version.is_empty() => {}
        None => {
            let field = format!("{field}-version");
            mistakes.push(FieldError::invalid(field, &version.into(), VERSIONS));
        }
    }
    read
}

/// Finds names that are none, or stand there twice.
fn check(
    list: &str,
    listed: &[String],
    wrong: fn(&str) -> Vec<String>,
    mistakes: &mut Vec<FieldError>,
) {
    let mut seen = BTreeSet::new();
    for (n, name) in listed.iter().enumerate() {
        let field = format!("exemptions.{list}[{n}]");
        let value = Value::from(name.as_str());
        let why = wrong(name);
        if !why.is_empty() {
            mistakes.push(FieldError::invalid(field, &value, &why.join(", ")));
        } else if !seen.insert(name) {
            mistakes.push(FieldError::duplicate(field, &value));
        }
    }
}

fn some_name(name: &str) -> Vec<String> {
    match name {
        "" => vec!["username must not be empty".to_owned()],
        _ => Vec::new(),
    }
}
