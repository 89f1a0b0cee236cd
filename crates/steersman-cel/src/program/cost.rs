//! What calls cost when they run: cel-go's numbers and Kubernetes'.

use crate::effort::spend;
use crate::extension::Extension;
use crate::value::{List, Map, Value};

pub(crate) const LIST_CREATE: u64 = 10;
pub(crate) const MAP_CREATE: u64 = 30;
pub(crate) const STRUCT_CREATE: u64 = 40;
/// So much that an expression can ask twice.
pub(crate) const AUTHORIZATION: u64 = 350_000;
pub(crate) const TRAVERSAL: f64 = 0.1;
pub(crate) const PATTERN: f64 = 0.25;

/// How the cost of a call follows from its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// Always the same.
    Fixed(u64),
    /// The size of the first argument times a factor.
    Size(f64),
    /// How long a list is in which something is looked for.
    Within,
    /// The smaller of two sizes.
    Compared,
    /// Both sizes.
    Joined,
    /// Text against a pattern.
    Matched,
    /// Text within text.
    Contained,
    /// All that is below the first argument.
    Traversed,
    /// The size of the result times a factor.
    Result(f64),
    /// The text of a selector.
    Selector,
    /// An address within a network, perhaps one to be read.
    AddressWithin { read: bool },
    /// A network within a network, perhaps one to be read.
    NetworkWithin { read: bool },
    /// A named format.
    Validated,
    /// A new list of the size of the result.
    NewList,
    /// A list flattened so deep.
    Flattened,
    /// Every element of the argument at this place against every other.
    SelfCompared(usize),
    /// Every element of one list against every one of the other, so many times.
    CrossCompared(f64),
}

/// The rule of a function of which the checker left one overload, or several.
pub(crate) fn rule(function: &str, overload: Option<&str>, kubernetes: bool) -> Rule {
    if let Some(rule) = overload.and_then(extension) {
        return rule;
    }
    if kubernetes && let Some(rule) = of_kubernetes(function, overload) {
        return rule;
    }
    match overload.unwrap_or_default() {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => Rule::Size(TRAVERSAL),
        "in_list" => Rule::Within,
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => Rule::Compared,
        "add_string" | "add_bytes" => Rule::Joined,
        "matches_string" => Rule::Matched,
        "contains_string" => Rule::Contained,
        _ => Rule::Fixed(1),
    }
}

/// What cel-go's extensions say themselves.
fn extension(overload: &str) -> Option<Rule> {
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => Rule::NewList,
        "list_flatten" | "list_flatten_int" => Rule::Flattened,
        "list_distinct" => Rule::SelfCompared(0),
        id if id.starts_with("list_") && id.ends_with("_sort") => Rule::SelfCompared(0),
        id if id.ends_with("_sortByAssociatedKeys") => Rule::SelfCompared(1),
        "list_sets_contains_list" | "list_sets_intersects_list" => Rule::CrossCompared(1.0),
        "list_sets_equivalent_list" => Rule::CrossCompared(2.0),
        _ => return None,
    })
}

