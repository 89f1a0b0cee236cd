//! Admission policies and their bindings: what is said about writes from now on, and who may say it.
//!
//! A policy judges by parameters that it reads whoever writes, and shows what is in them. So who
//! writes a policy must be able to read all objects of its kind of parameters, and who binds one
//! those that the binding refers to. Where it cannot be told which resource that is, it takes the
//! right to read all of them.

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::resource::Place;

use crate::authz::{Attributes, Target, is_master};
use crate::document::Stored;
use crate::state::Server;
use crate::state::effects::{Effects, Write, Written};
use crate::status::Result;
use crate::user::User;

/// Evaluates the policies that were written.
pub(super) struct Policies;

/// Any group, or any resource, or any object.
const ANY: &str = "*";

impl Effects for Policies {
    fn authorize<'a>(
        &'a self,
        write: Write<'a>,
        old: Option<&'a Value>,
        new: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<FieldError>>> {
        Box::pin(async move {
            let Some(user) = write.user.filter(|user| !is_master(user)) else {
                return Ok(Vec::new());
            };
            let referring = Referring { server: write.server, user };
            let mistake = match write.resource.plural.strip_suffix("policybindings") {
                None => referring.policy(old, new),
                Some(sort) => referring.binding(write, sort, new).await,
            };
            Ok(mistake.into_iter().collect())
        })
    }

    fn follow(&self, _gone: bool) -> bool {
        true
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = written.server.load_policies().await {
                tracing::error!(%error, "cannot list admission policies");
            }
        })
    }
}

/// Somebody refers to parameters.
struct Referring<'a> {
    server: &'a Server,
    user: &'a User,
}

impl Referring<'_> {
    /// Refuses a policy with another kind of parameters than before that its writer cannot read.
    fn policy(&self, old: Option<&Value>, new: &Value) -> Option<FieldError> {
        let said = new["spec"].get("paramKind").filter(|said| !said.is_null())?;
        if old.is_some_and(|old| old["spec"]["paramKind"] == *said) {
            return None;
        }
        let kind = ParamKind::of(said);
        if self.may("get", &kind.params(self.server), Place { namespace: ANY, name: ANY }) {
            return None;
        }
        let ParamKind { api_version, kind } = kind;
        let user = printed(self.user);
        let why = format!(
            "user {user} must have \"get\" permission on all objects of the referenced paramKind \
             (kind={kind}, apiVersion={api_version})"
        );
        Some(FieldError::forbidden("spec.paramKind", &why))
    }

    /// Refuses a binding of a sort of policies to parameters that its writer cannot read. One that
    /// refers to the same as before is refused as well: Kubernetes means to let it be, but compares
    /// places in memory.
    async fn binding(&self, write: Write<'_>, sort: &str, new: &Value) -> Option<FieldError> {
        let reference = new["spec"].get("paramRef").filter(|reference| !reference.is_null())?;
        let [name, namespace] = ["name", "namespace"].map(|field| text(&reference[field]));
        let verb = if name.is_empty() { "list" } else { "get" };
        let params = self.params_of_policy(write, sort, text(&new["spec"]["policyName"])).await;
        if self.may(verb, &params, Place { namespace, name }) {
            return None;
        }
        let user = printed(self.user);
        let on_object = "permission on the object referenced by paramRef";
        let why = match &params.unknown {
            Some(what) => format!(
                "unable to {what} to determine minimum required permissions and user {user} does \
                 not have \"{verb}\" permission for all groups, versions and resources"
            ),
            // Kubernetes confuses the two for this sort.
            None if sort.starts_with("mutating") => {
                format!("user {verb} does not have \"{user}\" {on_object}")
            }
            None => format!("user {user} does not have \"{verb}\" {on_object}"),
        };
        Some(FieldError::forbidden("spec.paramRef", &why))
    }

    /// The parameters of the policy that a binding names.
    async fn params_of_policy(&self, write: Write<'_>, sort: &str, name: &str) -> Params {
        let unknown = Some(format!("get policy {name}"));
        let Some(policy) = self.stored_policy(write, sort, name).await else {
            return Params { unknown, ..Params::any() };
        };
        match policy["spec"].get("paramKind").filter(|said| !said.is_null()) {
            Some(said) => ParamKind::of(said).params(self.server),
            None => Params::any(),
        }
    }

    async fn stored_policy(&self, write: Write<'_>, sort: &str, name: &str) -> Option<Value> {
        let table = self.server.registry.table();
        let binding = write.resource;
        let policies = table.get(&binding.group, &binding.version, &format!("{sort}policies"))?;
        let key = policies.key(Place { namespace: "", name });
        let entry = self.server.get(&key).await.ok()??;
        Stored::from(&entry).decode_as_stored().ok()
    }

    /// Whether the user may do something with parameters.
    fn may(&self, verb: &str, params: &Params, place: Place<'_>) -> bool {
        let Params { group, resource, .. } = params;
        let Place { namespace, name } = place;
        let target = Target::Resource { group, resource, subresource: "", namespace, name };
        self.server.authorizer.allows(&Attributes::new(self.user, verb, target))
    }
}

/// The resource of parameters.
struct Params {
    group: String,
    resource: String,
    /// What could not be done to learn more of it.
    unknown: Option<String>,
}

impl Params {
    fn any() -> Self {
        Self { group: ANY.to_owned(), resource: ANY.to_owned(), unknown: None }
    }
}

/// A kind of parameters, as a policy says it.
struct ParamKind<'a> {
    api_version: &'a str,
    kind: &'a str,
}

impl<'a> ParamKind<'a> {
    fn of(said: &'a Value) -> Self {
        Self { api_version: text(&said["apiVersion"]), kind: text(&said["kind"]) }
    }

    /// The resource of that kind.
    fn params(&self, server: &Server) -> Params {
        let Self { api_version, kind } = *self;
        let failed = |what: &str| Some(format!("{what} paramKind &{{{api_version} {kind}}}"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if version.contains('/') {
            return Params { unknown: failed("parse"), ..Params::any() };
        }
        let group = group.to_owned();
        let table = server.registry.table();
        let found = table.resources().find(|resource| {
            resource.group == group && resource.version == version && resource.kind == kind
        });
        match found {
            Some(found) => Params { group, resource: found.plural.to_string(), unknown: None },
            None => Params { group, unknown: failed("resolve"), ..Params::any() },
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// A user as Go prints one: without a word about which field is which.
fn printed(user: &User) -> String {
    let list = |texts: &[String]| format!("[{}]", texts.join(" "));
    let extra = user.extra.iter().map(|(key, values)| format!("{key}:{}", list(values)));
    let extra: Vec<String> = extra.collect();
    let User { name, uid, groups, .. } = user;
    format!("&{{{name} {uid} {} map[{}]}}", list(groups), extra.join(" "))
}

#[cfg(test)]
mod tests {
    use super::{User, printed};

    #[test]
    fn a_user_is_printed_as_go_prints_it() {
        let mut user = User::known("jane", &["dev"]);
        assert_eq!(printed(&user), "&{jane  [dev system:authenticated] map[]}");
        user.uid = "7".to_owned();
        user.extra.insert("b".to_owned(), vec!["1".to_owned(), "2".to_owned()]);
        user.extra.insert("a".to_owned(), Vec::new());
        assert_eq!(printed(&user), "&{jane 7 [dev system:authenticated] map[a:[] b:[1 2]]}");
    }
}
