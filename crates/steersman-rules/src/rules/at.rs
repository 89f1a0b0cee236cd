//! A value with the place where it lies: what rules are written against.
//!
//! Rules walk down a document by [`At::at`] and [`At::each`] and make errors that name the
//! path they came by. The path is a chain of borrows and becomes text only in an error, so a
//! valid object costs no allocation. A field that is absent, or of the wrong type, is null.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::document::same;
use super::internal;
use crate::field::FieldError;
use crate::names;

pub(crate) use crate::field::Errors;

/// The numbers that ports have.
pub(crate) const PORTS: RangeInclusive<i64> = 1..=65535;

/// A value and the way to it; `'v` is the document's lifetime, `'p` that of the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'v, 'p> {
    /// The value; null where there is none.
    pub(crate) value: &'v Value,
    up: Option<&'p At<'v, 'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    /// `.name`
    Field(&'p str),
    /// `[3]`
    Index(usize),
    /// `.name[3]`
    Item(&'p str, usize),
    /// `[key]`
    Key(&'p str),
}

impl<'v, 'p> At<'v, 'p> {
    /// The whole object.
    pub(crate) const fn root(value: &'v Value) -> Self {
        Self::new(value, "")
    }

    /// A value at a path that is known.
    pub(crate) const fn new(value: &'v Value, path: &'p str) -> Self {
        Self { value, up: None, step: Step::Field(path) }
    }

    /// A field, or a field of a field (`a.b`).
    pub(crate) fn at<'q>(&'q self, field: &'q str) -> At<'v, 'q> {
        let value = field.split('.').fold(self.value, |value, key| &value[key]);
        At { value, up: Some(self), step: Step::Field(field) }
    }

    /// The same value, but complaints name a field that it does not have.
    pub(crate) fn named<'q>(&'q self, field: &'q str) -> At<'v, 'q> {
        At { value: self.value, up: Some(self), step: Step::Field(field) }
    }

    /// The same place, with another value to complain about.
    pub(crate) fn with(self, value: &'v Value) -> Self {
        Self { value, ..self }
    }

    /// The items of the list in a field, or a field of a field.
    pub(crate) fn each<'q>(&'q self, field: &'q str) -> impl Iterator<Item = At<'v, 'q>> {
        let items = self.at(field).list().iter().enumerate();
        items.map(move |(i, value)| At { value, up: Some(self), step: Step::Item(field, i) })
    }

    /// The items of this list.
    pub(crate) fn items<'q>(&'q self) -> impl Iterator<Item = At<'v, 'q>> {
        let items = self.list().iter().enumerate();
        items.map(|(i, value)| At { value, up: Some(self), step: Step::Index(i) })
    }

    /// The entries of a map, each at `[key]`.
    pub(crate) fn entries<'q>(&'q self) -> impl Iterator<Item = (&'v str, At<'v, 'q>)>
    where
        'v: 'q,
    {
        let entries = self.value.as_object().into_iter().flatten();
        entries
            .map(|(key, value)| (key.as_str(), At { value, up: Some(self), step: Step::Key(key) }))
    }

    /// The entry of this map with a key; it may be absent.
    pub(crate) fn entry<'q>(&'q self, key: &'q str) -> At<'v, 'q> {
        At { value: &self.value[key], up: Some(self), step: Step::Key(key) }
    }

    /// The list as a slice; empty where there is none.
    pub(crate) fn list(&self) -> &'v [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    /// The text; empty where there is none.
    pub(crate) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The integer, if there is one.
    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// The integer; zero where there is none.
    pub(crate) fn number_or_zero(&self) -> i64 {
        self.number().unwrap_or(0)
    }

    /// How many items or entries there are.
    pub(crate) fn len(&self) -> usize {
        self.value.as_object().map_or_else(|| self.list().len(), serde_json::Map::len)
    }

    /// Whether there is a value.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is no value.
    pub(crate) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    /// Whether the value is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    /// Whether a list, map or text has nothing in it, or is not there.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::String(text) => text.is_empty(),
            value => value.is_null(),
        }
    }

    /// The way as text, such as `spec.containers[0].image`.
    pub(crate) fn path(&self) -> String {
        let mut path = self.up.map(At::path).unwrap_or_default();
        if let Step::Field(field) | Step::Item(field, _) = self.step {
            if !path.is_empty() && !field.is_empty() {
                path.push('.');
            }
            path.push_str(field);
        }
        match self.step {
            Step::Field(_) => {}
            Step::Index(i) | Step::Item(_, i) => path.push_str(&format!("[{i}]")),
            Step::Key(key) => path.push_str(&format!("[{key}]")),
        }
        path
    }

    /// `Invalid value: <value>: <detail>`
    pub(crate) fn invalid(&self, detail: &str) -> FieldError {
        FieldError::invalid(self.path(), self.value, detail)
    }

    /// `Invalid value: <other value>: <detail>`
    pub(crate) fn invalid_value(&self, value: impl Into<Value>, detail: &str) -> FieldError {
        FieldError::invalid(self.path(), &value.into(), detail)
    }

    /// The same, of a value that is shown as one of an [internal] type.
    pub(crate) fn invalid_as(&self, kind: &str, detail: &str) -> FieldError {
        FieldError::invalid_shown(self.path(), &internal::shown(kind, self.value), detail)
    }

    /// `Required value[: <detail>]`
    pub(crate) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// `Duplicate value: <value>`
    pub(crate) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path(), self.value)
    }

    /// `Duplicate value: <other value>`
    pub(crate) fn duplicate_value(&self, value: impl Into<Value>) -> FieldError {
        FieldError::duplicate(self.path(), &value.into())
    }

    /// `Duplicate value: <value>`, which is shown as one of an [internal] type.
    pub(crate) fn duplicate_as(&self, kind: &str) -> FieldError {
        FieldError::duplicate_shown(self.path(), &internal::shown(kind, self.value))
    }

    /// `Unsupported value: <value>: supported values: …`
    pub(crate) fn not_supported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self.path(), self.value, supported)
    }

    /// The same, of a value that is shown as one of an [internal] type.
    pub(crate) fn not_supported_as(&self, kind: &str, supported: &[&str]) -> FieldError {
        let shown = internal::shown(kind, self.value);
        FieldError::not_supported_shown(self.path(), &shown, supported)
    }

    /// `Forbidden: <detail>`
    pub(crate) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::forbidden(self.path(), detail)
    }

    /// `Not found: <value>`
    pub(crate) fn not_found(&self) -> FieldError {
        FieldError::not_found(self.path(), self.value)
    }

    /// `Internal error: …`
    pub(crate) fn internal_error(&self, detail: &str) -> FieldError {
        FieldError::internal(self.path(), detail)
    }

    /// `Too long: …`
    pub(crate) fn too_long(&self, max: usize) -> FieldError {
        FieldError::too_long(self.path(), max)
    }

    /// `Too many: …`
    pub(crate) fn too_many(&self, max: usize) -> FieldError {
        FieldError::too_many(self.path(), self.len(), max)
    }
}

