//! `ResourceClaimTemplate`: what the claims of pods are made from. Nothing in it changes.

use serde_json::Value;

use super::{claim_spec, device};
use crate::kinds::core::pod::claims::template_metadata;
use crate::kinds::kind::Kind;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::document::within;
use crate::table::age;

/// What is said of `ResourceClaimTemplate`.
pub(super) const KIND: Kind = Kind {
    plural: "resourceclaimtemplates",
    name: "ResourceClaimTemplate",
    rules: &RULES,
    effect: Some(Effect::DeviceClaim),
    columns: || vec![age()],
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |template| within(template, "spec", defaults),
    check: |template, old, errors| {
        if old.is_null() {
            let outer = template.at("spec");
            template_metadata(&outer.at("metadata"), errors);
            claim_spec::check(&outer.at("spec"), errors);
        }
    },
    change: |template, old, errors| {
        let kind = "ResourceClaimTemplateSpec";
        device::fixed(&template.at("spec"), kind, &old["spec"], defaults, errors);
    },
    ..Rules::NONE
};

fn defaults(spec: &mut Value) {
    within(spec, "spec", claim_spec::defaults);
}
