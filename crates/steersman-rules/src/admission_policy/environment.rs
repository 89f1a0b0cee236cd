//! What expressions of policies and match conditions may speak of, by Kubernetes' declarations.
//!
//! There are eight environments, made when they are first needed, and one more for each policy with
//! variables.

use std::sync::{Arc, OnceLock};

use steersman_cel::{Env, ObjectShape, Shape, ShapeKind, Type};

/// The new object; `null` if there is none.
pub const OBJECT: &str = "object";
/// The object that it replaces; `null` if there is none.
pub const OLD_OBJECT: &str = "oldObject";
/// The request, as webhooks are told it.
pub const REQUEST: &str = "request";
/// The parameters of a policy.
pub const PARAMS: &str = "params";
/// The namespace of the object; `null` if it lives in none.
pub const NAMESPACE: &str = "namespaceObject";
/// Who may do what.
pub const AUTHORIZER: &str = "authorizer";
/// A question about the resource of the request.
pub const REQUEST_RESOURCE: &str = "authorizer.requestResource";
/// The variables of a policy.
pub const VARIABLES: &str = "variables";

/// What not every expression may speak of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// The parameters.
    pub params: bool,
    /// The authorizer.
    pub authorizer: bool,
    /// What changes of objects are written in.
    pub patches: bool,
}

/// What an expression may speak of.
pub(super) fn environment(offers: Offers) -> &'static Env {
    static ENVIRONMENTS: [OnceLock<Env>; 8] = [const { OnceLock::new() }; 8];
    let Offers { params, authorizer, patches } = offers;
    let index = usize::from(params) | usize::from(authorizer) << 1 | usize::from(patches) << 2;
    ENVIRONMENTS[index].get_or_init(|| build(offers))
}

/// The same, with the variables of a policy.
pub(super) fn composed(offers: Offers, variables: &[(String, Type)]) -> Env {
    with_variables(environment(offers), variables)
}

/// An environment, with the variables of a policy.
pub(super) fn with_variables(env: &Env, variables: &[(String, Type)]) -> Env {
    let shape = ObjectShape::of_types("kubernetes.variables", variables.iter().cloned());
    env.clone().object_variable(VARIABLES, shape)
}

/// What the expressions of a policy may speak of where the shape of objects is known, and that of
/// parameters, if it has any. Here Kubernetes does not declare `authorizer.requestResource`, and so
/// warns of it.
pub(super) fn typed(object: &Arc<Shape>, params: Option<Arc<Shape>>) -> Env {
    seeing(Env::kubernetes(), object, params).typed_variable(AUTHORIZER, access("Authorizer"))
}

fn build(offers: Offers) -> Env {
    let base = if offers.patches { Env::kubernetes_patches() } else { Env::kubernetes() };
    let env = seeing(base, &anything(), offers.params.then(anything));
    if !offers.authorizer {
        return env;
    }
    env.typed_variable(AUTHORIZER, access("Authorizer"))
        .typed_variable(REQUEST_RESOURCE, access("ResourceCheck"))
}

/// What every expression sees.
fn seeing(base: Env, object: &Arc<Shape>, params: Option<Arc<Shape>>) -> Env {
    let env = base
        .shared_variable(OBJECT, Arc::clone(object))
        .shared_variable(OLD_OBJECT, Arc::clone(object))
        .object_variable(NAMESPACE, namespace())
        .object_variable(REQUEST, request());
    match params {
        Some(params) => env.shared_variable(PARAMS, params),
        None => env,
    }
}

/// The shape of what nothing is known of.
pub(super) fn anything() -> Arc<Shape> {
    Arc::new(Shape::new(ShapeKind::Dyn))
}

/// A type of those that ask who may do what.
fn access(name: &str) -> Type {
    Type::named(&format!("kubernetes.authorization.{name}"))
}

fn object(name: &str, fields: &[(&str, Type)]) -> ObjectShape {
    let fields = fields.iter().map(|(field, ty)| ((*field).to_owned(), ty.clone()));
    ObjectShape::of_types(&format!("kubernetes.{name}"), fields)
}

fn part(name: &str, fields: &[(&str, Type)]) -> Type {
    Type::Object(Arc::new(object(name, fields)))
}

fn texts() -> Type {
    Type::list(Type::String)
}

/// What is known of a request.
fn request() -> ObjectShape {
    let text = || Type::String;
    let kind =
        part("GroupVersionKind", &[("group", text()), ("version", text()), ("kind", text())]);
    let resource = part(
        "GroupVersionResource",
        &[("group", text()), ("version", text()), ("resource", text())],
    );
    let user = part(
        "UserInfo",
        &[
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    object(
        "AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

/// What is shown of a namespace.
fn namespace() -> ObjectShape {
    let text = || Type::String;
    let labels = || Type::map(Type::String, Type::String);
    let condition = part(
        "NamespaceCondition",
        &[
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Type::Timestamp),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = part(
        "NamespaceMetadata",
        &[
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            // Kubernetes declares it so, and nobody can read it.
            ("UID", text()),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let spec = part("NamespaceSpec", &[("finalizers", texts())]);
    let status =
        part("NamespaceStatus", &[("conditions", Type::list(condition)), ("phase", text())]);
    object("Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
}