/// Rules that many fields share.
impl At<'_, '_> {
    /// Complains if nothing is there; whether something is.
    pub(crate) fn require(&self, errors: &mut Errors) -> bool {
        self.require_because("", errors)
    }

    /// Complains if nothing is there, and says why it must be; whether something is.
    pub(crate) fn require_because(&self, detail: &str, errors: &mut Errors) -> bool {
        let empty = self.is_empty();
        if empty {
            errors.push(self.required(detail));
        }
        !empty
    }

    /// Complains of each of these fields that is absent or empty.
    pub(crate) fn require_all(&self, fields: &[&str], errors: &mut Errors) {
        for field in fields {
            self.at(field).require(errors);
        }
    }

    /// Complains if the text breaks a rule for names.
    pub(crate) fn follows(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        errors.extend(rule(self.text()).iter().map(|complaint| self.invalid(complaint)));
    }

    /// The same, where all that the rule says is one mistake.
    pub(crate) fn follows_at_once(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        let complaints = rule(self.text());
        if !complaints.is_empty() {
            errors.push(self.invalid(&complaints.join(",")));
        }
    }

    /// Complains if the text is absent, or breaks a rule for names.
    pub(crate) fn requires(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if self.require(errors) {
            self.follows(rule, errors);
        }
    }

