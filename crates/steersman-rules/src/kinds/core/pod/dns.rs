//! What a pod is called, and how it finds others by their names.

use crate::names;
use crate::rules::address;
use crate::rules::at::{At, Errors};

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARS_MAX: usize = 2048;
const HOSTNAME_MAX: usize = 64;

/// The mistakes in `dnsConfig`.
pub(super) fn config(config: &At<'_, '_>, policy: &str, errors: &mut Errors) {
    let servers = config.at("nameservers");
    let searches = config.at("searches");
    if policy == "None" && config.is_absent() {
        errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
        return;
    }
    if policy == "None" && servers.list().is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(servers.required(why));
        return;
    }
    if servers.len() > NAMESERVERS_MAX {
        let why = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(servers.invalid(&why));
    }
    for server in servers.items() {
        address::strict_ip(&server, errors);
    }
    if searches.len() > SEARCHES_MAX {
        let why = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(searches.invalid(&why));
    }
    let chars: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if chars > SEARCH_CHARS_MAX + 1 {
        let why = format!(
            "must not have more than {SEARCH_CHARS_MAX} characters (including spaces) in the \
             search list"
        );
        errors.push(searches.invalid(&why));
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        for why in subdomain_with_underscore(name) {
            errors.push(search.invalid_value(name, &why));
        }
    }
    for option in config.each("options") {
        if option.at("name").text().is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

/// What a subdomain requires that may have underscores.
fn subdomain_with_underscore(name: &str) -> Vec<String> {
    const RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                        characters, '_', '-' or '.', and must start and end with an alphanumeric \
                        character (e.g. 'example.com', regex used for validation is \
                        '[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*')";
    let complaints = names::dns1123_subdomain(&name.replace('_', "x")).into_iter();
    let is_rule = |why: &str| why.starts_with("a lowercase RFC 1123 subdomain");
    complaints.map(|why| if is_rule(&why) { RULE.to_owned() } else { why }).collect()
}

/// The mistakes in `hostAliases`.
pub(super) fn host_aliases(list: &At<'_, '_>, errors: &mut Errors) {
    for alias in list.items() {
        address::strict_ip(&alias.at("ip"), errors);
        for name in alias.each("hostnames") {
            name.follows(names::dns1123_subdomain, errors);
        }
    }
}

/// The mistakes in `hostnameOverride`.
pub(super) fn hostname_override(spec: &At<'_, '_>, errors: &mut Errors) {
    let name = spec.at("hostnameOverride");
    if name.is_absent() {
        return;
    }
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.at(field).is_true() {
            let why = format!("may not be specified when {field} is true");
            errors.push(name.forbidden(&why));
        }
    }
    if name.text().len() > HOSTNAME_MAX {
        errors.push(name.too_long(HOSTNAME_MAX));
    }
    name.follows(names::dns1123_subdomain, errors);
}
