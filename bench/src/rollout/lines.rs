//! The lines that are measured, one after the other, on a cluster that runs.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::metrics::MEMORY;
use super::user::{Followed, User};
use super::workloads::{
    DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS, deployment, is_complete, is_rolled_out,
    is_whole, job, scaled, stamped, stateful_set,
};

/// What was measured: metric and value.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// After this, memory is looked at.
const SETTLE_TIME: Duration = Duration::from_secs(2);
const APP: &str = "web";

/// How large a Deployment is, and what its lines are called.
struct Size {
    replicas: usize,
    available: &'static str,
    update: &'static str,
    down: &'static str,
}

const HUNDRED: Size = Size {
    replicas: 100,
    available: "Deployment of 100, available",
    update: "Deployment of 100, rolling update",
    down: "Deployment of 100, scaled to 0",
};

const THOUSAND: Size = Size {
    replicas: 1000,
    available: "Deployment of 1,000, available",
    update: "Deployment of 1,000, rolling update",
    down: "Deployment of 1,000, scaled to 0",
};

const MODES: [(&str, &str); 3] = [
    ("Foreground", "Deployment of 100, deleted, foreground"),
    ("Background", "Deployment of 100, deleted, background"),
    ("Orphan", "Deployment of 100, deleted, orphan"),
];

/// A cluster that is measured.
pub(super) struct Lines<'a> {
    user: &'a User,
    figures: Figures,
}

/// Measures every line. How much memory it takes is looked up when there are a thousand Pods.
pub(super) async fn all(
    user: &User,
    resident: impl Fn() -> Result<f64, String>,
) -> Result<Figures, String> {
    let mut lines = Lines { user, figures: Figures::new() };
    lines.warm_up().await?;
    lines.create(&HUNDRED).await?;
    lines.update_and_scale_down(&HUNDRED).await?;
    for (mode, line) in MODES {
        lines.create(&HUNDRED).await?;
        lines.delete(mode, line).await?;
    }
    lines.stateful_set().await?;
    lines.create(&THOUSAND).await?;
    tokio::time::sleep(SETTLE_TIME).await;
    lines.figures.push((MEMORY, resident()?));
    lines.update_and_scale_down(&THOUSAND).await?;
    lines.job().await?;
    Ok(lines.figures)
}

impl Lines<'_> {
    fn note(&mut self, line: &'static str, since: Instant) {
        let took = since.elapsed().as_secs_f64() * 1000.0;
        eprintln!("rollout: {line}: {took:.0} ms");
        self.figures.push((line, took));
    }

    /// Lets everybody take part once before anything is measured.
    async fn warm_up(&self) -> Result<(), String> {
        let mut web = self.user.follow(DEPLOYMENTS, APP).await?;
        self.user.create(DEPLOYMENTS, &deployment(APP, 1)).await?;
        web.until_one(|web| is_rolled_out(web, None)).await?;
        self.user.delete(&path(), &json!({"propagationPolicy": "Foreground"})).await?;
        web.until_none().await?;
        self.clean().await
    }

    async fn create(&mut self, size: &Size) -> Result<(), String> {
        let mut web = self.user.follow(DEPLOYMENTS, APP).await?;
        let begun = Instant::now();
        self.user.create(DEPLOYMENTS, &deployment(APP, size.replicas)).await?;
        web.until_one(|web| is_rolled_out(web, None)).await?;
        self.note(size.available, begun);
        Ok(())
    }

    async fn update_and_scale_down(&mut self, size: &Size) -> Result<(), String> {
        let mut web = self.user.follow(DEPLOYMENTS, APP).await?;
        let begun = Instant::now();
        self.user.merge(&path(), &stamped("new")).await?;
        web.until_one(|web| is_rolled_out(web, Some("new"))).await?;
        self.note(size.update, begun);
        let mut pods = self.pods().await?;
        let begun = Instant::now();
        self.user.merge(&path(), &scaled(0)).await?;
        pods.until_none().await?;
        self.note(size.down, begun);
        self.clean().await
    }

    /// Deletes the Deployment: until all its Pods are gone or, where they stay, until they belong
    /// to nobody.
    async fn delete(&mut self, mode: &str, line: &'static str) -> Result<(), String> {
        let mut left = match mode {
            "Background" => self.pods().await?,
            _ => self.user.follow(DEPLOYMENTS, APP).await?,
        };
        let begun = Instant::now();
        self.user.delete(&path(), &json!({"propagationPolicy": mode})).await?;
        left.until_none().await?;
        self.note(line, begun);
        self.clean().await
    }

    async fn stateful_set(&mut self) -> Result<(), String> {
        let mut set = self.user.follow(STATEFUL_SETS, APP).await?;
        let begun = Instant::now();
        self.user.create(STATEFUL_SETS, &stateful_set(APP, 50)).await?;
        set.until_one(is_whole).await?;
        self.note("StatefulSet of 50, in order", begun);
        self.clean().await
    }

    async fn job(&mut self) -> Result<(), String> {
        let mut job_followed = self.user.follow(JOBS, APP).await?;
        let begun = Instant::now();
        self.user.create(JOBS, &job(APP, 1000, 100)).await?;
        job_followed.until_one(is_complete).await?;
        self.note("Job of 1,000, 100 at once", begun);
        self.clean().await
    }

    async fn pods(&self) -> Result<Followed, String> {
        self.user.follow_all(PODS, APP).await
    }

    /// Takes away what is left, owners first, so that nobody replaces what goes, and Pods at once,
    /// so that nobody has to wait for a garbage collector.
    async fn clean(&self) -> Result<(), String> {
        let mut pods = self.pods().await?;
        for collection in [DEPLOYMENTS, STATEFUL_SETS, JOBS, REPLICA_SETS, PODS] {
            self.user.remove(collection).await?;
        }
        pods.until_none().await?;
        self.user.follow_all(REPLICA_SETS, APP).await?.until_none().await?;
        self.user.follow_all(DEPLOYMENTS, APP).await?.until_none().await
    }
}

fn path() -> String {
    format!("{DEPLOYMENTS}/{APP}")
}
