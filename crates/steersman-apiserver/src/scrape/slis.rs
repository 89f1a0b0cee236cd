//! `/metrics/slis`: what checks of health found.

use http::Response;

use super::{page, process};
use crate::health;
use crate::metrics::Page;
use crate::reply::ResponseBody;
use crate::request::Query;
use crate::state::Server;

/// Answers with what was counted.
pub(crate) fn answer(server: &Server) -> Response<ResponseBody> {
    let mut out = String::new();
    server.metrics.slis.write(&mut out);
    if let Some(started) = process::start() {
        let help = "[ALPHA] Start time of the process since unix epoch in seconds.";
        let mut page = Page::begin(&mut out, "process_start_time_seconds", "gauge", help);
        page.sample("", &[], started);
    }
    page(out)
}

/// Counts the checks that an endpoint has made, by what it answers: it lists what failed.
pub(crate) fn note(
    server: &Server,
    endpoint: &str,
    query: &Query,
    answer: &Response<ResponseBody>,
) {
    let text = answer.body().whole().and_then(|text| std::str::from_utf8(text).ok());
    let failed = text.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("[-]"));
    let failed: Vec<&str> = failed.filter_map(|line| line.split(' ').next()).collect();
    let prefix = format!("/{endpoint}/");
    for path in health::paths() {
        let Some(check) = path.strip_prefix(&prefix) else { continue };
        if query.all("exclude").all(|excluded| excluded != check) {
            server.metrics.slis.checked(endpoint, check, !failed.contains(&check));
        }
    }
}
