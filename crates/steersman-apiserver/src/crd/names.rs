//! The names a definition asks for, and which of them it gets: those that no other resource of its
//! group has. Each is given or refused by itself; one that is refused stays as it was.

use std::collections::HashSet;

use serde_json::{Value, json};
use steersman_rules::metadata;

use crate::registry::{Accepted, Table};

/// What a definition gets of what it asks for.
pub(super) struct Naming {
    /// The names that it has from now on.
    pub(super) accepted: Value,
    /// Why it does not get the last that it does not get: the condition's reason and message.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// The names that a definition has, as its status tells them.
pub(super) fn accepted(definition: &Value) -> Accepted {
    let names = &definition["status"]["acceptedNames"];
    let text = |field: &str| names[field].as_str().unwrap_or("").to_owned();
    let short = list(&names["shortNames"]).map(str::to_owned);
    let mut resources: Vec<String> =
        [text("plural"), text("singular")].into_iter().chain(short).collect();
    resources.retain(|name| !name.is_empty());
    let mut kinds = vec![text("kind"), text("listKind")];
    kinds.retain(|name| !name.is_empty());
    Accepted { resources, kinds }
}

/// Whether a definition has all the names that it asks for.
pub(super) fn is_settled(definition: &Value) -> bool {
    let [asked, got] =
        [&definition["spec"]["names"], &definition["status"]["acceptedNames"]].map(without_nothing);
    asked == got
}

fn without_nothing(names: &Value) -> Value {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let fields = names.as_object().into_iter().flatten().filter(|(_, value)| !is_nothing(value));
    fields.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Gives a definition the names that are free.
pub(super) fn negotiate(table: &Table, definition: &Value) -> Naming {
    let spec = &definition["spec"];
    let group = spec["group"].as_str().unwrap_or("");
    let own = accepted(definition);
    let taken = Taken { table, group, definition: metadata::text(definition, "name"), own };
    let asked = &spec["names"];
    let mut naming =
        Naming { accepted: definition["status"]["acceptedNames"].clone(), conflict: None };
    if !naming.accepted.is_object() {
        naming.accepted = json!({"plural": "", "kind": ""});
    }
    let resource = |name: &str| taken.is_resource(name);
    let kind = |name: &str| taken.is_kind(name);
    naming.one(asked, "plural", "PluralConflict", &resource);
    naming.one(asked, "singular", "SingularConflict", &resource);
    naming.short_names(asked, &resource);
    naming.one(asked, "kind", "KindConflict", &kind);
    naming.one(asked, "listKind", "ListKindConflict", &kind);
    naming.take(asked, "categories");
    naming
}

impl Naming {
    fn one(
        &mut self,
        asked: &Value,
        field: &str,
        reason: &'static str,
        is_taken: &dyn Fn(&str) -> bool,
    ) {
        let name = asked[field].as_str().unwrap_or("");
        if self.accepted[field].as_str() != Some(name) && is_taken(name) {
            self.conflict = Some((reason, in_use(name)));
        } else {
            self.take(asked, field);
        }
    }

    fn short_names(&mut self, asked: &Value, is_taken: &dyn Fn(&str) -> bool) {
        let own: HashSet<&str> = list(&self.accepted["shortNames"]).collect();
        let fresh = list(&asked["shortNames"]).filter(|name| !own.contains(name));
        let conflicts: Vec<String> = fresh.filter(|name| is_taken(name)).map(in_use).collect();
        match &conflicts[..] {
            [] => self.take(asked, "shortNames"),
            [one] => self.conflict = Some(("ShortNamesConflict", one.clone())),
            many => self.conflict = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
        }
    }

    fn take(&mut self, asked: &Value, field: &str) {
        let Some(accepted) = self.accepted.as_object_mut() else { return };
        match asked.get(field).filter(|value| !value.is_null()) {
            Some(value) => drop(accepted.insert(field.to_owned(), value.clone())),
            None => drop(accepted.remove(field)),
        }
    }
}

/// The names that resources of a group have, and a definition itself. There may be a thousand, and
/// few are asked for.
struct Taken<'a> {
    table: &'a Table,
    group: &'a str,
    definition: &'a str,
    own: Accepted,
}

impl Taken<'_> {
    fn is_resource(&self, name: &str) -> bool {
        self.accepted().any(|accepted| accepted.resources.iter().any(|taken| taken == name))
            // What is built in is served before what is defined.
            || self.table.builtin_in_group(self.group).any(|resource| {
                resource.plural == name
                    || resource.singular == name
                    || resource.short_names.iter().any(|taken| taken == name)
            })
    }

    fn is_kind(&self, name: &str) -> bool {
        self.accepted().any(|accepted| accepted.kinds.iter().any(|taken| taken == name))
            || self
                .table
                .builtin_in_group(self.group)
                .any(|resource| resource.kind == name || resource.list_kind == name)
    }

    fn accepted(&self) -> impl Iterator<Item = &Accepted> {
        self.table.accepted_in_group(self.group, self.definition).chain([&self.own])
    }
}

fn list(names: &Value) -> impl Iterator<Item = &str> {
    names.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_settled, negotiate};
    use crate::registry::Registry;

    #[test]
    fn a_name_of_ones_own_cannot_become_another_of_ones_names() {
        let registry = Registry::new();
        let definition = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "names": {
                "plural": "widgets", "singular": "wd", "kind": "Widget", "listKind": "WidgetList",
            }},
            "status": {"acceptedNames": {
                "plural": "widgets", "singular": "widget", "shortNames": ["wd"], "kind": "Widget",
                "listKind": "WidgetList",
            }},
        });
        let naming = negotiate(&registry.table(), &definition);
        let (reason, message) = naming.conflict.unwrap();
        assert_eq!((reason, message.as_str()), ("SingularConflict", "\"wd\" is already in use"));
        assert_eq!(naming.accepted["singular"], "widget");
        assert!(naming.accepted.get("shortNames").is_none(), "it asks for none");
        assert!(!is_settled(&definition));
    }
}
