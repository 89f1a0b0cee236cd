//! Volumes of files that the cluster itself provides: configuration, secrets, tokens, the pod.

use std::collections::HashSet;

use super::env;
use super::paths::descending_unreserved;
use crate::rules::at::{At, Errors};
use crate::rules::label_selector::label_selector;

/// What of a pod a file can show.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

const KEY_TYPES: &[&str] =
    &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// A signer may be asked for a certificate of up to 91 days, those of Kubernetes for one.
const CERTIFICATE_SECONDS_MAX: i64 = 91 * 86_400;
const KUBERNETES_CERTIFICATE_SECONDS_MAX: i64 = 86_400;

/// The mistakes in the files of a secret or a config map.
pub(super) fn files(at: &At<'_, '_>, errors: &mut Errors) {
    mode(&at.at("defaultMode"), errors);
    for item in at.each("items") {
        key_to_path(&item, errors);
    }
}

fn mode(at: &At<'_, '_>, errors: &mut Errors) {
    if at.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(at.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

fn key_to_path(item: &At<'_, '_>, errors: &mut Errors) {
    item.require_all(&["key", "path"], errors);
    descending_unreserved(&item.at("path"), errors);
    mode(&item.at("mode"), errors);
}

/// The mistakes in the files of a volume that shows the pod to itself.
pub(super) fn downward(at: &At<'_, '_>, errors: &mut Errors) {
    mode(&at.at("defaultMode"), errors);
    for item in at.each("items") {
        downward_file(&item, at, errors);
    }
}

/// Complaints name the volume, not the file.
fn downward_file(file: &At<'_, '_>, volume: &At<'_, '_>, errors: &mut Errors) {
    let of = |key| volume.named(key).with(&file.value[key]);
    if file.at("path").text().is_empty() {
        errors.push(of("path").required(""));
    }
    descending_unreserved(&of("path"), errors);
    let field = of("fieldRef");
    let resource = of("resourceFieldRef");
    match (field.is_set(), resource.is_set()) {
        (true, both) => {
            env::field_ref(&field, FIELDS, errors);
            if both {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(volume.invalid_value("resource", why));
            }
        }
        (false, true) => env::resource_ref(&resource, true, errors),
        (false, false) => {
            errors.push(volume.required("one of fieldRef and resourceFieldRef is required"));
        }
    }
    mode(&of("mode"), errors);
}

/// The mistakes in a volume that brings several sources together.
pub(super) fn validate(at: &At<'_, '_>, errors: &mut Errors) {
    mode(&at.at("defaultMode"), errors);
    let mut seen = HashSet::new();
    // No two sources may write the same file.
    let mut claim = |path: &str, shown: &str, errors: &mut Errors| {
        if !path.is_empty() && !seen.insert(path.to_owned()) {
            errors.push(at.invalid_value(shown, "conflicting duplicate paths"));
        }
    };
    let list = at.at("sources");
    for source in list.items() {
        for key in ["secret", "configMap"] {
            let files = source.at(key);
            if files.is_absent() {
                continue;
            }
            files.require_all(&["name"], errors);
            for item in files.each("items") {
                key_to_path(&item, errors);
                claim(item.at("path").text(), files.at("name").text(), errors);
            }
        }
        let downward = source.at("downwardAPI");
        for item in downward.each("items") {
            downward_file(&item, &downward, errors);
            claim(item.at("path").text(), item.at("path").text(), errors);
        }
        if source.at("serviceAccountToken").is_set() {
            token(&source.at("serviceAccountToken"), at, errors);
        }
        let bundle = source.at("clusterTrustBundle");
        if bundle.is_set() {
            trust_bundle(&bundle, errors);
            claim(bundle.at("path").text(), bundle.at("path").text(), errors);
        }
        let certificate = source.at("podCertificate");
        if certificate.is_set() {
            pod_certificate(&certificate, errors);
            for key in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
                claim(certificate.at(key).text(), certificate.at(key).text(), errors);
            }
        }
        let given = source.value.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null());
        if given.count() > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

fn token(token: &At<'_, '_>, volume: &At<'_, '_>, errors: &mut Errors) {
    let seconds = token.at("expirationSeconds");
    match seconds.number() {
        None => errors.push(seconds.required("")),
        Some(..600) => {
            errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        Some(4_294_967_297..) => {
            errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
        Some(_) => {}
    }
    // Upstream names the volume here.
    let path = volume.named("path").with(&token.value["path"]);
    if path.text().is_empty() {
        errors.push(path.required(""));
    } else {
        descending_unreserved(&path, errors);
    }
}

fn trust_bundle(bundle: &At<'_, '_>, errors: &mut Errors) {
    let name = bundle.at("name");
    let signer = bundle.at("signerName");
    let selector = bundle.at("labelSelector");
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            let why = "only one of name and signerName may be used";
            errors.push(bundle.invalid_as("ClusterTrustBundleProjection", why));
        }
        (true, false) => {
            if name.text().is_empty() {
                errors.push(name.required("must be a valid object name"));
            }
            if selector.is_set() {
                let why = "labelSelector must be unset if name is specified";
                errors.push(selector.invalid(why));
            }
        }
        (false, true) => {
            if signer.text().is_empty() {
                errors.push(signer.required("must be a valid signer name"));
            }
            label_selector(&selector, errors);
        }
        (false, false) => {
            errors.push(bundle.required("either name or signerName must be specified"));
        }
    }
    bundle.require_all(&["path"], errors);
    descending_unreserved(&bundle.at("path"), errors);
}

fn pod_certificate(at: &At<'_, '_>, errors: &mut Errors) {
    let signer = at.at("signerName");
    if signer.text().is_empty() {
        errors.push(signer.required(""));
    } else if !signer.text().contains('/') {
        errors.push(signer.invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ));
    }
    let key_type = at.at("keyType");
    if !KEY_TYPES.contains(&key_type.text()) {
        errors.push(key_type.not_supported(KEY_TYPES));
    }
    let seconds = at.at("maxExpirationSeconds");
    let most = match signer.text().starts_with("kubernetes.io/") {
        true => KUBERNETES_CERTIFICATE_SECONDS_MAX,
        false => CERTIFICATE_SECONDS_MAX,
    };
    match seconds.number() {
        Some(..3600) => {
            errors.push(seconds.invalid("if provided, maxExpirationSeconds must be >= 3600"));
        }
        Some(given) if given > most => {
            let why = format!("if provided, maxExpirationSeconds must be <= {most}");
            errors.push(seconds.invalid(&why));
        }
        _ => {}
    }
    let paths = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    let given: Vec<_> = paths.iter().filter(|key| !at.at(key).text().is_empty()).collect();
    for key in &given {
        descending_unreserved(&at.at(key), errors);
    }
    if given.is_empty() {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(at.required(why));
    }
}

/// A pod without a service account has no token to mount.
pub(super) fn tokens_need_an_account(spec: &At<'_, '_>, errors: &mut Errors) {
    if !spec.at("serviceAccountName").text().is_empty() {
        return;
    }
    for volume in spec.each("volumes") {
        for source in volume.each("projected.sources") {
            let token = source.at("serviceAccountToken");
            if token.is_set() {
                let why = "must not be specified when serviceAccountName is not set";
                errors.push(token.forbidden(why));
            }
        }
    }
}
