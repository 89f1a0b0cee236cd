//! Users by tokens of a file.

use std::fs;

use serde_json::json;
use steersman_apiserver::Authentication;

use super::{Caller, ISSUER, Server};

fn read(name: &str, text: &str) -> Result<Authentication, String> {
    let path = std::env::temp_dir().join(format!("steersman-{}-{name}.csv", std::process::id()));
    fs::write(&path, text).unwrap();
    let authentication = Authentication::default();
    let read = authentication.read_tokens(&path);
    fs::remove_file(&path).unwrap();
    read.map(|()| authentication).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_token_of_the_file_is_its_user() {
    let text = "s3cret,jane,42,\"dev,ops\"\nplain,joe,7\nanon,x,8,system:unauthenticated\n";
    let server = Server::with(read("good", text).unwrap()).await;
    let jane = server.bearer("s3cret").await.unwrap();
    let expected = json!({
        "username": "jane", "uid": "42", "groups": ["dev", "ops", "system:authenticated"],
    });
    assert_eq!(jane, expected);
    let joe = server.bearer("plain").await.unwrap();
    assert_eq!(joe["groups"], json!(["system:authenticated"]));
    for guess in ["s3cre", "s3cret2", "S3CRET", "jane"] {
        assert_eq!(server.refused(guess).await, "invalid bearer token");
    }
    let review = server.review("s3cret", &[]).await;
    assert_eq!((&review["authenticated"], &review["audiences"]), (&json!(true), &json!([ISSUER])));
    // Such a token is for this server and for nobody else.
    let elsewhere = server.review("s3cret", &["vault"]).await;
    assert_eq!(elsewhere, json!({"user": {}, "error": "invalid bearer token"}));
    let both = server.review("s3cret", &["vault", ISSUER]).await;
    assert_eq!(both["audiences"], json!([ISSUER]));
}

#[tokio::test]
async fn a_certificate_counts_before_a_token() {
    let server = Server::with(read("before", "s3cret,jane,42\n").unwrap()).await;
    for token in ["Bearer s3cret", "Bearer wrong"] {
        let caller =
            Caller { certificate: Some(&server.pki.admin), headers: &[("authorization", token)] };
        assert_eq!(server.whoami(caller).await.unwrap()["username"], "kubernetes-admin");
    }
}

#[test]
fn a_file_that_makes_no_sense_is_told() {
    let error = read("columns", "token,jane\n").unwrap_err();
    assert!(
        error.contains("must have at least 3 columns (token, user name, user uid), found 2"),
        "{error}"
    );
    let nowhere = Authentication::default().read_tokens(std::path::Path::new("nowhere.csv"));
    assert!(nowhere.unwrap_err().to_string().starts_with("cannot read the token file nowhere.csv"));
}
