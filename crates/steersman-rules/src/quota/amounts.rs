//! Amounts of resources by name, as quotas limit and count them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::quantity::Quantity;

/// Amounts by the names of resources. They are equal if the same names have the same amounts,
/// however those are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// Reads a list of a document. What is no quantity is left out: the API server lets none in.
    pub fn of(list: &Value) -> Self {
        let entries = list.as_object().into_iter().flatten();
        let amounts = entries.filter_map(|(name, value)| Some((name, Quantity::of(value)?)));
        amounts.map(|(name, amount)| (name.clone(), amount)).collect()
    }

    /// As documents have it.
    pub fn to_value(&self) -> Value {
        let entries = self.0.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// How much of a resource, if it is named.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// Says how much of a resource.
    pub fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The names with their amounts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds other amounts to these.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_insert(Quantity::ZERO);
            // Of amounts so far apart that their sum cannot be held, the larger is as good.
            *sum = sum.checked_add(*amount).unwrap_or_else(|| (*sum).max(*amount));
        }
    }

    /// Takes other amounts from these, where they are named; nothing becomes less than zero.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &mut self.0 {
            let Some(other) = other.0.get(name) else { continue };
            *amount = match amount.checked_sub(*other) {
                _ if *amount <= *other => Quantity::ZERO,
                Some(rest) => rest,
                None => *amount,
            };
        }
    }

    /// Raises these amounts to others that are larger.
    pub fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_insert(*amount);
            if *amount > *most {
                *most = *amount;
            }
        }
    }

    /// Those of a resource that this says yes to.
    #[must_use]
    pub fn only(&self, is_meant: impl Fn(&str) -> bool) -> Self {
        let meant = self.iter().filter(|(name, _)| is_meant(name));
        meant.map(|(name, amount)| (name.to_owned(), amount)).collect()
    }

    /// Those that are not zero.
    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        self.0.retain(|_, amount| *amount != Quantity::ZERO);
        self
    }

    /// The names of which there is more here than there.
    pub fn exceeding<'a>(&'a self, limits: &'a Self) -> impl Iterator<Item = &'a str> {
        let over = |(name, amount): &(&str, Quantity)| {
            limits.get(name).is_some_and(|limit| *amount > limit)
        };
        self.iter().filter(over).map(|(name, _)| name)
    }
}

impl FromIterator<(String, Quantity)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (String, Quantity)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

/// As refusals have it: `pods=1,requests.cpu=500m`.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.0.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        f.write_str(&parts.join(","))
    }
}
