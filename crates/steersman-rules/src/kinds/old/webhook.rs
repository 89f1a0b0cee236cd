//! Webhook configurations: whom to call, about what, and how.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors, PORTS};
use crate::rules::document::{each, fill, items, text, within_existing};
use crate::rules::label_selector::label_selector;

/// How admission rules end when nobody answers.
pub(in crate::kinds) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
/// How admission rules take other versions of a resource.
pub(in crate::kinds) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
/// Whether to call again after others have changed the object.
pub(in crate::kinds) const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const CONDITIONS_MAX: usize = 64;

/// The strategy of webhooks that change objects.
pub(in crate::kinds) const MUTATING: Rules = Rules {
    default: |object| {
        each(object, "webhooks", |webhook| {
            webhook_defaults(webhook);
            fill(webhook, "reinvocationPolicy", "Never");
        });
    },
    check: configuration,
    ..Rules::NONE
};

/// The strategy of webhooks that only judge.
pub(in crate::kinds) const VALIDATING: Rules = Rules {
    default: |object| each(object, "webhooks", webhook_defaults),
    check: configuration,
    ..Rules::NONE
};

fn webhook_defaults(webhook: &mut Value) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "timeoutSeconds", 10);
    match_defaults(webhook);
    each(webhook, "rules", |rule| fill(rule, "scope", "*"));
    within_existing(webhook, "clientConfig", |client| {
        within_existing(client, "service", |service| fill(service, "port", 443));
    });
}

/// What admission matches when it is not told.
pub(super) fn match_defaults(object: &mut Value) {
    fill(object, "matchPolicy", "Equivalent");
    fill(object, "namespaceSelector", json!({}));
    fill(object, "objectSelector", json!({}));
}

