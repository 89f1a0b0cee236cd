//! What an issuer's claims make of a user, and what both have to fulfil: checked, and made ready.

use std::collections::BTreeSet;

use steersman_rules::field::{Errors, FieldError};
use steersman_rules::names::domain_prefixed_path;

use super::{Authenticator, Extra, Mapping, Mappings};
use crate::authentication::issuer::{Claim, Expression, Reads, Rule, Source};

const BOTH: &str = "claim and expression can't both be set";
const EITHER: &str = "claim or expression is required";
/// Whose keys are not to be chosen by others.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// What is made of claims.
pub(super) struct Made {
    pub(super) username: Source,
    pub(super) groups: Option<Source>,
    pub(super) uid: Option<Source>,
    pub(super) extra: Vec<(String, Expression)>,
    pub(super) required: Vec<(String, String)>,
    pub(super) claim_rules: Vec<Rule>,
    pub(super) user_rules: Vec<Rule>,
}

/// Makes ready what one issuer's claims are for, as far as nothing is wrong with it.
pub(super) fn made(
    authenticator: &Authenticator,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> Option<Made> {
    let mut check = Check { errors, reads: Reads::default() };
    let (required, claim_rules) = check.claim_rules(authenticator, path);
    let mappings = &authenticator.claim_mappings;
    let below = format!("{path}.claimMappings");
    let mut verified = check.reads.email_verified;
    check.reads = Reads::default();
    let username = check.prefixed(&mappings.username, &format!("{below}.username"));
    if username.is_none() && is_open(&mappings.username) {
        check.wrong(FieldError::required(format!("{below}.username"), EITHER));
    }
    let email = check.reads.email;
    verified |= check.reads.email_verified;
    let groups = check.prefixed(&mappings.groups, &format!("{below}.groups"));
    let uid = check.uid(&mappings.uid, &format!("{below}.uid"));
    check.reads = Reads::default();
    let extra = check.extra(mappings, &below);
    verified |= check.reads.email_verified;
    if email && !verified {
        let field = format!("{below}.username.expression");
        let why = "claims.email_verified must be used in claimMappings.username.expression or \
                   claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when \
                   claims.email is used in claimMappings.username.expression";
        let given = mappings.username.expression.as_str();
        check.wrong(FieldError::invalid(field, &given.into(), why));
    }
    let user_rules = check.user_rules(authenticator, path);
    Some(Made { username: username?, groups, uid, extra, required, claim_rules, user_rules })
}

fn is_open(mapping: &Mapping) -> bool {
    mapping.claim.is_empty() && mapping.expression.is_empty()
}

/// What is wrong so far, and what was read.
struct Check<'e> {
    errors: &'e mut Vec<FieldError>,
    reads: Reads,
}

