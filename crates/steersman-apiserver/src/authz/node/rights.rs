//! What a node may do, as far as a request tells: allowed, refused, or allowed if an object is
//! related to the node.

use std::borrow::Cow;

use steersman_rules::selector::FieldSelector;

use super::object::{Kind, Object};
use crate::authz::attributes::{Attributes, Target};

/// What a node may do with something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Right<'a> {
    Allowed,
    /// Allowed if the object is related to the node.
    IfRelated(Object<'a>),
    /// Not allowed by this, with what there is to say about it.
    Refused(Cow<'static, str>),
}

use Right::{Allowed, IfRelated};

const NODE_LEASES: &str = "kube-node-lease";

/// What nodes may do with resources that are not told apart by node: verbs, groups, resources.
const OTHERS: &[(&[&str], &[&str], &[&str])] = &[
    (&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
    (
        &["create"],
        &["authorization.k8s.io"],
        &["subjectaccessreviews", "localsubjectaccessreviews"],
    ),
    (READ, &[""], &["services"]),
    (&["create", "update", "patch"], &["", "events.k8s.io"], &["events"]),
    (&["get"], &[""], &["endpoints"]),
    (
        &["create", "get", "list", "watch"],
        &["certificates.k8s.io"],
        &["certificatesigningrequests"],
    ),
    (READ, &["storage.k8s.io"], &["csidrivers"]),
    (READ, &["node.k8s.io"], &["runtimeclasses"]),
];

const READ: &[&str] = &["get", "list", "watch"];

/// The verbs on what there is one of for each node.
const OWN: &[&str] = &["get", "create", "update", "patch", "delete"];

/// What a node may do.
pub(super) fn of<'a>(node: &str, asked: &Attributes<'a>) -> Right<'a> {
    let Target::Resource { group, resource, subresource, namespace, name } = asked.target else {
        return nothing();
    };
    let Attributes { verb, fields, .. } = *asked;
    let wish = Wish { node, verb, fields, subresource, namespace, name };
    match (group, resource) {
        ("", "secrets") => wish.read(Kind::Secret),
        ("", "configmaps") => wish.read(Kind::ConfigMap),
        ("", "persistentvolumeclaims") if subresource == "status" => wish.claim_status(),
        ("", "persistentvolumeclaims") => wish.get(Kind::Claim),
        ("", "persistentvolumes") => wish.get(Kind::Volume),
        ("resource.k8s.io", "resourceclaims") => wish.get(Kind::ResourceClaim),
        ("storage.k8s.io", "volumeattachments") => wish.get(Kind::Attachment),
        ("", "serviceaccounts") => wish.service_account(),
        ("coordination.k8s.io", "leases") => wish.lease(),
        ("storage.k8s.io", "csinodes") => wish.csi_node(),
        ("resource.k8s.io", "resourceslices") => wish.resource_slice(),
        ("", "nodes") => wish.node(),
        ("", "pods") => wish.pod(),
        _ => {
            let is_one = OTHERS.iter().any(|(verbs, groups, resources)| {
                verbs.contains(&verb) && groups.contains(&group) && resources.contains(&resource)
            });
            if is_one && subresource.is_empty() { Allowed } else { nothing() }
        }
    }
}

/// What a node wants to do with a resource.
struct Wish<'a, 'n> {
    node: &'n str,
    verb: &'a str,
    fields: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Wish<'a, '_> {
    fn related(&self, kind: Kind) -> Right<'a> {
        match self.name {
            "" => refused("No Object name found"),
            name => IfRelated(Object { kind, namespace: self.namespace, name }),
        }
    }

    fn read(&self, kind: Kind) -> Right<'a> {
        if !READ.contains(&self.verb) {
            return refused("can only read resources of this type");
        }
        if !self.subresource.is_empty() {
            return refused("cannot read subresource");
        }
        if self.namespace.is_empty() {
            return refused("can only read namespaced object of this type");
        }
        self.related(kind)
    }

    fn get(&self, kind: Kind) -> Right<'a> {
        if self.verb != "get" {
            return refused("can only get individual resources of this type");
        }
        if !self.subresource.is_empty() {
            return refused("cannot get subresource");
        }
        self.related(kind)
    }

    fn claim_status(&self) -> Right<'a> {
        match self.verb {
            "update" | "patch" => self.related(Kind::Claim),
            _ => refused("can only get/update/patch this type"),
        }
    }

    fn service_account(&self) -> Right<'a> {
        if self.verb == "get" && self.subresource.is_empty() {
            return self.read(Kind::ServiceAccount);
        }
        if self.verb != "create" || self.name.is_empty() {
            return refused("can only create tokens for individual service accounts");
        }
        if self.subresource != "token" {
            return refused("can only create token subresource of serviceaccount");
        }
        self.related(Kind::ServiceAccount)
    }

    fn lease(&self) -> Right<'a> {
        if !OWN.contains(&self.verb) {
            return refused("can only get, create, update, patch, or delete a node lease");
        }
        if self.namespace != NODE_LEASES {
            return refused("can only access leases in the \"kube-node-lease\" system namespace");
        }
        self.own("can only access node lease with the same name as the requesting node")
    }

    fn csi_node(&self) -> Right<'a> {
        if !OWN.contains(&self.verb) {
            return refused("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.subresource.is_empty() {
            return refused("cannot authorize CSINode subresources");
        }
        self.own("can only access CSINode with the same name as the requesting node")
    }

    /// What has the name of the node. Of a new object the name is not known yet; the plug-in
    /// `NodeRestriction` looks at it.
    fn own(&self, why: &'static str) -> Right<'a> {
        if self.verb == "create" || self.name == self.node { Allowed } else { refused(why) }
    }

    fn resource_slice(&self) -> Right<'a> {
        if !self.subresource.is_empty() {
            return refused("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Allowed,
            "get" | "update" | "patch" | "delete" => self.related(Kind::Slice),
            "watch" | "list" | "deletecollection" if self.selects("spec.nodeName") => Allowed,
            "watch" | "list" | "deletecollection" => refused(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => refused(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, \
                 create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn node(&self) -> Right<'a> {
        let node = self.node;
        match (self.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Allowed,
            ("", "get" | "list" | "watch") => match self.name {
                name if name == node => Allowed,
                "" => {
                    let why =
                        format!("node '{node}' cannot read all nodes, only its own Node object");
                    Right::Refused(why.into())
                }
                name => {
                    let why =
                        format!("node '{node}' cannot read '{name}', only its own Node object");
                    Right::Refused(why.into())
                }
            },
            _ => nothing(),
        }
    }

    fn pod(&self) -> Right<'a> {
        match (self.subresource, self.verb) {
            ("", "get") => self.related(Kind::Pod),
            ("", "list" | "watch") if self.selects("spec.nodeName") => Allowed,
            ("", "list" | "watch") if !self.name.is_empty() => self.related(Kind::Pod),
            ("", "list" | "watch") => {
                refused("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Allowed
            }
            _ => nothing(),
        }
    }

    /// Whether only objects of this node are wanted.
    fn selects(&self, field: &str) -> bool {
        let selector = FieldSelector::of_anything(self.fields);
        selector.is_ok_and(|selector| selector.requires(field, self.node))
    }
}

fn refused<'a>(why: &'static str) -> Right<'a> {
    Right::Refused(Cow::Borrowed(why))
}

/// There is nothing to say about it.
fn nothing<'a>() -> Right<'a> {
    refused("")
}
