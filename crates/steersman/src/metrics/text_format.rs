//! The text format that Prometheus had before OpenMetrics, version 0.0.4.
//!
//! It differs in what it calls a family: a counter's includes `_total`. It knows no units, no
//! exemplars and no end mark.

/// Rewrites metrics from the OpenMetrics format.
pub(super) fn of_open_metrics(text: &str) -> String {
    let mut older = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ').map(|(_, help)| help);
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.rsplit_once(' ').unwrap_or((typed, "unknown"));
            let (suffix, kind) = family(kind);
            if let Some(help) = help.take() {
                older += &format!("# HELP {name}{suffix} {help}\n");
            }
            older += &format!("# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            older += without_exemplar(line);
            older.push('\n');
        }
    }
    older
}

/// What is added to the name of a family, and what the older format calls its type.
fn family(kind: &str) -> (&'static str, &str) {
    match kind {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        "stateset" => ("", "gauge"),
        "unknown" => ("", "untyped"),
        "gaugehistogram" => ("", "histogram"),
        other => ("", other),
    }
}

/// A sample up to its exemplar. A label may contain anything, so quotes are minded.
fn without_exemplar(sample: &str) -> &str {
    let mut quoted = false;
    let mut escaped = false;
    for (at, character) in sample.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '#' if !quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::of_open_metrics;

    #[test]
    fn families_are_named_as_their_samples_and_the_end_is_not_marked() {
        let open = "# HELP sold Things sold.\n# TYPE sold counter\n# UNIT sold things\n\
            sold_total{to=\"a # \\\"b\\\"\"} 3 # {id=\"x\"} 1\n\
            # HELP depth How deep.\n# TYPE depth gauge\ndepth 1\n\
            # HELP odd Odd.\n# TYPE odd unknown\nodd 1\n# EOF\n";
        let older = "# HELP sold_total Things sold.\n# TYPE sold_total counter\n\
            sold_total{to=\"a # \\\"b\\\"\"} 3\n\
            # HELP depth How deep.\n# TYPE depth gauge\ndepth 1\n\
            # HELP odd Odd.\n# TYPE odd untyped\nodd 1\n";
        assert_eq!(of_open_metrics(open), older);
    }
}
