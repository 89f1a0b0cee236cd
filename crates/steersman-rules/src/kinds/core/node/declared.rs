//! The features that a node says it has.

use steersman_values::quoted;

use crate::rules::at::{At, Errors};

/// The longest name of a feature.
const NAME_MAX: usize = 253;

/// The mistakes in the list of features: it is sorted, and none stands twice.
pub(super) fn validate(list: &At<'_, '_>, errors: &mut Errors) {
    let mut before = None;
    for feature in list.items() {
        let name = feature.text();
        // Upstream tells what is wrong with the order first.
        if before == Some(name) {
            errors.push(feature.duplicate());
        } else if before.is_some_and(|before| before > name) {
            errors.push(feature.invalid("list must be sorted alphabetically"));
        }
        if let Some(why) = mistake(name) {
            let why = format!("invalid feature name {}: {why}", quoted(name));
            errors.push(feature.invalid(&why));
        }
        before = Some(name);
    }
}

fn mistake(name: &str) -> Option<String> {
    if name.len() > NAME_MAX {
        return Some(format!("must be no more than {NAME_MAX} characters"));
    }
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let sound =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_segment);
    (!sound).then(|| {
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' \
         (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters \
         and slashes"
            .to_owned()
    })
}
