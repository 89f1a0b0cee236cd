//! Which signatures a ConfigMap is to have.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::ConfigMap;
use ring::hmac;
use serde_json::json;

/// What is signed.
const CONTENT: &str = "kubeconfig";
/// What the fields of signatures begin with; the rest is the token's id.
const SIGNATURE: &str = "jws-kubeconfig-";

/// The ConfigMap with the signatures of these tokens, by their ids, and no others; `None` if it has
/// them already, or nothing to sign.
pub(super) fn signed(map: &ConfigMap, tokens: &BTreeMap<String, String>) -> Option<ConfigMap> {
    let data = map.data.as_ref()?;
    let content = data.get(CONTENT)?;
    let mut wanted = data.clone();
    wanted.retain(|field, _| !field.starts_with(SIGNATURE));
    for (id, key) in tokens {
        wanted.insert(format!("{SIGNATURE}{id}"), signature(content, id, key));
    }
    (wanted != *data).then(|| ConfigMap { data: Some(wanted), ..map.clone() })
}

/// A signature (JWS, HS256) that stands apart from what it signs.
fn signature(content: &str, id: &str, key: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": id}).to_string());
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{header}..{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_that_others_work_out() {
        assert_eq!(
            signature("apiVersion: v1\n", "abcdef", "0123456789abcdef"),
            "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.\
             .K1chermAQEq0rdqy-ehj0VDfmA_ytv8Wzh9g26FldrE"
        );
    }

    #[test]
    fn signatures_come_and_go_with_their_tokens() {
        let tokens = |ids: &[&str]| ids.iter().map(|id| ((*id).into(), "key".into())).collect();
        let fields = |map: &ConfigMap| -> Vec<String> {
            map.data.iter().flatten().map(|(field, _)| field.clone()).collect()
        };
        let mut map = ConfigMap::default();
        assert_eq!(signed(&map, &tokens(&["abcdef"])), None, "nothing to sign");
        map.data = Some(BTreeMap::from([(CONTENT.into(), "{}".into())]));
        let once = signed(&map, &tokens(&["abcdef"])).unwrap();
        assert_eq!(fields(&once), ["jws-kubeconfig-abcdef", "kubeconfig"]);
        assert_eq!(signed(&once, &tokens(&["abcdef"])), None);
        let other = signed(&once, &tokens(&["fedcba"])).unwrap();
        assert_eq!(fields(&other), ["jws-kubeconfig-fedcba", "kubeconfig"]);
        assert_eq!(signed(&other, &tokens(&[])).unwrap(), map);
    }
}
