//! Every input that was ever worth to be kept, through the target it was kept for.

use std::fs;
use std::path::{Path, PathBuf};

use steersman_fuzz::TARGETS;

fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|_| panic!("{name} has no corpus"));
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder that can be read").path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_holds_to_what_it_must_on_its_corpus() {
    for target in TARGETS {
        let files = corpus(target.name);
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let run = target.run;
            let held = std::panic::catch_unwind(|| run(&bytes));
            assert!(held.is_ok(), "{} does not hold on {}", target.name, file.display());
        }
    }
}

#[test]
fn every_target_holds_on_nothing_and_on_noise() {
    for target in TARGETS {
        (target.run)(b"");
        (target.run)(&[0xff; 300]);
        (target.run)(b"\n---\n");
    }
}

#[test]
fn every_corpus_belongs_to_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(TARGETS.iter().any(|target| target.name == name), "whose corpus is {name}?");
    }
}
