//! A scenario: requests in an order, each with a stable id, that run the same on both servers.
//!
//! What a server makes up itself (uids, versions, tokens of pages) is written as a placeholder,
//! `${NAME:/json/pointer}`, and filled from what the same server answered to an earlier step
//! that [keeps](Step::keep) its answer.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_rules::patch::merge_patch;

/// Requests that run one after the other, in a namespace of their own if they need one.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The start of every id.
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// What is to be removed afterwards.
    pub(crate) tidy: Tidy,
}

/// What a scenario leaves behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tidy {
    pub(crate) namespace: Option<String>,
    /// Collections, with the selector of what is ours in them.
    pub(crate) collections: Vec<String>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) id: String,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
    /// The name under which the answer can be referred to.
    pub(crate) keep: Option<&'static str>,
    pub(crate) role: Role,
    pub(crate) subject: Subject,
}

/// What a request carries.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Empty,
    /// Placeholders are filled in.
    Text(String),
    Bytes(Vec<u8>),
    /// An answer that was kept, with a merge patch applied to it.
    Kept(&'static str, Value),
}

/// What a step is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its answers are compared.
    Compared,
    /// Its answers are compared, and if they differ in success what follows is not comparable.
    Needed,
    /// Its answers are not compared.
    Setup,
    /// It is asked again until it succeeds; its answers are not compared.
    Await,
    /// It is asked again until it answers that there is no such thing; that is compared.
    AwaitGone,
    /// It is asked again until this text is in the answer; that is compared.
    AwaitText(&'static str),
    /// A stream: it is open while the next steps run, and compared when it has ended.
    Watch,
}

impl Role {
    pub(crate) fn is_compared(self) -> bool {
        !matches!(self, Self::Setup | Self::Await)
    }
}

/// What the answer is about, which decides how it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Objects,
    Discovery,
    OpenApi,
}

/// What was kept of a server's answers.
pub(crate) type Kept = BTreeMap<&'static str, Value>;

impl Scenario {
    pub(crate) fn new(name: impl Into<String>, tidy: Tidy) -> Self {
        Self { name: name.into(), steps: Vec::new(), tidy }
    }

    /// Adds a step; its id follows the scenario's name.
    pub(crate) fn add(&mut self, mut step: Step) {
        step.id = format!("{}/{}", self.name, step.id);
        self.steps.push(step);
    }
}

impl Step {
    pub(crate) fn new(method: &'static str, id: impl Into<String>, path: &str) -> Self {
        Self {
            id: id.into(),
            method,
            path: path.to_owned(),
            headers: Vec::new(),
            body: Body::Empty,
            keep: None,
            role: Role::Compared,
            subject: Subject::Objects,
        }
    }

    pub(crate) fn get(id: impl Into<String>, path: &str) -> Self {
        Self::new("GET", id, path)
    }

    pub(crate) fn delete(id: impl Into<String>, path: &str) -> Self {
        Self::new("DELETE", id, path)
    }

    pub(crate) fn post(id: impl Into<String>, path: &str, body: impl Into<Body>) -> Self {
        Self::new("POST", id, path).body(body)
    }

    pub(crate) fn put(id: impl Into<String>, path: &str, body: impl Into<Body>) -> Self {
        Self::new("PUT", id, path).body(body)
    }

    /// A patch of the content type `application/{language}-patch+{json,yaml}`.
    pub(crate) fn patch(
        id: impl Into<String>,
        path: &str,
        language: Language,
        body: impl Into<Body>,
    ) -> Self {
        Self::new("PATCH", id, path).body(body).content_type(language.media_type())
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds to the query.
    pub(crate) fn query(mut self, query: &str) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(query);
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn content_type(mut self, value: &str) -> Self {
        self.headers.retain(|(name, _)| *name != "content-type");
        self.header("content-type", value)
    }

    pub(crate) fn accept(self, value: &str) -> Self {
        self.header("accept", value)
    }

    pub(crate) fn dry(self) -> Self {
        self.query("dryRun=All")
    }

    pub(crate) fn keep(mut self, name: &'static str) -> Self {
        self.keep = Some(name);
        self
    }

    pub(crate) fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    pub(crate) fn subject(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }

    /// The path with what this server answered before.
    pub(crate) fn filled_path(&self, kept: &Kept) -> String {
        fill(&self.path, kept)
    }

    /// The body with what this server answered before.
    pub(crate) fn filled_body(&self, kept: &Kept) -> Vec<u8> {
        match &self.body {
            Body::Empty => Vec::new(),
            Body::Text(text) => fill(text, kept).into_bytes(),
            Body::Bytes(bytes) => bytes.clone(),
            Body::Kept(name, patch) => {
                let document = kept.get(name).cloned().unwrap_or_default();
                let patch = fill(&patch.to_string(), kept);
                let merged = merge_patch(&document, patch.as_bytes()).unwrap_or(document);
                merged.to_string().into_bytes()
            }
        }
    }
}

/// The languages of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Language {
    pub(crate) const ALL: [Self; 4] = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Merge => "merge",
            Self::Strategic => "strategic",
            Self::Apply => "apply",
        }
    }
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<&Value> for Body {
    fn from(value: &Value) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Replaces `${NAME:/pointer}` by what was kept; what was not is empty.
fn fill(text: &str, kept: &Kept) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let Some((place, behind)) = after.split_once('}') else {
            filled.push_str("${");
            rest = after;
            break;
        };
        let (name, pointer) = place.split_once(':').unwrap_or((place, ""));
        match kept.get(name).and_then(|value| value.pointer(pointer)) {
            Some(Value::String(text)) => filled.push_str(text),
            Some(value) => filled.push_str(&value.to_string()),
            None => {}
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_are_filled_from_what_was_kept() {
        let kept = Kept::from([("o", json!({"metadata": {"uid": "u-1", "n": 3}}))]);
        assert_eq!(fill("a ${o:/metadata/uid} b ${o:/metadata/n}", &kept), "a u-1 b 3");
        assert_eq!(fill("${o:/none}${other:/x}|${", &kept), "|${");
    }

    #[test]
    fn a_kept_answer_is_sent_with_a_change() {
        let kept = Kept::from([("o", json!({"a": 1, "b": 2}))]);
        let body = Body::Kept("o", json!({"b": null, "c": "${o:/a}"}));
        let step = Step::put("x", "/x", body);
        let sent: Value = serde_json::from_slice(&step.filled_body(&kept)).unwrap();
        assert_eq!(sent, json!({"a": 1, "c": "1"}));
    }
}
