//! A part of a document and the way to it, for rules that read like the rules they are.
//!
//! A [`Part`] knows its value and where it stands, and words complaints about itself. The way
//! is a chain of borrowed steps that is only written out when something is wrong, so that
//! checking a sound object allocates nothing.

use std::fmt::Write;

use serde_json::Value;

use super::document::{is_empty, items, text};
use crate::field::FieldError;

/// The mistakes found so far.
pub(super) type Errors = Vec<FieldError>;

/// A value and its place in the document.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) value: &'a Value,
    parent: Option<&'a Part<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    /// A path to begin with; empty for the whole object.
    Start(&'a str),
    Field(&'a str),
    /// An item of the list in a field.
    Item(&'a str, usize),
    /// An entry of the map in a field.
    Entry(&'a str, &'a str),
}

impl<'a> Part<'a> {
    /// The whole object.
    pub(super) const fn root(value: &'a Value) -> Self {
        Self::at(value, "")
    }

    /// A part that stands at a path.
    pub(super) const fn at(value: &'a Value, path: &'a str) -> Self {
        Self { value, parent: None, step: Step::Start(path) }
    }

    /// The part in a field; it may be absent.
    pub(super) fn field(&'a self, name: &'a str) -> Part<'a> {
        self.child(&self.value[name], Step::Field(name))
    }

    /// The items of the list in a field.
    pub(super) fn each(&'a self, name: &'a str) -> impl Iterator<Item = Part<'a>> {
        let list = items(&self.value[name]).iter().enumerate();
        list.map(move |(index, value)| self.child(value, Step::Item(name, index)))
    }

    /// The entries of the map in a field, with their keys.
    pub(super) fn entries(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, Part<'a>)> {
        let map = self.value[name].as_object().into_iter().flatten();
        map.map(move |(key, value)| (key.as_str(), self.child(value, Step::Entry(name, key))))
    }

    /// The entry of the map in a field; it may be absent.
    pub(super) fn entry(&'a self, name: &'a str, key: &'a str) -> Part<'a> {
        self.child(&self.value[name][key], Step::Entry(name, key))
    }

    /// The same place with another value to complain about.
    pub(super) const fn with(self, value: &'a Value) -> Part<'a> {
        Part { value, ..self }
    }

    const fn child(&'a self, value: &'a Value, step: Step<'a>) -> Part<'a> {
        Part { value, parent: Some(self), step }
    }

    /// The text, empty where there is none.
    pub(super) fn text(&self) -> &'a str {
        text(self.value)
    }

    /// The number, zero where there is none.
    pub(super) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or(0)
    }

    /// Whether nothing is there.
    pub(super) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    /// Whether nothing is there, or an empty text, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::String(text) => text.is_empty(),
            Value::Number(_) | Value::Bool(_) => false,
            other => is_empty(other),
        }
    }

    /// How many items or entries there are.
    pub(super) fn len(&self) -> usize {
        self.value.as_object().map_or_else(|| items(self.value).len(), serde_json::Map::len)
    }

    /// The path, as Kubernetes writes it.
    pub(super) fn path(&self) -> String {
        let mut path = self.parent.map(Part::path).unwrap_or_default();
        let (name, rest) = match self.step {
            Step::Start(name) | Step::Field(name) => (name, String::new()),
            Step::Item(name, index) => (name, format!("[{index}]")),
            Step::Entry(name, key) => (name, format!("[{key}]")),
        };
        let dot = if path.is_empty() || name.is_empty() { "" } else { "." };
        let _ = write!(path, "{dot}{name}{rest}");
        path
    }

    /// `Required value`, with a detail that may be empty.
    pub(super) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// `Invalid value: …`
    pub(super) fn invalid(&self, detail: &str) -> FieldError {
        FieldError::invalid(self.path(), self.value, detail)
    }

    /// `Forbidden: …`
    pub(super) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::forbidden(self.path(), detail)
    }

    /// `Duplicate value: …`
    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path(), self.value)
    }

    /// `Unsupported value: …`
    pub(super) fn unsupported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), self.value, supported)
    }
}

/// Rules that many fields share.
impl Part<'_> {
    /// Must not be empty; whether it is not.
    pub(super) fn need(&self, errors: &mut Errors) -> bool {
        self.need_because("", errors)
    }

    /// Must not be empty, and why.
    pub(super) fn need_because(&self, detail: &str, errors: &mut Errors) -> bool {
        let empty = self.is_empty();
        if empty {
            errors.push(self.required(detail));
        }
        !empty
    }

    /// Must be one of these texts.
    pub(super) fn one_of(&self, supported: &[&str], errors: &mut Errors) {
        if self.need(errors) && !supported.contains(&self.text()) {
            errors.push(self.unsupported(supported));
        }
    }

    /// Must be one of these texts, where it is there at all.
    pub(super) fn one_of_or_absent(&self, supported: &[&str], errors: &mut Errors) {
        if !self.is_absent() && !supported.contains(&self.text()) {
            errors.push(self.unsupported(supported));
        }
    }

    /// Must follow a rule of names.
    pub(super) fn follows(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        errors.extend(rule(self.text()).iter().map(|complaint| self.invalid(complaint)));
    }

    /// Must be there and follow a rule of names.
    pub(super) fn need_name(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if self.need(errors) {
            self.follows(rule, errors);
        }
    }

    /// Must not be below zero.
    pub(super) fn not_negative(&self, errors: &mut Errors) {
        if self.number() < 0 {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// Must be above zero.
    pub(super) fn positive(&self, errors: &mut Errors) {
        if self.number() <= 0 {
            errors.push(self.invalid("must be greater than 0"));
        }
    }

    /// Must lie between two numbers.
    pub(super) fn between(&self, low: i64, high: i64, errors: &mut Errors) {
        if !(low..=high).contains(&self.number()) {
            errors.push(self.invalid(&format!("must be between {low} and {high}, inclusive")));
        }
    }

    /// Must be the number of a port.
    pub(super) fn port(&self, errors: &mut Errors) {
        self.between(1, 65535, errors);
    }

    /// Must be what it was before.
    pub(super) fn unchanged(&self, old: &Value, errors: &mut Errors) {
        if self.value != old {
            errors.push(self.invalid("field is immutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_names_fields_items_and_entries() {
        let object = json!({"spec": {"ports": [{"name": "a"}], "limits": {"cpu": "1"}}});
        let root = Part::root(&object);
        let spec = root.field("spec");
        let port = spec.each("ports").next().unwrap();
        assert_eq!(port.field("name").path(), "spec.ports[0].name");
        assert_eq!(spec.entry("limits", "cpu").path(), "spec.limits[cpu]");
        assert_eq!(Part::at(&object, "template").field("spec").path(), "template.spec");
        assert_eq!(root.path(), "");
    }
}
