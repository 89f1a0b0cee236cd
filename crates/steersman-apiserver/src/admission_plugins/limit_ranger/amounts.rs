//! Amounts of resources by name, as containers request them and limits bound them.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_rules::quantity::Quantity;

/// An amount, and how it is written.
#[derive(Clone, Debug)]
pub(super) struct Amount {
    pub(super) quantity: Quantity,
    pub(super) text: String,
}

impl Amount {
    fn of(value: &Value) -> Option<Self> {
        let quantity = Quantity::of(value)?;
        // Kubernetes writes an amount as it was given where that is as good as canonical.
        let given = value.as_str().map(|text| Quantity::canonical(text).unwrap_or(text.to_owned()));
        Some(Self { quantity, text: given.unwrap_or_else(|| quantity.to_string()) })
    }
}

/// Amounts of resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Amounts(BTreeMap<String, Amount>);

impl Amounts {
    /// The amounts in a field.
    pub(super) fn of(list: &Value) -> Self {
        let list = list.as_object().into_iter().flatten();
        Self(list.filter_map(|(name, value)| Some((name.clone(), Amount::of(value)?))).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Amount> {
        self.0.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Amount)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), amount))
    }

    /// Adds other amounts to these.
    pub(super) fn add(&mut self, others: &Self) {
        for (name, other) in &others.0 {
            match self.0.get_mut(name) {
                Some(amount) => {
                    let [own, more] = [amount.quantity, other.quantity];
                    // What cannot be added is at least as much as the larger one.
                    amount.quantity = own.checked_add(more).unwrap_or_else(|| own.max(more));
                    amount.text = amount.quantity.to_string();
                }
                None => self.set(name, other),
            }
        }
    }

    /// Raises these amounts to others that are larger.
    pub(super) fn raise_to(&mut self, others: &Self) {
        for (name, other) in &others.0 {
            if self.0.get(name).is_none_or(|amount| amount.quantity < other.quantity) {
                self.set(name, other);
            }
        }
    }

    pub(super) fn set(&mut self, name: &str, amount: &Amount) {
        self.0.insert(name.to_owned(), amount.clone());
    }
}

/// What is requested, and what is allowed at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Requirements {
    pub(super) requests: Amounts,
    pub(super) limits: Amounts,
}

impl Requirements {
    /// What is in a field `resources`.
    pub(super) fn of(resources: &Value) -> Self {
        let amounts = |list: &str| Amounts::of(&resources[list]);
        Self { requests: amounts("requests"), limits: amounts("limits") }
    }
}
