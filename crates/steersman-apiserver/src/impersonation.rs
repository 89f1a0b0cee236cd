//! Whom a user acts as (`kubectl --as`): the `Impersonate-` headers.
//!
//! There are several ways in which it may be allowed, tried in order: the constrained ones name
//! what the user acts as and, apart from it, what may be done that way; the old one is the verb
//! `impersonate` alone. Groups that are not given follow from the name where Kubernetes knows them: a
//! service account's, a node's, and whether somebody vouches for the user at all.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};

use crate::authz::{Attributes, Authorizer, Target};
use crate::status::{Result, Status};
use crate::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};

const EXTRA: &str = "impersonate-extra-";

/// The group of what constrained ways name.
const GROUP: &str = "authentication.k8s.io";

/// What a service account's token says about the node of its Pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// The user that a request acts as, which the one that it comes from must be allowed to; `None`
/// if it acts as none but that one.
pub(crate) fn impersonated(
    authorizer: &Authorizer,
    asked: &Attributes<'_>,
    headers: &HeaderMap,
) -> Result<Option<User>> {
    let is_asked = |name: &str| name.starts_with("impersonate-");
    if !headers.keys().any(|name| is_asked(name.as_str())) {
        return Ok(None);
    }
    let wanted = wanted(headers);
    if wanted.name.is_empty() {
        let asks = !wanted.uid.is_empty()
            || !wanted.groups.is_empty()
            || headers.keys().any(|name| name.as_str().starts_with(EXTRA));
        let why = || format!("requested {} without impersonating a user name", printed(&wanted));
        return if asks { Err(Status::bad_request(why())) } else { Ok(None) };
    }
    let mut refused = None;
    for way in Way::ALL.iter().filter(|way| way.fits(&wanted, asked.user)) {
        match way.check(authorizer, asked, &wanted) {
            Ok(()) => return Ok(Some(way.with_groups(wanted))),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    Err(refused.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

/// A way in which acting as somebody may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A Pod's account as the node that the Pod is on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Anybody else.
    UserInfo,
    /// The verb `impersonate`, which allows everything.
    Legacy,
}

impl Way {
    const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// The name in verbs; the old way has none.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    /// Whether one can act as a user in this way.
    fn fits(self, wanted: &User, requestor: &User) -> bool {
        let alone = wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty();
        let node = node(&wanted.name);
        let account = service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let on = requestor.extra.get(NODE_NAME).map(Vec::as_slice);
                let is_on = matches!((on, node), (Some([on]), Some(node)) if on == node);
                alone && is_on && service_account(&requestor.name).is_some()
            }
            Self::ArbitraryNode => alone && node.is_some(),
            Self::ServiceAccount => alone && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    /// Refuses what is not allowed in this way.
    fn check(self, authorizer: &Authorizer, asked: &Attributes<'_>, wanted: &User) -> Result<()> {
        let mut verb = "impersonate".to_owned();
        if let Some(name) = self.name() {
            let on = format!("impersonate-on:{name}:{}", asked.verb);
            authorizer.authorize(&Attributes { verb: &on, ..*asked })?;
            verb = format!("{verb}:{name}");
        }
        let may = |group, resource, subresource, namespace, name| {
            let target = Target::Resource { group, resource, subresource, namespace, name };
            authorizer.authorize(&Attributes::new(asked.user, &verb, target))
        };
        let group = if self == Self::Legacy { "" } else { GROUP };
        match (node(&wanted.name), service_account(&wanted.name)) {
            // Whichever node it is: it is the one that the Pod is on.
            (Some(_), _) if self == Self::AssociatedNode => may(group, "nodes", "", "", "*")?,
            (Some(node), _) if self != Self::Legacy => may(group, "nodes", "", "", node)?,
            (_, Some([namespace, name])) => may(group, "serviceaccounts", "", namespace, name)?,
            _ => may(group, "users", "", "", &wanted.name)?,
        }
        if !wanted.uid.is_empty() {
            may(GROUP, "uids", "", "", &wanted.uid)?;
        }
        for name in &wanted.groups {
            may(group, "groups", "", "", name)?;
        }
        for (key, values) in &wanted.extra {
            for value in values {
                may(GROUP, "userextras", key, "", value)?;
            }
        }
        Ok(())
    }

    /// Adds the groups that follow from the name.
    fn with_groups(self, mut user: User) -> User {
        if user.groups.is_empty() {
            if let Some([namespace, _]) = service_account(&user.name) {
                user.groups.push("system:serviceaccounts".to_owned());
                user.groups.push(format!("system:serviceaccounts:{namespace}"));
            } else if self != Self::Legacy && node(&user.name).is_some() {
                user.groups.push("system:nodes".to_owned());
            }
        }
        let has = |group: &str| user.groups.iter().any(|g| g == group);
        let missing = if user.name == ANONYMOUS {
            (!has(UNAUTHENTICATED)).then_some(UNAUTHENTICATED)
        } else {
            (!has(UNAUTHENTICATED) && !has(AUTHENTICATED)).then_some(AUTHENTICATED)
        };
        user.groups.extend(missing.map(str::to_owned));
        user
    }
}

/// The node of a user name that is one's.
fn node(name: &str) -> Option<&str> {
    name.strip_prefix("system:node:").filter(|name| !name.is_empty())
}

/// What the headers say.
fn wanted(headers: &HeaderMap) -> User {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    User {
        name: first("impersonate-user"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        uid: first("impersonate-uid"),
        extra,
    }
}

/// The namespace and the name of the service account of a user name that is one's.
fn service_account(name: &str) -> Option<[&str; 2]> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let sound = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    sound.then_some([namespace, name])
}

/// Undoes percent-encoding; what is not encoded soundly stays as it is.
fn unescaped(key: &str) -> String {
    crate::request::decode(key).unwrap_or_else(|_| key.to_owned())
}

/// A user as Go prints the structure.
fn printed(user: &User) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
    let extra = match extra.as_slice() {
        [] => "(nil)".to_owned(),
        extra => format!("{{{}}}", extra.join(", ")),
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:map[string][]string{extra}}}",
        user.name,
        user.uid,
        list(&user.groups)
    )
}

