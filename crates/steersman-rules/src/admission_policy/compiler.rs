//! From the text of an expression to a program, or to why there is none, in Kubernetes' words.

use std::cell::RefCell;
use std::rc::Rc;

use steersman_cel::{Env, Program, Type};

use super::environment::{Offers, composed, environment};

/// What an expression must evaluate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Whether something holds.
    Bool,
    /// A message.
    Text,
    /// The value of an annotation, if there is one.
    TextOrNull,
    /// Anything.
    Any,
    /// What is laid over an object.
    Object,
    /// Operations on an object.
    Patches,
}

/// How many variables a policy may have: each knows the types of all before it. Kubernetes sets no
/// limit.
pub const VARIABLES_MAX: usize = 1000;

/// Compiles the expressions of one policy, in order: a variable may speak of those before it, and
/// whatever comes after of all.
#[derive(Debug, Default)]
pub struct Compiler {
    /// Whether the policy has parameters.
    params: bool,
    /// The variables so far; without any, expressions cannot even name them, unless they are said
    /// to be composed.
    variables: Option<Vec<(String, Type)>>,
    /// What expressions may speak of, with these variables.
    environments: RefCell<Vec<(Offers, Rc<Env>)>>,
}

impl Compiler {
    /// Of a policy that has parameters, or none.
    #[must_use]
    pub fn new(params: bool) -> Self {
        Self { params, ..Self::default() }
    }

    /// The same, where expressions may name variables even if there are none.
    #[must_use]
    pub fn composed(self) -> Self {
        Self { variables: Some(Vec::new()), ..self }
    }

    /// Compiles a variable, which what comes after may speak of, be it sound or not.
    pub fn variable(&mut self, name: &str, expression: &str) -> Result<Program, String> {
        if self.variables.is_none() {
            self.variables = Some(Vec::new());
        }
        let compiled = self.compile(expression, self.offers(), Returns::Any);
        let ty = compiled.as_ref().map_or(Type::Dyn, |program| declared(program.result_type()));
        if let Some(variables) = &mut self.variables {
            variables.push((name.to_owned(), ty));
        }
        self.environments.get_mut().clear();
        compiled
    }

    /// Compiles a match condition, which cannot speak of variables.
    pub fn condition(&self, expression: &str) -> Result<Program, String> {
        compile(environment(self.offers()), expression, Returns::Bool)
    }

    /// Compiles an expression that may ask the authorizer.
    pub fn expression(&self, expression: &str, returns: Returns) -> Result<Program, String> {
        self.compile(expression, self.offers(), returns)
    }

    /// Compiles an expression that makes a message, and asks nobody.
    pub fn message(&self, expression: &str) -> Result<Program, String> {
        let offers = Offers { authorizer: false, ..self.offers() };
        self.compile(expression, offers, Returns::Text)
    }

    /// Compiles an expression that changes an object.
    pub fn mutation(&self, expression: &str, returns: Returns) -> Result<Program, String> {
        self.compile(expression, Offers { patches: true, ..self.offers() }, returns)
    }

    fn offers(&self) -> Offers {
        Offers { params: self.params, authorizer: true, patches: false }
    }

    fn compile(&self, text: &str, offers: Offers, returns: Returns) -> Result<Program, String> {
        match &self.variables {
            Some(variables) => compile(&self.composed_of(offers, variables), text, returns),
            None => compile(environment(offers), text, returns),
        }
    }

    /// What expressions may speak of, with variables; made once for all that come after them.
    fn composed_of(&self, offers: Offers, variables: &[(String, Type)]) -> Rc<Env> {
        let mut known = self.environments.borrow_mut();
        if let Some((_, env)) = known.iter().find(|(of, _)| *of == offers) {
            return Rc::clone(env);
        }
        let env = Rc::new(composed(offers, variables));
        known.push((offers, Rc::clone(&env)));
        env
    }
}

fn compile(env: &Env, text: &str, returns: Returns) -> Result<Program, String> {
    let checked = env.check(text).map_err(|why| format!("compilation failed: {why}"))?;
    let found = checked.result_type();
    if !returns.accepts(found) {
        return Err(format!("must evaluate to {} but got {}", returns.names(), go_name(found)));
    }
    checked.program().map_err(|why| {
        let first = why.issues.first().map_or("", |issue| issue.message.as_str());
        format!("program instantiation failed: {first}")
    })
}

impl Returns {
    fn accepts(self, ty: &Type) -> bool {
        match (self, ty) {
            (Self::Any, _)
            | (Self::Bool, Type::Bool)
            | (Self::Text, Type::String)
            | (Self::TextOrNull, Type::String | Type::Null) => true,
            (Self::Object, Type::Object(object)) => &*object.name == "Object",
            (Self::Patches, Type::List(of)) => {
                matches!(&**of, Type::Object(object) if &*object.name == "JSONPatch")
            }
            _ => false,
        }
    }

