//! What a verified token states, and the user that this makes.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::IssuerSettings;
use super::expressions::{Expression, as_shown, check_claims, check_user};
use crate::user::{CREDENTIAL_ID, User, token_id};

/// How far ahead of ours an issuer's clock may be.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// A claim, and what is put before its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::authentication) struct Claim {
    pub(in crate::authentication) claim: String,
    pub(in crate::authentication) prefix: String,
}

/// What something of a user is made of.
#[derive(Clone, Debug)]
pub(in crate::authentication) enum Mapping {
    Claim(Claim),
    Expression(Expression),
}

type Claims = Map<String, Value>;

pub(super) fn parse(payload: &[u8]) -> Result<Claims, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

/// A claim that is a text. As in Go, null is an empty one.
pub(super) fn text(claims: &Claims, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(mismatch(other, "string")),
    }
}

/// In Go's words: a value is of another sort than it must be.
fn mismatch(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// One text, or a list of them.
fn texts(value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        other => Err(mismatch(other, "string")),
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(text).collect(),
        other => Ok(vec![text(other)?]),
    }
}

/// Refuses a token that is for somebody else.
pub(super) fn check_audience(claims: &Claims, expected: &[String]) -> Result<(), String> {
    let audiences = texts(claims.get("aud").unwrap_or(&Value::Null))
        .map_err(|why| format!("oidc: failed to unmarshal claims: {why}"))?;
    if audiences.iter().any(|audience| expected.contains(audience)) {
        return Ok(());
    }
    let quoted = |texts: &[String]| {
        texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ")
    };
    let found = quoted(&audiences);
    Err(match expected {
        [one] => format!("oidc: expected audience {one:?} got [{found}]"),
        several => {
            let mut several = several.to_vec();
            several.sort_unstable();
            format!("oidc: expected audience in [{}] got [{found}]", quoted(&several))
        }
    })
}

/// Refuses a token whose time is over or yet to come.
pub(super) fn check_time(claims: &Claims, now: Timestamp) -> Result<(), String> {
    // Without an end, a token has ended long ago.
    let end = moment(claims, "exp")?.unwrap_or(Timestamp::UNIX_EPOCH);
    if end < now {
        return Err(format!("oidc: token is expired (Token Expiry: {})", shown(end)));
    }
    if let Some(start) = moment(claims, "nbf")?
        && now.checked_add(LEEWAY).is_ok_and(|late| late < start)
    {
        return Err(format!(
            "oidc: current time {} before the nbf (not before) time: {}",
            shown(now),
            shown(start)
        ));
    }
    Ok(())
}

/// A claim that is a moment, in seconds; a fraction is cut off.
fn moment(claims: &Claims, name: &str) -> Result<Option<Timestamp>, String> {
    let seconds = match claims.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_i64().or_else(|| {
            // The conversion stops at the ends of what is representable.
            number.as_f64().map(|seconds| seconds as i64)
        }),
        Some(_) => None,
    };
    let moment = seconds.and_then(|seconds| {
        let seconds = seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        Timestamp::from_second(seconds).ok()
    });
    let why = || format!("oidc: failed to unmarshal claims: {name} is not a time");
    moment.map(Some).ok_or_else(why)
}

fn shown(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
}

