//! Groups of the Kubernetes community need its approval, which an annotation tells of.

use serde_json::Value;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What a definition in a group of the community says of its approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nothing.
    Missing,
    /// Something that is neither an address nor a refusal to ask.
    Invalid,
    /// Where it was approved.
    Approved,
    /// That it was not approved, and why.
    Bypassed,
}

/// What a definition says of its approval; `None` if its group needs none.
pub fn approval(definition: &Value) -> Option<Approval> {
    let group = definition["spec"]["group"].as_str().unwrap_or("");
    is_protected(group).then(|| match given(definition) {
        "" => Approval::Missing,
        given if given.starts_with("unapproved") => Approval::Bypassed,
        given if is_address(given) => Approval::Approved,
        _ => Approval::Invalid,
    })
}

/// The annotation, or nothing.
pub(super) fn given(definition: &Value) -> &str {
    definition["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or("")
}

/// Where complaints about it are told.
pub(super) fn field() -> String {
    format!("metadata.annotations[{ANNOTATION}]")
}

impl Approval {
    /// The status and the reason of the condition that tells of it.
    pub fn condition(self) -> (&'static str, &'static str) {
        match self {
            Self::Missing => ("False", "MissingAnnotation"),
            Self::Invalid => ("False", "InvalidAnnotation"),
            Self::Approved => ("True", "ApprovedAnnotation"),
            Self::Bypassed => ("False", "UnapprovedAnnotation"),
        }
    }

    /// What it means, in Kubernetes' words.
    pub fn message(self, definition: &Value) -> String {
        let given = given(definition);
        let must = format!("protected groups must have approval annotation {ANNOTATION:?}");
        match self {
            Self::Missing => format!("{must}, {SEE}"),
            Self::Invalid => {
                format!("{must} with either a URL or a reason starting with \"unapproved\", {SEE}")
            }
            Self::Approved => format!("approved in {given}"),
            Self::Bypassed => format!("not approved: {given:?}"),
        }
    }
}

fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|end| {
        group.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Whether a text is an address with a scheme and a host.
fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(fits)
        && !host.is_empty()
        && !host.contains(' ')
        && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Approval, approval};

    #[test]
    fn an_approval_is_an_address_or_says_that_there_is_none() {
        let of = |group: &str, given: &str| {
            approval(&json!({
                "metadata": {"annotations": {"api-approved.kubernetes.io": given}},
                "spec": {"group": group},
            }))
        };
        for (group, given, expected) in [
            ("example.com", "", None),
            ("notk8s.io", "", None),
            ("k8s.io", "", Some(Approval::Missing)),
            ("x.kubernetes.io", "", Some(Approval::Missing)),
            ("x.k8s.io", "https://example.com/1", Some(Approval::Approved)),
            ("x.k8s.io", "git+ssh://host", Some(Approval::Approved)),
            ("x.k8s.io", "unapproved, just a test", Some(Approval::Bypassed)),
            ("x.k8s.io", "yes", Some(Approval::Invalid)),
            ("x.k8s.io", "https:///path", Some(Approval::Invalid)),
            ("x.k8s.io", "://host", Some(Approval::Invalid)),
        ] {
            assert_eq!(of(group, given), expected, "{group} {given}");
        }
    }
}
