//! Scopes: which objects a quota is about.

use std::fmt;

use serde_json::Value;

use crate::rules::document::{items, text};

/// What scopes ask about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Traits {
    /// Nothing that a scope could ask about: no scope has room for it.
    #[default]
    None,
    /// A Pod.
    Pod {
        /// Whether its time is limited.
        is_terminating: bool,
        /// Whether it asks for nothing.
        is_best_effort: bool,
        /// The name of its priority class; empty without one.
        priority_class: String,
        /// Whether it wants to be near Pods of other namespaces, or far from them.
        looks_across_namespaces: bool,
    },
    /// A claim of storage.
    VolumeClaim {
        /// The classes of attributes that its volume has, had, or is to have.
        attributes_classes: Vec<String>,
    },
}

/// One thing that a quota wants of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    scope: String,
    operator: String,
    values: Vec<String>,
}

/// As Go prints it: `{PriorityClass In [high low]}`.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} {} [{}]}}", self.scope, self.operator, self.values.join(" "))
    }
}

/// What a quota with this spec wants of objects.
pub fn requirements(spec: &Value) -> Vec<Requirement> {
    let plain = items(&spec["scopes"]).iter().map(|scope| Requirement {
        scope: text(scope).to_owned(),
        operator: "Exists".to_owned(),
        values: Vec::new(),
    });
    let expressions = items(&spec["scopeSelector"]["matchExpressions"]).iter();
    plain.chain(expressions.map(Requirement::of)).collect()
}

impl Traits {
    /// Whether an object is in the scope of a requirement.
    pub fn meet(&self, requirement: &Requirement) -> bool {
        match (self, requirement.scope.as_str()) {
            (Self::Pod { is_terminating, .. }, "Terminating") => *is_terminating,
            (Self::Pod { is_terminating, .. }, "NotTerminating") => !is_terminating,
            (Self::Pod { is_best_effort, .. }, "BestEffort") => *is_best_effort,
            (Self::Pod { is_best_effort, .. }, "NotBestEffort") => !is_best_effort,
            (Self::Pod { looks_across_namespaces, .. }, "CrossNamespacePodAffinity") => {
                *looks_across_namespaces
            }
            (Self::Pod { priority_class, .. }, "PriorityClass") => {
                let class = Some(priority_class.as_str()).filter(|class| !class.is_empty());
                requirement.selects(class)
            }
            (Self::VolumeClaim { attributes_classes }, "VolumeAttributesClass") => {
                match attributes_classes.as_slice() {
                    [] => requirement.selects(None),
                    classes => classes.iter().any(|class| requirement.selects(Some(class))),
                }
            }
            _ => false,
        }
    }
}

impl Requirement {
    /// What an expression of a selector of scopes says.
    pub fn of(expression: &Value) -> Self {
        Self {
            scope: text(&expression["scopeName"]).to_owned(),
            operator: text(&expression["operator"]).to_owned(),
            values: items(&expression["values"]).iter().map(|v| text(v).to_owned()).collect(),
        }
    }

    /// Whether another one is about the same scope.
    pub(super) fn is_about(&self, other: &Self) -> bool {
        self.scope == other.scope
    }

    /// Whether the operator holds of a value, or of there being none.
    fn selects(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.iter().any(|it| it == value));
        match self.operator.as_str() {
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        }
    }
}
