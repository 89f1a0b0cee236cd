//! `DeviceClass`: a name for devices that are selected and configured alike.

use super::device::{configuration, selectors};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::{Rules, is_extended};
use crate::table::age;

/// What is said of `DeviceClass`.
pub(super) const KIND: Kind = Kind {
    plural: "deviceclasses",
    name: "DeviceClass",
    traits: &[Trait::Generation],
    rules: &RULES,
    columns: || vec![age()],
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check: |class, old, errors| {
        let spec = class.at("spec");
        selectors(&spec, &old["spec"]["selectors"], errors);
        spec.each("config").for_each(|config| configuration(&config, errors));
        let resource = spec.at("extendedResourceName");
        if resource.is_set() && !is_extended(resource.text()) {
            errors.push(resource.invalid("must be a valid extended resource name"));
        }
    },
    ..Rules::NONE
};

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::field::FieldError;

    fn class(expression: &str) -> Value {
        json!({"metadata": {"name": "c"}, "spec": {"selectors": [
            {"cel": {"expression": "true"}}, {"cel": {"expression": expression}},
        ]}})
    }

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    }

    #[test]
    fn expressions_are_short_and_cheap_and_true_or_false() {
        let sized = |bytes: usize| {
            let rest = "device.driver == ''".len();
            format!("device.driver == '{}'", "x".repeat(bytes - rest))
        };
        let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
        let nested = (0..7).fold("int('1'.find('[0-9]*')) < 100".to_owned(), |inner, at| {
            format!("{ten}.all(x{at}, {inner})")
        });
        let at = "spec.selectors[1].cel.expression";
        for (expression, expected) in [
            (sized(10 * 1024), vec![]),
            (
                sized(10 * 1024 + 1),
                vec![format!("{at}: Too long: may not be more than 10240 bytes")],
            ),
            (nested, vec![format!("{at}: Forbidden: too complex, exceeds cost limit")]),
            (
                "'abc'".to_owned(),
                vec![format!(
                    "{at}: Invalid value: \"'abc'\": must evaluate to bool or the unknown type, \
                     not string"
                )],
            ),
        ] {
            assert_eq!(told(&RULES.validate_create(&class(&expression))), expected);
        }
    }

    #[test]
    fn a_class_stands_for_a_resource_that_is_nobody_elses() {
        for (name, is_one) in [
            ("example.com/gpu", true),
            ("gpu", false),
            ("", false),
            ("kubernetes.io/gpu", false),
            ("deviceclass.resource.kubernetes.io/gpu", false),
            ("requests.example.com/gpu", false),
            ("example.com/?", false),
        ] {
            let class = json!({"metadata": {"name": "c"}, "spec": {"extendedResourceName": name}});
            let why = format!(
                "spec.extendedResourceName: Invalid value: {name:?}: must be a valid extended \
                 resource name"
            );
            let expected = if is_one { vec![] } else { vec![why] };
            assert_eq!(told(&RULES.validate_create(&class)), expected);
        }
    }

    #[test]
    fn an_expression_that_is_stored_stays() {
        let stored = class("device.foo");
        assert!(RULES.validate_update(&stored, &stored).is_empty());
        assert_eq!(RULES.validate_update(&stored, &class("device.bar")).len(), 1);
    }
}
