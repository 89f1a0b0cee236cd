use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flate2::read::GzDecoder;
use jiff::{SignedDuration, Timestamp};

use super::{LogPolicy, ReopenLog, plan, rotate};

fn at(second: i64) -> Timestamp {
    "2026-11-17T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

#[test]
fn old_logs_are_compressed_and_the_oldest_removed() {
    let policy = |files_max| LogPolicy { size_max: 1, files_max };
    for (before, files_max, remove, compress) in [
        ("", 5, "", ""),
        ("l.1", 5, "", "l.1"),
        ("l.2 l.1.gz", 5, "", "l.2"),
        ("l.3 l.2.gz l.1.gz", 5, "", "l.3"),
        ("l.4 l.3.gz l.2.gz l.1.gz", 5, "l.1.gz", "l.4"),
        ("l.4 l.3.gz l.2.gz l.1.gz", 3, "l.1.gz l.2.gz l.3.gz", "l.4"),
        ("l.2 l.1.gz", 2, "l.1.gz l.2", ""),
        ("l.2 l.1.gz", 1, "l.1.gz l.2", ""),
        // A rotation was interrupted while, or right after, something was compressed.
        ("l.2 l.2.tmp l.1 l.1.gz", 5, "l.1 l.2.tmp", "l.2"),
    ] {
        let names: Vec<String> = before.split_whitespace().map(str::to_owned).collect();
        let found = plan("l", &names, policy(files_max), at(0));
        assert_eq!(found.remove.join(" "), remove, "{before} {files_max}");
        assert_eq!(found.compress.join(" "), compress, "{before} {files_max}");
        assert_eq!(found.rotated, "l.20261117-120000");
    }
}

/// Opens logs again, or refuses to.
struct Runtime {
    log: PathBuf,
    refuses: Mutex<bool>,
}

impl ReopenLog for Runtime {
    async fn reopen(&self, _: &str) -> Result<(), String> {
        if *self.refuses.lock().unwrap() {
            return Err("away".into());
        }
        fs::write(&self.log, "").map_err(|error| error.to_string())
    }
}

fn names(directory: &Path) -> String {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.join(" ")
}

#[tokio::test]
async fn a_log_is_rotated_when_it_is_too_large() {
    let directory = std::env::temp_dir().join(format!("steersman-logs-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let log = directory.join("0.log");
    let runtime = Runtime { log: log.clone(), refuses: Mutex::new(false) };
    let policy = LogPolicy { size_max: 4, files_max: 3 };
    let step = |second| rotate("c", &log, policy, &runtime, at(second));

    fs::write(&log, "abc").unwrap();
    assert!(!step(0).await.unwrap());
    fs::write(&log, "abcd").unwrap();
    assert!(step(1).await.unwrap());
    assert_eq!(names(&directory), "0.log 0.log.20261117-120001");
    assert_eq!(fs::read_to_string(&log).unwrap(), "");

    fs::write(&log, "efgh").unwrap();
    assert!(step(2).await.unwrap());
    assert_eq!(names(&directory), "0.log 0.log.20261117-120001.gz 0.log.20261117-120002");
    let archive = fs::File::open(directory.join("0.log.20261117-120001.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(archive).read_to_string(&mut text).unwrap();
    assert_eq!(text, "abcd");

    // Without the runtime nothing is lost.
    fs::write(&log, "ijkl").unwrap();
    *runtime.refuses.lock().unwrap() = true;
    let error = step(3).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to reopen container log \"c\": away");
    assert_eq!(fs::read_to_string(&log).unwrap(), "ijkl");

    // An agent that ended between renaming and reopening.
    *runtime.refuses.lock().unwrap() = false;
    fs::rename(&log, directory.join("0.log.20261117-120004")).unwrap();
    assert!(!step(5).await.unwrap());
    assert!(log.exists());
    fs::remove_dir_all(&directory).unwrap();
}
