//! Who one is and what one may do.

use std::process::Command;

use crate::program::Program;

#[test]
fn whoami_and_can_i_answer_for_oneself() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("auth whoami", &["Username", "Groups"]);
    program.says("auth whoami -o yaml", &["kind: SelfSubjectReview", "system:authenticated"]);
    program.says("auth can-i create deployments", &["yes"]);
    program.says("auth can-i '*' '*' --all-namespaces", &["yes"]);
    program.says("auth can-i get /healthz", &["yes"]);
    program.says("auth can-i --list", &["Resources", "Verbs"]);
}

#[test]
fn access_reviews_and_certificates_pass_through_kubectl() {
    let program = Program::up(&["--nodes", "0"]);
    program.says_to(
        "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, \
         spec: {resourceAttributes: {verb: get, resource: pods}}}",
        "create -f - -o jsonpath='{.status.allowed}'",
        &["true"],
    );
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, \
                metadata: {name: reader}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}";
    program.says_to(role, "auth reconcile -f -", &["reconciled"]);
    program.says("get clusterrole reader -o yaml", &["- pods"]);
}

#[test]
fn an_approved_certificate_makes_a_user() {
    let program = Program::up(&["--nodes", "0"]);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "dev");
    params.distinguished_name.push(rcgen::DnType::CommonName, "jane");
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let text = program.file("request", &request);
    let encoded = Command::new("base64").args(["-w0", &text]).output().unwrap();
    let manifest = format!(
        "{{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, \
         metadata: {{name: jane}}, spec: {{request: {}, \
         signerName: kubernetes.io/kube-apiserver-client, expirationSeconds: 86400, \
         usages: [client auth]}}}}",
        String::from_utf8(encoded.stdout).unwrap()
    );
    program.says_to(&manifest, "create -f -", &["created"]);
    program.says("certificate approve jane", &["approved"]);
    program.says("wait csr/jane --for=jsonpath='{.status.certificate}' --timeout=60s", &["met"]);
    let encoded = program.says("get csr jane -o jsonpath='{.status.certificate}'", &[]);
    let file = program.file("encoded", &encoded);
    let decoded = Command::new("base64").args(["-d", &file]).output().unwrap();
    let certificate = program.file("jane.crt", &String::from_utf8(decoded.stdout).unwrap());
    let key = program.file("jane.key", &key.serialize_pem());
    let bearing = program.bearing("x");
    let server = bearing.split(" --token").next().unwrap();
    program.says(
        &format!("{server} --client-certificate={certificate} --client-key={key} auth whoami"),
        &["jane", "dev", "system:authenticated"],
    );
}

#[test]
fn tokens_of_a_file_and_bootstrap_tokens_make_users() {
    let directory = crate::program::directory();
    let file = directory.join("tokens.csv");
    std::fs::write(&file, "s3cret,jane,42,\"dev,ops\"\n").unwrap();
    let file = file.display().to_string();
    let flags = ["--nodes", "0", "--token-auth-file", &file, "--enable-bootstrap-token-auth"];
    let program = Program::up(&flags);
    let jane = program.bearing("s3cret");
    program.says(&format!("{jane} auth whoami"), &["jane", "42", "dev", "ops"]);
    let secret = "{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, \
                  metadata: {name: bootstrap-token-abcdef, namespace: kube-system}, stringData: \
                  {token-id: abcdef, token-secret: 0123456789abcdef, \
                  usage-bootstrap-authentication: 'true'}}";
    program.says_to(secret, "create -f -", &["created"]);
    let node = program.bearing("abcdef.0123456789abcdef");
    program
        .says(&format!("{node} auth whoami"), &["system:bootstrap:abcdef", "system:bootstrappers"]);
    let wrong = program.bearing("wrong");
    program.refuses(&format!("{wrong} auth whoami"), &["Unauthorized"]);
}
