//! Paths, queries, selectors and tokens.

use http::Method;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::sample::select;
use steersman_apiserver::Continuation;
use steersman_apiserver::registry::Registry;
use steersman_apiserver::request::{Query, RequestInfo, segments};
use steersman_rules::selector::{FieldSelector, LabelSelector};

use super::{run, text};

const PATH: &[&str] = &[
    "/",
    "//",
    "api",
    "apis",
    "v1",
    "apps",
    "watch",
    "namespaces",
    "default",
    "pods",
    "status",
    "..",
    ".",
    "%2f",
    "%2F",
    "%00",
    "%",
    "%zz",
    "%ff",
    "%c3%a9",
    "+",
    ";",
    "a",
];
const QUERY: &[&str] = &[
    "&",
    "=",
    "watch",
    "limit",
    "timeout",
    "timeoutSeconds",
    "dryRun",
    "All",
    "-1",
    "0",
    "9223372036854775808",
    "1h",
    "%",
    "%3D",
    "%zz",
    "+",
    "labelSelector",
    "continue",
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn any_path_is_read_or_refused() {
    run((text(PATH), text(QUERY)), |(path, query)| {
        let Ok(segments) = segments(&path) else { return };
        let query = Query::parse(&query);
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            if let Ok(info) = RequestInfo::parse(&method, &segments, query.clone()) {
                let _ = (info.dry_run(), info.query.deadline(), info.query.number("limit"));
            }
        }
    });
}

#[test]
fn an_encoded_path_reads_back() {
    run(vec(any::<String>(), 1..6), |parts| {
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let path: Vec<String> = parts.iter().map(|part| encoded(part)).collect();
        let path = format!("/{}", path.join("/"));
        assert_eq!(segments(&path).unwrap(), parts);
    });
}

#[test]
fn an_encoded_query_reads_back() {
    run(vec((any::<String>(), any::<String>()), 0..8), |pairs| {
        let query: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        let query = Query::parse(&query.join("&"));
        for (name, _) in &pairs {
            let expected: Vec<&str> =
                pairs.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
            assert_eq!(query.all(name).collect::<Vec<_>>(), expected);
        }
    });
}

#[test]
fn a_label_selector_that_is_read_prints_as_itself() {
    const WORDS: &[&str] = &[
        "a", "b.c/d", "in", "notin", "(", ")", ",", "=", "==", "!=", "!", ">", "<", " ", "\t", "1",
        "-", "xn--", "app",
    ];
    run(text(WORDS), |selector| {
        if let Ok(parsed) = LabelSelector::parse(&selector) {
            let printed = parsed.to_string();
            assert_eq!(LabelSelector::parse(&printed).unwrap(), parsed, "{selector:?} {printed:?}");
            let _ = parsed.matches(|_| Some("1"));
        }
    });
}

#[test]
fn any_field_selector_is_read_or_refused() {
    const WORDS: &[&str] = &[
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "status.phase",
        "=",
        "==",
        "!=",
        ",",
        "\\",
        "\\,",
        "\\=",
        "\\\\",
        "x",
        " ",
    ];
    let table = Registry::new().table();
    let pods = table.get("", "v1", "pods").unwrap();
    run(text(WORDS), |selector| {
        let _ = FieldSelector::parse(&selector, pods);
    });
}

#[test]
fn any_token_is_read_or_refused_and_stays_in_its_folder() {
    let start = text(&["a", "/", "..", ".", "ns", "name", "\0", "//"]);
    let version = select(&["meta.k8s.io/v1", "v1", ""][..]);
    run((start, any::<i64>(), version, any::<Option<u64>>()), |(start, rv, v, left)| {
        use base64::Engine;
        let token = serde_json::json!({"v": v, "rv": rv, "start": start, "left": left});
        let token =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string().as_bytes());
        if let Ok(here) = Continuation::parse(&token) {
            assert!(!here.start.split('/').any(|part| part == ".." || part.is_empty()));
            assert_eq!(Continuation::parse(&here.token()).unwrap(), here);
        }
    });
    run(any::<String>().prop_map(|text| text), |token| {
        let _ = Continuation::parse(&token);
    });
}