impl Check<'_> {
    fn wrong(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// An expression, and notes which claims it reads.
    fn compiled(
        &mut self,
        field: String,
        text: &str,
        compile: fn(&str) -> Result<(Expression, Reads), String>,
    ) -> Option<Expression> {
        match compile(text) {
            Ok((expression, reads)) => {
                self.reads.email |= reads.email;
                self.reads.email_verified |= reads.email_verified;
                Some(expression)
            }
            Err(why) => {
                self.wrong(FieldError::invalid(field, &text.into(), &why));
                None
            }
        }
    }

    /// A claim with a prefix, or an expression.
    fn prefixed(&mut self, mapping: &Mapping, field: &str) -> Option<Source> {
        let Mapping { claim, prefix, expression } = mapping;
        match (claim.as_str(), expression.as_str()) {
            ("", "") => None,
            (_, "") => {
                if prefix.is_none() {
                    let why = "prefix is required when claim is set. It can be set to an empty \
                               string to disable prefixing";
                    self.wrong(FieldError::required(format!("{field}.prefix"), why));
                }
                let prefix = prefix.clone().unwrap_or_default();
                Some(Source::Claim(Claim { claim: claim.clone(), prefix }))
            }
            ("", expression) => {
                if let Some(prefix) = prefix {
                    let why = "may not be specified when expression is set";
                    let given = prefix.as_str().into();
                    self.wrong(FieldError::invalid(format!("{field}.prefix"), &given, why));
                }
                let field = format!("{field}.expression");
                let made = self.compiled(field, expression, Expression::of_claims);
                made.map(Source::Expression)
            }
            _ => {
                self.wrong(FieldError::invalid(field, &"".into(), BOTH));
                None
            }
        }
    }

    /// The same without a prefix.
    fn uid(&mut self, mapping: &Mapping, field: &str) -> Option<Source> {
        if mapping.prefix.is_some() {
            let why = "a uid has no prefix";
            self.wrong(FieldError::forbidden(format!("{field}.prefix"), why));
        }
        let prefix = mapping.expression.is_empty().then(String::new);
        let (claim, expression) = (mapping.claim.clone(), mapping.expression.clone());
        self.prefixed(&Mapping { claim, prefix, expression }, field)
    }

    fn extra(&mut self, mappings: &Mappings, path: &str) -> Vec<(String, Expression)> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for (n, Extra { key, value_expression }) in mappings.extra.iter().enumerate() {
            let field = format!("{path}.extra[{n}]");
            self.check_key(key, &format!("{field}.key"));
            if !seen.insert(key) {
                let given = key.as_str().into();
                self.wrong(FieldError::duplicate(format!("{field}.key"), &given));
                continue;
            }
            let field = format!("{field}.valueExpression");
            if value_expression.is_empty() {
                self.wrong(FieldError::required(field, ""));
                continue;
            }
            let made = self.compiled(field, value_expression, Expression::of_claims);
            all.extend(made.map(|made| (key.clone(), made)));
        }
        all
    }

    fn check_key(&mut self, key: &str, field: &str) {
        let mut found = Errors::default();
        domain_prefixed_path(key, field, &mut found);
        self.errors.extend(found);
        let given = key.into();
        if key.to_lowercase() != key {
            self.wrong(FieldError::invalid(field, &given, "must be lowercase"));
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_reserved = |reserved: &&str| {
            domain.strip_suffix(*reserved).is_some_and(|it| it.is_empty() || it.ends_with('.'))
        };
        if RESERVED.iter().any(|reserved| is_reserved(reserved)) {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            self.wrong(FieldError::invalid(field, &given, why));
        }
    }

    /// What claims have to be, by their values and by expressions.
    fn claim_rules(
        &mut self,
        authenticator: &Authenticator,
        path: &str,
    ) -> (Vec<(String, String)>, Vec<Rule>) {
        let mut seen = BTreeSet::new();
        let (mut required, mut rules) = (Vec::new(), Vec::new());
        for (n, rule) in authenticator.claim_validation_rules.iter().enumerate() {
            let field = format!("{path}.claimValidationRules[{n}]");
            let message = &rule.message;
            match (rule.claim.as_str(), rule.expression.as_str()) {
                ("", "") => self.wrong(FieldError::required(field, EITHER)),
                (claim, "") => {
                    if !message.is_empty() {
                        let why = "may not be specified when claim is set";
                        let given = message.as_str().into();
                        self.wrong(FieldError::invalid(format!("{field}.message"), &given, why));
                    }
                    if !seen.insert(("claim", claim)) {
                        let field = format!("{field}.claim");
                        self.wrong(FieldError::duplicate(field, &claim.into()));
                    }
                    required.push((claim.to_owned(), rule.required_value.clone()));
                }
                ("", expression) => {
                    if !rule.required_value.is_empty() {
                        let why = "may not be specified when expression is set";
                        let given = rule.required_value.as_str().into();
                        let field = format!("{field}.requiredValue");
                        self.wrong(FieldError::invalid(field, &given, why));
                    }
                    let field = format!("{field}.expression");
                    if !seen.insert(("expression", expression)) {
                        self.wrong(FieldError::duplicate(field, &expression.into()));
                        continue;
                    }
                    let made = self.compiled(field, expression, Expression::about_claims);
                    rules.extend(made.map(|holds| Rule { holds, message: message.clone() }));
                }
                (claim, _) => self.wrong(FieldError::invalid(field, &claim.into(), BOTH)),
            }
        }
        (required, rules)
    }

    /// What users have to be.
    fn user_rules(&mut self, authenticator: &Authenticator, path: &str) -> Vec<Rule> {
        let mut seen = BTreeSet::new();
        let mut rules = Vec::new();
        for (n, rule) in authenticator.user_validation_rules.iter().enumerate() {
            let field = format!("{path}.userValidationRules[{n}].expression");
            let text = rule.expression.as_str();
            if text.is_empty() {
                self.wrong(FieldError::required(field, ""));
            } else if !seen.insert(text) {
                self.wrong(FieldError::duplicate(field, &text.into()));
            } else {
                let made = self.compiled(field, text, Expression::about_user);
                rules.extend(made.map(|holds| Rule { holds, message: rule.message.clone() }));
            }
        }
        rules
    }
}
