//! Pieces that the cells of many kinds are made of.

use serde_json::Value;
use steersman_values::{LabelSelector, html_escaped};

use crate::strconv::shown_float;

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

/// A value as text as Go prints it: lists and maps as JSON that a page may include.
pub(crate) fn as_go_prints(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if !number.is_i64() => {
            number.as_f64().map_or_else(String::new, shown_float)
        }
        Value::Array(_) | Value::Object(_) => html_escaped(&value.to_string()),
        value => printed(value),
    }
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

/// The same, but `<unset>` where nothing would be shown.
pub(crate) fn at_most_or_unset(list: &[String], max: usize) -> String {
    match list {
        [] => "<unset>".to_owned(),
        [only] if only.is_empty() => "<unset>".to_owned(),
        list => at_most(list, max),
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
    match LabelSelector::of_unvalidated(selector).map(|selector| selector.to_string()) {
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
        None => "<error>".to_owned(),
    }
}

/// A label selector as Go prints the struct.
pub(crate) fn selector_as_go_prints(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", text(value))).collect();
    let requirements = items(&selector["matchExpressions"]).iter().map(|requirement| {
        let [key, operator] = ["key", "operator"].map(|field| text(&requirement[field]));
        let values: Vec<_> = items(&requirement["values"]).iter().map(text).collect();
        let values = values.join(" ");
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    });
    let requirements: String = requirements.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
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
