//! Client certificates: of this cluster, of another, for somebody else, at another time.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use jiff::Timestamp;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;
use steersman_apiserver::pki::{CertificateRequest, Certified, Pki, SigningError, sign_request};

use super::{Caller, PUBLIC, SELF, Server, exchange};

const YEAR: Duration = Duration::from_hours(365 * 24);

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

fn with(certificate: &Certified) -> Caller<'_> {
    Caller { certificate: Some(certificate), ..Caller::default() }
}

/// What is asked of a signer.
struct Asked<'a> {
    name: &'a str,
    group: &'a str,
    signer: &'a str,
    usages: &'a [&'a str],
    seconds: Option<i32>,
    now: i64,
}

impl Asked<'_> {
    fn of(server: &Server) -> Self {
        let usages = &["digital signature", "client auth"];
        Asked {
            name: "jane",
            group: "dev",
            signer: CLIENT,
            usages,
            seconds: None,
            now: server.now(),
        }
    }

    fn sign(&self, server: &Server) -> Result<Certified, SigningError> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["jane.test".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in
            [(DnType::CommonName, self.name), (DnType::OrganizationName, self.group)]
        {
            if !text.is_empty() {
                params.distinguished_name.push(kind, text);
            }
        }
        // The uid of a user, which no signer certifies.
        let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        params.distinguished_name.push(uid, "another");
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let usages: Vec<String> = self.usages.iter().map(|&usage| usage.to_owned()).collect();
        let asked = CertificateRequest {
            request: request.as_bytes(),
            signer_name: self.signer,
            usages: &usages,
            expiration_seconds: self.seconds,
            lifetime_max: YEAR,
        };
        let now = Timestamp::from_second(self.now).unwrap();
        let certificate = sign_request(&server.identity, asked, now)?;
        Ok(Certified { certificate, key: key.serialize_pem() })
    }
}

#[tokio::test]
async fn a_certificate_names_its_user_and_all_groups() {
    let server = Server::start().await;
    let jane = server.pki.client("jane", &["dev", "ops", "system:viewers"]).unwrap();
    let user = server.whoami(with(&jane)).await.unwrap();
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], json!(["dev", "ops", "system:viewers", "system:authenticated"]));
    let print = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    let print = print.strip_prefix("X509SHA256=").unwrap();
    assert!(print.len() == 64 && print.bytes().all(|byte| byte.is_ascii_hexdigit()), "{print}");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_unless_something_else_is_good() {
    let server = Server::start().await;
    let elsewhere = Pki::new(&[]).unwrap();
    for stranger in
        [&elsewhere.admin, &elsewhere.client("kubernetes-admin", &["system:masters"]).unwrap()]
    {
        assert_eq!(server.version(with(stranger)).await, 401);
        assert_eq!(server.whoami(with(stranger)).await, Err(401));
    }
    server.api.server.tokens().insert("s3cret", steersman_apiserver::user::User::known("joe", &[]));
    let headers = &[("authorization", "Bearer s3cret")][..];
    let both = Caller { certificate: Some(&elsewhere.admin), headers };
    assert_eq!(server.whoami(both).await.unwrap()["username"], "joe");
}

#[tokio::test]
async fn a_signed_request_makes_a_user_for_its_time() {
    let server = Server::start().await;
    let jane = Asked { seconds: Some(3600), ..Asked::of(&server) }.sign(&server).unwrap();
    let user = server.whoami(with(&jane)).await.unwrap();
    assert_eq!((&user["username"], user.get("uid")), (&json!("jane"), None));
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));

    // A connection may last longer than the certificate that it was made with.
    let mut connection = server.connect(Some(&jane)).await;
    let ask = || with(&jane).asks(Request::post(SELF)).body(Full::new("{}".into())).unwrap();
    assert_eq!(exchange(&mut connection, ask()).await.0, 201);
    server.seconds_pass(3600);
    assert_eq!(exchange(&mut connection, ask()).await.0, 201);
    server.seconds_pass(1);
    assert_eq!(exchange(&mut connection, ask()).await.0, 401);
    assert_eq!(server.version(with(&jane)).await, 401);

    let later = Asked { now: server.now() + 3600, ..Asked::of(&server) }.sign(&server).unwrap();
    assert_eq!(server.version(with(&later)).await, 401);
    server.seconds_pass(3600 - 300);
    assert_eq!(server.version(with(&later)).await, 200, "it begins five minutes early");
}

