//! `AuthenticationConfiguration` of `apiserver.config.k8s.io`: read, checked with Kubernetes'
//! words, and made into what the server goes by.
//!
//! What it says of claims is in [`claims`]. One field is our own: `issuer.jwksFile` names a file that
//! has the issuer's keys, for one whose discovery document cannot be reached.

mod claims;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use steersman_rules::field::FieldError;

use self::claims::{ClaimRule, Email, Made, Mappings, UserRule};
use super::Anonymous;
use super::issuer::{IssuerSettings, KeySet};
use crate::pki::ClientAuthorities;
use crate::token::ISSUER;

const VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];
const KIND: &str = "AuthenticationConfiguration";
const ISSUERS_MAX: usize = 64;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is not a document of the kind.
    #[error("not an {KIND}: {0}")]
    Malformed(String),
    /// It says what it may not say.
    #[error("invalid authentication configuration: {0}")]
    Invalid(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    #[serde(default)]
    jwt: Vec<Authenticator>,
    anonymous: Option<AnonymousDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnonymousDocument {
    #[serde(default)]
    enabled: bool,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Condition {
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Authenticator {
    #[serde(default)]
    issuer: IssuerDocument,
    #[serde(default)]
    claim_validation_rules: Vec<ClaimRule>,
    #[serde(default)]
    claim_mappings: Mappings,
    #[serde(default)]
    user_validation_rules: Vec<UserRule>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IssuerDocument {
    #[serde(default)]
    url: String,
    #[serde(default, rename = "discoveryURL")]
    discovery_url: String,
    #[serde(default)]
    certificate_authority: String,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    audience_match_policy: String,
    #[serde(default)]
    egress_selector_type: String,
    #[serde(default)]
    jwks_file: String,
}

/// Reads a configuration: who issues tokens, and what it says of requests without credentials.
pub(super) fn parse(
    text: &str,
    folder: &Path,
) -> Result<(Vec<IssuerSettings>, Option<Anonymous>), ConfigurationError> {
    let malformed = ConfigurationError::Malformed;
    let document: Document =
        serde_saphyr::from_str(text).map_err(|error| malformed(error.to_string()))?;
    if document.kind != KIND || !VERSIONS.contains(&document.api_version.as_str()) {
        let version = &document.api_version;
        let kind = &document.kind;
        let known = VERSIONS.join(" and ");
        return Err(malformed(format!("it is {version:?}, {kind:?}; known are {known}, {KIND}")));
    }
    let errors = check(&document);
    if !errors.is_empty() {
        return Err(ConfigurationError::Invalid(together(&errors)));
    }
    let issuers = document.jwt.into_iter().map(|authenticator| settings(authenticator, folder));
    let anonymous = document.anonymous.map(|anonymous| Anonymous {
        enabled: anonymous.enabled,
        paths: anonymous.conditions.into_iter().map(|condition| condition.path).collect(),
    });
    Ok((issuers.collect::<Result<_, _>>()?, anonymous))
}

/// Mistakes as Go writes them together.
pub(crate) fn together(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.message(),
        several => {
            let texts: Vec<String> = several.iter().map(FieldError::message).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

fn settings(
    authenticator: Authenticator,
    folder: &Path,
) -> Result<IssuerSettings, ConfigurationError> {
    let Authenticator { issuer, claim_mappings, claim_validation_rules, user_validation_rules } =
        authenticator;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let keys = some(issuer.jwks_file).map(|file| read_keys(&folder.join(file))).transpose()?;
    let unready = ConfigurationError::Invalid;
    let Made { username, groups, uid, extra } = claim_mappings.made().map_err(unready)?;
    let (required, rules) = claims::rules(claim_validation_rules).map_err(unready)?;
    Ok(IssuerSettings {
        url: issuer.url,
        discovery_url: some(issuer.discovery_url),
        authorities: issuer.certificate_authority.into_bytes(),
        audiences: issuer.audiences,
        username,
        groups,
        uid,
        extra,
        required,
        rules,
        user_rules: claims::user_rules(user_validation_rules).map_err(unready)?,
        keys,
    })
}

fn read_keys(path: &Path) -> Result<KeySet, ConfigurationError> {
    let wrong = |reason: String| ConfigurationError::Read { path: path.to_owned(), reason };
    let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let keys = KeySet::parse(&bytes).map_err(wrong)?;
    if keys.is_empty() {
        return Err(wrong("there is no key in it that can be used".to_owned()));
    }
    Ok(keys)
}

/// Says everything that is wrong.
fn check(document: &Document) -> Vec<FieldError> {
    let count = document.jwt.len();
    if count > ISSUERS_MAX {
        return vec![FieldError::too_many("jwt", count, ISSUERS_MAX)];
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (n, authenticator) in document.jwt.iter().enumerate() {
        let path = format!("jwt[{n}]");
        check_issuer(&authenticator.issuer, &format!("{path}.issuer"), &mut errors);
        let mut email = Email::default();
        let rules = &authenticator.claim_validation_rules;
        claims::check_rules(rules, &path, &mut email, &mut errors);
        authenticator.claim_mappings.check(&path, &mut email, &mut errors);
        claims::check_user_rules(&authenticator.user_validation_rules, &path, &mut errors);
        let issuer = &authenticator.issuer;
        for (field, url) in [("url", &issuer.url), ("discoveryURL", &issuer.discovery_url)] {
            if !url.is_empty() && !seen.insert((field, url)) {
                let field = format!("{path}.issuer.{field}");
                errors.push(FieldError::duplicate(field, &url.as_str().into()));
            }
        }
    }
    if let Some(anonymous) = &document.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        let paths = anonymous.conditions.iter().map(|condition| condition.path.as_str());
        let why = "enabled should be set to true when conditions are defined";
        errors.push(FieldError::invalid("anonymous.conditions", &paths.collect(), why));
    }
    errors
}

fn check_issuer(issuer: &IssuerDocument, path: &str, errors: &mut Vec<FieldError>) {
    let IssuerDocument { url, discovery_url, .. } = issuer;
    let field = |name: &str| format!("{path}.{name}");
    if url.is_empty() {
        errors.push(FieldError::required(field("url"), ""));
    } else {
        if url == ISSUER {
            let why = format!("URL must not overlap with disallowed issuers: [{ISSUER}]");
            errors.push(FieldError::invalid(field("url"), &url.as_str().into(), &why));
        }
        check_url(url, &field("url"), errors);
    }
    if !discovery_url.is_empty() {
        let given: Value = discovery_url.as_str().into();
        if url.trim_end_matches('/') == discovery_url.trim_end_matches('/') {
            let why = "discoveryURL must be different from URL";
            errors.push(FieldError::invalid(field("discoveryURL"), &given, why));
        }
        check_url(discovery_url, &field("discoveryURL"), errors);
        if !issuer.jwks_file.is_empty() {
            let why = "may not be specified when discoveryURL is set";
            errors.push(FieldError::forbidden(field("jwksFile"), why));
        }
    }
    check_audiences(issuer, path, errors);
    let authority = issuer.certificate_authority.as_bytes();
    if !authority.is_empty() && ClientAuthorities::from_pem(authority).is_err() {
        let why = "data does not contain any valid RSA or ECDSA certificates";
        let omitted = "<omitted>".into();
        errors.push(FieldError::invalid(field("certificateAuthority"), &omitted, why));
    }
    if !issuer.egress_selector_type.is_empty() {
        let why = "this server has no egress selectors";
        errors.push(FieldError::forbidden(field("egressSelectorType"), why));
    }
}

fn check_url(url: &str, field: &str, errors: &mut Vec<FieldError>) {
    let mut wrong = |why: &str| errors.push(FieldError::invalid(field, &url.into(), why));
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = rest.split('/').next().unwrap_or("");
    if !scheme.eq_ignore_ascii_case("https") {
        wrong("URL scheme must be https");
    } else if url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::len)).is_none() {
        wrong("it cannot be parsed");
    }
    if authority.contains('@') {
        wrong("URL must not contain a username or password");
    }
    if !query.is_empty() {
        wrong("URL must not contain a query");
    }
    if !fragment.is_empty() {
        wrong("URL must not contain a fragment");
    }
}

fn check_audiences(issuer: &IssuerDocument, path: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.audiences");
    if issuer.audiences.is_empty() {
        let why = format!("at least one {field} is required");
        return errors.push(FieldError::required(field, &why));
    }
    let mut seen = BTreeSet::new();
    for (n, audience) in issuer.audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.push(FieldError::required(format!("{field}[{n}]"), ""));
        }
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(format!("{field}[{n}]"), &audience.as_str().into()));
        }
    }
    let policy = issuer.audience_match_policy.as_str();
    let why = match issuer.audiences.len() {
        2.. if policy != "MatchAny" => {
            "audienceMatchPolicy must be MatchAny for multiple audiences"
        }
        1 if !["", "MatchAny"].contains(&policy) => {
            "audienceMatchPolicy must be empty or MatchAny for single audience"
        }
        _ => return,
    };
    errors.push(FieldError::invalid(format!("{path}.audienceMatchPolicy"), &policy.into(), why));
}

#[cfg(test)]
mod tests;
