//! What Kubernetes' own signers sign, and what they say to the rest.

use std::collections::BTreeSet;

use super::Subject;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of certificates by which kubelets talk to the API server.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const UNKNOWN: &str = "kubernetes.io/legacy-unknown";

/// All of them.
pub const SIGNERS: [&str; 4] = [CLIENT, KUBELET_CLIENT, KUBELET_SERVING, UNKNOWN];

/// Says why a signer does not sign this.
pub fn check(signer: &str, subject: &Subject, usages: &[String]) -> Result<(), String> {
    match signer {
        CLIENT => check_client(usages),
        KUBELET_CLIENT => check_kubelet_client(subject, usages),
        KUBELET_SERVING => check_kubelet_serving(subject, usages),
        _ => Ok(()),
    }
}

fn check_client(usages: &[String]) -> Result<(), String> {
    let allowed = ["digital signature", "key encipherment", "client auth"];
    if let Some(usage) = usages.iter().find(|usage| !allowed.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {usage}"));
    }
    if usages.iter().any(|usage| usage == "client auth") {
        return Ok(());
    }
    Err("missing required usage for client certificate: client auth".to_owned())
}

/// A certificate to ask with has no other names.
fn check_kubelet_client(subject: &Subject, usages: &[String]) -> Result<(), String> {
    check_organization(subject)?;
    refuse(&[
        (subject.dns, "DNS subjectAltNames are not allowed"),
        (subject.email, "Email subjectAltNames are not allowed"),
        (subject.ip, "IP subjectAltNames are not allowed"),
        (subject.uri, "URI subjectAltNames are not allowed"),
    ])?;
    check_common_name(subject)?;
    check_usages(usages, "client auth")
}

/// A certificate to serve with has names or addresses.
fn check_kubelet_serving(subject: &Subject, usages: &[String]) -> Result<(), String> {
    check_organization(subject)?;
    refuse(&[
        (!subject.dns && !subject.ip, "DNS or IP subjectAltName is required"),
        (subject.email, "Email subjectAltNames are not allowed"),
        (subject.uri, "URI subjectAltNames are not allowed"),
    ])?;
    check_usages(usages, "server auth")?;
    check_common_name(subject)
}

fn refuse(wrong: &[(bool, &str)]) -> Result<(), String> {
    let first = wrong.iter().find(|(is_wrong, _)| *is_wrong);
    first.map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
}

fn check_organization(subject: &Subject) -> Result<(), String> {
    let is_wrong = subject.organizations != ["system:nodes"];
    refuse(&[(is_wrong, "subject organization is not system:nodes")])
}

fn check_common_name(subject: &Subject) -> Result<(), String> {
    let is_wrong = !subject.common_name.starts_with("system:node:");
    refuse(&[(is_wrong, "subject common name does not begin with system:node:")])
}

/// Keys that are not RSA cannot encipher.
fn check_usages(usages: &[String], auth: &str) -> Result<(), String> {
    let usages: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let required = BTreeSet::from([auth, "digital signature", "key encipherment"]);
    let without_rsa = BTreeSet::from([auth, "digital signature"]);
    if usages == required || usages == without_rsa {
        return Ok(());
    }
    let required: Vec<&str> = required.into_iter().collect();
    Err(format!("usages did not match [{}]", required.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_faults_the_one_is_told_that_kubernetes_tells() {
        let usages =
            |usages: &[&str]| usages.iter().map(|usage| (*usage).into()).collect::<Vec<String>>();
        let odd =
            Subject { organizations: vec!["system:nodes".into()], ip: true, ..Subject::default() };
        let told = |signer: &str, asked: &[&str]| check(signer, &odd, &usages(asked)).unwrap_err();
        assert_eq!(
            told(CLIENT, &["server auth", "cert sign"]),
            "invalid usage for client certificate: server auth"
        );
        assert_eq!(told(KUBELET_CLIENT, &["any"]), "IP subjectAltNames are not allowed");
        assert_eq!(
            told(KUBELET_SERVING, &["any"]),
            "usages did not match [digital signature key encipherment server auth]"
        );
        assert_eq!(
            told(KUBELET_SERVING, &["server auth", "digital signature"]),
            "subject common name does not begin with system:node:"
        );
        assert_eq!(check(UNKNOWN, &odd, &usages(&["any"])), Ok(()));
    }
}
