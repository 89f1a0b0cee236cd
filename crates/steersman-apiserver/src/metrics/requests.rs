//! Requests: how many of each sort, with which answer, how long they took, how large the answers
//! were, and how many are under way.
//!
//! A request looks its series up once, by what it holds anyway, and counts in atomic numbers.
//! Nothing is allocated for a built-in kind that was asked for before.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hashbrown::HashMap;
use http::Method;
use steersman_rules::schema::Text;

use super::instrument::{Counters, Gauge, Histogram, Instrument};
use super::page::Page;
use super::registry::{Collect, Registry};
use crate::apart::Pace;
use crate::request::Segment;

/// Where the buckets of durations end.
const DURATIONS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// Where those of durations end that leave out what others took.
const SLI_DURATIONS: &[f64] = DURATIONS.split_at(2).1;

/// Where those of sizes end.
const SIZES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// The codes that are counted without a lock.
const CODES: [u16; 20] = [
    200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 503,
    504,
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
    /// `All`, or empty.
    pub(crate) dry_run: &'static str,
    pub(crate) component: &'static str,
}

impl Asked {
    /// What a path that names no resource asks for, of those that are counted.
    pub(crate) fn of_path(method: &Method, path: &[Segment<'_>]) -> Option<Self> {
        let first = &**path.first()?;
        let (subresource, component) = match first {
            "healthz" => ("/healthz", ""),
            "livez" => ("/livez", ""),
            "readyz" => ("/readyz", ""),
            "metrics" if path.len() == 1 => ("/metrics", ""),
            "statusz" | "flagz" => ("", "apiserver"),
            "version" => ("/version", ""),
            "openapi" => ("openapi", ""),
            "api" => ("api", "apiserver"),
            "apis" => ("apis", "apiserver"),
            _ => return None,
        };
        let verb = match *method {
            Method::GET | Method::HEAD => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        // What these are, and not where, is what they go by.
        let resource = if matches!(first, "statusz" | "flagz") { first } else { "" };
        Some(Self {
            verb,
            resource: resource.to_owned().into(),
            subresource: subresource.into(),
            component,
            ..Self::default()
        })
    }

    /// The labels, in the order of their names; `code` stands before them where there is one.
    fn labels<'a>(&'a self, code: Option<&'a str>, extra: Extra) -> Vec<(&'static str, &'a str)> {
        let all = [
            ("component", self.component),
            ("dry_run", self.dry_run),
            ("group", &*self.group),
            ("resource", &*self.resource),
            ("scope", self.scope),
            ("subresource", &*self.subresource),
            ("verb", self.verb),
            ("version", &*self.version),
        ];
        let told = all.into_iter().filter(|(name, _)| match *name {
            "component" => extra != Extra::Neither,
            "dry_run" => extra == Extra::Both,
            _ => true,
        });
        code.map(|code| ("code", code)).into_iter().chain(told).collect()
    }
}

/// Which of `component` and `dry_run` a family tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Both,
    Component,
    Neither,
}

/// One sort of request.
#[derive(Debug)]
struct Series {
    /// By their places in [`CODES`].
    codes: Counters,
    /// The codes that are seldom.
    others: Mutex<BTreeMap<u16, u64>>,
    /// How many were ended by the server, by code.
    terminated: Mutex<BTreeMap<u16, u64>>,
    durations: Histogram,
    /// The same without what webhooks took and without waiting in queues.
    sli_durations: Histogram,
    sizes: Histogram,
    /// How many go on, of those that go on until one side ends them.
    long_running: AtomicI64,
    /// How many clients went away before they had an answer.
    aborted: AtomicU64,
    /// How long such a request keeps a thread.
    pace: Pace,
}

impl Series {
    fn new() -> Self {
        Self {
            codes: Counters::new(CODES.len()),
            others: Mutex::default(),
            terminated: Mutex::default(),
            durations: Histogram::new(DURATIONS),
            sli_durations: Histogram::new(SLI_DURATIONS),
            sizes: Histogram::new(SIZES),
            long_running: AtomicI64::new(0),
            aborted: AtomicU64::new(0),
            pace: Pace::default(),
        }
    }

