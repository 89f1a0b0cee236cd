//! Pieces that the cells of many kinds are made of.

use serde_json::Value;

/// The items of a list; none where there is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A text, or `<none>`.
pub(crate) fn or_none(text: &str) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// A whole number; zero where there is none.
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// How many entries a list or map has.
pub(crate) fn len(value: &Value) -> usize {
    value.as_object().map_or_else(|| items(value).len(), serde_json::Map::len)
}

/// A value as text: strings bare, everything else as JSON.
pub(crate) fn printed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The condition of that type.
pub(crate) fn condition<'a>(object: &'a Value, r#type: &str) -> Option<&'a Value> {
    items(&object["status"]["conditions"]).iter().find(|c| c["type"] == r#type)
}

/// One field of every item, joined by commas.
pub(crate) fn joined(list: &Value, key: &str) -> String {
    items(list).iter().map(|item| text(&item[key])).collect::<Vec<_>>().join(",")
}

/// Texts joined by commas.
pub(crate) fn texts(list: &Value) -> String {
    items(list).iter().map(text).collect::<Vec<_>>().join(",")
}

/// The first `max` of a list, and how many there are beyond.
pub(crate) fn at_most(list: &[String], max: usize) -> String {
    match list {
        [] => "<none>".to_owned(),
        _ if list.len() > max => {
            format!("{} + {} more...", list[..max].join(","), list.len() - max)
        }
        _ => list.join(","),
    }
}

/// Labels as `a=b,c=d`, or `<none>`.
pub(crate) fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let mut pairs: Vec<_> = labels.map(|(key, value)| format!("{key}={}", text(value))).collect();
    pairs.sort();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector as it would be typed: `app=web,tier in (a,b)`, or `<none>`.
pub(crate) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key, format!("{key}={}", text(value))));
    }
    for requirement in items(&selector["matchExpressions"]) {
        let key = text(&requirement["key"]);
        let mut values: Vec<_> = items(&requirement["values"]).iter().map(text).collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(&requirement["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key, part));
    }
    parts.sort();
    if parts.is_empty() {
        return "<none>".to_owned();
    }
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

/// The addresses a load balancer reported, sorted, each once.
pub(crate) fn load_balancer<'a>(object: &'a Value) -> String {
    let ingress = items(&object["status"]["loadBalancer"]["ingress"]).iter();
    let address =
        |i: &'a Value| [text(&i["ip"]), text(&i["hostname"])].into_iter().find(|a| !a.is_empty());
    let mut addresses: Vec<_> = ingress.filter_map(address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}