/// The user that a token's claims make.
pub(super) fn user(claims: &Claims, settings: &IssuerSettings) -> Result<User, String> {
    // For expressions, of which most issuers have none.
    let all = match settings.evaluates() {
        true => as_shown(&Value::Object(claims.clone())),
        false => Value::Null,
    };
    let name = match &settings.username {
        Mapping::Claim(claim) => username(claims, claim)?,
        Mapping::Expression(expression) => expression.text(&all, "username")?,
    };
    if name.is_empty() {
        return Err("oidc: empty username via CEL expression is not allowed".to_owned());
    }
    let mut user = User { name, ..User::default() };
    user.groups = match &settings.groups {
        None => Vec::new(),
        Some(Mapping::Claim(claim)) => group_names(claims, claim)?,
        Some(Mapping::Expression(expression)) => expression.groups(&all)?,
    };
    user.uid = match &settings.uid {
        None => String::new(),
        Some(Mapping::Claim(Claim { claim, .. })) => {
            text(claims, claim).map_err(|why| format!("oidc: parse uid claim {claim:?}: {why}"))?
        }
        Some(Mapping::Expression(expression)) => expression.text(&all, "uid")?,
    };
    if let Some(Value::String(id)) = claims.get("jti")
        && !id.is_empty()
    {
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![token_id(id)]);
    }
    for (key, expression) in &settings.extra {
        let values = expression.extra(&all)?;
        if !values.is_empty() {
            user.extra.insert(key.clone(), values);
        }
    }
    check_required(claims, settings)?;
    check_claims(&settings.rules, &all)?;
    check_user(&settings.user_rules, &user)?;
    Ok(user.authenticated())
}

/// Refuses a token that lacks a claim, or has another value for it.
fn check_required(claims: &Claims, settings: &IssuerSettings) -> Result<(), String> {
    for (claim, wanted) in &settings.required {
        if !claims.contains_key(claim) {
            return Err(format!("oidc: required claim {claim} not present in ID token"));
        }
        let found = text(claims, claim);
        let found = found.map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
        if found != *wanted {
            return Err(format!(
                "oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}"
            ));
        }
    }
    Ok(())
}

impl IssuerSettings {
    /// Whether there is an expression over claims.
    fn evaluates(&self) -> bool {
        let all = [Some(&self.username), self.groups.as_ref(), self.uid.as_ref()];
        let is_one = |mapping: &Mapping| matches!(mapping, Mapping::Expression(_));
        all.into_iter().flatten().any(is_one) || !(self.extra.is_empty() && self.rules.is_empty())
    }
}

fn username(claims: &Claims, Claim { claim, prefix }: &Claim) -> Result<String, String> {
    let name = text(claims, claim);
    let name = name.map_err(|why| format!("oidc: parse username claims {claim:?}: {why}"))?;
    if claim == "email" {
        match claims.get("email_verified") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false) | Value::Null) => {
                return Err("oidc: email not verified".to_owned());
            }
            Some(other) => {
                let why = mismatch(other, "bool");
                return Err(format!("oidc: parse 'email_verified' claim: {why}"));
            }
        }
    }
    // Kubernetes lets one without a name in, unless an expression has made it.
    if name.is_empty() {
        return Err(format!("oidc: empty username via claim {claim:?} is not allowed"));
    }
    Ok(format!("{prefix}{name}"))
}

