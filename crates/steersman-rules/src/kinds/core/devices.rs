//! Volumes that come from storage devices and their networks, as Pods and PersistentVolumes have them.

use crate::rules::at::{At, Errors};

/// The mistakes in an iSCSI volume.
pub(super) fn iscsi(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.at("iqn");
    if !name.text().is_empty() {
        initiator(&name, errors);
    }
    at.at("lun").within(0..=255, errors);
    let authenticates = at.at("chapAuthDiscovery").is_true() || at.at("chapAuthSession").is_true();
    if authenticates && at.at("secretRef").is_absent() {
        errors.push(at.at("secretRef").required(""));
    }
    let own = at.at("initiatorName");
    if own.is_set() {
        initiator(&at.named("initiatorname").with(own.value), errors);
    }
}

fn initiator(at: &At<'_, '_>, errors: &mut Errors) {
    let known = ["iqn", "eui", "naa"].iter().any(|form| at.text().starts_with(form));
    if !known {
        errors.push(at.invalid("must be valid format starting with iqn, eui, or naa"));
    } else if !is_initiator(at.text()) {
        errors.push(at.invalid("must be valid format"));
    }
}

/// Whether a text names an end of an iSCSI connection in one of the three forms there are.
pub(super) fn is_initiator(text: &str) -> bool {
    let alphanumeric = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
    match text.get(..3) {
        Some("iqn") => is_iqn(text),
        Some("eui") => text.len() == 20 && text.is_ascii() && alphanumeric(&text[4..]),
        Some("naa") => text.len() == 36 && text.is_ascii() && alphanumeric(&text[4..]),
        _ => false,
    }
}

/// `iqn.2015-02.example.com:test`
fn is_iqn(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("iqn.") else { return false };
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let Some((authority, target)) = rest.split_once(':') else { return false };
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let dated =
        date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let authority_char = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let target_char = |c: char| !",;*&$|".contains(c) && !c.is_whitespace();
    dated
        && !authority.is_empty()
        && authority.chars().all(authority_char)
        && !target.is_empty()
        && target.chars().all(target_char)
}

/// The mistakes in a Flocker volume.
pub(super) fn flocker(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.at("datasetName");
    let uuid = at.at("datasetUUID");
    if name.text().is_empty() && uuid.text().is_empty() {
        errors.push(at.required("one of datasetName and datasetUUID is required"));
    }
    if !name.text().is_empty() && !uuid.text().is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(at.invalid_value("resource", why));
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

/// The mistakes in a Quobyte volume.
pub(super) fn quobyte(at: &At<'_, '_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.at("registry");
    if registry.text().is_empty() {
        errors.push(registry.required(PAIRS));
    } else if at.at("tenant").text().len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(at.at("tenant").required(why));
    } else {
        let pairs = registry.text().split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(pairs.map(|_| registry.invalid(PAIRS)));
    }
    at.require_all(&["volume"], errors);
}

/// Whether a text is `host:port`, with brackets around a host that has colons itself.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let plain = |text: &str| !text.contains(['[', ']']);
    plain(port) && inner.map_or_else(|| plain(host) && !host.contains(':'), plain)
}

/// The mistakes in a Fibre Channel volume.
pub(super) fn fibre_channel(at: &At<'_, '_>, errors: &mut Errors) {
    let targets = at.at("targetWWNs");
    let ids = at.at("wwids");
    let unit = at.at("lun");
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            let why = "must specify either targetWWNs or wwids, but not both";
            errors.push(targets.required(why));
        }
        (false, false) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(targets.invalid(why));
        }
        _ => {}
    }
    if !targets.is_empty() {
        if unit.is_set() {
            unit.within(0..=255, errors);
        } else {
            errors.push(unit.required("lun is required if targetWWNs is specified"));
        }
    }
}

/// The mistakes in a volume of a driver of one's own.
pub(super) fn flex(at: &At<'_, '_>, errors: &mut Errors) {
    for (key, option) in at.at("options").entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(option.invalid_value(key, why));
        }
    }
}

/// The mistakes in an Azure disk.
pub(super) fn azure_disk(at: &At<'_, '_>, errors: &mut Errors) {
    const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                           microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/\
                        {disk-name}.vhd";
    let uri = at.at("diskURI");
    let kind = at.at("kind");
    at.at("cachingMode").one_of(&["None", "ReadOnly", "ReadWrite"], errors);
    kind.one_of(&["Dedicated", "Managed", "Shared"], errors);
    if kind.text() == "Managed" && !uri.text().starts_with("/subscriptions/") {
        errors.push(uri.not_supported(&[MANAGED]));
    }
    if kind.is_set() && kind.text() != "Managed" && !uri.text().starts_with("https://") {
        errors.push(uri.not_supported(&[BLOB]));
    }
}