fn configuration(object: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for webhook in object.each("webhooks") {
        check_webhook(&webhook, errors);
        review_versions(&webhook, errors);
        let name = webhook.at("name");
        if !name.is_empty() && !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

fn check_webhook(webhook: &At<'_, '_>, errors: &mut Errors) {
    let name = webhook.at("name");
    names::fully_qualified_name(name.text(), &name.path(), errors);
    webhook.each("rules").for_each(|rule| rule_with_operations(&rule, errors));
    webhook.at("failurePolicy").one_of(FAILURE_POLICIES, errors);
    webhook.at("matchPolicy").one_of(MATCH_POLICIES, errors);
    let effects = webhook.at("sideEffects");
    if effects.is_absent() {
        errors.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    effects.one_of(&["None", "NoneOnDryRun"], errors);
    let timeout = webhook.at("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.number_or_zero()) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    label_selector(&webhook.at("namespaceSelector"), errors);
    label_selector(&webhook.at("objectSelector"), errors);
    webhook.at("reinvocationPolicy").one_of(REINVOCATION_POLICIES, errors);
    client_config(&webhook.at("clientConfig"), errors);
    match_conditions(webhook, errors);
}

/// The mistakes in saying whom to call: of webhooks for admission and for conversion.
pub(in crate::kinds) fn webhook_client(config: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    client_config(&At::new(config, path), &mut errors);
    errors
}

/// Whom to call: a URL or a service, and exactly one of them.
pub(super) fn client_config(config: &At<'_, '_>, errors: &mut Errors) {
    let (url, service) = (config.at("url"), config.at("service"));
    match (url.is_absent(), service.is_absent()) {
        (true, false) => check_service(&service, errors),
        (false, true) => check_url(&url, errors),
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

fn check_url(url: &At<'_, '_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut complain = |value: &str, detail: &str| {
        errors.push(FieldError::invalid(url.path(), &Value::from(value), detail));
    };
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", ""));
    if scheme != "https" {
        complain(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if host.is_empty() {
        complain(host, &format!("host must be specified{FORM}"));
    } else if !is_url(url.text()) {
        complain(url.text(), &format!("url must be a valid URL{FORM}"));
    }
    if let Some(user) = user {
        complain(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        complain(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        complain(query, "query parameters are not permitted in the URL");
    }
}

/// Whether whoever calls it will understand it, with its port.
fn is_url(text: &str) -> bool {
    let understood = |c: char| c.is_ascii_graphic() && !"<>\\^`".contains(c);
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let behind_host = authority.rsplit(['@', ']']).next().unwrap_or_default();
    let port = behind_host.split_once(':').map(|(_, port)| port.parse::<u16>());
    text.chars().all(understood) && port.is_none_or(|port| port.is_ok())
}

fn check_service(service: &At<'_, '_>, errors: &mut Errors) {
    service.at("name").require(errors);
    service.at("namespace").require(errors);
    let port = service.at("port");
    if port.is_set() && !PORTS.contains(&port.number_or_zero()) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(port.invalid(detail));
    }
    let path = service.at("path");
    let given = path.text();
    if given.is_empty() || given == "/" {
        return;
    }
    if given == "//" {
        return errors.push(path.invalid("segment[0] may not be empty"));
    }
    if !given.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let steps = given.get(1..).unwrap_or_default();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(&format!("segment[{i}] may not be empty")));
            continue;
        }
        for complaint in names::dns1123_subdomain(step) {
            errors.push(path.invalid(&format!("segment[{i}]: {complaint}")));
        }
    }
}

fn review_versions(webhook: &At<'_, '_>, errors: &mut Errors) {
    let all = webhook.at("admissionReviewVersions");
    if all.is_empty() {
        return errors.push(all.required("must specify one of v1, v1beta1"));
    }
    let listed: Vec<&str> = items(all.value).iter().map(text).collect();
    for (i, version) in webhook.each("admissionReviewVersions").enumerate() {
        if listed[..i].contains(&version.text()) {
            errors.push(version.invalid("duplicate version"));
        } else {
            version.follows(names::dns1035_label, errors);
        }
    }
    if !listed.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        errors.push(all.invalid("must include at least one of v1, v1beta1"));
    }
}

/// The conditions of a webhook or policy; what they compute is checked elsewhere.
pub(super) fn match_conditions(part: &At<'_, '_>, errors: &mut Errors) {
    let all = part.at("matchConditions");
    if all.len() > CONDITIONS_MAX {
        errors.push(all.too_many(CONDITIONS_MAX));
    }
    let mut seen = HashSet::new();
    for condition in part.each("matchConditions") {
        let (name, expression) = (condition.at("name"), condition.at("expression"));
        if expression.text().trim().is_empty() {
            errors.push(expression.required(""));
        }
        name.requires(names::qualified_name, errors);
        if !name.is_empty() && !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

/// The mistakes in a rule that says which requests to look at.
pub(super) fn rule_with_operations(rule: &At<'_, '_>, errors: &mut Errors) {
    let operations = rule.at("operations");
    operations.require(errors);
    no_company(&operations, "operations", errors);
    for operation in rule.each("operations") {
        if !OPERATIONS.contains(&operation.text()) {
            errors.push(operation.not_supported(OPERATIONS));
        }
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.at(key);
        list.require(errors);
        no_company(&list, what, errors);
    }
    for version in rule.each("apiVersions") {
        version.require(errors);
    }
    resources(rule, errors);
    rule.at("scope").one_of(&["*", "Cluster", "Namespaced"], errors);
}

/// A wildcard stands alone.
fn no_company(list: &At<'_, '_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && items(list.value).iter().any(|item| item == "*") {
        errors.push(list.invalid(&format!("if '*' is present, must not specify other {what}")));
    }
}

fn resources(rule: &At<'_, '_>, errors: &mut Errors) {
    let list = rule.at("resources");
    list.require(errors);
    let (mut any_sub, mut any_resource): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut plain = false;
    let all = items(&rule.value["resources"]);
    for (value, part) in all.iter().zip(rule.each("resources")) {
        let given = text(value);
        if !part.require(errors) {
            continue;
        }
        let Some((resource, sub)) = given.split_once('/') else {
            plain = given != "*";
            continue;
        };
        if any_sub.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {given}");
            errors.push(part.invalid(&detail));
        }
        if any_resource.contains(&sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {given}");
            errors.push(part.invalid(&detail));
        }
        any_sub.extend((sub == "*").then_some(resource));
        any_resource.extend((resource == "*").then_some(sub));
    }
    let has = |name: &str| all.iter().any(|item| item == name);
    if all.len() > 1 && has("*/*") {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has("*") && plain {
        errors.push(
            list.invalid(
                "if '*' is present, must not specify other resources without subresources",
            ),
        );
    }
}
