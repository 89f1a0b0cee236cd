//! Headers in which a proxy names users, and all who are none.

use serde_json::json;
use steersman_apiserver::Authentication;
use steersman_apiserver::authentication::{FrontProxy, FrontProxyHeaders};
use steersman_apiserver::identity::Identity;
use steersman_apiserver::pki::{ClientAuthorities, Pki};

use super::{Caller, Server};

const HEADERS: &[(&str, &str)] = &[
    ("x-remote-user", "jane"),
    ("x-remote-uid", "42"),
    ("x-remote-group", "dev"),
    ("X-Remote-Group", "system:masters"),
    ("X-Remote-Extra-Acme.com%2Fproject", "p"),
];

/// A proxy's authority, and how a server takes its word.
fn proxy(allowed_names: &[&str]) -> (Pki, Authentication) {
    let pki = Pki::of(&Identity::new().unwrap(), &[]).unwrap();
    let front_proxy = FrontProxy {
        authorities: ClientAuthorities::from_pem(pki.ca.as_bytes()).unwrap(),
        allowed_names: allowed_names.iter().map(|&name| name.to_owned()).collect(),
        headers: FrontProxyHeaders::default(),
    };
    (pki, Authentication { front_proxy: Some(front_proxy), ..Authentication::default() })
}

#[tokio::test]
async fn nobody_becomes_somebody_by_headers_alone() {
    let (_, with_proxy) = proxy(&[]);
    for server in [Server::start().await, Server::with(with_proxy).await] {
        let own = server.pki.client("joe", &["ops"]).unwrap();
        let joe =
            server.whoami(Caller { certificate: Some(&own), headers: HEADERS }).await.unwrap();
        assert_eq!(joe["username"], "joe");
        assert_eq!(joe["groups"], json!(["ops", "system:authenticated"]));
        server
            .api
            .server
            .tokens()
            .insert("s3cret", steersman_apiserver::user::User::known("tok", &[]));
        let mut headers = HEADERS.to_vec();
        headers.push(("authorization", "Bearer s3cret"));
        let token = server.whoami(Caller { certificate: None, headers: &headers }).await.unwrap();
        assert_eq!(token["username"], "tok");
        // Without anything else it is nobody, who may see the version and not who he is.
        let nobody = Caller { certificate: None, headers: HEADERS };
        assert_eq!(server.version(nobody).await, 200);
        let refused = server.whoami(nobody).await.unwrap_err();
        assert!([401, 403].contains(&refused), "{refused}");
    }
}

#[tokio::test]
async fn the_word_of_the_proxy_is_taken() {
    let (pki, authentication) = proxy(&["front-proxy-client"]);
    let server = Server::with(authentication).await;
    let proxy = pki.client("front-proxy-client", &[]).unwrap();
    let caller = Caller { certificate: Some(&proxy), headers: HEADERS };
    let user = server.whoami(caller).await.unwrap();
    let expected = json!({
        "username": "jane", "uid": "42", "groups": ["dev", "system:masters", "system:authenticated"],
        "extra": {"acme.com/project": ["p"]},
    });
    assert_eq!(user, expected);
    // Who speaks for nobody has a certificate that no client may have.
    let silent = Caller { certificate: Some(&proxy), headers: &[] };
    assert_eq!(server.version(silent).await, 401);
    let other = pki.client("somebody", &[]).unwrap();
    let caller = Caller { certificate: Some(&other), headers: HEADERS };
    assert_eq!(server.whoami(caller).await, Err(401));
    let stranger = Pki::new(&[]).unwrap().client("front-proxy-client", &[]).unwrap();
    let caller = Caller { certificate: Some(&stranger), headers: HEADERS };
    assert_eq!(server.whoami(caller).await, Err(401));
}

#[tokio::test]
async fn a_client_of_the_cluster_is_no_proxy_even_if_their_authority_is_the_same() {
    let identity = Identity::new().unwrap();
    let authorities = ClientAuthorities::from_pem(identity.ca().as_bytes()).unwrap();
    for (names, expected) in [(&[][..], "joe"), (&["front"], "joe"), (&["joe"], "jane")] {
        let allowed_names = names.iter().map(|&name: &&str| name.to_owned()).collect();
        let headers = FrontProxyHeaders::default();
        let front_proxy =
            Some(FrontProxy { authorities: authorities.clone(), allowed_names, headers });
        let authentication = Authentication { front_proxy, ..Authentication::default() };
        let server = Server::of(identity.clone(), authentication).await;
        let joe = server.pki.client("joe", &[]).unwrap();
        let caller = Caller { certificate: Some(&joe), headers: HEADERS };
        assert_eq!(server.whoami(caller).await.unwrap()["username"], expected, "{names:?}");
    }
}
