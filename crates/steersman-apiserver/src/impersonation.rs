//! Whom a user acts as (`kubectl --as`): the `Impersonate-` headers.
//!
//! There are several ways in which it may be allowed, tried in order: the constrained ones name
//! what the user acts as and, apart from it, what may be done that way; the old one is the verb
//! `impersonate` alone. Groups that are not given follow from the name where Kubernetes knows them: a
//! service account's, a node's, and whether somebody vouches for the user at all.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use steersman_rules::field::{Errors, FieldError};
use steersman_rules::names;

use crate::authz::{Attributes, Authorizer, Target};
use crate::status::{Result, Status};
use crate::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};

const EXTRA: &str = "impersonate-extra-";

/// The group of what constrained ways name.
const GROUP: &str = "authentication.k8s.io";

/// From how many on it is tried first, in the constrained ways, whether all are allowed.
const MANY: usize = 4;

/// What a service account's token says about the node of its Pod.
pub(crate) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Whom a request acts as.
#[derive(Debug)]
pub(crate) struct Acting {
    pub(crate) user: User,
    /// The constrained verb that allows it; none if it is the one that allows everything.
    pub(crate) constraint: Option<String>,
}

impl Acting {
    /// The mode in which that is allowed.
    pub(crate) fn mode(&self) -> &str {
        self.constraint.as_deref().map_or("legacy", |it| it.trim_start_matches("impersonate:"))
    }
}

/// The user that a request acts as, which the one that it comes from must be allowed to; `None`
/// if it acts as none but that one.
pub(crate) fn impersonated(
    authorizer: &Authorizer,
    asked: &Attributes<'_>,
    headers: &HeaderMap,
) -> Result<Option<Acting>> {
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
            Ok(()) => {
                let constraint = way.name().map(|name| format!("impersonate:{name}"));
                return Ok(Some(Acting { user: way.with_groups(wanted), constraint }));
            }
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
        let requestor = Requestor { authorizer, user: asked.user, verb: &verb };
        let group = if self == Self::Legacy { "" } else { GROUP };
        requestor.may(match (node(&wanted.name), service_account(&wanted.name)) {
            // Whichever node it is: it is the one that the Pod is on.
            (Some(_), _) if self == Self::AssociatedNode => target(group, "nodes", "*"),
            (Some(node), _) if self != Self::Legacy => target(group, "nodes", node),
            (_, Some([namespace, name])) => {
                let (resource, subresource) = ("serviceaccounts", "");
                Target::Resource { group, resource, subresource, namespace, name }
            }
            _ => target(group, "users", &wanted.name),
        })?;
        if !wanted.uid.is_empty() {
            requestor.may(target(GROUP, "uids", &wanted.uid))?;
        }
        self.check_groups(&requestor, group, &wanted.groups)?;
        self.check_extra(&requestor, &wanted.extra)
    }

    /// Refuses groups. In the constrained ways no rule allows to act as one who may do everything, or
    /// as a group that is none; who names many may be allowed all of them at once.
    fn check_groups(self, requestor: &Requestor<'_>, group: &str, groups: &[String]) -> Result<()> {
        let may = |name: &str| requestor.may(target(group, "groups", name));
        if self != Self::Legacy {
            let refused = |name, why| requestor.refused(target(GROUP, "groups", name), why);
            if groups.iter().any(String::is_empty) {
                return refused("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                return refused(MASTERS, "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY && may("*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| may(name))
    }

    /// Refuses what else is said of a user, likewise.
    fn check_extra(
        self,
        requestor: &Requestor<'_>,
        extra: &BTreeMap<String, Vec<String>>,
    ) -> Result<()> {
        let may = |key: &str, value: &str| {
            let (group, resource, namespace) = (GROUP, "userextras", "");
            let subresource = key;
            let name = value;
            requestor.may(Target::Resource { group, resource, subresource, namespace, name })
        };
        if self != Self::Legacy {
            if let Some(why) = extra.iter().find_map(|(key, values)| unsound(key, values)) {
                return requestor.refused(target(GROUP, "userextras", ""), &why);
            }
            let is_large =
                extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if is_large && may("*", "*").is_ok() {
                return Ok(());
            }
        }
        let mut all = extra.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
        all.try_for_each(|(key, value)| may(key, value))
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

/// Who wants to act as another, by a verb.
struct Requestor<'a> {
    authorizer: &'a Authorizer,
    user: &'a User,
    verb: &'a str,
}

impl Requestor<'_> {
    /// Refuses what rules do not allow.
    fn may(&self, target: Target<'_>) -> Result<()> {
        self.authorizer.authorize(&Attributes::new(self.user, self.verb, target))
    }

    /// Refuses what no rule could allow.
    fn refused(&self, target: Target<'_>, why: &str) -> Result<()> {
        Err(Attributes::new(self.user, self.verb, target).refusal(why))
    }
}

/// Something of the cluster.
fn target<'a>(group: &'a str, resource: &'a str, name: &'a str) -> Target<'a> {
    Target::Resource { group, resource, subresource: "", namespace: "", name }
}

/// What is wrong with something said of a user.
fn unsound(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let mut mistakes = Errors::default();
    names::domain_prefixed_path(key, "extra.key", &mut mistakes);
    let texts: Vec<String> = mistakes.iter().map(FieldError::message).collect();
    let invalid =
        |text: &str| Some(format!("impersonating an invalid key in extra is not allowed: {text}"));
    match texts.as_slice() {
        [] if key != key.to_lowercase() => {
            Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"))
        }
        [] if values.iter().any(String::is_empty) => {
            Some("impersonating the empty string value in extra is not allowed".to_owned())
        }
        [] => None,
        [one] => invalid(one),
        several => invalid(&format!("[{}]", several.join(", "))),
    }
}

/// The node of a user name that is one's.
fn node(name: &str) -> Option<&str> {
    name.strip_prefix("system:node:").filter(|name| names::dns1123_subdomain(name).is_empty())
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
pub(crate) fn service_account(name: &str) -> Option<[&str; 2]> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let sound =
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    sound.then_some([namespace, name])
}

/// Undoes percent-encoding; what is not encoded soundly stays as it is.
fn unescaped(key: &str) -> String {
    crate::request::decode(key).map_or_else(|_| key.to_owned(), Cow::into_owned)
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
        Ok(acting.map_or(admin, |acting| acting.user))
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
