//! How an expression puts a question to an authorizer together.

use std::sync::Arc;

use steersman_values::names;

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::Extension;
use crate::extension::access::{Access, Decision, Question, Stage};
use crate::value::Value;

/// A method that returns a question about a resource.
macro_rules! of_resource {
    ($id:literal) => {
        &[(
            $id,
            ".(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck",
        )]
    };
}

pub(super) const ROWS: &[Row] = &[
    (
        "path",
        &[(
            "authorizer_path",
            ".(kubernetes.authorization.Authorizer, string) kubernetes.authorization.PathCheck",
        )],
        path,
    ),
    (
        "group",
        &[(
            "authorizer_group",
            ".(kubernetes.authorization.Authorizer, string) kubernetes.authorization.GroupCheck",
        )],
        group,
    ),
    (
        "serviceAccount",
        &[(
            "authorizer_serviceaccount",
            ".(kubernetes.authorization.Authorizer, string, string) kubernetes.authorization.Authorizer",
        )],
        service_account,
    ),
    (
        "resource",
        &[(
            "groupcheck_resource",
            ".(kubernetes.authorization.GroupCheck, string) kubernetes.authorization.ResourceCheck",
        )],
        resource,
    ),
    ("subresource", of_resource!("resourcecheck_subresource"), |args| {
        of_resource(args, |question, value| question.subresource = value)
    }),
    ("namespace", of_resource!("resourcecheck_namespace"), |args| {
        of_resource(args, |question, value| question.namespace = value)
    }),
    ("name", of_resource!("resourcecheck_name"), |args| {
        of_resource(args, |question, value| question.name = value)
    }),
    ("fieldSelector", of_resource!("authorizer_fieldselector"), |args| {
        of_resource(args, |question, value| question.field_selector = value)
    }),
    ("labelSelector", of_resource!("authorizer_labelselector"), |args| {
        of_resource(args, |question, value| question.label_selector = value)
    }),
    (
        "check",
        &[
            (
                "pathcheck_check",
                ".(kubernetes.authorization.PathCheck, string) kubernetes.authorization.Decision",
            ),
            (
                "resourcecheck_check",
                ".(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.Decision",
            ),
        ],
        check,
    ),
    ("errored", &[("decision_errored", ".(kubernetes.authorization.Decision) bool")], errored),
    ("error", &[("decision_error", ".(kubernetes.authorization.Decision) string")], error),
    ("allowed", &[("decision_allowed", ".(kubernetes.authorization.Decision) bool")], allowed),
    ("reason", &[("decision_reason", ".(kubernetes.authorization.Decision) string")], reason),
];

/// The question so far, if it is at the stage that the method needs.
fn at<'v>(value: &'v Value<'_>, stage: Stage) -> Result<&'v Access, Error> {
    match value {
        Value::Extension(Extension::Access(access)) if access.stage == stage => Ok(access),
        _ => Err(Error::no_such_overload()),
    }
}

fn path<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [access, value] = args else { return no_overload() };
    let (mut access, value) = (at(access, Stage::Start)?.clone(), text(value)?);
    if value.trim().is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    access.stage = Stage::Path;
    access.question.path = Some(value.to_owned());
    Ok(Value::access(access))
}

fn group<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [access, value] = args else { return no_overload() };
    let mut access = at(access, Stage::Start)?.clone();
    access.stage = Stage::Group;
    text(value)?.clone_into(&mut access.question.group);
    Ok(Value::access(access))
}

fn service_account<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [access, namespace, name] = args else { return no_overload() };
    let mut access = at(access, Stage::Start)?.clone();
    let (namespace, name) = (text(namespace)?, text(name)?);
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(Error::new("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(Error::new("Invalid service account namespace"));
    }
    access.question.service_account = Some((namespace.to_owned(), name.to_owned()));
    Ok(Value::access(access))
}

fn resource<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [access, value] = args else { return no_overload() };
    let (mut access, value) = (at(access, Stage::Group)?.clone(), text(value)?);
    if value.trim().is_empty() {
        return Err(Error::new("resource must not be empty"));
    }
    access.stage = Stage::Resource;
    value.clone_into(&mut access.question.resource);
    Ok(Value::access(access))
}

fn of_resource<'a>(
    args: &[Value<'a>],
    set: impl Fn(&mut Question, String),
) -> Result<Value<'a>, Error> {
    let [access, value] = args else { return no_overload() };
    let mut access = at(access, Stage::Resource)?.clone();
    set(&mut access.question, text(value)?.to_owned());
    Ok(Value::access(access))
}

fn check<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [access, verb] = args else { return no_overload() };
    let access = at(access, Stage::Resource).or_else(|_| at(access, Stage::Path))?;
    let question = Question { verb: text(verb)?.to_owned(), ..access.question.clone() };
    let decision = access.authorizer.authorize(&question);
    Ok(Value::Extension(Extension::Decision(Arc::new(decision))))
}

fn decision<'v>(args: &'v [Value<'_>]) -> Result<&'v Decision, Error> {
    match args {
        [Value::Extension(Extension::Decision(decision))] => Ok(decision),
        _ => Err(Error::no_such_overload()),
    }
}

fn errored<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(decision(args)?.error.is_some()))
}

fn error<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::from(decision(args)?.error.as_deref().unwrap_or_default()))
}

fn allowed<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(decision(args)?.allowed))
}

fn reason<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::from(decision(args)?.reason.as_str()))
}
