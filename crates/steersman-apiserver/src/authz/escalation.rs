//! Nobody grants what they do not have.
//!
//! Who writes a role must have all that its rules allow, or the verb `escalate`; who binds one must
//! have all that it allows, or the verb `bind`. Both would otherwise be a way to any permission.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{Rule, has, has_or_all, url_covers};
use crate::user::User;

/// Why a user may not grant rules; `held` is what the user has, `unresolved` what could not be
/// found out about that.
pub(crate) fn refusal(
    user: &User,
    held: &[Rule],
    unresolved: Option<&str>,
    granted: &[Rule],
) -> Option<String> {
    let missing = missing(held, granted);
    if missing.is_empty() {
        return None;
    }
    let missing: BTreeSet<String> = compacted(missing).iter().map(told).collect();
    let missing: Vec<String> = missing.into_iter().collect();
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        list(&user.groups),
        missing.join("\n")
    );
    if let Some(unresolved) = unresolved {
        why.push_str(&format!("; resolution errors: [{unresolved}]"));
    }
    Some(why)
}

/// What rules allow that none of those held does, broken down to one verb and one resource, name or
/// path each.
pub(crate) fn missing(held: &[Rule], granted: &[Rule]) -> Vec<Rule> {
    let parts = granted.iter().flat_map(parts);
    parts.filter(|part| !held.iter().any(|rule| covers(rule, part))).collect()
}

/// What only somebody who may do everything has.
pub(crate) fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { verbs: all(), groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), urls: all(), ..Rule::default() },
    ]
}

/// A rule as rules of one verb and one resource, name or path each.
fn parts(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for group in &rule.groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = Rule {
                    verbs: one(verb),
                    groups: one(group),
                    resources: one(resource),
                    ..Rule::default()
                };
                match rule.names.as_slice() {
                    [] => parts.push(part),
                    names => parts
                        .extend(names.iter().map(|name| Rule { names: one(name), ..part.clone() })),
                }
            }
        }
    }
    for url in &rule.urls {
        let path = |verb: &String| Rule { verbs: one(verb), urls: one(url), ..Rule::default() };
        parts.extend(rule.verbs.iter().map(path));
    }
    parts
}

/// Whether a rule allows all that one of the [`parts`] of another does.
fn covers(rule: &Rule, part: &Rule) -> bool {
    let resource = |wanted: &String| {
        let of_all = wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        has_or_all(&rule.resources, wanted)
            || of_all.is_some_and(|of_all| has(&rule.resources, &of_all))
    };
    let name = |wanted: &String| has(&rule.names, wanted);
    let url = |wanted: &String| rule.urls.iter().any(|url| url_covers(url, wanted));
    part.verbs.iter().all(|verb| has_or_all(&rule.verbs, verb))
        && part.groups.iter().all(|group| has_or_all(&rule.groups, group))
        && part.resources.iter().all(resource)
        && (rule.names.is_empty() || (!part.names.is_empty() && part.names.iter().all(name)))
        && part.urls.iter().all(url)
}

/// The [`parts`] of rules, with all verbs of one resource together again.
fn compacted(parts: Vec<Rule>) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    let mut simple: BTreeMap<[String; 3], usize> = BTreeMap::new();
    for part in parts {
        let ([group], [resource]) = (part.groups.as_slice(), part.resources.as_slice()) else {
            compacted.push(part);
            continue;
        };
        let name = part.names.first().cloned().unwrap_or_default();
        match simple.get(&[group.clone(), resource.clone(), name.clone()]) {
            Some(index) => compacted[*index].verbs.extend(part.verbs),
            None => {
                simple.insert([group.clone(), resource.clone(), name], compacted.len());
                compacted.push(part);
            }
        }
    }
    compacted
}

/// A rule as refusals show it.
fn told(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.urls),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ];
    let parts = parts.iter().filter(|(_, texts)| !texts.is_empty());
    let parts: Vec<String> = parts.map(|(name, texts)| format!("{name}:{}", list(texts))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// Texts as Go prints a list of them, quoted.
fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::refusal;
    use crate::authz::rule::Rule;
    use crate::user::User;

    fn refused(held: Value, granted: Value) -> Option<String> {
        let rules = |rules: Value| Rule::all_of(&json!({"rules": rules}));
        refusal(&User::known("jane", &["dev"]), &rules(held), None, &rules(granted))
    }

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Value {
        json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
    }

    #[test]
    fn what_is_held_can_be_granted() {
        let cases = [
            (rule(&["*"], &["*"], &["*"], &[]), rule(&["get"], &["a"], &["b/c"], &["d"])),
            (rule(&["get", "list"], &[""], &["pods"], &[]), rule(&["get"], &[""], &["pods"], &[])),
            (rule(&["get"], &[""], &["*/log"], &[]), rule(&["get"], &[""], &["pods/log"], &[])),
            (
                rule(&["get"], &[""], &["pods"], &["a", "b"]),
                rule(&["get"], &[""], &["pods"], &["a"]),
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}),
                json!({"verbs": ["get"], "nonResourceURLs": ["/logs/a", "/logs/*"]}),
            ),
        ];
        for (held, granted) in cases {
            assert_eq!(refused(json!([held]), json!([granted])), None, "{held} {granted}");
        }
    }

    #[test]
    fn what_is_missing_is_told_by_resource() {
        let held =
            json!([rule(&["get"], &[""], &["pods"], &[]), rule(&["get"], &[""], &["x"], &["a"])]);
        let granted = json!([
            rule(&["get", "list", "watch"], &[""], &["pods", "secrets"], &[]),
            rule(&["get"], &[""], &["x"], &[]),
            json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
        ]);
        let expected = "user \"jane\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to \
             grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\" \"watch\"]}\n\
             {APIGroups:[\"\"], Resources:[\"x\"], Verbs:[\"get\"]}\n\
             {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}";
        assert_eq!(refused(held, granted).as_deref(), Some(expected));
    }
}
