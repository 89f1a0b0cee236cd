//! Whether a policy, and a binding, is about a request.

use serde_json::Value;

use super::matching::{Version, by_rules, in_namespace, selected};
use super::request::Request;
use crate::admission_policies::{Constraints, NamedRule};

/// The version in which a policy looks at a request; `None` if it is not about it. Fails with why
/// that cannot be said.
pub(super) async fn version(
    request: &Request<'_>,
    constraints: &Constraints,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Version>, String> {
    let Constraints { rules, excluded, equivalent, namespaces, objects } = constraints;
    let name = request.place.name;
    let named = |rules: &[NamedRule]| {
        by_rules(request, rules, *equivalent, |rule, subject| rule.matches(subject, name))
    };
    let version = if rules.is_empty() { Some(Version::Same) } else { named(rules) };
    let Some(version) = version.filter(|_| named(excluded).is_none()) else { return Ok(None) };
    if !selected(objects, object, old) {
        return Ok(None);
    }
    let within = in_namespace(request, namespaces, object).await;
    Ok(within.map_err(|status| status.message)?.then_some(version))
}
