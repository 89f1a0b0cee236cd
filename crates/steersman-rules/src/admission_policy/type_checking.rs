//! What does not fit the kinds that a policy is about, told as warnings.
//!
//! When a policy is written, its expressions are compiled without knowing which objects they will
//! see, so they may speak of a field that none of these has. Here the kinds are known: each
//! expression is checked once for each of them. Nothing but warnings comes of it, with Kubernetes'
//! words and with what Kubernetes leaves out: variables, conditions and annotations have none.

use std::sync::Arc;

use serde_json::Value;
use steersman_cel::{Env, Shape, Type};

use super::compiler::declared;
use super::environment::{anything, typed, with_variables};
use super::{VARIABLES_MAX, items, text};

/// A kind, and how its objects look.
#[derive(Clone, Debug)]
pub struct KnownKind {
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub kind: String,
    /// The schema of its objects, without references.
    pub schema: Value,
}

/// What is known of the parameters of a policy.
#[derive(Clone, Copy, Debug)]
pub enum Params<'a> {
    /// It has none.
    None,
    /// It has some, and how they look is not known.
    Unknown,
    /// It has some of this kind.
    Of(&'a KnownKind),
}

/// What speaks against an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// Where the expression stands.
    pub field_ref: String,
    /// What is wrong with it, for each kind with which something is.
    pub warning: String,
}

/// Checks the validations of a policy for each of these kinds.
#[must_use]
pub fn type_warnings(
    policy: &Value,
    kinds: &[KnownKind],
    params: Params<'_>,
) -> Vec<ExpressionWarning> {
    let spec = &policy["spec"];
    let params = match params {
        Params::None => None,
        Params::Unknown => Some(anything()),
        Params::Of(kind) => Some(kind.shape("Params")),
    };
    let expressions = expressions(spec);
    let mut told = vec![Vec::new(); expressions.len()];
    for kind in kinds {
        let env = environment(spec, kind, params.clone());
        for (told, (_, expression)) in told.iter_mut().zip(&expressions) {
            if let Err(issues) = env.check(expression) {
                told.push(format!("{}: {issues}\n", kind.name()));
            }
        }
    }
    let told = expressions.into_iter().zip(told).filter(|(_, told)| !told.is_empty());
    told.map(|((field_ref, _), told)| ExpressionWarning { field_ref, warning: told.join("\n") })
        .collect()
}

/// What is checked, by where it stands.
fn expressions(spec: &Value) -> Vec<(String, &str)> {
    let mut expressions = Vec::new();
    for (at, validation) in items(&spec["validations"]).enumerate() {
        let mut add = |field: &str, expression| {
            expressions.push((format!("spec.validations[{at}].{field}"), expression));
        };
        add("expression", text(&validation["expression"]));
        let message = text(&validation["messageExpression"]);
        if !message.is_empty() {
            add("messageExpression", message);
        }
    }
    expressions
}

/// What expressions may speak of when they are about objects of this kind.
fn environment(spec: &Value, kind: &KnownKind, params: Option<Arc<Shape>>) -> Env {
    let env = typed(&kind.shape(""), params);
    let mut variables: Vec<(String, Type)> = Vec::new();
    for variable in items(&spec["variables"]).take(VARIABLES_MAX) {
        let composed = with_variables(&env, &variables);
        let checked = composed.check(text(&variable["expression"]));
        let ty = checked.map_or(Type::Dyn, |checked| declared(checked.result_type()));
        variables.push((text(&variable["name"]).to_owned(), ty));
    }
    with_variables(&env, &variables)
}

impl KnownKind {
    /// As Go prints a group, version and kind.
    fn name(&self) -> String {
        format!("{}/{}, Kind={}", self.group, self.version, self.kind)
    }

