//! Roles and bindings: who may write them, and who may do what from then on.

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::{Named, Place};

use crate::authz::rule::Rule;
use crate::authz::{Attributes, Authorizer, RoleReference, Target, escalation, is_master};
use crate::state::effects::{Effects, Write, Written};
use crate::status::{Result, Status};
use crate::user::User;

/// Keeps permissions: nobody grants what they do not have.
pub(super) struct Permissions;

const GROUP: &str = "rbac.authorization.k8s.io";

impl Effects for Permissions {
    fn permit(
        &self,
        write: Write<'_>,
        place: Place<'_>,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<()> {
        let Some(user) = write.user.filter(|user| !is_master(user)) else { return Ok(()) };
        if old.is_some_and(|old| changes_only_what_ends_it(old, new)) {
            return Ok(());
        }
        let authorizer = &write.server.authorizer;
        let plural = write.resource.plural.as_ref();
        let name = metadata::text(new, "name");
        let granting = Granting { authorizer, user, plural, place, name };
        match plural {
            "roles" | "clusterroles" => granting.role(old, new),
            _ => granting.binding(new),
        }
    }

    fn follow(&self, _gone: bool) -> bool {
        true
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        let Written { server, resource, object, revision, gone } = written;
        let place = Place {
            namespace: metadata::text(object, "namespace"),
            name: metadata::text(object, "name"),
        };
        server.authorizer.rbac.take_in(&resource.key(place), (!gone).then_some(object), revision);
        Box::pin(std::future::ready(()))
    }
}

/// Whether a change is one of those by which the garbage collector gets rid of an object.
fn changes_only_what_ends_it(old: &Value, new: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            metadata::set(&mut rest, field, None);
        }
        rest
    };
    rest(old) == rest(new)
}

/// Somebody grants something.
struct Granting<'a> {
    authorizer: &'a Authorizer,
    user: &'a User,
    plural: &'a str,
    /// Where the request is about.
    place: Place<'a>,
    /// The name of the role or binding.
    name: &'a str,
}

impl Granting<'_> {
    fn role(&self, old: Option<&Value>, new: &Value) -> Result<()> {
        let Place { name, .. } = self.place;
        if self.may("escalate", self.plural, name) {
            return Ok(());
        }
        self.holds(&Rule::all_of(new))?;
        let gathers = |role: &Value| {
            role["aggregationRule"]["clusterRoleSelectors"]
                .as_array()
                .is_some_and(|s| !s.is_empty())
        };
        if (gathers(new) || old.is_some_and(gathers))
            && self.holds(&escalation::everything()).is_err()
        {
            return Err(
                self.refusal("must have cluster-admin privileges to use the aggregationRule")
            );
        }
        Ok(())
    }

    fn binding(&self, new: &Value) -> Result<()> {
        let role = RoleReference::of(new);
        let roles = match role.kind.as_str() {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            // That is a mistake, but whoever grants is looked at before mistakes are.
            kind => {
                let why = format!("unsupported role reference kind: {kind:?}");
                return Err(Status::failure(why));
            }
        };
        if self.may("bind", roles, &role.name) {
            return Ok(());
        }
        let rules = self.authorizer.rbac.rules_of_role(&role, self.place.namespace);
        let named = Named { group: GROUP, resource: roles.trim_end_matches('s'), name: &role.name };
        self.holds(&rules.map_err(|_| Status::not_found(named))?)
    }

    /// Whether the user may do something with a role.
    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let namespace = self.place.namespace;
        let target = Target::Resource { group: GROUP, resource, subresource: "", namespace, name };
        self.authorizer.allows(&Attributes::new(self.user, verb, target))
    }

    /// Refuses what the user does not have.
    fn holds(&self, granted: &[Rule]) -> Result<()> {
        if self.authorizer.allows_everything() {
            return Ok(());
        }
        let (held, unresolved) = self.authorizer.rbac.rules_of(self.user, self.place.namespace);
        match escalation::refusal(self.user, &held, unresolved.as_deref(), granted) {
            Some(why) => Err(self.refusal(&why)),
            None => Ok(()),
        }
    }

    fn refusal(&self, why: &str) -> Status {
        let named = Named { group: GROUP, resource: self.plural, name: self.name };
        Status::forbidden(named, why, Vec::new())
    }
}
