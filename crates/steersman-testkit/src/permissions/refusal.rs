//! What an API server says when roles do not allow a request.

/// A request that no role allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Refusal {
    pub(super) target: Target,
    /// As rules name it.
    pub(super) verb: String,
}

/// What it was about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// Objects.
    Resource {
        group: String,
        /// With its subresource, if it is about one.
        resource: String,
        /// None at the scope of the cluster.
        namespace: Option<String>,
    },
    /// A path that names no resource.
    Path(String),
    /// Rules for somebody else, that whoever grants them must have.
    Grant {
        /// What was to grant them, with its group.
        by: String,
        /// As the server lists them.
        rules: String,
    },
}

impl Refusal {
    /// Reads the message of an answer to this user. Other refusals, as by a webhook or by a
    /// namespace that is being deleted, have the same code and reason; only the text tells them
    /// apart: `User "x" cannot list resource "pods" in API group "" in the namespace "y"`.
    pub(super) fn read(message: &str, user: &str) -> Option<Self> {
        if let Some(target) = granted(message, user) {
            return Some(Self { target, verb: "grant".to_owned() });
        }
        let (_, rest) = message.split_once(&format!("User {user:?} cannot "))?;
        let (verb, rest) = rest.split_once(' ')?;
        let target = match rest.strip_prefix("resource ") {
            Some(rest) => {
                let (resource, rest) = quoted(rest)?;
                let (group, rest) = quoted(rest.strip_prefix(" in API group ")?)?;
                let namespace = rest.strip_prefix(" in the namespace ").and_then(quoted);
                let namespace = namespace.map(|(namespace, _)| namespace);
                Target::Resource { group, resource, namespace }
            }
            None => Target::Path(quoted(rest.strip_prefix("path ")?)?.0),
        };
        Some(Self { target, verb: verb.to_owned() })
    }
}

/// Reads that a user must not grant others what it may not do itself.
fn granted(message: &str, user: &str) -> Option<Target> {
    let (before, rest) = message.split_once(&format!("user {user:?} (groups="))?;
    let (_, rules) = rest.split_once("attempting to grant RBAC permissions not currently held:")?;
    let by = before.split(' ').next().unwrap_or_default().to_owned();
    Some(Target::Grant { by, rules: rules.trim().replace('\n', ", ") })
}

/// A text in quotes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (quoted, rest) = text.strip_prefix('"')?.split_once('"')?;
    Some((quoted.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "system:serviceaccount:operators:shop";

    fn of_resource(
        verb: &str,
        (group, resource): (&str, &str),
        namespace: Option<&str>,
    ) -> Refusal {
        let group = group.to_owned();
        let resource = resource.to_owned();
        let namespace = namespace.map(str::to_owned);
        Refusal { target: Target::Resource { group, resource, namespace }, verb: verb.to_owned() }
    }

    #[test]
    fn what_the_server_says_is_understood() {
        for (message, expected) in [
            (
                r#"secrets "s" is forbidden: User "system:serviceaccount:operators:shop" cannot get resource "secrets" in API group "" in the namespace "default""#,
                of_resource("get", ("", "secrets"), Some("default")),
            ),
            (
                r#"deployments.apps is forbidden: User "system:serviceaccount:operators:shop" cannot watch resource "deployments" in API group "apps" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found"#,
                of_resource("watch", ("apps", "deployments"), None),
            ),
            (
                r#"shops.demo.dev "a" is forbidden: User "system:serviceaccount:operators:shop" cannot patch resource "shops/status" in API group "demo.dev" in the namespace "x": reason"#,
                of_resource("patch", ("demo.dev", "shops/status"), Some("x")),
            ),
            (
                r#"forbidden: User "system:serviceaccount:operators:shop" cannot get path "/metrics""#,
                Refusal { target: Target::Path("/metrics".into()), verb: "get".into() },
            ),
            (
                "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"system:serviceaccount:operators:shop\" (groups=[\"system:serviceaccounts\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}",
                Refusal {
                    target: Target::Grant {
                        by: "roles.rbac.authorization.k8s.io".into(),
                        rules: r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#.into(),
                    },
                    verb: "grant".into(),
                },
            ),
        ] {
            assert_eq!(Refusal::read(message, USER), Some(expected), "{message}");
        }
    }

    #[test]
    fn other_refusals_are_none_of_ours() {
        for message in [
            r#"configmaps "x" is forbidden: unable to create new content in namespace y because it is being terminated"#,
            r#"pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged"#,
            r#"admission webhook "w" denied the request: User "jane" cannot get resource "pods" in API group """#,
            "",
        ] {
            assert_eq!(Refusal::read(message, USER), None, "{message}");
        }
    }
}