#[tokio::test]
async fn a_certificate_that_names_nobody_or_is_for_servers_makes_no_user() {
    let server = Server::start().await;
    let nobody = Asked { name: "", ..Asked::of(&server) }.sign(&server).unwrap();
    let ask = with(&nobody).asks(Request::get(PUBLIC)).body(Full::default()).unwrap();
    assert_eq!(server.send(with(&nobody), ask).await.0, 200, "as anonymous");
    let unknown = "kubernetes.io/legacy-unknown";
    let usages = &["digital signature", "server auth"];
    let serving = Asked { signer: unknown, usages, ..Asked::of(&server) }.sign(&server).unwrap();
    assert_eq!(server.version(with(&serving)).await, 401);
}

/// A signer, the name and the group of who asks, for what, and why it is refused.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], Option<&'a str>);

#[tokio::test]
async fn signers_sign_only_what_is_theirs() {
    let server = Server::start().await;
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    let serving = "kubernetes.io/kubelet-serving";
    let client = ["digital signature", "client auth"];
    let server_auth = ["digital signature", "server auth"];
    let cases: [Case<'_>; 10] = [
        (CLIENT, "jane", "dev", &["client auth"], None),
        (
            CLIENT,
            "jane",
            "dev",
            &["client auth", "server auth"],
            Some("invalid usage for client certificate: server auth"),
        ),
        (
            CLIENT,
            "jane",
            "dev",
            &["digital signature"],
            Some("missing required usage for client certificate: client auth"),
        ),
        (kubelet, "jane", "dev", &client, Some("subject organization is not system:nodes")),
        (
            kubelet,
            "system:node:n1",
            "system:nodes",
            &client,
            Some("DNS subjectAltNames are not allowed"),
        ),
        (
            serving,
            "n1",
            "system:nodes",
            &server_auth,
            Some("subject common name does not begin with system:node:"),
        ),
        (
            serving,
            "system:node:n1",
            "system:nodes",
            &client,
            Some("usages did not match [digital signature key encipherment server auth]"),
        ),
        (serving, "system:node:n1", "system:nodes", &server_auth, None),
        ("kubernetes.io/legacy-unknown", "x", "", &["any"], None),
        ("example.com/own", "jane", "dev", &client, Some("not a signer of this cluster")),
    ];
    for (signer, name, group, usages, expected) in cases {
        let signed = Asked { name, group, signer, usages, ..Asked::of(&server) }.sign(&server);
        let why = signed.err().map(|error| error.to_string());
        assert_eq!(why.as_deref(), expected, "{signer} {name} {usages:?}");
    }
    let asked = CertificateRequest {
        request: b"nonsense",
        signer_name: CLIENT,
        usages: &["client auth".to_owned()],
        expiration_seconds: None,
        lifetime_max: YEAR,
    };
    let error = sign_request(&server.identity, asked, Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(error.to_string().contains("PEM block type must be CERTIFICATE REQUEST"), "{error}");
}

#[tokio::test]
async fn a_certificate_lives_as_long_as_was_asked_within_bounds() {
    let server = Server::start().await;
    let year = 365 * 24 * 3600;
    for (seconds, lifetime) in [
        (None, year - 300),
        (Some(1), 600),
        (Some(600), 600),
        (Some(3600), 3600),
        (Some(8 * 3600), 8 * 3600 - 300),
        (Some(2 * year), year - 300),
    ] {
        let start = server.now();
        let jane = Asked { seconds, ..Asked::of(&server) }.sign(&server).unwrap();
        server.seconds_pass(i64::from(lifetime));
        assert!(server.whoami(with(&jane)).await.is_ok(), "{seconds:?}");
        server.seconds_pass(1);
        assert_eq!(server.version(with(&jane)).await, 401, "{seconds:?}");
        server.seconds_pass(start - server.now());
    }
}