    fn count(&self, code: u16) {
        match CODES.iter().position(|known| *known == code) {
            Some(index) => self.codes.increment(index),
            None => add(&self.others, code),
        }
    }

    fn totals(&self) -> BTreeMap<u16, u64> {
        let mut all = self.others.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = CODES.iter().enumerate();
        all.extend(known.map(|(index, code)| (*code, self.codes.get(index))));
        all.retain(|_, number| *number > 0);
        all
    }
}

fn add(numbers: &Mutex<BTreeMap<u16, u64>>, code: u16) {
    let mut numbers = numbers.lock().unwrap_or_else(PoisonError::into_inner);
    *numbers.entry(code).or_default() += 1;
}

/// All requests to a server. Clones share everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<All>);

#[derive(Debug, Default)]
struct All {
    series: RwLock<HashMap<Asked, Arc<Series>>>,
    mutating: Kind,
    read_only: Kind,
}

/// Requests that write, or those that only read.
#[derive(Debug, Default)]
struct Kind {
    in_flight: Gauge,
    in_queue: Gauge,
}

/// A request that is counted where it stands while this is held.
pub(crate) struct Standing<'a>(&'a Gauge);

impl<'a> Standing<'a> {
    fn begin(number: &'a Gauge) -> Self {
        number.rise();
        Self(number)
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.0.fall();
    }
}

/// A request that goes on while this is held.
pub(crate) struct LongRunning(Arc<Series>);

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.long_running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request whose answer is awaited. Dropped without one, its client went away.
pub(crate) struct Awaited(Option<Arc<Series>>);

/// How a request was answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answered {
    pub(crate) code: u16,
    pub(crate) took: Duration,
    /// How much of that were others: webhooks, and those before it in a queue.
    pub(crate) others_took: Duration,
    /// Whether the server ended it in self-defence.
    pub(crate) terminated: bool,
}

impl Awaited {
    /// How long such a request keeps a thread.
    pub(crate) fn pace(&self) -> Option<&Pace> {
        self.0.as_ref().map(|series| &series.pace)
    }

    /// It was answered.
    pub(crate) fn answered(mut self, answered: Answered) -> Counted {
        let Some(series) = self.0.take() else { return Counted(None) };
        let Answered { code, took, others_took, terminated } = answered;
        series.count(code);
        series.durations.took(took);
        series.sli_durations.took(took.saturating_sub(others_took));
        if terminated {
            add(&series.terminated, code);
        }
        Counted(Some(series))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(series) = self.0.take().filter(|_| !std::thread::panicking()) {
            series.aborted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A request that was answered.
pub(crate) struct Counted(Option<Arc<Series>>);

impl Counted {
    /// So large was the answer.
    #[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
    pub(crate) fn sized(self, bytes: u64) {
        if let Some(series) = self.0 {
            series.sizes.observe(bytes as f64);
        }
    }

    /// It goes on until one side ends it.
    pub(crate) fn goes_on(self) -> Option<LongRunning> {
        let series = self.0?;
        series.long_running.fetch_add(1, Ordering::Relaxed);
        Some(LongRunning(series))
    }
}

impl Requests {
    /// The requests of a server, told in a registry.
    pub(crate) fn registered(registry: &Registry) -> Self {
        let requests = Self::default();
        for (name, kind, help, write) in FAMILIES {
            let all = Arc::clone(&requests.0);
            registry.add(name, kind, help, Arc::new(Told { all, write: *write }));
        }
        requests
    }

    /// A request is under way.
    pub(crate) fn begin(&self, mutating: bool) -> Standing<'_> {
        Standing::begin(&self.kind(mutating).in_flight)
    }

    /// A request waits for its turn.
    pub(crate) fn wait(&self, mutating: bool) -> Standing<'_> {
        Standing::begin(&self.kind(mutating).in_queue)
    }

    /// A request of some sort is to be answered.
    pub(crate) fn awaited(&self, asked: Asked) -> Awaited {
        Awaited(self.series(asked))
    }

    fn kind(&self, mutating: bool) -> &Kind {
        if mutating { &self.0.mutating } else { &self.0.read_only }
    }

    fn series(&self, asked: Asked) -> Option<Arc<Series>> {
        let known = self.0.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&asked) {
            return Some(Arc::clone(series));
        }
        drop(known);
        let mut all = self.0.series.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SERIES_MAX && !all.contains_key(&asked) {
            return None;
        }
        Some(Arc::clone(all.entry(asked).or_insert_with(|| Arc::new(Series::new()))))
    }
}

