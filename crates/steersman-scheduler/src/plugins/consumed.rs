//! How much of the capacities of a device is taken.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use steersman_values::Quantity;

/// Amounts of the capacities of a device, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Consumed(BTreeMap<String, Quantity>);

impl Consumed {
    /// What a claim says that it takes. The API server lets nothing in that is no amount.
    pub(super) fn read(amounts: &BTreeMap<String, Amount>) -> Self {
        let read = |amount: &Amount| Quantity::parse(&amount.0).unwrap_or(Quantity::ZERO);
        Self(amounts.iter().map(|(name, amount)| (name.clone(), read(amount))).collect())
    }

    /// The same as a claim says it; none if nothing is taken.
    pub(super) fn written(&self) -> Option<BTreeMap<String, Amount>> {
        let write = |amount: &Quantity| Amount(amount.to_string());
        let written = self.0.iter().map(|(name, amount)| (name.clone(), write(amount)));
        (!self.0.is_empty()).then(|| written.collect())
    }

    pub(super) fn set(&mut self, name: &str, amount: Quantity) {
        self.0.insert(name.to_owned(), amount);
    }

    pub(super) fn get(&self, name: &str) -> Quantity {
        self.0.get(name).copied().unwrap_or(Quantity::ZERO)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, Quantity::checked_add);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, Quantity::checked_sub);
    }

    /// Amounts have fewer digits than a sum of them can have.
    fn combine(&mut self, other: &Self, with: fn(Quantity, Quantity) -> Option<Quantity>) {
        for (name, amount) in &other.0 {
            let sum = with(self.get(name), *amount);
            self.set(name, sum.unwrap_or_else(|| self.get(name)));
        }
    }
}
