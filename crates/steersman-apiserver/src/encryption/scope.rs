//! Which keys of the store `secrets`, `pandas.example.com`, `*.apps`, `*.` and `*.*` mean.

use std::fmt;

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::kinds;

use crate::identity;

/// What has no API.
const WITHOUT_API: [&str; 3] =
    ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

/// A resource of a group, or all of them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Scope {
    resource: String,
    group: String,
}

/// As the configuration has it.
impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, group } = self;
        match group.is_empty() && resource != "*" {
            true => write!(f, "{resource:?}"),
            false => write!(f, "\"{resource}.{group}\""),
        }
    }
}

/// What a list of resources means; says what is wrong with it.
pub(super) fn of(names: &[String], path: &str, errors: &mut Vec<FieldError>) -> Vec<Scope> {
    if names.is_empty() {
        errors.push(FieldError::required(path, &format!("at least one {path} is required")));
    }
    let scopes: Vec<Scope> = names.iter().map(|name| Scope::parse(name)).collect();
    check_together(names, &scopes, path, errors);
    for (place, (name, scope)) in names.iter().zip(&scopes).enumerate() {
        if let Some(why) = scope.mistake(name) {
            let field = format!("{path}[{place}]");
            errors.push(FieldError::invalid(field, &name.as_str().into(), why));
        }
    }
    scopes
}

fn check_together(names: &[String], scopes: &[Scope], path: &str, errors: &mut Vec<FieldError>) {
    let pairs = || {
        let all = scopes.iter().enumerate();
        all.flat_map(|(place, one)| scopes[place + 1..].iter().map(move |other| (one, other)))
    };
    let mut wrong = |why| errors.push(FieldError::invalid(path, &Value::from(names.to_vec()), why));
    if pairs().any(|(one, other)| one == other) {
        wrong("the same resource cannot be specified multiple times");
    }
    let overlap = |one: &Scope, other: &Scope| one != other && one.masks(other);
    if pairs().any(|(one, other)| overlap(one, other) || overlap(other, one)) {
        wrong(
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is \
             not allowed as they will be masked",
        );
    }
}

impl Scope {
    fn parse(name: &str) -> Self {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        Self { resource: resource.to_owned(), group: group.to_owned() }
    }

    fn mistake(&self, name: &str) -> Option<&'static str> {
        let mistakes = [
            (name != name.to_lowercase(), "resource name should not contain capital letters"),
            (
                name == "*",
                "use '*.' to encrypt all the resources from core API group or *.* to encrypt all \
                 resources",
            ),
            (
                WITHOUT_API.contains(&name),
                "resources which do not have REST API/s cannot be encrypted",
            ),
            (
                self.group == "events.k8s.io",
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use \
                 'events' instead in the config file",
            ),
            (
                self.group == "extensions",
                "'extensions' group has been removed and cannot be used for encryption",
            ),
            (
                self.group == "*" && self.resource != "*",
                "encrypting the same resource across groups is not supported",
            ),
        ];
        mistakes.into_iter().find_map(|(is_made, why)| is_made.then_some(why))
    }

    /// Whether whatever another one means is also meant by this one.
    pub(super) fn masks(&self, other: &Self) -> bool {
        self.resource == "*" && (self.group == "*" || self.group == other.group)
    }

    /// What the keys of these resources begin with.
    pub(super) fn prefixes(&self) -> Vec<String> {
        let Self { resource, group } = self;
        if self.resource == "*" && self.group == "*" {
            return vec!["/registry/".to_owned()];
        }
        let all = kinds::all();
        let meant = all.iter().filter(|known| {
            known.group == *group && (resource == "*" || known.plural == *resource)
        });
        let mut prefixes: Vec<String> = meant.map(|known| known.prefix("")).collect();
        // Custom resources come and go, so they are not known by name.
        match (resource.as_str(), group.as_str()) {
            (_, "") => {}
            ("*", group) => prefixes.push(format!("/registry/{group}/")),
            (resource, group) if prefixes.is_empty() => {
                prefixes.push(format!("/registry/{group}/{resource}/"));
            }
            _ => {}
        }
        if group.is_empty() && ["*", "secrets"].contains(&resource.as_str()) {
            prefixes.extend([identity::KEY, identity::FRONT_PROXY_KEY].map(str::to_owned));
        }
        if prefixes.is_empty() {
            tracing::warn!(resource, "encryption of an unknown resource is configured");
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }
}

#[cfg(test)]
mod tests {
    use super::Scope;

    fn prefixes(name: &str) -> Vec<String> {
        Scope::parse(name).prefixes()
    }

    #[test]
    fn resources_are_found_where_they_are_stored() {
        assert_eq!(prefixes("configmaps"), ["/registry/configmaps/"]);
        assert_eq!(prefixes("nodes"), ["/registry/minions/"]);
        assert_eq!(prefixes("deployments.apps"), ["/registry/deployments/"]);
        assert_eq!(prefixes("pandas.example.com"), ["/registry/example.com/pandas/"]);
        assert_eq!(prefixes("*.example.com"), ["/registry/example.com/"]);
        assert_eq!(prefixes("*.*"), ["/registry/"]);
        assert!(prefixes("secret").is_empty(), "it is called secrets");
        let apps = prefixes("*.apps");
        assert!(apps.contains(&"/registry/daemonsets/".to_owned()), "{apps:?}");
        assert!(!apps.contains(&"/registry/pods/".to_owned()), "{apps:?}");
    }

    #[test]
    fn the_keys_of_the_cluster_go_with_secrets() {
        for name in ["secrets", "*."] {
            let prefixes = prefixes(name);
            assert!(prefixes.contains(&"/registry/secrets/".to_owned()), "{prefixes:?}");
            assert!(prefixes.contains(&crate::identity::KEY.to_owned()), "{prefixes:?}");
        }
    }
}