    /// How its objects look. Types need names of their own, as objects and parameters may be of one
    /// kind; Kubernetes takes the kind and a number that is another one each time.
    fn shape(&self, suffix: &str) -> Arc<Shape> {
        let name = format!("{}{suffix}", self.kind);
        Shape::of_schema(&self.schema, &name, true).map_or_else(anything, Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ExpressionWarning, KnownKind, Params, type_warnings};

    fn kind(kind: &str, spec: &Value) -> KnownKind {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
        }});
        KnownKind { group: "apps".into(), version: "v1".into(), kind: kind.into(), schema }
    }

    fn deployment() -> KnownKind {
        let port = json!({"x-kubernetes-int-or-string": true});
        kind("Deployment", &json!({"replicas": {"type": "integer"}, "port": port}))
    }

    /// The warnings about policies with these parts.
    fn warned(spec: &Value, kinds: &[KnownKind], params: Params<'_>) -> Vec<ExpressionWarning> {
        type_warnings(&json!({ "spec": spec }), kinds, params)
    }

    fn about(expression: &str) -> Vec<ExpressionWarning> {
        let spec = json!({"validations": [{"expression": expression}]});
        warned(&spec, &[deployment()], Params::None)
    }

    #[test]
    fn a_field_that_a_kind_lacks_is_told_as_kubernetes_tells_it() {
        let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n \
                       | object.replicas > 1\n | ......^\n";
        assert_eq!(
            about("object.replicas > 1"),
            [ExpressionWarning {
                field_ref: "spec.validations[0].expression".into(),
                warning: warning.into(),
            }],
        );
        for sound in [
            "object.spec.replicas > 1 && oldObject.spec.replicas > 1",
            "object.spec.port == 80 || object.spec.port == 'http'",
            "object.metadata.name == object.kind",
            "oldObject == null || request.operation == 'DELETE'",
            "authorizer.group('apps').resource('deployments').check('get').allowed()",
            "namespaceObject.metadata.name == 'x'",
            "'what it evaluates to does not count'",
        ] {
            assert_eq!(about(sound), [], "{sound}");
        }
        for (wrong, why) in [
            ("object.spec.replicas == '1'", "found no matching overload for '_==_'"),
            ("object.spec == 1", "applied to '(Deployment.spec, int)'"),
            ("params.x == 1", "undeclared reference to 'params'"),
            ("variables.x == 1", "undefined field 'x'"),
            (
                "authorizer.requestResource.check('get').allowed()",
                "unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
            ),
        ] {
            let told = about(wrong);
            assert!(told.len() == 1 && told[0].warning.contains(why), "{wrong}: {told:?}");
        }
    }

    #[test]
    fn each_expression_is_checked_for_each_kind() {
        let kinds = [deployment(), kind("Thing", &json!({"size": {"type": "integer"}}))];
        let spec = json!({
            "variables": [
                {"name": "replicas", "expression": "object.spec.replicas"},
                {"name": "spec", "expression": "object.spec"},
            ],
            "validations": [
                {"expression": "object.spec.replicas > 1",
                 "messageExpression": "'has ' + string(object.spec.size)"},
                // A variable that does not compile is anything, and so is one that is an object.
                {"expression": "variables.replicas > 1 && variables.spec.whatever"},
                {"expression": "variables.replicas == 'x'"},
                {"expression": "object.nothing"},
            ],
        });
        let told = warned(&spec, &kinds, Params::None);
        let told: Vec<(&str, Vec<&str>)> = told
            .iter()
            .map(|told| {
                let heads = told.warning.lines().filter(|line| line.contains("ERROR"));
                let kinds = heads.filter_map(|line| line.split(": ").next());
                (told.field_ref.as_str(), kinds.collect())
            })
            .collect();
        let (deployment, thing) = ("apps/v1, Kind=Deployment", "apps/v1, Kind=Thing");
        assert_eq!(
            told,
            [
                ("spec.validations[0].expression", vec![thing]),
                ("spec.validations[0].messageExpression", vec![deployment]),
                ("spec.validations[2].expression", vec![deployment]),
                ("spec.validations[3].expression", vec![deployment, thing]),
            ],
        );
    }

    #[test]
    fn parameters_have_the_type_of_their_kind_if_it_is_known() {
        let spec = json!({"validations": [{"expression": "params.spec.max > 1"}]});
        let told = |params: Params<'_>| warned(&spec, &[deployment()], params);
        let limit = kind("Limit", &json!({"max": {"type": "integer"}}));
        assert_eq!(told(Params::Of(&limit)), []);
        assert_eq!(told(Params::Unknown), []);
        assert!(told(Params::Of(&deployment()))[0].warning.contains("undefined field 'max'"));
        assert!(told(Params::None)[0].warning.contains("undeclared reference to 'params'"));
        assert_eq!(warned(&spec, &[], Params::None), []);
    }
}
