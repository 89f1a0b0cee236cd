//! A run as a page: tables and plots in one file that needs nothing else.

use std::fmt::Write as _;

use crate::plot::{Band, Line, Plot, escaped};
use crate::report::{Gauges, Operation, Phase, Point, Report};

/// How the page looks.
const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c2733; background: #fff; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.about { color: #5a6b7b; margin-top: .3rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #e3e8ed; }
th:first-child, td:first-child, td.text { text-align: left; }
th { font-weight: 600; color: #5a6b7b; } td.bad { color: #b3261e; font-weight: 600; }
svg { width: 100%; height: auto; margin-top: .5rem; }
svg text { font: 12px system-ui, sans-serif; fill: #5a6b7b; }
pre { background: #f4f6f8; padding: .8rem; overflow-x: auto; border-radius: 4px; }
";

impl Report {
    /// A page with plots that needs nothing else; beside another run, if one is given.
    pub fn html(&self, beside: Option<&Self>) -> String {
        page(self, beside)
    }
}

fn page(report: &Report, beside: Option<&Report>) -> String {
    let title = escaped(&report.scenario.name);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Load: {title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n<p class=\"about\">{}</p>\n",
        about(report, beside)
    );
    text.push_str(&phases(report, beside));
    text.push_str(&operations(report, beside));
    text.push_str(&plots(report, beside));
    let scenario = serde_json::to_string_pretty(&report.scenario).unwrap_or_default();
    let _ = write!(text, "<h2>Scenario</h2>\n<pre>{}</pre>\n</body></html>\n", escaped(&scenario));
    text
}

fn about(report: &Report, beside: Option<&Report>) -> String {
    let load = &report.scenario;
    let mut text = format!(
        "{} objects in {} namespaces, {} requests at once, on {}",
        load.size(),
        load.namespaces,
        load.clients,
        escaped(&report.server)
    );
    if let Some(other) = beside {
        let _ = write!(
            text,
            "; dashed and in brackets: {} on {}",
            escaped(&other.scenario.name),
            escaped(&other.server)
        );
    }
    text
}

fn phases(report: &Report, beside: Option<&Report>) -> String {
    let mut text =
        "<h2>Phases</h2>\n<table><tr><th>phase</th><th>seconds</th><th></th></tr>\n".to_owned();
    for (place, phase) in report.phases.iter().enumerate() {
        let other = beside.and_then(|other| other.phases.get(place)).map(|other| other.seconds);
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
            escaped(&phase.name),
            pair(phase.seconds, other),
            escaped(&phase.outcome)
        );
    }
    text + "</table>\n"
}

fn operations(report: &Report, beside: Option<&Report>) -> String {
    let mut text =
        "<h2>Requests and their effects</h2>\n<table><tr><th></th><th>count</th><th>errors</th>\
                    <th>p50 ms</th><th>p90 ms</th><th>p99 ms</th><th>max ms</th></tr>\n"
            .to_owned();
    for operation in &report.operations {
        let other = beside.and_then(|other| other.operation(&operation.name));
        let times: [fn(&Operation) -> f64; 4] = [|o| o.p50, |o| o.p90, |o| o.p99, |o| o.max];
        let cells =
            times.map(|time| format!("<td>{}</td>", pair(time(operation), other.map(time))));
        let class = if operation.errors > 0 { " class=\"bad\"" } else { "" };
        let why = operation.first_error.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td{class} title=\"{}\">{}</td>{}</tr>",
            escaped(&operation.name),
            operation.count,
            escaped(why),
            operation.errors,
            cells.concat()
        );
    }
    text + "</table>\n"
}

/// A value, and that of the other run in brackets.
fn pair(value: f64, other: Option<f64>) -> String {
    match other {
        Some(other) => format!("{value:.2} ({other:.2})"),
        None => format!("{value:.2}"),
    }
}

fn plots(report: &Report, beside: Option<&Report>) -> String {
    let both = Both { report, beside };
    let bands: Vec<Band<'_>> = report.phases.iter().map(band).collect();
    let plot = |title, unit, lines| Plot { title, unit, across: "s", lines, bands: &bands }.draw();
    let requests = |operation: &Operation| !is_effect(operation);
    let objects: [(&str, Gauge); 2] = [
        ("objects", |gauges| Some(gauges.objects as f64)),
        ("ready", |gauges| Some(gauges.ready as f64)),
    ];
    let memory: [(&str, Gauge); 1] = [("resident", |gauges| Some(gauges.memory_bytes? / 1e6))];
    [
        plot("Requests a second", "/s", both.operations(requests, |point| point.rate)),
        plot("Time of requests, p99", "ms", both.operations(requests, |point| point.p99)),
        plot(
            "From a write to its effect, p99",
            "ms",
            both.operations(is_effect, |point| point.p99),
        ),
        plot("Objects", "", both.gauges(&objects)),
        plot("Memory of the API server", "MB", both.gauges(&memory)),
    ]
    .concat()
}

fn band(phase: &Phase) -> Band<'_> {
    Band { name: &phase.name, begin: phase.begin, end: phase.begin + phase.seconds }
}

fn is_effect(operation: &Operation) -> bool {
    [" seen", " ready"].iter().any(|effect| operation.name.ends_with(effect))
}

/// What a plot shows of a moment, if it is known.
type Gauge = fn(&Gauges) -> Option<f64>;

/// A run and the one beside it, whose lines are dashed.
struct Both<'a> {
    report: &'a Report,
    beside: Option<&'a Report>,
}

impl Both<'_> {
    fn operations(&self, wanted: fn(&Operation) -> bool, value: fn(&Point) -> f64) -> Vec<Line> {
        self.lines(|report, dashed| {
            let operations = report.operations.iter().filter(|operation| wanted(operation));
            let line = |operation: &Operation| {
                let busy = operation.points.iter().filter(|point| point.rate > 0.0);
                let points = busy.map(|point| (point.second, value(point))).collect();
                Line { name: operation.name.clone(), dashed, points }
            };
            operations.map(line).collect()
        })
    }

    fn gauges(&self, wanted: &[(&str, Gauge)]) -> Vec<Line> {
        self.lines(|report, dashed| {
            let line = |(name, value): &(&str, Gauge)| {
                let point = |gauges: &Gauges| Some((gauges.second, value(gauges)?));
                let points = report.gauges.iter().filter_map(point).collect();
                Line { name: (*name).to_owned(), dashed, points }
            };
            wanted.iter().map(line).collect()
        })
    }

    fn lines(&self, of: impl Fn(&Report, bool) -> Vec<Line>) -> Vec<Line> {
        let other = self.beside.map(|other| of(other, true)).unwrap_or_default();
        [of(self.report, false), other].concat()
    }
}
