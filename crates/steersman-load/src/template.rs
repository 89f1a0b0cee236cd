//! Texts of a template, filled in.

use serde_json::Value;

/// What is filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) number: &'a str,
}

impl Words<'_> {
    /// A copy of the template with these words in it.
    pub(crate) fn fill(&self, template: &Value) -> Value {
        match template {
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                let filled =
                    |(key, value): (&String, &Value)| (self.fill_text(key), self.fill(value));
                Value::Object(fields.iter().map(filled).collect())
            }
            plain => plain.clone(),
        }
    }

    fn fill_text(&self, text: &str) -> String {
        if !text.contains("{{") {
            return text.to_owned();
        }
        text.replace("{{name}}", self.name)
            .replace("{{namespace}}", self.namespace)
            .replace("{{number}}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Words;

    #[test]
    fn words_are_filled_in_wherever_a_text_stands() {
        let words = Words { name: "a-1", namespace: "load-0", number: "7" };
        let template =
            json!({"{{name}}": ["x-{{number}}", 3, null], "b": {"c": "{{namespace}}/{{name}}"}});
        let filled = json!({"a-1": ["x-7", 3, null], "b": {"c": "load-0/a-1"}});
        assert_eq!(words.fill(&template), filled);
    }
}
