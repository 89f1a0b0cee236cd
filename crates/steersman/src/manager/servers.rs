//! What a manager at work shows of itself: its servers, checks and debug page.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;

use super::Running;
use super::access::Access;
use super::part::{Group, Part};
use super::site::{Content, Site};
use crate::debug::Inspection;
use crate::error::Error;
use crate::health::Liveness;
use crate::metrics::Process;
use crate::serve;

impl Running {
    /// Where the [sites](super::Manager::serve) are served, in the order in which they were given;
    /// complete once the manager is [ready](Self::ready).
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.borrow().values().copied().collect()
    }

    /// What the debug page shows, to be serialised.
    pub fn inspect(&self) -> impl Serialize + use<> {
        self.inspection().snapshot(None)
    }

    pub(super) fn serve(&self, number: usize, site: Site) {
        let handler = self.handler(&site);
        let addresses = self.addresses.clone();
        let name = format!("server at {}", site.address);
        let serve = move |stop, begun| async move {
            let mut server = serve::Server::bind(site.address).await?;
            if let Some(certificates) = site.tls {
                server = server.tls(certificates);
            }
            let address = server.local_addr()?;
            addresses.send_modify(|all| _ = all.insert(number, address));
            drop(begun);
            server.run(handler, stop).await;
            Ok(())
        };
        self.groups.add(Part::that_reports(name, Group::Servers, serve));
    }

    /// What answers the requests to a site, for who has a server or a test of their own.
    pub fn handler(&self, site: &Site) -> serve::Handler {
        if site.has_metrics() {
            let Process = self.metrics.families();
        }
        site.handler(&Content {
            health: self.health.clone(),
            metrics: self.metrics.clone(),
            inspection: self.inspection(),
            access: Access::new(self.client.kube().clone()),
        })
    }

    fn inspection(&self) -> Inspection {
        Inspection {
            metrics: self.metrics.clone(),
            queues: self.queues.clone(),
            controllers: self.controllers.clone(),
            replica: Arc::new(self.leadership.replica(self.groups.stage())),
        }
    }

    pub(super) fn add_checks(&self, liveness: Option<Liveness>) {
        let controllers = self.controllers.clone();
        self.health.ready_check("caches", move || std::future::ready(controllers.check_synced()));
        let stopping = self.stopping.clone();
        self.health.ready_check("shutdown", move || {
            let stopping = stopping.is_cancelled();
            let check = if stopping { Err(Error::message("the manager stops")) } else { Ok(()) };
            std::future::ready(check)
        });
        let Some(liveness) = liveness else {
            return;
        };
        let metrics = self.metrics.clone();
        let queues = self.queues.clone();
        self.health.health_check("watches", move || {
            std::future::ready(liveness.of_watches(&metrics.informers()))
        });
        self.health.health_check("workers", move || {
            std::future::ready(liveness.of_workers(&queues.dump()))
        });
    }
}
