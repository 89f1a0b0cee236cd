//! What a container said last: the file that it was given for this, or the end of its log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;

use super::config::spec_of;
use super::{Shared, uid_of};
use crate::cri::wire::container::ContainerStatus;

/// How much of the file is read.
const FILE_MAX: u64 = 4096;
/// How much of the end of the log, of its text alone.
const LOG_MAX: usize = 2048;
const LOG_LINES_MAX: usize = 80;
/// How much of the log's file can hold as much text.
const LOG_FILE_MAX: u64 = 32 << 10;

/// Adds a container's last words to what its runtime says of it.
pub(super) fn add(shared: &Shared, pod: &Pod, status: &mut ContainerStatus) {
    let Some(metadata) = &status.metadata else { return };
    let attempt = i32::try_from(metadata.attempt).unwrap_or(0);
    let Some((spec, _)) = spec_of(pod, &metadata.name) else { return };
    let file = shared.places.last_words(uid_of(pod), &metadata.name, attempt);
    let mut words = match end_of(&file, FILE_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => format!("Error on reading termination log {}: {error}", file.display()),
    };
    let by_log = spec.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    let ran = status.reason != "ContainerCannotRun" && status.reason != "StartError";
    if words.is_empty() && by_log && status.exit_code != 0 && ran {
        let log = shared.places.log(pod, &metadata.name, attempt);
        words = end_of(&log, LOG_FILE_MAX).map_or_else(
            |error| format!("Error on reading termination message from logs: {error}"),
            |bytes| text_of_log(&String::from_utf8_lossy(&bytes)),
        );
    }
    if !words.is_empty() {
        let before = if status.message.is_empty() { "" } else { ": " };
        status.message = format!("{}{before}{words}", status.message);
    }
}

/// The end of a file.
fn end_of(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last text in a log whose lines are `TIME STREAM TAG TEXT`.
fn text_of_log(log: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in log.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(_), Some("stdout" | "stderr"), Some(tag)) =
            (words.next(), words.next(), words.next())
        else {
            continue; // the rest of a line that begins before what was read
        };
        let text = words.next().unwrap_or_default();
        let end = if tag.starts_with('P') { "" } else { "\n" };
        match lines.last_mut().filter(|last| !last.ends_with('\n')) {
            Some(last) => *last += &format!("{text}{end}"),
            None => lines.push(format!("{text}{end}")),
        }
    }
    let text = lines.split_off(lines.len().saturating_sub(LOG_LINES_MAX)).concat();
    let mut from = text.len().saturating_sub(LOG_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_its_text() {
        let log = "of a line that began before\n\
            2030-01-01T00:00:00Z stdout F one\n\
            2030-01-01T00:00:01Z stderr P tw\n\
            2030-01-01T00:00:01Z stderr F o\n";
        assert_eq!(text_of_log(log), "one\ntwo\n");
        let many: String =
            (0..100).map(|n| format!("2030-01-01T00:00:00Z stdout F {n}\n")).collect();
        assert!(text_of_log(&many).starts_with("20\n21\n"));
        let long = format!("2030-01-01T00:00:00Z stdout F {}\n", "é".repeat(3000));
        assert!(text_of_log(&long).len() <= LOG_MAX);
    }
}
