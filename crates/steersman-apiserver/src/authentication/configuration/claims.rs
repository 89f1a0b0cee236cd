//! What a configuration says of claims and of the users that they make.

use std::collections::BTreeSet;

use serde::Deserialize;
use steersman_rules::field::{Errors, FieldError};
use steersman_rules::names;

use super::super::issuer::{About, Claim, Expression, Mapping, Rule};

/// A claim that must be made, or an expression that must hold.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
pub(super) struct ClaimRule {
    claim: String,
    required_value: String,
    expression: String,
    message: String,
}

/// An expression that must hold of the user.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
pub(super) struct UserRule {
    expression: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Mappings {
    #[serde(default)]
    username: ClaimOrExpression,
    #[serde(default)]
    groups: ClaimOrExpression,
    #[serde(default)]
    uid: ClaimOrExpression,
    #[serde(default)]
    extra: Vec<Extra>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ClaimOrExpression {
    claim: String,
    prefix: Option<String>,
    expression: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Extra {
    key: String,
    value_expression: String,
}

/// What is made of claims.
pub(super) struct Made {
    pub(super) username: Mapping,
    pub(super) groups: Option<Mapping>,
    pub(super) uid: Option<Mapping>,
    pub(super) extra: Vec<(String, Expression)>,
}

/// Whether expressions look at an address, and at whether it is verified.
#[derive(Default)]
pub(super) struct Email {
    seen: bool,
    verified: bool,
}

impl Mappings {
    /// The same, ready to be used.
    pub(super) fn made(self) -> Result<Made, String> {
        let Self { username, groups, uid, extra } = self;
        let extra = extra.into_iter().map(|Extra { key, value_expression }| {
            Expression::mapping(&value_expression).map(|expression| (key, expression))
        });
        let username = username.made()?;
        Ok(Made {
            username: username.ok_or("there is nothing to make a name of")?,
            groups: groups.made()?,
            uid: uid.made()?,
            extra: extra.collect::<Result<_, _>>()?,
        })
    }

    /// Says everything that is wrong. Who takes an unverified address for a name lets everybody be
    /// anybody.
    pub(super) fn check(&self, path: &str, email: &mut Email, errors: &mut Vec<FieldError>) {
        let path = format!("{path}.claimMappings");
        if let Some(name) = self.username.check(&path, "username", errors) {
            email.seen |= name.sees_email;
            email.verified |= name.sees_email_verified;
        }
        self.groups.check(&path, "groups", errors);
        self.uid.check(&path, "uid", errors);
        let mut keys = BTreeSet::new();
        for (n, extra) in self.extra.iter().enumerate() {
            extra.check(&format!("{path}.extra[{n}]"), &mut keys, email, errors);
        }
        if email.seen && !email.verified {
            let why = "claims.email_verified must be used in claimMappings.username.expression or \
                       claimMappings.extra[*].valueExpression or claimValidationRules[*].expression \
                       when claims.email is used in claimMappings.username.expression";
            let given = self.username.expression.as_str().into();
            errors.push(FieldError::invalid(format!("{path}.username.expression"), &given, why));
        }
    }
}

impl ClaimOrExpression {
    fn made(self) -> Result<Option<Mapping>, String> {
        let Self { claim, prefix, expression } = self;
        Ok(match (claim.as_str(), expression.as_str()) {
            ("", "") => None,
            ("", expression) => Some(Mapping::Expression(Expression::mapping(expression)?)),
            _ => Some(Mapping::Claim(Claim { claim, prefix: prefix.unwrap_or_default() })),
        })
    }

    /// Says what is wrong; gives the expression if there is one.
    fn check(&self, path: &str, name: &str, errors: &mut Vec<FieldError>) -> Option<Expression> {
        let field = format!("{path}.{name}");
        if name == "uid" && self.prefix.is_some() {
            errors.push(FieldError::forbidden(format!("{field}.prefix"), "a uid has no prefix"));
        }
        match (self.claim.as_str(), self.expression.as_str()) {
            ("", "") if name == "username" => {
                errors.push(FieldError::required(field, "claim or expression is required"));
            }
            ("", "") => {}
            ("", expression) => {
                if let Some(prefix) = self.prefix.as_ref().filter(|_| name != "uid") {
                    let why = "may not be specified when expression is set";
                    let field = format!("{field}.prefix");
                    errors.push(FieldError::invalid(field, &prefix.as_str().into(), why));
                }
                let field = format!("{field}.expression");
                return compiled(Expression::mapping(expression), expression, &field, errors);
            }
            (_, "") if name != "uid" && self.prefix.is_none() => {
                let why = "prefix is required when claim is set. It can be set to an empty string \
                           to disable prefixing";
                errors.push(FieldError::required(format!("{field}.prefix"), why));
            }
            (_, "") => {}
            _ => {
                let why = "claim and expression can't both be set";
                errors.push(FieldError::invalid(field, &"".into(), why));
            }
        }
        None
    }
}

impl Extra {
    fn check<'a>(
        &'a self,
        path: &str,
        keys: &mut BTreeSet<&'a str>,
        email: &mut Email,
        errors: &mut Vec<FieldError>,
    ) {
        let Self { key, value_expression: text } = self;
        let field = format!("{path}.key");
        let mut found = Errors::default();
        names::domain_prefixed_path(key, &field, &mut found);
        errors.extend(found.iter().cloned());
        let mut wrong = |why: &str| {
            errors.push(FieldError::invalid(field.as_str(), &key.as_str().into(), why));
        };
        if *key != key.to_lowercase() {
            wrong("must be lowercase");
        }
        if is_kubernetes(key) {
            wrong("k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
        }
        if !keys.insert(key) {
            return errors.push(FieldError::duplicate(field, &key.as_str().into()));
        }
        let field = format!("{path}.valueExpression");
        if text.is_empty() {
            return errors.push(FieldError::required(field, ""));
        }
        let expression = compiled(Expression::mapping(text), text, &field, errors);
        email.verified |= expression.is_some_and(|expression| expression.sees_email_verified);
    }
}

/// Whether a key begins with a domain of Kubernetes.
fn is_kubernetes(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is = |known: &str| {
        domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    is("kubernetes.io") || is("k8s.io")
}

/// Claims that must be made, and their values.
type Required = Vec<(String, String)>;

/// The claims that must be made, and what must hold of all.
pub(super) fn rules(rules: Vec<ClaimRule>) -> Result<(Required, Vec<Rule>), String> {
    let mut required = Vec::new();
    let mut held = Vec::new();
    for ClaimRule { claim, required_value, expression, message } in rules {
        if expression.is_empty() {
            required.push((claim, required_value));
        } else {
            let expression = Expression::condition(&expression, About::Claims)?;
            held.push(Rule { expression, message });
        }
    }
    Ok((required, held))
}

/// What must hold of the user.
pub(super) fn user_rules(rules: Vec<UserRule>) -> Result<Vec<Rule>, String> {
    let made = rules.into_iter().map(|UserRule { expression, message }| {
        let expression = Expression::condition(&expression, About::User)?;
        Ok(Rule { expression, message })
    });
    made.collect()
}

/// Says everything that is wrong with the rules for claims.
pub(super) fn check_rules(
    rules: &[ClaimRule],
    path: &str,
    email: &mut Email,
    errors: &mut Vec<FieldError>,
) {
    let mut claims = BTreeSet::new();
    let mut expressions = BTreeSet::new();
    for (n, rule) in rules.iter().enumerate() {
        let field = format!("{path}.claimValidationRules[{n}]");
        match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => errors.push(FieldError::required(field, "claim or expression is required")),
            ("", text) => {
                if !rule.required_value.is_empty() {
                    let why = "may not be specified when expression is set";
                    let given = rule.required_value.as_str().into();
                    errors.push(FieldError::invalid(format!("{field}.requiredValue"), &given, why));
                }
                let field = format!("{field}.expression");
                if !expressions.insert(text) {
                    errors.push(FieldError::duplicate(field, &text.into()));
                    continue;
                }
                let condition = Expression::condition(text, About::Claims);
                let condition = compiled(condition, text, &field, errors);
                email.verified |= condition.is_some_and(|it| it.sees_email_verified);
            }
            (claim, "") => {
                if !rule.message.is_empty() {
                    let why = "may not be specified when claim is set";
                    let given = rule.message.as_str().into();
                    errors.push(FieldError::invalid(format!("{field}.message"), &given, why));
                }
                if !claims.insert(claim) {
                    errors.push(FieldError::duplicate(format!("{field}.claim"), &claim.into()));
                }
            }
            (claim, _) => {
                let why = "claim and expression can't both be set";
                errors.push(FieldError::invalid(field, &claim.into(), why));
            }
        }
    }
}

/// Says everything that is wrong with the rules for users.
pub(super) fn check_user_rules(rules: &[UserRule], path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (n, UserRule { expression: text, .. }) in rules.iter().enumerate() {
        let field = format!("{path}.userValidationRules[{n}].expression");
        if text.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if seen.insert(text) {
            compiled(Expression::condition(text, About::User), text, &field, errors);
        } else {
            errors.push(FieldError::duplicate(field, &text.as_str().into()));
        }
    }
}

fn compiled(
    compiled: Result<Expression, String>,
    text: &str,
    field: &str,
    errors: &mut Vec<FieldError>,
) -> Option<Expression> {
    let wrong = |why: String| errors.push(FieldError::invalid(field, &text.into(), &why));
    compiled.map_err(wrong).ok()
}
