//! What a limit range refuses: less than a minimum, more than a maximum, limits too far above
//! requests.

use serde_json::Value;
use steersman_rules::quantity::Quantity;

use super::super::fields::items;
use super::amounts::{Amount, Amounts, Requirements};
use super::totals;

/// Up to here amounts are compared in thousandths, above in whole units.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// Why a limit range refuses a Pod, if it does.
pub(super) fn refusal_of_pod(limit_range: &Value, pod: &Value) -> Option<String> {
    let spec = &pod["spec"];
    let mut found = Vec::new();
    for limit in items(&limit_range["spec"]["limits"]) {
        let bounds = Bounds::of(limit);
        match bounds.subject {
            "Container" => {
                let lists = [&spec["containers"], &spec["initContainers"]];
                for container in lists.into_iter().flat_map(items) {
                    found.extend(bounds.mistakes(&Requirements::of(&container["resources"])));
                }
            }
            "Pod" => found.extend(bounds.mistakes(&totals::of_pod(spec))),
            _ => {}
        }
    }
    aggregate(found)
}

/// Why a limit range refuses a PersistentVolumeClaim, if it does. Only what is requested counts.
pub(super) fn refusal_of_claim(limit_range: &Value, claim: &Value) -> Option<String> {
    let requests = Amounts::of(&claim["spec"]["resources"]["requests"]);
    let requirements = Requirements { requests, limits: Amounts::default() };
    let mut found = Vec::new();
    for limit in items(&limit_range["spec"]["limits"]) {
        let bounds = Bounds::of(limit);
        if bounds.subject == "PersistentVolumeClaim" {
            found.extend(bounds.min.iter().filter_map(|bound| bounds.below(bound, &requirements)));
            found.extend(
                bounds.max.iter().filter_map(|bound| bounds.requests_above(bound, &requirements)),
            );
        }
    }
    aggregate(found)
}

/// A bound on one resource.
type Bound<'a> = (&'a str, &'a Amount);

/// The bounds of one item of a limit range.
struct Bounds<'a> {
    /// What is bounded: `Container`, `Pod` or `PersistentVolumeClaim`.
    subject: &'a str,
    min: Amounts,
    max: Amounts,
    /// How many times as much as is requested may be the limit.
    ratio: Amounts,
}

impl<'a> Bounds<'a> {
    fn of(limit: &'a Value) -> Self {
        Self {
            subject: limit["type"].as_str().unwrap_or_default(),
            min: Amounts::of(&limit["min"]),
            max: Amounts::of(&limit["max"]),
            ratio: Amounts::of(&limit["maxLimitRequestRatio"]),
        }
    }

    fn mistakes(&self, needs: &Requirements) -> Vec<String> {
        let below = self.min.iter().filter_map(|bound| self.below(bound, needs));
        let above = self.max.iter().filter_map(|bound| self.above(bound, needs));
        let apart = self.ratio.iter().filter_map(|bound| self.apart(bound, needs));
        below.chain(above).chain(apart).collect()
    }

    /// What is less than a minimum.
    fn below(&self, (name, bound): Bound<'_>, needs: &Requirements) -> Option<String> {
        let compared = Compared::of(name, needs, bound);
        let minimum = &bound.text;
        let subject = self.subject;
        let least = format!("minimum {name} usage per {subject} is {minimum}");
        let Some(request) = needs.requests.get(name) else {
            return Some(format!("{least}.  No request is specified"));
        };
        if compared.request < compared.bound {
            return Some(format!("{least}, but request is {}", request.text));
        }
        let limit = needs.limits.get(name).filter(|_| compared.limit < compared.bound)?;
        Some(format!("{least}, but limit is {}", limit.text))
    }

    /// What is more than a maximum.
    fn above(&self, (name, bound): Bound<'_>, needs: &Requirements) -> Option<String> {
        let compared = Compared::of(name, needs, bound);
        let most = self.most(name, bound);
        let Some(limit) = needs.limits.get(name) else {
            return Some(format!("{most}.  No limit is specified"));
        };
        if compared.limit > compared.bound {
            return Some(format!("{most}, but limit is {}", limit.text));
        }
        let request = needs.requests.get(name).filter(|_| compared.request > compared.bound)?;
        Some(format!("{most}, but request is {}", request.text))
    }

    /// What is more than a maximum where there are no limits.
    fn requests_above(&self, (name, bound): Bound<'_>, needs: &Requirements) -> Option<String> {
        let compared = Compared::of(name, needs, bound);
        let most = self.most(name, bound);
        let Some(request) = needs.requests.get(name) else {
            return Some(format!("{most}.  No request is specified"));
        };
        (compared.request > compared.bound)
            .then(|| format!("{most}, but request is {}", request.text))
    }

    fn most(&self, name: &str, bound: &Amount) -> String {
        format!("maximum {name} usage per {} is {}", self.subject, bound.text)
    }

    /// Limits too far above requests.
    fn apart(&self, (name, bound): Bound<'_>, needs: &Requirements) -> Option<String> {
        let compared = Compared::of(name, needs, bound);
        let subject = self.subject;
        let most = &bound.text;
        let most = format!("{name} max limit to request ratio per {subject} is {most}");
        if compared.request == 0 {
            return Some(format!("{most}, but no request is specified or request is 0"));
        }
        if compared.limit == 0 {
            return Some(format!("{most}, but no limit is specified or limit is 0"));
        }
        let ratio = compared.limit as f64 / compared.request as f64;
        let bound = bound.quantity;
        let is_above = if bound.value() <= MILLI_MAX {
            ratio * 1000.0 > bound.milli_value() as f64
        } else {
            ratio > bound.value() as f64
        };
        is_above.then(|| format!("{most}, but provided ratio is {ratio:.6}"))
    }
}

/// Amounts in the same unit; zero for what is not there.
struct Compared {
    request: i64,
    limit: i64,
    bound: i64,
}

impl Compared {
    fn of(name: &str, needs: &Requirements, bound: &Amount) -> Self {
        let quantity = |amounts: &Amounts| amounts.get(name).map_or(Quantity::ZERO, |a| a.quantity);
        let all = [quantity(&needs.requests), quantity(&needs.limits), bound.quantity];
        let small = all.iter().all(|amount| amount.value() <= MILLI_MAX);
        let [request, limit, bound] =
            all.map(|amount| if small { amount.milli_value() } else { amount.value() });
        Self { request, limit, bound }
    }
}

/// Several reasons in one line, each once.
fn aggregate(mut found: Vec<String>) -> Option<String> {
    let mut seen: Vec<String> = Vec::new();
    found.retain(|text| {
        let new = !seen.contains(text);
        seen.extend(new.then(|| text.clone()));
        new
    });
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
