//! Field selectors: `metadata.name=web,status.phase!=Running`.

use super::{InvalidSelector, skim};
use crate::resource::selectable;
use crate::resource::{Place, Resource};
use crate::versions;

/// What fields must be; all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// One requirement on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The dotted path.
    pub field: String,
    /// The value to compare with.
    pub value: String,
    /// Whether the field must be that value, or must not be.
    pub equal: bool,
}

impl FieldSelector {
    /// Reads a selector over the fields that the resource lets be selected.
    pub fn parse(text: &str, resource: &Resource) -> Result<Self, InvalidSelector> {
        let mut requirements = requirements(text)?;
        for FieldRequirement { field, .. } in &mut requirements {
            if *field == HOST && resource.is("", "pods") {
                NODE_NAME.clone_into(field);
            }
            if !is_selectable(field, resource) {
                return Err(InvalidSelector(unknown_field(field, resource)));
            }
        }
        Ok(Self(requirements))
    }

    /// Reads a selector over whatever fields, of a resource that need not exist.
    pub fn of_anything(text: &str) -> Result<Self, InvalidSelector> {
        requirements(text).map(Self)
    }

    /// Whether the selector requires a field to be a value.
    pub fn requires(&self, field: &str, value: &str) -> bool {
        self.0.iter().any(|r| r.equal && r.field == field && r.value == value)
    }