    fn names(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Text => "string",
            Self::TextOrNull => "one of [string null_type]",
            Self::Any => "one of [any dyn]",
            Self::Object => "Object",
            Self::Patches => "list(JSONPatch)",
        }
    }
}

/// A type as cel-go calls it.
fn go_name(ty: &Type) -> String {
    let with = |params: &[&Type]| {
        let params: Vec<String> = params.iter().map(|param| go_name(param)).collect();
        format!("{}({})", ty.name(), params.join(", "))
    };
    match ty {
        Type::List(of) => with(&[of]),
        Type::Map(of) => with(&[&of.0, &of.1]),
        Type::Type(Some(of)) => with(&[of]),
        Type::Opaque(_, params) if !params.is_empty() => with(&params.iter().collect::<Vec<_>>()),
        other => other.name().to_owned(),
    }
}

/// What others know of the type of a variable: of objects and what libraries add, nothing.
pub(super) fn declared(ty: &Type) -> Type {
    match ty {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(of) => Type::list(declared(of)),
        Type::Map(of) => Type::map(declared(&of.0), declared(&of.1)),
        _ => Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::{Compiler, Returns};

    #[test]
    fn expressions_speak_of_what_kubernetes_declares() {
        let compiler = Compiler::new(true);
        for sound in [
            "object.metadata.name != 'x'",
            "request.userInfo.username == 'jane' && 'a' in request.userInfo.groups",
            "oldObject == null || request.operation == 'DELETE'",
            "request.options.fieldManager == 'x'",
            "namespaceObject.metadata.labels['a'] == 'b'",
            "params.data.a == 'b'",
            "authorizer.group('apps').resource('deployments').check('get').allowed()",
            "authorizer.requestResource.check('update').allowed()",
        ] {
            let compiled = compiler.expression(sound, Returns::Bool);
            assert!(compiled.is_ok(), "{sound}: {:?}", compiled.err());
        }
    }

    #[test]
    fn what_is_wrong_is_told_as_kubernetes_tells_it() {
        let compiler = Compiler::new(false);
        for (wrong, returns, why) in [
            ("request.user == 'jane'", Returns::Bool, "undefined field 'user'"),
            ("'text'", Returns::Bool, "must evaluate to bool but got string"),
            ("object.a", Returns::Bool, "must evaluate to bool but got dyn"),
            ("1", Returns::TextOrNull, "must evaluate to one of [string null_type] but got int"),
            ("[now()]", Returns::Text, "undeclared reference to 'now'"),
            (
                "[timestamp('2020-01-01T00:00:00Z')]",
                Returns::Text,
                "but got list(google.protobuf.Timestamp)",
            ),
            ("params.a == 1", Returns::Bool, "undeclared reference to 'params'"),
            ("variables.a == 1", Returns::Bool, "undeclared reference to 'variables'"),
            ("object.", Returns::Bool, "compilation failed: ERROR: <input>:1:8: Syntax error"),
        ] {
            let told = compiler.expression(wrong, returns).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
        let told = compiler.message("authorizer.path('/x').check('get').reason()").unwrap_err();
        assert!(told.contains("undeclared reference to 'authorizer'"), "{told}");
    }

    #[test]
    fn variables_have_types_and_an_order() {
        let mut compiler = Compiler::new(false);
        compiler.variable("names", "object.spec.containers.map(c, string(c.name))").unwrap();
        compiler.variable("first", "variables.names[0]").unwrap();
        compiler.expression("variables.first == 'web'", Returns::Bool).unwrap();
        let told = compiler.expression("variables.first == 1", Returns::Bool).unwrap_err();
        assert!(told.contains("found no matching overload for '_==_'"), "{told}");
        let told = compiler.variable("later", "variables.last").unwrap_err();
        assert!(told.contains("undefined field 'last'"), "{told}");
        // What does not compile is there all the same.
        compiler.expression("variables.later == 1", Returns::Bool).unwrap();
    }

    #[test]
    fn changes_are_objects_or_operations() {
        let compiler = Compiler::new(false).composed();
        let object = "Object{spec: Object.spec{replicas: 3, any: ['x']}}";
        compiler.mutation(object, Returns::Object).unwrap();
        let patch = "[JSONPatch{op: 'add', path: '/x/' + jsonpatch.escapeKey('a/b'), value: 1}]";
        compiler.mutation(patch, Returns::Patches).unwrap();
        for (wrong, returns, why) in [
            ("Object.spec{}", Returns::Object, "must evaluate to Object but got Object.spec"),
            ("[]", Returns::Patches, "must evaluate to list(JSONPatch) but got list(dyn)"),
            ("[JSONPatch{op: 1}]", Returns::Patches, "expected type of field 'op' is 'string'"),
        ] {
            let told = compiler.mutation(wrong, returns).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
        let told = compiler.expression("Object{} == Object{}", Returns::Bool).unwrap_err();
        assert!(told.contains("undeclared reference to 'Object'"), "{told}");
    }
}
