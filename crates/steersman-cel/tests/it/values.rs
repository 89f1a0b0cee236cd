//! Variables that are no plain JSON: lazy ones, authorizers, constructed objects.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use serde_json::json;
use steersman_cel::access::{Access, Authorizer, Decision, Question};
use steersman_cel::{
    Activation, Budget, Env, Error, Fields, Library, ObjectShape, Shape, ShapeKind, Type, Value,
};

#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Question>>);

impl Authorizer for Asked {
    fn authorize(&self, question: &Question) -> Decision {
        self.0.lock().unwrap().push(question.clone());
        Decision { allowed: question.verb == "get", reason: "because".to_owned(), error: None }
    }
}

fn authorizer_env() -> Env {
    Env::kubernetes()
        .typed_variable("authorizer", Type::named("kubernetes.authorization.Authorizer"))
}

#[test]
fn an_authorizer_is_asked() {
    let authorizer = Arc::new(Asked::default());
    let program = authorizer_env()
        .compile(
            "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments')\
             .subresource('scale').namespace('n').name('d').check('get').allowed()",
        )
        .unwrap();
    let activation = Activation::new()
        .value("authorizer", Value::access(Access::start(Arc::clone(&authorizer) as _)));
    let outcome = program.evaluate(&activation, Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(true));
    assert_eq!(outcome.cost, 350_008);
    let asked = authorizer.0.lock().unwrap();
    assert_eq!(asked[0].service_account, Some(("ns".to_owned(), "sa".to_owned())));
    assert_eq!((asked[0].group.as_str(), asked[0].resource.as_str()), ("apps", "deployments"));
}

#[test]
fn three_questions_cost_too_much() {
    let authorizer = Arc::new(Asked::default());
    let one = "!authorizer.path('/x').check('post').allowed()";
    let program = authorizer_env().compile(&[one; 3].join(" && ")).unwrap();
    let activation =
        Activation::new().value("authorizer", Value::access(Access::start(authorizer as _)));
    let outcome = program.evaluate(&activation, Budget::default());
    assert!(outcome.value.unwrap_err().to_string().contains("cost limit exceeded"));
}

#[test]
fn a_lazy_variable_is_computed_once_and_only_if_used() {
    let env = Env::kubernetes().variable("variables.a", Shape::new(ShapeKind::Int));
    let computed = Cell::new(0);
    let lazy = || {
        computed.set(computed.get() + 1);
        Ok(Value::Int(7))
    };
    let used = env.compile("variables.a + variables.a == 14").unwrap();
    let activation = Activation::new().lazy("variables.a", &lazy);
    let outcome = used.evaluate(&activation, Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(true));
    assert_eq!(computed.get(), 1);
    let unused = env.compile("true || variables.a == 1").unwrap();
    assert!(unused.evaluate(&activation, Budget::default()).value.is_ok());
    assert_eq!(computed.get(), 1);
}

#[test]
fn objects_are_constructed_and_become_json() {
    let spec = Shape::object("Object.spec", [("replicas".to_owned(), Shape::new(ShapeKind::Int))]);
    let object = Shape::object("Object", [("spec".to_owned(), spec)]);
    let ShapeKind::Object(object) = &object.kind else { panic!() };
    let env = Env::new(&Library::KUBERNETES).object(object);
    let program = env.compile("Object{spec: Object.spec{replicas: 1 + 2}}").unwrap();
    let value = program.evaluate(&Activation::new(), Budget::default()).value.unwrap();
    assert_eq!(value.to_json(), Some(json!({"spec": {"replicas": 3}})));
    let issues = env.compile("Object{spec: Object.spec{replicas: 'x'}}").unwrap_err();
    let expected = "expected type of field 'replicas' is 'int' but provided type is 'string'";
    assert_eq!(issues.issues[0].message, expected);
    let issues = env.compile("Object{status: 1}").unwrap_err();
    assert_eq!(issues.issues[0].message, "undefined field 'status'");
}

#[test]
fn a_type_named_like_a_field_does_not_hide_it() {
    let spec = Shape::object("self.spec", [("replicas".to_owned(), Shape::new(ShapeKind::Int))]);
    let env =
        Env::kubernetes().variable("self", Shape::object("self", [("spec".to_owned(), spec)]));
    let object = json!({"spec": {"replicas": 2}});
    let program = env.compile("self.spec.replicas == 2").unwrap();
    let outcome = program.evaluate(&Activation::new().json("self", &object), Budget::default());
    assert_eq!(outcome.value.unwrap().as_bool(), Some(true));
}

#[test]
fn a_variable_without_value_is_told() {
    let env = Env::kubernetes().variable("x", Shape::new(ShapeKind::Dyn));
    let program = env.compile("x == 1").unwrap();
    let error = program.evaluate(&Activation::new(), Budget::default()).value.unwrap_err();
    assert_eq!(error.to_string(), "no such attribute(s): x");
}

/// Counts how often its fields are computed.
struct Counted(Cell<usize>);

impl<'a> Fields<'a> for Counted {
    fn field(&'a self, name: &str) -> Option<Result<Value<'a>, Error>> {
        self.0.set(self.0.get() + 1);
        match name {
            "one" => Some(Ok(Value::Int(1))),
            "broken" => Some(Err(Error::new("cannot be computed"))),
            _ => None,
        }
    }
}

#[test]
fn fields_of_a_variable_are_computed_if_they_are_needed() {
    let fields = [("one", Type::Int), ("broken", Type::Bool), ("absent", Type::Int)];
    let fields = fields.into_iter().map(|(name, ty)| (name.to_owned(), ty));
    let env = Env::kubernetes().object_variable("v", ObjectShape::of_types("V", fields));
    for (text, expected, computed) in [
        ("v.one == 1", Ok("true"), 1),
        ("true || v.broken", Ok("true"), 0),
        ("v.broken || false", Err("cannot be computed"), 1),
        ("v.absent == 1", Err("no such key: absent"), 1),
        ("has(v.absent)", Ok("false"), 1),
        ("v == v", Err("no such overload"), 0),
    ] {
        let counted = Counted(Cell::new(0));
        let program = env.compile(text).unwrap();
        let outcome = program.evaluate(&Activation::new().fields("v", &counted), Budget::default());
        let value = outcome.value.map(|value| value.to_string()).map_err(|why| why.to_string());
        assert_eq!(value.as_deref().map_err(String::as_str), expected, "{text}");
        assert_eq!(counted.0.get(), computed, "{text}");
    }
    let issues = env.compile("v.two == 2").unwrap_err().to_string();
    assert!(issues.contains("undefined field 'two'"), "{issues}");
}

#[test]
fn objects_of_any_fields_are_made_where_changes_are_written() {
    let env = Env::kubernetes_patches();
    let program = env.compile("Object{spec: Object.spec{a: 1, b: ['x']}}").unwrap();
    assert_eq!(program.result_type().to_string(), "Object");
    let value = program.evaluate(&Activation::new(), Budget::default()).value.unwrap();
    assert_eq!(value.to_json(), Some(serde_json::json!({"spec": {"a": 1, "b": ["x"]}})));
    assert!(Env::kubernetes().compile("Object{}").is_err());
}
