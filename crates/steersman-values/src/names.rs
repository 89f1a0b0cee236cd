//! What names may look like, worded as Kubernetes words it.
//!
//! Each rule is a function from a text to the complaints about it, empty when it is fine, so
//! that validation can put the path of the field in front.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// What an RFC 1123 label requires: names of namespaces and containers.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut found = too_long(value, 63);
    if !is_label(value) {
        if is_subdomain(value) {
            found.push("must not contain dots".to_owned());
        } else {
            found.push(regex(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    found
}

/// What an RFC 1123 subdomain requires: names of most objects.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut found = too_long(value, 253);
    if !is_subdomain(value) {
        found.push(regex(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            &format!("{LABEL}(\\.{LABEL})*"),
            &["example.com"],
        ));
    }
    found
}

/// What an RFC 1035 label requires: names of custom resources and their versions.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut found = too_long(value, 63);
    if !(is_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        found.push(dns1035_rule(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
        ));
    }
    found
}

/// The rule for RFC 1035 labels in these words, with its examples and its pattern.
pub fn dns1035_rule(words: &str) -> String {
    regex(words, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"])
}

/// What a part of a path requires: names of RBAC objects.
pub fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    let mut found = Vec::new();
    for part in ['/', '%'] {
        if value.contains(part) {
            found.push(format!("may not contain '{part}'"));
        }
    }
    found
}

/// What a label key, annotation key or finalizer requires: a name with an optional prefix.
pub fn qualified_name(value: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                        and end with an alphanumeric character";
    let rule = || regex(RULE, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut found = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                found.extend(dns1123_subdomain(prefix).iter().map(|m| format!("prefix part {m}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')",
                rule()
            )];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    }
    found.extend(too_many_bytes(name, 63).iter().map(|m| format!("name part {m}")));
    if !is_qualified(name) {
        found.push(format!("name part {}", rule()));
    }
    found
}

/// What the value of a label requires.
pub fn label_value(value: &str) -> Vec<String> {
    let mut found = too_many_bytes(value, 63);
    if !value.is_empty() && !is_qualified(value) {
        found.push(regex(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    found
}

/// What a key of a `ConfigMap` or Secret requires.
pub fn config_key(value: &str) -> Vec<String> {
    let mut found = too_long(value, 253);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if value.is_empty() || !value.chars().all(allowed) {
        found.push(regex(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." | ".." => found.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

/// What the name of a container port requires.
pub fn port_name(value: &str) -> Vec<String> {
    let mut found = too_long(value, 15);
    if !value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        found.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !value.contains(|c: char| c.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        found.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        found.push("must not begin or end with a hyphen".to_owned());
    }
    found
}

/// The complaint about a name that is too long. In Kubernetes the names of objects and ports are
/// measured in one place, keys and values of labels in another, with another word for the same
/// measure.
pub fn too_long(value: &str, max: usize) -> Vec<String> {
    let complaint = || format!("must be no more than {max} characters");
    if value.len() > max { vec![complaint()] } else { Vec::new() }
}

fn too_many_bytes(value: &str, max: usize) -> Vec<String> {
    let complaint = || format!("must be no more than {max} bytes");
    if value.len() > max { vec![complaint()] } else { Vec::new() }
}

/// A complaint that names its rule, examples and the pattern.
pub fn regex(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn is_label(value: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !value.is_empty()
        && value.chars().all(inside)
        && !value.starts_with('-')
        && !value.ends_with('-')
}

/// Whether a text is labels with dots between.
pub fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified(value: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    value.chars().all(inside)
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        type Rule = fn(&str) -> Vec<String>;
        let cases: &[(Rule, &[&str], &[&str])] = &[
            (dns1123_label, &["a", "a-1", "0"], &["", "-a", "a-", "A", "a.b", "a_b"]),
            (dns1123_subdomain, &["a", "a.b-c", "1.2"], &["", ".a", "a..b", "A.b", "a_b"]),
            (dns1035_label, &["a", "a-1"], &["", "1a", "a.b", "A"]),
            (qualified_name, &["a", "A_b.c", "x.y/Z"], &["", "/a", "a/", "a/b/c", "-a", "X/a"]),
            (label_value, &["", "a", "A_b.c-1"], &["-a", "a b", "a/b"]),
            (config_key, &["a", "A_b.c-1", ".x"], &["", "a/b", ".", "..", "..x"]),
            (port_name, &["http", "a-1"], &["1", "HTTP", "a--b", "-a", "averyveryverylong"]),
            (path_segment, &["system:node", "A b"], &[".", "..", "a/b", "a%b"]),
        ];
        for (rule, good, bad) in cases {
            for name in *good {
                assert_eq!(rule(name), Vec::<String>::new(), "{name:?} should be fine");
            }
            for name in *bad {
                assert!(!rule(name).is_empty(), "{name:?} should be refused");
            }
        }
    }
}
