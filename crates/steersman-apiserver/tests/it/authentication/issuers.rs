//! Tokens of issuers outside the cluster.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, header};
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authentication, Config};
use steersman_store::memory::MemoryStore;

use super::issuer::{Issuer, Shown, answer};
use super::jwt::{Key, encoded, parts};
use super::{ACCOUNTS, ISSUER, Server, named};
use crate::api::{clock, seconds_pass};

const NOT_SIGNED: &str =
    "oidc: verify token: failed to verify signature: failed to verify id token signature";

/// Lets as much time pass as an issuer is left in peace.
async fn pause_is_over() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
}

async fn start() -> (Server, Issuer) {
    let issuer = Issuer::start().await;
    let server = Server::with(issuer.authentication(&json!({}))).await;
    (server, issuer)
}

#[tokio::test]
async fn a_token_of_an_issuer_is_a_user() {
    let (server, issuer) = start().await;
    assert_eq!(issuer.asked(), (0, 0), "nothing is asked before it is needed");
    let user = server.bearer(&issuer.token(server.now())).await.unwrap();
    let expected = json!({
        "username": "oidc:jane", "uid": "u1", "groups": ["oidc:dev", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=t1"]},
    });
    assert_eq!(user, expected);
    let review = server.review(&issuer.token(server.now()), &[]).await;
    assert_eq!((&review["authenticated"], &review["audiences"]), (&json!(true), &json!([ISSUER])));
    let elsewhere = server.review(&issuer.token(server.now()), &["kube"]).await;
    assert_eq!(elsewhere["error"], "invalid bearer token", "its audience is not the server's");
    assert_eq!(issuer.asked(), (1, 1));
}

#[tokio::test]
async fn every_algorithm_that_ring_knows_is_known() {
    let (server, issuer) = start().await;
    let keys = [("r", Key::rsa()), ("e", Key::p256()), ("f", Key::p384())];
    issuer.change(|shown| {
        shown.keys = keys.iter().map(|(id, key)| key.jwk(id)).collect();
        // What is not known does no harm.
        shown.keys.extend([
            json!({"kty": "OKP", "crv": "Ed25519", "kid": "o", "x": "AA"}),
            json!({"kty": "oct", "kid": "s", "k": "AAAA"}),
            json!({"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"}),
            json!(7),
        ]);
    });
    let claims = issuer.claims(server.now());
    for (n, algorithms) in [
        (0, &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"][..]),
        (1, &["ES256"]),
        (2, &["ES384"]),
    ] {
        let (id, key) = &keys[n];
        for algorithm in algorithms {
            let token = key.token(&json!({"alg": algorithm, "kid": id}), &claims);
            assert!(server.bearer(&token).await.is_ok(), "{algorithm}");
            let token = key.token(&json!({"alg": algorithm}), &claims);
            assert!(server.bearer(&token).await.is_ok(), "{algorithm} without the key's name");
        }
    }
}

#[tokio::test]
async fn a_token_that_the_issuer_did_not_sign_is_refused() {
    let (server, issuer) = start().await;
    let other = Key::p256();
    issuer.change(|shown| shown.keys.push(other.jwk("k2")));
    let claims = issuer.claims(server.now());
    let good = issuer.token(server.now());
    let (_, signature) = good.rsplit_once('.').unwrap();
    let header = json!({"alg": "RS256", "kid": "k1"});
    let mut admin = claims.clone();
    admin["sub"] = "admin".into();
    let unsupported = |algorithm: &str| {
        format!(
            "oidc: verify token: oidc: id token signed with unsupported algorithm, expected \
             [\"ES256\" \"ES384\" \"PS256\" \"PS384\" \"PS512\" \"RS256\" \"RS384\" \"RS512\"] \
             got {algorithm:?}"
        )
    };
    let stranger = Key::p256();
    for (what, forged, expected) in [
        (
            "another key",
            stranger.token(&json!({"alg": "ES256", "kid": "k2"}), &claims),
            NOT_SIGNED.to_owned(),
        ),
        (
            "a key that comes along",
            stranger.token(&json!({"alg": "ES256", "jwk": stranger.jwk("k2")}), &claims),
            NOT_SIGNED.to_owned(),
        ),
        (
            "the name of another key",
            issuer.key.token(&json!({"alg": "RS256", "kid": "k2"}), &claims),
            NOT_SIGNED.to_owned(),
        ),
        (
            "an unknown name",
            issuer.key.token(&json!({"alg": "RS256", "kid": "k9"}), &claims),
            NOT_SIGNED.to_owned(),
        ),
        (
            "other claims",
            format!("{}.{}.{signature}", encoded(&header), encoded(&admin)),
            NOT_SIGNED.to_owned(),
        ),
        (
            "no algorithm",
            format!("{}.{}.", encoded(&json!({"alg": "none"})), encoded(&claims)),
            unsupported("none"),
        ),
        (
            "a shared secret",
            issuer.key.token(&json!({"alg": "HS256", "kid": "k1"}), &claims),
            unsupported("HS256"),
        ),
        (
            "another algorithm of the key",
            issuer
                .key
                .token(&json!({"alg": "PS256", "kid": "k1"}), &claims)
                .replace(&encoded(&json!({"alg": "PS256", "kid": "k1"})), &encoded(&header)),
            NOT_SIGNED.to_owned(),
        ),
        (
            "what must be understood",
            issuer.key.token(&json!({"alg": "RS256", "crit": ["x"]}), &claims),
            "oidc: verify token: oidc: malformed jwt".to_owned(),
        ),
    ] {
        assert_eq!(server.refused(&forged).await, expected, "{what}");
    }
    assert!(server.bearer(&good).await.is_ok());
}

#[tokio::test]
async fn a_token_that_states_something_else_is_refused() {
    let (server, issuer) = start().await;
    let now = server.now();
    for (field, value, expected) in [
        (
            "aud",
            json!("other"),
            "oidc: verify token: oidc: expected audience in [\"cli\" \"kube\"] got [\"other\"]",
        ),
        (
            "aud",
            json!([]),
            "oidc: verify token: oidc: expected audience in [\"cli\" \"kube\"] got []",
        ),
        (
            "exp",
            json!(now - 1),
            "oidc: verify token: oidc: token is expired (Token Expiry: 2024-12-31 23:59:59 +0000 UTC)",
        ),
        (
            "exp",
            Value::Null,
            "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:00 +0000 UTC)",
        ),
        (
            "nbf",
            json!(now + 61),
            "oidc: verify token: oidc: current time 2025-01-01 00:00:00 +0000 UTC before the nbf (not before) time: 2025-01-01 00:01:01 +0000 UTC",
        ),
        ("iss", json!("https://evil.test"), "invalid bearer token"),
        ("iss", json!(ISSUER), "invalid signature, no keys found"),
        (
            "sub",
            json!(7),
            "oidc: parse username claims \"sub\": json: cannot unmarshal number into Go value of type string",
        ),
        (
            "groups",
            json!({"a": 1}),
            "oidc: parse groups claim \"groups\": json: cannot unmarshal object into Go value of type string",
        ),
        (
            "hd",
            json!("evil.test"),
            "oidc: required claim hd value does not match. Got = evil.test, want = example.com",
        ),
    ] {
        let mut claims = issuer.claims(now);
        claims[field] = value.clone();
        let token = issuer.key.token(&json!({"alg": "RS256", "kid": "k1"}), &claims);
        assert_eq!(server.refused(&token).await, expected, "{field} {value}");
    }
    for (field, value) in
        [("aud", json!(["x", "cli"])), ("nbf", json!(now + 60)), ("exp", json!(now))]
    {
        let mut claims = issuer.claims(now);
        claims[field] = value;
        let token = issuer.key.token(&json!({"alg": "RS256", "kid": "k1"}), &claims);
        assert!(server.bearer(&token).await.is_ok(), "{field}");
    }
}

#[tokio::test]
async fn an_issuer_cannot_speak_for_the_cluster_nor_the_cluster_for_it() {
    let (server, issuer) = start().await;
    server.create(ACCOUNTS, named("robot")).await;
    let own = server.request_token("robot", json!({})).await;
    let [header, claims] = parts(&own);
    // The issuer signs what a service account would state, under the name of the cluster's key.
    let key = Key::p256();
    issuer.change(|shown| shown.keys = vec![key.jwk(header["kid"].as_str().unwrap())]);
    let why = server.refused(&key.token(&header, &claims)).await;
    assert_eq!(why, "go-jose/go-jose: error in cryptographic primitive");
    // The cluster's key signs what the issuer would state.
    let cluster = Key::of_pkcs8(server.identity.signing_key().unwrap().to_pkcs8());
    let forged = cluster.token(&header, &issuer.claims(server.now()));
    assert_eq!(server.refused(&forged).await, NOT_SIGNED);
}

#[tokio::test]
async fn keys_rotate_and_an_issuer_is_not_asked_more_often_than_it_likes() {
    let (server, issuer) = start().await;
    assert!(server.bearer(&issuer.token(server.now())).await.is_ok());
    let next = Key::p256();
    issuer.change(|shown| shown.keys = vec![next.jwk("k2")]);
    let rotated = next.token(&json!({"alg": "ES256", "kid": "k2"}), &issuer.claims(server.now()));
    for _ in 0..20 {
        assert_eq!(server.refused(&rotated).await, NOT_SIGNED);
    }
    assert_eq!(issuer.asked(), (1, 1), "it is left in peace for a while");
    assert!(server.bearer(&issuer.token(server.now())).await.is_ok(), "what is known stays");
    pause_is_over().await;
    assert!(server.bearer(&rotated).await.is_ok());
    assert_eq!(issuer.asked(), (1, 2));
    assert_eq!(
        server.refused(&issuer.token(server.now())).await,
        NOT_SIGNED,
        "the old key is gone"
    );
}

#[tokio::test]
async fn an_issuer_that_is_down_keeps_nobody_else_out() {
    let (server, issuer) = start().await;
    issuer.change(|shown| shown.down = true);
    let token = issuer.token(server.now());
    let why = server.refused(&token).await;
    assert_eq!(
        why, "oidc: verify token: failed to verify signature: oidc: authenticator not initialized",
        "the request before has asked"
    );
    let admin = super::Caller { certificate: Some(&server.pki.admin), ..Default::default() };
    assert_eq!(server.version(admin).await, 200);
    issuer.change(|shown| shown.down = false);
    pause_is_over().await;
    assert!(server.bearer(&token).await.is_ok());
    // Once the keys are known, it may be gone.
    issuer.change(|shown| shown.down = true);
    pause_is_over().await;
    assert!(server.bearer(&token).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_lies_is_not_believed() {
    for (what, lie) in [
        (
            "another issuer",
            (|shown| shown.issuer = "https://other.test".to_owned()) as fn(&mut Shown),
        ),
        ("no issuer", |shown| shown.issuer = String::new()),
        ("no place for keys", |shown| shown.keys_url = String::new()),
        ("keys without TLS", |shown| shown.keys_url = shown.keys_url.replace("https", "http")),
        ("keys that are not there", |shown| {
            shown.keys_url = shown.keys_url.replace("keys", "none");
        }),
        ("no keys", |shown| shown.keys = Vec::new()),
    ] {
        let (server, issuer) = start().await;
        issuer.change(lie);
        let why = server.refused(&issuer.token(server.now())).await;
        assert!(why.starts_with("oidc: verify token: failed to verify signature"), "{what}: {why}");
    }
    // One with the right name whose certificate another authority has signed.
    let issuer = Issuer::start().await;
    let other = steersman_apiserver::pki::Pki::new(&[]).unwrap();
    let server =
        Server::with(issuer.authentication(&json!({"certificateAuthority": other.ca}))).await;
    server.refused(&issuer.token(server.now())).await;
    assert_eq!(issuer.asked(), (0, 0));
}

#[tokio::test]
async fn the_discovery_document_may_be_elsewhere() {
    let issuer = Issuer::start().await;
    let elsewhere = format!("{}/elsewhere", issuer.url);
    let named = "https://issuer.example.com/realm";
    issuer.change(|shown| shown.issuer = named.to_owned());
    let more = json!({"url": named, "discoveryURL": elsewhere});
    let server = Server::with(issuer.authentication(&more)).await;
    let mut claims = issuer.claims(server.now());
    claims["iss"] = named.into();
    let token = issuer.key.token(&json!({"alg": "RS256", "kid": "k1"}), &claims);
    assert_eq!(server.bearer(&token).await.unwrap()["username"], "oidc:jane");
}

#[tokio::test]
async fn keys_can_come_from_a_file() {
    let key = Key::p256();
    let folder = std::env::temp_dir();
    let file = format!("steersman-{}-jwks.json", std::process::id());
    fs::write(folder.join(&file), json!({"keys": [key.jwk("k1")]}).to_string()).unwrap();
    let issuer = Issuer::start().await;
    let mut authentication = Authentication::default();
    let text = issuer.configuration(&json!({"jwksFile": file})).to_string();
    authentication.configure(&text, &folder).unwrap();
    fs::remove_file(folder.join(&file)).unwrap();
    let server = Server::with(authentication).await;
    let token = key.token(&json!({"alg": "ES256", "kid": "k1"}), &issuer.claims(server.now()));
    assert!(server.bearer(&token).await.is_ok());
    assert_eq!(server.refused(&issuer.token(server.now())).await, NOT_SIGNED);
    assert_eq!(issuer.asked(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_in_this_process_works_on_virtual_time() {
    let url = "https://issuer.test";
    let key = Key::p256();
    let shown = Arc::new(Mutex::new(Shown {
        issuer: url.to_owned(),
        keys_url: format!("{url}/keys"),
        keys: vec![key.jwk("k1")],
        ..Shown::default()
    }));
    let mut authentication = Authentication::default();
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1beta1, kind: AuthenticationConfiguration, jwt: \
         [{{issuer: {{url: '{url}', audiences: [kube]}}, claimMappings: {{username: {{claim: sub, \
         prefix: ''}}}}}}]}}"
    );
    authentication.configure(&text, Path::new("")).unwrap();
    let config = Config { authentication, ..Config::new(Arc::new(MemoryStore::new()), clock()) };
    let server = ApiServer::start(config).await.unwrap();
    let answering = Arc::clone(&shown);
    let handler = move |request: http::Request<bytes::Bytes>| {
        let answer = answer(&mut answering.lock().unwrap(), request.uri().path());
        Box::pin(std::future::ready(answer)) as _
    };
    server.serve_webhooks(url, Arc::new(handler));
    let end = clock()().as_second() + 600;
    let claims = json!({"iss": url, "aud": "kube", "sub": "jane", "exp": end});
    let token = key.token(&json!({"alg": "ES256", "kid": "k1"}), &claims);
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    assert_eq!(server.authenticate(&headers, None).await.unwrap().name, "jane");
    seconds_pass(590).await;
    assert!(server.authenticate(&headers, None).await.is_ok());
    seconds_pass(20).await;
    assert_eq!(server.authenticate(&headers, None).await.unwrap_err().code, 401);
}

/// An issuer whose claims are read by expressions.
async fn expressive() -> (Server, Issuer) {
    let issuer = Issuer::start().await;
    let mut configuration = issuer.configuration(&json!({}));
    let saying = json!({
        "claimMappings": {
            "username": {"expression": "'sso:' + claims.sub"},
            "groups": {"expression": "claims.roles.split(',')"},
            "uid": {"expression": "string(claims.example__dot__org__slash__id)"},
            "extra": [
                {"key": "example.org/floor", "valueExpression": "claims.?floor.orValue('')"},
                {"key": "example.org/teams", "valueExpression": "claims.teams.map(t, t.name)"},
            ],
        },
        "claimValidationRules": [
            {"expression": "claims.exp - claims.iat <= 86400.0", "message": "lives too long"},
        ],
        "userValidationRules": [
            {"expression": "!user.username.startsWith('sso:system:')", "message": "not so high"},
            {"expression": "user.extra.example__dot__org__slash__teams.size() < 3", "message": "many"},
        ],
    });
    for (field, value) in saying.as_object().unwrap() {
        configuration["jwt"][0][field] = value.clone();
    }
    let mut authentication = Authentication::default();
    authentication.configure(&configuration.to_string(), Path::new("")).unwrap();
    (Server::with(authentication).await, issuer)
}

/// A token that states this beside the usual.
fn stating(issuer: &Issuer, server: &Server, claims: &Value) -> String {
    let now = server.now();
    let mut all = json!({
        "sub": "jane", "roles": "dev,ops", "example.org/id": "u7", "iat": now, "exp": now + 3600,
        "teams": [{"name": "red"}, {"name": "blue"}],
    });
    for (name, value) in claims.as_object().unwrap() {
        all[name] = value.clone();
    }
    issuer.token_stating(server.now(), &all)
}

#[tokio::test]
async fn expressions_make_a_user_of_claims() {
    let (server, issuer) = expressive().await;
    let user = server.bearer(&stating(&issuer, &server, &json!({}))).await.unwrap();
    let extra = &user["extra"];
    assert_eq!((&user["username"], &user["uid"]), (&json!("sso:jane"), &json!("u7")));
    assert_eq!(user["groups"], json!(["dev", "ops", "system:authenticated"]));
    assert_eq!(extra["example.org/teams"], json!(["red", "blue"]));
    assert_eq!(extra.get("example.org/floor"), None, "what is empty does not count");
    let user = server.bearer(&stating(&issuer, &server, &json!({"floor": "3"}))).await.unwrap();
    assert_eq!(user["extra"]["example.org/floor"], json!(["3"]));
}

#[tokio::test]
async fn claims_and_users_that_break_a_rule_are_refused_with_its_message() {
    let (server, issuer) = expressive().await;
    let now = server.now();
    for (claims, expected) in [
        (
            json!({"exp": now + 86_401}),
            "oidc: error evaluating claim validation expression: validation expression 'claims.exp \
             - claims.iat <= 86400.0' failed: lives too long",
        ),
        (
            json!({"sub": "system:admin"}),
            "oidc: error evaluating user info validation rule: validation expression \
             '!user.username.startsWith('sso:system:')' failed: not so high",
        ),
        (json!({"teams": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}), "failed: many"),
        (json!({"roles": 7}), "oidc: error evaluating group claim expression: expression 'claims."),
        (
            json!({"teams": [{"name": 1}]}),
            "claims.teams.map(t, t.name): expression must return a string or a list of strings",
        ),
    ] {
        let why = server.refused(&stating(&issuer, &server, &claims)).await;
        assert!(why.contains(expected), "{claims}: {why}");
    }
}
