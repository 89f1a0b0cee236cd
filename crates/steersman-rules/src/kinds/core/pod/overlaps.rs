//! Files of one volume that get in each other's way: of two at one path, or one below the other, a
//! container sees the one that is written last, or none of the volume.

use serde_json::Value;
use steersman_values::quoted;

use crate::rules::at::At;
use crate::rules::document::{items, text};

/// Nobody has so many files in a volume that all pairs of them would be a burden.
const FILES_MAX: usize = 256;

/// More warnings than a client is told of anything.
const WARNINGS_MAX: usize = 128;

/// The volumes that are made of one source, and what names it.
const SINGLE: &[(&str, &str, &str)] = &[
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("downwardAPI", "DownwardAPI", ""),
];

/// The sources that list files among those that are brought together, and what names them.
const LISTS: &[(&str, &str, &str)] = &[
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "name"),
    ("downwardAPI", "DownwardAPI", ""),
];

/// Where a certificate of the pod is written.
const CERTIFICATE_PATHS: &[(&str, &str)] = &[
    ("certificateChainPath", "PodCertificate chain"),
    ("keyPath", "PodCertificate key"),
    ("credentialBundlePath", "PodCertificate credential bundle"),
];

/// The warnings about the files of all volumes.
pub(super) fn warn(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for volume in spec.each("volumes") {
        let volume = volume.value;
        for single in SINGLE.iter().filter(|single| volume[single.0]["items"].is_array()) {
            let source = &volume[single.0];
            tell(volume, &called(single, source), &listed(source, ""), warnings);
        }
        projected(volume, warnings);
    }
}

fn projected(volume: &Value, warnings: &mut Vec<String>) {
    let mut files = Vec::new();
    for source in items(&volume["projected"]["sources"]) {
        let fields = source.as_object().into_iter().flatten();
        if fields.filter(|(_, value)| !value.is_null()).count() == 0 {
            let name = quoted(text(&volume["name"]));
            warnings.push(format!("volume {name} (Projected) has no sources provided"));
        }
        files.extend(of_source(source));
    }
    tell(volume, "Projected", &files, warnings);
}

/// A file of a volume.
struct File<'a> {
    path: &'a str,
    /// Where it comes from; empty where all files come from the same place.
    source: String,
}

impl File<'_> {
    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => quoted(self.path),
            source => format!("{} ({source})", quoted(self.path)),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let below = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        below(self.path, other.path) || below(other.path, self.path)
    }
}

/// The files of one of several sources.
fn of_source(source: &Value) -> Vec<File<'_>> {
    if let Some(list) = LISTS.iter().find(|list| source[list.0]["items"].is_array()) {
        return listed(&source[list.0], &called(list, &source[list.0]));
    }
    let token = &source["serviceAccountToken"];
    let bundle = &source["clusterTrustBundle"];
    if !token.is_null() {
        vec![file(&token["path"], "ServiceAccountToken".to_owned())]
    } else if !bundle.is_null() {
        let own = &bundle["name"];
        let name = text(if own.is_null() { &bundle["signerName"] } else { own });
        vec![file(&bundle["path"], format!("ClusterTrustBundle {}", quoted(name)))]
    } else {
        let certificate = &source["podCertificate"];
        let paths = CERTIFICATE_PATHS.iter().filter(|(key, _)| !certificate[*key].is_null());
        paths.map(|(key, shown)| file(&certificate[*key], (*shown).to_owned())).collect()
    }
}

fn listed<'a>(source: &'a Value, called: &str) -> Vec<File<'a>> {
    items(&source["items"]).iter().map(|item| file(&item["path"], called.to_owned())).collect()
}

fn file(path: &Value, source: String) -> File<'_> {
    File { path: text(path).trim_end_matches('/'), source }
}

/// How a source is called, with its name if it has one.
fn called((_, kind, name): &(&str, &str, &str), source: &Value) -> String {
    if name.is_empty() {
        return (*kind).to_owned();
    }
    format!("{kind} {}", quoted(text(&source[*name])))
}

/// The warnings about each file and those before it.
fn tell(volume: &Value, kind: &str, files: &[File<'_>], warnings: &mut Vec<String>) {
    if !(2..=FILES_MAX).contains(&files.len()) {
        return;
    }
    let name = quoted(text(&volume["name"]));
    for (i, file) in files.iter().enumerate().filter(|(_, file)| !file.path.is_empty()) {
        let left = WARNINGS_MAX.saturating_sub(warnings.len());
        let before = files[..i].iter().filter(|other| !other.path.is_empty());
        warnings.extend(before.filter(|other| file.overlaps(other)).take(left).map(|other| {
            let pair = format!("{} with {}", file.shown(), other.shown());
            format!("volume {name} ({kind}): overlapping paths: {pair}")
        }));
    }
}
