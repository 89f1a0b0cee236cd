//! The debug page for the eye: plain HTML, no script, nothing loaded.

use std::fmt::Write;

use super::snapshot::{CacheSnapshot, QueueSnapshot, Snapshot};
use crate::controller::{ControllerHistory, ReconcileRecord};

const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem auto;max-width:75rem;\
padding:0 1rem;color:#1b1b1f;background:#fff}h1{font-size:1.3rem}h2{font-size:1.05rem;\
margin:1.6rem 0 .4rem}table{border-collapse:collapse;width:100%}th,td{text-align:left;\
padding:.2rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}th{color:#555;\
font-weight:600}td{overflow-wrap:anywhere}.bad{color:#b3261e}.none{color:#777}\
@media(prefers-color-scheme:dark){body{background:#1b1b1f;color:#e5e1e6}th,.none{color:#aaa}\
th,td{border-color:#444}.bad{color:#ffb4ab}a{color:#9ecaff}}";

/// How often the page shows itself anew, in seconds.
const REFRESH: u32 = 5;

/// The page.
pub(super) fn render(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    page.head(snapshot);
    page.table(
        "Controllers",
        &["name", "phase"],
        snapshot.controllers.iter().map(|controller| {
            vec![text(&controller.name), text(&format!("{:?}", controller.phase).to_lowercase())]
        }),
    );
    let leases = snapshot.leases.iter().map(|lease| {
        let held = if lease.held { "held" } else { "not held" };
        let epoch = lease.epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
        let shares = match (&lease.controller, lease.members) {
            (Some(controller), Some(members)) => format!("{controller}, by {members} members"),
            _ => String::new(),
        };
        let cells = [lease.lease.as_str(), &lease.identity, held, &epoch, &shares];
        cells.map(text).into()
    });
    page.table("Leases", &["lease", "this replica is", "state", "epoch", "shares"], leases);
    let columns = ["kind", "state", "version", "objects", "bytes", "waiting", "silent for"];
    page.table("Caches", &columns, snapshot.caches.iter().map(cache));
    for queue in &snapshot.queues {
        page.queue(queue);
    }
    for history in &snapshot.history {
        page.history(history);
    }
    page.0 += "</body></html>\n";
    page.0
}

/// A cell of a table.
struct Cell {
    text: String,
    bad: bool,
}

fn text(text: &str) -> Cell {
    Cell { text: text.to_owned(), bad: false }
}

fn cache(cache: &CacheSnapshot) -> Vec<Cell> {
    let informer = &cache.informer;
    let kind = match informer.group.as_str() {
        "" => informer.kind.clone(),
        group => format!("{}.{group}", informer.kind),
    };
    let synced = if informer.synced { "synced" } else { "not synced" };
    let state = format!("{synced}, {}", informer.phase);
    let silent = informer.silent_for.map(|silent| format!("{silent:.0?}")).unwrap_or_default();
    vec![
        text(&kind),
        Cell { text: state, bad: !informer.synced || informer.stalled },
        text(&informer.version.to_string()),
        text(&informer.objects.to_string()),
        text(&informer.bytes.to_string()),
        text(&informer.queued.to_string()),
        text(&silent),
    ]
}

fn record(record: &ReconcileRecord) -> Vec<Cell> {
    vec![
        text(&record.key.to_string()),
        text(&record.id.to_string()),
        text(&record.started.to_string()),
        text(&format!("{:.1?}", record.duration)),
        text(&record.causes.to_string()),
        Cell { text: record.outcome.to_string(), bad: record.outcome.is_failure() },
    ]
}

/// HTML under construction.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, snapshot: &Snapshot) {
        let Snapshot { time, started, key, .. } = snapshot;
        let started = started.as_deref().unwrap_or("nothing");
        self.0 += "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">";
        let _ = write!(self.0, "<meta http-equiv=\"refresh\" content=\"{REFRESH}\">");
        let _ = write!(self.0, "<title>Manager</title><style>{STYLE}</style></head><body>");
        let _ =
            write!(self.0, "<h1>Manager</h1><p>{} · started: {}", escaped(time), escaped(started));
        self.0 += " · <a href=\"/debug/json\">JSON</a></p><form><label>Key <input name=\"key\" ";
        let key = escaped(key.as_deref().unwrap_or_default());
        let _ = write!(self.0, "placeholder=\"namespace/name\" value=\"{key}\"></label></form>");
    }

    fn queue(&mut self, queue: &QueueSnapshot) {
        let counts: Vec<String> = queue
            .counts
            .iter()
            .map(|(state, count)| format!("{count} {}", words(&format!("{state:?}"))))
            .collect();
        let counts = if counts.is_empty() { "empty".to_owned() } else { counts.join(", ") };
        let keys = queue.keys.iter().map(|key| {
            let seconds = key.seconds.map(|time| format!("for {time:.1} s"));
            let due = key.due_in_seconds.map(|time| format!("due in {time:.1} s"));
            vec![
                text(&key.key.to_string()),
                text(&words(&format!("{:?}", key.state))),
                text(&seconds.or(due).unwrap_or_default()),
                Cell { text: key.failures.to_string(), bad: key.failures > 0 },
                text(key.reason.as_deref().unwrap_or_default()),
            ]
        });
        let columns = ["key", "state", "time", "failures", "because"];
        self.table(&format!("Queue {}: {counts}", queue.name), &columns, keys);
    }

    fn history(&mut self, history: &ControllerHistory) {
        let name = &history.controller;
        let running = history.running.iter().map(|running| {
            vec![
                text(&running.key.to_string()),
                text(&running.id.to_string()),
                text(&running.since.to_string()),
                text(&running.causes.to_string()),
            ]
        });
        let title = format!("{name} runs, on {} workers", history.concurrency);
        self.table(&title, &["key", "id", "since", "because"], running);
        let columns = ["key", "id", "started", "took", "because", "ended"];
        self.table(&format!("{name} fails"), &columns, history.failing.iter().map(|it| record(it)));
        self.table(
            &format!("{name} did last"),
            &columns,
            history.recent.iter().map(|it| record(it)),
        );
        if history.hot_loops.is_empty() {
            return;
        }
        let hot = history.hot_loops.iter().map(|hot| {
            vec![
                text(&hot.key.to_string()),
                text(&hot.since),
                text(&hot.reconciles.to_string()),
                text(&hot.changing.join(", ")),
                text(&hot.causes.to_string()),
            ]
        });
        let columns = ["key", "since", "reconciles", "keeps changing", "because"];
        self.table(&format!("{name} keeps itself busy with"), &columns, hot);
    }

    fn table(&mut self, title: &str, columns: &[&str], rows: impl Iterator<Item = Vec<Cell>>) {
        let _ = write!(self.0, "<h2>{}</h2>", escaped(title));
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            self.0 += "<p class=\"none\">none</p>";
            return;
        }
        self.0 += "<table><thead><tr>";
        for column in columns {
            let _ = write!(self.0, "<th>{}</th>", escaped(column));
        }
        self.0 += "</tr></thead><tbody>";
        for row in rows {
            self.0 += "<tr>";
            for Cell { text, bad } in row {
                let class = if bad { " class=\"bad\"" } else { "" };
                let _ = write!(self.0, "<td{class}>{}</td>", escaped(&text));
            }
            self.0 += "</tr>";
        }
        self.0 += "</tbody></table>";
    }
}

/// `BackingOff` as people say it.
fn words(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

/// Text that stays text, in elements and in quoted attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}
