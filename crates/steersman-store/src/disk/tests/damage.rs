//! Bytes that change and files that go after they were on disk.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::script::{Model, Outcome, Progress, Run};
use super::simulated::{Disk, Image};
use crate::disk::OpenError;

/// A store with a snapshot and several segments, and what must be in it.
async fn store() -> (Image, Model, Progress) {
    let mut random = StdRng::seed_from_u64(5);
    let mut run = Run::open(&Disk::default(), Model::new(), Progress::default()).unwrap();
    for _ in 0..400 {
        assert_eq!(run.step(&mut random).await, Outcome::Done);
        let names = run.disk.image().names();
        if run.snapshots > 0 && names.len() > 4 && run.committer.log.position() > 300 {
            break;
        }
    }
    let image = run.disk.image();
    assert!(image.names().len() > 4, "{:?}", image.names());
    (image, run.model, *run.progress.lock().unwrap())
}

#[tokio::test]
async fn a_changed_byte_is_never_served() {
    let (image, model, progress) = store().await;
    let mut random = StdRng::seed_from_u64(6);
    let names = image.names();
    let last = names.iter().rfind(|name| name.ends_with(".log")).unwrap();
    let (mut cut, mut refused) = (0, 0);
    for name in &names {
        for offset in 0..image.clone().content(name).len() {
            let mut damaged = image.clone();
            damaged.content(name)[offset] ^= 1 << random.random_range(0..8);
            // The model checks every state that is served. Only the last write may be missing.
            let allowed = match name == last {
                true => Progress { acknowledged: progress.acknowledged - 3, ..progress },
                false => progress,
            };
            match Run::open(&Disk::of(damaged), model.clone(), allowed) {
                Ok(run) => {
                    assert!(name == last && run.opened.cut_off > 0, "{name} at {offset}");
                    cut += 1;
                }
                Err(OpenError::Corrupt { file, offset: found, .. }) => {
                    assert!(file.ends_with(name), "{name} at {offset}: blames {file:?}");
                    assert!(found as usize <= offset, "{name} at {offset}: found at {found}");
                    refused += 1;
                }
                Err(other) => panic!("{name} at {offset}: {other}"),
            }
        }
    }
    assert!((40..500).contains(&cut) && refused > 1000, "{cut} cut off, {refused} refused");
}

#[tokio::test]
async fn a_missing_file_is_noticed() {
    let (image, model, progress) = store().await;
    let names = image.names();
    let (last, others) = names.split_last().unwrap();
    assert!(last.ends_with(".log") && others.iter().any(|name| name.ends_with(".snapshot")));
    for name in others {
        let mut damaged = image.clone();
        damaged.remove(name);
        let refused = Run::open(&Disk::of(damaged), model.clone(), progress).err().unwrap();
        assert!(matches!(refused, OpenError::Corrupt { .. }), "{name}: {refused}");
    }
}

#[tokio::test]
async fn a_file_cut_short_is_noticed_unless_it_is_the_last_write() {
    let (image, model, progress) = store().await;
    let names = image.names();
    let (_, others) = names.split_last().unwrap();
    for name in others {
        for length in 0..image.clone().content(name).len() {
            let mut damaged = image.clone();
            damaged.content(name).truncate(length);
            let refused = Run::open(&Disk::of(damaged), model.clone(), progress).err();
            assert!(matches!(refused, Some(OpenError::Corrupt { .. })), "{name} to {length}");
        }
    }
}

#[tokio::test]
async fn a_newer_format_is_refused_as_such() {
    let (mut image, model, progress) = store().await;
    let name = image.names().pop().unwrap();
    let header = &mut image.content(&name)[..40];
    header[8] = 2;
    let checksum = crc32fast::hash(&header[..36]);
    header[36..].copy_from_slice(&checksum.to_le_bytes());
    let refused = Run::open(&Disk::of(image), model, progress).err().unwrap();
    assert!(matches!(refused, OpenError::Newer { version: 2, .. }), "{refused}");
}
