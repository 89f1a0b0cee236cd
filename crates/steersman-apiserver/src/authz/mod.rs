//! Who may do what: Kubernetes' node authorizer and RBAC, with `system:masters` above them.
//!
//! A request is authorised by its [`Attributes`], which are read from method, path and query alone,
//! before anybody looks at its body or at whether there is such a resource. [`Rbac`] holds roles and
//! bindings by subject, so that a decision costs a few hash probes however many bindings there are;
//! [`rule`] says what one rule allows. Nodes are asked about before that: [`node`]. Who may grant what
//! is in [`escalation`].

mod attributes;
pub(crate) mod escalation;
mod load;
mod node;
mod rbac;
pub(crate) mod rule;
pub(crate) mod selector;

pub(crate) use attributes::{Attributes, Target};
pub(crate) use load::folders;
pub(crate) use node::node_of;
pub(crate) use rbac::{Rbac, RoleReference};

use std::borrow::Cow;
use std::str::FromStr;

use node::Nodes;
use steersman_store::Store;

use crate::status::{Result, Status};
use crate::user::{MASTERS, User};

/// How requests are authorised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Nodes by what is related to them, then everybody by roles and bindings: kubeadm's
    /// `Node,RBAC`.
    #[default]
    NodeRbac,
    /// Everybody by roles and bindings alone.
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
}

/// The modes as flags name them, in the order in which they are asked.
impl FromStr for AuthorizationMode {
    type Err = UnknownMode;

    fn from_str(modes: &str) -> std::result::Result<Self, UnknownMode> {
        match modes {
            "Node,RBAC" | "RBAC,Node" => Ok(Self::NodeRbac),
            "RBAC" => Ok(Self::Rbac),
            "AlwaysAllow" => Ok(Self::AlwaysAllow),
            _ => Err(UnknownMode(modes.to_owned())),
        }
    }
}

/// There is no such way to authorise requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("authorization mode {0:?} is not one of \"Node,RBAC\", \"RBAC\", \"AlwaysAllow\"")]
pub struct UnknownMode(String);

/// Decides who may do what.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    mode: AuthorizationMode,
    nodes: Nodes,
    pub(crate) rbac: Rbac,
}

/// What was decided, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// Empty where there is nothing to say beyond the decision.
    pub(crate) reason: String,
}

impl Authorizer {
    /// One that knows no roles yet.
    pub(crate) fn new(mode: AuthorizationMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Whether there is nothing that somebody could not do.
    pub(crate) fn allows_everything(&self) -> bool {
        self.mode == AuthorizationMode::AlwaysAllow
    }

    /// Decides about a request.
    pub(crate) fn decide(&self, asked: &Attributes<'_>) -> Decision {
        if self.mode == AuthorizationMode::AlwaysAllow || is_master(asked.user) {
            return Decision { allowed: true, reason: String::new() };
        }
        self.decide_by_rules(asked)
    }

    /// What roles say, unless it is a node's request and allowed as such.
    fn decide_by_rules(&self, asked: &Attributes<'_>) -> Decision {
        let Some(by_node) = self.by_node(asked) else { return self.rbac.decide(asked) };
        let Err(why) = by_node else {
            return Decision { allowed: true, reason: String::new() };
        };
        let mut decision = self.rbac.decide(asked);
        if !decision.allowed && !why.is_empty() {
            let reasons = [why.as_ref(), &decision.reason];
            let reasons: Vec<&str> = reasons.into_iter().filter(|why| !why.is_empty()).collect();
            decision.reason = reasons.join("\n");
        }
        decision
    }

    fn by_node(&self, asked: &Attributes<'_>) -> Option<Result<(), Cow<'static, str>>> {
        (self.mode == AuthorizationMode::NodeRbac).then(|| self.nodes.decide(asked)).flatten()
    }

    /// Sees to it that a decision about a request counts what was written before it. Roles always
    /// do; what is related to a node only does once this was called.
    pub(crate) async fn look(&self, store: &dyn Store, asked: &Attributes<'_>) -> Result<()> {
        if self.mode == AuthorizationMode::NodeRbac && !is_master(asked.user) {
            self.nodes.look(store, asked).await?;
        }
        Ok(())
    }

    /// Whether not all that a user may do can be told by rules, and why.
    pub(crate) fn untold(&self, user: &User) -> Option<&'static str> {
        let is_node = self.mode == AuthorizationMode::NodeRbac && node_of(user).is_some();
        is_node.then_some("node authorizer does not support user rule resolution")
    }

    /// Whether a request is allowed; costs no text where it is.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        self.mode == AuthorizationMode::AlwaysAllow
            || is_master(asked.user)
            || self.by_node(asked).is_some_and(|decided| decided.is_ok())
            || self.rbac.allows(asked)
    }

    /// Refuses a request that is not allowed.
    pub(crate) fn authorize(&self, asked: &Attributes<'_>) -> Result<()> {
        if self.allows(asked) {
            return Ok(());
        }
        let Decision { reason, .. } = self.decide(asked);
        Err(asked.refusal(&reason))
    }
}

/// Whether a user may do everything, whatever roles say.
pub(crate) fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

impl Attributes<'_> {
    /// The answer to one who may not.
    pub(crate) fn refusal(&self, reason: &str) -> Status {
        let sentence = self.to_string();
        let sentence = sentence.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let why = if reason.is_empty() { sentence } else { format!("{sentence}: {reason}") };
        Status::forbidden(self.named(), &why, Vec::new())
    }
}