/// Whether a function of Kubernetes' libraries costs next to nothing.
pub(crate) fn is_nominal(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

fn of_kubernetes(function: &str, overload: Option<&str>) -> Option<Rule> {
    Some(match function {
        "check" => Rule::Fixed(AUTHORIZATION),
        name if is_nominal(name) => Rule::Fixed(1),
        "fieldSelector" | "labelSelector" => Rule::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Rule::Traversed,
        "ip" if overload == Some("cidr_ip") => Rule::Fixed(1),
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "ip"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => Rule::Size(TRAVERSAL),
        "replace" | "split" | "ip.isCanonical" => Rule::Size(2.0 * TRAVERSAL),
        "join" => Rule::Result(2.0 * TRAVERSAL),
        "find" | "findAll" => Rule::Matched,
        "containsIP" => Rule::AddressWithin { read: overload == Some("cidr_contains_ip_string") },
        "containsCIDR" => {
            Rule::NetworkWithin { read: overload == Some("cidr_contains_cidr_string") }
        }
        "validate" => Rule::Validated,
        _ => return None,
    })
}

/// A size times a factor, rounded up.
pub(crate) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

impl Rule {
    /// What a call costs.
    pub(crate) fn cost(self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let size = |at: usize| args.get(at).map_or(1, Value::cost_size);
        match self {
            Rule::Fixed(cost) => cost,
            Rule::Size(factor) => scaled(size(0), factor),
            Rule::Within => size(1),
            Rule::Compared => match args.first() {
                Some(Value::Extension(_)) => 1,
                _ => scaled(size(0).min(size(1)), TRAVERSAL),
            },
            Rule::Joined => scaled(size(0).saturating_add(size(1)), TRAVERSAL),
            Rule::Matched => {
                let text = scaled(size(0).saturating_add(1), TRAVERSAL);
                text.saturating_mul(scaled(size(1), PATTERN))
            }
            Rule::Contained => {
                scaled(size(0), TRAVERSAL).saturating_mul(scaled(size(1), TRAVERSAL))
            }
            Rule::Traversed => args.first().map_or(0, traversal),
            Rule::Result(factor) => scaled(result.map_or(1, Value::cost_size), factor),
            Rule::Selector => selector(size(1)),
            Rule::AddressWithin { read } => {
                let compared = scaled(2 * size(0), TRAVERSAL);
                compared + if read { scaled(size(1), TRAVERSAL) } else { 0 }
            }
            Rule::NetworkWithin { read } => {
                let compared = scaled(2 * size(0), TRAVERSAL) + scaled(size(0), TRAVERSAL) + 1;
                compared + if read { scaled(size(1), TRAVERSAL) } else { 0 }
            }
            Rule::Validated => match args.first() {
                Some(Value::Extension(Extension::Format(format))) => {
                    let text = scaled(size(1).saturating_add(1), TRAVERSAL);
                    text.saturating_mul(scaled(format.pattern_size, PATTERN))
                }
                _ => 1,
            },
            Rule::NewList => new_list(1.0, result.map_or(1, Value::cost_size)),
            Rule::Flattened => {
                let depth = args.get(1).and_then(Value::as_int).unwrap_or(1);
                new_list(depth as f64, size(0))
            }
            Rule::SelfCompared(at) => self_compared(args.get(at)),
            Rule::CrossCompared(factor) => {
                let pairs = size(0).saturating_mul(size(1)) as f64;
                1_u64.saturating_add((pairs * factor) as u64)
            }
        }
    }
}

/// A call that makes a list.
pub(crate) fn new_list(factor: f64, size: u64) -> u64 {
    // Unlike elsewhere, cel-go rounds down here.
    ((size as f64 * factor) as u64).saturating_add(1 + LIST_CREATE)
}

fn self_compared(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return 1 };
    let size = list.len() as u64;
    let textual = matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    let factor = if textual { 2.0 + TRAVERSAL } else { 2.0 };
    new_list(factor, size.saturating_mul(size))
}

pub(crate) fn selector(length: u64) -> u64 {
    let requirements = scaled(length, 0.5);
    let each = (LIST_CREATE + STRUCT_CREATE) as f64;
    LIST_CREATE + scaled(length, TRAVERSAL) + scaled(requirements, each)
}

/// What it costs to visit everything below a value.
fn traversal(value: &Value<'_>) -> u64 {
    if spend(1).is_err() {
        return u64::MAX;
    }
    match value {
        Value::String(text) => (text.as_str().len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        Value::List(list) => traversed_list(list),
        Value::Map(map) => traversed_map(map),
        _ => 1,
    }
}

fn traversed_list(list: &List<'_>) -> u64 {
    list.iter().flatten().map(|item| traversal(&item)).fold(0, u64::saturating_add)
}

fn traversed_map(map: &Map<'_>) -> u64 {
    let entry = |(key, value): (Value<'_>, Result<Value<'_>, _>)| {
        traversal(&key).saturating_add(value.map_or(1, |value: Value<'_>| traversal(&value)))
    };
    let entries = map.entries().map(|(key, value)| (key, value.map_err(|_: crate::Error| ())));
    entries.map(entry).fold(0, u64::saturating_add)
}
