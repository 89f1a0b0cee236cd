//! What the rules of a definition (`x-kubernetes-validations`) cost, for a test to ask.
//!
//! Kubernetes counts it: a definition is refused if the largest object that it allows could cost too
//! much, and an object is refused if it does. Both limits are met in production first, with the
//! largest objects; a test can ask how far they are.

use std::fmt;

use kube::{CustomResourceExt, Resource};
use serde::Serialize;
use serde_json::Value;
use steersman::Result;
use steersman_cluster::{RuleCost, rule_costs};

/// What the rules of a kind cost on one object.
///
/// ```
/// use kube::{CustomResource, KubeSchema};
/// use serde::{Deserialize, Serialize};
/// use steersman_testkit::{RuleCost, RuleCosts};
///
/// #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
/// #[kube(group = "demo.steersman.dev", version = "v1", kind = "Boat", namespaced)]
/// #[x_kube(validation = "self.masts < 10")]
/// struct BoatSpec {
///     masts: u32,
/// }
///
/// let costs = RuleCosts::of(&Boat::new("argo", BoatSpec { masts: 1 })).unwrap();
/// assert!(costs.actual() < RuleCost::ACTUAL_TOTAL_MAX / 1000);
/// let rule = costs.rule("self.masts < 10").unwrap();
/// assert!(rule.estimated < RuleCost::ESTIMATED_MAX / 1000);
/// ```
#[derive(Clone, Debug)]
pub struct RuleCosts {
    rules: Vec<RuleCost>,
}

impl RuleCosts {
    /// What they cost when the object is created.
    pub fn of<K>(object: &K) -> Result<Self>
    where
        K: CustomResourceExt + Resource<DynamicType = ()> + Serialize,
    {
        Self::on(&schema::<K>()?, object, None)
    }

    /// What they cost when the object replaces another.
    pub fn of_change<K>(old: &K, new: &K) -> Result<Self>
    where
        K: CustomResourceExt + Resource<DynamicType = ()> + Serialize,
    {
        Self::on(&schema::<K>()?, new, Some(&serde_json::to_value(old)?))
    }

    fn on(schema: &Value, object: &impl Serialize, old: Option<&Value>) -> Result<Self> {
        let object = serde_json::to_value(object)?;
        let rules = rule_costs(schema, &object, old).map_err(BrokenRules)?;
        Ok(Self { rules })
    }

    /// What each of them costs, in the order in which Kubernetes comes to them.
    pub fn rules(&self) -> &[RuleCost] {
        &self.rules
    }

    /// What the first rule with this text costs.
    pub fn rule(&self, text: &str) -> Option<&RuleCost> {
        self.rules.iter().find(|cost| cost.rule == text)
    }

    /// What all of them can cost on the largest object; see [`RuleCost::ESTIMATED_TOTAL_MAX`].
    pub fn estimated(&self) -> u64 {
        self.rules.iter().fold(0, |sum, cost| sum.saturating_add(cost.estimated))
    }

    /// What all of them cost on this object; see [`RuleCost::ACTUAL_TOTAL_MAX`].
    pub fn actual(&self) -> u64 {
        self.rules.iter().fold(0, |sum, cost| sum.saturating_add(cost.actual))
    }
}

/// A line for each rule, and one for all, with how much of its limit it takes.
impl fmt::Display for RuleCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for cost in &self.rules {
            let RuleCost { at, rule, estimated, actual, evaluations, .. } = cost;
            writeln!(f, "{at}: {rule}")?;
            writeln!(
                f,
                "    estimated {estimated} of {}, actual {actual} in {evaluations} evaluations",
                RuleCost::ESTIMATED_MAX
            )?;
        }
        write!(
            f,
            "all: estimated {} of {}, actual {} of {}",
            self.estimated(),
            RuleCost::ESTIMATED_TOTAL_MAX,
            self.actual(),
            RuleCost::ACTUAL_TOTAL_MAX
        )
    }
}

/// The rules of a definition cannot be used: where each stands, and why.
#[derive(Clone, Debug)]
pub struct BrokenRules(pub Vec<String>);

impl fmt::Display for BrokenRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the definition has broken rules: {}", self.0.join("; "))
    }
}

impl std::error::Error for BrokenRules {}

/// The schema of a kind in its version.
fn schema<K: CustomResourceExt + Resource<DynamicType = ()>>() -> Result<Value> {
    let definition = serde_json::to_value(K::crd())?;
    let name = K::version(&());
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let version = versions.into_iter().find(|version| version["name"] == *name);
    Ok(version.map(|version| version["schema"]["openAPIV3Schema"].clone()).unwrap_or_default())
}
