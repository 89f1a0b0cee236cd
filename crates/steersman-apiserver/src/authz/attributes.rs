//! What a request is authorised by.

use std::borrow::Cow;
use std::fmt;

use http::Method;
use steersman_rules::resource::Named;

use crate::request::{Query, Segment};
use crate::user::User;

/// Who wants to do what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) user: &'a User,
    /// The verb as rules name it; the method of what is no resource.
    pub(crate) verb: &'a str,
    pub(crate) target: Target<'a>,
    /// The field selector of a request for several objects, as it is written; empty for all.
    pub(crate) fields: &'a str,
}

/// What something is to be done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// Objects.
    Resource {
        group: &'a str,
        resource: &'a str,
        /// Empty for the resource itself.
        subresource: &'a str,
        /// Empty at the scope of the cluster.
        namespace: &'a str,
        /// Empty where no single object is named.
        name: &'a str,
    },
    /// A path that names no resource.
    Path(&'a str),
}

/// The subresources of a namespace; whatever else stands behind its name is in it.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

/// The verbs that are about several objects, which a selector can choose.
const SELECTING: [&str; 3] = ["list", "watch", "deletecollection"];

impl<'a> Attributes<'a> {
    /// A user wants to do something; with all of it, where it is several objects.
    pub(crate) fn new(user: &'a User, verb: &'a str, target: Target<'a>) -> Self {
        Self { user, verb, target, fields: "" }
    }

    /// The attributes of a request by a user; `segments` are those of the decoded `path`. A
    /// namespace is in itself, as in Kubernetes: a role in it can allow to read it.
    pub(crate) fn of_request(
        user: &'a User,
        method: &'a Method,
        path: &'a str,
        segments: &'a [Segment<'a>],
        query: &'a Query,
    ) -> Self {
        let (group, rest) = match segments {
            [api, _version, rest @ ..] if api == "api" => ("", rest),
            [apis, group, _version, rest @ ..] if apis == "apis" => (&**group, rest),
            _ => ("", &[][..]),
        };
        let Some(first) = rest.first() else {
            return Self::new(user, lower_case(method), Target::Path(path));
        };
        let is_verb = matches!(&**first, "watch" | "proxy") && rest.len() > 1;
        let (mut verb, rest) = match is_verb {
            true => (&**first, &rest[1..]),
            false => (verb(method), rest),
        };
        let (namespace, rest) = match rest {
            [namespaces, namespace, more @ ..] if namespaces == "namespaces" => {
                let is_within = more.first().is_some_and(|m| !OF_NAMESPACES.contains(&&**m));
                (&**namespace, if is_within { more } else { rest })
            }
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).map_or("", |part| &**part);
        let mut name = part(1);
        if name.is_empty() && verb == "get" {
            let watches = *method == Method::GET && query.flag("watch").unwrap_or(false);
            verb = if watches { "watch" } else { "list" };
            name = query.text("fieldSelector").and_then(named).unwrap_or("");
        }
        if name.is_empty() && verb == "delete" {
            verb = "deletecollection";
        }
        let subresource = if verb == "proxy" { "" } else { part(2) };
        let target = Target::Resource { group, resource: part(0), subresource, namespace, name };
        let selects = !is_verb && SELECTING.contains(&verb);
        let fields = selects.then(|| query.text("fieldSelector")).flatten().unwrap_or("");
        Self { user, verb, target, fields }
    }

    /// What a refusal is about.
    pub(super) fn named(&self) -> Named<'a> {
        match self.target {
            Target::Resource { group, resource, name, .. } => Named { group, resource, name },
            Target::Path(_) => Named { group: "", resource: "", name: "" },
        }
    }
}

/// The sentence that a refusal consists of.
impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verb, target, .. } = self;
        write!(f, "User {:?} cannot {verb} ", user.name)?;
        match target {
            Target::Path(path) => write!(f, "path {path:?}"),
            Target::Resource { group, resource, subresource, namespace, .. } => {
                let whole = combined(resource, subresource);
                write!(f, "resource {whole:?} in API group {group:?} ")?;
                match *namespace {
                    "" => write!(f, "at the cluster scope"),
                    namespace => write!(f, "in the namespace {namespace:?}"),
                }
            }
        }
    }
}

/// A resource with its subresource, as rules name it.
pub(super) fn combined<'a>(resource: &'a str, subresource: &str) -> Cow<'a, str> {
    match subresource {
        "" => Cow::Borrowed(resource),
        subresource => Cow::Owned(format!("{resource}/{subresource}")),
    }
}

/// The name that a field selector demands, if it demands one.
fn named(selector: &str) -> Option<&str> {
    selector.split(',').find_map(|term| {
        let (field, value) = term.split_once("==").or_else(|| term.split_once('='))?;
        let is_name = field == "metadata.name" && !value.is_empty();
        // What is escaped or no name at all demands nothing that a rule could name.
        (is_name && !value.contains(['\\', '/', '%']) && value != "." && value != "..")
            .then_some(value)
    })
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

fn lower_case(method: &Method) -> &str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{Attributes, Target};
    use crate::request::{Query, segments};
    use crate::user::User;

    /// What a request is authorised by, in one line.
    fn told(method: &Method, path: &str, query: &str) -> String {
        let user = User::known("jane", &[]);
        let segments = segments(path).unwrap();
        let query = Query::parse(query);
        let asked = Attributes::of_request(&user, method, path, &segments, &query);
        match asked.target {
            Target::Path(path) => format!("{} {path}", asked.verb),
            Target::Resource { group, resource, subresource, namespace, name } => {
                format!("{} {group}|{resource}|{subresource}|{namespace}|{name}", asked.verb)
            }
        }
    }

    #[test]
    fn a_request_is_authorised_by_its_verb_and_what_its_path_names() {
        for (method, path, query, expected) in [
            (Method::GET, "/", "", "get /"),
            (Method::GET, "/apis/apps/v1", "", "get /apis/apps/v1"),
            (Method::POST, "/healthz/ping", "", "post /healthz/ping"),
            (Method::GET, "/api/v1/pods", "", "list |pods|||"),
            (Method::GET, "/api/v1/pods", "watch=1", "watch |pods|||"),
            (Method::GET, "/api/v1/watch/namespaces/a/pods/p", "", "watch |pods||a|p"),
            (Method::GET, "/api/v1/namespaces/a/pods/p/log", "", "get |pods|log|a|p"),
            (Method::HEAD, "/api/v1/namespaces/a/pods/p", "", "get |pods||a|p"),
            (Method::GET, "/api/v1/namespaces", "", "list |namespaces|||"),
            (Method::GET, "/api/v1/namespaces/a", "", "get |namespaces||a|a"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "", "update |namespaces|finalize|a|a"),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "", "deletecollection |pods||a|"),
            (Method::DELETE, "/api/v1/namespaces/a/pods/p", "", "delete |pods||a|p"),
            (
                Method::POST,
                "/apis/apps/v1/namespaces/a/deployments",
                "",
                "create apps|deployments||a|",
            ),
            (
                Method::GET,
                "/api/v1/namespaces/a/secrets",
                "fieldSelector=metadata.name%3Ds",
                "list |secrets||a|s",
            ),
            (
                Method::GET,
                "/api/v1/namespaces/a/secrets",
                "fieldSelector=metadata.name!%3Ds&watch=true",
                "watch |secrets||a|",
            ),
            (Method::GET, "/api/v1/nodes/n/proxy/metrics", "", "get |nodes|proxy||n"),
        ] {
            assert_eq!(told(&method, path, query), expected, "{path}?{query}");
        }
    }
}
