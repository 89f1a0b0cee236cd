//! A configuration that is laid over an object without anybody owning it, as mutating policies do.

use serde_json::Value;

use super::{check, merge};
use crate::schema::{Node, Relation, Schema};

/// The object with everything that the configuration sets. One that does not fit the schema is
/// refused, and so is one that sets what can only be replaced as a whole: whoever means to change a
/// part of that would remove the rest.
pub fn lay_over(schema: &Schema, live: &Value, configuration: &Value) -> Result<Value, String> {
    let root = schema.root();
    let node = &*root;
    check::check(node, configuration)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let mut atomics = Vec::new();
    find_atomics(node, configuration, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    let mut new = live.clone();
    merge::merge(node, &mut new, configuration);
    if merge::has_nulls(configuration) {
        merge::drop_nulls(node, &mut new);
    }
    Ok(new)
}

/// Finds the lists, maps and structs that are replaced as a whole.
fn find_atomics(node: &Node, value: &Value, path: &mut String, atomics: &mut Vec<String>) {
    let length = path.len();
    let is_atomic = matches!(node.relation(value), Relation::Leaf);
    match value {
        Value::Object(fields) => {
            if is_atomic {
                atomics.push(path.clone());
            }
            for (key, value) in fields {
                path.push('.');
                path.push_str(key);
                find_atomics(node.child(key), value, path, atomics);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            if is_atomic {
                atomics.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_atomics(node.item(), item, path, atomics);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::lay_over;
    use crate::schema::Schema;

    #[test]
    fn a_configuration_is_merged_by_the_schema() {
        let schema = Schema::builtin("", "v1", "Pod").unwrap();
        let live = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [
            {"name": "web", "image": "nginx"}, {"name": "log", "image": "busybox"},
        ]}});
        let configuration = json!({"metadata": {"labels": {"b": "2"}}, "spec": {"containers": [
            {"name": "log", "env": [{"name": "A", "value": "x"}]},
        ]}});
        assert_eq!(
            lay_over(&schema, &live, &configuration).unwrap(),
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"containers": [
                {"name": "web", "image": "nginx"},
                {"name": "log", "image": "busybox", "env": [{"name": "A", "value": "x"}]},
            ]}})
        );
    }

    #[test]
    fn what_is_replaced_as_a_whole_is_refused() {
        let schema = Schema::builtin("", "v1", "Pod").unwrap();
        for (configuration, why) in [
            (
                json!({"spec": {"containers": [{"name": "web", "command": ["a"]}]}}),
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
                 .spec.containers[0].command",
            ),
            (
                json!({"spec": {"nodeSelector": {"a": "b"}}}),
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
                 .spec.nodeSelector",
            ),
            (
                json!({"spec": {"nodes": 1}}),
                "failed to convert patch object to typed object: .spec.nodes: field not declared \
                 in schema",
            ),
        ] {
            assert_eq!(lay_over(&schema, &json!({}), &configuration).unwrap_err(), why);
        }
    }
}
