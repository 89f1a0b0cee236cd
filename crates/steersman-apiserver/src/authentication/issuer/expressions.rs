//! Expressions in CEL over what a token states, and over the user that this makes.

use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;
use steersman_cel::{
    Activation, Budget, Env, ObjectShape, Program, Shape, ShapeKind, Type, Value, escape, unescape,
};

use crate::user::User;

const CLAIMS: &str = "claims";
const USER: &str = "user";

/// What an expression speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::authentication) enum About {
    Claims,
    User,
}

/// An expression that is ready to run.
#[derive(Clone, Debug)]
pub(in crate::authentication) struct Expression {
    text: String,
    about: About,
    program: Arc<Program>,
    /// Whether it looks at the claim `email`.
    pub(in crate::authentication) sees_email: bool,
    /// Whether it looks at the claim that says whether that is verified.
    pub(in crate::authentication) sees_email_verified: bool,
}

/// Something that must hold, and what to say if it does not.
#[derive(Clone, Debug)]
pub(in crate::authentication) struct Rule {
    pub(in crate::authentication) expression: Expression,
    pub(in crate::authentication) message: String,
}

impl Expression {
    /// Reads an expression over claims, which may make anything of them.
    pub(in crate::authentication) fn mapping(text: &str) -> Result<Self, String> {
        Self::compile(text, About::Claims, false)
    }

    /// Reads an expression that holds or does not.
    pub(in crate::authentication) fn condition(text: &str, about: About) -> Result<Self, String> {
        Self::compile(text, about, true)
    }

    fn compile(text: &str, about: About, decides: bool) -> Result<Self, String> {
        let compiled = about.environment().check(text);
        let compiled = compiled.map_err(|why| format!("compilation failed: {why}"))?;
        if decides && !matches!(compiled.result_type(), Type::Bool) {
            return Err("must evaluate to bool".to_owned());
        }
        let program = compiled.program();
        let program = program.map_err(|why| format!("program instantiation failed: {why}"))?;
        Ok(Self {
            text: text.to_owned(),
            about,
            program: Arc::new(program),
            sees_email: compiled.selects(CLAIMS, "email"),
            sees_email_verified: compiled.selects(CLAIMS, "email_verified"),
        })
    }

    /// What it makes of what it speaks of.
    fn evaluate<'a>(&'a self, about: &'a Json) -> Result<Value<'a>, String> {
        let activation = Activation::new().json(self.about.variable(), about);
        let outcome = self.program.evaluate(&activation, Budget::default());
        let text = &self.text;
        outcome.value.map_err(|why| format!("expression '{text}' resulted in error: {why}"))
    }

    /// The text that it makes of claims; `what` says of what it is the text.
    pub(super) fn text(&self, claims: &Json, what: &str) -> Result<String, String> {
        let failed = |why: String| format!("oidc: error evaluating {what} claim expression: {why}");
        let value = self.evaluate(claims).map_err(failed)?;
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| failed(format!("{what} claim expression must return a string")))
    }

    /// The texts that it makes of claims. One that is empty is none.
    pub(super) fn groups(&self, claims: &Json) -> Result<Vec<String>, String> {
        let texts = self.evaluate(claims).and_then(|value| texts(&value));
        texts.map_err(|why| format!("oidc: error evaluating group claim expression: {why}"))
    }

    /// The values of something else that is said of a user.
    pub(super) fn extra(&self, claims: &Json) -> Result<Vec<String>, String> {
        let text = &self.text;
        let failed = |why| format!("oidc: error evaluating extra claim expression: {text}: {why}");
        texts(&self.evaluate(claims)?).map_err(failed)
    }
}

impl Rule {
    /// Says why what it speaks of is not as it must be.
    fn check(&self, about: &Json) -> Result<(), String> {
        let value = self.expression.evaluate(about)?;
        match value.as_bool() {
            Some(true) => Ok(()),
            Some(false) => {
                let Self { expression, message } = self;
                Err(format!("validation expression '{}' failed: {message}", expression.text))
            }
            None => Err("validation expression must return a boolean".to_owned()),
        }
    }
}

/// Something as Kubernetes shows it to expressions: each number is a `double`, and what has a name
/// that cannot stand behind a dot is found by its escaped name as well. A name that looks escaped
/// means the other, and leads nowhere if there is none: whoever issues tokens cannot pass one claim
/// off for another.
pub(super) fn as_shown(value: &Json) -> Json {
    match value {
        Json::Number(number) => number.as_f64().map_or(Json::Null, Json::from),
        Json::Array(items) => items.iter().map(as_shown).collect(),
        Json::Object(fields) => {
            let means_another =
                |name: &str| unescape(name).is_some_and(|unescaped| unescaped != name);
            let mut all = serde_json::Map::new();
            for (name, value) in fields {
                let value = as_shown(value);
                if let Some(escaped) = escape(name).filter(|escaped| escaped != name) {
                    all.insert(escaped, value.clone());
                }
                if !means_another(name) {
                    all.insert(name.clone(), value);
                }
            }
            Json::Object(all)
        }
        other => other.clone(),
    }
}

/// Says which of the rules for claims they do not keep.
pub(super) fn check_claims(rules: &[Rule], claims: &Json) -> Result<(), String> {
    let failed = |why| format!("oidc: error evaluating claim validation expression: {why}");
    rules.iter().try_for_each(|rule| rule.check(claims)).map_err(failed)
}

