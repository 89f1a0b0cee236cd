//! What a client wishes of the log of a Pod, and what is wrong with that.

use serde_json::json;
use steersman_rules::field::FieldError;
use steersman_rules::resource::Named;
use steersman_rules::schema::Schema;
use steersman_rules::strconv;

use crate::request::Query;
use crate::status::{Result, Status};

/// Refuses wishes that cannot be read, or not be fulfilled, whether there is such a Pod or not.
pub(super) fn check(pod: &str, query: &Query) -> Result<()> {
    let since_seconds = number(query, "sinceSeconds")?;
    let since_time = query.get("sinceTime");
    if let Some(why) = since_time.and_then(time_mistake) {
        return Err(Status::bad_request(why));
    }
    let tail_lines = number(query, "tailLines")?;
    let limit_bytes = number(query, "limitBytes")?;
    let mut errors = Vec::new();
    if let Some(lines) = tail_lines.filter(|lines| *lines < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("tailLines", &lines.into(), why));
    }
    if let Some(bytes) = limit_bytes.filter(|bytes| *bytes < 1) {
        errors.push(FieldError::invalid("limitBytes", &bytes.into(), "must be greater than 0"));
    }
    match since_seconds {
        Some(_) if since_time.is_some() => {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("[]", why));
        }
        Some(seconds) if seconds < 1 => {
            let why = "must be greater than 0";
            errors.push(FieldError::invalid("sinceSeconds", &seconds.into(), why));
        }
        _ => {}
    }
    if query.get("stream").is_some() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Named { group: "", resource: "PodLogOptions", name: pod }, &errors))
}

/// A whole number, which nothing is not.
fn number(query: &Query, field: &str) -> Result<Option<i64>> {
    let number = query.get(field).map(strconv::parse_int).transpose();
    number.map_err(|error| Status::bad_request(error.to_string()))
}

/// What is wrong with a time, if it is one at all: old clients say `null` for none.
fn time_mistake(text: &str) -> Option<String> {
    if matches!(text, "" | "null") {
        return None;
    }
    let schema = Schema::builtin_type("meta.v1.ObjectMeta")?;
    schema.type_errors(&json!({"creationTimestamp": text})).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::request::Query;

    #[test]
    fn wishes_that_cannot_be_fulfilled_are_refused() {
        for (query, code, message) in [
            (
                "tailLines=-1",
                422,
                "tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
            ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
            ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
            ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
            (
                "sinceSeconds=0&sinceTime=",
                422,
                "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
            ("tailLines=", 400, "strconv.ParseInt: parsing \"\": invalid syntax"),
            ("tailLines=-1&limitBytes=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
            (
                "sinceTime=now",
                400,
                "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \
                 \"2006\"",
            ),
        ] {
            let refused = check("p", &Query::parse(query)).unwrap_err();
            let subject = if code == 422 { "PodLogOptions \"p\" is invalid: " } else { "" };
            assert_eq!((refused.code, refused.message), (code, format!("{subject}{message}")));
        }
        for query in
            ["", "tailLines=0&limitBytes=1&sinceSeconds=1", "sinceTime=2025-01-01T00:00:00Z"]
        {
            assert_eq!(check("p", &Query::parse(query)), Ok(()), "{query}");
        }
    }
}
