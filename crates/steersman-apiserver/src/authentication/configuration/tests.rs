//! What a configuration may say, and how it is told what it may not.

use std::path::Path;

use serde_json::{Value, json};

use super::parse;
use crate::authentication::issuer::Mapping;

fn authenticator() -> Value {
    json!({
        "issuer": {"url": "https://issuer.test", "audiences": ["kube"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    })
}

fn configuration(jwt: &Value) -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": jwt,
    })
}

fn refused(configuration: &Value) -> String {
    match parse(&configuration.to_string(), Path::new("")) {
        Ok(_) => panic!("{configuration} is taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_left_out_is_told_as_missing() {
    let expected = "invalid authentication configuration: [jwt[0].issuer.url: Required value, \
                    jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences \
                    is required, jwt[0].claimMappings.username: Required value: claim or \
                    expression is required]";
    assert_eq!(refused(&configuration(&json!([{}]))), expected);
}

#[test]
fn all_versions_say_the_same() {
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let mut document = configuration(&json!([authenticator()]));
        document["apiVersion"] = format!("apiserver.config.k8s.io/{version}").into();
        let (issuers, _) = parse(&document.to_string(), Path::new("")).unwrap();
        assert_eq!(issuers.len(), 1, "{version}");
    }
}

#[test]
fn issuers_and_anonymous_requests_are_configured() {
    let text = "\
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://issuer.test/realm
    discoveryURL: https://elsewhere.test/.well-known/openid-configuration
    audiences: [kube, cli]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - claim: hd
    requiredValue: example.com
  claimMappings:
    username: {claim: email, prefix: 'oidc:'}
    groups: {claim: groups, prefix: ''}
    uid: {claim: sub}
anonymous:
  enabled: true
  conditions:
  - path: /livez
";
    let (issuers, anonymous) = parse(text, Path::new("")).unwrap();
    let [issuer] = issuers.as_slice() else { panic!("{issuers:?}") };
    assert_eq!((issuer.url.as_str(), issuer.audiences.len()), ("https://issuer.test/realm", 2));
    assert!(matches!(&issuer.username, Mapping::Claim(name) if name.prefix == "oidc:"));
    assert_eq!(issuer.required, [("hd".to_owned(), "example.com".to_owned())]);
    let anonymous = anonymous.unwrap();
    assert!(anonymous.covers("/livez") && !anonymous.covers("/livez/ping"));
    let (issuers, anonymous) =
        parse(&configuration(&json!([])).to_string(), Path::new("")).unwrap();
    assert!(issuers.is_empty() && anonymous.is_none());
}

/// What is said about a field of the first issuer.
fn at(field: &str, text: &str) -> String {
    format!("jwt[0].{field}: {text}")
}

/// That a configuration with this value at this path is refused with this text.
fn assert_refused(cases: impl IntoIterator<Item = (&'static str, Value, String)>) {
    for (path, value, expected) in cases {
        let mut one = authenticator();
        let (parent, field) = path.rsplit_once('/').unwrap();
        one.pointer_mut(parent).unwrap()[field] = value;
        let error = refused(&configuration(&json!([one])));
        assert!(error.contains(&expected), "{path}: {error}\nexpected: {expected}");
    }
}

#[test]
fn what_may_not_be_said_of_an_issuer_is_told_in_kubernetes_words() {
    assert_refused([
        ("/issuer/url", json!(""), at("issuer.url", "Required value")),
        (
            "/issuer/url",
            json!("http://issuer.test"),
            at("issuer.url", "Invalid value: \"http://issuer.test\": URL scheme must be https"),
        ),
        ("/issuer/url", json!("https://u:p@i.test"), "must not contain a username".to_owned()),
        ("/issuer/url", json!("https://i.test?a=b"), "must not contain a query".to_owned()),
        ("/issuer/url", json!("https://i.test#a"), "must not contain a fragment".to_owned()),
        (
            "/issuer/url",
            json!("https://kubernetes.default.svc.cluster.local"),
            "URL must not overlap with disallowed issuers".to_owned(),
        ),
        (
            "/issuer/discoveryURL",
            json!("https://issuer.test/"),
            "discoveryURL must be different from URL".to_owned(),
        ),
        (
            "/issuer/audiences",
            json!([]),
            at(
                "issuer.audiences",
                "Required value: at least one jwt[0].issuer.audiences is required",
            ),
        ),
        ("/issuer/audiences", json!([""]), at("issuer.audiences[0]", "Required value")),
        (
            "/issuer/audiences",
            json!(["a", "b"]),
            "audienceMatchPolicy must be MatchAny for multiple audiences".to_owned(),
        ),
        (
            "/issuer/audienceMatchPolicy",
            json!("MatchAll"),
            "audienceMatchPolicy must be empty or MatchAny for single audience".to_owned(),
        ),
        (
            "/issuer/certificateAuthority",
            json!("none"),
            at("issuer.certificateAuthority", "Invalid value: \"<omitted>\""),
        ),
    ]);
    let twice = refused(&configuration(&json!([authenticator(), authenticator()])));
    let expected = "jwt[1].issuer.url: Duplicate value: \"https://issuer.test\"";
    assert!(twice.contains(expected), "{twice}");
    let many = refused(&configuration(&json!(vec![authenticator(); 65])));
    assert!(many.contains("jwt: Too many: 65: must have at most 64 items"), "{many}");
}

#[test]
fn what_may_not_be_said_of_claims_is_told_in_kubernetes_words() {
    assert_refused([
        (
            "/claimMappings/username",
            json!({}),
            at("claimMappings.username", "Required value: claim or expression is required"),
        ),
        (
            "/claimMappings/username",
            json!({"claim": "sub"}),
            at(
                "claimMappings.username.prefix",
                "Required value: prefix is required when claim is set",
            ),
        ),
        (
            "/claimValidationRules",
            json!([{"claim": "a"}, {"claim": "a"}]),
            at("claimValidationRules[1].claim", "Duplicate value: \"a\""),
        ),
    ]);
}

#[test]
fn what_may_not_be_said_in_expressions_is_told_in_kubernetes_words() {
    let undeclared = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'claim'";
    assert_refused([
        (
            "/claimMappings/username",
            json!({"expression": "claim.sub", "prefix": "x"}),
            at(
                "claimMappings.username.prefix",
                "Invalid value: \"x\": may not be specified when expression is set",
            ),
        ),
        (
            "/claimMappings/username",
            json!({"expression": "claim.sub"}),
            at(
                "claimMappings.username.expression",
                &format!("Invalid value: \"claim.sub\": {undeclared}"),
            ),
        ),
        (
            "/claimMappings/username",
            json!({"expression": "claims.email"}),
            "claims.email_verified must be used in claimMappings.username.expression".to_owned(),
        ),
        (
            "/claimMappings/extra",
            json!([{"key": "x.k8s.io/B", "valueExpression": ""}]),
            at("claimMappings.extra[0].key", "Invalid value: \"x.k8s.io/B\": must be lowercase"),
        ),
        (
            "/claimMappings/extra",
            json!([{"key": "x.k8s.io/b", "valueExpression": "claims.c"}]),
            "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use".to_owned(),
        ),
        (
            "/claimValidationRules",
            json!([{"expression": "claims.ok"}]),
            at(
                "claimValidationRules[0].expression",
                "Invalid value: \"claims.ok\": must evaluate to bool",
            ),
        ),
        (
            "/claimValidationRules",
            json!([{"expression": "true", "requiredValue": "x"}, {"expression": "true"}]),
            at("claimValidationRules[1].expression", "Duplicate value: \"true\""),
        ),
        (
            "/userValidationRules",
            json!([{"message": "x"}]),
            at("userValidationRules[0].expression", "Required value"),
        ),
        (
            "/userValidationRules",
            json!([{"expression": "user.name == 'x'"}]),
            "undefined field 'name'".to_owned(),
        ),
    ]);
}

#[test]
fn an_address_may_be_a_name_once_somebody_looks_whether_it_is_verified() {
    let mut one = authenticator();
    one["claimMappings"]["username"] = json!({"expression": "claims.email"});
    one["claimValidationRules"] =
        json!([{"expression": "claims.?email_verified.orValue(true) == true"}]);
    let (issuers, _) = parse(&configuration(&json!([one])).to_string(), Path::new("")).unwrap();
    assert!(matches!(issuers[0].username, Mapping::Expression(_)));
    assert_eq!(issuers[0].rules.len(), 1);
}

#[test]
fn other_documents_and_unknown_fields_are_refused() {
    let mut other = configuration(&json!([]));
    other["kind"] = "Pod".into();
    assert!(refused(&other).contains("it is \"apiserver.config.k8s.io/v1\", \"Pod\""));
    let mut one = authenticator();
    one["issuer"]["clientID"] = "x".into();
    let error = refused(&configuration(&json!([one])));
    assert!(error.contains("clientID"), "{error}");
    let mut closed = configuration(&json!([]));
    closed["anonymous"] = json!({"enabled": false, "conditions": [{"path": "/livez"}]});
    let error = refused(&closed);
    assert!(error.contains("enabled should be set to true when conditions are defined"), "{error}");
    let mut file = authenticator();
    file["issuer"]["jwksFile"] = "nowhere.json".into();
    let error = refused(&configuration(&json!([file])));
    assert!(error.contains("cannot read nowhere.json"), "{error}");
}
