//! Names of attributes and capacities: an identifier as in C, and before it the domain of whom it is
//! and a slash, if it is not the driver's own.

use std::borrow::Cow;

use serde_json::Value;
use steersman_values::names::regex;

use crate::kinds::core::persistent_volume::driver_name;
use crate::rules::at::{At, Errors};

const IDENTIFIER_MAX: usize = 32;
const DOMAIN_MAX: usize = 63;
/// How much of a name paths show: all of one that is not too long.
const SHOWN_MAX: usize = DOMAIN_MAX + "/".len() + IDENTIFIER_MAX;

/// The mistakes in a map by such names, and what `check` finds in each of its entries.
pub(super) fn entries(
    map: &At<'_, '_>,
    check: impl Fn(&At<'_, '_>, &mut Errors),
    errors: &mut Errors,
) {
    for (name, entry) in map.entries() {
        qualified(name, map, errors);
        check(&map.entry(&shown(name)).with(entry.value), errors);
    }
}

/// The mistakes in a name that needs no domain. They are told of a place that need not be its own.
fn qualified(name: &str, place: &At<'_, '_>, errors: &mut Errors) {
    match name.split_once('/') {
        None => identifier(name, place, errors),
        // Kubernetes lets more slashes pass.
        Some((_, rest)) if rest.contains('/') => {}
        Some((domain, id)) => {
            if domain.is_empty() {
                errors.push(place.invalid_value("", "the domain must not be empty"));
            } else {
                driver_name(&place.with(&Value::from(domain)), errors);
            }
            if id.is_empty() {
                errors.push(place.invalid_value("", "the name must not be empty"));
            } else {
                identifier(id, place, errors);
            }
        }
    }
}

/// The mistakes in a name that needs a domain.
pub(super) fn fully_qualified(name: &At<'_, '_>, errors: &mut Errors) {
    qualified(name.text(), name, errors);
    if !name.text().contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(name.invalid_value(name.text(), why));
    }
}

fn identifier(id: &str, place: &At<'_, '_>, errors: &mut Errors) {
    if id.len() > IDENTIFIER_MAX {
        errors.push(place.too_long(IDENTIFIER_MAX));
    }
    let may_begin = |c: char| c.is_ascii_alphabetic() || c == '_';
    let may_follow = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !id.starts_with(may_begin) || !id.chars().all(may_follow) {
        let why = regex(
            "a valid C identifier must start with alphabetic character or '_', followed by a \
             string of alphanumeric characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*",
            &["my_name", "MY_NAME", "MyName"],
        );
        errors.push(place.invalid_value(id, &why));
    }
}

/// A name as paths show it: one that is very long lacks its middle.
fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= SHOWN_MAX {
        return name.into();
    }
    let kept = SHOWN_MAX - "...".len();
    let begin = name.floor_char_boundary(kept.div_ceil(2));
    let end = name.ceil_char_boundary(name.len() - kept / 2);
    format!("{}...{}", &name[..begin], &name[end..]).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::messages;

    const NO_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', \
                                 followed by a string of alphanumeric characters or '_' (e.g. \
                                 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation \
                                 is '[A-Za-z_][A-Za-z0-9_]*')";

    #[test]
    fn a_name_is_an_identifier_that_may_have_a_domain() {
        let no_identifier = |id: &str| vec![format!("at: Invalid value: {id:?}: {NO_IDENTIFIER}")];
        let too_long = |max: usize| vec![format!("at: Too long: may not be more than {max} bytes")];
        let [longest, longer] = [32, 33].map(|bytes| "x".repeat(bytes));
        let long_domain = format!("{}/a", "x".repeat(64));
        for (name, expected) in [
            ("model", vec![]),
            ("_Model_2", vec![]),
            ("Example.com/model", vec![]),
            ("a/b/c", vec![]),
            ("", no_identifier("")),
            ("2nd", no_identifier("2nd")),
            ("with-dash", no_identifier("with-dash")),
            ("example.com/a b", no_identifier("a b")),
            (longest.as_str(), vec![]),
            (longer.as_str(), too_long(32)),
            (long_domain.as_str(), too_long(63)),
            (
                "/",
                vec![
                    "at: Invalid value: \"\": the domain must not be empty".to_owned(),
                    "at: Invalid value: \"\": the name must not be empty".to_owned(),
                ],
            ),
        ] {
            let map = json!({name: null});
            let mut errors = Errors::default();
            entries(&At::new(&map, "at"), |_, _| {}, &mut errors);
            assert_eq!(messages(&errors), expected, "{name}");
        }
        let value = json!("model");
        let mut errors = Errors::default();
        fully_qualified(&At::new(&value, "at"), &mut errors);
        let why = "at: Invalid value: \"model\": a fully qualified name must be a domain and a \
                   name separated by a slash";
        assert_eq!(messages(&errors), [why]);
    }

    #[test]
    fn paths_show_the_ends_of_a_very_long_name() {
        assert_eq!(shown(&"x".repeat(96)), "x".repeat(96));
        let long = format!("{}{}", "a".repeat(100), "b".repeat(100));
        assert_eq!(shown(&long), format!("{}...{}", "a".repeat(47), "b".repeat(46)));
    }
}