fn list(texts: &[String]) -> String {
    if texts.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::impersonated;
    use crate::authz::{Attributes, Authorizer, Target};
    use crate::status::Result;
    use crate::user::{MASTERS, User};
    use http::{HeaderMap, HeaderName};

    fn acting(headers: &[(&str, &str)]) -> Result<User> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = format!("impersonate-{name}").parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let admin = User::known("admin", &[MASTERS]);
        let asked = Attributes::new(&admin, "get", Target::Path("/version"));
        let acting = impersonated(&Authorizer::default(), &asked, &map)?;
        Ok(acting.unwrap_or(admin))
    }

    #[test]
    fn groups_follow_from_the_name_where_they_are_not_given() {
        let account = "system:serviceaccount:ab:sa1";
        let of_account =
            ["system:serviceaccounts", "system:serviceaccounts:ab", "system:authenticated"];
        let cases: [(&str, &[&str], &[&str]); 11] = [
            ("bob", &[], &["system:authenticated"]),
            ("bob", &["dev"], &["dev", "system:authenticated"]),
            ("bob", &["system:authenticated", "dev"], &["system:authenticated", "dev"]),
            ("bob", &["system:unauthenticated"], &["system:unauthenticated"]),
            ("system:anonymous", &[], &["system:unauthenticated"]),
            ("system:anonymous", &["dev"], &["dev", "system:unauthenticated"]),
            (account, &[], &of_account),
            (account, &["dev"], &["dev", "system:authenticated"]),
            ("system:serviceaccount:ab", &[], &["system:authenticated"]),
            ("system:node:n1", &[], &["system:nodes", "system:authenticated"]),
            ("system:node:n1", &["dev"], &["dev", "system:authenticated"]),
        ];
        for (name, given, expected) in cases {
            let mut headers = vec![("user", name)];
            headers.extend(given.iter().map(|group| ("group", *group)));
            assert_eq!(acting(&headers).unwrap().groups, expected, "{name} {given:?}");
        }
    }

    #[test]
    fn uid_and_extra_are_taken_over_with_their_escapes_undone() {
        let headers = [
            ("user", "bob"),
            ("uid", "u1"),
            ("extra-acme.com%2fproject", "one"),
            ("extra-ACME.com%2Fproject", "two"),
            ("extra-scopes%", "odd"),
        ];
        let user = acting(&headers).unwrap();
        assert_eq!(user.uid, "u1");
        assert_eq!(user.extra["acme.com/project"], ["one", "two"]);
        assert_eq!(user.extra["scopes%"], ["odd"]);
    }

    #[test]
    fn nothing_can_be_acted_as_without_a_name() {
        for (header, printed) in [
            (("group", "foo"), r#"UID:"", Groups:[]string{"foo"}, Extra:map[string][]string(nil)"#),
            (("uid", "u"), r#"UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
            (
                ("extra-a", "b"),
                r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b"}}"#,
            ),
        ] {
            let refused = acting(&[header]).unwrap_err();
            assert_eq!((refused.code, refused.reason.as_ref()), (400, "BadRequest"));
            let expected = format!(
                "requested &user.DefaultInfo{{Name:\"\", {printed}}} without impersonating a user name"
            );
            assert_eq!(refused.message, expected);
        }
        assert_eq!(acting(&[("user", "")]).unwrap().name, "admin");
    }
}
