//! Requests: how many of each sort, with which answer, how long they took, and how many are under
//! way.
//!
//! A series is found by what a request holds anyway, under a lock for reading, and counted in
//! atomic numbers. Nothing is allocated for a built-in kind that was asked for before.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::Method;
use steersman_rules::resource::{Subresource, Verb};
use steersman_rules::schema::Text;

use super::family;
use crate::call::Call;

/// Where the buckets of the histogram end, in milliseconds: upstream's.
const BUCKETS: [u64; 23] = [
    5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 8000,
    10_000, 15_000, 20_000, 30_000, 45_000, 60_000,
];

/// The codes that are told apart; the last stands for all others.
const CODES: [u16; 22] = [
    200, 201, 202, 204, 301, 304, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500,
    501, 503, 504,
];

/// How many series there may be. Definitions come and go, and what they left is not forgotten.
const SERIES_MAX: usize = 20_000;

/// What a request asks for, as its labels say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    pub(crate) group: Text,
    pub(crate) version: Text,
    pub(crate) resource: Text,
    pub(crate) subresource: Text,
    /// `resource`, `namespace` or `cluster`.
    pub(crate) scope: &'static str,
    pub(crate) dry_run: bool,
    pub(crate) component: &'static str,
}

impl Asked {
    /// What a call asks for.
    pub(crate) fn of(call: &Call) -> Self {
        let info = &call.info;
        let resource = &call.resource;
        let sub = resource.subresource(call.subresource());
        let applies = || call.content_type().is_some_and(|t| t.starts_with("application/apply-"));
        Self {
            verb: match info.verb {
                _ if sub.is_some_and(Subresource::is_connection) => "CONNECT",
                Verb::Get => "GET",
                Verb::List => "LIST",
                Verb::Watch => "WATCH",
                Verb::Create => "POST",
                Verb::Update => "PUT",
                Verb::Patch if applies() => "APPLY",
                Verb::Patch => "PATCH",
                Verb::Delete | Verb::DeleteCollection => "DELETE",
            },
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: sub.map(|sub| sub.name.clone()).unwrap_or_default(),
            scope: match (&info.name, &info.namespace) {
                _ if info.verb == Verb::Create => "resource",
                (Some(_), _) => "resource",
                (None, Some(_)) => "namespace",
                (None, None) => "cluster",
            },
            dry_run: info.query.get("dryRun").is_some(),
            component: "apiserver",
        }
    }

    /// What a path that names no resource asks for, of those that are counted.
    pub(crate) fn of_path(method: &Method, path: &[String]) -> Option<Self> {
        let (subresource, component) = match path.first()?.as_str() {
            "healthz" => ("/healthz", ""),
            "livez" => ("/livez", ""),
            "readyz" => ("/readyz", ""),
            "metrics" => ("/metrics", ""),
            "version" => ("/version", ""),
            "openapi" => ("openapi", ""),
            "api" => ("api", "apiserver"),
            "apis" => ("apis", "apiserver"),
            _ => return None,
        };
        let verb = if method == Method::HEAD { "HEAD" } else { "GET" };
        Some(Self { verb, subresource: subresource.into(), component, ..Self::default() })
    }

    fn labels(&self) -> String {
        let dry_run = if self.dry_run { "All" } else { "" };
        format!("component=\"{}\",dry_run=\"{dry_run}\",{}", self.component, self.place())
    }

    fn place(&self) -> String {
        let Self { verb, group, version, resource, subresource, scope, .. } = self;
        format!(
            "group=\"{group}\",resource=\"{resource}\",scope=\"{scope}\",\
             subresource=\"{subresource}\",verb=\"{verb}\",version=\"{version}\""
        )
    }
}

/// One sort of request.
#[derive(Debug, Default)]
struct Series {
    codes: [AtomicU64; CODES.len()],
    /// How many ended within each bucket; the last has no end.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
    /// How many go on, of those that go on until one side ends them.
    long_running: AtomicI64,
}

/// All requests to a server.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    series: RwLock<HashMap<Asked, Arc<Series>>>,
    mutating: AtomicI64,
    read_only: AtomicI64,
}

