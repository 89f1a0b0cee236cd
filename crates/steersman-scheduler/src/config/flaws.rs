//! What is wrong with a configuration, in Kubernetes' words.

use serde::Serialize;
use steersman_values::names::qualified_name;

/// Arguments that may be wrong.
pub(super) trait Checked {
    /// Notes what is wrong with what stands at this path.
    fn check(&self, path: &str, flaws: &mut Flaws);
}

/// What is wrong, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flaws(Vec<String>);

impl Flaws {
    pub(super) fn none(self) -> Result<(), String> {
        match &self.0[..] {
            [] => Ok(()),
            [flaw] => Err(flaw.clone()),
            flaws => Err(format!("[{}]", flaws.join(", "))),
        }
    }

    pub(super) fn duplicate(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_string(&value).unwrap_or_default();
        self.0.push(format!("{field}: Duplicate value: {value}"));
    }

    pub(super) fn invalid(&mut self, field: &str, value: impl Serialize, why: &str) {
        let value = serde_json::to_string(&value).unwrap_or_default();
        self.0.push(format!("{field}: Invalid value: {value}: {why}"));
    }

    pub(super) fn required(&mut self, field: &str, why: &str) {
        let colon = if why.is_empty() { "" } else { ": " };
        self.0.push(format!("{field}: Required value{colon}{why}"));
    }

    pub(super) fn forbidden(&mut self, field: &str, why: &str) {
        self.0.push(format!("{field}: Forbidden: {why}"));
    }

    pub(super) fn unsupported(&mut self, field: &str, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        let supported = supported.join(", ");
        self.0
            .push(format!("{field}: Unsupported value: {value:?}: supported values: {supported}"));
    }

    pub(super) fn not_qualified(&mut self, field: &str, name: &str) {
        for why in qualified_name(name) {
            self.invalid(field, name, &why);
        }
    }

    pub(super) fn out_of_range(&mut self, field: &str, value: i64, max: i64) {
        if !(0..=max).contains(&value) {
            self.invalid(field, value, &format!("not in valid range [0, {max}]"));
        }
    }
}
