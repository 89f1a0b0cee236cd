//! Whom a user acts as (`kubectl --as`): the `Impersonate-` headers.
//!
//! Whoever is known may act as anybody, as long as every known user is an administrator. Groups
//! that are not given follow from the name where Kubernetes knows them: a service account's, a
//! node's, and whether somebody vouches for the user at all.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use steersman_rules::resource::Named;

use super::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::status::{Result, Status};

const EXTRA: &str = "impersonate-extra-";

/// The user that a request acts as: the one it comes from, or the one of its headers.
pub(crate) fn impersonated(user: User, headers: &HeaderMap) -> Result<User> {
    let wanted = wanted(headers);
    if wanted.name.is_empty() {
        let asks = !wanted.uid.is_empty()
            || !wanted.groups.is_empty()
            || headers.keys().any(|name| name.as_str().starts_with(EXTRA));
        let why = || format!("requested {} without impersonating a user name", printed(&wanted));
        return if asks { Err(Status::bad_request(why())) } else { Ok(user) };
    }
    if user.is_anonymous() {
        let why = format!(
            "User {:?} cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
            user.name
        );
        let what = Named { group: "", resource: "users", name: &wanted.name };
        return Err(Status::forbidden(what, &why, Vec::new()));
    }
    Ok(with_groups(wanted))
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
        vouched: true,
    }
}

/// Adds the groups that follow from the name.
fn with_groups(mut user: User) -> User {
    if user.groups.is_empty() {
        let alone = user.uid.is_empty() && user.extra.is_empty();
        if let Some(namespace) = service_account_namespace(&user.name) {
            user.groups.push("system:serviceaccounts".to_owned());
            user.groups.push(format!("system:serviceaccounts:{namespace}"));
        } else if alone && user.name.strip_prefix("system:node:").is_some_and(|n| !n.is_empty()) {
            user.groups.push("system:nodes".to_owned());
        }
    }
    let has = |group: &str| user.groups.iter().any(|g| g == group);
    let missing = if user.name == super::ANONYMOUS {
        (!has(UNAUTHENTICATED)).then_some(UNAUTHENTICATED)
    } else {
        (!has(UNAUTHENTICATED) && !has(AUTHENTICATED)).then_some(AUTHENTICATED)
    };
    user.groups.extend(missing.map(str::to_owned));
    user
}

/// The namespace of a service account's name.
fn service_account_namespace(name: &str) -> Option<&str> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let sound = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    sound.then_some(namespace)
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
    use crate::status::Result;
    use crate::user::User;
    use http::{HeaderMap, HeaderName};

    fn acting(headers: &[(&str, &str)]) -> Result<User> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = format!("impersonate-{name}").parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        impersonated(User::known("admin", &[]), &map)
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
