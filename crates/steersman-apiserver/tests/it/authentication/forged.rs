//! Tokens of service accounts that nobody of this cluster has signed, or not for this, or not now.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::jwt::{Key, encoded, parts};
use super::{ACCOUNTS, ISSUER, Server, named};

const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";
const NO_KEY: &str = "invalid signature, no keys found";
const INVALID: &str = "invalid bearer token";

/// A server with an account `robot`, a good token of it, and the key that has signed it.
async fn start() -> (Server, String, Key) {
    let server = Server::start().await;
    server.create(ACCOUNTS, named("robot")).await;
    let token = server.request_token("robot", json!({})).await;
    let key = Key::of_pkcs8(server.identity.signing_key().unwrap().to_pkcs8());
    (server, token, key)
}

fn with(value: &Value, field: &str, new: Value) -> Value {
    let mut value = value.clone();
    value[field] = new;
    value
}

fn without(value: &Value, field: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove(field);
    value
}

#[tokio::test]
async fn a_token_that_somebody_else_signed_is_refused() {
    let (server, token, key) = start().await;
    let [header, claims] = parts(&token);
    let (body, signature) = token.rsplit_once('.').unwrap();
    let other = Key::p256();
    let no_kid = without(&header, "kid");
    let other_kid = with(&header, "kid", json!("another"));
    let own_key = with(&no_kid, "jwk", other.jwk("another"));
    let unsigned = with(&header, "alg", json!("none"));
    let forged_claims = {
        let mut claims = claims.clone();
        claims["kubernetes.io"]["serviceaccount"]["name"] = "admin".into();
        claims["sub"] = "system:serviceaccount:default:admin".into();
        claims
    };
    let head = encoded(&header);
    for (what, forged, expected) in [
        ("another key under the name of ours", other.token(&header, &claims), BAD_SIGNATURE),
        ("another key without a name", other.token(&no_kid, &claims), BAD_SIGNATURE),
        ("another key that comes with the token", other.token(&own_key, &claims), BAD_SIGNATURE),
        ("another key under its own name", other.token(&other_kid, &claims), NO_KEY),
        ("our key under another name", key.token(&other_kid, &claims), NO_KEY),
        (
            "other claims, our signature",
            format!("{head}.{}.{signature}", encoded(&forged_claims)),
            BAD_SIGNATURE,
        ),
        (
            "no algorithm, no signature",
            format!("{}.{}.", encoded(&unsigned), encoded(&claims)),
            BAD_SIGNATURE,
        ),
        ("no algorithm, our signature", key.token(&unsigned, &claims), BAD_SIGNATURE),
        (
            "an algorithm that the key is not for",
            key.token(&with(&header, "alg", json!("RS256")), &claims),
            BAD_SIGNATURE,
        ),
        ("no signature", format!("{body}."), BAD_SIGNATURE),
        (
            "a signature of zeros",
            format!("{body}.{}", URL_SAFE_NO_PAD.encode([0; 64])),
            BAD_SIGNATURE,
        ),
        ("a signature that is too long", format!("{token}AAAA"), BAD_SIGNATURE),
        (
            "an issuer that nobody knows",
            key.token(&header, &with(&claims, "iss", json!("https://evil.test"))),
            INVALID,
        ),
        ("no issuer", key.token(&header, &without(&claims, "iss")), INVALID),
        (
            "what must be understood and is not",
            key.token(&with(&header, "crit", json!(["b64"])), &claims),
            INVALID,
        ),
        ("no namespace", key.token(&header, &with(&claims, "kubernetes.io", json!({}))), INVALID),
    ] {
        assert_eq!(server.refused(&forged).await, expected, "{what}");
    }
    // The key's name is only a hint.
    let user = server.bearer(&key.token(&no_kid, &claims)).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
}