/// A request that goes on while this is held.
pub(crate) struct LongRunning(Arc<Series>);

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.long_running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request under way while this is held.
pub(crate) struct InFlight<'a>(&'a AtomicI64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Requests {
    /// A request is under way.
    pub(crate) fn begin(&self, mutating: bool) -> InFlight<'_> {
        let number = if mutating { &self.mutating } else { &self.read_only };
        number.fetch_add(1, Ordering::Relaxed);
        InFlight(number)
    }

    /// A request was answered.
    pub(crate) fn answered(&self, asked: &Asked, code: u16, took: Duration) {
        let Some(series) = self.series(asked) else { return };
        let code = CODES.iter().position(|known| *known == code).unwrap_or(CODES.len() - 1);
        series.codes[code].fetch_add(1, Ordering::Relaxed);
        let within = BUCKETS.iter().position(|end| took <= Duration::from_millis(*end));
        series.buckets[within.unwrap_or(BUCKETS.len())].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        series.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// A request goes on until one side ends it.
    pub(crate) fn goes_on(&self, asked: &Asked) -> Option<LongRunning> {
        let series = self.series(asked)?;
        series.long_running.fetch_add(1, Ordering::Relaxed);
        Some(LongRunning(series))
    }

    fn series(&self, asked: &Asked) -> Option<Arc<Series>> {
        let known = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(asked) {
            return Some(Arc::clone(series));
        }
        drop(known);
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SERIES_MAX && !all.contains_key(asked) {
            return None;
        }
        Some(Arc::clone(all.entry(asked.clone()).or_default()))
    }

    /// Appends the metrics, sorted by their labels.
    pub(super) fn write(&self, out: &mut String) {
        let all = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(&Asked, &Series)> = all.iter().map(|(a, s)| (a, &**s)).collect();
        all.sort_by_cached_key(|(asked, _)| asked.labels());
        let name = "apiserver_request_total";
        family(
            out,
            name,
            "counter",
            "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
        );
        for (asked, series) in &all {
            for (code, number) in CODES.iter().zip(&series.codes) {
                let number = number.load(Ordering::Relaxed);
                if number > 0 {
                    let labels = asked.labels();
                    let _ = writeln!(out, "{name}{{code=\"{code}\",{labels}}} {number}");
                }
            }
        }
        let name = "apiserver_request_duration_seconds";
        family(
            out,
            name,
            "histogram",
            "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
        );
        for (asked, series) in &all {
            series.write_durations(out, name, &asked.labels());
        }
        let name = "apiserver_longrunning_requests";
        family(
            out,
            name,
            "gauge",
            "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component.",
        );
        for (asked, series) in all.iter().filter(|(asked, _)| is_long(asked.verb)) {
            let number = series.long_running.load(Ordering::Relaxed);
            let component = asked.component;
            let place = asked.place();
            let _ = writeln!(out, "{name}{{component=\"{component}\",{place}}} {number}");
        }
        let name = "apiserver_current_inflight_requests";
        family(
            out,
            name,
            "gauge",
            "Number of requests under way of this apiserver per request kind.",
        );
        for (kind, number) in [("mutating", &self.mutating), ("readOnly", &self.read_only)] {
            let number = number.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}{{request_kind=\"{kind}\"}} {number}");
        }
    }
}

fn is_long(verb: &str) -> bool {
    matches!(verb, "WATCH" | "CONNECT")
}

impl Series {
    #[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
    fn write_durations(&self, out: &mut String, name: &str, labels: &str) {
        let mut count = 0;
        for (end, number) in BUCKETS.iter().zip(&self.buckets) {
            count += number.load(Ordering::Relaxed);
            let end = *end as f64 / 1e3;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{end}\"}} {count}");
        }
        count += self.buckets[BUCKETS.len()].load(Ordering::Relaxed);
        let sum = self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_ask_for_and_how_they_end() {
        let requests = Requests::default();
        let pods = Asked {
            verb: "GET",
            version: "v1".into(),
            resource: "pods".into(),
            scope: "resource",
            component: "apiserver",
            ..Asked::default()
        };
        requests.answered(&pods, 200, Duration::from_millis(3));
        requests.answered(&pods, 200, Duration::from_millis(30));
        requests.answered(&pods, 404, Duration::from_secs(100));
        let watch = Asked { verb: "WATCH", ..pods };
        let held = requests.goes_on(&watch).unwrap();
        let under_way = requests.begin(true);
        let text = || {
            let mut out = String::new();
            requests.write(&mut out);
            out
        };
        let labels = "group=\"\",resource=\"pods\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"";
        for line in [
            format!(
                "apiserver_request_total{{code=\"200\",component=\"apiserver\",dry_run=\"\",{labels}}} 2\n"
            ),
            format!(
                "apiserver_request_total{{code=\"404\",component=\"apiserver\",dry_run=\"\",{labels}}} 1\n"
            ),
            format!(
                "apiserver_request_duration_seconds_bucket{{component=\"apiserver\",dry_run=\"\",{labels},le=\"0.005\"}} 1\n"
            ),
            format!(
                "apiserver_request_duration_seconds_bucket{{component=\"apiserver\",dry_run=\"\",{labels},le=\"60\"}} 2\n"
            ),
            format!(
                "apiserver_request_duration_seconds_count{{component=\"apiserver\",dry_run=\"\",{labels}}} 3\n"
            ),
            "verb=\"WATCH\",version=\"v1\"} 1\n".to_owned(),
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1\n".to_owned(),
        ] {
            assert!(text().contains(&line), "{line}\n{}", text());
        }
        drop((held, under_way));
        assert!(
            text().contains("apiserver_current_inflight_requests{request_kind=\"mutating\"} 0\n")
        );
        assert!(text().contains("verb=\"WATCH\",version=\"v1\"} 0\n"));
    }
}
