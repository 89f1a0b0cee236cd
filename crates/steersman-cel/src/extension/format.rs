//! Kubernetes' named formats.

use steersman_values::names;

use super::Url;
use crate::pattern::compile;
use crate::time::Timestamp;

/// What a text of some kind must look like.
#[derive(Debug)]
pub struct Format {
    pub(crate) name: &'static str,
    /// How long the pattern is that checks are said to cost as much as.
    pub(crate) pattern_size: u64,
    pub(crate) complaints: fn(&str) -> Vec<String>,
}

const UUID: &str = "(?i)^[0-9A-F]{8}-?[0-9A-F]{4}-?[0-9A-F]{4}-?[0-9A-F]{4}-?[0-9A-F]{12}$";

static FORMATS: &[(&str, Format)] = &[
    (
        "dns1123Label",
        Format { name: "DNS1123Label", pattern_size: 30, complaints: names::dns1123_label },
    ),
    (
        "dns1123Subdomain",
        Format { name: "DNS1123Subdomain", pattern_size: 60, complaints: names::dns1123_subdomain },
    ),
    (
        "dns1035Label",
        Format { name: "DNS1035Label", pattern_size: 30, complaints: names::dns1035_label },
    ),
    (
        "qualifiedName",
        Format { name: "QualifiedName", pattern_size: 60, complaints: names::qualified_name },
    ),
    (
        "dns1123LabelPrefix",
        Format {
            name: "DNS1123LabelPrefix",
            pattern_size: 30,
            complaints: |s| names::dns1123_label(&prefix(s)),
        },
    ),
    (
        "dns1123SubdomainPrefix",
        Format {
            name: "DNS1123SubdomainPrefix",
            pattern_size: 60,
            complaints: |s| names::dns1123_subdomain(&prefix(s)),
        },
    ),
    (
        "dns1035LabelPrefix",
        Format {
            name: "DNS1035LabelPrefix",
            pattern_size: 30,
            complaints: |s| names::dns1035_label(&prefix(s)),
        },
    ),
    ("labelValue", Format { name: "LabelValue", pattern_size: 40, complaints: names::label_value }),
    (
        "uri",
        Format {
            name: "URI",
            pattern_size: 1103,
            complaints: |s| Url::parse(s).err().into_iter().collect(),
        },
    ),
    (
        "uuid",
        Format {
            name: "uuid",
            pattern_size: 70,
            complaints: |s| unless(is_uuid(s), "does not match the UUID format"),
        },
    ),
    (
        "byte",
        Format {
            name: "byte",
            pattern_size: 84,
            complaints: |s| unless(is_base64(s), "invalid base64"),
        },
    ),
    (
        "date",
        Format {
            name: "date",
            pattern_size: 71,
            complaints: |s| unless(Timestamp::parse_date(s).is_some(), "invalid date"),
        },
    ),
    (
        "datetime",
        Format {
            name: "datetime",
            pattern_size: 71,
            complaints: |s| unless(Timestamp::parse(s).is_some(), "invalid datetime"),
        },
    ),
];

/// What a generated name starts with may end in a dash.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-') {
        // Kubernetes takes the character before the dash away, too.
        Some(start) if !start.is_empty() => {
            let kept = start.char_indices().next_back().map_or(0, |(last, _)| last);
            format!("{}a", &start[..kept])
        }
        _ => text.to_owned(),
    }
}

fn unless(holds: bool, complaint: &str) -> Vec<String> {
    if holds { Vec::new() } else { vec![complaint.to_owned()] }
}

fn is_uuid(text: &str) -> bool {
    compile(UUID).is_ok_and(|pattern| pattern.is_match(text))
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// The format of a name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| format)
}
