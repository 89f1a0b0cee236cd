//! Pod templates that stand alone: what is said of any template, and nothing more.

use serde_json::Value;

use crate::kinds::core::pod::{defaults, disabled, template};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::document::within;
use crate::table::Column;
use crate::table::cells::{joined, labels};

/// What is said of `PodTemplate`.
pub(super) const KIND: Kind = Kind {
    plural: "podtemplates",
    name: "PodTemplate",
    traits: &[Trait::Generation],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |object| within(object, "template", defaults::template),
    create: |object| disabled::drop_of_template(object, "/template", &Value::Null),
    keep: |old, object| disabled::drop_of_template(object, "/template", old),
    check: |object, _, errors| template::validate_template(&object.at("template"), errors),
    warn: |object, old| template::warnings_of(object, "template", old),
    ..Rules::NONE
};

fn columns() -> Vec<Column> {
    vec![
        Column::text("Containers", |object, _| {
            joined(&object["template"]["spec"]["containers"], "name").into()
        }),
        Column::text("Images", |object, _| {
            joined(&object["template"]["spec"]["containers"], "image").into()
        }),
        Column::text("Pod Labels", |object, _| {
            labels(&object["template"]["metadata"]["labels"]).into()
        }),
    ]
}
