//! Names that are domains, or begin with one: hosts, webhooks, controllers.

use serde_json::Value;

use steersman_values::names::{is_subdomain, regex, too_long};

use super::{dns1123_label, dns1123_subdomain};
use crate::field::{Errors, FieldError};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const HTTP_PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";

/// What the host of a rule requires: a domain, or `*.` and a domain.
pub fn host_or_wildcard(value: &str) -> Vec<String> {
    if !value.contains('*') {
        return dns1123_subdomain(value);
    }
    let mut found = too_long(value, 253);
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        found.push(regex(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
             end with an alphanumeric character",
            &format!("\\*\\.{LABEL}(\\.{LABEL})*"),
            &["*.example.com"],
        ));
    }
    found
}

/// Complains about a name that is not a domain of three segments or more: names of webhooks.
pub fn fully_qualified_name(value: &str, field: &str, errors: &mut Errors) {
    let complaints = dns1123_subdomain(value);
    let detail = match value {
        "" => return errors.push(FieldError::required(field, "")),
        _ if !complaints.is_empty() => complaints.join(","),
        _ if value.split('.').count() < 3 => {
            "should be a domain with at least three segments separated by dots".to_owned()
        }
        _ => return,
    };
    errors.push(FieldError::invalid(field, &Value::from(value), &detail));
}

/// Complains about a host that is not a domain of two segments or more.
pub fn fully_qualified_domain(value: &str, field: &str, errors: &mut Errors) {
    let host = value.strip_suffix('.').unwrap_or(value);
    let complaints = dns1123_subdomain(host);
    let long = host.split('.').find(|label| !dns1123_label(label).is_empty());
    let (shown, detail) = match host {
        "" => return errors.push(FieldError::required(field, "")),
        _ if !complaints.is_empty() => (host, complaints.join(",")),
        _ if !host.contains('.') => {
            (host, "should be a domain with at least two segments separated by dots".to_owned())
        }
        _ => match long {
            Some(label) => (label, dns1123_label(label).join(",")),
            None => return,
        },
    };
    errors.push(FieldError::invalid(field, &Value::from(shown), &detail));
}

/// Complains about a name that is not a domain and a path, such as `example.com/controller`.
pub fn domain_prefixed_path(value: &str, field: &str, errors: &mut Errors) {
    if value.is_empty() {
        return errors.push(FieldError::required(field, ""));
    }
    let (host, path) = match value.split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => (host, path),
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return errors.push(FieldError::invalid(field, &Value::from(value), detail));
        }
    };
    for complaint in dns1123_subdomain(host) {
        errors.push(FieldError::invalid(field, &Value::from(host), &complaint));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !path.chars().all(allowed) {
        let detail = format!("Invalid path (regex used for validation is '{HTTP_PATH}')");
        errors.push(FieldError::invalid(field, &Value::from(path), &detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&str, &str, &mut Errors);

    #[test]
    fn a_wildcard_stands_for_the_first_segment_alone() {
        for host in ["a", "a.b", "*.a", "*.a.b"] {
            assert_eq!(host_or_wildcard(host), Vec::<String>::new(), "{host}");
        }
        for host in ["", "*", "a.*", "*.*.a", "A.b"] {
            assert!(!host_or_wildcard(host).is_empty(), "{host}");
        }
    }

    #[test]
    fn domains_have_the_segments_their_use_asks_for() {
        let cases: &[(Rule, &str, &str)] = &[
            (fully_qualified_name, "a.b.c", ""),
            (fully_qualified_name, "", "f: Required value"),
            (
                fully_qualified_name,
                "a.b",
                "f: Invalid value: \"a.b\": should be a domain with at least three segments \
                 separated by dots",
            ),
            (fully_qualified_domain, "a.b.", ""),
            (
                fully_qualified_domain,
                "a",
                "f: Invalid value: \"a\": should be a domain with at least two segments \
                 separated by dots",
            ),
            (domain_prefixed_path, "a.b/c", ""),
            (
                domain_prefixed_path,
                "a.b",
                "f: Invalid value: \"a.b\": must be a domain-prefixed path (such as \
                 \"acme.io/foo\")",
            ),
        ];
        for (rule, value, expected) in cases {
            let mut errors = Errors::default();
            rule(value, "f", &mut errors);
            let found: Vec<_> = errors.iter().map(FieldError::message).collect();
            assert_eq!(found.join("\n"), *expected, "{value}");
        }
    }
}