type Write = fn(&All, &mut Page<'_>);

/// The families that are told of requests.
const FAMILIES: &[(&str, &str, &str, Write)] = &[
    (
        "apiserver_request_total",
        "counter",
        "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
        |all, page| all.write_codes(page, Extra::Both, Series::totals),
    ),
    (
        "apiserver_request_terminations_total",
        "counter",
        "[ALPHA] Number of requests which apiserver terminated in self-defense.",
        |all, page| {
            all.write_codes(page, Extra::Component, |series| {
                series.terminated.lock().unwrap_or_else(PoisonError::into_inner).clone()
            });
        },
    ),
    (
        "apiserver_request_aborts_total",
        "counter",
        "[ALPHA] Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope",
        |all, page| {
            all.each(|asked, series| {
                let number = series.aborted.load(Ordering::Relaxed);
                if number > 0 {
                    page.sample("", &asked.labels(None, Extra::Neither), number);
                }
            });
        },
    ),
    (
        "apiserver_request_duration_seconds",
        "histogram",
        "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
        |all, page| all.write_histograms(page, Extra::Both, |_, series| Some(&series.durations)),
    ),
    (
        "apiserver_request_sli_duration_seconds",
        "histogram",
        "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.",
        |all, page| {
            all.write_histograms(page, Extra::Component, |asked, series| {
                asked.dry_run.is_empty().then_some(&series.sli_durations)
            });
        },
    ),
    (
        "apiserver_response_sizes",
        "histogram",
        "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
        |all, page| {
            all.write_histograms(page, Extra::Component, |asked, series| {
                let reads = asked.dry_run.is_empty() && matches!(asked.verb, "GET" | "LIST");
                reads.then_some(&series.sizes)
            });
        },
    ),
    (
        "apiserver_longrunning_requests",
        "gauge",
        "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.",
        |all, page| {
            all.each(|asked, series| {
                if matches!(asked.verb, "WATCH" | "CONNECT") {
                    let number = series.long_running.load(Ordering::Relaxed);
                    page.sample("", &asked.labels(None, Extra::Component), number);
                }
            });
        },
    ),
    (
        "apiserver_current_inflight_requests",
        "gauge",
        "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
        |all, page| all.write_kinds(page, |kind| &kind.in_flight),
    ),
    (
        "apiserver_current_inqueue_requests",
        "gauge",
        "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second.",
        |all, page| all.write_kinds(page, |kind| &kind.in_queue),
    ),
];

/// One family of requests.
struct Told {
    all: Arc<All>,
    write: Write,
}

impl Collect for Told {
    fn collect(&self, page: &mut Page<'_>) {
        (self.write)(&self.all, page);
    }
}

impl All {
    /// Every series, sorted by its labels.
    fn each(&self, mut tell: impl FnMut(&Asked, &Series)) {
        let all = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(&Asked, &Series)> = all.iter().map(|(a, s)| (a, &**s)).collect();
        all.sort_by_cached_key(|(asked, _)| asked.labels(None, Extra::Both));
        all.into_iter().for_each(|(asked, series)| tell(asked, series));
    }

    fn write_codes(
        &self,
        page: &mut Page<'_>,
        extra: Extra,
        of: impl Fn(&Series) -> BTreeMap<u16, u64>,
    ) {
        self.each(|asked, series| {
            for (code, number) in of(series) {
                page.sample("", &asked.labels(Some(&code.to_string()), extra), number);
            }
        });
    }

    fn write_histograms<'a>(
        &'a self,
        page: &mut Page<'_>,
        extra: Extra,
        of: impl for<'s> Fn(&Asked, &'s Series) -> Option<&'s Histogram>,
    ) {
        self.each(|asked, series| {
            if let Some(histogram) = of(asked, series) {
                histogram.write(page, &asked.labels(None, extra));
            }
        });
    }

    fn write_kinds(&self, page: &mut Page<'_>, of: impl Fn(&Kind) -> &Gauge) {
        for (kind, numbers) in [("mutating", &self.mutating), ("readOnly", &self.read_only)] {
            page.sample("", &[("request_kind", kind)], of(numbers).get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_ask_for_and_how_they_end() {
        let registry = Registry::default();
        let requests = Requests::registered(&registry);
        let pods = Asked {
            verb: "GET",
            version: "v1".into(),
            resource: "pods".into(),
            scope: "resource",
            component: "apiserver",
            ..Asked::default()
        };
        for (code, milliseconds) in [(200, 3), (200, 30), (404, 100_000), (418, 1)] {
            let took = Duration::from_millis(milliseconds);
            let answered = Answered { code, took, ..Answered::default() };
            requests.awaited(pods.clone()).answered(answered).sized(2000);
        }
        drop(requests.awaited(pods.clone()));
        let late = Answered { code: 504, terminated: true, ..Answered::default() };
        requests.awaited(pods.clone()).answered(late);
        let watch = Asked { verb: "WATCH", ..pods };
        let begun = requests.awaited(watch).answered(Answered { code: 200, ..Answered::default() });
        let held = begun.goes_on().unwrap();
        let under_way = requests.begin(true);
        let waiting = requests.wait(false);
        let text = || {
            let mut out = String::new();
            registry.write(&mut out);
            out
        };
        let place = "group=\"\",resource=\"pods\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"";
        let whole = format!("component=\"apiserver\",dry_run=\"\",{place}");
        let sli = format!("component=\"apiserver\",{place}");
        for line in [
            format!("apiserver_request_total{{code=\"200\",{whole}}} 2\n"),
            format!("apiserver_request_total{{code=\"404\",{whole}}} 1\n"),
            format!("apiserver_request_total{{code=\"418\",{whole}}} 1\n"),
            format!("apiserver_request_terminations_total{{code=\"504\",{sli}}} 1\n"),
            format!("apiserver_request_aborts_total{{{place}}} 1\n"),
            format!("apiserver_request_duration_seconds_bucket{{{whole},le=\"0.005\"}} 3\n"),
            format!("apiserver_request_duration_seconds_bucket{{{whole},le=\"60\"}} 4\n"),
            format!("apiserver_request_duration_seconds_count{{{whole}}} 5\n"),
            format!("apiserver_request_sli_duration_seconds_bucket{{{sli},le=\"0.05\"}} 4\n"),
            format!("apiserver_response_sizes_bucket{{{sli},le=\"1000\"}} 0\n"),
            format!("apiserver_response_sizes_bucket{{{sli},le=\"10000\"}} 4\n"),
            format!("apiserver_response_sizes_sum{{{sli}}} 8000\n"),
            "verb=\"WATCH\",version=\"v1\"} 1\n".to_owned(),
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1\n".to_owned(),
            "apiserver_current_inqueue_requests{request_kind=\"readOnly\"} 1\n".to_owned(),
        ] {
            assert!(text().contains(&line), "{line}\n{}", text());
        }
        drop((held, under_way, waiting));
        assert!(
            text().contains("apiserver_current_inflight_requests{request_kind=\"mutating\"} 0\n")
        );
        assert!(text().contains("verb=\"WATCH\",version=\"v1\"} 0\n"));
    }
}