    /// Adds that the name must be this.
    pub fn with_name(mut self, name: &str) -> Self {
        self.0.push(FieldRequirement {
            field: NAME.to_owned(),
            value: name.to_owned(),
            equal: true,
        });
        self
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name that the selector requires, if it does.
    pub fn name(&self) -> Option<&str> {
        let named = self.0.iter().find(|r| r.field == NAME && r.equal);
        named.map(|requirement| requirement.value.as_str())
    }

    pub(super) fn matches_place(&self, place: Place<'_>) -> bool {
        self.0.iter().all(|requirement| match requirement.field.as_str() {
            NAME => (requirement.value == place.name) == requirement.equal,
            NAMESPACE => (requirement.value == place.namespace) == requirement.equal,
            _ => true,
        })
    }

    pub(super) fn matches_document(&self, resource: &Resource, document: &[u8]) -> bool {
        let inside = || self.0.iter().filter(|r| r.field != NAME && r.field != NAMESPACE);
        if inside().next().is_none() {
            return true;
        }
        let api_version = resource.api_version();
        let skimmable = inside().all(|r| !READ_ELSEWHERE.contains(&r.field.as_str()));
        let document = if skimmable && versions::speaks(document, &api_version) {
            let paths: Vec<&str> = inside().map(|r| r.field.as_str()).collect();
            skim::skim(document, &paths)
        } else {
            versions::read(document, &api_version).ok()
        };
        let Some(document) = document else { return false };
        inside().all(|r| (selectable::value(&document, &r.field) == r.value) == r.equal)
    }
}

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// What clients of old call the node of a pod, and what it is called.
const HOST: &str = "spec.host";
const NODE_NAME: &str = "spec.nodeName";

/// Fields of old whose name is not the path they read.
const READ_ELSEWHERE: &[&str] = &["source", "status.successful", "status.podIPs"];

fn is_selectable(field: &str, resource: &Resource) -> bool {
    // Cluster-scoped kinds that name fields of their own do not name the namespace among them.
    let names_namespace = resource.namespaced || has_common_fields(resource);
    field == NAME
        || (field == NAMESPACE && names_namespace)
        || resource.selectable_fields.iter().any(|known| known == field)
}

/// Whether nothing is said of a kind's fields, so that what is common to all built-in kinds holds.
fn has_common_fields(resource: &Resource) -> bool {
    resource.schema.is_typed() && resource.selectable_fields.is_empty()
}

/// The complaint about a field that cannot be selected; it depends on who words it upstream.
fn unknown_field(field: &str, resource: &Resource) -> String {
    match resource.kind.as_ref() {
        "Job" if resource.group == "batch" => {
            format!("field label {field:?} not supported for Job")
        }
        "ResourceSlice" if resource.group == "resource.k8s.io" => {
            let version = &resource.version;
            format!(
                "field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: \
                 {field}"
            )
        }
        _ if has_common_fields(resource) => {
            format!("{field:?} is not a known field selector: only {NAME:?}, {NAMESPACE:?}")
        }
        _ => format!("field label not supported: {field}"),
    }
}

/// The requirements in a text, in the order in which Kubernetes looks at them, or what cannot be
/// understood of it. A lonely operator requires nothing.
fn requirements(text: &str) -> Result<Vec<FieldRequirement>, InvalidSelector> {
    let mut parts = split(text);
    parts.retain(|part| !["", "=", "==", "!="].contains(part));
    parts.sort_unstable();
    let understood = parts.into_iter().map(|part| {
        let (field, equal, value) = parse_requirement(part).ok_or_else(|| {
            InvalidSelector(format!("invalid selector: '{text}'; can't understand '{part}'"))
        })?;
        let value = unescape(value).map_err(InvalidSelector)?;
        Ok(FieldRequirement { field, value, equal })
    });
    understood.collect()
}

/// Splits at commas that are not escaped. Spaces belong to what they stand beside.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The field, whether it must be equal, and the value still escaped. The first operator counts.
fn parse_requirement(part: &str) -> Option<(String, bool, &str)> {
    let operators = [("!=", false), ("==", true), ("=", true)];
    part.char_indices().find_map(|(at, _)| {
        operators.iter().find_map(|(operator, equal)| {
            let value = part[at..].strip_prefix(operator)?;
            Some((part[..at].to_owned(), *equal, value))
        })
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let (mut out, mut chars) = (String::with_capacity(value.len()), value.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = other.into_iter().collect();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{sequence}"
                    ));
                }
            },
            '=' => {
                return Err("invalid field selector: unescaped character in value: 61".to_owned());
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::{FieldSelector, unescape};
    use crate::kinds;

    #[test]
    fn terms_are_split_at_the_first_operator_and_unescaped() {
        let pods = &kinds::all().into_iter().find(|resource| resource.is("", "pods")).unwrap();
        let selector =
            FieldSelector::parse(r"metadata.name!=a\,b\=c,,status.phase==Running", pods).unwrap();
        let terms: Vec<_> =
            selector.0.iter().map(|r| (r.field.as_str(), r.equal, r.value.as_str())).collect();
        assert_eq!(terms, [("metadata.name", false, "a,b=c"), ("status.phase", true, "Running")]);
        for (text, message) in [
            ("name", "invalid selector: 'name'; can't understand 'name'"),
            ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
            (r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b"),
            ("spec.x=y", "field label not supported: spec.x"),
            ("spec.x=y,spec.a=y", "field label not supported: spec.a"),
            ("spec.x=y,zone", "invalid selector: 'spec.x=y,zone'; can't understand 'zone'"),
            ("status.phase=a, spec.nodeName=b", "field label not supported:  spec.nodeName"),
        ] {
            assert_eq!(FieldSelector::parse(text, pods).unwrap_err().0, message);
        }
        assert!(
            FieldSelector::parse("status.phase= a", pods).unwrap().requires("status.phase", " a")
        );
        let of_old = FieldSelector::parse("spec.host=n1", pods).unwrap();
        assert!(of_old.requires("spec.nodeName", "n1"));
        for nothing in ["", "=", "==", "!=", ",=,"] {
            assert!(FieldSelector::parse(nothing, pods).unwrap().0.is_empty(), "{nothing}");
        }
        let anything = FieldSelector::of_anything(r"spec.x=a\,b,spec.y!=c").unwrap();
        assert!(anything.requires("spec.x", "a,b"));
        assert!(!anything.requires("spec.y", "c"));
        assert!(unescape("\\").is_err());
    }
}
