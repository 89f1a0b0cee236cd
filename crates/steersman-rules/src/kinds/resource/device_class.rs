//! `DeviceClass`: a name for devices that are selected and configured alike.

use super::device::{LIST_MAX, at_most, configuration};
use super::selector::selectors;
use crate::kinds::kind::{Kind, Trait};
use crate::rules::document::same;
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
        let configs = spec.at("config");
        if at_most(&configs, LIST_MAX, errors) {
            let is_stored = same(&old["spec"]["config"], configs.value);
            configs.items().for_each(|config| configuration(&config, is_stored, errors));
        }
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
    fn drivers_are_told_objects_that_are_not_too_long() {
        let driver = "d.example.com";
        let opaque = |parameters: Value| json!({"driver": driver, "parameters": parameters});
        let sized = |bytes: usize| json!({"a": "x".repeat(bytes - "{'a':''}".len())});
        let class = |opaque: &Value| json!({"metadata": {"name": "c"}, "spec": {"config": [{"opaque": opaque}]}});
        let at = "spec.config[0].opaque";
        let too_long = format!("{at}.parameters: Too long: may not be more than 10240 bytes");
        let no_object = format!(
            "{at}.parameters: Invalid value: \"<value omitted>\": must be a valid JSON object"
        );
        for (opaque, expected) in [
            (opaque(sized(10 * 1024)), vec![]),
            (opaque(sized(10 * 1024 + 1)), vec![too_long]),
            (opaque(json!([])), vec![no_object]),
            (opaque(json!(null)), vec![format!("{at}.parameters: Required value")]),
            (Value::Null, vec![format!("{at}: Required value")]),
        ] {
            assert_eq!(told(&RULES.validate_create(&class(&opaque))), expected);
        }
        let stored = class(&opaque(sized(20 * 1024)));
        assert!(RULES.validate_update(&stored, &stored).is_empty(), "it had no limit once");
        let mut many = stored;
        many["spec"]["config"] = vec![json!({}); 33].into();
        let too_many = "spec.config: Too many: 33: must have at most 32 items";
        assert_eq!(told(&RULES.validate_create(&many)), [too_many]);
    }

    #[test]
    fn an_expression_that_is_stored_stays() {
        let stored = class("device.foo");
        assert!(RULES.validate_update(&stored, &stored).is_empty());
        assert_eq!(RULES.validate_update(&stored, &class("device.bar")).len(), 1);
    }
}
