//! The power goes at every step of a script, and again while the store recovers.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::script::{Model, Moment, Outcome, Progress, Run};
use super::simulated::Disk;

/// Batches of the script.
const BATCHES: usize = 300;
/// What is found after each crash, in so many variants.
const SEEDS: u64 = 3;

/// Runs the script and gives every moment of it.
async fn script(seed: u64) -> (Model, Vec<Moment>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut run = Run::open(&Disk::default(), Model::new(), Progress::default()).unwrap();
    let moments = run.record();
    for _ in 0..BATCHES {
        assert_eq!(run.step(&mut random).await, Outcome::Done);
    }
    assert!(run.snapshots > 3, "the script is too short: {} snapshots", run.snapshots);
    let last = Moment { image: run.disk.image(), progress: *run.progress.lock().unwrap() };
    let mut moments = std::mem::take(&mut *moments.lock().unwrap());
    moments.push(last);
    (run.model, moments)
}

/// Recovers after a crash, goes on writing, and is interrupted again on the way.
async fn recover_twice(model: &Model, moment: &Moment, random: &mut StdRng) {
    // Sometimes only the process ends: what it wrote is seen again, and may still be lost.
    let ended = random.random_ratio(1, 3);
    let disk = Disk::of(if ended { moment.image.clone() } else { moment.image.crash(random) });
    let images = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let recorded = std::sync::Arc::clone(&images);
    disk.observe(Box::new(move |image| recorded.lock().unwrap().push(image.clone())));
    let mut run = Run::open(&disk, model.clone(), moment.progress).unwrap();
    // While it recovers nothing is promised beyond what was.
    let images = std::mem::take(&mut *images.lock().unwrap());
    let moments = run.record();
    for _ in 0..5 {
        assert_eq!(run.step(random).await, Outcome::Done);
    }
    let moments = std::mem::take(&mut *moments.lock().unwrap());
    let recovering = images.iter().map(|image| (image, moment.progress, model));
    let writing = moments.iter().map(|moment| (&moment.image, moment.progress, &run.model));
    let all: Vec<_> = recovering.chain(writing).collect();
    let (image, progress, model) = all[random.random_range(0..all.len())];
    let disk = Disk::of(image.crash(random));
    Run::open(&disk, model.clone(), progress).unwrap();
}

async fn crash_everywhere(seed: u64) {
    let (model, moments) = script(seed).await;
    for (number, moment) in moments.iter().enumerate() {
        for variant in 0..SEEDS {
            let mut random = StdRng::seed_from_u64(seed << 32 | (number as u64) << 8 | variant);
            let context = Context(format!("seed {seed}, step {number}, variant {variant}"));
            recover_twice(&model, moment, &mut random).await;
            std::mem::forget(context);
        }
    }
}

/// Says where a panic came from.
struct Context(String);

impl Drop for Context {
    fn drop(&mut self) {
        eprintln!("this happened with {}", self.0);
    }
}

#[tokio::test]
async fn the_power_may_go_at_every_step_of_one_script() {
    crash_everywhere(1).await;
}

#[tokio::test]
async fn the_power_may_go_at_every_step_of_another_script() {
    crash_everywhere(2).await;
}
