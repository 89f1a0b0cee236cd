//! Who may do what: Kubernetes' RBAC, with `system:masters` above it.
//!
//! A request is authorised by its [`Attributes`], which are read from method, path and query alone,
//! before anybody looks at its body or at whether there is such a resource. [`Rbac`] holds roles and
//! bindings by subject, so that a decision costs a few hash probes however many bindings there are;
//! [`rule`] says what one rule allows. Who may grant what is in [`escalation`].

mod attributes;
pub(crate) mod escalation;
mod load;
mod rbac;
pub(crate) mod rule;

pub(crate) use attributes::{Attributes, Target};
pub(crate) use load::folders;
pub(crate) use rbac::{Rbac, RoleReference};

use crate::status::{Result, Status};
use crate::user::{MASTERS, User};

/// What everybody may ask for, whatever roles say: those who look whether the server lives.
const ALWAYS_ALLOWED: &[&str] = &["/healthz", "/livez", "/readyz"];

/// How requests are authorised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// By roles and bindings.
    #[default]
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
}

/// Decides who may do what.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    mode: AuthorizationMode,
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
        Self { mode, rbac: Rbac::default() }
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
        match asked.target {
            Target::Path(path) if ALWAYS_ALLOWED.contains(&path) => {
                Decision { allowed: true, reason: String::new() }
            }
            _ => self.rbac.decide(asked),
        }
    }

    /// Whether a request is allowed; costs no text where it is.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        self.mode == AuthorizationMode::AlwaysAllow
            || is_master(asked.user)
            || matches!(asked.target, Target::Path(path) if ALWAYS_ALLOWED.contains(&path))
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
