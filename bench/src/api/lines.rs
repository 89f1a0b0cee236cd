//! The calls that are measured one by one, sixteen at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::measured::Figures;
use super::requests::{self, Call};
use super::target::Target;
use crate::report::percentile_of;

const CONCURRENCY: usize = 16;
const LISTS: usize = 20;

/// Measures every line; the objects are gone afterwards.
pub(super) async fn all(target: &Target, objects: usize) -> Result<Figures, String> {
    target.connect().await?.ask(requests::namespace()).await?;
    in_namespace(target, objects).await
}

/// The same, where the namespace exists.
pub(super) async fn in_namespace(target: &Target, objects: usize) -> Result<Figures, String> {
    let mut figures = super::figures();
    let mut load = Load { target, objects, figures: &mut figures };
    load.run(["create", "create, p99"], requests::create).await?;
    load.run(["get", "get, p99"], requests::get).await?;
    load.list().await?;
    load.run(["update", "update, p99"], requests::update).await?;
    load.run(["merge patch", "merge patch, p99"], requests::merge_patch).await?;
    load.run(["apply", "apply, p99"], requests::apply).await?;
    load.run(["delete", "delete, p99"], requests::delete).await?;
    Ok(figures)
}

/// Measures what a server without an API behind it can do, too.
pub(super) async fn ceiling(target: &Target, objects: usize) -> Result<Figures, String> {
    let mut figures = super::figures();
    let mut load = Load { target, objects, figures: &mut figures };
    load.run(["create", "create, p99"], requests::create).await?;
    load.run(["get", "get, p99"], requests::get).await?;
    Ok(figures)
}

struct Load<'a> {
    target: &'a Target,
    objects: usize,
    figures: &'a mut Figures,
}

impl Load<'_> {
    /// Makes one call for each object, and notes how many a second, and the slowest hundredth.
    async fn run(
        &mut self,
        [rate, p99]: [&'static str; 2],
        request: fn(usize) -> Call,
    ) -> Result<(), String> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        let objects = self.objects;
        let mut connections = Vec::new();
        for _ in 0..CONCURRENCY {
            connections.push(self.target.connect().await?);
        }
        let start = Instant::now();
        for mut connection in connections {
            let next = Arc::clone(&next);
            clients.spawn(async move {
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= objects {
                        return Ok::<Vec<Duration>, String>(times);
                    }
                    let request = request(number);
                    let begun = Instant::now();
                    connection.ask(request).await.map_err(|error| format!("{rate}: {error}"))?;
                    times.push(begun.elapsed());
                }
            });
        }
        let mut times = Vec::with_capacity(objects);
        while let Some(client) = clients.join_next().await {
            times.extend(client.map_err(|error| error.to_string())??);
        }
        self.figures.insert(rate, objects as f64 / start.elapsed().as_secs_f64());
        self.figures.insert(p99, percentile_of(&mut times, 0.99));
        Ok(())
    }

    /// Lists everything, again and again.
    async fn list(&mut self) -> Result<(), String> {
        let mut connection = self.target.connect().await?;
        let mut times = Vec::new();
        for _ in 0..LISTS {
            let begun = Instant::now();
            connection.ask(requests::list()).await?;
            times.push(begun.elapsed());
        }
        self.figures.insert("list of all", percentile_of(&mut times, 0.5));
        self.figures.insert("list of all, p99", percentile_of(&mut times, 0.99));
        Ok(())
    }
}
