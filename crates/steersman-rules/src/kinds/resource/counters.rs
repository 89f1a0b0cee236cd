//! Counters that devices share, such as the memory of a card that can be divided, and how much of
//! them each device takes.

use super::device::{LIST_MAX, at_most, unique};
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;

const SETS_MAX: usize = 8;
const SETS_OF_DEVICE_MAX: usize = 2;

/// The mistakes in the counters that a slice has.
pub(super) fn shared(spec: &At<'_, '_>, errors: &mut Errors) {
    let sets = spec.at("sharedCounters");
    if at_most(&sets, SETS_MAX, errors) {
        check(&sets, "name", errors);
    }
}

/// The mistakes in what a device takes.
pub(super) fn consumed(device: &At<'_, '_>, errors: &mut Errors) {
    let sets = device.at("consumesCounters");
    if at_most(&sets, SETS_OF_DEVICE_MAX, errors) {
        check(&sets, "counterSet", errors);
    }
}

/// The mistakes in sets of counters, whose name is in this field.
fn check(sets: &At<'_, '_>, name: &str, errors: &mut Errors) {
    for set in sets.items() {
        set.at(name).requires(names::dns1123_label, errors);
        let counters = set.at("counters");
        if counters.require(errors) && at_most(&counters, LIST_MAX, errors) {
            for (counter, _) in counters.entries() {
                let mistakes = names::dns1123_label(counter);
                errors.extend(mistakes.iter().map(|why| counters.invalid_value(counter, why)));
            }
        }
    }
    unique(sets, |set| text(&set[name]), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::kinds::resource::resource_slice::mistakes;

    const NO_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                            characters or '-', and must start and end with an alphanumeric \
                            character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                            '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

    fn counters(count: usize) -> Value {
        (0..count).map(|number| (format!("c{number}"), json!({"value": "1"}))).collect()
    }

    #[test]
    fn counters_have_names_in_sets_that_have_names() {
        let good = |name: &str, set: &str| json!({name: set, "counters": counters(32)});
        for (list, name, at, max) in [
            ("sharedCounters", "name", "spec.sharedCounters", 8),
            ("consumesCounters", "counterSet", "spec.devices[0].consumesCounters", 2),
        ] {
            for (sets, expected) in [
                (vec![good(name, "a"), good(name, "b")], vec![]),
                (
                    vec![json!({})],
                    vec![
                        format!("{at}[0].{name}: Required value"),
                        format!("{at}[0].counters: Required value"),
                    ],
                ),
                (
                    vec![json!({name: "A", "counters": {"?": {"value": "1"}}})],
                    vec![
                        format!("{at}[0].{name}: Invalid value: \"A\": {NO_LABEL}"),
                        format!("{at}[0].counters: Invalid value: \"?\": {NO_LABEL}"),
                    ],
                ),
                (
                    vec![json!({name: "a", "counters": counters(33)})],
                    vec![format!("{at}[0].counters: Too many: 33: must have at most 32 items")],
                ),
                (
                    vec![good(name, "a"), good(name, "a")],
                    vec![format!("{at}[1]: Duplicate value: \"a\"")],
                ),
                (
                    vec![json!({}); max + 1],
                    vec![format!("{at}: Too many: {}: must have at most {max} items", max + 1)],
                ),
            ] {
                let spec = match list {
                    "sharedCounters" => json!({list: sets}),
                    _ => json!({"devices": [{"name": "a", list: sets}]}),
                };
                assert_eq!(mistakes(&spec), expected, "{spec}");
            }
        }
    }
}
