//! What the API server warns of: a field that it does not know and so drops, a version that will not
//! be served for long, a Pod that a policy would not have. It says so in a header of an answer that
//! is fine otherwise, which nobody would read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt};
use http::{HeaderMap, Request, Response, header};
use tower::{Layer, Service};

/// The code of a warning that is for whoever made the request, now and later.
const PERSISTENT: &str = "299";
/// Warnings remembered as told. When there are more, all are told anew.
const TOLD_MAX: usize = 256;

/// Logs the warnings of the API server, each once: a layer for
/// [`kube::client::ClientBuilder::with_layer`]. The clients that a manager makes
/// [by itself](crate::Manager::from_env) have it. Cheap to clone; all clones remember the same.
#[derive(Clone, Debug, Default)]
pub struct WarningLog {
    told: Arc<Mutex<HashSet<String>>>,
}

impl WarningLog {
    /// The warnings of an answer that have not been told yet.
    fn news(&self, headers: &HeaderMap) -> Vec<String> {
        let values = headers.get_all(header::WARNING).into_iter();
        let values = values.filter_map(|value| str::from_utf8(value.as_bytes()).ok());
        let mut warnings: Vec<String> = values.flat_map(Warnings::of).collect();
        if !warnings.is_empty() {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() + warnings.len() > TOLD_MAX {
                told.clear();
            }
            warnings.retain(|warning| told.insert(warning.clone()));
        }
        warnings
    }
}

impl<S> Layer<S> for WarningLog {
    type Service = LogWarnings<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LogWarnings { inner, log: self.clone() }
    }
}

/// A service whose warnings are logged.
#[derive(Clone, Debug)]
pub struct LogWarnings<S> {
    inner: S,
    log: WarningLog,
}

impl<S, B, R> Service<Request<B>> for LogWarnings<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let uri = request.uri().clone();
        let answer = self.inner.call(request);
        let log = self.log.clone();
        async move {
            let answer = answer.await;
            let news = answer.as_ref().map(|answer| log.news(answer.headers()));
            for warning in news.unwrap_or_default() {
                tracing::warn!(path = uri.path(), warning, "the API server warns");
            }
            answer
        }
        .boxed()
    }
}

/// The texts in a header: `code agent "text"`, perhaps with a date in quotes, several separated by
/// commas. What cannot be read ends them.
struct Warnings<'a>(&'a str);

impl<'a> Warnings<'a> {
    fn of(header: &'a str) -> Self {
        Self(header)
    }

    /// The next code and its text.
    fn read(&mut self) -> Option<(&'a str, String)> {
        let (code, rest) = self.0.trim_start().split_once(' ')?;
        let (_agent, rest) = rest.split_once(' ')?;
        let (text, mut rest) = quoted(rest)?;
        if let Some((_date, after)) = quoted(rest.trim_start()) {
            rest = after;
        }
        self.0 = rest.trim_start().strip_prefix(',').unwrap_or_default();
        Some((code, text))
    }
}

impl Iterator for Warnings<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let (code, text) = self.read()?;
            if code == PERSISTENT && !text.is_empty() {
                return Some(text);
            }
        }
    }
}

/// A text in quotes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let mut unquoted = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((unquoted, &text[at + 1..])),
            '\\' => unquoted.push(characters.next()?.1),
            _ => unquoted.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_texts_of_a_header_are_read_as_they_are_written() {
        let table: [(&str, &[&str]); 8] = [
            (r#"299 - "unknown field \"spec.a\"""#, &[r#"unknown field "spec.a""#]),
            (r#"299 - "a", 299 server "b" "Sat, 25 Aug 2029 23:34:45 GMT""#, &["a", "b"]),
            (r#"199 - "of a cache", 299 - "b""#, &["b"]),
            (r#" 299 - "x, y" ,299 - "z""#, &["x, y", "z"]),
            (r#"299 - "a\\b""#, &[r"a\b"]),
            (r#"299 - """#, &[]),
            (r#"299 - "never ends"#, &[]),
            ("299 - text", &[]),
        ];
        for (header, texts) in table {
            assert_eq!(Warnings::of(header).collect::<Vec<_>>(), texts, "{header}");
        }
    }

    #[test]
    fn a_warning_is_told_once_and_not_remembered_for_ever() {
        let log = WarningLog::default();
        let answer = |texts: &[&str]| -> HeaderMap {
            let value = |text: &&str| HeaderValue::from_str(&format!("299 - \"{text}\"")).unwrap();
            texts.iter().map(|text| (header::WARNING, value(text))).collect()
        };
        assert_eq!(log.news(&HeaderMap::new()), Vec::<String>::new());
        assert_eq!(log.news(&answer(&["a", "b", "a"])), ["a", "b"]);
        assert_eq!(log.news(&answer(&["b", "c"])), ["c"]);
        for number in 0..2 * TOLD_MAX {
            let text = number.to_string();
            assert_eq!(log.news(&answer(&[&*text])).len(), 1);
            assert!(log.told.lock().unwrap().len() <= TOLD_MAX);
        }
        assert_eq!(log.news(&answer(&["a"])), ["a"]);
    }
}