fn group_names(claims: &Claims, Claim { claim, prefix }: &Claim) -> Result<Vec<String>, String> {
    let Some(value) = claims.get(claim) else {
        // The groups would have to be asked for elsewhere, which nobody does here.
        if claims.get("_claim_names").is_some_and(|names| names.get(claim).is_some()) {
            let why = "this server does not resolve distributed claims";
            return Err(format!("oidc: could not expand distributed claims: {why}"));
        }
        return Ok(Vec::new());
    };
    let groups =
        texts(value).map_err(|why| format!("oidc: parse groups claim {claim:?}: {why}"))?;
    Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::{Claim, Mapping, check_audience, check_time, parse, user};
    use crate::authentication::issuer::IssuerSettings;
    use crate::user::User;

    fn settings() -> IssuerSettings {
        let claim = |claim: &str, prefix: &str| {
            Mapping::Claim(Claim { claim: claim.to_owned(), prefix: prefix.to_owned() })
        };
        IssuerSettings {
            url: "https://issuer.test".to_owned(),
            discovery_url: None,
            authorities: Vec::new(),
            audiences: vec!["kube".to_owned()],
            username: claim("email", "oidc:"),
            groups: Some(claim("groups", "oidc:")),
            uid: Some(claim("sub", "")),
            extra: Vec::new(),
            rules: Vec::new(),
            user_rules: Vec::new(),
            required: vec![("hd".to_owned(), "example.com".to_owned())],
            keys: None,
        }
    }

    fn made(claims: &Value) -> Result<User, String> {
        let mut all = json!({"email": "jane@x", "sub": "7", "hd": "example.com", "jti": "j"});
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        all.as_object_mut().unwrap().retain(|_, value| *value != "absent");
        user(all.as_object().unwrap(), &settings())
    }

    #[test]
    fn claims_become_a_user() {
        let user = made(&json!({"groups": ["dev", "ops"], "email_verified": true})).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("oidc:jane@x", "7"));
        assert_eq!(user.groups, ["oidc:dev", "oidc:ops", "system:authenticated"]);
        assert_eq!(user.extra["authentication.kubernetes.io/credential-id"], ["JTI=j"]);
        for (groups, expected) in [
            (json!("one"), vec!["oidc:one", "system:authenticated"]),
            (json!(null), vec!["system:authenticated"]),
            (json!("absent"), vec!["system:authenticated"]),
        ] {
            assert_eq!(made(&json!({"groups": groups})).unwrap().groups, expected);
        }
    }

    #[test]
    fn claims_that_do_not_fit_are_refused() {
        let number = "json: cannot unmarshal number into Go value of type string";
        for (claims, expected) in [
            (json!({"email": "absent"}), "parse username claims \"email\": claim not present"),
            (json!({"email": 7}), number),
            (json!({"email": ""}), "empty username"),
            (json!({"email": null}), "empty username"),
            (json!({"email_verified": false}), "oidc: email not verified"),
            (json!({"email_verified": null}), "oidc: email not verified"),
            (json!({"email_verified": "true"}), "parse 'email_verified' claim"),
            (json!({"groups": ["a", 7]}), number),
            (json!({"groups": {"a": "b"}}), "parse groups claim \"groups\""),
            (json!({"_claim_names": {"groups": "src"}}), "distributed claims"),
            (json!({"sub": "absent"}), "parse uid claim \"sub\": claim not present"),
            (json!({"hd": "absent"}), "required claim hd not present in ID token"),
            (json!({"hd": "other"}), "does not match. Got = other, want = example.com"),
            (json!({"hd": ["example.com"]}), "parse claim hd"),
        ] {
            let why = made(&claims).unwrap_err();
            assert!(why.contains(expected), "{claims}: {why}");
        }
    }

    #[test]
    fn time_and_audience_are_those_of_the_token() {
        let now: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let seconds = now.as_second();
        for (claims, expected) in [
            (json!({"exp": seconds}), None),
            (json!({"exp": seconds as f64 + 0.5, "nbf": seconds + 60}), None),
            (json!({"exp": 1e300}), None),
            (
                json!({"exp": seconds - 1}),
                Some("expired (Token Expiry: 2024-12-31 23:59:59 +0000 UTC)"),
            ),
            (json!({}), Some("expired")),
            (json!({"exp": "soon"}), Some("exp is not a time")),
            (
                json!({"exp": seconds + 99, "nbf": seconds + 61}),
                Some("before the nbf (not before)"),
            ),
        ] {
            let checked = check_time(claims.as_object().unwrap(), now);
            match expected {
                None => assert_eq!(checked, Ok(()), "{claims}"),
                Some(part) => assert!(checked.clone().unwrap_err().contains(part), "{checked:?}"),
            }
        }
        let one = ["kube".to_owned()];
        let several = ["b".to_owned(), "a".to_owned()];
        for (audience, expected, why) in [
            (json!("kube"), &one[..], None),
            (json!(["x", "kube"]), &one[..], None),
            (json!(["x"]), &one[..], Some("oidc: expected audience \"kube\" got [\"x\"]")),
            (
                json!("x"),
                &several[..],
                Some("oidc: expected audience in [\"a\" \"b\"] got [\"x\"]"),
            ),
            (json!(null), &one[..], Some("oidc: expected audience \"kube\" got []")),
        ] {
            let claims = json!({"aud": audience});
            let checked = check_audience(claims.as_object().unwrap(), expected);
            assert_eq!(checked.err().as_deref(), why, "{claims}");
        }
        assert!(parse(b"[]").is_err());
    }
}