#[tokio::test]
async fn the_public_key_is_no_secret_to_sign_with() {
    let (server, token, _) = start().await;
    let [header, claims] = parts(&token);
    let jwks = server.api.get("/openid/v1/jwks").await.ok();
    let key = &jwks["keys"][0];
    let decoded = |field: &str| URL_SAFE_NO_PAD.decode(key[field].as_str().unwrap()).unwrap();
    let point = [&[4], decoded("x").as_slice(), &decoded("y")].concat();
    let header = with(&header, "alg", json!("HS256"));
    let body = format!("{}.{}", encoded(&header), encoded(&claims));
    for secret in [point, key.to_string().into_bytes(), jwks.to_string().into_bytes(), Vec::new()] {
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), body.as_bytes());
        let forged = format!("{body}.{}", URL_SAFE_NO_PAD.encode(signature));
        assert_eq!(server.refused(&forged).await, BAD_SIGNATURE);
    }
}

#[tokio::test]
async fn a_token_is_good_in_its_time_and_a_minute_around_it() {
    let (server, token, key) = start().await;
    let [header, claims] = parts(&token);
    let now = server.now();
    for (field, seconds, expected) in [
        ("exp", now - 60, None),
        ("exp", now - 61, Some("service account token has expired")),
        ("exp", i64::MIN + 61, Some("service account token has expired")),
        ("nbf", now + 60, None),
        ("nbf", now + 61, Some("service account token is not valid yet")),
        ("iat", now + 60, None),
        ("iat", now + 61, Some("service account token is issued in the future")),
    ] {
        let token = key.token(&header, &with(&claims, field, json!(seconds)));
        match expected {
            None => assert!(server.bearer(&token).await.is_ok(), "{field} {seconds}"),
            Some(why) => assert_eq!(server.refused(&token).await, why, "{field} {seconds}"),
        }
    }
    server.seconds_pass(3600 + 60);
    assert!(server.bearer(&token).await.is_ok());
    server.seconds_pass(1);
    assert_eq!(server.refused(&token).await, "service account token has expired");
}

#[tokio::test]
async fn a_token_for_somebody_else_is_refused_and_reviewed_for_them() {
    let (server, _, _) = start().await;
    let token = server.request_token("robot", json!({"audiences": ["vault", "bank"]})).await;
    let why = server.refused(&token).await;
    let expected = format!(
        "token audiences [\"vault\" \"bank\"] is invalid for the target audiences [{ISSUER:?}]"
    );
    assert_eq!(why, expected);
    let review = server.review(&token, &["other", "bank", "vault"]).await;
    assert_eq!(review["authenticated"], true);
    assert_eq!(review["audiences"], json!(["bank", "vault"]));
    let both = server.request_token("robot", json!({"audiences": ["vault", ISSUER]})).await;
    assert!(server.bearer(&both).await.is_ok());
}

#[tokio::test]
async fn nothing_that_is_sent_as_a_token_does_any_harm() {
    let (server, token, _) = start().await;
    let deep = URL_SAFE_NO_PAD.encode(format!("{{\"iss\":{}", "[".repeat(20_000)));
    let long = "x".repeat(60_000);
    let (head, rest) = token.split_once('.').unwrap();
    for hostile in [
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        ".".repeat(10_000),
        long.clone(),
        format!("{long}.{long}.{long}").chars().take(60_000).collect(),
        format!("{head}.{deep}.AAAA"),
        format!("{deep}.{rest}"),
        format!("{head}.{}.AAAA", encoded(&json!({"iss": [ISSUER]}))),
        format!("{head}.{}.AAAA", encoded(&json!({"iss": ISSUER, "exp": "soon"}))),
        format!("{head}.{}.AAAA", encoded(&json!([ISSUER]))),
        format!("{head}.{rest}.{rest}"),
        "{\"payload\":\"e30\",\"signatures\":[]}".to_owned(),
        "%00%ff".to_owned(),
        "abcdef.0123456789abcdef".to_owned(),
    ] {
        server.refused(&hostile).await;
    }
    // Far more than fits into a header, by a review.
    let huge = format!("{head}.{}.AAAA", "A".repeat(2_000_000));
    assert_eq!(server.review(&huge, &[]).await["error"], INVALID);
    for odd in [" ", "  x", "\n"] {
        assert_eq!(server.review(odd, &[]).await.get("authenticated"), None, "{odd:?}");
    }
    assert!(server.bearer(&token).await.is_ok());
}
