//! May somebody do something? Asked of whoever runs the expression.

use std::fmt;
use std::sync::Arc;

/// Answers what expressions ask by `authorizer`.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether the asked may be done.
    fn authorize(&self, question: &Question) -> Decision;
}

/// What an expression asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The service account, as namespace and name, in whose place it is asked; the user of the
    /// request where there is none.
    pub service_account: Option<(String, String)>,
    /// What is to be done.
    pub verb: String,
    /// The path, for what is no resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource; empty for a path.
    pub resource: String,
    /// Part of the resource.
    pub subresource: String,
    /// Where it lies.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Which of many, by fields.
    pub field_selector: String,
    /// Which of many, by labels.
    pub label_selector: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while deciding.
    pub error: Option<String>,
}

/// A question that is being put together.
#[derive(Clone, Debug)]
pub struct Access {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) stage: Stage,
    pub(crate) question: Question,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Start,
    Path,
    Group,
    Resource,
}

impl Access {
    /// What `authorizer` is in an expression.
    #[must_use]
    pub fn start(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, stage: Stage::Start, question: Question::default() }
    }

    /// What `authorizer.requestResource` is: a question about the resource of the request.
    #[must_use]
    pub fn resource(authorizer: Arc<dyn Authorizer>, question: Question) -> Self {
        Self { authorizer, stage: Stage::Resource, question }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Start => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
        }
    }
}
