//! `Policy` of `audit.k8s.io/v1`: which requests are audited, and how much of them.
//!
//! The rules are tried in order, and the first that matches decides; what none matches is not
//! audited.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::names;

use crate::authz::{Attributes, Target};
use crate::user::User;

const VERSION: &str = "audit.k8s.io/v1";

/// How much of a request is audited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who asked for what, and what came of it, without any body.
    Metadata,
    /// The same, and the body of the request.
    Request,
    /// The same, and the body of the answer.
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [(&'static str, Self); 4] = [
        ("None", Self::None),
        ("Metadata", Self::Metadata),
        ("Request", Self::Request),
        ("RequestResponse", Self::RequestResponse),
    ];
}

/// How far a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Stage {
    /// It has come, and nobody has looked at it yet.
    #[default]
    RequestReceived,
    /// The answer has begun, of a request that goes on until one side ends it.
    ResponseStarted,
    /// It was answered.
    ResponseComplete,
    /// The server has failed over it.
    Panic,
}

impl Stage {
    const ALL: [(&'static str, Self); 4] = [
        ("RequestReceived", Self::RequestReceived),
        ("ResponseStarted", Self::ResponseStarted),
        ("ResponseComplete", Self::ResponseComplete),
        ("Panic", Self::Panic),
    ];
}

/// Some of the stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stages(u8);

impl Stages {
    pub(super) fn contain(self, stage: Stage) -> bool {
        self.0 >> stage as u8 & 1 == 1
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn named(names: &[String]) -> Self {
        let known = Stage::ALL.iter().filter(|(name, _)| names.iter().any(|n| n == name));
        known.fold(Self::default(), |all, (_, stage)| Self(all.0 | 1 << *stage as u8))
    }
}

/// What a policy says about one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) level: Level,
    /// The stages of which nothing is told.
    pub(super) omitted: Stages,
    pub(super) omit_managed_fields: bool,
}

/// Which requests are audited, and how much of them.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<(Rule, Verdict)>,
    otherwise: Verdict,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("failed to read file path {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not a document of the kind.
    #[error("failed decoding: {0}")]
    Malformed(String),
    /// It is of another kind or version.
    #[error("unknown group version field {0} in policy")]
    Version(String),
    /// It says what it may not say.
    #[error("{0}")]
    Invalid(String),
    /// It has no rules.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<String>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Policy {
    /// Reads the policy of a file.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads a policy in YAML or JSON. Fields that a policy does not have are passed over.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let document: Document = serde_saphyr::from_str(text)
            .map_err(|error| PolicyError::Malformed(error.to_string()))?;
        if document.api_version != VERSION || document.kind != "Policy" {
            let (group, version) = document.api_version.split_once('/').unwrap_or_default();
            let found = format!("{group}/{version}, Kind={}", document.kind);
            return Err(PolicyError::Version(found));
        }
        let mistakes = document.mistakes();
        if !mistakes.is_empty() {
            let texts: Vec<String> = mistakes.iter().map(FieldError::message).collect();
            return Err(PolicyError::Invalid(match texts.as_slice() {
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            }));
        }
        if document.rules.is_empty() {
            return Err(PolicyError::Empty);
        }
        Ok(document.into_policy())
    }

    /// A policy that audits all requests in the same way.
    pub fn of_all(level: Level) -> Self {
        let verdict = Verdict { level, ..Verdict::default() };
        Self { rules: vec![(Rule::default(), verdict)], otherwise: Verdict::default() }
    }

    /// What it says about a request, which comes from nobody if its credentials are not good.
    pub(super) fn judge(&self, user: Option<&User>, asked: &Attributes<'_>) -> Verdict {
        let mut rules = self.rules.iter();
        let matching = rules.find(|(rule, _)| rule.matches(user, asked));
        matching.map_or(self.otherwise, |(_, verdict)| *verdict)
    }
}

impl Document {
    fn into_policy(self) -> Policy {
        let omitted = Stages::named(&self.omit_stages);
        let otherwise =
            Verdict { level: Level::None, omitted, omit_managed_fields: self.omit_managed_fields };
        let with_verdict = |rule: Rule| {
            let level = Level::ALL.iter().find(|(name, _)| *name == rule.level);
            let verdict = Verdict {
                level: level.map_or(Level::None, |(_, level)| *level),
                omitted: omitted.and(Stages::named(&rule.omit_stages)),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
            };
            (rule, verdict)
        };
        Policy { rules: self.rules.into_iter().map(with_verdict).collect(), otherwise }
    }

    fn mistakes(&self) -> Vec<FieldError> {
        let mut mistakes = wrong_stages(&self.omit_stages, "omitStages");
        for (index, rule) in self.rules.iter().enumerate() {
            mistakes.extend(rule.mistakes(&format!("rules[{index}]")));
        }
        mistakes
    }
}

