//! Expressions in CEL over what a token states, and over the user that this makes.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use steersman_cel::{Activation, Budget, Env, Program, Shape, ShapeKind, Type, escape};

use crate::user::User;

const CLAIMS: &str = "claims";
const USER: &str = "user";

/// What is said where an expression is worth something else.
const NO_TEXTS: &str = "expression must return a string or a list of strings";

static OF_CLAIMS: LazyLock<Env> =
    LazyLock::new(|| Env::kubernetes().variable(CLAIMS, Shape::map(Shape::new(ShapeKind::Dyn))));

static OF_USER: LazyLock<Env> = LazyLock::new(|| {
    let text = || Shape::new(ShapeKind::String);
    let fields = [
        ("username", text()),
        ("uid", text()),
        ("groups", Shape::list(text())),
        ("extra", Shape::map(Shape::list(text()))),
    ];
    let fields = fields.map(|(name, shape)| (name.to_owned(), shape));
    Env::kubernetes().variable(USER, Shape::object("kubernetes.UserInfo", fields))
});

/// An expression that is ready to run. Clones are the same one.
#[derive(Clone, Debug)]
pub(in crate::authentication) struct Expression(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    text: String,
    program: Program,
}

/// An expression that must be true, and what is said if it is not.
#[derive(Clone, Debug)]
pub(in crate::authentication) struct Rule {
    pub(in crate::authentication) holds: Expression,
    pub(in crate::authentication) message: String,
}

/// Which claims an expression reads that say together whose mail a user has.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::authentication) struct Reads {
    pub(in crate::authentication) email: bool,
    pub(in crate::authentication) email_verified: bool,
}

/// What is known of a token, for expressions.
pub(super) struct Stated(Value);

impl Expression {
    /// One that makes something of claims, and which of them it reads.
    pub(in crate::authentication) fn of_claims(text: &str) -> Result<(Self, Reads), String> {
        Self::compile(&OF_CLAIMS, text, false)
    }

    /// One that claims have to fulfil.
    pub(in crate::authentication) fn about_claims(text: &str) -> Result<(Self, Reads), String> {
        Self::compile(&OF_CLAIMS, text, true)
    }

    /// One that a user has to fulfil.
    pub(in crate::authentication) fn about_user(text: &str) -> Result<(Self, Reads), String> {
        Self::compile(&OF_USER, text, true)
    }

    fn compile(env: &Env, text: &str, holds: bool) -> Result<(Self, Reads), String> {
        let failed = |why: &dyn std::fmt::Display| format!("compilation failed: {why}");
        let checked = env.check(text).map_err(|issues| failed(&issues))?;
        if holds && !matches!(checked.result_type(), Type::Bool) {
            return Err("must evaluate to bool".to_owned());
        }
        let reads = |claim| checked.selects(CLAIMS, claim);
        let reads = Reads { email: reads("email"), email_verified: reads("email_verified") };
        let program = checked.program().map_err(|issues| failed(&issues))?;
        Ok((Self(Arc::new(Compiled { text: text.to_owned(), program })), reads))
    }

    /// What it is worth, as JSON.
    fn evaluate(&self, variable: &str, of: &Stated) -> Result<Value, String> {
        let Compiled { text, program } = &*self.0;
        let activation = Activation::new().json(variable, &of.0);
        let value = program.evaluate(&activation, Budget::default()).value;
        let value = value.map_err(|error| error.to_string());
        let value = value.and_then(|value| value.to_json().ok_or_else(|| "no such type".into()));
        value.map_err(|why| format!("expression '{text}' resulted in error: {why}"))
    }

    /// The text that it makes of claims. `what` it is for is told if it is none.
    pub(super) fn text(&self, claims: &Stated, what: &str) -> Result<String, String> {
        match self.evaluate(CLAIMS, claims)? {
            Value::String(text) => Ok(text),
            _ => Err(format!("{what} claim expression must return a string")),
        }
    }

    /// The texts that it makes of claims; those that are empty do not count.
    pub(super) fn texts(&self, claims: &Stated) -> Result<Vec<String>, String> {
        let text = |value: Value| match value {
            Value::String(text) => Ok(text),
            _ => Err(NO_TEXTS.to_owned()),
        };
        let texts = match self.evaluate(CLAIMS, claims)? {
            Value::Null => Vec::new(),
            Value::Array(items) => items.into_iter().map(text).collect::<Result<_, _>>()?,
            other => vec![text(other)?],
        };
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
    }

    /// How it was written.
    pub(super) fn written(&self) -> &str {
        &self.0.text
    }
}

impl Rule {
    /// Says why these claims are not good, if they are not.
    pub(super) fn check_claims(&self, claims: &Stated) -> Result<(), String> {
        self.check(CLAIMS, claims)
    }

    /// Says why this user is not, if it is not.
    pub(super) fn check_user(&self, user: &Stated) -> Result<(), String> {
        self.check(USER, user)
    }

    fn check(&self, variable: &str, of: &Stated) -> Result<(), String> {
        let Self { holds, message } = self;
        match holds.evaluate(variable, of)? {
            Value::Bool(true) => Ok(()),
            Value::Bool(false) => {
                Err(format!("validation expression '{}' failed: {message}", holds.written()))
            }
            _ => Err("validation expression must return a boolean".to_owned()),
        }
    }
}

impl Stated {
    /// The claims of a token.
    pub(super) fn claims(claims: &Map<String, Value>) -> Self {
        Self(named(&Value::Object(claims.clone())))
    }

    /// A user that claims have made.
    pub(super) fn user(user: &User) -> Self {
        let User { name, groups, uid, extra } = user;
        let user = json!({"username": name, "uid": uid, "groups": groups, "extra": extra});
        Self(named(&user))
    }
}

/// The same as Kubernetes shows it to expressions: numbers are `double`, and what has a name that
/// cannot be written behind a dot is there by its escaped name as well.
fn named(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.iter().map(named).collect(),
        Value::Object(fields) => {
            let both = fields.iter().flat_map(|(name, value)| {
                let escaped = escape(name).filter(|escaped| escaped != name);
                let value = named(value);
                let again = escaped.map(|escaped| (escaped, value.clone()));
                again.into_iter().chain([(name.clone(), value)])
            });
            Value::Object(both.collect())
        }
        other => other.clone(),
    }
}