    /// Complains if the text is there and breaks a rule for names.
    pub(crate) fn may_follow(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.text().is_empty() {
            self.follows(rule, errors);
        }
    }

    /// Complains if the number is below zero.
    pub(crate) fn not_negative(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number < 0) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// Complains if the number is not above zero.
    pub(crate) fn positive(&self, errors: &mut Errors) {
        if self.number_or_zero() <= 0 {
            errors.push(self.invalid("must be greater than 0"));
        }
    }

    /// Complains if the number is not that of a port.
    pub(crate) fn port(&self, errors: &mut Errors) {
        if self.is_absent() {
            self.with(&Value::from(0)).within(PORTS, errors);
        } else {
            self.within(PORTS, errors);
        }
    }

    /// Complains if the value is neither the number of a port nor a name that one can have.
    pub(crate) fn port_or_name(&self, errors: &mut Errors) {
        if self.value.is_string() {
            self.follows(names::port_name, errors);
        } else {
            self.port(errors);
        }
    }

    /// Complains if the number is there and lies outside a range.
    pub(crate) fn within(&self, range: RangeInclusive<i64>, errors: &mut Errors) {
        if self.number().is_some_and(|number| !range.contains(&number)) {
            let low = range.start();
            let high = range.end();
            errors.push(self.invalid(&format!("must be between {low} and {high}, inclusive")));
        }
    }

    /// Complains if the text is there and not one of an enumeration.
    pub(crate) fn one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if self.is_set() && !allowed.contains(&self.text()) {
            errors.push(self.not_supported(allowed));
        }
    }

    /// Complains if the text is absent, or not one of an enumeration.
    pub(crate) fn requires_one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if self.require(errors) {
            self.one_of(allowed, errors);
        }
    }

    /// The same, where an empty text is not absent, but none of the enumeration.
    pub(crate) fn requires_known(&self, allowed: &[&str], errors: &mut Errors) {
        if self.is_absent() {
            errors.push(self.required(""));
        } else {
            self.one_of(allowed, errors);
        }
    }

    /// Complains about a map that is no map of labels.
    pub(crate) fn labels(&self, errors: &mut Errors) {
        let mistakes = names::label_mistakes(self.value);
        errors.extend(mistakes.map(|(text, why)| self.invalid_value(text, &why)));
    }

    /// Complains if the value differs from what it was.
    pub(crate) fn unchanged(&self, old: &Value, errors: &mut Errors) {
        if !same(old, self.value) {
            errors.push(self.invalid("field is immutable"));
        }
    }

    /// The same of a value that is shown as one of an [internal] type.
    pub(crate) fn unchanged_as(&self, kind: &str, old: &Value, errors: &mut Errors) {
        if !same(old, self.value) {
            errors.push(self.invalid_as(kind, "field is immutable"));
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
        let root = At::root(&object);
        let spec = root.at("spec");
        let port = spec.each("ports").next().unwrap();
        assert_eq!(port.at("name").path(), "spec.ports[0].name");
        assert_eq!(root.each("spec.ports").next().unwrap().path(), "spec.ports[0]");
        assert_eq!(spec.at("ports").items().next().unwrap().path(), "spec.ports[0]");
        assert_eq!(spec.at("limits").entry("cpu").path(), "spec.limits[cpu]");
        assert_eq!(At::new(&object, "template").at("spec").path(), "template.spec");
        assert_eq!(root.path(), "");
    }
}
