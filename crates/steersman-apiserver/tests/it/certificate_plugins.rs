//! The plug-ins about certificates: who approves and signs, and what nobody gets.

use serde_json::{Value, json};

use crate::api::Api;
use crate::authorization::{bind, role, rule};
use crate::node_restriction::signing_request;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const GROUP: &str = "certificates.k8s.io";

/// Two requests, and a user who may write all of them as far as their paths are concerned.
async fn start(signers: &[&str]) -> (Api, Api) {
    let api = Api::start().await;
    for (name, signer) in [("one", "example.com/one"), ("two", "example.org/two")] {
        api.post(REQUESTS, &signing_request(name, signer, "bob", "dev")).await.ok();
    }
    let paths = ["certificatesigningrequests/approval", "certificatesigningrequests/status"];
    let mut rules = vec![rule(&["update", "patch", "get"], &[GROUP], &paths)];
    for verb in ["approve", "sign"] {
        let mut of_signers = rule(&[verb], &[GROUP], &["signers"]);
        of_signers["resourceNames"] = json!(signers);
        rules.push(of_signers);
    }
    role(&api, "", "signer", &rules).await;
    bind(&api, "", "ClusterRole", "signer", "jane").await;
    let jane = api.acting_as("jane", &[]);
    (api, jane)
}

fn condition(kind: &str) -> Value {
    let condition = json!({"type": kind, "status": "True", "reason": "r", "message": "m"});
    json!({"status": {"conditions": [condition]}})
}

fn refusal(name: &str, verb: &str, signer: &str) -> String {
    format!(
        "certificatesigningrequests.certificates.k8s.io {name:?} is forbidden: user not permitted \
         to {verb} requests with signerName {signer:?}"
    )
}

#[tokio::test(start_paused = true)]
async fn who_approves_must_be_allowed_to_for_the_signer_or_its_domain() {
    for signers in [["example.com/one"], ["example.com/*"]] {
        let (_api, jane) = start(&signers).await;
        jane.merge(&format!("{REQUESTS}/one/approval"), &condition("Approved")).await.ok();
        let refused = jane.merge(&format!("{REQUESTS}/two/approval"), &condition("Approved")).await;
        assert_eq!(refused.refused(403)["message"], refusal("two", "approve", "example.org/two"));
    }
}

#[tokio::test(start_paused = true)]
async fn who_signs_must_be_allowed_to_for_the_signer() {
    let (_api, jane) = start(&["example.com/one"]).await;
    jane.merge(&format!("{REQUESTS}/one/status"), &condition("Failed")).await.ok();
    let path = format!("{REQUESTS}/two/status");
    let refused = jane.merge(&path, &condition("Failed")).await.refused(403);
    assert_eq!(refused["message"], refusal("two", "sign", "example.org/two"));
    let certificate = json!({"status": {"certificate": "eA=="}});
    // What is no certificate is told before who may sign one.
    jane.merge(&path, &certificate).await.refused(422);
    // Who changes neither does not sign.
    jane.merge(&path, &json!({"metadata": {"annotations": {"a": "b"}}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_for_a_client_certificate_of_the_masters() {
    let api = Api::start().await;
    let client = "kubernetes.io/kube-apiserver-client";
    let refused = api.post(REQUESTS, &signing_request("r", client, "bob", "system:masters")).await;
    assert_eq!(
        refused.refused(403)["message"],
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    api.post(REQUESTS, &signing_request("r", client, "bob", "dev")).await.ok();
    let elsewhere = signing_request("e", "example.com/s", "bob", "system:masters");
    api.post(REQUESTS, &elsewhere).await.ok();
}
