//! Amounts of resources, by name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use steersman_values as values;
use steersman_values::quantity::ParseQuantityError;

/// Amounts by resource name: thousandths for cpu, whole units for everything else.
///
/// Sums are held wider than amounts, so that what is added can be taken away again exactly. What every
/// Pod asks for has a field of its own; the rest is looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    cpu: i128,
    memory: i128,
    ephemeral_storage: i128,
    /// Never holds zeros, so that equal amounts compare as such.
    others: BTreeMap<String, i128>,
}

impl Resources {
    /// Reads a list as Nodes and containers have it.
    pub fn of(quantities: Option<&BTreeMap<String, Quantity>>) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in quantities.into_iter().flatten() {
            resources.set(name, amount(name, quantity));
        }
        resources
    }

    /// How much of a resource; zero if it is not named.
    pub fn get(&self, name: &str) -> i64 {
        narrow(match name {
            "cpu" => self.cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            _ => self.others.get(name).copied().unwrap_or_default(),
        })
    }

    /// Thousandths of cpus.
    pub fn milli_cpu(&self) -> i64 {
        narrow(self.cpu)
    }

    /// Bytes of memory.
    pub fn memory(&self) -> i64 {
        narrow(self.memory)
    }

    /// Every resource of which there is some, with its amount.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let common = [
            ("cpu", self.cpu),
            ("memory", self.memory),
            ("ephemeral-storage", self.ephemeral_storage),
        ];
        let others = self.others.iter().map(|(name, amount)| (name.as_str(), *amount));
        let all = common.into_iter().chain(others);
        all.filter(|(_, amount)| *amount != 0).map(|(name, amount)| (name, narrow(amount)))
    }

    /// Whether there is nothing of anything.
    pub fn is_empty(&self) -> bool {
        self.cpu == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.others.is_empty()
    }

    /// Adds other amounts to these.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i128::saturating_add);
    }

    /// Takes other amounts from these.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i128::saturating_sub);
    }

    /// Raises these amounts to others that are larger.
    pub(super) fn raise(&mut self, other: &Self) {
        self.combine(other, Ord::max);
    }

    pub(super) fn set(&mut self, name: &str, amount: i64) {
        let amount = i128::from(amount);
        match name {
            "cpu" => self.cpu = amount,
            "memory" => self.memory = amount,
            "ephemeral-storage" => self.ephemeral_storage = amount,
            _ => self.set_other(name, amount),
        }
    }

    fn combine(&mut self, other: &Self, with: fn(i128, i128) -> i128) {
        self.cpu = with(self.cpu, other.cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.others {
            let sum = with(self.others.get(name).copied().unwrap_or_default(), *amount);
            self.set_other(name, sum);
        }
    }

    fn set_other(&mut self, name: &str, amount: i128) {
        if amount == 0 {
            self.others.remove(name);
        } else if let Some(known) = self.others.get_mut(name) {
            *known = amount;
        } else {
            self.others.insert(name.to_owned(), amount);
        }
    }
}

/// An amount as others count it; what is too large is the largest there is.
fn narrow(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// How much of a resource a quantity is. Nobody can offer or take less than nothing.
fn amount(resource: &str, quantity: &Quantity) -> i64 {
    let amount = match values::Quantity::parse(&quantity.0) {
        Ok(amount) if resource == "cpu" => amount.milli_value(),
        Ok(amount) => amount.value(),
        Err(ParseQuantityError::Digits { negative: false }) => i64::MAX,
        // The API server lets no nonsense in.
        Err(_) => 0,
    };
    amount.max(0)
}
