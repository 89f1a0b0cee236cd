//! Whom a webhook calls, whether for admission or for conversion.

use super::at::{At, Errors, PORTS};
use crate::names;

/// Whom to call: a URL or a service, and exactly one of them.
pub(crate) fn client_config(config: &At<'_, '_>, errors: &mut Errors) {
    let url = config.at("url");
    let service = config.at("service");
    match (url.is_absent(), service.is_absent()) {
        (true, false) => check_service(&service, errors),
        (false, true) => check_url(&url, errors),
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

fn check_url(url: &At<'_, '_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut complain = |value: &str, detail: &str| {
        errors.push(url.invalid_value(value, detail));
    };
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", ""));
    if scheme != "https" {
        complain(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if host.is_empty() {
        complain(host, &format!("host must be specified{FORM}"));
    } else if !is_url(url.text()) {
        complain(url.text(), &format!("url must be a valid URL{FORM}"));
    }
    if let Some(user) = user {
        complain(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        complain(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        complain(query, "query parameters are not permitted in the URL");
    }
}

/// Longer URLs are not understood by whoever calls.
const URL_MAX: usize = u16::MAX as usize - 1;

/// Whether whoever calls it will understand it, with its port.
fn is_url(text: &str) -> bool {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let path = &rest[authority.len()..];
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@[]".contains(c);
    let host = authority.rsplit('@').next().unwrap_or_default();
    // An IPv6 address stands in brackets, and nothing else does.
    let bracketed = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']'),
        None => Some(("", host)),
    };
    let Some((_, behind)) = bracketed.filter(|(_, behind)| !behind.contains(['[', ']'])) else {
        return false;
    };
    let port = behind.split_once(':').map(|(_, port)| port.parse::<u16>());
    text.len() < URL_MAX
        && authority.chars().all(fits)
        && !path.chars().any(|c| c <= ' ' || "<>`".contains(c))
        && port.is_none_or(|port| port.is_ok())
}

fn check_service(service: &At<'_, '_>, errors: &mut Errors) {
    service.at("name").require(errors);
    service.at("namespace").require(errors);
    let port = service.at("port");
    if port.is_set() && !PORTS.contains(&port.number_or_zero()) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(port.invalid(detail));
    }
    let path = service.at("path");
    let given = path.text();
    if given.is_empty() || given == "/" {
        return;
    }
    if given == "//" {
        return errors.push(path.invalid("segment[0] may not be empty"));
    }
    if !given.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let steps = given.get(1..).unwrap_or_default();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(&format!("segment[{i}] may not be empty")));
            continue;
        }
        for complaint in names::dns1123_subdomain(step) {
            errors.push(path.invalid(&format!("segment[{i}]: {complaint}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_url;

    #[test]
    fn only_what_can_be_called_is_a_url() {
        for url in [
            "https://hooks.test",
            "https://hooks.test:8443/a/b",
            "https://[::1]:443/x",
            "https://[::1]/",
            "https://10.0.0.1/a%20b^c",
            "https://hooks.test/\u{fc}",
        ] {
            assert!(is_url(url), "{url}");
        }
        for url in [
            "https://[::1/",
            "https://::1]/",
            "https://a%20b/",
            "https://a{b}/",
            "https://a|b/",
            "https://a\"b/",
            "https://a:/",
            "https://a:99999/",
            "https://a:b/",
            "https://a/b c",
            "https://a/<b>",
        ] {
            assert!(!is_url(url), "{url}");
        }
    }
}
