//! Kubernetes' URLs.

use std::sync::Arc;

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::{Extension, Url};
use crate::value::{Map, Value};

pub(super) const ROWS: &[Row] = &[
    ("url", &[("string_to_url", "(string) kubernetes.URL")], url),
    ("getScheme", &[("url_get_scheme", ".(kubernetes.URL) string")], |args| {
        part(args, |url| url.scheme.clone())
    }),
    ("getHost", &[("url_get_host", ".(kubernetes.URL) string")], |args| {
        part(args, |url| url.host.clone())
    }),
    ("getHostname", &[("url_get_hostname", ".(kubernetes.URL) string")], |args| {
        part(args, |url| url.hostname().0)
    }),
    ("getPort", &[("url_get_port", ".(kubernetes.URL) string")], |args| {
        part(args, |url| url.hostname().1)
    }),
    ("getEscapedPath", &[("url_get_escaped_path", ".(kubernetes.URL) string")], |args| {
        part(args, |url| url.path.clone())
    }),
    ("getQuery", &[("url_get_query", ".(kubernetes.URL) map(string, list(string))")], query),
    ("isURL", &[("is_url_string", "(string) bool")], is_url),
];

fn url<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let url = Url::parse(text(value)?).map_err(|why| {
        Error::new(format!("URL parse error during conversion from string: {why}"))
    })?;
    Ok(Value::Extension(Extension::Url(Arc::new(url))))
}

fn is_url<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Bool(Url::parse(text(value)?).is_ok())),
        _ => no_overload(),
    }
}

fn of<'v>(args: &'v [Value<'_>]) -> Result<&'v Url, Error> {
    match args {
        [Value::Extension(Extension::Url(url))] => Ok(url),
        _ => Err(Error::no_such_overload()),
    }
}

fn part<'a>(args: &[Value<'a>], part: impl Fn(&Url) -> String) -> Result<Value<'a>, Error> {
    of(args).map(|url| Value::text(part(url)))
}

fn query<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let entry = |(key, values): (String, Vec<String>)| {
        (Value::text(key), Value::list(values.into_iter().map(Value::text).collect()))
    };
    Map::new(of(args)?.asked().into_iter().map(entry)).map(Value::Map)
}
