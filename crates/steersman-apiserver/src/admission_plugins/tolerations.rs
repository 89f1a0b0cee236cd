//! Tolerations of pods: which of two tolerates more, and both together.

use serde_json::Value;

use super::fields::text;

/// A toleration, as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Toleration<'a> {
    key: &'a str,
    operator: &'a str,
    value: &'a str,
    effect: &'a str,
    seconds: Option<i64>,
}

impl<'a> Toleration<'a> {
    fn of(toleration: &'a Value) -> Self {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| text(&toleration[field]));
        let seconds = toleration["tolerationSeconds"].as_i64();
        Self { key, operator, value, effect, seconds }
    }

    /// Whether it tolerates all that another does.
    fn includes(self, other: Self) -> bool {
        if self == other {
            return true;
        }
        let every_key = self.key.is_empty() && self.operator == "Exists";
        let is_longer = || match (self.seconds, other.seconds) {
            (Some(own), Some(others)) => own >= others,
            (own, _) => own.is_none(),
        };
        (every_key || self.key == other.key)
            && (self.effect.is_empty() || self.effect == other.effect)
            && (self.effect != "NoExecute" || is_longer())
            && match self.operator {
                "Equal" | "" => other.operator == "Equal" && other.value == self.value,
                "Exists" => true,
                _ => false,
            }
    }
}

/// Both lists without what others in them include; of two that are the same, the first stays.
pub(super) fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<&Value> = Vec::new();
    for (n, toleration) in all.iter().enumerate() {
        let own = Toleration::of(toleration);
        let before = merged.iter().any(|kept| Toleration::of(kept).includes(own));
        let mut later = all[n + 1..].iter().map(|later| Toleration::of(later));
        if !before && !later.any(|later| later != own && later.includes(own)) {
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// Whether each of these is included in one of those that are allowed.
pub(super) fn are_allowed(tolerations: &[Value], allowed: &[Value]) -> bool {
    let includes = |toleration: &Value| {
        allowed.iter().any(|one| Toleration::of(one).includes(Toleration::of(toleration)))
    };
    allowed.is_empty() || tolerations.iter().all(includes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{are_allowed, merged};

    /// `key[=value][:effect][@seconds]`; without a value it tolerates every one.
    fn tolerations(texts: &str) -> Vec<Value> {
        let one = |text: &str| {
            let (text, seconds) = text.split_once('@').map_or((text, None), |(t, s)| (t, Some(s)));
            let (text, effect) = text.split_once(':').unwrap_or((text, ""));
            let (key, value) = text.split_once('=').map_or((text, None), |(k, v)| (k, Some(v)));
            let operator = if value.is_some() { "Equal" } else { "Exists" };
            let seconds: Option<i64> = seconds.map(|seconds| seconds.parse().unwrap());
            json!({
                "key": key, "operator": operator, "value": value, "effect": effect,
                "tolerationSeconds": seconds,
            })
        };
        texts.split_whitespace().map(one).collect()
    }

    #[test]
    fn what_others_include_is_left_out() {
        for (first, second, both) in [
            ("", "", ""),
            ("a", "b", "a b"),
            ("a=1", "a", "a"),
            ("a", "a=1", "a"),
            ("a=1", "a=2", "a=1 a=2"),
            ("a:NoSchedule", ":NoSchedule", ":NoSchedule"),
            ("a:NoSchedule", "a", "a"),
            ("a:NoExecute@5", "a:NoExecute@9", "a:NoExecute@9"),
            ("a:NoExecute@5", "a:NoExecute", "a:NoExecute"),
            ("a:NoExecute", "a:NoExecute@5", "a:NoExecute"),
            ("a=1:NoSchedule", "a=1:NoSchedule", "a=1:NoSchedule"),
        ] {
            let [first, second, both] = [first, second, both].map(tolerations);
            assert_eq!(merged(&first, &second), both, "{first:?} {second:?}");
        }
    }

    #[test]
    fn an_empty_list_allows_everything() {
        for (wanted, allowed, is) in [
            ("a b", "", true),
            ("", "a", true),
            ("a=1:NoSchedule", "a", true),
            ("a", "a=1", false),
            ("a b", "a", false),
        ] {
            let [wanted, allowed] = [wanted, allowed].map(tolerations);
            assert_eq!(are_allowed(&wanted, &allowed), is, "{wanted:?} {allowed:?}");
        }
    }
}