fn wrong_stages(stages: &[String], field: &str) -> Vec<FieldError> {
    let known = Stage::ALL.map(|(name, _)| name);
    let wrong = stages.iter().enumerate().filter(|(_, stage)| !known.contains(&stage.as_str()));
    let why = format!("allowed stages are {}", known.join(","));
    wrong.map(|(n, s)| FieldError::invalid(format!("{field}[{n}]"), &json!(s), &why)).collect()
}

impl Rule {
    fn mistakes(&self, at: &str) -> Vec<FieldError> {
        let mut mistakes = Vec::new();
        let levels = Level::ALL.map(|(name, _)| name);
        let level = format!("{at}.level");
        if self.level.is_empty() {
            mistakes.push(FieldError::required(level, ""));
        } else if !levels.contains(&self.level.as_str()) {
            mistakes.push(FieldError::not_supported(level, &json!(self.level), &levels));
        }
        let urls = format!("{at}.nonResourceURLs");
        for (index, url) in self.non_resource_urls.iter().enumerate().filter(|(_, u)| *u != "*") {
            let wrong = |why| FieldError::invalid(format!("{urls}[{index}]"), &json!(url), why);
            if !url.starts_with('/') {
                mistakes.push(wrong("non-resource URL rules must begin with a '/' character"));
            }
            if url.find('*').is_some_and(|star| star + 1 < url.len()) {
                let why = "non-resource URL wildcards '*' must be the final character of the rule";
                mistakes.push(wrong(why));
            }
        }
        mistakes.extend(self.resources.iter().flat_map(|resources| resources.mistakes(at)));
        mistakes.extend(wrong_stages(&self.omit_stages, &format!("{at}.omitStages")));
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if !self.non_resource_urls.is_empty() && of_resources {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            mistakes.push(FieldError::invalid(urls, &json!(self.non_resource_urls), why));
        }
        mistakes
    }

    fn matches(&self, user: Option<&User>, asked: &Attributes<'_>) -> bool {
        let is_named = |names: &[String], name: &str| names.iter().any(|n| n == name);
        let by_user = self.users.is_empty() || user.is_some_and(|u| is_named(&self.users, &u.name));
        let of_group = |user: &User| user.groups.iter().any(|g| is_named(&self.user_groups, g));
        let by_group = self.user_groups.is_empty() || user.is_some_and(of_group);
        let by_verb = self.verbs.is_empty() || is_named(&self.verbs, asked.verb);
        if !(by_user && by_group && by_verb) {
            return false;
        }
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        match asked.target {
            Target::Resource { group, resource, subresource, namespace, name } => {
                let place = Place { group, resource, subresource, name };
                let in_namespace =
                    self.namespaces.is_empty() || is_named(&self.namespaces, namespace);
                let is_resource =
                    self.resources.is_empty() || self.resources.iter().any(|r| r.matches(place));
                match of_resources {
                    true => in_namespace && is_resource,
                    false => self.non_resource_urls.is_empty(),
                }
            }
            Target::Path(path) => {
                let urls = &self.non_resource_urls;
                !of_resources && (urls.is_empty() || urls.iter().any(|url| covers(url, path)))
            }
        }
    }
}

/// What a resource request is about.
#[derive(Clone, Copy)]
struct Place<'a> {
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    name: &'a str,
}

impl GroupResources {
    fn mistakes(&self, at: &str) -> Vec<FieldError> {
        let mut mistakes = Vec::new();
        let group = &self.group;
        if !group.is_empty() && group != "*" {
            let wrong = names::dns1123_subdomain(group);
            if !wrong.is_empty() {
                let field = format!("{at}.resources.group");
                mistakes.push(FieldError::invalid(field, &json!(group), &wrong.join(",")));
            }
        }
        if !self.resource_names.is_empty() && self.resources.is_empty() {
            let field = format!("{at}.resources.resourceNames");
            let why = "using resourceNames requires at least one resource";
            let names: Value = json!(self.resource_names);
            mistakes.push(FieldError::invalid(field, &names, why));
        }
        mistakes
    }

    fn matches(&self, place: Place<'_>) -> bool {
        if self.group != "*" && self.group != place.group {
            return false;
        }
        let is_named =
            self.resource_names.is_empty() || self.resource_names.iter().any(|n| n == place.name);
        self.resources.is_empty()
            || is_named && self.resources.iter().any(|resource| is_of(resource, place))
    }
}

/// Whether what a rule names is what a request is about: `pods`, `pods/log`, `pods/*`, `*/log`, `*`.
fn is_of(named: &str, Place { resource, subresource, .. }: Place<'_>) -> bool {
    match named.split_once('/') {
        _ if named == "*" => true,
        None => subresource.is_empty() && named == resource,
        Some(("*", sub)) if !subresource.is_empty() && sub == subresource => true,
        Some((whole, "*")) if whole == resource => true,
        Some((whole, sub)) => !subresource.is_empty() && (whole, sub) == (resource, subresource),
    }
}

/// Whether what a rule names covers a path.
fn covers(url: &str, path: &str) -> bool {
    url == "*" || url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}

#[cfg(test)]
mod tests;
