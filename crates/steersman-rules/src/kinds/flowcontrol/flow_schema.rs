//! `FlowSchema`: which requests it is about, by who sends them and what they ask for, and which
//! priority level they have.

use serde_json::{Value, json};

use super::conditions::check_status;
use super::mandatory;
use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill_number, text, within};
use crate::table::cells::condition;
use crate::table::{Column, age};

const PRECEDENCE_MAX: i64 = 10_000;
const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The kinds of subjects, and the field each is described in; a subject has one of them.
const SUBJECTS: &[(&str, &str)] =
    &[("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

/// What is said of `FlowSchema`.
pub(super) const KIND: Kind = Kind {
    plural: "flowschemas",
    name: "FlowSchema",
    traits: &[Trait::Generation, Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |schema| {
        within(schema, "spec", |spec| fill_number(spec, "matchingPrecedence", 1000));
    },
    status: Some(|| json!({})),
    check,
    check_status,
    ..Rules::NONE
};

fn check(schema: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = schema.at("spec");
    let precedence = spec.at("matchingPrecedence");
    let name = text(&schema.value["metadata"]["name"]);
    match precedence.number_or_zero() {
        ..=0 => errors.push(precedence.invalid("must be a positive value")),
        1 if name != "exempt" => errors.push(
            precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1"),
        ),
        number if number > PRECEDENCE_MAX => {
            let detail = format!("must not be greater than {PRECEDENCE_MAX}");
            errors.push(precedence.invalid(&detail));
        }
        _ => {}
    }
    let method = spec.at("distinguisherMethod");
    let methods = ["ByNamespace", "ByUser"];
    if method.is_set() && !methods.contains(&text(&method.value["type"])) {
        // Kubernetes shows the method, not its type.
        let given = method.at("type").with(method.value);
        errors.push(given.not_supported_as("FlowDistinguisherMethod", &methods));
    }
    let level = spec.at("priorityLevelConfiguration.name");
    if level.require_because("must reference a priority level", errors) {
        level.follows(names::dns1123_subdomain, errors);
    }
    spec.each("rules").for_each(|rule| check_rule(&rule, errors));
    mandatory::check_schema(name, &spec, errors);
}

fn check_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    rule.at("subjects").require_because("subjects must contain at least one value", errors);
    rule.each("subjects").for_each(|subject| check_subject(&subject, errors));
    if rule.at("resourceRules").is_empty() && rule.at("nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(rule.required(detail));
    }
    rule.each("resourceRules").for_each(|rule| check_resource_rule(&rule, errors));
    rule.each("nonResourceRules").for_each(|rule| check_non_resource_rule(&rule, errors));
}

fn check_subject(subject: &At<'_, '_>, errors: &mut Errors) {
    let kind = subject.at("kind");
    let Some((kind, own)) = SUBJECTS.iter().find(|(known, _)| *known == kind.text()) else {
        let kinds: Vec<&str> = SUBJECTS.iter().map(|(kind, _)| *kind).collect();
        let given = Value::from(kind.text());
        errors.push(FieldError::not_supported(kind.path(), &given, &kinds));
        return;
    };
    let part = subject.at(own);
    if part.is_absent() {
        let detail = format!("{own} is required when subject kind is '{kind}'");
        errors.push(part.required(&detail));
    } else {
        let name = part.at("name");
        if name.require(errors) && *own == "serviceAccount" && name.text() != "*" {
            name.follows(names::dns1123_subdomain, errors);
        }
        if *own == "serviceAccount" {
            let namespace = part.at("namespace");
            if namespace.require_because("must specify namespace for service account", errors) {
                namespace.follows(names::dns1123_label, errors);
            }
        }
    }
    for (other, field) in SUBJECTS.iter().rev().filter(|(_, field)| field != own) {
        let part = subject.at(field);
        if part.is_set() {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.push(part.forbidden(&detail));
        }
    }
}

/// Complains of a wildcard that does not stand alone in its list; whether there is one.
fn wildcard(list: &At<'_, '_>, what: &str, errors: &mut Errors) -> bool {
    let any = list.list().iter().any(|item| item == "*");
    if any && list.len() > 1 {
        errors.push(list.invalid(&format!("if '*' is present, must not specify other {what}")));
    }
    any
}

fn check_verbs(rule: &At<'_, '_>, errors: &mut Errors) {
    let verbs = rule.at("verbs");
    if !verbs.require_because("verbs must contain at least one value", errors) {
        return;
    }
    let known = verbs.list().iter().all(|verb| VERBS.contains(&text(verb)));
    if !wildcard(&verbs, "verbs", errors) && !known {
        errors.push(verbs.not_supported(VERBS));
    }
}

fn check_resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    check_verbs(rule, errors);
    for (key, what, detail) in [
        ("apiGroups", "api groups", "resource rules must supply at least one api group"),
        ("resources", "resources", "resource rules must supply at least one resource"),
    ] {
        let list = rule.at(key);
        if list.require_because(detail, errors) {
            wildcard(&list, what, errors);
        }
    }
    let namespaces = rule.at("namespaces");
    if namespaces.is_empty() {
        if !rule.at("clusterScope").is_true() {
            errors.push(namespaces.required(
                "resource rules that are not cluster scoped must supply at least one namespace",
            ));
        }
    } else if !wildcard(&namespaces, "namespaces", errors) {
        for namespace in rule.each("namespaces") {
            for complaint in names::dns1123_label(namespace.text()) {
                let intro = "each member of this list must be '*' or a DNS-1123 label; ";
                errors.push(namespace.invalid(&format!("{intro}{complaint}")));
            }
        }
    }
}

fn check_non_resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    check_verbs(rule, errors);
    let paths = rule.at("nonResourceURLs");
    if !paths.require_because("nonResourceURLs must contain at least one value", errors)
        || wildcard(&paths, "non-resource URLs", errors)
    {
        return;
    }
    for path in rule.each("nonResourceURLs") {
        let given = path.text();
        let detail = match given {
            "" => "must not be empty",
            "/" => continue,
            _ if !given.starts_with('/') => "must start with slash",
            _ if given.contains(' ') => "must not contain white-space",
            _ if given.contains("//") => "must not contain double slash",
            _ if given.strip_suffix("/*").unwrap_or(given).contains('*') => {
                "wildcard can only do suffix matching"
            }
            _ => continue,
        };
        errors.push(path.invalid(detail));
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("PriorityLevel", "spec.priorityLevelConfiguration.name", ""),
        Column::number("MatchingPrecedence", "spec.matchingPrecedence").called_text().ranking(),
        Column::field("DistinguisherMethod", "spec.distinguisherMethod.type", "<none>"),
        age(),
        Column::text("MissingPL", |schema, _| {
            condition(schema, "Dangling").map_or("?", |c| text(&c["status"])).into()
        }),
    ]
}