/// Says which of the rules for users one does not keep.
pub(super) fn check_user(rules: &[Rule], user: &User) -> Result<(), String> {
    if rules.is_empty() {
        return Ok(());
    }
    let User { name, groups, uid, extra } = user;
    let user = serde_json::json!({"username": name, "uid": uid, "groups": groups, "extra": extra});
    let failed = |why| format!("oidc: error evaluating user info validation rule: {why}");
    let user = as_shown(&user);
    rules.iter().try_for_each(|rule| rule.check(&user)).map_err(failed)
}

/// A text or a list of them, without those that are empty.
fn texts(value: &Value<'_>) -> Result<Vec<String>, String> {
    let wrong = || "expression must return a string or a list of strings".to_owned();
    let mut texts = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.as_str().to_owned()],
        Value::List(items) => {
            let texts = items.iter().map(|item| item.ok()?.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    };
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

impl About {
    fn variable(self) -> &'static str {
        match self {
            Self::Claims => CLAIMS,
            Self::User => USER,
        }
    }

    fn environment(self) -> &'static Env {
        static ENVIRONMENTS: [OnceLock<Env>; 2] = [const { OnceLock::new() }; 2];
        ENVIRONMENTS[self as usize].get_or_init(|| match self {
            Self::Claims => {
                let claims = Shape::map(Shape::new(ShapeKind::Dyn));
                Env::kubernetes().variable(CLAIMS, claims)
            }
            Self::User => {
                let texts = || Type::list(Type::String);
                let fields = [
                    ("username", Type::String),
                    ("uid", Type::String),
                    ("groups", texts()),
                    ("extra", Type::map(Type::String, texts())),
                ];
                let fields = fields.map(|(name, ty)| (name.to_owned(), ty));
                let user = ObjectShape::of_types("kubernetes.UserInfo", fields);
                Env::kubernetes().object_variable(USER, user)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{About, Expression, Rule, as_shown, check_claims, check_user};
    use crate::user::User;

    fn mapping(text: &str) -> Expression {
        Expression::mapping(text).unwrap()
    }

    #[test]
    fn claims_become_a_text_or_several() {
        let claims = json!({"sub": "jane", "roles": ["dev", "", "ops"], "level": 7, "no": null});
        let name = mapping("'oidc:' + claims.sub").text(&claims, "username");
        assert_eq!(name.unwrap(), "oidc:jane");
        let why = mapping("claims.level").text(&claims, "uid").unwrap_err();
        let expected = "oidc: error evaluating uid claim expression: uid claim expression must return a string";
        assert_eq!(why, expected);
        for (text, expected) in [
            ("claims.roles.map(r, r == '' ? r : 'g:' + r)", &["g:dev", "g:ops"][..]),
            ("claims.sub", &["jane"]),
            ("claims.no", &[]),
            ("has(claims.absent) ? claims.absent : ''", &[]),
        ] {
            assert_eq!(mapping(text).groups(&claims).unwrap(), expected, "{text}");
        }
        let why = mapping("[claims.level]").groups(&claims).unwrap_err();
        assert!(why.ends_with("must return a string or a list of strings"), "{why}");
        let why = mapping("claims.absent").extra(&claims).unwrap_err();
        assert_eq!(why, "expression 'claims.absent' resulted in error: no such key: absent");
    }

    #[test]
    fn rules_say_what_claims_and_users_do_not_keep() {
        let rule = |text: &str, about| Rule {
            expression: Expression::condition(text, about).unwrap(),
            message: "not so".to_owned(),
        };
        let short = rule("claims.exp - claims.nbf <= 86400", About::Claims);
        assert_eq!(
            check_claims(std::slice::from_ref(&short), &json!({"exp": 100, "nbf": 50})),
            Ok(())
        );
        let why = check_claims(&[short], &json!({"exp": 100_000, "nbf": 50})).unwrap_err();
        let expected = "oidc: error evaluating claim validation expression: validation expression \
                        'claims.exp - claims.nbf <= 86400' failed: not so";
        assert_eq!(why, expected);
        let plain = rule("user.groups.all(g, !g.startsWith('system:'))", About::User);
        let jane = |groups: &[&str]| User {
            name: "jane".to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::default()
        };
        assert_eq!(check_user(std::slice::from_ref(&plain), &jane(&[])), Ok(()));
        let why = check_user(&[plain], &jane(&["system:masters"])).unwrap_err();
        assert!(why.starts_with("oidc: error evaluating user info validation rule: "), "{why}");
    }

    #[test]
    fn names_are_escaped_and_numbers_are_double_as_kubernetes_has_them() {
        let claims = as_shown(&json!({
            "acme.com/roles": ["dev"], "in": "a", "level": 12_345_678, "plain": {"a-b": "deep"},
            "acme__dot__com__slash__roles": ["root"], "x__dot__y": "forged",
        }));
        for (text, expected) in [
            ("claims.acme__dot__com__slash__roles", &["dev"][..]),
            ("claims['acme.com/roles']", &["dev"]),
            ("claims.__in__", &["a"]),
            ("claims.plain.a__dash__b", &["deep"]),
            ("has(claims.x__dot__y) ? 'there' : 'not'", &["not"]),
            ("claims.level / 2.0 == 6172839.0 ? 'double' : 'int'", &["double"]),
        ] {
            assert_eq!(mapping(text).groups(&claims).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_or_no_condition_is_told() {
        let why = Expression::mapping("claim.sub").unwrap_err();
        assert!(why.starts_with("compilation failed: ERROR: <input>:1:1: undeclared"), "{why}");
        let why = Expression::condition("claims.ok", About::Claims).unwrap_err();
        assert_eq!(why, "must evaluate to bool");
        let seen = mapping("claims.email_verified ? claims.email : claims.sub");
        assert!(seen.sees_email && seen.sees_email_verified);
    }
}
